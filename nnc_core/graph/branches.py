"""Derivatives of branches and of calls.

A branch's way back runs the branch's way forward again from its operands: nothing is kept for branches that do not
run.  A call keeps its residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.base.dtype import is_inexact
from nnc_core.graph.autodiff import BodyRules, forward, reverse
from nnc_core.graph.bodies import expanded, like, live_inputs, partition, silenced, used
from nnc_core.operator import Nodes
from nnc_core.symbol import Body, Node


def _reverse_of_branches(F: Any, gs: Sequence[Any], y: Any, live: set[int]) -> list[Any]:
    branches, otherwise = y.attributes
    index, *operands = y.inputs
    wanted = [i for i, x in enumerate(operands) if id(x) in live and is_inexact(x.dtype)]
    given = {j: g for j, g in enumerate(gs) if g is not None}
    back = tuple([_branch_back(F.for_bodies(y), b, wanted, list(given)) for b in branches])
    found = F.picks(F.case_of(index, [*operands, *given.values()], branches=back, otherwise=otherwise))
    by_operand = dict(zip(wanted, found, strict=True))
    return [None, *[by_operand.get(i) for i in range(len(operands))]]


def _branch_back(G: Nodes, branch: Body, wanted: Sequence[int], given: Sequence[int]) -> Body:
    body = silenced(expanded(G, branch), G)
    d_y = {j: G.placeholder(f"dy{j}", body.outputs[j].spec) for j in given}
    seeds: dict[int, Node] = {}
    for j, g in d_y.items():
        y = body.outputs[j]
        seeds[id(y)] = G.add(seeds[id(y)], g) if id(y) in seeds else g
    wrt = [body.inputs[i] for i in wanted]
    found = reverse(G, body.nodes, seeds, wrt)
    outputs = [G.zeros_like(x) if g is None else g for x, g in zip(wrt, found, strict=True)]
    return Body((*body.inputs, *d_y.values()), tuple(outputs))


def _forward_of_branches(F: Any, tangents: Sequence[Any], y: Any) -> list[Any]:
    branches, otherwise = y.attributes
    given = [i for i, t in enumerate(tangents[1:]) if t is not None]
    wanted = [j for j, spec in enumerate(y.spec.parts) if is_inexact(spec.dtype)]
    along = tuple([_branch_along(F.for_bodies(y), b, given, wanted) for b in branches])
    operands = [*y.inputs[1:], *[tangents[1 + i] for i in given]]
    found = F.picks(F.case_of(y.inputs[0], operands, branches=along, otherwise=otherwise))
    by_result = dict(zip(wanted, found, strict=True))
    return [by_result.get(j) for j in range(len(y.spec.parts))]


def _branch_along(G: Nodes, branch: Body, given: Sequence[int], wanted: Sequence[int]) -> Body:
    body = silenced(expanded(G, branch), G)
    d = like(G, [body.inputs[i] for i in given], "d")
    found = forward(G, body.nodes, {id(x): t for x, t in d.items()}, [body.outputs[j] for j in wanted])
    outputs = [G.zeros_like(body.outputs[j]) if t is None else t for j, t in zip(wanted, found, strict=True)]
    return Body((*body.inputs, *d.values()), tuple(outputs))


class _WayBack(NamedTuple):
    """The derivative of a call: what its way forward keeps, and the body that runs back."""

    forward: Body
    """The called body, with residuals as further results where it does not give them already."""
    residuals: list[int]
    """Numbers of those results that the way back takes, then the cotangents, then the inputs numbered `read`."""
    read: list[int]
    back: Body


def with_residuals(G: Nodes, body: Body) -> Body:
    """A body that also gives what its way back will need, so that the call need not be run again for it."""
    wanted = tuple(i for i, x in enumerate(body.inputs) if is_inexact(x.dtype))
    given = tuple(j for j, y in enumerate(body.outputs) if is_inexact(y.dtype))
    return _way_back(G, body, wanted, given).forward if wanted and given else body


def _way_back(G: Nodes, called: Body, wanted: tuple[int, ...], given: tuple[int, ...]) -> _WayBack:
    body = expanded(G, called)
    wrt = live_inputs(body, [i in wanted for i in range(len(body.inputs))])
    d_y = {j: G.placeholder(f"dy{j}", body.outputs[j].spec) for j in given}
    parted = partition(G, body, [(body.outputs[j], d) for j, d in d_y.items()], wrt, direct=body.inputs)
    outputs = [*body.outputs, *[r for r in parted.residuals if r not in body.outputs]]
    read = used(parted.back, body.inputs)
    inputs = (*[parted.residual_inputs[r] for r in parted.residuals], *d_y.values(), *read)
    forward = called if len(outputs) == len(body.outputs) else Body(body.inputs, tuple(outputs))
    return _WayBack(forward, [outputs.index(r) for r in parted.residuals], [body.inputs.index(p) for p in read],
                    Body(inputs, tuple(parted.back)))


WAYS_KEPT = 256
_ways: LRU[Any, _WayBack] = LRU(WAYS_KEPT)
"""Ways back that were worked out last: calls are made again and again."""


def _known_way_back(G: Nodes, body: Body, wanted: tuple[int, ...], given: tuple[int, ...]) -> _WayBack:
    key = (G.symbol, body, wanted, given, config.deterministic)
    return _ways.find(key, lambda: _way_back(G, body, wanted, given))


def _reverse_of_call(F: Any, gs: Sequence[Any], y: Any, live: set[int]) -> list[Any]:
    body, name = y.attributes
    wanted = tuple(i for i, x in enumerate(y.inputs) if id(x) in live and is_inexact(x.dtype))
    given = {j: g for j, g in enumerate(gs) if g is not None}
    way = _known_way_back(F.for_bodies(y), body, wanted, tuple(given))
    whole = y if way.forward is body else F.call(y.inputs, body=way.forward, name=name)
    residuals = [F.pick(whole, index=i) for i in way.residuals]
    back = F.call([*residuals, *given.values(), *[y.inputs[i] for i in way.read]], body=way.back, name=f"{name} back")
    by_input = dict(zip(wanted, F.picks(back), strict=True))
    return [by_input.get(i) for i in range(len(y.inputs))]


def _forward_of_call(F: Any, tangents: Sequence[Any], y: Any) -> list[Any]:
    body, name = y.attributes
    given = [i for i, t in enumerate(tangents) if t is not None]
    wanted = [j for j, spec in enumerate(y.spec.parts) if is_inexact(spec.dtype)]
    along = _branch_along(F.for_bodies(y), body, given, wanted)
    found = F.picks(F.call([*y.inputs, *[tangents[i] for i in given]], body=along, name=f"{name} along"))
    by_result = dict(zip(wanted, found, strict=True))
    return [by_result.get(j) for j in range(len(y.spec.parts))]


BRANCH_RULES = BodyRules(_reverse_of_branches, _forward_of_branches)
CALL_RULES = BodyRules(_reverse_of_call, _forward_of_call)
