"""Graphs that join values, run with what they copy counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from tests.engine.plan_checker import check_plan

X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)


def watched(run: ComputationGraph, given: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """A second run of a plan that was checked; `given` are what its inputs hold."""
    assert check_plan(run)
    for _ in range(2):
        found = run.run({k: run.executor.upload(given[k]) for k in run.graph.inputs})
    return {k: run.executor.download(a) for k, a in found.items()}


def joined(stack: Stack, F: Nodes, inputs: Sequence[Node], **outputs: Node) -> ComputationGraph:
    """Compiled as it is written, under watch."""
    run: ComputationGraph = stack.engine.compile(
        SymbolicGraph({f"x{i}": x for i, x in enumerate(inputs)}, outputs), optimise=False)
    return run
