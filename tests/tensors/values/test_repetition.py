"""Operators that are called again for other operands of the same shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ShapeError
from nnc_core.values.dispatch import F
from nnc_core.values.repetition import repeated, steps_of

RNG = np.random.default_rng(5)
A, B = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5)))
SUMS = [("ij,jk->ik", (A, B)), ("ij->ji", (A,)), ("ij->", (A,)), ("ii->i", (A[:, :3],)), ("i->i", (A[0],)),
        ("ij,ij->", (A, A)), ("...j,jk", (A, B)), ("ij,jk,kl->il", (A, B, B.T)), ("i,j->ij", (A[0], B[0])),
        ("ij,ij->ij", (A, A[:1])), ("i,i", (A[0].astype(np.float16), A[1]))]  # fmt: skip


@pytest.mark.parametrize(("subscripts", "arrays"), SUMS)
def test_sums_that_come_again_are_those_of_their_operands(subscripts: str, arrays: tuple[np.ndarray, ...]) -> None:  # type: ignore[type-arg]
    for scale in (1, 2, 3):
        hosts = [a * (scale + i) for i, a in enumerate(arrays)]
        found = nnc.einsum(subscripts, *map(nnc.asarray, hosts))
        wanted = np.einsum(subscripts, *hosts)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3)


def test_one_operand_twice_is_not_two_that_are_alike() -> None:
    a, b = nnc.asarray(A), nnc.asarray(A + 1)
    nnc.einsum("ij,ij->", a, a)
    np.testing.assert_allclose(nnc.einsum("ij,ij->", a, b).numpy(), np.sum(A * (A + 1)), rtol=1e-5)


def test_errors_gradients_and_other_modes_go_the_long_way() -> None:
    a = nnc.asarray(A)
    nnc.einsum("ij,kj->ik", a, a)
    for _ in range(2):
        with pytest.raises(ShapeError):
            nnc.einsum("ij,kj->ik", a, nnc.asarray(B))
    v = nnc.variable(A)
    nnc.sum(nnc.einsum("ij,kj->ik", v, a)).backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), np.broadcast_to(A.sum(0), A.shape), rtol=1e-5)
    np.testing.assert_allclose(nnc.jit(lambda x: nnc.einsum("ij,kj->ik", x, a))(a).numpy(), A @ A.T, rtol=1e-5)
    with nnc.deferred():
        later = nnc.einsum("ij,kj->ik", a, a)
    np.testing.assert_allclose(later.numpy(), A @ A.T, rtol=1e-5)


def test_what_is_drawn_is_not_repeated() -> None:
    key, values = nnc.asarray(np.array([1, 2], np.uint64))._value, nnc.asarray(A)._value
    assert steps_of(lambda x: F.multiply(x[0], F.cast(x[1], dtype=np.dtype(np.float32))), [values, values]) is not None
    assert steps_of(lambda x: F.random_bits(x[0], shape=(3,), dtype=np.dtype(np.uint32)), [key]) is None


def test_a_result_is_a_value_of_its_own() -> None:
    """Reshapes that change nothing are left out, but for one that stands between an operand and the result."""
    def same(x: Any) -> Any:
        return F.reshape(x, shape=x.shape)

    x = nnc.asarray(A)._value
    alone = steps_of(lambda given: same(given[0]), [x])
    behind = steps_of(lambda given: same(F.exp(same(given[0]))), [x])
    assert alone is not None and behind is not None
    assert repeated(alone, [x]) is not x and len(alone.calls) == 1
    assert [call.op.name for call in behind.calls] == ["exp"]
    np.testing.assert_array_equal(nnc.Tensor(repeated(behind, [x])).numpy(), np.exp(A))
