"""Fixtures of this folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.graph import SymbolicGraph
from nnc_core.io import save_graph
from nnc_core.symbol import Literal
from nnc_core.type import TensorSpec
from tests.graph.graph_files import F4
from tests.graph.stack import new_namespace


@pytest.fixture
def small(tmp_path: Path) -> Path:
    F = new_namespace()
    x = F.placeholder("x", F4)
    F.table.line = "model.py:3"
    shifted = F.add(x, F.constant(Literal(np.arange(3, dtype=np.float32)), TensorSpec((3,), dt.float32)))
    graph = SymbolicGraph({"x": x}, {"y": F.sum(F.pad(shifted, low=(1, 0), high=(0, 0), interior=(0, 0)), axis=(1,))})
    save_graph(graph, tmp_path / "small.nnc")
    return tmp_path / "small.nnc"
