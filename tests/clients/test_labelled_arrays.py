"""Tensors in pandas, xarray, einops and matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import einops_backend

X = np.arange(6.0).reshape(2, 3)


def test_pandas_takes_tensors() -> None:
    pandas = pytest.importorskip("pandas")
    x, series = nnc.asarray(X[0]), pandas.Series(X[1])
    assert pandas.Series(x).tolist() == X[0].tolist() and pandas.DataFrame({"a": x})["a"].sum() == 3
    for total in (series + x, x + series, np.add(series, x)):
        assert isinstance(total, pandas.Series) and total.tolist() == X.sum(0).tolist()
    assert nnc.asarray(series).dtype == np.float64


def test_xarray_keeps_tensors() -> None:
    xarray = pytest.importorskip("xarray")
    array, plain = (xarray.DataArray(data, dims=("a", "b")) for data in (nnc.asarray(X), X))
    calls: list[Any] = [
        lambda d: d * 2 + d, lambda d: d.mean("a"), lambda d: d.std("b"), lambda d: d.sum(), lambda d: np.sin(d),
        lambda d: d.isel(a=1), lambda d: d.where(d > 2), lambda d: xarray.concat([d, d], "a"), lambda d: d.cumsum("b"),
        lambda d: d.transpose("b", "a"), lambda d: d + d.data, lambda d: d.data + d, lambda d: d.fillna(0.0),
    ]  # fmt: skip
    for call in calls:
        found, wanted = call(array), call(plain)
        assert isinstance(found.data, nnc.Tensor) and found.dims == wanted.dims
        np.testing.assert_allclose(found.values, wanted.values)


def test_einops_knows_tensors() -> None:
    einops = pytest.importorskip("einops")
    from einops import array_api

    x = nnc.asarray(X)
    np.testing.assert_array_equal(array_api.rearrange(x, "a b -> (b a)").numpy(), X.T.ravel())
    einops_backend.register()
    einops_backend.register()
    calls: list[Any] = [
        lambda t: einops.rearrange(t, "a (b c) -> b (a c)", c=1), lambda t: einops.reduce(t, "a b -> b", "mean"),
        lambda t: einops.repeat(t, "a b -> a b c", c=2), lambda t: einops.pack([t, t], "* b")[0],
        lambda t: einops.rearrange([t, t], "n a b -> n b a"), lambda t: einops.einsum(t, t, "a b, c b -> a c"),
        lambda t: einops.reduce(t, "a b -> ()", "max"), lambda t: einops.rearrange(t, "a b -> a 1 b"),
    ]  # fmt: skip
    for call in calls:
        found, compiled = call(x), nnc.jit(call)(x)
        assert isinstance(found, nnc.Tensor)
        np.testing.assert_allclose(found.numpy(), call(X))
        np.testing.assert_allclose(compiled.numpy(), call(X))
    assert nnc.grad(lambda t: nnc.sum(einops.reduce(t, "a b -> b", "mean")))(x).tolist() == [[0.5] * 3] * 2


def test_matplotlib_draws_tensors() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    u, image = nnc.asarray(X[0]), nnc.asarray(X)
    figure, axes = pyplot.subplots()
    assert axes.plot(u, u * 2)[0].get_ydata().tolist() == (X[0] * 2).tolist()
    for draw in (lambda: axes.plot(image), lambda: axes.scatter(u, u), lambda: axes.bar(u, u), lambda: axes.hist(u),
                 lambda: axes.errorbar(u, u, yerr=u), lambda: axes.fill_between(u, u, u * 2),
                 lambda: axes.imshow(image), lambda: axes.pcolormesh(image), lambda: axes.set_xlim(u[0], u[2])):
        draw()
    figure.canvas.draw()
    pyplot.close(figure)
