"""Graphs and modules with storage dtypes in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import STORAGE, bits_of

pytest.importorskip("safetensors")


@pytest.mark.parametrize("dtype", STORAGE, ids=str)
def test_a_graph_with_constants_comes_back(tmp_path: Path, dtype: Any) -> None:
    weights = np.arange(12, dtype=np.uint8).view(np.uint8) & (2 ** bits_of(dtype) - 1)
    w = nnc.asarray(weights.view(dtype).reshape(3, 4))
    with nnc.deferred():
        x = nnc.asarray(np.ones((2, 3), np.float32))
        y = x @ w.astype("float32")
        q = nnc.bitcast(nnc.astype(y, "float8_e4m3fn", saturate=True), "uint8")
    graph = nnc.export({"x": x}, {"y": y, "q": q}, capture="constant")
    nnc.save_graph(graph, tmp_path / "graph.nnc")
    back = nnc.load_graph(tmp_path / "graph.nnc")
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    ours, theirs = (g.compile()(x=x) for g in (graph, back))
    for name in ("y", "q"):
        np.testing.assert_array_equal(np.asarray(theirs[name]), np.asarray(ours[name]))
    assert dtype.name in str(back)


def test_numbers_in_graphs_keep_their_bits(tmp_path: Path) -> None:
    with nnc.deferred():
        x = nnc.asarray(np.ones(3, np.float32)).astype("float8_e5m2")
        y = nnc.pad(x, 2, value=nnc.asarray(-6.0, dtype="float8_e5m2"))
    graph = nnc.export({"x": x}, {"y": y}, capture="constant")
    nnc.save_graph(graph, tmp_path / "graph.nnc")
    x = np.array([1, 2, -3], np.float32).astype(nnc.float8_e5m2)
    found = nnc.load_graph(tmp_path / "graph.nnc").compile()(x=x)["y"]
    assert np.asarray(found).astype(np.float32).tolist() == [-6, -6, 1, 2, -3, -6, -6]
