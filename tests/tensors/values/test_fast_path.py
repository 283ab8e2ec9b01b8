"""The fast path of eager dispatch: which calls take it, and that those it does not fit are answered as before."""

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import Error
from nnc_core.values import dispatch
from nnc_cpu.device import CpuDevice

MASK = np.array([True, False, True])
X, Y = np.array([1, 2, 3], np.float32), np.array([-1, -2, -3], np.float32)


def _warm(call):
    """What the second of two equal calls gives, which must not take the slow way."""
    call()

    def slow(op, inputs, attributes):
        raise AssertionError(f"{op.name} took the slow way")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "apply_slowly", slow)
        return call()


@pytest.mark.parametrize("call", [
    lambda m, x, y: nnc.where(m, x, y), lambda m, x, y: nnc.where(m, x, 0.5), lambda m, x, y: nnc.where(m, 2, y),
    lambda m, x, y: nnc.mean(x), lambda m, x, y: x[1], lambda m, x, y: x[1:],
    lambda m, x, y: nnc.take(x, nnc.argsort(y)),
], ids=["where", "where-float", "where-int", "mean", "item", "slice", "take"])  # fmt: skip
def test_a_warm_call_of_operands_that_agree_takes_it(call):
    operands = [nnc.asarray(a, device="cpu:0") for a in (MASK, X, Y)]
    cold = np.asarray(call(*operands))
    warm = np.asarray(_warm(lambda: call(*operands)))
    np.testing.assert_array_equal(warm, cold)
    assert warm.dtype == cold.dtype


def test_numbers_in_other_places_are_told_apart():
    m, x = nnc.asarray(MASK), nnc.asarray(X)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(nnc.where(m, 7, x)), np.where(MASK, 7, X))
        np.testing.assert_array_equal(np.asarray(nnc.where(True, m, x)), MASK.astype(np.float32))
        np.testing.assert_array_equal(np.asarray(nnc.where(m, x, 7)), np.where(MASK, X, 7))


def test_branches_of_two_dtypes_are_promoted_however_often_they_are_met():
    m, x, k = nnc.asarray(MASK), nnc.asarray(X), nnc.asarray(np.array([5, 6, 7], np.int32))
    for _ in range(3):
        assert nnc.where(m, x, k).dtype == nnc.result_type(nnc.float32, nnc.int32)
        assert nnc.where(m, k, 1.5).dtype == nnc.float32
        nnc.where(m, x, x), nnc.where(m, k, k)
    with pytest.raises(Error, match="where"):
        nnc.where(m, x, nnc.asarray(X[:2]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("axis", [None, 0, 1, (0, 2), ()])
def test_the_mean_is_the_sum_divided_by_the_count(dtype, axis):
    x = nnc.asarray(np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32), device="cpu:0").astype(dtype)
    wide = x.astype("float32") if dtype in ("float16", "bfloat16") else x
    total = nnc.sum(wide, axis=axis)
    expected = (total / (60 // max(total.size, 1))).astype(dtype)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(nnc.mean(x, axis=axis)), np.asarray(expected))


def test_the_mean_of_nothing_is_nan_and_a_wrong_axis_an_error():
    x = nnc.asarray(np.zeros((0, 3), np.float32), device="cpu:0")
    for _ in range(2):
        assert np.isnan(np.asarray(nnc.mean(x, axis=0))).all()
        with pytest.raises(Error):
            nnc.mean(x, axis=2)


@pytest.mark.parametrize("operator", ["sum", "divide", "mean"])
def test_the_mean_follows_library_code_that_is_added_for_what_it_is_made_of(operator):
    device = CpuDevice()
    assert "mean" in device.eager
    device.take(operator, device.backends("sum")[0])
    assert "mean" not in device.eager
