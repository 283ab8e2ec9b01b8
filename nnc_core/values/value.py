"""Values: what tensors point at.  A value never changes; tensors may be pointed at another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from nnc_core.base.dtype import DType
from nnc_core.device import Array
from nnc_core.symbol import Line, show_line
from nnc_core.type import Attributes, Dims, Op, Specified, TensorSpec, TupleSpec

if TYPE_CHECKING:
    from nnc_core.stacks import Stack

Hook: TypeAlias = Callable[..., Any]


class Uncomputed(tuple[()]):
    """The array of a value that is there for its derivative alone; `dispatch` may ask it for a dtype."""

    __slots__ = ()
    dtype = None


UNCOMPUTED = Uncomputed()


class Step:
    """The origin of a value: an entry of the dynamic graph, never interned, since identity matters there."""

    __slots__ = ("attributes", "inputs", "line", "op")

    def __init__(self, op: Op, inputs: tuple[Value, ...], attributes: Attributes, line: Line | None) -> None:
        self.op, self.inputs, self.attributes, self.line = op, inputs, attributes, line


class PassingStep(Step):
    """Forgotten when the value has been computed."""

    __slots__ = ()


class RecentStep(Step):
    """Forgotten when the values computed from it are many rounds ahead; see `values.history`."""

    __slots__ = ("bounded_at", "released", "round")

    def __init__(self, op: Op, inputs: tuple[Value, ...], attributes: Attributes, line: Line | None) -> None:
        super().__init__(op, inputs, attributes, line)
        self.round = self.bounded_at = 0
        self.released = False
        """Whether some inputs are `Remembered`."""

    def present_inputs(self) -> tuple[Value, ...]:
        """Its inputs themselves where they are alive, else what is remembered of them."""
        return tuple([x.present() if x.__class__ is Remembered else x for x in self.inputs])


class Adjoint:
    """The data that differentiation keeps at a value: the gradient that `backward` has added up, and hooks by number.

    A variable that is given another value under `no_grad` keeps its adjoint.
    """

    __slots__ = ("__weakref__", "after", "grad", "hooks")

    def __init__(self) -> None:
        self.grad: Value | None = None
        self.hooks: dict[int, Hook] = {}
        """Called with the gradient when it is complete."""
        self.after: dict[int, Hook] = {}
        """Called when the gradient has been added to `grad`."""


class Value(Specified):
    """An array, or a step that would make it, or both (kept for a gradient or an export), or neither: a symbol.

    `tracked`: a gradient may be asked through it.  `trace`: the trace whose symbol it is or depends on.
    """

    borrowed = False
    """Whether it is a `Borrowed`."""
    __slots__ = ("__weakref__", "_spec", "adjoint", "array", "remembered", "stack", "step", "trace", "tracked")
    remembered: Remembered
    """What histories hold of it, once one does: the attribute is missing before."""

    def __init__(self, array: Array | None, stack: Stack, spec: TensorSpec | None = None, step: Step | None = None,
                 tracked: bool = False, trace: Any = None) -> None:
        self.array, self.stack, self._spec, self.step = array, stack, spec, step
        self.tracked, self.trace = tracked, trace
        self.adjoint: Adjoint | None = None

    def kept_adjoint(self) -> Adjoint:
        """The adjoint, made when first asked for."""
        if self.adjoint is None:
            self.adjoint = Adjoint()
        return self.adjoint

    @property
    def grad(self) -> Value | None:
        """The gradient that `backward` has added up."""
        return None if self.adjoint is None else self.adjoint.grad

    @grad.setter
    def grad(self, g: Value | None) -> None:
        if g is not None or self.adjoint is not None:
            self.kept_adjoint().grad = g

    @property
    def spec(self) -> TensorSpec:
        spec = self._spec
        if spec is None:
            array: Any = self.array
            spec = self._spec = (TupleSpec(tuple([TensorSpec(tuple(part.shape), part.dtype) for part in array]))
                                 if array.__class__ is tuple else TensorSpec(tuple(array.shape), array.dtype))
        return spec

    # asked often: without a spec where there is none yet
    @property
    def shape(self) -> Dims:
        spec = self._spec
        if spec is not None:
            return spec.shape
        array: Any = self.array
        return tuple(array.shape)

    @property
    def dtype(self) -> DType:
        spec = self._spec
        if spec is not None:
            return spec.dtype
        array: Any = self.array
        dtype: DType = array.dtype
        return dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    # what sweeps and walks ask of a node
    @property
    def op(self) -> Op:
        assert self.step is not None
        return self.step.op

    @property
    def inputs(self) -> tuple[Value, ...]:
        step = self.step
        if step is None:
            return ()
        return step.present_inputs() if step.__class__ is RecentStep and step.released else step.inputs

    @property
    def attributes(self) -> Attributes:
        return self.step.attributes if self.step is not None else ()

    @property
    def line(self) -> Line | None:
        return self.step.line if self.step is not None else None


class Remembered(Value):
    """The stand-in for a value that was computed, in the history of deferred code: its step, not its array.

    The array goes with the last who holds the value itself; it would be computed again if anybody asked.  `origin` is
    that value; `postorder` and everything else that asks for inputs gets it, while it lives.
    """

    __slots__ = ("origin",)

    def __init__(self, v: Value, step: Step) -> None:
        self.array = UNCOMPUTED if v.array is UNCOMPUTED else None
        self.stack, self._spec, self.step, self.tracked = v.stack, v.spec, step, False
        self.trace = self.adjoint = None
        self.origin = ref(v)
        v.remembered = self

    def present(self) -> Value:
        """The value itself, if it is alive."""
        v = self.origin()
        return self if v is None else v


class Handle:
    """The object that the user holds and writes through: it points at a value, and may be pointed at another one."""

    __slots__ = ("__weakref__", "_value")
    _value: Value


class Borrowed(Value):
    """A value whose elements lie in memory of somebody else, who may change them: the one exception to "never changes".

    It has a class of its own so that everything that trusts values passes it by: the fast path of `dispatch`, and with
    it memoisation; the rest asks `borrowed`.  Only a tensor, or a call that reads it at once, holds one: steps hold
    snapshots, cells and variables copies, and nobody writes to or gives away its memory.
    """

    borrowed = True
    __slots__ = ()


def owned(v: Value) -> Value:
    """The value itself, or a copy of what the borrowed memory holds now."""
    if not v.borrowed:
        return v
    return Value(v.stack.engine.executor.duplicate(v.array), v.stack, v._spec)


def is_snapshot(v: Value) -> bool:
    """True if this is a step's copy of a borrowed value: where the graph is not cut there, the copy counts."""
    step = v.step
    return step is not None and v.array is not None and len(step.inputs) == 1 and step.inputs[0].borrowed


def made_at(v: Value) -> str | None:
    """The user's line in which a value was recorded, for errors about it."""
    return None if v.line is None else show_line(v.line)
