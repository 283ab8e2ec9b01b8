"""Plans of operators of matrices: steps, and the numbers that they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import complex64, complex128, float32, float64, is_complex
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_cpu.lapack import INTEGER_BITS, routine_address
from nnc_cpu.matrices.numpys import itemsize, loop_of, types_of
from nnc_cpu.matrices.steps import (
    CallLoop,
    CallRoutine,
    Element,
    Give,
    GiveOrder,
    MatrixKind,
    Part,
    Settle,
    Step,
    Take,
)
from nnc_cpu.scattering.problem import step_of

ALIGNED = 64
DTYPES = (float32, float64, complex64, complex128)


class Area(NamedTuple):
    """Scratch memory for one matrix, packed."""

    place: int
    rows: int
    columns: int
    is_complex: bool = False


class LapackPlan(NamedTuple):
    kind: MatrixKind
    numbers: tuple[int, ...]
    """Those of the steps."""
    matrices: int
    room: int
    """Bytes of scratch memory for one matrix."""


class LapackSteps:
    """Writes the plan of a command; NotSupportedError where there is no code for it."""

    def __init__(self, command: Command, wide: bool = True) -> None:
        """`wide`: areas are of float64 or complex128, as NumPy's functions have it."""
        self.command, self.wide = command, wide
        self.batch = np.broadcast_shapes(*[x.shape[:-2] for x in command.inputs])
        self.steps = list[Step]()
        self.numbers = list[int]()
        self._used = 0
        if any([x.dtype not in DTYPES for x in command.inputs]) or any([0 in x.shape for x in command.inputs]):
            raise NotSupportedError("it is made for floats and complex numbers, and there are none")

    @property
    def complex(self) -> bool:
        """True if the matrices that come first are of complex numbers."""
        return is_complex(self.command.inputs[0].dtype)

    def element(self, x: Layout) -> Element:
        array = "float" if x.dtype in (float32, complex64) else "double"
        return Element(array, "double" if self.wide else array, is_complex(x.dtype))

    def area(self, rows: int, columns: int, complex_numbers: bool = False) -> Area:
        size = itemsize(complex_numbers)  # elements of areas that are not wide take half
        made = Area(self._used, rows, columns, complex_numbers)
        self._used += -(-rows * columns * size // ALIGNED) * ALIGNED
        return made

    def add(self, step: Step, numbers: Sequence[int]) -> None:
        assert len(numbers) == step.needed, step
        self.steps.append(step)
        self.numbers += numbers

    # ---- matrices and areas
    def take(self, number: int, turned: bool = False, **how: bool) -> Area:
        """Bring an input to an area; turned: by columns, as LAPACK has it."""
        x = self.command.inputs[number]
        rows, columns, row, column = _matrix(x)
        if turned:
            rows, columns, row, column = columns, rows, column, row
        area = self.area(rows, columns, is_complex(x.dtype))
        self.add(Take(number, self.element(x), **how),
                 [rows, columns, x.offset, self.batch_step(x, 2), row, column, area.place])
        return area

    def give(self, area: Area, number: int, turned: bool = False, part: Part = "whole", finite: bool = False) -> None:
        """Bring the first rows of an area to an output: a matrix, a vector or a number."""
        y = self.command.outputs[number]
        core = len(y.shape) - len(self.batch)
        shape, strides = y.shape[len(y.shape) - core :], y.strides[len(y.shape) - core :]
        rows, columns = (1,) * (2 - core) + shape
        row, column = (0,) * (2 - core) + strides
        if turned:
            rows, columns, row, column = columns, rows, column, row
        assert columns == area.columns and rows <= area.rows, self.command
        self.add(Give(number, self.element(y), part, finite),
                 [rows, columns, y.offset, self.batch_step(y, core), row, column, area.place])

    def settle(self, vectors: Area, number: int, count: int, against: Area | None = None) -> None:
        """Settle the phases of so many columns, vectors of an output, if they are complex."""
        if vectors.is_complex:
            others = () if against is None else (against.columns, against.place)
            self.add(Settle(self.element(self.command.outputs[number]), against is not None),
                     [vectors.rows, count, vectors.columns, vectors.place, *others])

    def batch_step(self, x: Layout, core: int) -> int:
        """Bytes from one matrix of the stack to the next."""
        own = len(x.shape) - core
        if x.shape[:own] == self.batch:
            return step_of(x, 0, own) * x.dtype.itemsize
        if prod(x.shape[:own]) == 1:
            return 0
        raise NotSupportedError("stacks are broadcast by parts")

    # ---- calls
    def loop(self, name: str, inputs: Sequence[Area], outputs: Sequence[Area], fails: bool = True) -> None:
        """Call a loop of NumPy's."""
        areas = (*inputs, *outputs)
        found = loop_of(name, types_of([x.is_complex for x in inputs], [y.is_complex for y in outputs]))
        if found is None:
            raise NotSupportedError(f"NumPy's {name} is not found")
        shapes = [(area.rows, area.columns)[2 - len(names) :]
                  for area, names in zip(areas, found.operands, strict=True)]
        sizes, strides = found.sizes(shapes), [0] * len(areas)
        for area, shape in zip(areas, shapes, strict=True):
            size = itemsize(area.is_complex)
            strides += [area.columns * size, size][2 - len(shape) :]
        self.add(CallLoop(len(areas), len(sizes), len(strides), fails),
                 [found.address, found.data, *[area.place for area in areas], *sizes, *strides])

    def routine(self, name: str, *arguments: Any, fails: bool) -> None:
        """Call a routine of LAPACK on areas, with numbers and letters."""
        address = routine_address(name, self.command.inputs[0].dtype.name)
        if address is None:
            raise NotSupportedError(f"LAPACK's {name} is not found")
        numbers = [x.place if isinstance(x, Area) else ord(x) if isinstance(x, str) else x for x in arguments]
        self.add(CallRoutine(tuple([isinstance(x, Area) for x in arguments]), fails), [address, *numbers])

    def plan(self) -> LapackPlan:
        kind = MatrixKind(len(self.command.inputs), len(self.command.outputs), tuple(self.steps))
        return LapackPlan(kind, tuple(self.numbers), prod(self.batch), self._used)


def _matrix(x: Layout) -> tuple[int, int, int, int]:
    return x.shape[-2], x.shape[-1], x.strides[-2], x.strides[-1]


# ---- plans of operators
def inv(command: Command) -> LapackPlan:
    to = LapackSteps(command)
    a = to.take(0)
    inverse = to.area(*a[1:])
    to.loop("inv", [a], [inverse])
    to.give(inverse, 0)
    return to.plan()


def solve(command: Command) -> LapackPlan:
    to = LapackSteps(command)
    a, b = to.take(0), to.take(1)
    x = to.area(*b[1:])
    to.loop("solve", [a, b], [x])
    to.give(x, 0)
    return to.plan()


def cholesky(command: Command) -> LapackPlan:
    to = LapackSteps(command)
    a = to.take(0, hermitian=True)
    factor = to.area(*a[1:])
    to.loop("cholesky_lo", [a], [factor])
    to.give(factor, 0, finite=True)
    return to.plan()


def qr(command: Command) -> LapackPlan:
    m, n = command.inputs[0].shape[-2:]
    to = LapackSteps(command)
    a, k = to.take(0), min(m, n)
    scales = to.area(1, k, to.complex)
    to.loop("qr_r_raw", [a], [scales])
    complete = command.attributes[0] == "complete" and m > n
    q = to.area(m, m if complete else k, to.complex)
    to.loop("qr_complete" if complete else "qr_reduced", [a, scales], [q])
    to.give(q, 0)
    to.give(a, 1, part="upper")
    return to.plan()


def eigh(command: Command) -> LapackPlan:
    """With vectors, and without."""
    to = LapackSteps(command)
    a = to.take(0, hermitian=True, finite=True)
    values = to.area(1, a.columns)
    if len(command.outputs) == 1:
        to.loop("eigvalsh_lo", [a], [values])
        to.give(values, 0)
        return to.plan()
    vectors = to.area(*a[1:])
    to.loop("eigh_lo", [a], [values, vectors])
    to.settle(vectors, 1, vectors.columns)
    to.give(values, 0)
    to.give(vectors, 1)
    return to.plan()


def eig(command: Command) -> LapackPlan:
    """With vectors, and without."""
    to = LapackSteps(command)
    a = to.take(0, finite=True)
    values = to.area(1, a.columns, True)
    if len(command.outputs) == 1:
        to.loop("eigvals", [a], [values])
        to.give(values, 0)
        return to.plan()
    vectors = to.area(a.rows, a.columns, True)
    to.loop("eig", [a], [values, vectors])
    to.settle(vectors, 1, vectors.columns)
    to.give(values, 0)
    to.give(vectors, 1)
    return to.plan()


def svd(command: Command) -> LapackPlan:
    """With vectors, and without."""
    m, n = command.inputs[0].shape[-2:]
    to = LapackSteps(command)
    a, k = to.take(0, finite=True), min(m, n)
    values = to.area(1, k)
    if len(command.outputs) == 1:
        to.loop("svd", [a], [values])
        to.give(values, 0)
        return to.plan()
    full = command.attributes[0]
    u, vh = to.area(m, m if full else k, to.complex), to.area(n if full else k, n, to.complex)
    to.loop("svd_f" if full else "svd_s", [a], [u, values, vh])
    to.settle(u, 0, k, vh)
    for number, area in enumerate((u, values, vh)):
        to.give(area, number)
    return to.plan()


def determinants(command: Command) -> LapackPlan:
    """Determinants, or signs and logarithms of them: of singular matrices too."""
    to = LapackSteps(command)
    a = to.take(0)
    results = [to.area(1, 1, is_complex(y.dtype)) for y in command.outputs]
    to.loop("det" if len(results) == 1 else "slogdet", [a], results, fails=False)
    for number, area in enumerate(results):
        to.give(area, number)
    return to.plan()


def lu(command: Command) -> LapackPlan:
    m, n = command.inputs[0].shape[-2:]
    order = command.outputs[1]
    to = LapackSteps(command, wide=False)
    a = to.take(0, turned=True, finite=True)
    exchanges = to.area(1, min(m, n))
    to.routine("getrf", m, n, a, m, exchanges, fails=False)
    to.give(a, 0, turned=True)
    to.add(GiveOrder(1, INTEGER_BITS), [m, min(m, n), order.offset, to.batch_step(order, 1), order.strides[-1], 0,
                                        exchanges.place])
    return to.plan()


def solve_triangular(command: Command) -> LapackPlan:
    lower, unit = command.attributes
    to = LapackSteps(command, wide=False)
    a, x = to.take(0, finite=True), to.take(1, turned=True, finite=True)  # rows are LAPACK's columns
    n, columns = x.columns, x.rows
    to.routine("trtrs", "U" if lower else "L", "T", "U" if unit else "N", n, columns, a, n, x, n, fails=True)
    to.give(x, 0, turned=True)
    return to.plan()


PLANS: Mapping[str, Callable[[Command], LapackPlan]] = {
    "inv": inv, "solve": solve, "cholesky": cholesky, "qr": qr, "eigh": eigh, "eigvalsh": eigh, "eig": eig,
    "eigvals": eig, "svd": svd, "svdvals": svd, "det": determinants, "slogdet": determinants, "lu": lu,
    "solve_triangular": solve_triangular}
