"""Sizes that depend on data, and copies between devices: eagerly, on demand, and inside compiled graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Sequence

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ImplicitComputeError
from tests.support import same
from tests.tensors.faults import fails
from tests.tensors.values.data_dependent import HOST, OTHER, arrays

# ---- the functions, against NumPy
HOSTS = {"matrix": HOST, "vector": np.array([0, 2, 0, 2, 1], np.int32), "mask": HOST > 0, "empty": np.zeros((0, 2)),
         "all zero": np.zeros(4, np.uint8), "one": np.array([7.0])}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("mode", ["eager", "deferred", "jit"])
def test_indices_of_what_is_not_zero(device: str, name: str, mode: str) -> None:
    host = HOSTS[name].astype(np.float32) if HOSTS[name].dtype == np.float64 else HOSTS[name]

    def f(x: nnc.Tensor) -> list[nnc.Tensor]:
        return [*nnc.nonzero(x), nnc.flatnonzero(x), nnc.argwhere(x)]

    same(arrays(*_run(mode, f, nnc.asarray(host))), [*np.nonzero(host), np.flatnonzero(host), np.argwhere(host)])


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("mode", ["eager", "deferred", "jit"])
def test_distinct_values(device: str, name: str, mode: str) -> None:
    host = HOSTS[name].astype(np.float32) if HOSTS[name].dtype == np.float64 else HOSTS[name]

    def f(x: nnc.Tensor) -> list[nnc.Tensor]:
        return [nnc.unique_values(x), *nnc.unique_counts(x), *nnc.unique_inverse(x), *nnc.unique_all(x)]

    values, index, inverse, counts = np.unique(host, return_index=True, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(host.shape)
    found = arrays(*_run(mode, f, nnc.asarray(host)))
    same(found, [values, values, counts, values, inverse, values, index, inverse, counts])


def _run(mode: str, f: Callable[..., Sequence[nnc.Tensor]], *args: nnc.Tensor) -> Sequence[nnc.Tensor]:
    if mode == "jit":
        return nnc.jit(f)(*args)
    with nnc.deferred(mode == "deferred"):
        return f(*args)


def test_names_of_the_array_api(x: nnc.Tensor) -> None:
    assert nnc.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert nnc.unique_counts(x)._fields == ("values", "counts")
    assert nnc.unique_inverse(x)._fields == ("values", "inverse_indices")


def test_nan_is_unlike_nan(device: str) -> None:
    found = nnc.unique_counts(nnc.asarray(np.array([np.nan, 1, np.nan, 0.0, -0.0], np.float32)))
    assert found.counts.tolist() == [2, 1, 1, 1] and found.values.tolist()[:2] == [0, 1]


def test_a_number_has_no_indices(device: str) -> None:
    with fails(ValueError, "no axis"):
        nnc.nonzero(nnc.asarray(3.0))
    for number, rows in ((3.0, 1), (0.0, 0)):
        for f in (nnc.argwhere, nnc.jit(nnc.argwhere)):
            assert f(nnc.asarray(number)).shape == (rows, 0)
    assert nnc.flatnonzero(nnc.asarray(3.0)).tolist() == [0]


# ---- shapes
def test_static_shape_computes_nothing(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x[x > 2]
        z = nnc.stack([y * 2, y + y])
        assert (y.static_shape, z.static_shape, z.ndim) == ((None,), (2, None), 2)
        assert "n#" in repr(y)
    assert y.is_deferred and z.is_deferred
    assert z.shape == (2, 3) and not y.is_deferred
    assert (y.static_shape, z.static_shape, x.static_shape) == ((3,), (2, 3), (2, 3))
    assert all(type(d) is int for d in z.shape)


@pytest.mark.parametrize("ask", [
    lambda y: y.shape, lambda y: len(y), lambda y: y.size, lambda y: list(y), lambda y: nnc.zeros_like(y),
    lambda y: y[0], lambda y: y[1:], lambda y: y + nnc.ones(3),
    lambda y: nnc.where(nnc.asarray([True, False, True]), y, 0.0),
], ids=["shape", "len", "size", "iteration", "zeros_like", "integer", "slice", "broadcast", "where"])  # fmt: skip
def test_who_needs_the_shape_computes(x: nnc.Tensor, ask: Callable[[nnc.Tensor], object]) -> None:
    with nnc.deferred():
        y = x[x > 2]
        ask(y)
    assert not y.is_deferred and y.shape == (3,)


@pytest.mark.parametrize("keep", [
    lambda y: y * 2, lambda y: nnc.sum(y), lambda y: nnc.reshape(y, (-1, 1)), lambda y: y[:], lambda y: y[None],
    lambda y: nnc.concat([y, y]), lambda y: nnc.concat([y, nnc.ones(4)]), lambda y: y[::1],
    lambda y: nnc.flatnonzero(y), lambda y: y[y > 3], lambda y: nnc.softmax(y),
    lambda y: nnc.grad(lambda y: nnc.sum(y * y))(y), lambda y: y.to(OTHER),
], ids=["elementwise", "sum", "reshape", "all", "None", "concat", "with a known one", "step 1", "indices", "mask",
        "softmax", "grad", "to"])  # fmt: skip
def test_who_does_not_need_it_stays_lazy(x: nnc.Tensor, keep: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    with nnc.deferred():
        y = x[x > 2]
        z = keep(y)
        assert y.is_deferred and z.is_deferred
    wanted = keep(x[x > 2]).numpy()
    same([z.numpy()], [wanted])
    assert z.shape == wanted.shape


def test_two_readings_by_one_mask_are_equally_long(x: nnc.Tensor) -> None:
    with nnc.deferred():
        mask = x > 2
        y = x[mask] + (x * 2)[mask]
        assert y.is_deferred and y.static_shape == (None,)
    assert y.tolist() == [9, 12, 15]


def test_masks_that_were_computed_in_the_same_way_are_equally_long(x: nnc.Tensor) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return x[x * 2 > 4] + x[x * 2 > 4]

    with nnc.deferred():
        y = f(x)
        assert y.is_deferred and y.static_shape == (None,)
    assert y.tolist() == nnc.jit(f)(x).tolist() == [6, 8, 10]


def test_two_masks_of_different_counts_do_not_fit(x: nnc.Tensor) -> None:
    with nnc.deferred(), fails(ValueError, "broadcast", operator="add"):
        x[x > 2] + x[x > 1]


def test_a_shape_that_was_asked_for_may_be_an_error(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x[x > 2]
        with nnc.config.using(implicit_compute="error"), pytest.raises(ImplicitComputeError, match="depends on data"):
            len(y)
    assert y.is_deferred


def test_told_sizes_are_told_to_all(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x[x > 2]
        z = y * 2
        y.numpy()
        assert z.is_deferred and z.static_shape == (3,) and z.shape == (3,) and z.is_deferred
        total = z + nnc.ones(3)
    assert total.tolist() == [7, 9, 11]


def test_what_was_recorded_is_freed(device: str) -> None:
    with nnc.deferred():
        x = nnc.asarray(HOST)
        y = x[x > 2] * 2
    inside = [weakref.ref(x._value), weakref.ref(y._value.inputs[0])]
    y.numpy()
    del x, y
    gc.collect()
    assert [r() for r in inside] == [None, None]


# ---- derivatives
def _cubes(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(x[x > 0] * x[x > 0] * x[x > 0]) + nnc.sum(x[0, nnc.asarray([1, 1, 0])])


@pytest.mark.parametrize("mode", ["eager", "deferred", "jit"])
def test_derivatives_through_masks(device: str, mode: str) -> None:
    x = nnc.asarray(HOST)
    first = _run(mode, lambda x: [nnc.grad(_cubes)(x)], x)[0].numpy()
    wanted = np.where(HOST > 0, 3 * HOST**2, 0)
    wanted[0] += [1, 2, 0]
    np.testing.assert_allclose(first, wanted, rtol=1e-6)
    second = _run(mode, lambda x: [nnc.hessian(_cubes)(x)], x)[0].numpy()
    np.testing.assert_allclose(second.reshape(6, 6), np.diag(np.where(HOST > 0, 6 * HOST, 0).ravel()), rtol=1e-6)
    tangent = nnc.jvp(lambda x: x[x > 0], [x], [x * 2])[1]
    np.testing.assert_allclose(tangent.numpy(), HOST[HOST > 0] * 2)


@pytest.mark.parametrize("jitted", [False, True])
def test_backward_through_masks_and_distinct_values(device: str, jitted: bool) -> None:
    def f(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.unique_values(v) ** 2) + nnc.sum(v[v > 3])

    v = nnc.variable(HOST)
    (nnc.jit(f) if jitted else f)(v).backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), [[6, 0, -2], [0, 0, 11]])


def test_gradients_of_writes_by_masks(device: str) -> None:
    values = nnc.asarray([10.0, 20.0, 30.0])

    def f(x: nnc.Tensor, values: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(x.at[nnc.asarray(HOST) > 0].set(values) ** 2)

    dx, dv = nnc.grad(f, (0, 1))(nnc.asarray(HOST), values)
    np.testing.assert_allclose(dx.numpy(), np.where(HOST > 0, 0, 2 * HOST))
    np.testing.assert_allclose(dv.numpy(), [20, 40, 60])
