"""Writing loop nests: indices as affine expressions, scalars with Python operators.

    nest = open_nest(command)
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
from nnc_core.base.dtype import DType, element_of, is_complex, is_storage, real_of
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import Access, Argument, Instruction, LoopNest, Reduction, Stage, Subscript
from nnc_core.codegen.pairs import Pair
from nnc_core.codegen.scalar import Scalar
from nnc_core.codegen.storage import StoredScalar, byte_of

IndexLike: TypeAlias = Union["Index", int]


class InlinedCommand(Command):
    """A command that is written into a nest together with others, by a builder that says what its operands are."""

    builder: NestBuilder | None = None


def open_nest(command: Command) -> NestBuilder:
    """The builder that a rule writes on: a new one, or that of the nest which the command is written into."""
    inlined = command.builder if isinstance(command, InlinedCommand) else None
    return NestBuilder(command) if inlined is None else inlined


class NotedCommand(Command):
    """A command whose nest is to note what is wrong in its operands: it takes one more argument, behind the outputs,
    in which it does."""


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
            return Index(self.offset + other, self._whole().coefficients, 1, self.gather, self.inside)
        total = dict(self._whole().coefficients)
        for axis, coefficient in other._whole().coefficients.items():
            total[axis] = total.get(axis, 0) + coefficient
        gather = self.gather + other.gather if self.gather and other.gather else self.gather or other.gather
        return Index(self.offset + other.offset, total, 1, gather, self.inside and other.inside)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Index:
        gather = self.gather * factor if self.gather and factor != 1 else self.gather
        total = {a: c * factor for a, c in self._whole().coefficients.items()}
        return Index(self.offset * factor, total, 1, gather, self.inside)

    def _whole(self) -> Index:
        """The index itself; NotSupportedError if it is divided, since no access counts on from there."""
        if self.divisor != 1:
            raise NotSupportedError("loop nests do not count on from an index that is divided")
        return self

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        return self * -1

    def __sub__(self, other: IndexLike) -> Index:
        return self + (-other)

    def __rsub__(self, other: int) -> Index:
        return -self + other

    def over(self, divisor: int) -> Index:
        """Valid only where the division leaves no remainder."""
        if divisor != 1 and self.gather:
            raise NotSupportedError("loop nests do not divide an index that is gathered")
        return Index(self.offset, self.coefficients, self.divisor * divisor, self.gather, self.inside and divisor == 1)

    def guarded(self) -> Index:
        """May lie outside the dimension: loads there give the fill value."""
        return Index(self.offset, self.coefficients, self.divisor, self.gather, False)

    @property
    def only_axis(self) -> int | None:
        """The axis whose position it is, guarded or not; None if it is anything else."""
        terms = [(a, c) for a, c in self.coefficients.items() if c]
        plain = self.offset == 0 and self.divisor == 1 and self.gather is None
        return terms[0][0] if plain and len(terms) == 1 and terms[0][1] == 1 else None

    def subscript(self, stride: int, extent: int) -> Subscript:
        terms = tuple(sorted((a, c) for a, c in self.coefficients.items() if c))
        gather = None if self.gather is None else self.gather.number
        return Subscript(self.offset, terms, stride, extent, not self.inside, self.divisor, gather)


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
        self.running: list[Instruction] = []
        self.looked_at: set[tuple[int, int]] = set()
        """Numbers of checks and of values that may be noted."""

    def outer(self, *lengths: int) -> list[Index]:
        """The parallel axes; called once, first."""
        self.axes = lengths
        return [Index(0, {axis: 1}) for axis in range(len(lengths))]

    @contextmanager
    def stage(self, *lengths: int) -> Iterator[list[Index]]:
        """Inner axes; what is folded in the block is known after it, and in the block the running result."""
        self._end_stage()
        self.inner = lengths
        yield [Index(0, {len(self.axes) + k: 1}) for k in range(len(lengths))]
        self._end_stage()

    def _end_stage(self) -> None:
        if self.body or self.folds:
            self.stages.append(Stage(self.inner, tuple(self.body), tuple(self.folds), tuple(self.running)))
        self.body, self.folds, self.running, self.inner = [], [], [], ()

    def append(self, instruction: Instruction) -> int:
        """Add an instruction to the stage, behind its folds to what is run at each point; returns its number."""
        (self.running if self.folds else self.body).append(instruction)
        return self._numbered()

    def _numbered(self) -> int:
        self.values += 1
        return self.values - 1

    def _scalar(self, operation: str, dtype: DType, **fields: Any) -> Scalar:
        return Scalar(self, self.append(Instruction(operation, dtype, **fields)), dtype)

    def constant(self, value: Any, dtype: DType) -> Any:
        """A `Scalar`, a `Pair` for a complex dtype, a `StoredScalar` for a storage one; so are loads and folds."""
        if is_storage(dtype):
            return StoredScalar(self.constant(byte_of(value, dtype), dt.uint8), dtype)
        if is_complex(dtype):
            part = real_of(dtype)
            return Pair(self.constant(complex(value).real, part), self.constant(complex(value).imag, part))
        return self._scalar("constant", dtype, literal=value)

    def position(self, index: Index) -> Scalar:
        """An axis' position as an int64 scalar, with the index' offset, coefficients and gathered integer."""
        total: Scalar | None = None if index.gather is None else index.gather.cast(dt.int64)
        for axis, coefficient in sorted(index._whole().coefficients.items()):
            term = self._scalar("axis", dt.int64, axis=axis)
            term = term if coefficient == 1 else term * coefficient
            total = term if total is None else total + term
        if total is None:
            return self._scalar("constant", dt.int64, literal=index.offset)
        return total + index.offset if index.offset else total

    def load(self, argument: int, *indices: IndexLike, fill: Any = 0) -> Any:
        """An element of an input; `fill` where a guarded index is outside."""
        dtype = self.layouts[argument].dtype
        if is_complex(dtype):
            fills = complex(fill).real, complex(fill).imag
            return Pair(*[self._load(argument, indices, real_of(dtype), fills[k], k) for k in (0, 1)])
        if is_storage(dtype):
            return StoredScalar(self._load(argument, indices, dt.uint8, byte_of(fill, dtype)), dtype)
        return self._load(argument, indices, dtype, fill)

    def _load(self, argument: int, indices: tuple[IndexLike, ...], dtype: DType, fill: float, part: int = 0) -> Scalar:
        return self._scalar("load", dtype, access=self._access(argument, indices, part), literal=fill)

    def valid(self, argument: int, *indices: IndexLike) -> Scalar:
        """Tell whether a load there would touch memory."""
        return self._scalar("valid", dt.boolean, access=self._access(argument, indices))

    def store(self, output: int, value: Any, *indices: IndexLike) -> None:
        """Write an element of an output, cast to its dtype."""
        argument = len(self.command.inputs) + output
        dtype = self.layouts[argument].dtype
        held = value.cast(dtype)
        held = held.bits if isinstance(held, StoredScalar) else held
        for part, scalar in enumerate((held.re, held.im) if isinstance(held, Pair) else (held,)):
            access = self._access(argument, indices, part)
            self.append(Instruction("store", scalar.dtype, (scalar.number,), access=access))

    @property
    def noting(self) -> bool:
        """True if what is wrong in the operands is to be noted."""
        return isinstance(self.command, NotedCommand)

    def note(self, wrong: Scalar, given: Scalar, check: int = 0) -> None:
        """Note an integer for which a check fails, unless it was looked at before; see loopnest.NOTE_WORDS."""
        if (check, given.number) not in self.looked_at:
            self.looked_at.add((check, given.number))
            access = Access(len(self.layouts), 0, ())
            operands = (wrong.number, given.cast(dt.int64).number)
            self.append(Instruction("note", dt.int64, operands, check, access=access))

    def fold(self, kind: str, value: Any, factor: Any = None) -> Any:
        """Fold over the stage's inner axes; see loopnest.Reduction.  Complex numbers and their products are summed."""
        assert not self.running, "what reads a running result comes after all folds of a stage"
        if isinstance(value, Pair):
            if kind == "dot":
                return self.fold("sum", value * factor)
            if kind != "sum":
                raise NotSupportedError(f"loop nests have no {kind} of {value.dtype}")
            return Pair(self.fold(kind, value.re), self.fold(kind, value.im))
        dtype = dt.int64 if kind in ("argmax", "argmin") else value.dtype
        self.folds.append(Reduction(kind, value.number, dtype, None if factor is None else factor.number))
        return Scalar(self, self._numbered(), dtype)

    def _access(self, argument: int, indices: tuple[IndexLike, ...], part: int = 0) -> Access:
        """The address of an element, or of one part of a complex one: addresses count real numbers."""
        layout = self.layouts[argument]
        assert len(indices) == len(layout.shape), (self.command.name, layout.shape, len(indices))
        size = element_of(layout.dtype).itemsize
        constant = layout.offset // size + part
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
        arguments = tuple(Argument(element_of(x.dtype), w) for x, w in zip(self.layouts, written, strict=True))
        if self.looked_at:
            if 0 in self.axes:
                raise NotSupportedError("a loop nest without points looks at no index")
            arguments += (Argument(dt.int64, True),)
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
    nest = open_nest(flat)
    at = nest.outer(*flat.output.shape)
    values = [nest.load(k, *at) for k in range(len(flat.inputs))]
    nest.store(0, scalar(*values, *command.attributes), *at)
    return nest.build()
