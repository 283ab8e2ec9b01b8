"""What generators draw beside uniform numbers: distributions, shapes, dtypes, gradients by parameters, modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, GradientError, ShapeError

SEED, COUNT, LEAST = 77, 8000, 1e-3
Draw = Callable[..., nnc.Tensor]
COVARIANCE = np.array([[2.0, 0.6, 0.0], [0.6, 1.0, -0.3], [0.0, -0.3, 0.5]])

CONTINUOUS: dict[str, tuple[Draw, Any]] = {
    "uniform": (lambda g, n: g.uniform(n, -1.0, 2.0), scipy.stats.uniform(-1, 3)),
    "normal": (lambda g, n: g.normal(n, 1.0, 2.0), scipy.stats.norm(1, 2)),
    "exponential": (lambda g, n: g.exponential(n, 0.5), scipy.stats.expon(scale=0.5)),
    "gumbel": (lambda g, n: g.gumbel(n, 1.0, 2.0), scipy.stats.gumbel_r(1, 2)),
    "laplace": (lambda g, n: g.laplace(n, -1.0, 0.5), scipy.stats.laplace(-1, 0.5)),
    "logistic": (lambda g, n: g.logistic(n, 0.5, 3.0), scipy.stats.logistic(0.5, 3)),
    "truncated_normal": (lambda g, n: g.truncated_normal(0.0, 5.0, n, 1.0, 2.0), scipy.stats.truncnorm(-0.5, 2, 1, 2)),
    "truncated on the right": (lambda g, n: g.truncated_normal(3.0, 8.0, n), scipy.stats.truncnorm(3, 8)),
    "truncated on the left": (lambda g, n: g.truncated_normal(-8.0, -3.0, n), scipy.stats.truncnorm(-8, -3)),
    "gamma": (lambda g, n: g.gamma(2.5, n, 0.5), scipy.stats.gamma(2.5, scale=0.5)),
    "beta": (lambda g, n: g.beta(0.6, 2.0, n), scipy.stats.beta(0.6, 2)),
}  # fmt: skip
each_continuous = pytest.mark.parametrize("name", CONTINUOUS)


@each_continuous
def test_distributions(name: str) -> None:
    draw, wanted = CONTINUOUS[name]
    drawn = draw(nnc.Generator(SEED), COUNT).numpy()
    assert drawn.dtype == np.float32 and np.isfinite(drawn).all()
    assert scipy.stats.kstest(drawn.astype(np.float64), wanted.cdf).pvalue > LEAST


@each_continuous
def test_every_mode_and_device_agrees(name: str, device: str) -> None:
    draw = CONTINUOUS[name][0]
    with nnc.use_device("strict:0"):
        g = nnc.Generator(SEED)
        wanted = [draw(g, 50).numpy() for _ in range(2)]
    g = nnc.Generator(SEED)
    found = [draw(g, 50)]
    with nnc.deferred():
        found.append(draw(g, 50))
    g.seed(SEED)
    compiled = nnc.jit(lambda: draw(g, 50))
    for a, b in zip([*found, compiled(), compiled()], [*wanted, *wanted], strict=True):
        assert a.device.id == device
        np.testing.assert_allclose(a.numpy(), b, rtol=2e-5, atol=1e-5)


PARAMETERS: dict[str, tuple[Draw, tuple[Any, ...]]] = {
    "uniform": (lambda g, a, b: g.uniform((5, 3), a, b), (-1.0, 2.0)),
    "normal": (lambda g, a, b: g.normal((5, 3), a, b), (1.0, 2.0)),
    "exponential": (lambda g, a: g.exponential((5, 3), a), (0.5,)),
    "gumbel": (lambda g, a, b: g.gumbel((5, 3), a, b), (1.0, 2.0)),
    "laplace": (lambda g, a, b: g.laplace((5, 3), a, b), (1.0, 2.0)),
    "logistic": (lambda g, a, b: g.logistic((5, 3), a, b), (1.0, 2.0)),
    "truncated_normal": (lambda g, a, b, m, s: g.truncated_normal(a, b, (5, 3), m, s), (-1.0, 2.0, 0.2, 1.5)),
    "gamma": (lambda g, a: g.gamma(2.0, (5, 3), a), (1.5,)),
}  # fmt: skip


@pytest.mark.parametrize("name", PARAMETERS)
def test_derivatives_by_parameters(name: str) -> None:
    """Against differences, with the same draws."""
    draw, numbers = PARAMETERS[name]
    at = [np.full(3, x) + np.arange(3) * 0.1 for x in numbers]

    def total(*parameters: Any) -> nnc.Tensor:
        y = draw(nnc.Generator(SEED), *parameters)
        return nnc.sum(y * y)

    given = [nnc.asarray(a) for a in at]
    assert draw(nnc.Generator(SEED), *given).dtype == "float64"
    gradients = nnc.grad(total, tuple(range(len(given))))(*given)
    for k, g in enumerate(gradients):
        for i in range(3):
            step = [np.zeros(3) for _ in at]
            step[k][i] = 1e-6
            above, below = (float(total(*[nnc.asarray(a + s * h) for a, s in zip(at, step, strict=True)]))
                            for h in (1, -1))
            np.testing.assert_allclose(g.numpy()[i], (above - below) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_may_be_tensors(name: str, device: str) -> None:
    draw, numbers = PARAMETERS[name]
    plain = draw(nnc.Generator(SEED), *numbers).numpy()
    with_tensors = draw(nnc.Generator(SEED), *[nnc.full((3,), x) for x in numbers])
    assert with_tensors.dtype == "float32" and with_tensors.device.id == device
    np.testing.assert_allclose(with_tensors.numpy(), plain, rtol=1e-5, atol=1e-6)


def test_shapes_follow_parameters() -> None:
    g, rows = nnc.Generator(1), nnc.asarray([[1.0], [2.0]])
    assert g.normal((), rows, 1.0).shape == (2, 1)
    assert g.exponential((2, 4), rows).shape == (2, 4)
    assert g.gamma(rows, scale=[1.0, 2.0, 3.0]).shape == (2, 3)
    assert g.beta(rows, [1.0, 2.0]).shape == (2, 2)
    assert g.dirichlet([1.0, 2.0, 3.0], (4, 2)).shape == (4, 2, 3)
    assert g.dirichlet(nnc.ones((2, 3))).shape == (2, 3)
    assert g.poisson(rows, (3, 2, 5)).shape == (3, 2, 5)
    assert g.binomial([5, 6, 7], rows).shape == (2, 3)
    assert g.multinomial([5, 6], [0.5, 0.5]).shape == (2, 2)
    assert g.categorical(nnc.zeros((2, 3)), (4, 2)).shape == (4, 2)
    assert g.categorical(nnc.zeros((2, 3)), axis=0).shape == (3,)
    assert g.multivariate_normal(np.zeros(3), COVARIANCE, (5, 2)).shape == (5, 2, 3)
    assert g.multivariate_normal(np.zeros((5, 1, 3)), np.stack([COVARIANCE] * 2)).shape == (5, 2, 3)
    with pytest.raises(ShapeError, match="do not broadcast"):
        g.normal((5,), rows, [1.0, 2.0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes(dtype: str) -> None:
    g = nnc.Generator(2)
    for drawn in (g.exponential(9, dtype=dtype), g.gumbel(9, dtype=dtype), g.laplace(9, dtype=dtype),
                  g.logistic(9, dtype=dtype), g.truncated_normal(-1, 1, 9, dtype=dtype), g.gamma(2.0, 9, dtype=dtype),
                  g.beta(1.0, 2.0, 9, dtype=dtype), g.dirichlet([1.0, 2.0], 9, dtype=dtype),
                  g.multivariate_normal(np.zeros(3), COVARIANCE, dtype=dtype)):  # fmt: skip
        assert drawn.dtype == dtype
        assert np.isfinite(drawn.numpy().astype(np.float64)).all()
    assert g.poisson(3.0, 4, dtype="int8").dtype == "int8"
    assert g.multinomial(3, [0.5, 0.5], dtype="uint16").dtype == "uint16"


def test_truncated_numbers_stay_inside(device: str) -> None:
    g = nnc.Generator(3)
    for low, high in ((-0.5, 0.5), (2.0, 2.5), (-7.0, -6.0), (-np.inf, 0.0), (1.0, np.inf)):
        drawn = g.truncated_normal(low, high, 500).numpy()
        assert low <= drawn.min() <= drawn.max() <= high and np.isfinite(drawn).all()


@pytest.mark.filterwarnings("ignore:cholesky has no kernel")
def test_multivariate_normal(device: str) -> None:
    drawn = nnc.Generator(SEED).multivariate_normal([1.0, -2.0, 0.5], COVARIANCE.astype(np.float32), 20_000).numpy()
    np.testing.assert_allclose(drawn.mean(0), [1, -2, 0.5], atol=0.05)
    np.testing.assert_allclose(np.cov(drawn.T), COVARIANCE, atol=0.08)


def test_the_slope_of_a_multivariate_normal() -> None:
    def total(m: Any, c: Any) -> nnc.Tensor:
        return nnc.sum(nnc.Generator(SEED).multivariate_normal(m, c, 4) ** 2)

    mean = np.array([0.1, 0.2, 0.3])
    dm, dc = nnc.grad(total, (0, 1))(nnc.asarray(mean), nnc.asarray(COVARIANCE))
    for g, i, along in ((dm.numpy(), 1, "m"), ((dc + dc.T).numpy() / 2, (0, 1), "c")):
        step = np.zeros_like(mean if along == "m" else COVARIANCE)
        step[i] = 1e-6
        step = step if along == "m" else (step + step.T) / 2
        both = [float(total(nnc.asarray(mean + h * step), nnc.asarray(COVARIANCE)) if along == "m" else
                      total(nnc.asarray(mean), nnc.asarray(COVARIANCE + h * step))) for h in (1, -1)]
        np.testing.assert_allclose(g[i], (both[0] - both[1]) / 2e-6, rtol=1e-4)


def test_dirichlet_and_categories(device: str) -> None:
    g = nnc.Generator(SEED)
    p = g.dirichlet([2.0, 1.0, 0.5], 3000).numpy()
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
    for k, a in enumerate((2.0, 1.0, 0.5)):
        assert scipy.stats.kstest(p[:, k], scipy.stats.beta(a, 3.5 - a).cdf).pvalue > LEAST
    assert np.isfinite(g.dirichlet(np.full(3, 1e-3, np.float32), 50).numpy()).all()
    logits = np.log(np.array([0.1, 0.6, 0.3], np.float32))
    counts = np.bincount(g.categorical(logits, 4000).numpy(), minlength=3)
    assert scipy.stats.chisquare(counts, [400, 2400, 1200]).pvalue > LEAST
    masked = g.categorical([0.0, -np.inf, 0.0], 200).numpy()
    assert set(masked.tolist()) == {0, 2}


def test_shuffled_in_place(device: str) -> None:
    x = nnc.asarray(np.arange(20, dtype=np.float32).reshape(5, 4))
    same = nnc.Generator(4).permutation(x)
    assert nnc.Generator(4).shuffle(x) is None
    np.testing.assert_array_equal(x.numpy(), same.numpy())
    columns = nnc.asarray(np.arange(8))
    nnc.Generator(4).shuffle(columns)
    assert sorted(columns.tolist()) == list(range(8)) != columns.tolist()


def test_names() -> None:
    a, b = nnc.Generator(1), nnc.Generator(1)
    assert a.randint(0, 9, 5).tolist() == b.integers(0, 9, 5).tolist()
    assert a.bernoulli(0.3, 20).tolist() == b.bernoulli(0.3, 20).tolist()


def test_gradients_that_are_not_known_are_errors() -> None:
    for draw in (lambda a: nnc.Generator(1).gamma(a), lambda a: nnc.Generator(1).beta(a, 1.0),
                 lambda a: nnc.Generator(1).dirichlet(a)):
        for f in (draw, nnc.jit(draw)):
            with pytest.raises(GradientError, match="stop_gradient the concentration"):
                nnc.grad(lambda a, f=f: nnc.sum(f(a)))(nnc.ones((3,)))
    rates = nnc.grad(lambda r: nnc.sum(nnc.Generator(1).poisson(r).astype("float32") * r))(nnc.ones((3,)))
    assert rates.tolist() == nnc.Generator(1).poisson(nnc.ones((3,))).tolist()  # counts are constants


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda g: g.categorical(nnc.zeros((2, 0))), AttributeValueError, "no category"),
    (lambda g: g.dirichlet(1.0), ShapeError, r"expected \(..., n\)"),
    (lambda g: g.multinomial(3, 0.5), ShapeError, r"expected \(..., n\)"),
    (lambda g: g.multinomial(2.5, [0.5, 0.5]), DTypeError, "trials is float32, not integers"),
    (lambda g: g.multivariate_normal([0.0, 1.0], COVARIANCE), ShapeError, r"expected \(..., n\) and \(..., n, n\)"),
    (lambda g: g.poisson(1.0, dtype="float32"), DTypeError, "counts of dtype float32"),
    (lambda g: g.choice(3, weights=[1.0]), ShapeError, "one for each of 3 elements"),
    (lambda g: g.choice(3, 2, weights=[1.0, 0.0, 0.0], replace=False), AttributeValueError, "2 of 1 elements"),
])
def test_what_cannot_be_drawn_is_named(call: Callable[[nnc.Generator], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(nnc.Generator(0))


def test_arguments_by_the_names_of_numpy_and_jax() -> None:
    def drawn(name: str, *args: Any, **kwargs: Any) -> list[float]:
        found: list[float] = getattr(nnc.Generator(5), name)(*args, **kwargs).tolist()
        return found

    assert drawn("normal", loc=2.0, scale=0.5, size=3) == drawn("normal", (3,), 2.0, 0.5)
    assert drawn("uniform", size=(2,), minval=1.0, maxval=2.0) == drawn("uniform", (2,), 1.0, 2.0)
    assert drawn("integers", 0, 9, size=4) == drawn("integers", 0, 9, (4,))
    assert drawn("poisson", lam=3.0, size=4) == drawn("poisson", 3.0, (4,))
    assert drawn("binomial", 5, p=0.5, size=4) == drawn("binomial", 5, 0.5, (4,))
    assert drawn("bernoulli", p=0.5, size=4) == drawn("bernoulli", 0.5, (4,))
    assert drawn("laplace", loc=1.0, scale=2.0, size=2) == drawn("laplace", (2,), 1.0, 2.0)
    with pytest.raises(nnc.Error, match="normal: there is no argument 'sigmas'") as caught:
        nnc.Generator(0).normal(3, sigmas=2)  # type: ignore[call-arg]
    assert "test_distributions.py" in str(caught.value)
