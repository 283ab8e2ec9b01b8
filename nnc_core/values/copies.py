"""Copies and pickles of values: by way of the host, with the gradient, without the history and the hooks."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import SymbolValueError
from nnc_core.stacks import stack_for
from nnc_core.values.evaluation import evaluate
from nnc_core.values.refusals import no_value
from nnc_core.values.value import Value, made_at


def reduce_value(v: Value) -> tuple[Any, ...]:
    """Reduce a value for `copyreg`; SymbolValueError for a symbol, which has none of its own; DonatedError or
    LeakedTraceError for what is gone."""
    if v.trace is not None:
        if getattr(v.trace, "ended", False):
            raise no_value(v)  # donated, or of a trace that is over
        raise SymbolValueError(f"a symbol {v.spec} cannot be copied or pickled: it has no value of its own",
                               line=made_at(v),
                               hint="copy what the compiled function gives; copy.copy gives another handle")
    evaluate([v])
    host = v.stack.engine.executor.download(v.array)
    grad = None if v.adjoint is None else v.adjoint.grad
    return _restored, (host, v.stack.device.spec.id, v.tracked and v.step is None, grad)


def _restored(host: Any, device: str, variable: bool, grad: Value | None = None) -> Value:
    stack = stack_for(device)
    value = Value(stack.engine.executor.upload(host), stack, None, None, variable)
    if grad is not None:
        value.kept_adjoint().grad = grad
    return value
