"""Errors name the function that was called, not the operators that it is made of; what others wrote keeps its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.errors import Error, LinAlgError, OutOfRangeError
from nnc_core.symbol import show_line

X, Y, BOOLS, PLACES = np.ones((4, 2)), np.ones(3), np.array([True]), np.array([9])
CALLS: dict[str, Callable[..., Any]] = {
    "square": lambda: nnc.square(nnc.asarray(BOOLS)),
    "outer": lambda: nnc.outer(nnc.asarray(BOOLS), nnc.asarray(BOOLS)),
    "kron": lambda: nnc.kron(nnc.asarray(BOOLS), nnc.asarray(BOOLS)),
    "dot": lambda: nnc.dot(nnc.asarray(X), nnc.asarray(Y)),
    "top_k": lambda: nnc.top_k(nnc.asarray(np.array([1j])), 1),
    "clip": lambda: nnc.clip(nnc.asarray(X), nnc.asarray(Y), nnc.asarray(Y)),
    "split": lambda: nnc.split(nnc.asarray(X), 3),
}
READS: dict[str, Callable[..., Any]] = {
    "take": lambda: nnc.take(nnc.asarray(X), nnc.asarray(PLACES), axis=0),
    "index_select": lambda: nnc.index_select(nnc.asarray(X), 0, nnc.asarray(PLACES)),
    "gather": lambda: nnc.gather(nnc.asarray(X), 0, nnc.asarray([[9]])),
    "embedding": lambda: nnc.embedding(nnc.asarray(X), nnc.asarray(PLACES)),
}
"""Out of range, which the default device sees."""


@pytest.mark.parametrize("name", CALLS)
def test_the_function_is_named(name: str, device: str) -> None:
    for way in (lambda f: f(), lambda f: nnc.jit(f)()):
        with pytest.raises(Error) as caught:
            way(CALLS[name])
        assert caught.value.operator == name
        assert "test_error_names.py" in str(caught.value.line)


@pytest.mark.parametrize("name", READS)
def test_so_it_is_where_a_kernel_refuses(name: str) -> None:
    with nnc.use_device("cpu"), pytest.raises(OutOfRangeError) as caught:
        READS[name]()
    assert caught.value.operator == name
    assert "Layout(" not in str(caught.value)


def test_the_operator_is_said_with_its_operands() -> None:
    with pytest.raises(Error, match=r"^square: .*\n  inputs: bool\[1\], bool\[1\] of multiply"):
        CALLS["square"]()


def test_an_operator_called_by_its_own_name_is_said_once() -> None:
    with pytest.raises(Error) as caught:
        nnc.multiply(nnc.asarray(BOOLS), nnc.asarray(BOOLS))
    assert caught.value.operator == "multiply" and " of " not in str(caught.value).splitlines()[1]


def test_deferred_work_that_is_computed_on_the_way_keeps_its_name() -> None:
    with nnc.use_device("cpu"):
        with nnc.deferred():
            found = nnc.take(nnc.asarray(X), nnc.asarray(PLACES), axis=0)
        with pytest.raises(OutOfRangeError) as caught:
            nnc.square(found)
    assert caught.value.operator == "take"


def test_what_a_deferred_composite_is_made_of_fails_on_the_line_of_the_composite() -> None:
    with nnc.deferred():
        x = nnc.asarray([[1.0, np.nan], [1.0, 2.0]], device="cpu:0")
        found = nnc.linalg.pinv(x)
    first = found._value.step.line  # type: ignore[union-attr]
    with pytest.raises(LinAlgError) as caught:
        found.numpy()
    assert caught.value.line == show_line(first) is not None


@pytest.mark.parametrize("around", [nnc.grad, nnc.vmap, nnc.jit])
def test_functions_of_the_user_keep_their_errors(around: Any) -> None:
    with pytest.raises(Error) as caught:
        around(lambda x: nnc.sum(nnc.dot(x, nnc.ones(3))))(nnc.ones((4, 2)))
    assert caught.value.operator == "dot"
