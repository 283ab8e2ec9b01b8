"""Each of NNC's commands has its equal: forward, eagerly and compiled, against NumPy; backward, as its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.house.nnc_commands import NNC
from tests.house.nnc_rows import Command, cotangents, listed, pulled, wanted_gradients
from tests.house.rows import check, hosts, public, run_compiled, run_eagerly

_TEXT = """
ADAM ADAMW ADD ARGMAX ARGMIN AVERAGE_POOL BATCH_NORM BINARY_CROSSENTROPY CATEGORICAL_CROSSENTROPY CLAMP CMUL
COMM_ALLREDUCE COMM_BROADCAST COMM_REDUCE COMPRESSION_LSSC CONVOLUTION CONVOLUTION_TRANSPOSE DATATYPE_CONVERSION
DATA_TRANSFER DROPOUT EWDIV EWEXP EWLOG EWPROD EWSQRT EWSUM FORMAT_TRANSFORM GELU GEMM GROUP_NORM HISTOGRAM INDEX_SELECT
LAMB LAYER_NORM LEAKY_RELU LSTM MASKED_FILL MAX MAX_POOL MIN MSE MUL NMS PAD RANDOM_NORMAL RANDOM_UNIFORM REDUCE_ISNAN
REDUCE_MAX REDUCE_MEAN REDUCE_MIN REDUCE_NORM2 REDUCE_SUM RELU RMSNORM RMSPROP ROI_ALIGN SCALAR_MUL
SCALED_DOT_PRODUCT_ATTENTION SET SGD SIGMOID SIGMOID_BINARY_CROSSENTROPY SMOOTH_L1 SOFTMAX SOFTMAX_CROSSENTROPY SWISH
TANH TRANSPOSE UPSAMPLE
"""
NAMES = _TEXT.split()
COMPILED_INSIDE = {"ADAM", "ADAMW", "LAMB", "RMSPROP", "SGD"}
WITHOUT_PATTERN = {"ADAM", "ADAMW", "ARGMAX", "ARGMIN", "HISTOGRAM", "LAMB", "REDUCE_ISNAN", "RMSPROP", "SGD"}
WITHOUT_INPUT = {"RANDOM_NORMAL", "RANDOM_UNIFORM", "SET"}
OF_ITS_OWN = {"COMPRESSION_LSSC", "DROPOUT"}
GRADIENTS = [name for name in NAMES if name not in WITHOUT_PATTERN | WITHOUT_INPUT | OF_ITS_OWN]


def test_all_69_are_there_and_no_other() -> None:
    assert len(NAMES) == len(set(NAMES)) == 69
    assert set(NNC) == set(NAMES), set(NNC) ^ set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_is_here_exists(name: str) -> None:
    rows = [row for row in (NNC[name].forward, NNC[name].backward.forward) if row is not None]
    missing = [part for row in rows for part in row.ours.split(", ") if public(part) is None]
    assert rows[0].ours and not missing, f"{name} is said to be nnc.{missing}"


@pytest.mark.parametrize("name", NAMES)
def test_forward_eagerly(name: str) -> None:
    check(NNC[name].forward, run_eagerly(NNC[name].forward))


@pytest.mark.parametrize("name", [name for name in NAMES if not NNC[name].forward.eager_only])
def test_forward_compiled(name: str) -> None:
    check(NNC[name].forward, run_compiled(NNC[name].forward))


def test_what_is_not_compiled_by_the_test_is_said() -> None:
    assert {name for name, c in NNC.items() if c.forward.eager_only} == COMPILED_INSIDE


# ---- backward
def test_every_backward_command_has_a_gradient_or_a_reason() -> None:
    assert {name for name, c in NNC.items() if c.backward.why_not} == WITHOUT_PATTERN | WITHOUT_INPUT
    assert {name for name, c in NNC.items() if c.backward.forward is not None} == OF_ITS_OWN
    assert all(NNC[name].backward.wrt for name in GRADIENTS)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_backward(name: str, compiled: bool) -> None:
    c = NNC[name]
    given = [nnc.asarray(x) for x in (*cotangents(c.forward), *c.forward.inputs)]

    def gradients(*given: Any) -> Any:
        return pulled(c, *given)

    found = hosts((nnc.jit(gradients) if compiled else gradients)(*given))
    for a, b in zip(found, wanted_gradients(c), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=c.backward.near, atol=c.backward.near)


@pytest.mark.parametrize("name", sorted(OF_ITS_OWN))
def test_backward_that_is_no_difference_quotient(name: str) -> None:
    row = NNC[name].backward.forward
    assert row is not None
    check(row, run_eagerly(row))
    check(row, run_compiled(row))


@pytest.mark.parametrize("name", ["ARGMAX", "ARGMIN", "HISTOGRAM", "REDUCE_ISNAN"])
def test_without_a_pattern_is_piecewise_constant(name: str) -> None:
    row = NNC[name].forward
    x = nnc.asarray(row.inputs[0])

    def first(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.astype(listed(row.run(x))[0], nnc.float64))

    assert not nnc.grad(first)(x).numpy().any()


def test_the_check_sees_a_wrong_gradient() -> None:
    c = NNC["EWEXP"]
    wrong = Command(c.forward._replace(run=lambda x: nnc.exp(x) * 1.001), c.backward)
    given = [nnc.asarray(x) for x in (*cotangents(c.forward), *c.forward.inputs)]
    (found,), (wanted,) = hosts(pulled(wrong, *given)), wanted_gradients(c)
    assert not np.allclose(found, wanted, rtol=c.backward.near, atol=c.backward.near)
