"""A few lines that write loop nests for the tests, and what a case of the tests is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, boolean, int64
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Reduction, Stage, Subscript

Values = np.ndarray[Any, Any]


def at(coefficients: dict[int, int], stride: int, *, offset: int = 0, **rest: Any) -> Subscript:
    """A subscript; `coefficients` by axis number."""
    return Subscript(offset, tuple(sorted(coefficients.items())), stride, **rest)


@dataclass
class Open:
    """A stage that is being written."""

    axes: tuple[int, ...] = ()
    body: list[Instruction] = field(default_factory=list)
    folds: list[Reduction] = field(default_factory=list)
    running: list[Instruction] = field(default_factory=list)


class Writer:
    """Appends instructions to the last stage; numbers are those of the nest."""

    def __init__(self, name: str, axes: Sequence[int], arguments: Sequence[tuple[Any, bool]]) -> None:
        self.name, self.axes = name, tuple(axes)
        self.arguments = tuple(Argument(np.dtype(dtype), written) for dtype, written in arguments)
        self.stages: list[Open] = [Open()]
        self.next = 0

    def stage(self, *lengths: int) -> None:
        self.stages.append(Open(lengths))

    def op(self, operation: str, dtype: Any, *operands: int, **rest: Any) -> int:
        """In the body, or after a reduction in the running part of a scan."""
        stage = self.stages[-1]
        (stage.running if stage.folds else stage.body).append(
            Instruction(operation, np.dtype(dtype), operands, **rest))
        self.next += 1
        return self.next - 1

    def constant(self, literal: Any, dtype: Any) -> int:
        return self.op("constant", dtype, literal=literal)

    def load(self, argument: int, *subscripts: Subscript, offset: int = 0, fill: Any = None) -> int:
        access = Access(argument, offset, subscripts)
        return self.op("load", self.arguments[argument].dtype, access=access, literal=fill)

    def valid(self, argument: int, *subscripts: Subscript) -> int:
        return self.op("valid", boolean, access=Access(argument, 0, subscripts))

    def store(self, argument: int, value: int, *subscripts: Subscript, offset: int = 0) -> None:
        self.op("store", self.arguments[argument].dtype, value, access=Access(argument, offset, subscripts))

    def reduce(self, kind: str, value: int, dtype: Any, factor: int | None = None) -> int:
        dtype = int64 if kind in ("argmax", "argmin") else np.dtype(dtype)
        self.stages[-1].folds.append(Reduction(kind, value, dtype, factor))
        self.next += 1
        return self.next - 1

    def build(self) -> LoopNest:
        stages = tuple(Stage(s.axes, tuple(s.body), tuple(s.folds), tuple(s.running)) for s in self.stages)
        return LoopNest(self.name, self.arguments, self.axes, stages)


@dataclass
class Case:
    """A nest, what its arguments hold before, and what its written ones hold after (by argument number)."""

    nest: LoopNest
    arrays: list[Values]
    expected: dict[int, Values]
    labels: dict[int, str] = field(default_factory=dict)  # of expected arrays
    ulp: float = 0.0  # allowed beside the expected values; 0 means the same value and sign
    loose_sign: frozenset[int] = frozenset()  # where the sign of zero is open

    @property
    def name(self) -> str:
        return self.nest.name

    def copies(self) -> list[Values]:
        return [array.copy() for array in self.arrays]

    def check(self, arrays: Sequence[Values]) -> None:
        """Compare what a run has left with what is expected; inputs must be as they were."""
        for place, (array, before) in enumerate(zip(arrays, self.arrays, strict=True)):
            wanted = self.expected.get(place, before)
            wrong = ~agree(array, wanted.reshape(array.shape), self.ulp, place not in self.loose_sign)
            first = tuple(np.argwhere(wrong)[0]) if wrong.any() else ()
            assert not wrong.any(), (
                f"{self.name} {self.labels.get(place, place)}: {wrong.sum()} of {wrong.size} differ, "
                f"at {first} {array[first]!r} instead of {wanted.reshape(array.shape)[first]!r}; "
                f"inputs there {[a[first] for a in self.arrays if a.shape == array.shape][:3]}"
            )


def agree(got: Values, wanted: Values, ulp: float = 0.0, sign: bool = True) -> Values:
    """Element by element: same value (and sign of zero), or both NaN, or within `ulp` units in the last place."""
    assert got.dtype == wanted.dtype, (got.dtype, wanted.dtype)
    if got.dtype.kind in "bui":
        return np.asarray(got == wanted)
    with np.errstate(all="ignore"):  # of signalling NaN
        wide = got.astype(np.float64), wanted.astype(np.float64)
    same = (wide[0] == wide[1]) & ((np.signbit(wide[0]) == np.signbit(wide[1])) | (not sign))
    same |= np.isnan(wide[0]) & np.isnan(wide[1])
    if ulp:
        with np.errstate(all="ignore"):
            same |= np.abs(wide[0] - wide[1]) <= ulp * np.abs(np.spacing(wanted.astype(wanted.dtype))).astype(float)
    return np.asarray(same)


def as_bytes(array: Values) -> Values:
    return array.reshape(-1).view(np.uint8)


def elementwise(name: str, operation: str, dtype: DType, arrays: Sequence[Values], result: DType) -> LoopNest:
    """One operation on flat arrays of equal length."""
    size = arrays[0].size
    n = Writer(name, (size,), [*((a.dtype, False) for a in arrays), (result, True)])
    loaded = [n.load(place, at({0: 1}, 1)) for place in range(len(arrays))]
    n.store(len(arrays), n.op(operation, dtype, *loaded), at({0: 1}, 1))
    return n.build()
