"""The same code on NumPy and on nnc: values, dtypes and shapes in every mode, derivatives against differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import nnc_core as nnc

Array = np.ndarray[Any, Any]
Code = Callable[..., Any]
"""(namespace, *arrays) -> an array, or several: runs with nnc and tensors, and with NumPy and arrays."""


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def hosts(results: Any) -> list[Array]:
    return [y.numpy() if isinstance(y, nnc.Tensor) else np.asarray(y) for y in listed(results)]


def assert_same(found: Any, wanted: Any, rtol: float = 1e-6) -> None:
    """Also dtypes; wanted are NumPy's."""
    found, wanted = hosts(found), hosts(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol)


def run(code: Code, arrays: Sequence[Any]) -> Any:
    return code(nnc, *[nnc.asarray(a) for a in arrays])


def assert_same_in_every_mode(code: Code, arrays: Sequence[Any], rtol: float = 1e-6) -> None:
    """Deferred and compiled as well."""
    wanted = code(np, *arrays)
    assert_same(run(code, arrays), wanted, rtol)
    with nnc.deferred():
        late = run(code, arrays)
    assert_same(late, wanted, rtol)
    assert_same(nnc.jit(lambda *xs: tuple(listed(code(nnc, *xs))))(*[nnc.asarray(a) for a in arrays]), wanted, rtol)


def assert_derivatives(code: Code, arrays: Sequence[Array], second: bool = True, step: float = 1e-6) -> None:
    """Of a weighted sum of squares of the results, for float64 arrays: both modes, and forward over reverse, along
    random directions, against differences."""
    rng = np.random.default_rng(5)
    xs = [np.asarray(a, np.float64) for a in arrays]
    along = [rng.uniform(-1, 1, x.shape) for x in xs]
    weights = [rng.uniform(0.5, 1.5, y.shape) for y in hosts(run(code, xs))]

    def total(*given: Any) -> Any:
        return sum((nnc.sum(y * y * nnc.asarray(w)) for y, w in zip(listed(code(nnc, *given)), weights, strict=True)),
                   nnc.asarray(np.float64(0)))

    def moved(h: float) -> list[nnc.Tensor]:
        return [nnc.asarray(x + h * v) for x, v in zip(xs, along, strict=True)]

    def difference(f: Callable[..., Any]) -> float:
        return float(f(*moved(step)) - f(*moved(-step))) / (2 * step)

    places = tuple(range(len(xs)))
    at, directions = [nnc.asarray(x) for x in xs], [nnc.asarray(v) for v in along]
    gradients = nnc.grad(total, places)(*at)
    slope = sum(float((g * v).sum()) for g, v in zip(gradients, directions, strict=True))
    wanted = difference(total)
    near = {"rtol": 1e-5, "atol": 1e-7}
    np.testing.assert_allclose(slope, wanted, **near)
    _, tangent = nnc.jvp(total, tuple(at), tuple(directions))
    np.testing.assert_allclose(float(tangent), wanted, **near)
    if not second:
        return

    def bent(*given: Any) -> Any:
        return sum(((g * g).sum() for g in nnc.grad(total, places)(*given)), nnc.asarray(np.float64(0)))

    _, curvature = nnc.jvp(bent, tuple(at), tuple(directions))
    np.testing.assert_allclose(float(curvature), difference(bent), rtol=1e-4, atol=1e-6)
