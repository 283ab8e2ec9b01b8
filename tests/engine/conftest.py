"""A stack on the strict device, and graphs written node by node."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack, stack_for
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec

Run = Callable[..., dict[str, np.ndarray[Any, Any]]]


FUSED = {"test_fusion", "test_fusion_mistakes", "test_random_flow", "test_branch_gradients", "test_failing_steps",
         "test_joined_operators", "test_padded_operators", "test_refused_programs", "test_fused_lines", "test_offers",
         "test_layout", "test_notes"}
"""Modules in whose tests operators are joined as they are for users; the others say which commands there are."""


@pytest.fixture(autouse=True)
def _a_command_for_each_operator(request: pytest.FixtureRequest) -> Iterator[None]:
    with config.using(fusion=request.module.__name__.rpartition(".")[2] in FUSED):
        yield


@pytest.fixture
def stack() -> Stack:
    return stack_for("strict:0")


@pytest.fixture
def F(stack: Stack) -> Nodes:  # noqa: N802
    return stack.operator.open()


def floats(F: Nodes, name: str, *shape: int) -> Node:
    return F.placeholder(name, TensorSpec(shape, float32))


def graph(inputs: dict[str, Node], outputs: dict[str, Node], *pairs: tuple[str, str]) -> SymbolicGraph:
    return SymbolicGraph(inputs, outputs, pairs)


def call(compiled: ComputationGraph, **given: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Host arrays in and out."""
    executor = compiled.executor
    arrays = {k: executor.upload(np.asarray(v)) for k, v in given.items()}
    return {k: executor.download(a) for k, a in compiled.run(arrays).items()}
