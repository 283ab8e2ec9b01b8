"""References of activations, normalisations, softmax and attention against SciPy and plain loops, with more digits."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

from nnc_core.base import dtype as dt
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.case import float_limits
from tests.operator.host import WIDE, agree, arguments, call, cases, host

EVERY = (dt.float32, dt.float64, dt.float16, dt.bfloat16)


def gated(x, gate):
    return np.where(x == -np.inf, -0.0, x * gate)


def softplus(x):
    return np.logaddexp(0, x)


def tanh_gelu(x):
    """With expit, whose left tail is exact."""
    return scipy.special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))


ACTIVATIONS = {
    "silu": lambda x: gated(x, scipy.special.expit(x)),
    "gelu": lambda x, approximate: gated(x, scipy.special.ndtr(x) if approximate == "none" else tanh_gelu(x)),
    "mish": lambda x: gated(x, np.tanh(softplus(x))),
    "softplus": softplus,
    "softsign": lambda x: np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x))),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "leaky_relu": lambda x, slope: np.maximum(x, 0) + slope * np.minimum(x, 0) if slope else np.where(x > 0, x, x * 0),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name != "gelu"])
def test_activations(name, rng) -> None:
    for example in cases(name, dtypes=EVERY):
        agree(example, rng, ACTIVATIONS[name])


GELU_DIGITS = {dt.float32: 2e-5, dt.float64: 1e-12, dt.float16: 2e-3, dt.bfloat16: 1e-2}
"""Its left tail is an exponential of a square or a cube: rounding that loses digits of small results."""


def test_gelu(rng) -> None:
    for example in cases("gelu", dtypes=EVERY):
        (x,), attributes = arguments(example, rng)
        with np.errstate(all="ignore"):
            wanted = np.asarray(ACTIVATIONS["gelu"](x.astype(np.float64), **attributes)).astype(x.dtype)
        found = call(example.op, x, *attributes.values())
        tiny = float(float_limits(x.dtype).smallest_normal)
        np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=GELU_DIGITS[x.dtype],
                                   atol=tiny, err_msg=str(example))


@pytest.mark.parametrize("name", ["silu", "gelu", "mish"])
def test_gates_fall_to_zero(name) -> None:
    attributes = {"approximate": "tanh"} if name == "gelu" else {}
    found = host(name, np.array([-np.inf, -1e30, -400.0, np.inf]), **attributes)
    assert found[0] == 0 and abs(found[1]) == 0 and -1e-150 < found[2] <= 0 and found[3] == np.inf


def soft(x, mask, axis):
    """exp(x - max) / sum over what the mask leaves, element by element of each row."""
    out = np.zeros(x.shape)
    moved, target, holes = (np.moveaxis(a, axis, -1) for a in (x, out, np.broadcast_to(mask, x.shape)))
    for place in np.ndindex(moved.shape[:-1]):
        left = [float(n) for n, keep in zip(moved[place], holes[place], strict=True) if keep]
        high = max(left, default=-math.inf) if not any(map(math.isnan, left)) else math.nan
        if high == -math.inf:
            continue
        parts = [math.exp(n - high) if n != -math.inf else 0.0 for n in left]
        target[place][holes[place]] = [p / math.fsum(parts) for p in parts]
    return out


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "masked_softmax"])
def test_softmax(name, rng) -> None:
    for example in cases(name):
        (x, *mask), attributes = arguments(example, rng)
        axis = attributes["axis"]
        if x.shape[axis] == 0 or (name == "log_softmax" and not np.isfinite(x).all()):
            continue
        wanted = soft(x, mask[0] if mask else True, axis) if np.isfinite(x).all() or mask else None
        if wanted is None:
            wanted = scipy.special.softmax(x.astype(np.float64), axis)
        if name == "log_softmax":
            wanted = scipy.special.log_softmax(x.astype(np.longdouble), axis)
        assert_agree(example.op, call(example.op, x, *mask, axis), wanted.astype(x.dtype), str(example))


def test_labels_that_are_no_class_cost_nothing() -> None:
    logits = np.array([[1.0, 2.0], [3.0, -np.inf], [0.0, 1.0]])
    found = host("cross_entropy", logits, np.array([-100, 0, 2]))
    np.testing.assert_array_equal(found, [0, 0, 0])


@pytest.mark.parametrize("labels", [[-100, 0, 1, 2], [-1, 1, 7, 1]])
def test_what_is_a_class(labels) -> None:
    found = host("is_class", np.array([[np.nan, 2.0]] * 4), np.array(labels))
    assert found.tolist() == [label in (0, 1) for label in labels] and found.dtype == bool


def moments(rows):
    """By exact sums."""
    mean = math.fsum(rows) / len(rows)
    return mean, math.fsum((r - mean) ** 2 for r in rows) / len(rows)


@pytest.mark.parametrize("name", ["standardise", "rms_normalise"])
def test_normalisations(name, rng) -> None:
    for example in cases(name, dtypes=EVERY):
        (x,), attributes = arguments(example, rng)
        axis, epsilon = attributes["axis"], attributes["epsilon"]
        if not np.isfinite(x).all() or 0 in x.shape:
            continue
        wide = x.astype(np.float64)
        wanted = np.empty(x.shape)
        others = [range(n) if i not in axis else [slice(None)] for i, n in enumerate(x.shape)]
        for place in (tuple(p) for p in np.array(np.meshgrid(*[range(len(o)) for o in others], indexing="ij"))
                      .reshape(x.ndim, -1).T):  # fmt: skip
            key = tuple(slice(None) if i in axis else int(k) for i, k in enumerate(place))
            block = wide[key]
            if name == "standardise":
                mean, variance = moments(block.ravel().tolist())
                wanted[key] = (block - mean) / math.sqrt(variance + epsilon) if variance + epsilon else block - mean
            else:
                square = math.fsum(n * n for n in block.ravel().tolist()) / block.size
                wanted[key] = block / math.sqrt(square + epsilon)
        assert_near(call(example.op, x, axis, epsilon), wanted, example)


def assert_near(found, wanted, example) -> None:
    digits = {dt.float32: 1e-5, dt.float64: 1e-13, dt.float16: 2e-3, dt.bfloat16: 1e-2}[example.dtype]
    if "far from zero" in example.case.label:
        digits *= 1e3  # x itself has so much fewer
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=digits, atol=digits, err_msg=str(example))


def test_batch_norm_by_channels(rng) -> None:
    for example in cases("batch_norm", dtypes=EVERY):
        (x, *parts), attributes = arguments(example, rng)
        wanted = np.empty(x.shape)
        for c in range(x.shape[attributes["axis"]]):
            key = (slice(None),) * attributes["axis"] + (c,)
            mean, variance, scale, bias = (float(p[c]) for p in parts)
            deviation = math.sqrt(variance + attributes["epsilon"])
            wanted[key] = (x[key].astype(np.float64) - mean) / deviation * scale + bias
        found = call(example.op, x, *parts, *attributes.values())
        assert found.dtype == x.dtype
        assert_near(found, wanted, example)


def scored_queries(query, key, mask, attributes):
    """For each query its place, the head of its keys, and its scores, -inf where it may not look."""
    batch, heads, queries, _ = query.shape
    keys = key.shape[-2]
    m = np.broadcast_to(mask[0] if mask else np.True_, (batch, heads, queries, keys))
    for b, h, i in np.ndindex(batch, heads, queries):
        shared, row = h // (heads // key.shape[1]), m[b, h, i]
        scores = np.array([attributes["scale"] * math.fsum(map(float, query[b, h, i] * k)) for k in key[b, shared]])
        scores = np.where(row, scores, -np.inf) if row.dtype == bool else scores + row
        if attributes["causal"]:
            scores = np.where(np.arange(keys) <= i + attributes["offset"], scores, -np.inf)
        yield (b, h, i), (b, shared), scores


def assert_close(found, wanted, example) -> None:
    tolerance = 1e-5 if example.dtype == dt.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=1e-6, err_msg=str(example))


@pytest.mark.parametrize("name", ["attention_weights", "scaled_dot_product_attention"])
def test_attention_query_by_query(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float32, dt.float64), large=False):
        inputs, attributes = arguments(example, rng)
        count = 2 if name == "attention_weights" else 3
        query, key, *value = (x.astype(np.float64) for x in inputs[:count])
        weights = np.zeros((*query.shape[:-1], key.shape[-2]))
        out, sums = np.zeros((*query.shape[:-1], value[0].shape[-1] if value else 0)), np.zeros(query.shape[:-1])
        hides = attributes["causal"] or bool(inputs[count:])
        for place, shared, scores in scored_queries(query, key, inputs[count:], attributes):
            if not hides or (scores > -np.inf).any():
                with np.errstate(invalid="ignore"):
                    e = np.exp(scores - scores.max())
                weights[place], sums[place] = e / e.sum(), np.log(e.sum()) + scores.max()
            if value:
                out[place] = weights[place] @ value[0][shared]
        found = call(example.op, *inputs, *attributes.values())
        if value:
            assert_close(found[0], out, example)
            assert_close(found[1], sums, example)
        else:
            assert_close(found, weights, example)


@pytest.mark.parametrize("name", ["attention_gradients", "attention_gradients_from_result"])
def test_attention_gradients_query_by_query(name: str, rng) -> None:
    for example in cases(name, dtypes=(dt.float32, dt.float64), large=False):
        inputs, attributes = arguments(example, rng)
        query, key, value, cotangent, sums, shift = (x.astype(np.float64) for x in inputs[:6])
        if name == "attention_gradients_from_result":
            shift = (cotangent * shift).sum(-1)
        gradients = [np.zeros(x.shape) for x in (query, key, value)]
        with np.errstate(all="ignore"):
            for place, shared, scores in scored_queries(query, key, inputs[6:], attributes):
                weights = np.exp(scores - sums[place])
                of_scores = weights * (value[shared] @ cotangent[place] - shift[place]) * attributes["scale"]
                gradients[0][place] += of_scores @ key[shared]
                gradients[1][shared] += np.outer(of_scores, query[place])
                gradients[2][shared] += np.outer(weights, cotangent[place])
        for found, wanted in zip(call(example.op, *inputs, *attributes.values()), gradients, strict=True):
            assert_close(found, wanted, example)


def test_halves_are_computed_in_float32() -> None:
    """Sums of squares of 200 and products of 1000 overflow in float16."""
    assert WIDE[dt.float16] is np.float64
    big = np.full((2, 400), 200, np.float16)
    np.testing.assert_allclose(host("rms_normalise", big, axis=(1,), epsilon=0.0), np.ones((2, 400)), rtol=1e-3)
    q = np.full((1, 1, 2, 4), 300, np.float16)
    found = host("scaled_dot_product_attention", q, q, np.ones((1, 1, 2, 3), np.float16), scale=1.0, causal=False,
                 offset=0)
    np.testing.assert_array_equal(found[0], np.ones((1, 1, 2, 3)))
