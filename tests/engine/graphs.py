"""Straight-line graphs scheduled and planned without being compiled, and networks in miniature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core.engine.fusion import fuse
from nnc_core.engine.groups import with_own_outputs
from nnc_core.engine.plan_types import Plan, arena_bound
from nnc_core.engine.planning import make_plan
from nnc_core.engine.program_tree import ProgramTree
from nnc_core.engine.schedule import Scheduler
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.footprint import Footprint
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import Stack
from nnc_core.symbol import Node, postorder


class Scheduled:
    """A graph without control flow, as the engine would run it: nothing optimised, composites written out."""

    def __init__(self, stack: Stack, graph: SymbolicGraph) -> None:
        self.decider, self.device = stack.engine.decider, stack.device
        graph = stack.graph.expand(graph, lambda node: not stack.engine.phases.claims(node))
        outputs = with_own_outputs(graph.outputs)
        self.outputs = list(outputs.values())
        self.updates: Mapping[Node, Node] = {outputs[y]: graph.inputs[x] for y, x in graph.iopairs}
        self.groups = fuse(postorder(self.outputs), self.outputs, self.decider)

    def commands(self) -> Commands:
        return Commands(self.groups, self.outputs, self.updates, self.decider)

    def tree(self, *, as_written: bool = False) -> ProgramTree:
        return Scheduler(self.decider, as_written=as_written).tree(self.groups, self.outputs, self.updates)

    def plan(self, tree: ProgramTree) -> Plan:
        return make_plan(tree, self.outputs, self.updates, self.decider)

    def bound(self, tree: ProgramTree) -> int:
        return arena_bound(self.plan(tree), self.device)

    def footprint(self, joins: Joins | None = None) -> Footprint:
        commands = self.commands()
        return Footprint(commands, joins or Joins(dict(commands.layouts)), lambda group: 0)



def optimum(commands: Commands, footprint: Footprint) -> int:
    """The least of all orders, each tried."""
    return min(footprint.bound(order) for order in all_orders(commands, [], set()))


def all_orders(commands: Commands, begun: list[int], done: set[int]) -> Iterator[list[int]]:
    if len(begun) == len(commands.groups):
        yield begun
    for n, needed in enumerate(commands.before):
        if n not in done and done.issuperset(needed):
            yield from all_orders(commands, [*begun, n], done | {n})


def keeps(commands: Commands, order: Sequence[int]) -> bool:
    """Whether nothing comes before what it has to wait for."""
    place = {n: at for at, n in enumerate(order)}
    return sorted(order) == list(range(len(commands.groups))) and all(
        place[m] < place[n] for n, needed in enumerate(commands.before) for m in needed)


# ---- networks
def weights(rng: np.random.Generator, *shape: int) -> np.ndarray[Any, Any]:
    return (rng.normal(size=shape) * 0.1).astype(np.float32)


def conv(x: Any, kernel: Any) -> Any:
    return nnc.conv2d(x, nnc.asarray(kernel), padding="SAME", layout="NCHW")


def dense_block(x: Any, kernels: Sequence[Any]) -> Any:
    """Each layer sees all features so far (DenseNet)."""
    features = [nnc.relu(x * 2.0)]
    for narrow, wide in kernels:
        seen = nnc.relu(nnc.concat(features, axis=1) * 1.5)
        features.append(conv(nnc.relu(conv(seen, narrow)), wide))
    return nnc.mean(nnc.concat(features, axis=1), axis=(2, 3))


def dense_kernels(rng: np.random.Generator, layers: int, channels: int, growth: int) -> list[Any]:
    return [(weights(rng, growth, channels + i * growth, 1, 1), weights(rng, growth, growth, 3, 3))
            for i in range(layers)]


def inception(x: Any, kernels: Sequence[Any]) -> Any:
    """Branches of different depth that are joined, twice; the second joins what has been joined."""
    a, b1, b2, c = kernels
    h = nnc.sin(x)
    left = nnc.relu(conv(h, a) + 0.1)
    middle = nnc.tanh(conv(nnc.relu(conv(h, b1)), b2))
    right = nnc.relu(conv(nnc.max_pool2d(h, (3, 3), strides=(1, 1), padding="SAME", layout="NCHW"), c))
    both = nnc.concat([left, middle], axis=1)
    return nnc.mean(nnc.concat([both, right], axis=1) * both[:, :1], axis=(2, 3))


def inception_kernels(rng: np.random.Generator, channels: int) -> list[Any]:
    return [weights(rng, 24, channels, 1, 1), weights(rng, 4, channels, 1, 1), weights(rng, 24, 4, 3, 3),
            weights(rng, 24, channels, 1, 1)]
