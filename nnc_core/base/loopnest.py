"""Loop nests: the form in which core hands computing to a device that can compile it.

A nest has parallel *outer axes* and a sequence of *stages* that run at each of their points.  A stage has *inner
axes* of its own, a body of scalar instructions in SSA form, run at each inner point in row-major order, and
*reductions* that fold values of the body over the inner points.  Later stages read the results of earlier reductions,
which gives epilogues and row kernels (softmax: a maximum, a sum, a store) in one nest.

A *scan* is a stage with a `running` part: more instructions, run at each inner point after the reductions have folded
it.  To them a reduction is what has been folded so far, this point included (a cumulative sum stores it).

Values are numbered through the nest: each stage numbers first the instructions of its body, then its reductions, then
its running instructions.  Instructions of one stage are visible in that stage only, those of its body also to the
running ones; reductions (and the instructions of stages without inner axes) are visible in all later stages.  Axes are
numbered outer first, then the inner ones of the stage at hand.

The order of sums.  A device may fold inner points in one of two ways, so that its results do not depend
on the width of its vectors, on tiles or on threads: in row-major order, in one accumulator; or, for sums, products,
dots, maxima and minima of floats in a stage without running instructions, as PARTS partial results, of which number p
folds the points whose place in row-major order is p modulo PARTS, in order, and which are then folded as a tree: part p
with part p + 8 for p < 8, those with p + 4 for p < 4, and so on.  A dot's partial results are added.  Nothing but a dot
and an `fma` multiplies and adds with one rounding.  Devices that run work items in groups have more partial results,
and scan in blocks (`codegen.clike_groups`): as many as the count of inner points says, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import DType


class Subscript(NamedTuple):
    """One dimension of an access: index = (offset + sum(coefficient * axis)) / divisor [+ a gathered value].

    A checked subscript makes the access *invalid* where the division leaves a remainder or the index is outside
    [0, extent).  `gather` is the number of an integer value added to the index, before the check.  An unchecked
    division rounds down.
    """

    offset: int
    coefficients: tuple[tuple[int, int], ...]  # (axis, coefficient), axes ascending, no zero coefficients
    stride: int  # elements of storage per index
    extent: int = 0
    checked: bool = False
    divisor: int = 1
    gather: int | None = None


class Access(NamedTuple):
    """Element `offset + sum(stride * index)` of an argument."""

    argument: int
    offset: int
    subscripts: tuple[Subscript, ...]

    @property
    def checked(self) -> bool:
        return any(s.checked for s in self.subscripts)


class Instruction(NamedTuple):
    """One scalar instruction.

    `constant` has `literal`; `axis` has `axis` (its int64 position); `load`, `store` and `valid` have `access`.
    An invalid load gives `literal` and touches no memory; an invalid store does nothing; `valid` says which it is.
    A `note`, of a boolean and an int64, has `access` and `literal`: see NOTE_WORDS.
    All others are named in OPERATIONS and act on `operands`, whose dtypes are equal but for `select` (its first is
    boolean), `cast` and `bitcast`; comparisons give booleans.
    """

    operation: str
    dtype: DType
    operands: tuple[int, ...] = ()
    literal: float | int | bool | None = None
    axis: int | None = None
    access: Access | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instruction) and self._structure() == other._structure()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._structure())

    def _structure(self) -> tuple[object, ...]:
        """The fields with the literal as text: 0.0 and -0.0 are equal as numbers, and no NaN equals another."""
        return (self.operation, self.dtype, self.operands, repr(self.literal), self.axis, self.access)


OPERATIONS: dict[str, int] = {
    # arithmetic; floor_divide and remainder round towards minus infinity, fmod has the sign of the dividend, an integer
    # divided by zero gives 0; gcd is of integers, and never negative but for the smallest one
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "floor_divide": 2, "remainder": 2, "fmod": 2, "fma": 3,
    "gcd": 2, "negative": 1, "abs": 1, "sign": 1, "minimum": 2, "maximum": 2,  # minimum and maximum pass NaN on
    "floor": 1, "ceil": 1, "trunc": 1, "round": 1,  # round: halves to even
    # comparison, logic and bits; on booleans the bitwise operations are the logical ones
    "equal": 2, "not_equal": 2, "less": 2, "less_equal": 2, "greater": 2, "greater_equal": 2,
    "bitwise_and": 2, "bitwise_or": 2, "bitwise_xor": 2, "bitwise_invert": 1,
    "shift_left": 2, "shift_right": 2, "multiply_high": 2,  # upper half of the product of two uint32
    "select": 3, "cast": 1, "bitcast": 1,
    "scale": 2,  # x * 2**n for a whole n, which expansions ask for where the target has it: see `expand`
    # functions; atan2 takes y before x
    "sqrt": 1, "cbrt": 1, "hypot": 2, "power": 2, "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1,
    "log1p": 1, "sin": 1, "cos": 1, "tan": 1, "asin": 1, "acos": 1, "atan": 1, "atan2": 2, "sinh": 1, "cosh": 1,
    "tanh": 1, "asinh": 1, "acosh": 1, "atanh": 1, "sigmoid": 1, "logit": 1, "erf": 1, "erfc": 1, "erfcx": 1,
    "erfinv": 1, "ndtr": 1, "log_ndtr": 1, "dawsn": 1, "lgamma": 1, "digamma": 1, "i0": 1, "i1": 1, "i0e": 1, "i1e": 1,
}  # fmt: skip
COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})


NOTE_WORDS = 8
"""Words of 64 bits of an argument that notes are written to.  A `note` says that where its first operand is true, a
check has failed: the one with the number `literal`, on the value of its second operand.  All that the nest stores is
void then.  Of the notes of one run one stays, that with the lowest number and of these the first in the order of
points, outer ones first.  The first word is 0 unless there is one; then the second has the number, the third the place
of the point, the fourth the value.  The others are for whatever code has to remember.  A run begins with zeros."""


class Reduction(NamedTuple):
    """Fold `value` over the inner points of its stage.

    Kinds: sum, product, maximum, minimum (NaN wins), all, any, and argmax, argmin (first of equals, first NaN wins),
    which give the int64 position in the flattened inner axes; logsumexp, of float32 or float64: the logarithm of
    the sum of the exponentials; recurrence: what was folded so far times `factor`, another value of the body, plus
    the value; dot: the value times `factor`, added to what was folded so far with one rounding (integers wrap).
    Over no points: 0, 1, -inf or the smallest value, +inf or the largest, True, False, 0, 0, -inf, 0, 0.
    """

    kind: str
    value: int
    dtype: DType
    factor: int | None = None

    @property
    def operands(self) -> tuple[int, ...]:
        """The values that it reads."""
        return (self.value,) if self.factor is None else (self.value, self.factor)


REDUCTIONS = (
    "sum", "product", "maximum", "minimum", "all", "any", "argmax", "argmin", "logsumexp", "recurrence", "dot",
)  # fmt: skip
FACTORED = ("recurrence", "dot")
"""Reductions that have a factor."""
PARTS = 16
"""Partial results of a sum that is not folded in order."""
SPLIT = ("sum", "product", "dot", "maximum", "minimum")
"""Reductions whose result depends on the order (of maxima and minima the sign of a zero), and which may be split into
partial results."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Inner axes, the body run at each of their points, what is folded over them, and what follows at each point."""

    axes: tuple[int, ...]
    body: tuple[Instruction, ...]
    reductions: tuple[Reduction, ...] = ()
    running: tuple[Instruction, ...] = ()

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All that is run at an inner point; their numbers have the reductions' between them."""
        return self.body + self.running

    @property
    def values(self) -> int:
        """The count of values that it numbers."""
        return len(self.body) + len(self.reductions) + len(self.running)


class Argument(NamedTuple):
    """A buffer that the nest reads or writes; where in it is said by each access."""

    dtype: DType
    written: bool


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Hashable by structure, so that equal kernels are built once."""

    name: str
    arguments: tuple[Argument, ...]
    axes: tuple[int, ...]
    stages: tuple[Stage, ...]
    _hash: int | None = field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        """Counted once: code is looked up by it several times, and every instruction has a part in it."""
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.name, self.arguments, self.axes, self.stages)))
        assert self._hash is not None
        return self._hash

    @property
    def notes(self) -> bool:
        """True if its last argument is for notes."""
        return any(i.operation == "note" for stage in self.stages for i in stage.instructions)

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of all values, by number."""
        found: list[DType] = []
        for stage in self.stages:
            found += [i.dtype for i in stage.body] + [r.dtype for r in stage.reductions]
            found += [i.dtype for i in stage.running]
        return found

    @property
    def points(self) -> int:
        """Number of points of the outer axes."""
        return prod(self.axes)
