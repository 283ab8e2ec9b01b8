"""Programs of compiled graphs: called with other arrays, in other memory, in other orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

HOSTS = [np.arange(6, dtype=np.float32).reshape(2, 3) / (k + 1) for k in range(4)]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.fixture
def graph() -> Any:
    """Commands with scratch memory, in place, and with a result that a later command reads."""
    f = nnc.jit(lambda x, y: (nnc.sigmoid(x) * y + x, nnc.where(x > y, x, y) @ y.T))
    x = nnc.asarray(HOSTS[0], device="cpu:0")
    return f.lower(x, x + 1)


def test_each_call_computes_with_its_own_arrays(graph: Any) -> None:
    kept = []
    for k, x in enumerate(HOSTS):
        for y in (HOSTS[0], HOSTS[k] - 1, x):
            kept.append((graph(arg0=nnc.asarray(x, device="cpu:0"), arg1=nnc.asarray(y, device="cpu:0")), x, y))
    for found, x, y in kept:
        np.testing.assert_allclose(found["out0"].numpy(), sigmoid(x) * y + x, rtol=1e-6)
        np.testing.assert_allclose(found["out1"].numpy(), np.where(x > y, x, y) @ y.T, rtol=1e-6)


@pytest.mark.parametrize("lay", [lambda a: a.T.copy().T, lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
                                 lambda a: np.repeat(a, 2, axis=1)[:, ::2]], ids=["transposed", "backwards", "gaps"])
def test_inputs_in_any_order_in_memory(graph: Any, lay: Any) -> None:
    x, y = HOSTS[0], HOSTS[1]
    strided = lay(x)
    assert not strided.flags.c_contiguous
    t = nnc.asarray(strided, device="cpu:0", copy=False)
    device = t._value.stack.device
    assert device.packed_buffer(t._value.array) is None
    found = graph(arg0=t, arg1=nnc.asarray(y, device="cpu:0"))
    np.testing.assert_allclose(found["out0"].numpy(), sigmoid(x) * y + x, rtol=1e-6)


def test_a_packed_input_is_not_copied(graph: Any) -> None:
    array = nnc.asarray(HOSTS[0], device="cpu:0")._value.array
    buffer = graph.stack.device.packed_buffer(array)
    assert np.shares_memory(buffer, array) and buffer.nbytes == array.nbytes
