"""References of reductions, products and softmax against plain loops and SciPy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.special

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS
from nnc_plugins.conformance.agreement import assert_agree
from tests.operator.host import agree, arguments, call, cases


def variance(x, axis, correction, keepdims):
    """The mean square less the square of the mean, in higher precision, about a number that is near."""
    x = x.astype(np.longdouble)
    near = x - (x.reshape(-1)[0] if x.size and np.isfinite(x.reshape(-1)[0]) else 0)
    count = math.prod(x.shape[a] for a in axis)
    squares, total = ((near**2).sum(axis, keepdims=keepdims), near.sum(axis, keepdims=keepdims))
    return (squares - total**2 / np.longdouble(count)) / np.longdouble(max(count - correction, 0))


def norm_of_row(sizes, ord):
    """Its definition, in the precision of the absolute values given."""
    if np.isinf(ord):
        return sizes.max() if ord > 0 else sizes.min()
    return np.count_nonzero(sizes) if ord == 0 else (sizes**ord).sum() ** (1 / sizes.dtype.type(ord))


def norm(x, axis, ord, keepdims):
    """Row by row."""
    kept = [a for a in range(x.ndim) if a not in axis]
    rows = x.transpose([*kept, *axis]).reshape(*[x.shape[a] for a in kept], math.prod(x.shape[a] for a in axis))
    out = np.empty(rows.shape[:-1], x.dtype)
    for place in np.ndindex(out.shape):
        out[place] = norm_of_row(np.abs(rows[place]), ord) if rows.shape[-1] else 0
    return np.expand_dims(out, axis) if keepdims else out


STATISTICS = {
    "mean": lambda x, axis, keepdims: x.mean(axis=axis, keepdims=keepdims),
    "var": variance,
    "std": lambda x, axis, correction, keepdims: np.sqrt(variance(x, axis, correction, keepdims)),
    "logsumexp": lambda x, axis, keepdims: scipy.special.logsumexp(x, axis, keepdims=keepdims) if x.ndim else x,
    "vector_norm": norm,
    "softmax": scipy.special.softmax, "log_softmax": scipy.special.log_softmax,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy and NumPy speak up where a row is empty or NaN
@pytest.mark.parametrize("name", STATISTICS)
def test_statistics_in_higher_precision(name, rng) -> None:
    for example in cases(name, dtypes=FLOATS):
        agree(example, rng, STATISTICS[name])


def slices_along(x, axis):
    """(index of the result with its axes kept, the elements folded there) one by one."""
    folded = [x.shape[a] for a in axis]
    kept = [range(1) if a in axis else range(n) for a, n in enumerate(x.shape)]
    for index in itertools.product(*kept):
        elements = []
        for inner in itertools.product(*map(range, folded)):
            place = list(index)
            for a, i in zip(axis, inner, strict=True):
                place[a] = i
            elements.append(x[tuple(place)].item())
        yield index, elements


def first_best(numbers, better):
    best = 0
    for place, number in enumerate(numbers):
        if math.isnan(number):
            return place
        if better(number, numbers[best]):
            best = place
    return best


def extreme(numbers, better):
    return numbers[first_best(numbers, better)]


FOLDS = {
    "sum": lambda numbers: math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(numbers),
    "prod": math.prod,
    "max": lambda numbers: extreme(numbers, lambda a, b: a > b),
    "min": lambda numbers: extreme(numbers, lambda a, b: a < b),
    "argmax": lambda numbers: first_best(numbers, lambda a, b: a > b),
    "argmin": lambda numbers: first_best(numbers, lambda a, b: a < b),
    "all": all, "any": any,
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_reductions_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.boolean, dt.int64, dt.uint8, dt.float64)):
        if "1003" in example.case.label or example.case.label == "wrapping":
            continue
        (x,), attributes = arguments(example, rng)
        axis = attributes["axis"] if isinstance(attributes["axis"], tuple) else (attributes["axis"],)
        result = call(example.op, x, *attributes.values())
        expected = np.empty([1 if a in axis else n for a, n in enumerate(x.shape)], result.dtype)
        for index, numbers in slices_along(x, axis):
            expected[index] = np.array(FOLDS[name](numbers) % 2**8 if x.dtype == dt.uint8 else FOLDS[name](numbers))
        assert_agree(example.op, result, expected.reshape(result.shape), str(example))


def test_matmul_by_plain_loops(rng) -> None:
    for example in cases("matmul", dtypes=(dt.int64, dt.uint8, dt.float64)):
        (a, b), how = arguments(example, rng)
        if example.case.label in ("specials", "wrapping") or a.size > 1000:
            continue
        result = call(example.op, a, b, *how.values())
        expected = np.zeros(result.shape)
        for *batch, m, n in np.ndindex(*result.shape):
            x, y = (np.broadcast_to(v, (*result.shape[:-2], *v.shape[-2:]))[tuple(batch)] for v in (a, b))
            row, column = x[:, m] if how["transpose_a"] else x[m], y[n] if how["transpose_b"] else y[:, n]
            expected[(*batch, m, n)] = sum(float(p) * float(q) for p, q in zip(row, column, strict=True))
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def test_cross_entropy_is_minus_the_logarithm_of_the_probability(rng) -> None:
    for example in cases("cross_entropy"):
        (logits, labels), _ = arguments(example, rng)
        rows = scipy.special.softmax(logits.astype(np.float64), axis=-1).reshape(-1, logits.shape[-1])
        expected = [-math.log(row[label]) for row, label in zip(rows, labels.reshape(-1), strict=True)]
        expected = np.array(expected).reshape(labels.shape).astype(example.dtype)
        assert_agree(example.op, call(example.op, logits, labels), expected, str(example))
