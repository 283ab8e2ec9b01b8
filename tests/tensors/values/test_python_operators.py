"""Python's operators of tensors: what they give, and what is no operand."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc


def test_pairs_and_answers(device: str) -> None:
    x = nnc.asarray([[1, -3], [4, 5]])
    for found, wanted in ((divmod(x, 2), np.divmod(x.numpy(), 2)), (divmod(7, x), np.divmod(7, x.numpy()))):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b)
    assert 4 in x and -3.0 in x and 9 not in x and "a" not in x and None not in x


@pytest.mark.parametrize("other", ["a", None, {}], ids=str)
def test_what_is_no_operand_is_an_error_of_pythons(other: Any) -> None:
    x = nnc.asarray([1.0, 2.0])
    for f in (lambda: x + other, lambda: other - x, lambda: operator.iadd(x, other), lambda: operator.ipow(x, other)):
        with pytest.raises(TypeError, match="unsupported operand type"):
            f()
    assert x.tolist() == [1, 2]


def test_they_have_their_names() -> None:
    assert nnc.Tensor.__add__.__qualname__ == "Tensor.__add__"
    assert nnc.Tensor.__ipow__.__name__ == "__ipow__"
    assert len({id(getattr(nnc.Tensor, f"__{name}__")) for name in ("add", "radd", "iadd", "eq", "neg")}) == 5


def test_round_is_that_of_numbers() -> None:
    x = nnc.asarray([1.256, -2.5, 1234.0])
    loss, cell = nnc.mean(x), nnc.Cell(x)
    assert round(x, 1).tolist() == np.round(x.numpy(), 1).tolist() and round(x).tolist() == [1.0, -2.0, 1234.0]
    assert round(x, -2).tolist() == [0.0, -0.0, 1200.0] and round(loss, 3).shape == ()
    assert nnc.jit(lambda x: round(x, 1))(x).tolist() == round(x, 1).tolist() == round(cell, 1).tolist()
    assert [y.tolist() for y in divmod(cell, 2)] == [y.tolist() for y in divmod(x, 2)]
    assert [y.tolist() for y in divmod(2, cell)] == [y.tolist() for y in divmod(2, x)]
