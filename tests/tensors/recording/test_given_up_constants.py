"""Constants of exported graphs: whose memory they lie in, and graphs that give them up to what they are compiled to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, GraphError
from nnc_core.operator import CONSTANT
from nnc_core.recording import compilation
from nnc_core.symbol import Literal
from tests.support import numbers

SHAPE = 2, 9, 9, 16


def network() -> Any:
    """Large enough for kernels to be packed; the moments of the norm are folded into one of them."""
    nnc.manual_seed(0)
    made = nn.Sequential(nn.Conv2d(16, 48, 3, bias=False), nn.BatchNorm(48), nn.ReLU(), nn.Conv2d(48, 64, 3),
                         nn.Flatten(), nn.Linear(5 * 5 * 64, 10)).eval()
    for buffer in made.named_buffers().values():
        buffer.write(nnc.asarray(1.5 + numbers(*buffer.spec.static_shape) / 4))
    return made


def exported(module: Any) -> Any:
    x = nnc.var_arr("x", SHAPE)
    return nnc.export({"x": x}, {"y": module(x)}, capture="constant")


def literals(graph: Any) -> list[Literal]:
    return [node.attributes[0] for node in graph.nodes if node.op is CONSTANT]


def result(run: Any) -> Any:
    return run(x=nnc.asarray(numbers(*SHAPE)))["y"].numpy()


def test_what_takes_the_constants_over_computes_the_same(device: str) -> None:
    module = network()
    kept, given_up = result(exported(module).compile()), result(exported(module).compile(consume=True))
    assert np.array_equal(kept, given_up)
    np.testing.assert_allclose(given_up, module(nnc.asarray(numbers(*SHAPE))).numpy(), rtol=1e-4, atol=1e-4)


def test_a_graph_whose_constants_were_given_up_says_so(device: str) -> None:
    graph = exported(network())
    run = graph.compile(consume=True)
    first = result(run)
    with pytest.raises(GraphError, match="given up to what it was compiled to"):
        graph.compile()
    assert np.array_equal(result(run), first), "the result needs its graph no more"
    assert str(run.profile(x=nnc.asarray(numbers(*SHAPE))))


def test_after_a_failure_nothing_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = exported(network())

    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(compilation, "CompiledGraph", fail)
        graph.compile(consume=True)
    assert not any(literal.spare for literal in literals(graph))


def test_a_graph_that_is_compiled_for_each_size_gives_nothing_up() -> None:
    x = nnc.var_arr("x", (nnc.Dim("batch"), *SHAPE[1:]))
    graph = nnc.export({"x": x}, {"y": x * nnc.asarray(numbers(16))}, capture="constant")
    with pytest.raises(AttributeValueError, match="for each size that comes"):
        graph.compile(consume=True)
    assert result(graph.compile()).shape == SHAPE


def test_a_constant_that_two_read_is_there_for_both() -> None:
    w = nnc.asarray(numbers(3, 3, 16, 64))
    x = nnc.var_arr("x", SHAPE)
    scale, options = nnc.asarray(numbers(64)), {"padding": "SAME"}
    y = nnc.conv2d(x, w, **options) * scale + nnc.conv2d(nnc.exp(x), w, **options)
    graph, again = (nnc.export({"x": x}, {"y": y}, capture="constant") for _ in range(2))
    assert np.array_equal(result(graph.compile(consume=True)), result(again.compile()))


# ---- whose memory
def test_constants_lie_where_their_tensors_do() -> None:
    w = nnc.asarray(numbers(16, 3))
    x = nnc.var_arr("x", SHAPE)
    [literal] = literals(nnc.export({"x": x}, {"y": x @ w}, capture="constant"))
    assert np.shares_memory(literal.array, np.from_dlpack(w))
    assert not literal.array.flags.writeable


def test_weights_that_are_trained_on_do_not_change_what_was_exported() -> None:
    cell = nnc.Cell(nnc.asarray(numbers(16)))
    x = nnc.var_arr("x", SHAPE)
    graph = nnc.export({"x": x}, {"y": x * cell.read()}, capture="constant")
    expected = result(graph.compile())

    @nnc.jit
    def step() -> None:
        cell.write(cell.read() * 2)

    for _ in range(3):
        step()
    assert np.array_equal(result(graph.compile()), expected)


def test_borrowed_memory_is_copied() -> None:
    array = numbers(16)
    w = nnc.asarray(array, copy=False)
    x = nnc.var_arr("x", SHAPE)
    graph = nnc.export({"x": x}, {"y": x * w}, capture="constant")
    expected = result(graph.compile())
    array[:] = 0
    assert np.array_equal(result(graph.compile()), expected)
