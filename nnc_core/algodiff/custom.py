"""Functions with derivatives of their own, in every mode and to any order.

A call records, besides the steps of the function itself, one step `custom` that holds the rule, and one `result` for
each tensor that the function gives.  `result` computes nothing: its value is the function's, its derivative is that of
`custom`.  So compiled code contains the function alone, and sweeps see the rule alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from nnc_core.algodiff.custom_rules import Forward, Reverse, Rule, frozen
from nnc_core.algodiff.mapped_rules import mapped_rule
from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import GradientError, OperandError
from nnc_core.graph.autodiff import BodyRules
from nnc_core.graph.batching_rules import repeated
from nnc_core.operator.control import PICK
from nnc_core.symbol import Node, postorder, show_line, user_line
from nnc_core.type import DimLike, Op, TupleSpec
from nnc_core.values.modes import current_trace, gradients, lazy
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, unflatten
from nnc_core.values.value import UNCOMPUTED, Step, Value

CUSTOM = Op("custom", ("*operands",), ("rule",), lambda *arguments: arguments[-1].spec,
            virtual=True, storage=True,
            doc="Derivatives that the user gives: of results that are computed elsewhere, by the operands.")
RESULT = Op("result", ("value", "rule"), (), lambda value, rule: value, decompose=lambda F, value, rule: value,
            vjp=(None, lambda F, g, y, value, rule: g), jvp=lambda F, t, y, value, rule: t[1],
            storage=True,             doc="A value, with the derivative of another.")
CUSTOM_RULES = BodyRules(
    lambda F, gs, y, live: y.attributes[0].cotangents(F, gs, y.inputs),
    lambda F, ts, y: y.attributes[0].tangents(F, ts, y.inputs))


def _mapped_custom(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """The rule on many examples: what it asks for is found with `vmap`."""
    return F.apply(CUSTOM, tuple(values), (mapped_rule(node.attributes[0], tuple(batched), size),))


def _mapped_result(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    value, derivative = values
    if not batched[1]:
        (whole,), (index,) = derivative.inputs, derivative.attributes
        alike = [False] * len(whole.inputs)
        derivative = F.pick(_mapped_custom(F, whole, list(whole.inputs), alike, size), index=index)
    return F.apply(RESULT, (value if batched[0] else repeated(F, value, size), derivative), ())


_forwards: ContextVar[frozenset[CustomFunction]] = ContextVar("_forwards", default=frozenset())
"""The functions whose forward is running here."""

CUSTOM_BATCHING = {CUSTOM.name: _mapped_custom, RESULT.name: _mapped_result}


class CustomFunction:
    """Base of `custom_vjp` and `custom_jvp`: the function, and when a call is recorded."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.f = f

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _rule(self) -> Callable[..., Any]:
        raise NotImplementedError

    def __call__(self, *args: Any) -> Any:
        leaves, structure = flatten(args)
        tensors = [value_of(x) for x in leaves if isinstance(x, Tensor)]
        rule = self._rule()
        if not _is_recorded(tensors):
            return self.f(*args)
        return self._recorded(rule, leaves, structure, args)

    def _recorded(self, rule: Callable[..., Any], leaves: Sequence[Any], structure: Structure, args: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self.f, '__name__', self.f)}>"


def _is_recorded(tensors: Sequence[Value]) -> bool:
    """True if somebody may differentiate the call: what is deferred or traced may become a graph."""
    if not any(is_inexact(v.dtype) for v in tensors):
        return False
    waits = bool(lazy.get()) or current_trace.get() is not None or any(v.trace is not None for v in tensors)
    return waits or (gradients.get() and any(v.tracked for v in tensors))


class custom_vjp(CustomFunction):  # noqa: N801 - used as a function
    """A function with a reverse derivative of its own.

    `g.defvjp(forward, backward)`: forward(*args) gives (result, residuals), backward(residuals, cotangent of the
    result) a tuple of one cotangent for each argument, of the argument's structure, or None for zeros.  Results and
    residuals are any nested structures of tensors; arguments that are no tensors are passed on as they are.  forward
    may call the function itself: that result has the same derivative, whose residuals are found when it is asked for.
    """

    forward: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None
    _late: Callable[..., Any] | None = None

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> custom_vjp:
        """Set the rule; gives the function itself."""
        self.forward, self.backward = forward, backward

        @functools.wraps(backward)
        def late(args: tuple[Any, ...], cotangent: Any) -> Any:
            return backward(self._run_forward(args)[1], cotangent)

        self._late = late
        return self

    def _rule(self) -> Callable[..., Any]:
        if self.forward is None or self.backward is None:
            raise GradientError(f"{self!r} has no derivative", hint="set one with defvjp(forward, backward)")
        return self.backward

    def _recorded(self, rule: Callable[..., Any], leaves: Sequence[Any], structure: Structure, args: Any) -> Any:
        if self in _forwards.get():
            assert self._late is not None
            rule, result, residuals = self._late, self.f(*args), args
        else:
            result, residuals = self._run_forward(args)
        kept, kept_structure = flatten(residuals)
        return _attach(result, leaves, [value_of(t) for t in kept if isinstance(t, Tensor)],
                       lambda spec, shape: Reverse(rule, structure, frozen(leaves), spec, shape, kept_structure,
                                                   frozen(kept)))

    def _run_forward(self, args: Any) -> tuple[Any, Any]:
        """The result and the residuals, by the user's function."""
        assert self.forward is not None
        running = _forwards.set(_forwards.get() | {self})
        try:
            outcome = self.forward(*args)
        finally:
            _forwards.reset(running)
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            raise GradientError(f"forward of {self!r} gives {type(outcome).__name__}, not (result, residuals)")
        return outcome


class custom_jvp(CustomFunction):  # noqa: N801 - used as a function
    """A function with a forward derivative of its own; the reverse one follows by transposition.

    `g.defjvp(rule)`: rule(primals, tangents) gives (result, tangent of the result); primals is the tuple of arguments,
    tangents one of the same structure with zeros for tensors that do not change.  The tangent must be linear in the
    tangents.
    """

    jvp: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> custom_jvp:
        """Set the rule; gives the function itself."""
        self.jvp = rule
        return self

    def _rule(self) -> Callable[..., Any]:
        if self.jvp is None:
            raise GradientError(f"{self!r} has no derivative", hint="set one with defjvp(rule)")
        return self.jvp

    def _recorded(self, rule: Callable[..., Any], leaves: Sequence[Any], structure: Structure, args: Any) -> Any:
        return _attach(self.f(*args), leaves, [],
                       lambda spec, shape: Forward(rule, structure, frozen(leaves), spec, shape))


def _attach(result: Any, leaves: Sequence[Any], residuals: Sequence[Value],
            make: Callable[[TupleSpec, Structure], Rule]) -> Any:
    """The results of a function, with the derivative of a rule in place of their own."""
    outputs, structure = flatten(result)
    for y in outputs:
        if not isinstance(y, Tensor):
            raise OperandError(f"a function with a derivative of its own gives {type(y).__name__}, not a tensor",
                               hint="give tensors, in any structure")
    values = [y._value for y in outputs]
    args = [x._value for x in leaves if isinstance(x, Tensor)]
    _check_closed(values, args)
    operands = (*args, *residuals)
    stack, line = operands[0].stack, user_line()
    trace = next((v.trace for v in (*values, *operands) if v.trace is not None), None)
    tracked = gradients.get() and any(v.tracked for v in args)
    spec = TupleSpec(tuple([v.spec for v in values]))
    step = Step(CUSTOM, operands, (make(spec, structure),), line)
    whole = Value(UNCOMPUTED, stack, spec, step, tracked, trace)
    made = [_result(v, whole, i, tracked and is_inexact(v.dtype), trace) for i, v in enumerate(values)]
    return unflatten(structure, iter([Tensor(v) for v in made]))


def _result(v: Value, whole: Value, index: int, tracked: bool, trace: Any) -> Value:
    assert whole.step is not None
    line = whole.step.line
    derivative = Value(UNCOMPUTED, whole.stack, v.spec, Step(PICK, (whole,), (index,), line), tracked, trace)
    plain = v if v.array is None else Value(v.array, v.stack, v.spec)  # what is there needs no history
    return Value(v.array, v.stack, v.spec, Step(RESULT, (plain, derivative), (), line), tracked, trace)


def _check_closed(outputs: Sequence[Value], args: Sequence[Value]) -> None:
    """Reject tensors that the function reads from around it: they would get no gradient, silently."""
    given = {id(v) for v in args}
    for v in postorder(outputs, given, leaf=lambda v: not v.tracked):
        if id(v) not in given and v.tracked and not any(x.tracked for x in v.inputs):
            raise GradientError(f"a function with a derivative of its own reads {v.spec}, which has a gradient and is "
                                "none of its arguments", line=show_line(v.line), hint="pass it as an argument")
