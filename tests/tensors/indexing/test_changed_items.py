"""Items added to, multiplied and otherwise changed in place, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails
from tests.tensors.indexing.keys import numbered

# ---- other changes than set and add
CHANGES: dict[str, Any] = {
    "set": lambda old, new: new, "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "power": np.power, "min": np.minimum, "max": np.maximum,
}  # fmt: skip
KEYS = {
    "integer": 1, "slices": (slice(None), slice(None, None, 2)), "arrays": ([0, 1], [2, 0]),
    "mask": np.array([[True, False, True], [False, False, True]]), "mask and array": (np.array([True, False]), [1, 2]),
    "an array twice": ([0, 1, 0], [2, 0, 2]), "rows twice": [1, 0, 1],
}  # fmt: skip


def changed(host: np.ndarray, key: Any, name: str, value: np.ndarray) -> np.ndarray:
    """One element after the other."""
    out, places = host.copy(), np.arange(host.size).reshape(host.shape)[key]
    for place, v in zip(places.ravel(), np.broadcast_to(value, places.shape).ravel(), strict=True):
        out.flat[place] = CHANGES[name](out.flat[place], v)
    return out


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("key", KEYS)
def test_changes_at_a_key(x: nnc.Tensor, name: str, key: str) -> None:
    host, k = numbered((2, 3)), KEYS[key]
    value = np.asarray(np.arange(host[k].size).reshape(host[k].shape) * 3 % 4 + 0.5, np.float32)
    found = getattr(x.at[k], name)(value)
    np.testing.assert_allclose(found.numpy(), changed(host, k, name, value), rtol=1e-6)
    np.testing.assert_array_equal(x.numpy(), host)
    np.testing.assert_array_equal(x.at[k].get().numpy(), host[k])


@pytest.mark.parametrize("name", [name for name in CHANGES if name != "divide"])
@pytest.mark.parametrize("key", KEYS)
def test_changes_of_integers_on_tensors_as_keys(device: str, name: str, key: str) -> None:
    host, k = np.arange(6, dtype=np.int32).reshape(2, 3), KEYS[key]
    value = np.asarray(np.arange(host[k].size).reshape(host[k].shape) * 3 % 4, np.int32)
    parts = k if isinstance(k, tuple) else (k,)
    on_device = tuple([p if isinstance(p, (int, slice)) else nnc.asarray(np.asarray(p)) for p in parts])
    found = getattr(nnc.asarray(host).at[on_device], name)(nnc.asarray(value))
    assert found.dtype == nnc.int32
    np.testing.assert_array_equal(found.numpy(), changed(host, k, name, value))


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("key", ["integer", "mask", "mask and array", "rows twice"])
def test_gradients_of_changes(name: str, key: str) -> None:
    """Of a value for each element that is meant, against finite differences; elements may be negative where only
    powers of others are taken."""
    k, rng = KEYS[key], np.random.default_rng(2)
    if key == "mask" and name != "set":
        k = np.array([[True, True, True], [False, False, False]])
    host = rng.uniform(1, 2, (2, 3))
    host[~np.isin(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)[k])] *= -1
    value, weights = rng.uniform(0.5, 2, host[k].shape if key != "mask" else ()), rng.uniform(1, 2, (2, 3))

    def f(x: Any, v: Any) -> nnc.Tensor:
        return nnc.sum(getattr(x.at[k], name)(v) * nnc.asarray(weights))

    def at(x: np.ndarray, v: np.ndarray) -> float:
        out = changed(x, k, name, v)
        return float((out * weights).sum())

    with nnc.use_device("strict:0"):
        found = nnc.grad(f, (0, 1))(nnc.asarray(host), nnc.asarray(value))
        again = nnc.jit(nnc.grad(f, (0, 1)))(nnc.asarray(host), nnc.asarray(value))
    for g, h, which in zip(found, again, (host, value), strict=True):
        wanted = np.empty_like(which)
        for place in np.ndindex(*which.shape):
            step = np.zeros_like(which)
            step[place] = 1e-6
            pair = [(host + s * step, value) if which is host else (host, value + s * step) for s in (1, -1)]
            wanted[place] = (at(*pair[0]) - at(*pair[1])) / 2e-6
        np.testing.assert_allclose(g.numpy(), wanted, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(h.numpy(), wanted, rtol=1e-6, atol=1e-8)


def test_extremes_share_the_gradient_of_ties(device: str) -> None:
    x, u = nnc.asarray(np.array([1.0, 5.0, 2.0], np.float32)), nnc.asarray(np.array([1.0, 1.0, 7.0], np.float32))
    dx, du = nnc.grad(lambda x, u: nnc.sum(x.at[[0, 0, 2]].max(u)), (0, 1))(x, u)
    np.testing.assert_allclose(dx.numpy(), [1 / 3, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(du.numpy(), [1 / 3, 1 / 3, 1], rtol=1e-6)


def test_products_are_differentiated_through_zeros(device: str) -> None:
    """Of 2 * 0 * 3 and of 4 * 0 * 0, by each factor."""
    x, u = nnc.asarray(np.array([2.0, 4.0], np.float32)), nnc.asarray(np.array([0.0, 3.0, 0.0, 0.0], np.float32))
    rows = nnc.asarray(np.array([0, 0, -1, 1]))
    dx, du = nnc.grad(lambda x, u: nnc.sum(x.at[rows].multiply(u)), (0, 1))(x, u)
    assert dx.tolist() == [0, 0] and du.tolist() == [6, 0, 0, 0]
    second = nnc.hessian(lambda u: nnc.sum(x.at[rows].multiply(u)))(u)
    wanted = np.zeros((4, 4))
    wanted[0, 1] = wanted[1, 0] = 2
    wanted[2, 3] = wanted[3, 2] = 4
    np.testing.assert_array_equal(second.numpy(), wanted)


def test_changes_that_a_dtype_does_not_have(device: str) -> None:
    with fails(TypeError, "quotients are floats", "int32[2]", operator="setitem"):
        nnc.ones(2, dtype="int32").at[0].divide(2)
    with fails(TypeError, "booleans"):
        nnc.asarray([True, False]).at[[0]].add(True)


def test_complex_elements_that_are_not_meant_keep_every_bit() -> None:
    z = nnc.asarray(np.array([0.1 + 0.7j, 2 - 1j]), device="cpu:0")
    found = z.at[[1, 1]].power(2.0)
    assert found.numpy()[0] == z.numpy()[0]
    np.testing.assert_allclose(found.numpy()[1], (2 - 1j) ** 4)
