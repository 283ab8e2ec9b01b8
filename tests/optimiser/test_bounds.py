"""The bounds that inexact results are held to: wide enough for what is right, and no wider."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.operator import Nodes
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from tests.graph.evaluate import evaluate
from tests.graph.stack import new_namespace
from tests.optimiser.bounds import assert_within

X = np.array([0.3, -1.7, 2.5, 1e-3], np.float32)


def built(build: Any, value: Any = X) -> tuple[Node, dict[Node, Any], Any]:
    F = new_namespace()
    x = F.placeholder("x", TensorSpec(value.shape, value.dtype))
    y = build(F, x)
    return y, {x: value}, evaluate([y], {x: value})[0]


def accepts(build: Any, got: Any, value: Any = X) -> bool:
    y, values, wanted = built(build, value)
    try:
        assert_within(y, values, wanted, np.asarray(got(wanted)).astype(wanted.dtype))
    except AssertionError as error:
        assert "instead of" in str(error)
        return False
    return True


def several(F: Nodes, x: Node) -> Node:
    return F.tanh(F.multiply(F.exp(x), 0.5))


def cancelling(F: Nodes, x: Node) -> Node:
    return F.subtract(F.add(F.exp(x), 1e4), 1e4)


@pytest.mark.parametrize(("build", "right", "wrong"), [
    (several, lambda y: y * np.float32(1 + 4e-7), lambda y: y * np.float32(1 + 2e-5)),
    (cancelling, lambda y: y + 1e-3, lambda y: y + 0.1),
    (lambda F, x: F.sum(x, axis=(0,)), lambda y: y * np.float32(1 + 1e-6), lambda y: y * np.float32(1.01)),
    (lambda F, x: F.permute(F.reshape(x, shape=(2, 2)), axes=(1, 0)), lambda y: y, lambda y: y * np.float32(1 + 2e-7)),
    (lambda F, x: F.greater(F.exp(x), 1.0), lambda y: y, lambda y: ~y),
    (lambda F, x: F.argsort(F.exp(x), axis=0, descending=False), lambda y: y, lambda y: y[::-1]),
])
def test_a_few_roundings_pass_and_more_do_not(build: Any, right: Any, wrong: Any) -> None:
    assert accepts(build, right) and not accepts(build, wrong)


def test_what_hangs_by_a_thread_binds_nobody() -> None:
    """The number below log(exp(2)) is 2 or 1; nothing makes it -5."""
    four = np.array([4.0, 9.0], np.float32)

    def thread(F: Nodes, x: Node) -> Node:
        return F.floor(F.log(F.exp(F.sqrt(x))))

    y = built(thread, four)[2]
    assert accepts(thread, lambda _: np.array([1.0, y[1]]), four) and accepts(thread, lambda _: [2.0, y[1]], four)
    assert not accepts(thread, lambda _: np.array([-5.0, y[1]]), four)


def test_no_number_is_another_thing_than_a_number() -> None:
    value = np.array([np.nan, 1.0], np.float32)
    assert not accepts(several, np.nan_to_num, value) and accepts(several, lambda y: y, value)


def test_algebra_may_avoid_an_overflow() -> None:
    big = np.array([200.0], np.float32)
    assert accepts(lambda F, x: F.log(F.exp(x)), lambda _: big, big)


def test_shapes_and_dtypes_are_never_a_matter_of_rounding() -> None:
    y, values, wanted = built(several)
    for other in (wanted[:2], wanted.astype(np.float64)):
        with pytest.raises(AssertionError):
            assert_within(y, values, wanted, other)


def test_dtypes_of_few_bits_have_wider_bounds() -> None:
    half = X.astype(dt.float16)
    assert accepts(several, lambda y: y * 1.004, half) and not accepts(several, lambda y: y * 1.2, half)
