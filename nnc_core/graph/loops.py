"""Derivatives of loops: a loop that runs back along the tape of the first; a loop that carries tangents along.

Both are loops again, so that they can be differentiated to any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import boolean, is_inexact
from nnc_core.graph.autodiff import BodyRules, forward
from nnc_core.graph.bodies import expanded, like, live_inputs, partition, silenced, used
from nnc_core.operator import Nodes
from nnc_core.operator.control import TRIPS, LoopAttributes
from nnc_core.symbol import Body, Node, Number


def _reverse(F: Any, gs: Sequence[Any], y: Any, live: set[int]) -> list[Any]:
    loop = LoopAttributes.of(y)
    G = F.for_bodies(y)
    body = expanded(G, loop.body)
    n = loop.carried_count
    inner = live_inputs(body, [id(x) in live for x in y.inputs], n)
    c, x, k = loop.split(body.inputs)
    active, rows, shared = ([p for p in group if p in set(inner)] for group in (c, x, k))
    d_c, d_k = like(G, active, "dc"), like(G, shared, "dk")
    stacked = {j: g for j, g in enumerate(gs[n:]) if g is not None and is_inexact(body.outputs[n + j].dtype)}
    d_y = {j: G.placeholder(f"dy{j}", body.outputs[n + j].spec) for j in stacked}
    seeds = [(body.outputs[c.index(p)], d_c[p]) for p in active] + [(body.outputs[n + j], d) for j, d in d_y.items()]
    parted = partition(G, body, seeds, [*active, *shared, *rows], extra=d_k, direct=[*x, *k])
    residuals, residual_inputs = parted.residuals, parted.residual_inputs
    x_read, k_read = used(parted.back, x), used(parted.back, k)
    if loop.length == TRIPS and not (residuals or stacked or x_read):  # some tape has to say how often to go back
        x_read = x[:1]
        residuals = [] if x else [G.filled(shape=(), number=Number(True, boolean))]
        residual_inputs = like(G, residuals, "trip")
    taped = _taped(F, y, body, residuals) if residuals else []
    outer = dict(zip(body.inputs, y.inputs, strict=True))
    first = [F.zeros_like(outer[p]) if (g := gs[c.index(p)]) is None else g for p in active]
    first += [F.zeros_like(outer[p]) for p in shared]
    steps = [*taped, *stacked.values(), *[outer[p] for p in x_read]]
    row_inputs = [*[residual_inputs[r] for r in residuals], *d_y.values(), *x_read]
    inputs = (*[d_c[p] for p in active], *[d_k[p] for p in shared], *row_inputs, *k_read)
    found = F.picks(F.loop(first, steps, [outer[p] for p in k_read], body=Body(inputs, tuple(parted.back)),
                           length=loop.length, reverse=not loop.reverse))
    by_input = dict(zip([*active, *shared, *rows], found, strict=True))
    return [by_input.get(p) for p in body.inputs]


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
    inner = live_inputs(body, [t is not None for t in tangents], n)
    c, x, k = loop.split(body.inputs)
    active, rows, shared = ([p for p in group if p in set(inner)] for group in (c, x, k))
    d = like(G, inner, "d")
    found = forward(G, body.nodes, {id(p): t for p, t in d.items()}, body.outputs)
    of_output = [G.zeros_like(z) if t is None else t for t, z in zip(found, body.outputs, strict=True)]
    stacked = [j for j, t in enumerate(found[n:]) if t is not None]
    outputs = (*body.outputs[:n], *[of_output[c.index(p)] for p in active], *body.outputs[n:],
               *[of_output[n + j] for j in stacked])
    inputs = (*c, *[d[p] for p in active], *x, *[d[p] for p in rows], *k, *[d[p] for p in shared])
    outer = dict(zip(body.inputs, zip(y.inputs, tangents, strict=True), strict=True))

    def given(group: Sequence[Node]) -> list[Any]:
        return [F.zeros_like(outer[p][0]) if outer[p][1] is None else outer[p][1] for p in group]

    carried, scanned, captured = loop.split(y.inputs)
    made = F.picks(F.loop([*carried, *given(active)], [*scanned, *given(rows)],
                          [*captured, *given(shared)], body=Body(inputs, outputs),
                          cond=_widened(G, loop, [d[p] for p in shared], [d[p] for p in active]),
                          length=loop.length, reverse=loop.reverse))
    by_carried = {p: made[n + i] for i, p in enumerate(active)}
    after = len(active) + len(body.outputs)
    by_stack = {j: made[after + i] for i, j in enumerate(stacked)}
    return [by_carried.get(p) for p in c] + [by_stack.get(j) for j in range(len(body.outputs) - n)]


def _widened(G: Nodes, loop: LoopAttributes, shared: Sequence[Node], carried: Sequence[Node]) -> Body | None:
    """The condition, taking no notice of tangents."""
    if loop.cond is None:
        return None
    n = loop.carried_count
    names = [*like(G, carried, "unread").values()], [*like(G, shared, "unread").values()]
    return Body((*loop.cond.inputs[:n], *names[0], *loop.cond.inputs[n:], *names[1]), loop.cond.outputs)


LOOP_RULES = BodyRules(_reverse, _forward)
