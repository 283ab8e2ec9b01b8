"""Normalisations against plain formulas in float64: values, dtypes, derivatives, modes, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, AxisError, ShapeError
from tests.tensors.against_numpy import assert_derivatives

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 6)) * 2 + 1
IMAGES = RNG.normal(size=(2, 3, 4, 6))
SCALE, BIAS = RNG.uniform(0.5, 1.5, 6), RNG.normal(size=6)
EPSILON = 1e-3


def standard(x: Any, axes: Any, epsilon: float = EPSILON) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def grouped(x: Any, groups: int) -> Any:
    split = x.reshape(*x.shape[:-1], groups, -1)
    axes = tuple(a for a in range(1, split.ndim) if a != split.ndim - 2)
    return standard(split, axes).reshape(x.shape)


def local(x: Any, size: int, k: float = 1.5) -> Any:
    out = np.empty_like(x)
    for c in range(x.shape[-1]):
        near = x[..., max(0, c - size // 2) : c + (size - 1) // 2 + 1]
        out[..., c] = x[..., c] / (k + 0.3 / size * (near**2).sum(-1)) ** 0.75
    return out


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "layer": (lambda x, s, b: nnc.layer_norm(x, s, b, epsilon=EPSILON), lambda x, s, b: standard(x, -1) * s + b),
    "layer over two axes": (lambda x, s, b: nnc.layer_norm(x, None, s * nnc.ones((4, 1), dtype=s.dtype), axis=(1, 2)),
                            lambda x, s, b: standard(x, (1, 2), 1e-5) + s),
    "layer over another axis": (lambda x, s, b: nnc.layer_norm(x, s[:4], axis=1), lambda x, s, b:
                                standard(x, 1, 1e-5) * s[:4, None]),
    "rms": (lambda x, s, b: nnc.rms_norm(x, s), lambda x, s, b: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * s),
    "group": (lambda x, s, b: nnc.group_norm(x, 3, s, b, epsilon=EPSILON), lambda x, s, b: grouped(x, 3) * s + b),
    "group, channels first": (lambda x, s, b: nnc.group_norm(x, 2, s[:4], axis=1, epsilon=EPSILON),
                              lambda x, s, b: grouped(x.swapaxes(1, -1), 2).swapaxes(1, -1) * s[:4, None]),
    "instance": (lambda x, s, b: nnc.instance_norm(x, s, b, epsilon=EPSILON), lambda x, s, b: standard(x, 1) * s + b),
    "batch": (lambda x, s, b: nnc.batch_norm(x, b, s, s, b, epsilon=EPSILON),
              lambda x, s, b: (x - b) / np.sqrt(s + EPSILON) * s + b),
    "batch, plain, channels first": (lambda x, s, b: nnc.batch_norm(x, b[:4], s[:4], axis=1),
                                     lambda x, s, b: (x - b[:4, None]) / np.sqrt(s[:4, None] + 1e-5)),
    "batch, training": (lambda x, s, b: nnc.batch_norm_training(x, s, b, epsilon=EPSILON).output,
                        lambda x, s, b: standard(x, (0, 1)) * s + b),
    "batch, training, channels first": (lambda x, s, b: nnc.batch_norm_training(x, axis=1).output,
                                        lambda x, s, b: standard(x, (0, 2), 1e-5)),
    "local": (lambda x, s, b: nnc.local_response_norm(x, 3, alpha=0.3, k=1.5), lambda x, s, b: local(x, 3)),
    "local, even": (lambda x, s, b: nnc.local_response_norm(x, 4, alpha=0.3, k=1.5), lambda x, s, b: local(x, 4)),
    "normalise": (lambda x, s, b: nnc.normalise(x), lambda x, s, b: x / np.linalg.norm(x, axis=-1, keepdims=True)),
    "normalise by 3": (lambda x, s, b: nnc.normalise(x, p=3, axis=(0, 2)),
                       lambda x, s, b: x / (abs(x) ** 3).sum((0, 2), keepdims=True) ** (1 / 3)),
    "weight": (lambda x, s, b: nnc.weight_norm(x, s),
               lambda x, s, b: x / np.sqrt((x**2).sum((0, 1), keepdims=True)) * s),
    "weight, one norm": (lambda x, s, b: nnc.weight_norm(x, s[0], axis=None),
                         lambda x, s, b: x / np.sqrt((x**2).sum()) * s[0]),
}  # fmt: skip
each_case = pytest.mark.parametrize("name", CASES)


@each_case
def test_values(name: str, device: str) -> None:
    ours, theirs = CASES[name]
    wanted = theirs(X, SCALE, BIAS)
    given = [nnc.asarray(a.astype(np.float32)) for a in (X, SCALE, BIAS)]
    found = ours(*given)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(nnc.jit(ours)(*given).numpy(), wanted, rtol=2e-5, atol=1e-5)


@each_case
def test_derivatives(name: str) -> None:
    assert_derivatives(lambda n, *xs: CASES[name][0](*xs), [X, SCALE, BIAS])


@each_case
def test_halves_stay_halves(name: str) -> None:
    """With scales and moments in float32."""
    ours, theirs = CASES[name]
    half = (X * 100).astype(np.float16)
    found = ours(nnc.asarray(half), *[nnc.asarray(a.astype(np.float32)) for a in (SCALE, BIAS)])
    if not name.startswith("weight"):
        assert found.dtype == "float16"
    wanted = theirs(half.astype(np.float64), SCALE, BIAS)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=2e-3, atol=2e-3 * abs(wanted).max())


def test_images_of_any_rank(device: str) -> None:
    x = nnc.asarray(IMAGES.astype(np.float32))
    np.testing.assert_allclose(nnc.group_norm(x, 2, epsilon=EPSILON).numpy(), grouped(IMAGES, 2), rtol=1e-4, atol=1e-5)
    wanted = standard(IMAGES, (1, 2))
    np.testing.assert_allclose(nnc.instance_norm(x, epsilon=EPSILON).numpy(), wanted, rtol=1e-4, atol=1e-5)
    y, mean, variance = nnc.batch_norm_training(x, axis=1, epsilon=EPSILON)
    np.testing.assert_allclose(y.numpy(), standard(IMAGES, (0, 2, 3)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(mean.numpy(), IMAGES.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(variance.numpy(), IMAGES.var((0, 2, 3)), rtol=1e-4)
    again = nnc.batch_norm(x, mean, variance, axis=1, epsilon=EPSILON)
    np.testing.assert_allclose(again.numpy(), y.numpy(), rtol=1e-4, atol=1e-5)


def test_the_moments_of_a_batch_are_constants() -> None:
    g = nnc.grad(lambda v: nnc.sum(nnc.batch_norm_training(v).mean))(nnc.asarray(X))
    assert (g.numpy() == 0).all()
    half = nnc.batch_norm_training(nnc.asarray(X.astype(np.float16)))
    assert (half.output.dtype, half.mean.dtype, half.variance.dtype) == ("float16", "float32", "float32")


def test_nothing_cancels_far_from_zero(device: str) -> None:
    """Squares of 1e4 have no digit left of a variance of 1 in float32; means have some."""
    x = (1e4 + RNG.normal(size=(3, 400))).astype(np.float32)
    wanted = standard(x.astype(np.float64), -1, 1e-5)
    np.testing.assert_allclose(nnc.layer_norm(nnc.asarray(x)).numpy(), wanted, atol=1e-2)


def test_what_is_constant_becomes_zero(device: str) -> None:
    x = nnc.full((2, 5), 3.0)
    assert (nnc.layer_norm(x).numpy() == 0).all()
    assert np.isfinite(nnc.grad(lambda v: nnc.sum(nnc.layer_norm(v) ** 2))(x).numpy()).all()
    assert (nnc.normalise(x * 0).numpy() == 0).all()
    assert np.isfinite(nnc.grad(lambda v: nnc.sum(nnc.normalise(v)))(x * 0).numpy()).all()


def test_spectral_norm(device: str) -> None:
    left_vectors, _, right_vectors = np.linalg.svd(RNG.normal(size=(6, 12)), full_matrices=False)
    values = [3, 2, 1, 1, 0.5, 0.1]  # the first two so far apart that 60 iterations are enough whatever is drawn
    matrix = (left_vectors * values @ right_vectors).astype(np.float32)
    w = matrix.reshape(6, 4, 3).transpose(1, 2, 0)
    largest = np.linalg.svd(matrix)[1][0]
    u = (3 * left_vectors[:, 0] + RNG.uniform(-1, 1, 6)).astype(np.float32)
    normed, vector, value = nnc.spectral_norm(nnc.asarray(w), nnc.asarray(u), iterations=60)
    np.testing.assert_allclose(value.item(), largest, rtol=1e-4)
    np.testing.assert_allclose(normed.numpy(), w / largest, rtol=1e-4)
    left = np.linalg.svd(matrix)[0][:, 0]
    np.testing.assert_allclose(abs(vector.numpy() @ left), 1, rtol=1e-4)
    same = nnc.spectral_norm(nnc.asarray(w), vector, iterations=0)
    np.testing.assert_allclose(same.value.item(), largest, rtol=1e-4)
    np.testing.assert_array_equal(same.vector.numpy(), vector.numpy())
    rows = nnc.spectral_norm(nnc.asarray(matrix), nnc.asarray(u), axis=0, iterations=60)
    np.testing.assert_allclose(rows.value.item(), largest, rtol=1e-4)


def test_the_slope_of_a_spectral_norm() -> None:
    """At the singular vectors the value's derivative is their product, and nothing goes to the vector."""
    matrix = RNG.normal(size=(5, 4))
    left, values, right = np.linalg.svd(matrix)

    def value(w: Any, u: Any) -> Any:
        return nnc.spectral_norm(w, u, axis=0, iterations=0).value

    dw, du = nnc.grad(value, (0, 1))(nnc.asarray(matrix), nnc.asarray(left[:, 0].copy()))
    np.testing.assert_allclose(dw.numpy(), np.outer(left[:, 0], right[0]), atol=1e-10)
    assert (du.numpy() == 0).all() and values[0] > 0


def test_vmapped_and_compiled(device: str) -> None:
    x = nnc.asarray(X.astype(np.float32))
    for f in (nnc.layer_norm, nnc.rms_norm):
        np.testing.assert_allclose(nnc.vmap(f)(x).numpy(), f(x).numpy(), rtol=1e-6, atol=1e-6)
    over = nnc.vmap(lambda v: nnc.layer_norm(v, axis=0))(x)
    np.testing.assert_allclose(over.numpy(), nnc.layer_norm(x, axis=1).numpy(), rtol=1e-6, atol=1e-6)
    compiled = nnc.jit(
        lambda v: nnc.batch_norm_training(v).output)
    for rows in (2, 3):
        np.testing.assert_allclose(compiled(x[:rows]).numpy(), standard(X[:rows], (0, 1), 1e-5), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda x: nnc.layer_norm(x, SCALE[:4]), ShapeError, r"layer_norm: the scale is float64\[4\], expected shape"),
    (lambda x: nnc.layer_norm(x, axis=3), AxisError, "(?s)layer_norm: axis 3.*test_normalisation.py"),
    (lambda x: nnc.layer_norm(x, epsilon=-1), AttributeValueError, "epsilon -1.0 is not at least 0"),
    (lambda x: nnc.group_norm(x, 4), ShapeError, "cannot be taken in 4 groups"),
    (lambda x: nnc.group_norm(x, 3, axis=0), ShapeError, "(?s)axis 0.*the first axis is the batch"),
    (lambda x: nnc.instance_norm(x, axis=0), ShapeError, "is the batch, not the channels"),
    (lambda x: nnc.batch_norm(x, SCALE[:3], SCALE), ShapeError, "the mean is float64.*for each of 6 channels"),
    (lambda x: nnc.local_response_norm(x, 0), AttributeValueError, "size 0 is no integer from 1 on"),
    (lambda x: nnc.weight_norm(x, SCALE[:3]), ShapeError, "the size is float64"),
    (lambda x: nnc.spectral_norm(x, SCALE[:3]), ShapeError, "expected one of 6 elements"),
])
def test_what_is_refused(call: Callable[[Any], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(nnc.asarray(X))
