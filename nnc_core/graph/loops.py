"""Derivatives of loops: a loop that runs back along the tape of the first; a loop that carries tangents along.

Both are loops again, so that they can be differentiated to any order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nnc_core.base.dtype import boolean, is_inexact
from nnc_core.graph.autodiff import BodyRules, forward
from nnc_core.graph.bodies import expanded, like, live_inputs, partition, silenced, used
from nnc_core.operator import Nodes
from nnc_core.operator.control import TRIPS, LoopAttributes
from nnc_core.symbol import Body, Node, Number


class _Live(NamedTuple):
    """Inputs of a loop's body that a derivative runs through."""

    carried: list[Node]
    rows: list[Node]
    captured: list[Node]

    @staticmethod
    def of(loop: LoopAttributes, body: Body, given: Sequence[bool]) -> _Live:
        live = set(live_inputs(body, given, loop.carried_count))
        return _Live(*[[p for p in group if p in live] for group in loop.split(body.inputs)])


class _LoopBack(NamedTuple):
    """A round of the loop that runs back, and what it reads of the first loop's."""

    body: Body
    """Gives the cotangents of carried and captured values on, and stacks up those of rows."""
    residuals: list[Node]
    rows: list[Node]
    captured: list[Node]


def _reverse(F: Any, gs: Sequence[Any], y: Any, live: set[int]) -> list[Any]:
    loop = LoopAttributes.of(y)
    G = F.for_bodies(y)
    body = expanded(G, loop.body)
    n = loop.carried_count
    through = _Live.of(loop, body, [id(x) in live for x in y.inputs])
    stacked = {j: g for j, g in enumerate(gs[n:]) if g is not None and is_inexact(body.outputs[n + j].dtype)}
    back = _way_back(G, loop, body, through, list(stacked))
    taped = _taped(F, y, body, back.residuals) if back.residuals else []
    outer = dict(zip(body.inputs, y.inputs, strict=True))
    given = dict(zip(body.inputs, gs[:n], strict=False))
    first = [F.zeros_like(outer[p]) if given[p] is None else given[p] for p in through.carried]
    first += [F.zeros_like(outer[p]) for p in through.captured]
    found = F.picks(F.loop(first, [*taped, *stacked.values(), *[outer[p] for p in back.rows]],
                           [outer[p] for p in back.captured], body=back.body, length=loop.length,
                           reverse=not loop.reverse))
    by_input = dict(zip([*through.carried, *through.captured, *through.rows], found, strict=True))
    return [by_input.get(p) for p in body.inputs]


def _way_back(G: Nodes, loop: LoopAttributes, body: Body, through: _Live, stacked: Sequence[int]) -> _LoopBack:
    """`stacked` are the numbers of those stacked results whose rows have cotangents."""
    n, (c, x, k) = loop.carried_count, loop.split(body.inputs)
    d_c, d_k = like(G, through.carried, "dc"), like(G, through.captured, "dk")
    d_y = {j: G.placeholder(f"dy{j}", body.outputs[n + j].spec) for j in stacked}
    seeds = [(body.outputs[c.index(p)], d) for p, d in d_c.items()] + [(body.outputs[n + j], d) for j, d in d_y.items()]
    parted = partition(G, body, seeds, [*d_c, *d_k, *through.rows], extra=d_k, direct=[*x, *k])
    residuals, residual_inputs = parted.residuals, parted.residual_inputs
    rows, captured = used(parted.back, x), used(parted.back, k)
    if loop.length == TRIPS and not (residuals or stacked or rows):  # some tape has to say how often to go back
        rows = x[:1]
        residuals = [] if x else [G.filled(shape=(), number=Number(True, boolean))]
        residual_inputs = like(G, residuals, "trip")
    row_inputs = [*[residual_inputs[r] for r in residuals], *d_y.values(), *rows]
    inputs = (*d_c.values(), *d_k.values(), *row_inputs, *captured)
    return _LoopBack(Body(inputs, tuple(parted.back)), residuals, rows, captured)


def _taped(F: Any, y: Any, body: Body, residuals: Sequence[Node]) -> list[Any]:
    """The loop once more, with the residuals stacked up; the optimiser makes the two one."""
    loop = LoopAttributes.of(y)
    taped = F.loop(*loop.split(y.inputs), body=Body(body.inputs, (*body.outputs, *residuals)),
                   cond=loop.cond, length=loop.length, reverse=loop.reverse)
    first = len(body.outputs)
    return [F.pick(taped, index=first + i) for i in range(len(residuals))]


def _forward(F: Any, tangents: Sequence[Any], y: Any) -> list[Any]:
    loop = LoopAttributes.of(y)
    G = F.for_bodies(y)
    body = silenced(expanded(G, loop.body), G)
    n = loop.carried_count
    live = _Live.of(loop, body, [t is not None for t in tangents])
    d = like(G, [*live.carried, *live.rows, *live.captured], "d")
    along, stacked = _way_along(G, loop, body, live, d)
    outer = dict(zip(body.inputs, y.inputs, strict=True))
    tangent = dict(zip(body.inputs, tangents, strict=True))

    def given(group: Sequence[Node]) -> list[Any]:
        return [F.zeros_like(outer[p]) if tangent[p] is None else tangent[p] for p in group]

    carried, scanned, captured = loop.split(y.inputs)
    made = F.picks(F.loop([*carried, *given(live.carried)], [*scanned, *given(live.rows)],
                          [*captured, *given(live.captured)], body=along,
                          cond=_widened(G, loop, [d[p] for p in live.captured], [d[p] for p in live.carried]),
                          length=loop.length, reverse=loop.reverse))
    by_carried = {p: made[n + i] for i, p in enumerate(live.carried)}
    after = len(live.carried) + len(body.outputs)
    by_stack = {j: made[after + i] for i, j in enumerate(stacked)}
    return [by_carried.get(p) for p in body.inputs[:n]] + [by_stack.get(j) for j in range(len(body.outputs) - n)]


def _way_along(G: Nodes, loop: LoopAttributes, body: Body, live: _Live,
               d: Mapping[Node, Node]) -> tuple[Body, list[int]]:
    """A round that carries tangents along, and the numbers of those stacked results that have some."""
    n, (c, x, k) = loop.carried_count, loop.split(body.inputs)
    found = forward(G, body.nodes, {id(p): t for p, t in d.items()}, body.outputs)
    of_output = [G.zeros_like(z) if t is None else t for t, z in zip(found, body.outputs, strict=True)]
    stacked = [j for j, t in enumerate(found[n:]) if t is not None]
    outputs = (*body.outputs[:n], *[of_output[c.index(p)] for p in live.carried], *body.outputs[n:],
               *[of_output[n + j] for j in stacked])
    inputs = (*c, *[d[p] for p in live.carried], *x, *[d[p] for p in live.rows], *k, *[d[p] for p in live.captured])
    return Body(inputs, outputs), stacked


def _widened(G: Nodes, loop: LoopAttributes, shared: Sequence[Node], carried: Sequence[Node]) -> Body | None:
    """The condition, taking no notice of tangents."""
    if loop.cond is None:
        return None
    n = loop.carried_count
    names = [*like(G, carried, "unread").values()], [*like(G, shared, "unread").values()]
    return Body((*loop.cond.inputs[:n], *names[0], *loop.cond.inputs[n:], *names[1]), loop.cond.outputs)


LOOP_RULES = BodyRules(_reverse, _forward)
