"""A compiled function that is called while something around it is recorded or differentiated: one step, not many.

Around an eager gradient the step runs the compiled graph, which also gives what its way back will read; the way back is
a compiled graph too.  In a graph under construction the step is a `call` node with the function's body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.config import config
from nnc_core.control.body import BodyCaptures, TracedBody, has_effects, keep_effects
from nnc_core.graph import SymbolicGraph, with_residuals
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Body
from nnc_core.tracing import jit
from nnc_core.tracing.compilation import Compilation
from nnc_core.values.data_dependent import DataDependentError
from nnc_core.values.dispatch import F
from nnc_core.values.modes import current_trace, gradients, lazy, use_device
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten, unflatten
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import Value


def as_call(jitted: jit.Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a jitted function by one `call`; NotImplemented where it is to be written out.

    Under `config.deterministic` everything is: the gradient of a step adds up what equal parts of it contribute in
    another order than the gradient of its parts does.
    """
    if config.deterministic:
        return NotImplemented
    arguments = jitted.taken_apart(args, kwargs)
    values = [value_of(t) for t in arguments.tensors]
    if lazy.get() or current_trace.get() is not None or any(v.trace is not None for v in values):
        if jitted.inline_limit is None or any(isinstance(v, Unshaped) for v in values):
            return NotImplemented
        return _in_graph(jitted, arguments, values)
    return _differentiated(jitted, args, kwargs, values) if gradients.get() else NotImplemented


def _is_short(body: Body | SymbolicGraph, limit: int) -> bool:
    return sum(bool(node.inputs) and node.op is not PLACEHOLDER for node in body.nodes) <= limit


# ---- around an eager gradient
def _differentiated(jitted: jit.Jitted, args: tuple[Any, ...], kwargs: dict[str, Any], values: Sequence[Value]) -> Any:
    try:
        found = jitted.compiled_for(args, kwargs)
    except DataDependentError:
        return NotImplemented
    body = _body_of(found, jitted.inline_limit or 0)
    if body is None:
        return NotImplemented
    stack = found.stack
    cells = [value_of(cell.read()) for _, cell in found.traced.cells]
    outside = [t._value for _, t in found.traced.outside]
    with use_device(stack):
        whole = F.call([*values, *cells, *outside], body=body, name=found.run.graph.name)
        made = iter([Tensor(F.pick(whole, index=i)) for i in range(len(found.outputs))])
    return unflatten(found.traced.structure, iter([next(made) if x is None else x for x in found.leaves]))


def _body_of(found: Compilation, limit: int) -> Body | None:
    """The function's graph as a body that keeps its residuals; None if it cannot be one step."""
    traced, graph = found.traced, found.run.source
    if traced.writes or traced.elsewhere or len(graph.outputs) != len(found.outputs) or _is_short(graph, limit):
        return None
    if any(node.op.host or node.op.data_dependent for node in graph.nodes):
        return None
    if found.body is None:
        body = Body(tuple(graph.inputs.values()), tuple([graph.outputs[k] for k in found.outputs]))
        found.body = with_residuals(found.stack.operator.open(), body)
    return found.body


# ---- in a graph
def _in_graph(jitted: jit.Jitted, arguments: Any, values: Sequence[Value]) -> Any:
    if not values:
        return NotImplemented
    f: Callable[..., Any] = jitted.f

    def body(*tensors: Tensor) -> Any:
        args, kwargs = arguments.rebuilt(list(tensors))
        return f(*args, **kwargs)

    stack = values[0].stack
    with use_device(stack):
        traced = TracedBody(body, jitted.name, values, [v.spec for v in values], tuple)
        leaves, structure = flatten(traced.result, sort=False)
        moving = traced.written
        outputs = [x._value for x in leaves if isinstance(x, Tensor)]
        outputs += [traced.trace.now[c] for c in moving]
        around = BodyCaptures([traced], [outputs])
        made = traced.body(stack, outputs, [*[[s] for s in traced.symbols], *around.inputs(0)], has_effects([traced]))
        if _is_short(made, jitted.inline_limit or 0) or any(v.stack is not stack for v in around.operands()):
            return NotImplemented
        results = F.picks(F.call([*values, *around.operands()], body=made, name=jitted.name))
        keep_effects([traced], results)
    for cell, v in zip(moving, results[len(outputs) - len(moving) : len(outputs)], strict=True):
        cell.write(Tensor(v))
    rest = iter([Tensor(v) for v in results])
    return unflatten(structure, iter([next(rest) if isinstance(x, Tensor) else x for x in leaves]))
