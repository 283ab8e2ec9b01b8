"""Losses against plain formulas in float64: values, reductions, derivatives, modes, ends, what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DTypeError, OutOfRangeError, ShapeError
from nnc_core.functions import classification
from tests.tensors.against_numpy import assert_derivatives, assert_same

RNG = np.random.default_rng(7)
X = RNG.normal(size=(4, 5))
Y = RNG.normal(size=(4, 5))
LABELS = np.array([0, 3, 4, 3])
WEIGHTS = np.array([0.5, 1.0, 2.0, 0.25, 1.5])
SOFT = scipy.special.softmax(RNG.normal(size=(4, 5)), -1)
P = scipy.special.expit(X)
SIGNS = np.where(RNG.random((4, 5)) < 0.5, -1.0, 1.0)
REDUCED: dict[str, Callable[[Any], Any]] = {"none": lambda x: x, "mean": np.mean, "sum": np.sum}


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def huber(d: Any, delta: float) -> Any:
    return np.where(abs(d) <= delta, d * d / 2, delta * (abs(d) - delta / 2))


def cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


def distance(a: Any, b: Any, p: float = 2) -> Any:
    return np.linalg.norm(a - b + 1e-6, p, -1)


def triplet(swap: bool) -> Callable[[Any, Any], Any]:
    def wanted(x: Any, y: Any) -> Any:
        far = np.minimum(distance(x, x * y), distance(y, x * y)) if swap else distance(x, x * y)
        return np.maximum(0, distance(x, y) - far + 1)

    return wanted


def weighted_binary(x: Any, y: Any) -> Any:
    return 2 * (scipy.special.expit(y) * WEIGHTS * softplus(-x) + scipy.special.expit(-y) * softplus(x))


def like(a: Any, x: nnc.Tensor) -> nnc.Tensor:
    return nnc.asarray(a, dtype=x.dtype, device=x.device)


WEIGHTED = {"pos_weight": WEIGHTS, "weights": 2.0}
ONE, OTHER = SIGNS[:, 0], SIGNS
LOSSES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mse": (nnc.mse_loss, lambda x, y: (x - y) ** 2), "l1": (nnc.l1_loss, lambda x, y: abs(x - y)),
    "huber": (lambda x, y, **k: nnc.huber_loss(x, y, delta=0.8, **k), lambda x, y: huber(x - y, 0.8)),
    "smooth l1": (lambda x, y, **k: nnc.smooth_l1_loss(x, y, beta=0.6, **k), lambda x, y: huber(x - y, 0.6) / 0.6),
    "smooth l1 of 0": (lambda x, y, **k: nnc.smooth_l1_loss(x, y, beta=0, **k), lambda x, y: abs(x - y)),
    "poisson": (lambda x, y, **k: nnc.poisson_nll_loss(x, abs(y), **k), lambda x, y: np.exp(x) - abs(y) * x),
    "poisson of rates": (lambda x, y, **k: nnc.poisson_nll_loss(nnc.exp(x), abs(y), log_input=False, **k),
                         lambda x, y: np.exp(x) - abs(y) * np.log(np.exp(x) + 1e-8)),
    "gaussian": (lambda x, y, **k: nnc.gaussian_nll_loss(x, y, nnc.exp(x * y), **k),
                 lambda x, y: 0.5 * (x * y + (x - y) ** 2 / np.exp(x * y))),
    "gaussian, full": (lambda x, y, **k: nnc.gaussian_nll_loss(x, y, 2.0, full=True, **k),
                       lambda x, y: -scipy.stats.norm.logpdf(y, x, math.sqrt(2))),
    "kl": (lambda x, y, **k: nnc.kl_div(x, nnc.exp(y), **k), lambda x, y: scipy.special.rel_entr(np.exp(y), np.exp(x))),
    "kl of logarithms": (lambda x, y, **k: nnc.kl_div(x, y, log_target=True, **k), lambda x, y: np.exp(y) * (y - x)),
    "hinge": (lambda x, y, **k: nnc.hinge_loss(x, nnc.sign(y), **k), lambda x, y: np.maximum(0, 1 - x * np.sign(y))),
    "hinge embedding": (lambda x, y, **k: nnc.hinge_embedding_loss(x, like(OTHER, x), **k),
                        lambda x, y: np.where(OTHER > 0, x, np.maximum(0, 1 - x))),
    "ranking": (lambda x, y, **k: nnc.margin_ranking_loss(x, y, like(OTHER, x), margin=0.3, **k),
                lambda x, y: np.maximum(0, 0.3 - OTHER * (x - y))),
    "cosine": (lambda x, y, **k: nnc.cosine_embedding_loss(x, y, like(ONE, x), margin=0.1, **k),
               lambda x, y: np.where(ONE > 0, 1 - cosine(x, y), np.maximum(0, cosine(x, y) - 0.1))),
    "triplet": (lambda x, y, **k: nnc.triplet_margin_loss(x, y, x * y, **k), triplet(False)),
    "triplet, swapped": (lambda x, y, **k: nnc.triplet_margin_loss(x, y, x * y, swap=True, **k), triplet(True)),
    "binary": (lambda x, y, **k: nnc.binary_cross_entropy(nnc.sigmoid(x), nnc.sigmoid(y), **k),
               lambda x, y: softplus(x) - x * scipy.special.expit(y)),
    "binary of logits": (lambda x, y, **k: nnc.binary_cross_entropy_with_logits(x, nnc.sigmoid(y), **k),
                         lambda x, y: softplus(x) - x * scipy.special.expit(y)),
    "binary, weighted": (
        lambda x, y, **k: nnc.binary_cross_entropy_with_logits(x, nnc.sigmoid(y), **WEIGHTED, **k), weighted_binary),
    "binary of probabilities, weighted": (
        lambda x, y, **k: nnc.binary_cross_entropy(nnc.sigmoid(x), nnc.sigmoid(y), **WEIGHTED, **k), weighted_binary),
}  # fmt: skip
each_loss = pytest.mark.parametrize("name", LOSSES)


@each_loss
def test_values(name: str, device: str) -> None:
    ours, theirs = LOSSES[name]
    x, y = (nnc.asarray(a.astype(np.float32)) for a in (X, Y))
    found = ours(x, y, reduction="none")
    assert found.dtype == "float32" and found.device.id == device
    np.testing.assert_allclose(found.numpy(), theirs(X, Y), rtol=2e-6, atol=2e-6)


@each_loss
@pytest.mark.parametrize("reduction", REDUCED)
def test_reductions(name: str, reduction: str) -> None:
    ours, theirs = LOSSES[name]
    found = ours(nnc.asarray(X), nnc.asarray(Y), reduction=reduction)
    assert found.dtype == "float64"
    np.testing.assert_allclose(found.numpy(), REDUCED[reduction](theirs(X, Y)), rtol=1e-11, atol=1e-11)


@each_loss
def test_derivatives(name: str) -> None:
    assert_derivatives(lambda n, x, y: LOSSES[name][0](x, y, reduction="none"), [X, Y])


@each_loss
def test_compiled(name: str) -> None:
    ours, theirs = LOSSES[name]
    np.testing.assert_allclose(nnc.jit(lambda x, y: ours(x, y))(nnc.asarray(X), nnc.asarray(Y)).numpy(),
                               np.mean(theirs(X, Y)), rtol=1e-10)


def test_halves_are_computed_in_float32() -> None:
    x = nnc.asarray(np.array([300.0, 500.0], np.float16))
    assert_same(nnc.mse_loss(x, x - 100), np.float16(10000), 1e-3)
    assert nnc.cosine_similarity(x * 100, x * 100).item() == pytest.approx(1, rel=1e-3)
    assert_same(nnc.cross_entropy(nnc.asarray(np.array([[10.0, 0.0]], np.float16)), [1]), np.float16(10), 1e-3)


# ---- many classes
def row_losses(x: Any, labels: Any, weights: Any, smoothing: float, ignored: int | None) -> tuple[Any, Any]:
    """Losses and what each counts, row by row."""
    losses, counts = np.zeros(len(x)), np.zeros(len(x))
    for i, (row, label) in enumerate(zip(x, labels, strict=True)):
        logs = row - math.log(math.fsum(np.exp(row)))
        if label == ignored:
            continue
        wanted = np.eye(len(row))[label] * (1 - smoothing)
        counts[i] = weights[label]
        losses[i] = -(wanted * logs * weights).sum() - smoothing / len(row) * (logs * weights).sum()
    return losses, counts


CHOICES = list(itertools.product((None, WEIGHTS), (0.0, 0.2), (None, 3, 1)))


@pytest.mark.parametrize(("weights", "smoothing", "ignored"), CHOICES)
def test_cross_entropy(weights: Any, smoothing: float, ignored: int | None, device: str) -> None:
    losses, counts = row_losses(X, LABELS, np.ones(5) if weights is None else weights, smoothing, ignored)
    named = {"weights": weights, "label_smoothing": smoothing, "ignore_index": ignored}
    x = nnc.asarray(X.astype(np.float32))
    wanted = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / counts.sum()}
    for reduction, value in wanted.items():
        found = nnc.cross_entropy(x, LABELS, reduction=reduction, **named)
        np.testing.assert_allclose(found.numpy(), value, rtol=2e-6)
        p = nnc.softmax(x)
        again = nnc.categorical_cross_entropy(p, LABELS, reduction=reduction, **named)
        np.testing.assert_allclose(again.numpy(), value, rtol=2e-6)
        if not smoothing:
            logs = nnc.nll_loss(nnc.log(p), LABELS, reduction=reduction, weights=weights, ignore_index=ignored)
            np.testing.assert_allclose(logs.numpy(), value, rtol=2e-6)


@pytest.mark.parametrize(("weights", "smoothing", "ignored"), CHOICES)
def test_derivatives_of_cross_entropy(weights: Any, smoothing: float, ignored: int | None) -> None:
    named = {"weights": weights, "label_smoothing": smoothing, "ignore_index": ignored}
    assert_derivatives(lambda n, x: nnc.cross_entropy(x, LABELS, **named), [X])
    ignoring = nnc.grad(lambda x: nnc.cross_entropy(x, LABELS, **named))(nnc.asarray(X)).numpy()
    if ignored == 3:
        assert (ignoring[[1, 3]] == 0).all() and (ignoring[[0, 2]] != 0).all()


@pytest.mark.parametrize("named", [{}, {"weights": WEIGHTS}, {"label_smoothing": 0.2}], ids=str)
def test_a_batch_in_which_nothing_counts_moves_nothing(named: dict[str, Any], device: str) -> None:
    both = nnc.value_and_grad(lambda x: nnc.cross_entropy(x, np.full(len(X), -100), **named))
    for f in (both, nnc.jit(both)):
        loss, slope = f(nnc.asarray(X.astype(np.float32)))
        assert np.isnan(loss.item())
        np.testing.assert_array_equal(slope.numpy(), np.zeros_like(X))


def test_probabilities_as_labels(device: str) -> None:
    x = nnc.asarray(X.astype(np.float32))
    logs = scipy.special.log_softmax(X, -1)
    for weights in (None, WEIGHTS):
        for smoothing in (0.0, 0.1):
            wanted = -((SOFT * (1 - smoothing) + smoothing / 5) * logs * (1 if weights is None else weights)).sum(-1)
            found = nnc.cross_entropy(x, SOFT.astype(np.float32), weights=weights, label_smoothing=smoothing,
                                      reduction="none")
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    one_hot = np.eye(5, dtype=np.float32)[LABELS]
    np.testing.assert_allclose(nnc.cross_entropy(x, one_hot).item(), nnc.cross_entropy(x, LABELS).item(), rtol=1e-6)
    np.testing.assert_allclose(nnc.categorical_cross_entropy(nnc.softmax(x), one_hot, label_smoothing=0.1).item(),
                               nnc.cross_entropy(x, LABELS, label_smoothing=0.1).item(), rtol=1e-6)


def test_classes_along_another_axis(device: str) -> None:
    x = RNG.normal(size=(2, 3, 4)).astype(np.float32)
    labels = np.array([[0, 1, 2, 0], [1, 1, 0, 2]])
    wanted = nnc.cross_entropy(x.transpose(0, 2, 1), labels, reduction="none").numpy()
    assert_same(nnc.cross_entropy(nnc.asarray(x), labels, axis=1, reduction="none"), wanted)
    soft = np.eye(3, dtype=np.float32)[labels].transpose(0, 2, 1)
    assert_same(nnc.cross_entropy(nnc.asarray(x), soft, axis=1, reduction="none"), wanted)


def test_masked_logits_and_labels_that_are_no_class(device: str) -> None:
    x = nnc.asarray(np.array([[1.0, -np.inf, 2.0], [0.0, 1.0, 2.0]], np.float32))
    found = nnc.cross_entropy(x, nnc.asarray(np.array([2, 255], np.uint8)), reduction="none", ignore_index=255)
    np.testing.assert_allclose(found.numpy(), [np.log(1 + np.exp(-1)), 0], rtol=1e-6)
    assert_same(nnc.cross_entropy(x, [2, -100], reduction="none"), found.numpy())
    g = nnc.grad(lambda v: nnc.cross_entropy(v, [2, -100]))(x).numpy()
    assert np.isfinite(g).all() and (g[1] == 0).all() and g[0, 1] == 0
    soft = np.array([[0.5, 0.0, 0.5], [0, 0, 1]], np.float32)
    assert np.isfinite(nnc.cross_entropy(x, soft).item())


@pytest.mark.parametrize("other", [-100, 5, 250])
@pytest.mark.parametrize(("weights", "smoothing"), [*itertools.product((None, WEIGHTS), (0.0, 0.2))])
def test_rows_whose_label_is_no_class_neither_cost_nor_count(other: int, weights: Any, smoothing: float,
                                                             device: str) -> None:
    """PyTorch's -100 among them, whichever losses and reductions."""
    labels = np.where(LABELS[0] == LABELS, other, LABELS)
    assert 0 < (labels == other).sum() < len(labels)
    x = nnc.asarray(X.astype(np.float32))
    p = nnc.softmax(x)
    calls: list[Any] = [
        lambda **k: nnc.cross_entropy(x, labels, label_smoothing=smoothing, **k),
        lambda **k: nnc.categorical_cross_entropy(p, labels, label_smoothing=smoothing, **k),
        *([] if smoothing else [lambda **k: nnc.nll_loss(nnc.log(p), labels, **k)]),
    ]
    losses, counts = row_losses(X, labels, np.ones(5) if weights is None else weights, smoothing, other)
    for call, (reduction, value) in itertools.product(
            calls, {"none": losses, "sum": losses.sum(), "mean": losses.sum() / counts.sum()}.items()):
        with nnc.deferred():  # where nobody looks at labels
            late = call(weights=weights, reduction=reduction)
        np.testing.assert_allclose(late.numpy(), value, rtol=2e-6)
        np.testing.assert_allclose(call(weights=weights, reduction=reduction, ignore_index=other).numpy(), value,
                                   rtol=2e-6)


@pytest.mark.parametrize("named", [{}, {"label_smoothing": 0.1}, {"reduction": "sum"}, {"ignore_index": None},
                                   {"ignore_index": 1}, {"weights": np.ones(5, np.float32)}])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_labels_that_all_count_change_no_bit(named: dict[str, Any], dtype: str,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """Where labels are at hand and none is ignored, rows are counted by Python."""
    rng = np.random.default_rng(0)
    x, labels = nnc.asarray(rng.standard_normal((7, 5)).astype(dtype)), nnc.asarray(rng.integers(0, 5, 7))

    def found() -> list[bytes]:
        both = [nnc.value_and_grad(lambda x: nnc.cross_entropy(x, labels, **named))(x)]
        if "label_smoothing" not in named:
            both.append(nnc.value_and_grad(lambda x: nnc.nll_loss(x, labels, **named))(x))
        return [t.numpy().tobytes() for pair in both for t in pair]

    known = found()
    check = classification._check_labels
    assert check(labels._value, 5, named.get("ignore_index")) is (named.get("ignore_index") != 1)
    monkeypatch.setattr(classification, "_check_labels", lambda *given: check(*given) and False)
    assert found() == known


def test_a_mean_over_no_rows_that_count_is_nan(device: str) -> None:
    x = nnc.asarray(X.astype(np.float32))
    nobody = np.full(len(X), -100)
    assert np.isnan(nnc.cross_entropy(x, nobody).item()) and nnc.cross_entropy(x, nobody, reduction="sum").item() == 0


def test_rows_that_count_where_the_number_of_classes_has_a_name(device: str) -> None:
    labels = nnc.asarray(np.array([1, -100, 4, 9]))
    x = nnc.asarray(X.astype(np.float32))
    with nnc.deferred():
        y = nnc.cross_entropy(x, labels)
    graph = nnc.export({"x": x, "labels": labels}, {"y": y}, named_dims={"x": (None, "classes")})
    found = graph.compile(device)(x=X.astype(np.float32), labels=labels)["y"]
    np.testing.assert_allclose(found.numpy(), nnc.cross_entropy(x, [1, -100, 4, -100]).numpy(), rtol=1e-6)
    narrow = graph.compile(device)(x=X[:, :3].astype(np.float32), labels=labels)["y"]
    np.testing.assert_allclose(narrow.numpy(), nnc.cross_entropy(x[:, :3], [1, -100, -100, -100]).numpy(), rtol=1e-6)


@pytest.mark.parametrize("wrong", [5, -1, 250])
def test_labels_that_are_no_class_are_refused_where_they_are_at_hand(wrong: int) -> None:
    """On the CPU, whose memory is the host's; only `ignore_index` is ignored."""
    x, labels = nnc.asarray(X.astype(np.float32), device="cpu"), LABELS.copy()
    labels[:2] = wrong, -100
    for loss in (nnc.cross_entropy, nnc.nll_loss, nnc.categorical_cross_entropy):
        with pytest.raises(OutOfRangeError, match=f"label {wrong} is none of 5 classes, and ignore_index is -100"):
            loss(x, labels)
        with pytest.raises(OutOfRangeError, match="label -100 is none of 5 classes, and ignore_index is"):
            loss(x, labels, ignore_index=wrong)
    with pytest.raises(OutOfRangeError, match="and none is ignored"):
        nnc.cross_entropy(x, labels, ignore_index=None)


def test_no_classes_at_all(device: str) -> None:
    assert nnc.cross_entropy(nnc.zeros((3, 0)), [-100] * 3, reduction="none").tolist() == [0, 0, 0]


def test_logits_that_are_large_lose_nothing(device: str) -> None:
    x = nnc.asarray(np.array([100.0, -100.0, 20.0, -20.0], np.float32))
    found = nnc.binary_cross_entropy_with_logits(x, [1.0, 0.0, 1.0, 1.0], reduction="none").numpy()
    np.testing.assert_allclose(found[2:], [np.exp(-20.0), 20], rtol=1e-5)
    assert (found[:2] >= 0).all() and (found[:2] < 1e-30).all()
    slopes = nnc.grad(lambda v: nnc.binary_cross_entropy_with_logits(v, [1.0, 0.0, 1.0, 1.0], reduction="sum"))
    np.testing.assert_allclose(slopes(x).numpy(), [0, 0, -np.exp(-20.0), -1], rtol=1e-5, atol=1e-30)
    sure = nnc.binary_cross_entropy([0.0, 1.0, 1.0], [0.0, 1.0, 0.0], reduction="none").numpy()
    np.testing.assert_array_equal(sure, [0, 0, np.inf])


def test_nothing_is_likely_where_nothing_is_wanted() -> None:
    found = nnc.kl_div([-np.inf, -1.0], [0.0, 1.0], reduction="none").numpy()
    np.testing.assert_allclose(found, [0, 1])
    assert nnc.kl_div([[-np.inf, 0.0]], [[-np.inf, 0.0]], log_target=True, reduction="batchmean").item() == 0
    np.testing.assert_allclose(nnc.kl_div(X, SOFT, reduction="batchmean").item(), (SOFT * (np.log(SOFT) - X)).sum() / 4)


def test_stirlings_term() -> None:
    x, y = np.array([0.3, 1.2, -0.5]), np.array([0.0, 1.0, 6.0])
    found = nnc.poisson_nll_loss(x, y, full=True, reduction="none").numpy()
    wanted = -scipy.stats.poisson.logpmf(y, np.exp(x))
    np.testing.assert_allclose(found, wanted, atol=0.02)


# ---- distances
def test_similarity_and_distance(device: str) -> None:
    a, b = (nnc.asarray(v.astype(np.float32)) for v in (X, Y))
    np.testing.assert_allclose(nnc.cosine_similarity(a, b).numpy(), cosine(X, Y), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nnc.cosine_similarity(a, b[0], axis=0).numpy(),
                               cosine(X.T, np.broadcast_to(Y[0], X.shape).T), rtol=1e-5, atol=1e-6)
    for p in (1.0, 2.0, 3.0, np.inf):
        np.testing.assert_allclose(nnc.pairwise_distance(a, b, p=p).numpy(), distance(X, Y, p), rtol=1e-5)
    assert nnc.pairwise_distance(a, b, keepdims=True).shape == (4, 1)
    zero = nnc.zeros((3,))
    assert nnc.cosine_similarity(zero, zero).item() == 0
    assert np.isfinite(nnc.grad(lambda v: nnc.cosine_similarity(v, b[0, :3]))(zero).numpy()).all()


# ---- connectionist temporal classification
def by_all_alignments(logs: Any, labels: list[int], blank: int) -> float:
    """-log of the sum over every path that becomes the labels."""
    time, classes = logs.shape
    total = 0.0
    for path in itertools.product(range(classes), repeat=time):
        merged = [k for k, _ in itertools.groupby(path)]
        if [k for k in merged if k != blank] == labels:
            total += math.exp(sum(logs[t, k] for t, k in enumerate(path)))
    return -math.log(total) if total else math.inf


CTC_LABELS = [[1, 2, 2], [2, 0, 0], [1, 1, 0], [0, 0, 0]]
CTC_TIMES, CTC_COUNTS = [5, 3, 4, 4], [3, 1, 2, 0]


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(blank: int, device: str) -> None:
    logs = scipy.special.log_softmax(RNG.normal(size=(5, 4, 3)), -1)
    labels = CTC_LABELS if blank == 0 else [[1, 0, 0], [0, 9, 9], [1, 1, -5], [7, 7, 7]]
    wanted = [by_all_alignments(logs[:t, k], row[:n], blank)
              for k, (t, n, row) in enumerate(zip(CTC_TIMES, CTC_COUNTS, labels, strict=True))]
    x = nnc.asarray(logs.astype(np.float32))
    for f in (nnc.ctc_loss, nnc.jit(nnc.ctc_loss, static_argnames=("blank", "reduction"))):
        found = f(x, labels, CTC_TIMES, CTC_COUNTS, blank=blank, reduction="none")
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-5)
    mean = np.mean(np.array(wanted) / np.maximum(CTC_COUNTS, 1))
    np.testing.assert_allclose(nnc.ctc_loss(x, labels, CTC_TIMES, CTC_COUNTS, blank=blank).item(), mean, rtol=1e-5)


def test_derivatives_of_ctc() -> None:
    def code(n: Any, x: Any) -> Any:
        return nnc.ctc_loss(nnc.log_softmax(x), CTC_LABELS, CTC_TIMES, CTC_COUNTS, reduction="none")

    assert_derivatives(code, [RNG.normal(size=(5, 4, 3))])


def test_ctc_without_time(device: str) -> None:
    x = nnc.log_softmax(nnc.asarray(RNG.normal(size=(2, 2, 3)).astype(np.float32)))
    given = ([[1, 1], [1, 2]], [2, 2], [2, 2])
    assert nnc.ctc_loss(x, *given, reduction="none").tolist()[0] == math.inf

    def loss(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.ctc_loss(v, *given, zero_infinity=True, reduction="sum")

    assert math.isfinite(loss(x).item())
    g = nnc.grad(loss)(x).numpy()
    assert np.isfinite(g).all() and (g[:, 0] == 0).all() and (g[:, 1] != 0).any()


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda: nnc.mse_loss(X, Y[0]), ShapeError, "(?s)mse_loss: .*differ in shape.*broadcast"),
    (lambda: nnc.huber_loss(X, Y, delta=0), AttributeValueError, "huber_loss: delta is 0"),
    (lambda: nnc.l1_loss(X, Y, reduction="median"), AttributeValueError, "l1_loss: reduction 'median'"),
    (lambda: nnc.kl_div(1.0, 1.0, reduction="batchmean"), ShapeError, "no first axis"),
    (lambda: nnc.gaussian_nll_loss(X, Y, np.ones((2, 4, 5))), ShapeError, "variance float64.* does not broadcast"),
    (lambda: nnc.gaussian_nll_loss(X[:, :4], Y[:, :4], np.ones(4)), ShapeError, "(?s)axis by axis.*reshape"),
    (lambda: nnc.margin_ranking_loss(X, Y[0], Y), ShapeError, "differ in shape"),
    (lambda: nnc.margin_ranking_loss(X, Y, np.ones(5)), ShapeError, "the target .* axis by axis"),
    (lambda: nnc.triplet_margin_loss(X, Y, Y[0]), ShapeError, "number of axes"),
    (lambda: nnc.cosine_embedding_loss(X, Y, SIGNS), ShapeError, "a number for each vector"),
    (lambda: nnc.cross_entropy(X, LABELS, label_smoothing=1), AttributeValueError, "0 <= label_smoothing < 1"),
    (lambda: nnc.cross_entropy(X, LABELS[:2]), ShapeError, "(?s)cross_entropy: labels int64.*whose classes are axis 1"),
    (lambda: nnc.cross_entropy(X, LABELS > 0), DTypeError, "labels are bool"),
    (lambda: nnc.cross_entropy(X, LABELS, weights=WEIGHTS[:2]), ShapeError, "one for each of 5 classes"),
    (lambda: nnc.cross_entropy(X, SOFT, ignore_index=3), AttributeValueError, "ignore_index is a label"),
    (lambda: nnc.binary_cross_entropy(P, P[0]), ShapeError, "should have the shape of"),
    (lambda: nnc.binary_cross_entropy(P, P, weights=np.ones(3)), ShapeError, "do not broadcast"),
    (lambda: nnc.ctc_loss(X, [[1]], [1], [1]), ShapeError, r"ctc_loss: .*expected \(time, batch, classes\)"),
    (lambda: nnc.ctc_loss(np.zeros((2, 1, 3)), [[1.0]], [1], [1]), DTypeError, "integers, not float"),
])
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()
