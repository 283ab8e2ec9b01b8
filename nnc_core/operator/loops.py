"""Writing loop nests: indices as affine expressions, scalars with Python operators.

    nest = NestBuilder(command)
    i, j = nest.outer(2, 3)
    with nest.stage(4) as (k,):
        total = nest.sum(nest.load(0, i, k) * nest.load(1, k, j))
    nest.store(0, total, i, j)
    return nest.build()
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, Union

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import OPERATIONS, Access, Argument, Instruction, LoopNest, Reduction, Stage, Subscript

IndexLike: TypeAlias = Union["Index", int]


class Index:
    """offset + sum(coefficient * axis), divided by `divisor`, plus a gathered integer; checked against the extent of
    its dimension if it may leave it."""

    __slots__ = ("coefficients", "divisor", "gather", "inside", "offset")

    def __init__(self, offset: int = 0, coefficients: dict[int, int] | None = None, divisor: int = 1,
                 gather: Scalar | None = None, inside: bool = True) -> None:
        self.offset, self.coefficients, self.divisor = offset, coefficients or {}, divisor
        self.gather, self.inside = gather, inside

    def __add__(self, other: IndexLike) -> Index:
        if isinstance(other, int):
            return Index(self.offset + other, self.coefficients, 1, self.gather, self.inside)
        total = dict(self.coefficients)
        for axis, coefficient in other.coefficients.items():
            total[axis] = total.get(axis, 0) + coefficient
        return Index(self.offset + other.offset, total, 1, self.gather or other.gather, self.inside)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        return Index(self.offset * factor, {a: c * factor for a, c in self.coefficients.items()}, 1, None, self.inside)

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: IndexLike) -> Index:
        return self + (-other)

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def over(self, divisor: int) -> Index:
        """Valid only where the division leaves no remainder."""
        return Index(self.offset, self.coefficients, divisor, None, self.inside and divisor == 1)

    def guarded(self) -> Index:
        """May lie outside the dimension: loads there give the fill value."""
        return Index(self.offset, self.coefficients, self.divisor, self.gather, False)

    def subscript(self, stride: int, extent: int) -> Subscript:
        terms = tuple(sorted((a, c) for a, c in self.coefficients.items() if c))
        gather = None if self.gather is None else self.gather.id
        return Subscript(self.offset, terms, stride, extent, not self.inside, self.divisor, gather)


class Scalar:
    """A value of the nest's body."""

    __slots__ = ("dtype", "id", "nest")

    def __init__(self, nest: NestBuilder, id: int, dtype: DType) -> None:
        self.nest, self.id, self.dtype = nest, id, dtype

    def apply(self, operation: str, *others: Any, dtype: DType | None = None) -> Scalar:
        """Any operation of the loop nest; Python numbers take this value's dtype."""
        assert OPERATIONS[operation] == len(others) + 1, operation
        operands = [self, *[self.constant(o) if not isinstance(o, Scalar) else o for o in others]]
        return self.nest.instruction(operation, dtype or self.dtype, *operands)

    def constant(self, value: float) -> Scalar:
        return self.nest.constant(value, self.dtype)

    def __add__(self, other: Any) -> Scalar:
        return self.apply("add", other)

    def __sub__(self, other: Any) -> Scalar:
        return self.apply("subtract", other)

    def __rsub__(self, other: float) -> Scalar:
        return self.constant(other) - self

    def __mul__(self, other: Any) -> Scalar:
        return self.apply("multiply", other)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Scalar:
        return self.apply("divide", other)

    def __rtruediv__(self, other: float) -> Scalar:
        return self.constant(other) / self

    def __neg__(self) -> Scalar:
        return self.apply("negative")

    def __and__(self, other: Any) -> Scalar:
        return self.apply("bitwise_and", other)

    def __or__(self, other: Any) -> Scalar:
        return self.apply("bitwise_or", other)

    def __xor__(self, other: Any) -> Scalar:
        return self.apply("bitwise_xor", other)

    def __invert__(self) -> Scalar:
        return self.apply("bitwise_invert")

    def __lshift__(self, other: Any) -> Scalar:
        return self.apply("shift_left", other)

    def __rshift__(self, other: Any) -> Scalar:
        return self.apply("shift_right", other)

    def compare(self, relation: str, other: Any) -> Scalar:
        """equal, not_equal, less, less_equal, greater, greater_equal."""
        return self.apply(relation, other, dtype=dt.boolean)

    def select(self, a: Scalar, b: Scalar) -> Scalar:
        """a where this boolean is true, b elsewhere."""
        return self.nest.instruction("select", a.dtype, self, a, b)

    def cast(self, dtype: DType) -> Scalar:
        return self if dtype == self.dtype else self.nest.instruction("cast", dtype, self)

    def bitcast(self, dtype: DType) -> Scalar:
        return self.nest.instruction("bitcast", dtype, self)


class NestBuilder:
    """Builds one nest.  Arguments are the command's inputs, then its outputs; accesses are by logical index, layouts
    give the addresses."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.layouts: list[Layout] = [*command.inputs, *command.outputs]
        self.axes: tuple[int, ...] = ()
        self.stages: list[Stage] = []
        self.values = 0
        self.body: list[Instruction] = []
        self.inner: tuple[int, ...] = ()
        self.folds: list[Reduction] = []

    def outer(self, *lengths: int) -> list[Index]:
        """The parallel axes; called once, first."""
        self.axes = lengths
        return [Index(0, {axis: 1}) for axis in range(len(lengths))]

    @contextmanager
    def stage(self, *lengths: int) -> Iterator[list[Index]]:
        """Inner axes; what is folded in the block is known after it."""
        self._end_stage()
        self.inner = lengths
        yield [Index(0, {len(self.axes) + k: 1}) for k in range(len(lengths))]
        self._end_stage()

    def _end_stage(self) -> None:
        if self.body or self.folds:
            self.stages.append(Stage(self.inner, tuple(self.body), tuple(self.folds)))
        self.body, self.folds, self.inner = [], [], ()

    def instruction(self, operation: str, dtype: DType, *operands: Scalar, **fields: Any) -> Scalar:
        assert not self.folds, "instructions of a stage come before its folds"
        self.body.append(Instruction(operation, dtype, tuple(o.id for o in operands), **fields))
        self.values += 1
        return Scalar(self, self.values - 1, dtype)

    def constant(self, value: float, dtype: DType) -> Scalar:
        return self.instruction("constant", dtype, literal=value)

    def position(self, index: Index) -> Scalar:
        """An axis' position as an int64 scalar, with the index' offset and coefficients."""
        total: Scalar | None = None
        for axis, coefficient in sorted(index.coefficients.items()):
            term = self.instruction("axis", dt.int64, axis=axis)
            term = term if coefficient == 1 else term * coefficient
            total = term if total is None else total + term
        if total is None:
            return self.constant(index.offset, dt.int64)
        return total + index.offset if index.offset else total

    def load(self, argument: int, *indices: IndexLike, fill: float = 0) -> Scalar:
        """An element of an input; `fill` where a guarded index is outside."""
        access = self._access(argument, indices)
        return self.instruction("load", self.layouts[argument].dtype, access=access, literal=fill)

    def valid(self, argument: int, *indices: IndexLike) -> Scalar:
        """Whether a load there would touch memory."""
        return self.instruction("valid", dt.boolean, access=self._access(argument, indices))

    def store(self, output: int, value: Scalar, *indices: IndexLike) -> None:
        """Write an element of an output, cast to its dtype."""
        argument = len(self.command.inputs) + output
        dtype = self.layouts[argument].dtype
        self.instruction("store", dtype, value.cast(dtype), access=self._access(argument, indices))

    def fold(self, kind: str, value: Scalar) -> Scalar:
        """Fold over the stage's inner axes; see loopnest.Reduction."""
        dtype = dt.int64 if kind in ("argmax", "argmin") else value.dtype
        self.folds.append(Reduction(kind, value.id, dtype))
        self.values += 1
        return Scalar(self, self.values - 1, dtype)

    def _access(self, argument: int, indices: tuple[IndexLike, ...]) -> Access:
        layout = self.layouts[argument]
        assert len(indices) == len(layout.shape), (self.command.name, layout.shape, len(indices))
        size, constant = layout.dtype.itemsize, layout.offset // layout.dtype.itemsize
        subscripts = []
        for index, stride, extent in zip(indices, layout.strides, layout.shape, strict=True):
            if isinstance(index, int):
                constant += index * (stride // size)
            elif index.inside and not index.gather and not index.coefficients:
                constant += index.offset * (stride // size)
            else:
                subscripts.append(index.subscript(stride // size, extent))
        return Access(argument, constant, tuple(subscripts))

    def build(self) -> LoopNest:
        self._end_stage()
        written = [False] * len(self.command.inputs) + [True] * len(self.command.outputs)
        arguments = tuple(Argument(x.dtype, w) for x, w in zip(self.layouts, written, strict=True))
        return LoopNest(self.command.name, arguments, self.axes, tuple(self.stages))


def coalesce(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Merge neighbouring axes that every operand steps through as one; drop axes of length one."""
    kept = [i for i, n in enumerate(shape) if n != 1]
    lengths, steps = [shape[i] for i in kept], [[s[i] for i in kept] for s in strides]
    axis = len(lengths) - 1
    while axis > 0:
        if all(s[axis - 1] == s[axis] * lengths[axis] for s in steps):
            lengths[axis - 1 : axis + 1] = [lengths[axis - 1] * lengths[axis]]
            for s in steps:
                s[axis - 1 : axis + 1] = [s[axis]]
        axis -= 1
    return tuple(lengths), [tuple(s) for s in steps]


def broadcast_layout(layout: Layout, shape: tuple[int, ...]) -> Layout:
    """The layout seen with a larger shape: repeated axes have stride zero."""
    lead = len(shape) - len(layout.shape)
    own = zip(layout.shape, shape[lead:], layout.strides, strict=True)
    strides = [0] * lead + [0 if n != m else s for n, m, s in own]
    return Layout(shape, layout.dtype, layout.offset, tuple(strides))


def with_common_axes(command: Command) -> Command:
    """The same elementwise command over as few axes as its layouts allow."""
    shape = command.output.shape
    seen = [broadcast_layout(x, shape) for x in (*command.inputs, command.output)]
    lengths, strides = coalesce(shape, [x.strides for x in seen])
    layouts = [Layout(lengths, x.dtype, x.offset, s) for x, s in zip(seen, strides, strict=True)]
    return Command(command.name, command.attributes, tuple(layouts[:-1]), (layouts[-1],))


def elementwise_nest(scalar: Any, command: Command) -> LoopNest:
    """The nest of an elementwise operator from its scalar expression."""
    flat = with_common_axes(command)
    nest = NestBuilder(flat)
    at = nest.outer(*flat.output.shape)
    values = [nest.load(k, *at) for k in range(len(flat.inputs))]
    nest.store(0, scalar(*values, *command.attributes), *at)
    return nest.build()
