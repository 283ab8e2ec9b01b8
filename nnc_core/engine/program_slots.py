"""The slots of a compiled graph: which change with each call, and what the others hold."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.engine.emit import Emitter
from nnc_core.engine.plan_types import Plan
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import PLACEHOLDER
from nnc_core.symbol import Node

SMALL = 1 << 20
"""Bytes of an array that stays bound after a call, so that the next call with it need not bind it again."""
LENT = frozenset({"input", "output", "pointer"})
"""Kinds of storages whose buffers are the caller's: a program that waits for its next call keeps no large ones, and no
window on one, but for blocks of the pool, on which its callers have claims of their own."""


class Slots:
    """Numbers of slots by what is in them."""

    def __init__(self, graph: SymbolicGraph, outputs: Mapping[str, Node], plan: Plan, emitter: Emitter) -> None:
        place = plan.place
        given = {k: place[node] for k, node in graph.inputs.items() if node in place}
        self.inputs = {k: emitter.slot(p.storage) for k, p in given.items()}
        self.layouts = [p.layout for p in given.values()]
        """Those of the inputs."""
        self.constants = {node: emitter.slot(p.storage) for node, p in place.items() if p.storage.kind == "constant"
                          and not node.inputs and node.op is not PLACEHOLDER}
        donated = set(plan.donated.values())
        self.overwritten = {slot for k, slot in self.inputs.items() if graph.inputs[k] in donated}
        self.outputs = {k: (emitter.slot(place[node].storage), place[node].layout) for k, node in outputs.items()}
        for storage in plan.arena:
            emitter.slot(storage)
        self.of = emitter.slots
        self.fresh = {slot: s.nbytes for s, slot in self.of.items() if s.kind == "output"}
        self.pushed = {slot: s.nbytes for s, slot in self.of.items() if s.kind == "pushed"}
        self.tapes = [slot for s, slot in self.of.items() if s.kind == "tape"]
        self.lent = [slot for s, slot in self.of.items()
                     if s.kind == "window" or (s.kind in LENT and not 0 < s.nbytes < SMALL)]

    @property
    def are_arrays(self) -> bool:
        """Tell whether all that comes and goes is an array with memory of its own: no tape, no window, and no two
        inputs in one."""
        distinct = len({*self.inputs.values()}) == len(self.inputs)
        return distinct and all(self.fresh.values()) and {s.kind for s in self.of} <= {
            "input", "output", "constant", "arena"}
