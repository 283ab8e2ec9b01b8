"""Symbols of unknown shape: what Python asks of them, and errors, which name the user's line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.errors import ShapeError, UnknownShapeError
from tests.tensors.faults import fails
from tests.tensors.symbols.unshaped import host, value

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")  # linear algebra
# ---- what Python asks
QUESTIONS: dict[str, Callable[[nnc.Tensor], Any]] = {
    "shape": lambda x: x.shape, "ndim": lambda x: x.ndim, "size": lambda x: x.size, "spec": lambda x: x.spec,
    "len": len, "iteration": list, "static_shape": lambda x: x.static_shape,
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_python_must_know_is_known_after_assign(device: str, name: str) -> None:
    ask = QUESTIONS[name]
    x = nnc.var_arr("weights")
    y = nnc.tanh(x * 2)
    for t in (x, y):
        with fails(UnknownShapeError, "'weights'", "before an array is assigned", "nnc.var_arr", "nnc.assign"):
            ask(t)
    nnc.assign(x, host(2, 3))
    for t in (x, y):
        found, wanted = ask(t), ask(nnc.asarray(host(2, 3)))
        if name == "iteration":
            assert [value(row).shape for row in found] == [(3,), (3,)]
        else:
            assert found == wanted


def test_truth_and_numbers_are_refused_as_of_every_symbol(device: str) -> None:
    x = nnc.var_arr("x")
    for ask in (bool, float, int, lambda x: x.numpy(), lambda x: x.item()):
        with fails(TypeError, "'x'"):
            ask(x)
    with fails(NotImplementedError, "symbol 'x' float32 of unknown shape"):
        x[0] = 1.0
    with fails(UnknownShapeError, "unstack", "'x'"):
        list(nnc.unstack(x))
    with fails(UnknownShapeError, "'x'"):
        nnc.jit(lambda y: y + x)(nnc.ones(2))
    assert repr(x).startswith("Tensor(symbol, 'x' float32 of unknown shape") and "unknown shape" in repr(x + 1)


def test_a_number_that_python_has_read_does_not_follow(device: str) -> None:
    """What was written before the reading follows; what was written after it says that it cannot."""
    x = nnc.var_arr("x")
    before = nnc.sum(x)
    nnc.assign(x, np.ones((2, 2)))
    after = nnc.sum(x) / x.shape[0]
    assert value(after) == 2
    nnc.assign(x, np.ones((4, 4)))
    assert value(before) == 16
    with fails(ShapeError, "read the shape of 'x'", "float32[2,2]", "float32[4,4]", operator="divide"):
        nnc.eval_arr([after])
    again = nnc.sum(x) / x.shape[0]
    assert value(again) == 4
    nnc.assign(x, np.ones((2, 2)))
    assert value(after) == 2


# ---- errors
def test_errors_name_the_line_where_it_was_written_and_the_symbols(device: str) -> None:
    x, w = nnc.var_arr("x"), nnc.var_arr("weights")
    y = nnc.exp(x) @ w  # this line
    nnc.assign(x, host(2, 3))
    nnc.assign(w, host(4, 5))
    with pytest.raises(ShapeError) as caught:
        nnc.eval_arr([nnc.sum(y)])
    error = caught.value
    assert error.operator == "matmul" and "this line" in Path(__file__).read_text().splitlines()[line_of(error) - 1]
    assert error.symbols == "x float32[2,3], weights float32[4,5]" and "float32[2,3]" in str(error)
    nnc.assign(w, host(3, 5))
    assert value(y).shape == (2, 5), "it can be mended"


def line_of(error: nnc.Error) -> int:
    assert error.line is not None
    return int(error.line.split(":")[1].split()[0])


def test_errors_name_the_public_function(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.layer_norm(x, nnc.ones(5), nnc.zeros(5))
    z = x[5]
    nnc.assign(x, host(2, 4))
    with fails(ValueError, "float32[2,4]", "symbols: x float32[2,4]", operator="layer_norm"):
        nnc.eval_arr([y])
    with fails(IndexError, "index 5", operator="getitem"):
        nnc.eval_arr([z])


def test_errors_in_the_users_functions_keep_their_lines(device: str) -> None:
    x = nnc.var_arr("x")

    def loss(y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(y @ nnc.ones((7, 1)))  # here

    g = nnc.grad(loss)(x)
    nnc.assign(x, host(2, 4))
    with pytest.raises(ShapeError) as caught:
        nnc.eval_arr([g])
    assert "# here" in Path(__file__).read_text().splitlines()[line_of(caught.value) - 1]


def test_other_results_than_expected_are_said_to_be_so(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.cond(nnc.sum(x) > 0, lambda a: a * 2, lambda a: a, x)

    def by_rank(a: nnc.Tensor) -> Any:
        return (a, a) if a.ndim == 2 else a

    with fails(UnknownShapeError, "'x'"):
        nnc.vmap(by_rank)(x)
    nnc.assign(x, host(2))
    assert value(y).shape == (2,)
