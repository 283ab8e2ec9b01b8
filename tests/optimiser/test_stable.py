"""Naive formulas, compiled, give what their stable forms give where the naive ones overflow; and their gradients do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.dtype import float32, int64
from nnc_core.optimiser import REWRITES, Optimiser, Rewrite
from nnc_core.symbol import Literal, Node, postorder
from nnc_core.type import TensorSpec
from tests.graph.evaluate import evaluate
from tests.graph.stack import GRAPHS, OPTIMISER
from tests.optimiser.cases import CASES, INEXACT, conv
from tests.optimiser.helpers import placeholders

STEEP = np.array([[800.0, -800.0, 0.0], [3.0, 1.0, -2.0]], np.float32)
HOT = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], np.float32)


def log_softmax(x):  # type: ignore[no-untyped-def]
    wide = x.astype(np.float64) - x.max(-1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(-1, keepdims=True))


NAIVE: dict[str, tuple[Callable[..., object], np.ndarray]] = {  # type: ignore[type-arg]
    "log(softmax)": (lambda x: nnc.log(nnc.softmax(x, axis=-1)), log_softmax(STEEP)),
    "log(exp / sum(exp))": (lambda x: nnc.log(nnc.exp(x) / nnc.exp(x).sum(axis=-1, keepdims=True)), log_softmax(STEEP)),
    "log(sum(exp))": (lambda x: nnc.log(nnc.sum(nnc.exp(x), axis=-1)), np.logaddexp.reduce(STEEP.astype("f8"), -1)),
    "log(sigmoid)": (lambda x: nnc.log(nnc.sigmoid(x)), -np.logaddexp(0, -STEEP.astype("f8"))),
    "log(1 - sigmoid)": (lambda x: nnc.log(1 - nnc.sigmoid(x)), -np.logaddexp(0, STEEP.astype("f8"))),
    "log(1 + exp)": (lambda x: nnc.log(1 + nnc.exp(x)), np.logaddexp(0, STEEP.astype("f8"))),
    "cross entropy": (lambda x: -nnc.sum(nnc.asarray(HOT) * nnc.log(nnc.softmax(x, axis=-1)), axis=-1),
                      -(HOT * log_softmax(STEEP)).sum(-1)),
}


@pytest.mark.parametrize("name", NAIVE)
def test_naive_formulas_do_not_overflow_when_compiled(name: str) -> None:
    naive, wanted = NAIVE[name]
    found = np.asarray(nnc.jit(naive)(nnc.asarray(STEEP)).numpy())
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-30)
    with np.errstate(all="ignore"), config.using(deterministic=True):  # as it is written, to the bit
        assert not np.isfinite(np.asarray(nnc.jit(naive)(nnc.asarray(STEEP)).numpy())).all()


def test_the_gradient_of_binary_cross_entropy_by_hand_is_finite() -> None:
    def loss(x):  # type: ignore[no-untyped-def]
        p, t = nnc.sigmoid(x), nnc.asarray(HOT)
        return -nnc.sum(t * nnc.log(p) + (1 - t) * nnc.log(1 - p))

    found = nnc.jit(nnc.grad(loss))(nnc.asarray(STEEP)).numpy()
    np.testing.assert_allclose(found, np.exp(-np.logaddexp(0, -STEEP.astype("f8"))) - HOT, rtol=1e-4, atol=1e-6)


def test_the_gradient_of_cross_entropy_by_hand_is_finite() -> None:
    def loss(x):  # type: ignore[no-untyped-def]
        return -nnc.sum(nnc.asarray(HOT) * nnc.log(nnc.softmax(x, axis=-1)))

    found = nnc.jit(nnc.grad(loss))(nnc.asarray(STEEP)).numpy()
    np.testing.assert_allclose(found, np.exp(log_softmax(STEEP)) - HOT, rtol=1e-4, atol=1e-6)


class Inexact(Optimiser):
    def rewrites(self) -> Iterable[Rewrite]:
        return (r for r in REWRITES.values() if not r.exact)


@pytest.mark.parametrize("name", sorted(INEXACT & CASES.keys()))
def test_inexact_rewrites_stay_within_a_few_roundings(name: str) -> None:
    """Where nothing overflows both forms agree, in float64 up to what the naive one cancels."""
    rng = np.random.default_rng(7)
    for specs, before, _ in CASES[name]:
        F, xs = placeholders([s.replace("float32", "float64").replace("complex64", "complex128") for s in specs])
        if any(x.dtype.kind == "e" for x in xs):
            continue  # halves are what the rule leaves alone
        values = {x: _drawn(rng, x) for x in xs}
        try:
            node = before(F, *xs)
        except nnc.Error:
            continue  # the case names float32 inside
        optimiser = Inexact(OPTIMISER.operator)
        after = optimiser.run(optimiser.recognise([node]))
        for a, b in zip(evaluate(after, values), evaluate([node], values), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def _drawn(rng: np.random.Generator, x: Node) -> np.ndarray:  # type: ignore[type-arg]
    shape = x.spec.static_shape
    if x.dtype.kind in "iu":
        return rng.integers(0, 2, shape).astype(x.dtype)
    return (rng.uniform(0.2, 2, shape) + (0.5j if x.dtype.kind == "c" else 0)).astype(x.dtype)


def test_batch_norm_by_known_moments_becomes_one_convolution_and_a_bias() -> None:
    rng = np.random.default_rng(1)
    F, (x,) = placeholders(["float32 2 8 8 3"])
    kernel, *moments = (rng.uniform(0.5, 2, s).astype(np.float32) for s in ((3, 3, 3, 64), (64,), (64,), (64,), (64,)))
    constants = [F.constant(Literal(a), TensorSpec(a.shape, float32)) for a in (kernel, *moments)]
    node = F.relu(F.batch_norm(conv(F, x, constants[0]), *constants[1:], axis=3, epsilon=1e-5))
    (after,) = OPTIMISER.run(OPTIMISER.expand([node], lambda n: True))
    names = sorted(n.op.name for n in postorder([after]))
    assert names == ["add", "constant", "constant", "conv", "placeholder", "relu"]
    values = {x: rng.normal(size=(2, 8, 8, 3)).astype(np.float32)}
    for a, b in zip(evaluate([after], values), evaluate([node], values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)
    with config.using(deterministic=True):
        (kept,) = OPTIMISER.run(OPTIMISER.expand([node], lambda n: True))
    assert "multiply" in {n.op.name for n in postorder([kept])}


def test_a_convolution_that_is_read_elsewhere_is_not_scaled() -> None:
    F, (x, k, s) = placeholders(["float32 2 8 8 3", "float32 3 3 3 4", "float32 4"])
    y = conv(F, x, k)
    outputs = [F.multiply(y, s), y]
    assert OPTIMISER.run(outputs) == outputs


def test_recognised_composites_are_expanded_by_the_engine() -> None:
    F, (x, labels) = placeholders(["float32 2 3", "int64 2"])
    hot = F.one_hot(labels, depth=3, dtype=float32)
    loss = F.negative(F.sum(F.multiply(hot, F.log(F.softmax(x, axis=1))), axis=(1,)))
    found = OPTIMISER.run(OPTIMISER.recognise([loss]))
    assert [n.op.name for n in postorder(found)] == ["placeholder", "placeholder", "cross_entropy"]
    assert labels.dtype == int64 and GRAPHS.optimiser.recognise(found) == found
