"""Library code for discrete Fourier transforms of lengths whose prime factors are not large."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import complex_of, float64, is_complex, real_of
from nnc_core.base.layout import Layout
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.arrays import first_of, sides
from nnc_core.operator.steps.fourier_chirp import by_chirps, scale_of
from nnc_core.operator.steps.fourier_text import GROUP, FourierSource, Way
from nnc_core.operator.steps.program import EntryLaunch, StepsCompiler, StepsPart

TRANSFORMS: tuple[Way, ...] = ("fft", "rfft", "irfft")
LARGEST = 1024
"""The prime factor up to which a stage, which takes its square, pays."""
WORTH_A_CHIRP = 80
"""That from which on two longer transforms are quicker than the stage."""
RADICES = (8, 4, 2)
"""Factors that are taken first."""
SHARES, EACH = 4, 1024
"""Work items for each core, and elements that one is worth, on CPUs."""


class AxisTransform(NamedTuple):
    """A transform of the rows of an array along an axis, or of none: a copy."""

    way: Way
    x: Layout
    y: Layout
    axis: int | None
    inverse: bool
    norm: str

    @property
    def points(self) -> int:
        """The elements of a row, as complex numbers."""
        return 1 if self.axis is None else (self.y if self.way == "irfft" else self.x).shape[self.axis]

    @property
    def given(self) -> int:
        """The elements of a row of the result."""
        return 1 if self.axis is None else self.y.shape[self.axis]

    @property
    def rows(self) -> int:
        return prod(self.y.shape) // self.given

    @property
    def workspace(self) -> int:
        """Bytes of all rows, twice."""
        return 2 * self.rows * self.points * complex_of(real_of(self.x.dtype)).itemsize

    @property
    def scale(self) -> float:
        """The factor of the result."""
        return scale_of(self.points, self.inverse, self.norm)


class Fourier(CommandBackend):
    """Transforms along axes, one after another."""

    name = "stages"

    def __init__(self, operator: Way, compiler: StepsCompiler) -> None:
        self.operator, self.compiler = operator, compiler

    def refuse(self, command: Command) -> str | None:
        if command.name != self.operator:
            return f"it is made for {self.operator}"
        if real_of(command.inputs[0].dtype) == float64 and float64.name not in self.compiler.dtypes:
            return "the device has no float64"
        largest = max([radix for part in parts_of(command) for radix in radices_of(part.points)], default=1)
        return f"a stage of {largest} elements takes longer than the host" if largest > LARGEST else None

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        if config.deterministic or not command.output.size:
            return None
        return by_chirps(F, inputs, command, self.suits)

    def suits(self, points: int) -> bool:
        """Tell whether stages are quicker than two longer transforms, or the host is, where it is the device."""
        largest = max(radices_of(points), default=1)
        return largest < WORTH_A_CHIRP or (largest > LARGEST and not self.compiler.grouped)

    def workspace(self, command: Command) -> int:
        return max([part.workspace for part in parts_of(command)])

    def prepare(self, command: Command) -> Kernel:
        """The first part reads the input, the others what the one before has given."""
        parts = parts_of(command)
        return self.compiler.kernel(self.operator, [self.part_of(part, 1 if n else 0) for n, part in enumerate(parts)
                                                    if part.rows])

    def part_of(self, part: AxisTransform, read: int) -> StepsPart:
        """The launches of a transform along one axis; `read`: the number of the buffer that it reads."""
        outer = (slice(None), slice(0, 0)) if part.axis is None else (slice(part.axis), slice(part.axis + 1, None))
        groups = [sides({"x": (part.x, axes), "y": (part.y, axes)}) for axes in outer]
        radices = radices_of(part.points)
        source = FourierSource(part.way, complex_of(real_of(part.x.dtype)),
                               (len(groups[0].lengths), len(groups[1].lengths)), tuple(sorted(set(radices))))
        numbers = {"rows": part.rows, "points": part.points, "given": part.given, "tails": prod(groups[1].lengths)}
        for axes, group in zip(source.groups, groups, strict=False):
            numbers |= group.numbers(axes)
        for name, array in (("x", part.x), ("y", part.y)):
            step = 0 if part.axis is None else array.strides[part.axis] // array.dtype.itemsize
            numbers |= {**first_of(name, array), f"{name}_k0": step}
        return StepsPart(source, list(self.launches(part, radices)), [numbers[name] for name in source.names],
                         (read, 1, 2), (self.compiler.constants(table_of(part)),))

    def launches(self, part: AxisTransform, radices: Sequence[int]) -> Iterator[EntryLaunch]:
        """Taking, all stages, and giving; `step`: the half of the workspace that is read."""
        items, size, half = self.items(part.rows * part.points), 1, 0
        yield EntryLaunch("take", *items)
        for radix in radices:
            yield EntryLaunch(f"stage_{radix}", *items, size, half)
            size, half = size * radix, 1 - half
        yield EntryLaunch("give", *items, 0, half)

    def items(self, elements: int) -> tuple[int, int]:
        """Work items and their groups."""
        if self.compiler.grouped:
            return min(-(-elements // GROUP), 1 << 16) * GROUP, GROUP
        return max(min(elements // EACH, SHARES * self.compiler.cores), 1), 1


def table_of(part: AxisTransform) -> np.ndarray[Any, Any]:
    """The roots of unity of a length, and behind them the scale."""
    roots = np.append(roots_of(part.points, part.inverse), part.scale)
    return roots.astype(complex_of(real_of(part.x.dtype)))


def roots_of(count: int, inverse: bool) -> np.ndarray[Any, Any]:
    """exp(-2 pi i k / count) for all k, or its conjugates: rounded once where the host has longer floats; of quarters
    of a turn exactly."""
    if count % 8 == 0:
        eighth = _first_roots(count, count // 8 + 1)
        quarter = np.append(eighth, -1j * eighth[-2:0:-1].conj())
        roots = np.concatenate([quarter, -1j * quarter, -quarter, 1j * quarter])
    else:
        half = _first_roots(count, count // 2 + 1)
        if count % 2 == 0:
            half.imag[-1] = 0
        if count % 4 == 0:
            half.real[count // 4] = 0
        roots = np.append(half, half[(count - 1) // 2 : 0 : -1].conj())
    return np.asarray(roots.conj() if inverse else roots)


def _first_roots(count: int, few: int) -> np.ndarray[Any, Any]:
    """The first ones."""
    angles = 8 * np.arctan(np.longdouble(1)) / count * np.arange(few)
    return np.asarray(np.cos(angles) - 1j * np.sin(angles), np.complex128)


def radices_of(points: int) -> list[int]:
    """The factors of a length, in the order of the stages."""
    found, left, prime = list[int](), points, 3
    for radix in RADICES:
        while left % radix == 0:
            found.append(radix)
            left //= radix
    while left > 1:
        while left % prime == 0:
            found.append(prime)
            left //= prime
        prime = left if prime * prime > left else prime + 2
    return found


def parts_of(command: Command) -> list[AxisTransform]:
    """A command as transforms along one axis each."""
    [x], y, attributes = command.inputs, command.output, command.attributes
    if command.name == "fft":
        axes, inverse, norm = attributes
        given: list[int | None] = [*axes] or [None]
        return [AxisTransform("fft", y if n else x, y, axis, bool(inverse), str(norm)) if axis is not None else
                AxisTransform("fft", x, y, None, False, "backward") for n, axis in enumerate(given)]
    axis = attributes[0]
    assert isinstance(axis, int)
    way: Way = "irfft" if is_complex(x.dtype) else "rfft"
    return [AxisTransform(way, x, y, axis, way == "irfft", str(attributes[-1]))]
