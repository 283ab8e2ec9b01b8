"""Bodies run on many inputs at once: what was written for one example, over a new first axis.

Where an operator has a rule its kernel does all examples in one command; everything else (control flow included) goes
over them in a loop, so that there is nothing that cannot be batched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from nnc_core.base.errors import NotSupportedError
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import PICK
from nnc_core.optimiser import Expanding, rebuild
from nnc_core.symbol import Body, Node, show_line
from nnc_core.type import DimLike, TupleSpec

Rule: TypeAlias = Callable[..., Any]
"""(F, node, values, which of them are batched, number of examples) -> the batched result, or None for the loop."""
RULES: dict[str, Rule] = {}


def batch(F: Any, body: Body, values: Sequence[Any], batched: Sequence[bool], size: DimLike) -> list[Any]:
    """The results of a body, all with the examples along a new first axis; inputs that are not `batched` are the same
    for every example."""
    G = F._bodies(values[0])
    wanted = rebuild(body.outputs, Expanding(G.symbol, G.table, _needs_its_body))
    body = Body(body.inputs, tuple(wanted))
    made: dict[Node, tuple[Any, bool]] = dict(zip(body.inputs, zip(values, batched, strict=True), strict=True))
    for node in body.nodes:
        if node in made:
            continue
        found = [made[x] for x in node.inputs]
        made[node] = _of_node(F, node, [v for v, _ in found], [b for _, b in found], size)
    return [v if b else _repeated(F, v, size) for v, b in (made[y] for y in body.outputs)]


def _needs_its_body(node: Node) -> bool:
    return not node.op.elementwise and node.op.name not in RULES


def _of_node(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> tuple[Any, bool]:
    if node.op is PICK:
        (whole,), (index,) = values, node.attributes
        return (whole[index] if batched[0] else F.pick(whole, index=index)), batched[0]
    if not any(batched):
        return F._apply(node.op, tuple(values), node.attributes), False
    if node.op.host:
        raise NotSupportedError("a host function cannot be batched", operator=node.op.name, line=show_line(node.line),
                                hint="call it outside of vmap")
    rule = _elementwise if node.op.elementwise else RULES.get(node.op.name)
    result = rule(F, node, values, batched, size) if rule is not None else None
    return (_one_by_one(F, node, values, batched, size) if result is None else result), True


def _repeated(F: Any, v: Any, size: DimLike) -> Any:
    return F.broadcast_to(v, shape=(size, *v.shape))


def _all_batched(F: Any, values: Sequence[Any], batched: Sequence[bool], size: DimLike) -> list[Any]:
    return [v if b else _repeated(F, v, size) for v, b in zip(values, batched, strict=True)]


def _one_by_one(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """A loop over the examples; a tuple of results for an operator that has several."""
    G = F._bodies(next(v for v, b in zip(values, batched, strict=True) if b))
    inputs = [G.placeholder(f"x{i}", x.spec) for i, x in enumerate(node.inputs)]
    inner = G._apply(node.op, tuple(inputs), node.attributes)
    outputs = tuple(G.picks(inner)) if isinstance(node.spec, TupleSpec) else (inner,)
    rows = [i for i, b in enumerate(batched) if b]
    rest = [i for i, b in enumerate(batched) if not b]
    loop = F.loop((), [values[i] for i in rows], [values[i] for i in rest],
                  body=Body(tuple([inputs[i] for i in (*rows, *rest)]), outputs), length=size)
    results = F.picks(loop)
    return tuple(results) if isinstance(node.spec, TupleSpec) else results[0]


def _aligned(F: Any, v: Any, row_ndim: int, ndim: int, size: DimLike) -> Any:
    """Examples first, then axes of length 1 up to `ndim` axes of each row."""
    if row_ndim == ndim:
        return v
    return F.reshape(v, shape=(size, *(1,) * (ndim - row_ndim), *v.shape[1:]))


def _elementwise(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    ready = [_aligned(F, v, x.ndim, node.ndim, size) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    result = F._apply(node.op, tuple(ready), node.attributes)
    return result if result.shape == (size, *node.shape) else F.broadcast_to(result, shape=(size, *node.shape))


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators by name."""
    assert all(n in OPERATORS for n in names), names

    def register(f: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, f))
        return f

    return register


def _axes(axis: Any) -> Any:
    return axis + 1 if isinstance(axis, int) else tuple([a + 1 for a in axis])


@rule("sum", "max", "min", "argmax", "argmin", "all", "any", "mean", "softmax", "log_softmax")
def _along_axes(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """The axis is the first attribute."""
    first, *rest = node.attributes
    return F._apply(node.op, tuple(values), (_axes(first), *rest))


@rule("reshape")
def _reshape(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.reshape(values[0], shape=(size, *node.shape))


@rule("permute")
def _permute(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.permute(values[0], axes=(0, *_axes(node.attributes[0])))


@rule("broadcast_to")
def _broadcast_to(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.broadcast_to(_aligned(F, values[0], node.inputs[0].ndim, node.ndim, size), shape=(size, *node.shape))


@rule("slice")
def _slice(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    start, stop, step = node.attributes
    return F.slice(values[0], start=(0, *start), stop=(size, *stop), step=(1, *step))


@rule("pad")
def _pad(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    named = dict(zip(node.op.attributes, node.attributes, strict=True))
    wider = {k: (0, *v) if k in ("low", "high", "interior") else v for k, v in named.items()}
    return F._apply(node.op, tuple(values), tuple(wider.values()))


@rule("flip")
def _flip(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.flip(values[0], axes=_axes(node.attributes[0]))


@rule("concat")
def _concat(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.concat(*_all_batched(F, values, batched, size), axis=node.attributes[0] + 1)


@rule("update_slice")
def _update_slice(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    start, step = node.attributes
    x, piece = _all_batched(F, values, batched, size)
    return F.update_slice(x, piece, start=(0, *start), step=(1, *step))


@rule("matmul")
def _matmul(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    ndim = max(x.ndim for x in node.inputs)
    ready = [_aligned(F, v, x.ndim, ndim, size) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    return F._apply(node.op, tuple(ready), node.attributes)


@rule("take")
def _take(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    (axis,) = node.attributes
    if batched == [True, False]:
        return F.take(*values, axis=axis + 1)
    if batched == [False, True]:  # the examples appear where the axis was
        taken = F.take(*values, axis=axis)
        return F.permute(taken, axes=(axis, *[i for i in range(taken.ndim) if i != axis]))
    return None


@rule("scatter")
def _scatter(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    axis, mode = node.attributes
    if batched[1]:
        return None
    x, updates = _all_batched(F, [values[0], values[2]], [batched[0], batched[2]], size)
    return F.scatter(x, values[1], updates, axis=axis + 1, mode=mode)


@rule("one_hot")
def _one_hot(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F._apply(node.op, tuple(values), node.attributes)


IMAGES = {"conv2d": (0,), "conv2d_input_gradient": (0,), "max_pool2d": (0,), "max_pool2d_index": (0,),
          "pool2d_take": (0, 1), "pool2d_put": (0, 1), "sum_pool2d": (0,), "sum_pool2d_gradient": (0,),
          "avg_pool2d": (0,)}
"""The inputs of window operators that are images."""


@rule(*IMAGES)
def _window(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Images of all examples are images of one batch, which is their first axis in every layout."""
    images = IMAGES[node.op.name]
    if any(b != (i in images) for i, b in enumerate(batched)):
        return None
    ready = [F.reshape(v, shape=(size * x.shape[0], *x.shape[1:])) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    return F.reshape(F._apply(node.op, tuple(ready), node.attributes), shape=(size, *node.shape))
