"""Expansions on NumPy arrays: shapes, dtypes, pieces; the bits are the interpreter's."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import bfloat16, float16, float32, float64
from nnc_core.codegen import expand
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.numpy_expansions import PIECE, evaluate
from tests.codegen.functions import run
from tests.codegen.nests import agree, elementwise


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64], ids=str)
@pytest.mark.parametrize("name", ["erf", "digamma", "i1e", "sin", "tanh", "atan2"])
def test_the_bits_are_those_of_a_nest(name: str, dtype: np.dtype) -> None:
    """Of short numbers too, whose products lie in the middle between two others."""
    rng = np.random.default_rng(1)
    short = np.arange(-70, 70) / 16
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0]
    x = np.concatenate([rng.uniform(-9, 9, 3 * PIECE + 5), short, 1e-38 * short, ends]).astype(dtype)
    xs = [x, x[::-1].copy()] if name == "atan2" else [x]
    nest = expand(elementwise("nest", name, dtype, xs, dtype), set(EXPANSIONS))
    got = evaluate(name, *xs)
    assert got.dtype == dtype
    assert agree(got, run(nest, *xs)).all()


def test_any_shape() -> None:
    for shape in ((), (0,), (2, 0, 3), (1,), (2, 3)):
        assert evaluate("erf", np.zeros(shape, np.float32)).shape == shape
    a, b = np.ones((3, 1)), np.arange(4.0)
    np.testing.assert_allclose(evaluate("hypot", a, b), np.hypot(a, b))
    strided = np.arange(24.0).reshape(4, 6)[::2, ::-3]
    np.testing.assert_array_equal(evaluate("lgamma", strided), evaluate("lgamma", strided.copy()))


def test_operands_stay_as_they_are() -> None:
    x = np.linspace(-3, 3, 7)
    before = x.copy()
    evaluate("erfinv", x)
    np.testing.assert_array_equal(x, before)
