"""Kernels of many tests, compiled together: a compiler takes longer to start than to compile one of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from nnc_core.base.errors import Error
from nnc_core.base.layout import Layout
from nnc_core.device import NO_VIEWS, Kernel
from nnc_core.engine.build import Key, Wanted
from nnc_core.engine.decide import Decision
from nnc_core.engine.pinned_backends import NEST
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT, OPERATORS
from nnc_core.operator.control import PICK
from nnc_core.stacks import Stack
from nnc_core.type import TupleSpec
from nnc_plugins.conformance.case import Case
from nnc_plugins.conformance.running import (
    command_of,
    compiles_slowly,
    has_room,
    one_operator_graph,
    spec_of,
    viewed,
)

AT_ONCE = 64
"""Kernels that are compiled together, and kept until the next ones are."""


class Ahead:
    """Compiles what the next tests of operators need when the first of them runs.

    What cannot be compiled is left to its test, which says so.
    """

    def __init__(self, stack: Stack, seed: int, *, isolated: bool) -> None:
        self.stack, self.seed = stack, seed
        self.pays = compiles_slowly(stack.device) and not isolated
        """Not where a compiler is expected to end the process: the test at fault would be another."""
        self._kernels: dict[Key, Kernel] = {}
        self._covered: set[str] = set()

    def reach(self, item: pytest.Item) -> None:
        """Have the kernels of a test that is to run now, compiled with those of the tests behind it."""
        if not self.pays or item.nodeid in self._covered:
            return
        items, wanted = item.session.items, dict[Key, Wanted]()
        self._kernels, self._covered = {}, set()
        for later in items[items.index(item) :]:
            callspec: Any = getattr(later, "callspec", None)
            if callspec is not None and {"name", "dtype"} <= callspec.params.keys():
                with suppress(Error):
                    wanted |= {d.key: Wanted(d) for d in self._decisions(**callspec.params) if d.backend == NEST}
            self._covered.add(later.nodeid)
            if len(wanted) >= AT_ONCE:
                break
        with suppress(Error):
            self.stack.engine.builder.build(wanted.values(), self._kernels)

    def _decisions(self, name: str, dtype: Any, share: Sequence[Case] = (), case: Case | None = None,
                   how: str = "") -> Iterator[Decision]:
        """Decisions of the commands of a test with these parameters; operands are views where it is for one case."""
        op, rng, stack = OPERATORS[name], np.random.default_rng(self.seed), self.stack
        for each in share if case is None else (case,):
            inputs = each.inputs(rng, dtype)  # drawn as the test draws them
            if any(x.dtype.name not in stack.device.spec.dtypes for x in inputs) or not has_room(stack.device, inputs):
                continue
            graph = one_operator_graph(stack, op, inputs, each.attribute_values(op, dtype))
            if how == "compiled":
                yield from compiled_commands(stack, graph)
            else:
                layouts = [spec_of(x).layout() for x in inputs] if case is None else [
                    stack.device.layout_of(viewed(stack, x).array) for x in inputs]
                yield from eager_commands(stack, graph, layouts)


def compiled_commands(stack: Stack, graph: SymbolicGraph) -> Iterator[Decision]:
    """Decisions of the commands of a compiled graph."""
    phases = stack.engine.phases
    _, _, plan = phases.plan(phases.rewrite(graph, optimise=True), 0)
    for step in plan.steps:
        yield step.decision


def eager_commands(stack: Stack, graph: SymbolicGraph, layouts: Sequence[Layout]) -> Iterator[Decision]:
    """Decisions of the commands that run operators one by one, composites by their parts, on inputs that lie so."""
    views = NO_VIEWS not in stack.device.spec.features
    lie: dict[Any, Any] = dict(zip(graph.inputs.values(), layouts, strict=True))
    for node in stack.engine.phases.expand(graph).nodes:
        if node in lie:
            continue
        given = [lie[x] for x in node.inputs]
        if node.op is PICK:
            lie[node] = given[0][node.attributes[0]]
            continue
        parts = node.spec.parts if isinstance(node.spec, TupleSpec) else None
        lie[node] = node.spec.layout() if parts is None else tuple(x.layout() for x in parts)
        seen = node.op.view(given[0], *node.attributes) if views and node.op.view is not None else None
        if seen is not None:
            lie[node] = seen
        elif node.op is not CONSTANT:
            yield stack.engine.decider.decide(node.op, command_of(stack, node.op, given, node.attributes))
