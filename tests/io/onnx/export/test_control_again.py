"""Loops and branches that were read are written as they were, whether or not their rounds are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.io import load_onnx
from tests.io.onnx.export.evaluating import by_reference, check
from tests.io.onnx.export.test_again import Calls, written_twice
from tests.io.onnx.models import graph, model, node, value
from tests.support import leaves


def small(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(nnc.abs(x)) < 100


def three(x: nnc.Tensor) -> Any:
    """The number of one of three branches."""
    return nnc.argmax(nnc.sum(x, axis=0)) % 3


Z = nnc.zeros((5, 4))
FUNCTIONS: dict[str, tuple[Callable[[nnc.Tensor], Any], list[str]]] = {
    "few rounds": (lambda x: nnc.scan(lambda c, _: (c * 2 + x, None), x, length=3)[0], ["Loop"]),
    "from what is known": (lambda x: nnc.scan(lambda c, _: (c * 2 + x, None), Z, length=3)[0], ["Loop"]),
    "one round": (lambda x: nnc.scan(lambda c, _: (c * 2 + x, None), Z, length=1)[0], ["Loop"]),
    "rows kept": (lambda x: nnc.scan(lambda c, _: (c * 0.5 + x, c[:1] * 2), x, length=12), ["Loop"]),
    "rows kept in reverse": (lambda x: nnc.scan(
        lambda c, _: (c * 0.5 + x, c[:1] * 2), x, length=12, reverse=True), ["Loop", "Slice"]),
    "rows read": (lambda x: nnc.scan(lambda c, row: (c * 2 + row, c - row), nnc.zeros(4), x), ["Scan"]),
    "each": (lambda x: nnc.foreach(lambda row, c: (row * c, c + row), x, nnc.ones(4)), ["Scan"]),
    "mapped": (lambda x: nnc.map(lambda row: nnc.max(row) * row, x), ["Scan"]),
    "while": (lambda x: nnc.while_loop(
        small, lambda s: (s * 2 + 1,), (nnc.abs(x),))[0], ["Abs", "Abs", "ReduceSum", "Less", "Loop"]),
    "while both": (lambda x: nnc.while_loop(
        lambda i, s: nnc.logical_and(i < 7, small(s)), lambda i, s: (i + 1, s * 2 + 1), (nnc.asarray(0), x)), []),
    "counted by itself": (lambda x: nnc.while_loop(
        lambda i, s: i < 7, lambda i, s: (i + 1, s * 0.5 + x), (nnc.asarray(0), Z))[1], ["Loop"]),
    "asked for its count": (lambda x: nnc.while_loop(
        lambda i, s: small(s), lambda i, s: (i + 1, s * 2 + 1), (nnc.asarray(0), x))[0], []),
    "a condition carried": (lambda x: nnc.while_loop(
        lambda on, s: on, lambda on, s: (small(s), s * 2 + nnc.where(on, 1.0, 2.0)), (small(x), x)), []),
    "a condition carried twice": (lambda x: nnc.while_loop(
        lambda on, old, s: on, lambda on, old, s: (small(s), on, s * 2 + nnc.where(old, 1.0, 2.0)),
        (small(x), small(x), x)), []),
    "a loop in a loop": (lambda x: nnc.scan(lambda c, row: (nnc.while_loop(
        small, lambda s: (s * 2 + row,), (nnc.abs(c) + 1,))[0], c), nnc.zeros(4), x), ["Scan"]),
    "a branch in a loop": (lambda x: nnc.while_loop(small, lambda s: (nnc.cond(
        nnc.max(s) < 5, lambda y: y * 2 + 1, lambda y: y + 30, s),), (x,))[0], ["Abs", "ReduceSum", "Less", "Loop"]),
    "a loop in a branch": (lambda x: nnc.cond(nnc.sum(x) > 0, lambda y: nnc.scan(
        lambda c, _: (c * 2 + y, None), y, length=3)[0], lambda y: y, x), ["ReduceSum", "Greater", "If"]),
    "a branch in a branch": (lambda x: nnc.cond(nnc.sum(x) > 0, lambda y: nnc.cond(
        nnc.max(y) > 2, lambda z: z, lambda z: z + x, y), lambda y: y + 1, x), ["ReduceSum", "Greater", "If"]),
    "branches that read around them": (lambda x: (lambda t: nnc.cond(
        nnc.sum(x) > 0, lambda: t * 2, lambda: x + t))(nnc.exp(x)), []),
    "several branches": (lambda x: nnc.case_of(
        three(x), [lambda y: (y, y), lambda y: (y + 1, -y), lambda y: (y * x, y)], (x,)), []),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_control_that_was_read_is_written_as_it_was(name: str) -> None:
    function, operators = FUNCTIONS[name]
    first, again = written_twice(Calls(function), [(5, 4)])
    check(first)
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    if operators:
        assert [n.op_type for n in first.graph.node] == operators
    x = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    wanted = [np.asarray(y) for y in leaves(function(nnc.asarray(x)))]
    module = load_onnx(first.SerializeToString())
    for found in (by_reference(first, {"x": x}), leaves(module(x)), leaves(nnc.jit(module)(x))):
        for a, b in zip(found, wanted, strict=True):  # ONNX' evaluator joins rows, instead of stacking them
            np.testing.assert_allclose(np.reshape(np.asarray(a), b.shape), b, rtol=1e-4, atol=1e-5)


def test_as_many_rounds_as_a_named_size() -> None:
    def summed(x: nnc.Tensor) -> Any:
        return nnc.scan(lambda c, _: (c * 0.5 + nnc.sum(x), c[:1]), nnc.zeros(4), length=x.shape[0])[1]

    first, again = written_twice(Calls(summed), [("n", 4)])
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    for n in (1, 6):
        x = np.ones((n, 4), np.float32)
        np.testing.assert_allclose(by_reference(first, {"x": x})[0].reshape(n, 1), np.asarray(summed(nnc.asarray(x))))


@pytest.mark.parametrize("rounds", [0, 3])
def test_without_a_condition_that_of_the_body_does_not_count(rounds: int) -> None:
    """As the standard has it: a count alone says how often a loop goes round, known or not."""
    body = graph([node("Constant", "", "one", value_float=1.0), node("Add", "c one", "d"), node("Less", "d one", "no")],
                 [value("i", np.int64, []), value("on", bool, []), value("c", np.float32, [])],
                 [value("no", bool, []), value("d", np.float32, [])])
    counted = model([node("Loop", "n _ x", "y", body=body)],
                    [value("n", np.int64, []), value("x", np.float32, [])], [value("y", np.float32, [])])
    module = load_onnx(counted.SerializeToString())
    n, x = np.int64(rounds), np.float32(2)
    for run in (module, nnc.jit(module)):
        np.testing.assert_array_equal(np.asarray(run(n, x)), rounds + 2)
    loop = nnc.jit(lambda n, x: module(n, x))
    np.testing.assert_array_equal(np.asarray(loop(nnc.asarray(n), nnc.asarray(x))), rounds + 2)
