"""Questions about the dynamic graph, and cutting it."""

from __future__ import annotations

from nnc_core.algodiff.tape import every_step, variables
from nnc_core.graph.autodiff import depending
from nnc_core.symbol import postorder
from nnc_core.values.arguments import located
from nnc_core.values.evaluation import evaluate
from nnc_core.values.tensor import Tensor


@located
def depends_on(y: Tensor, x: Tensor) -> bool:
    """True if y was computed from x, as far as it was recorded: by steps kept for gradients, deferred or symbolic."""
    source = id(x._value)
    return any(id(v) == source for v in postorder([y._value], {source}))


@located
def bookkeeping_count(*tensors: Tensor) -> int:
    """Count the steps kept for gradients behind these tensors: those between them and variables, each once."""
    order = every_step([t._value for t in tensors])
    live = depending(order, variables(order))
    return sum(v.step is not None and id(v) in live for v in order)


def detach_(t: Tensor) -> Tensor:
    """Cut the dynamic graph at this value, which becomes a constant; its history is freed."""
    v = t._value
    if v.array is None and v.trace is None:
        evaluate([v])
    if v.trace is None:
        v.step = None
    v.tracked, v.adjoint = False, None
    return t
