"""The gradient of a matrix that multiplies the rows of a stack."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import float64
from nnc_core.graph import reverse
from nnc_core.symbol import postorder
from nnc_core.type import TensorSpec
from tests.graph.evaluate import evaluate
from tests.graph.stack import new_namespace


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("stack", [(3,), (2, 3), (0,)])
def test_no_matrix_for_each_of_the_stack(stack: tuple[int, ...], transpose_b: bool, rng: np.random.Generator) -> None:
    F, shape = new_namespace(), (7, 5) if transpose_b else (5, 7)
    x, w = F.placeholder("x", TensorSpec((*stack, 4, 5), float64)), F.placeholder("w", TensorSpec(shape, float64))
    g = F.placeholder("g", TensorSpec((*stack, 4, 7), float64))
    y = F.matmul(x, w, transpose_b=transpose_b)
    (found,) = reverse(F, postorder([y]), {id(y): g}, [w])
    assert max(node.ndim for node in postorder([found]) if node.op.name == "matmul") == 2
    rows, cotangents = (rng.normal(size=node.spec.static_shape) for node in (x, g))
    expected = rows.reshape(-1, 5).T @ cotangents.reshape(-1, 7)
    (array,) = evaluate([found], {x: rows, g: cotangents})
    np.testing.assert_allclose(array, expected.T if transpose_b else expected, rtol=1e-12)
