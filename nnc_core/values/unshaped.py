"""Symbols of unknown shape: what is called with them is kept, and called again for each shape that is assigned.

A `RecordedCall` is a public function, or an operator, with its arguments; its results are symbols of unknown shape too.
Nothing here knows how shapes come about: `resolving` holds whoever knows them while calls run again, and otherwise the
trace of a symbol is asked what is assigned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context, ContextVar, copy_context
from itertools import count
from math import inf
from typing import Any, NamedTuple, Protocol

from nnc_core.base.cache import LRU
from nnc_core.base.dtype import DType
from nnc_core.base.errors import NotSupportedError, UnknownShapeError
from nnc_core.base.line import HOUSE
from nnc_core.stacks import Stack
from nnc_core.symbol import Line, is_users, show_line, user_line
from nnc_core.type import Attributes, Dims, TensorSpec
from nnc_core.values.value import Adjoint, Value

SHAPES_KEPT = 16
"""For how many combinations of shapes what was inferred is kept."""
DECLARE = 'give the symbol a shape, whose sizes may be names: nnc.var_arr("x", ("n", 3))'

_HERE = f"{HOUSE}values/"
_serial = count(1)
_QUESTIONS = frozenset({"spec", "shape", "ndim", "dtype", "size", "nbytes", "static_shape", "shape_of", "__len__",
                        "__iter__", "refresh"})  # fmt: skip


class Resolver(Protocol):
    """Knows shapes: gives the symbol of known shape that stands for one of unknown shape."""

    def resolve(self, v: Unshaped) -> Value:
        """The symbol of known shape."""


resolving: ContextVar[Resolver | None] = ContextVar("nnc_resolving", default=None)
"""Set while recorded calls run again."""


class Made(NamedTuple):
    """The results of a call for one combination of shapes."""

    inputs: list[Value]
    results: list[Value]


class RecordedCall:
    """A recorded call: what to run on the inputs, and what was made of it for the shapes that they had.

    `run` takes values in the places of the inputs and gives the values of the results.  It runs in the context of the
    recording: its device, its modes, its settings.
    """

    __slots__ = ("context", "found", "hidden", "inputs", "line", "name", "now", "opaque", "results",
                 "run", "serial", "shown")

    def __init__(self, name: str, run: Callable[[Sequence[Value]], list[Value]], inputs: tuple[Value, ...],
                 shown: Mapping[str, str], results: int = 1) -> None:
        self.name, self.run, self.inputs, self.shown, self.results = name, run, inputs, shown, results
        self.line: Line | None = user_line()
        self.opaque = False
        """Whether it takes functions, of which nobody knows what they read before they run."""
        self.serial = next(_serial)
        self.context: Context = copy_context()
        self.hidden: list[Unshaped] = []
        """What the call reads besides its inputs, as a function that closes over symbols does."""
        self.found: LRU[tuple[Value, ...], list[Value]] = LRU(SHAPES_KEPT)
        self.now: Made | None = None
        """What stands for the results with what is assigned."""

    @property
    def attributes(self) -> Attributes:
        return ()

    @property
    def op(self) -> Any:
        raise UnknownShapeError(f"{self.name} waits for the shapes of its symbols", line=show_line(self.line),
                                hint=DECLARE)


class SizeRead:
    """Python has been given a shape: what it records until another one is assigned may hold numbers of it."""

    __slots__ = ("line", "since", "spec", "until")

    def __init__(self, spec: TensorSpec) -> None:
        self.spec, self.line = spec, user_line()
        self.since, self.until = next(_serial), inf


class Declaration:
    """A placeholder as it was declared, without a shape, and those that stand for it with shapes that it has had."""

    __slots__ = ("dtype", "name", "now", "of_spec", "reads")

    def __init__(self, name: str, dtype: DType) -> None:
        self.name, self.dtype = name, dtype
        self.now: Value | None = None
        """The placeholder of the shape that is assigned."""
        self.of_spec: LRU[TensorSpec, Value] = LRU(SHAPES_KEPT)
        self.reads: list[SizeRead] = []

    def read(self) -> None:
        """Note that Python is given the shape that is assigned."""
        assert self.now is not None
        if not self.reads or self.reads[-1].until < inf:
            self.reads.append(SizeRead(self.now.spec))

    def becomes(self, now: Value | None) -> None:
        """Let another placeholder, or none, stand for it."""
        self.now = now
        if self.reads and self.reads[-1].until == inf:
            last = self.reads[-1]
            last.until = next(_serial)
            if last.until == last.since + 1:  # nothing was recorded meanwhile
                self.reads.pop()

    def read_for(self, serial: int) -> SizeRead | None:
        """The reading whose numbers a call may hold."""
        return next((read for read in reversed(self.reads) if read.since < serial < read.until), None)


class Unshaped(Value):
    """A symbol of unknown shape.  Its class keeps it from everything that trusts values to have a spec.

    Its spec is an UnknownShapeError, by which the functions that ask for it find themselves recorded; but to recorded
    calls that run again it is known, and to the user once it is assigned.
    """

    __slots__ = ("_behind", "declared", "index", "pinned")

    def __init__(self, stack: Stack, trace: Any, call: RecordedCall | None = None, index: int = 0,
                 declared: Declaration | None = None) -> None:
        self.stack, self.trace, self.tracked, self.array, self.adjoint = stack, trace, False, None, None
        self.step: Any = call
        self.declared, self.index = declared, index
        self.pinned: Value | None = None
        """What stands for it while it is frozen."""
        self._behind: tuple[Unshaped, ...] = () if call is None else _leaves(call.inputs)

    def kept_adjoint(self) -> Adjoint:
        raise NotSupportedError(f"a gradient or a hook at a symbol {text_of(self)}: sweeps go over what stands for it",
                                line=show_line(user_line()), hint=f"nnc.grad gives gradients; {DECLARE}")

    @property
    def leaves(self) -> tuple[Unshaped, ...]:
        """The placeholders behind it."""
        return self._behind or (self,)

    @property
    def spec(self) -> TensorSpec:
        resolver = resolving.get()
        if resolver is not None:
            return resolver.resolve(self).spec
        if _user_asks():
            known: TensorSpec = self.trace.spec_now(self)
            return known
        raise unknown_shape(self)

    @property
    def _spec(self) -> TensorSpec:  # type: ignore[override]
        return self.spec

    @property
    def shape(self) -> Dims:
        return self.spec.shape

    @property
    def dtype(self) -> DType:
        return self.spec.dtype if self.declared is None else self.declared.dtype

    def __repr__(self) -> str:
        return f"<symbol {text_of(self)}>"


def _leaves(inputs: Sequence[Value]) -> tuple[Unshaped, ...]:
    return tuple(dict.fromkeys(leaf for v in inputs if v.__class__ is Unshaped for leaf in v.leaves))


def _user_asks() -> bool:
    """True if the spec is asked for by an attribute of a tensor that the user's code reads."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in _QUESTIONS and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and is_users(frame.f_code)


# ---- in words
def named(leaves: Sequence[Unshaped]) -> str:
    """Placeholders by name."""
    names = [repr(leaf.declared.name) for leaf in leaves if leaf.declared is not None]
    return ("the symbol " if len(names) == 1 else "the symbols ") + ", ".join(names)


def text_of(v: Value) -> str:
    """The spec of a value in words, also where it is not known."""
    if v.__class__ is not Unshaped:
        return str(v.spec)
    return "of unknown shape" if v.declared is None else f"{v.declared.name!r} {v.declared.dtype} of unknown shape"


def unknown_shape(v: Unshaped) -> UnknownShapeError:
    """The error for asking for a shape that is not known."""
    waiting = any(x.declared is not None and x.declared.now is None for x in v.leaves)
    what = f"the symbol {v.declared.name!r}" if v.declared is not None else f"the result of {v.step.name}"
    if waiting:
        of = "" if v.declared is not None else f" to {named(v.leaves)}"
        message, hint = f"is not known before an array is assigned{of}", f"{DECLARE}; or nnc.assign(x, array) first"
    else:
        to = "it" if v.declared is not None else named(v.leaves)
        message, hint = f"follows what is assigned to {to}, and is not known here", DECLARE
    error = UnknownShapeError(f"the shape of {what} {message}", line=show_line(user_line()), hint=hint)
    error.behind = v.leaves
    return error
