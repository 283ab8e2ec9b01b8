"""Functions of neural networks on named dimensions: one exported graph for every size, and written to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

N, T = nnc.Dim("n"), nnc.Dim("t")
RNG = np.random.default_rng(23)
WEIGHTS = nnc.RecurrentWeights(*[RNG.normal(size=s).astype(np.float32) for s in ((6, 8), (2, 8), (8,))])
TABLE = RNG.normal(size=(4, 3)).astype(np.float32)

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = {
    "gelu": (nnc.gelu, ((N, T),)), "glu": (nnc.glu, ((N, T, 4),)),
    "masked softmax": (lambda x: nnc.softmax(x, where=x > 0), ((N, T),)),
    "layer norm": (lambda x: nnc.layer_norm(x, axis=(0, 1)), ((N, T, 6),)),
    "batch norm": (lambda x: nnc.batch_norm_training(x).output, ((N, T, 6),)),
    "group norm": (lambda x: nnc.group_norm(x, 3), ((N, T, 6),)), "instance norm": (nnc.instance_norm, ((N, T, 6),)),
    "local response": (lambda x: nnc.local_response_norm(x, 3), ((N, T, 6),)),
    "cross entropy": (lambda x: nnc.cross_entropy(x, nnc.argmax(x, axis=-1), label_smoothing=0.1), ((N, T, 6),)),
    "kl": (lambda x, y: nnc.kl_div(x, nnc.softmax(y), reduction="batchmean"), ((N, T), (N, T))),
    "attention": (lambda *xs: nnc.scaled_dot_product_attention(*xs, causal=True),
                  ((N, 4, T, 6), (N, 2, T, 6), (N, 2, T, 5))),
    "attention in a window": (lambda *xs: nnc.scaled_dot_product_attention(*xs, window=(2, 1), softcap=2.0, offset=1),
                              ((N, 4, T, 6), (N, 2, T, 6), (N, 2, T, 5))),
    "heads": (lambda x: nnc.merge_heads(nnc.split_heads(x, 2)), ((N, T, 4),)),
    "lstm": (lambda x: nnc.lstm(x, [WEIGHTS, WEIGHTS], bidirectional=True)[0], ((T, N, 6),)),
    "lstm from the end": (lambda x: nnc.lstm(x, WEIGHTS, coupled=True, clip=1.0, reverse=True)[0], ((T, N, 6),)),
    "reversed": (lambda x, y: nnc.reverse_sequence(x, nnc.argmax(y, axis=-1), axis=1, batch_axis=0), ((N, T), (N, T))),
    "embedding": (lambda x: nnc.embedding(TABLE, nnc.argmax(x, axis=-1), padding_index=1), ((N, T, 4),)),
    "bags": (lambda x: nnc.embedding_bag(TABLE, nnc.argmax(x, axis=-1)), ((N, T, 4),)),
}  # fmt: skip


def exported(name: str) -> tuple[nnc.SymbolicGraph, list[tuple[Any, ...]]]:
    f, shapes = FUNCTIONS[name]
    symbols = {f"x{i}": nnc.var_arr(f"x{i}", shape=shape) for i, shape in enumerate(shapes)}
    return nnc.export(symbols, {"y": f(*symbols.values())}, capture="constant"), list(shapes)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_for_every_size(name: str) -> None:
    graph, shapes = exported(name)
    compiled = graph.compile("cpu:0")
    for n, t in ((3, 4), (2, 7)):
        sizes = {N: n, T: t}
        given = [RNG.normal(size=[sizes.get(d, d) for d in shape]).astype(np.float32) for shape in shapes]
        found = compiled(**{f"x{i}": x for i, x in enumerate(given)})["y"].numpy()
        wanted = FUNCTIONS[name][0](*map(nnc.asarray, given)).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["attention", "lstm", "gelu", "batch norm"])
def test_graphs_are_written_and_read(name: str, tmp_path: Path) -> None:
    graph, shapes = exported(name)
    nnc.save_graph(graph, tmp_path / "graph.nnc")
    again = nnc.load_graph(tmp_path / "graph.nnc").compile("cpu:0")
    given = {f"x{i}": RNG.normal(size=[3 if d in (N, T) else d for d in shape]).astype(np.float32)
             for i, shape in enumerate(shapes)}  # fmt: skip
    np.testing.assert_array_equal(again(**given)["y"].numpy(), graph.compile("cpu:0")(**given)["y"].numpy())
