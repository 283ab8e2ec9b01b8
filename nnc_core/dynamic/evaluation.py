"""Computing values: one operator now, or everything that is deferred, inputs first."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.errors import Error, ExecutionError, ImplicitComputeError, ImplicitComputeWarning, SymbolValueError
from nnc_core.composition import Stack
from nnc_core.device import enqueued_for
from nnc_core.dynamic import debug, memo
from nnc_core.dynamic.graphs.unknown import count_on_host, has_unknown, missing_counts, put_in, refresh, tell
from nnc_core.dynamic.modes import computing, current_trace, use_device
from nnc_core.dynamic.value import PassingStep, Value
from nnc_core.operator import OPERATORS
from nnc_core.symbol import postorder, show_line, user_line
from nnc_core.type import Attributes, Dims, Op, TensorSpec, any_unknown, is_static

_TRANSFER = OPERATORS["transfer"]


def run_now(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    """The array of an operator whose inputs are there."""
    if not debug.WATCHING:
        return _run(op, values, attributes, spec, stack)
    watched = debug.watch(op, values, attributes, stack)
    array = memo.recalled(op, values, attributes, stack, lambda: _run(op, values, attributes, spec, stack))
    if watched is not None:
        debug.check(watched, stack, array)
    return array


def _run(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    executor = stack.engine.executor
    arrays = [v.array for v in values]
    if op.counted:
        return executor.upload(count_on_host(op, [executor.download(a) for a in arrays], attributes))
    if op.decompose is not None and not executor.claims(op, arrays, attributes, spec):
        from nnc_core.dynamic.dispatch import F

        plain = [Value(v.array, v.stack, v._spec) for v in values]
        with computing(), use_device(stack):
            return op.decompose(F, *plain, *attributes).array
    if op is _TRANSFER:
        return stack.engine.executor.upload(values[0].stack.engine.executor.download(arrays[0]))
    return executor.run(op, arrays, attributes, spec)


def evaluate(values: Sequence[Value]) -> None:
    """Compute what is deferred, inputs first, each once; a symbol has no value."""
    wanted = [v for v in values if v.array is None]
    for v in wanted:
        if v.trace is not None:
            raise no_value(v)
    order = postorder(wanted, leaf=_is_computed)
    order.reverse()
    while order:  # what is done is let go at once
        v = order.pop()
        if v.array is None:
            v.array = _evaluated(v)
            if v.step.__class__ is PassingStep and not v.tracked:
                v.step = None
            if any_unknown() and has_unknown(v.spec.shape):
                v._spec = None  # the array tells it now


def compute(values: Sequence[Value], why: str) -> None:
    """`evaluate` for somebody who did not ask for it: `config.implicit_compute` may object."""
    late = [v for v in values if v.array is None]
    if late:
        if config.implicit_compute != "allow" and late[0].trace is None:
            _object(late[0], why)
        evaluate(late)


def _object(v: Value, why: str) -> None:
    recorded = "" if v.line is None else f", recorded at {show_line(v.line)},"
    error = ImplicitComputeError(
        f"a deferred {v.spec}{recorded} is computed: {why}", line=show_line(user_line()),
        hint="nnc.realize(...) where it should be computed, or nnc.config.implicit_compute = \"allow\"")
    if config.implicit_compute == "error":
        raise error
    warnings.warn(str(error), ImplicitComputeWarning, stacklevel=3)


def _is_computed(v: Value) -> bool:
    return v.array is not None


def no_value(v: Value, what: str = "the value") -> Error:
    """The error for asking a symbol for its value; a trace knows more about it."""
    refusal = getattr(v.trace, "refusal", None)
    if refusal is not None:
        return refusal(v, what)  # type: ignore[no-any-return]
    return SymbolValueError(f"a symbol {v.spec} has no value: {what} was asked for",
                            line=show_line(v.line or user_line()),
                            hint="call the compiled graph, or assign the symbol and eval; nnc.where chooses by data")


def _evaluated(v: Value) -> Any:
    step = v.step
    if step is None or v.trace is not None:
        if v.array is not None:
            return v.array  # another thread was quicker
        raise no_value(v)
    op, attributes, spec = step.op, step.attributes, v.spec
    try:
        if any_unknown():
            attributes, spec = inferred_again(op, step.inputs, attributes, v.stack)
        with enqueued_for(step.line):
            array = run_now(op, step.inputs, attributes, spec, v.stack)
        if op.counted:
            tell(op, attributes, v.stack.device.layout_of(array).shape[0])
        return array
    except Error as error:
        raise error.locate(operator=op.name, line=show_line(step.line))  # noqa: B904
    except Exception as error:
        raise ExecutionError(f"{type(error).__name__}: {error}", operator=op.name, device=v.stack.device.spec.id,
                             line=show_line(step.line)) from error


# ---- sizes that depend on data
def inferred_again(op: Op, values: Sequence[Value], attributes: Attributes, stack: Stack) -> tuple[Attributes, Any]:
    """Attributes and spec with numbers for sizes; whoever can tell one that is missing is computed."""
    if not op.counted:
        evaluate(missing_counts(attributes))
    attributes = put_in(attributes, stack)
    return attributes, stack.shape.infer(op, tuple([v.spec for v in values]), attributes)


def learn_sizes(op: Op, values: Sequence[Value]) -> bool:
    """Shapes that do not fit may do so when the sizes that depend on data are known: compute what has them."""
    unknown = [v for v in values if v.trace is None and has_unknown(v.spec.shape)] if any_unknown() else []
    if not unknown or current_trace.get() is not None:
        return False
    compute([v for v in unknown if not refresh(v)], f"{op.name} needs to know its shape")
    return True


def shape_of(v: Value) -> Dims:
    """Numbers: a deferred value is computed if its shape depends on data.  Symbols keep their names."""
    shape = v.spec.shape
    if is_static(shape) or v.trace is not None or refresh(v) or current_trace.get() is not None:
        return v.spec.shape
    compute([v], "its shape, which depends on data, was asked for")
    return v.spec.shape
