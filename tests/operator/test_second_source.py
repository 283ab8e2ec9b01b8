"""References against something that is not ours: SciPy, plain loops, identities, published vectors."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import FLOATS, INTEGERS
from nnc_core.operator.random import philox_words
from nnc_core.symbol import Number
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.cases import OPERATORS, examples
from tests.operator.host import call, host

WIDE = {dt.float16: np.float64, dt.bfloat16: np.float64, dt.float32: np.float64, dt.float64: np.longdouble}


def cases(*names: str, dtypes=(dt.float32, dt.float64)):
    return [e for e in examples(*names) if e.dtype in dtypes]


def arguments(example, rng):
    """Inputs as the example has them, and its attributes by name."""
    values = example.case.attribute_values(example.op, example.dtype)
    return example.case.inputs(rng, example.dtype), dict(zip(example.op.attributes, values, strict=True))


def agree(example, rng, second) -> None:
    """`second` computes from wide inputs."""
    inputs, attributes = arguments(example, rng)
    wide = [x.astype(WIDE.get(x.dtype, x.dtype)) for x in inputs]
    with np.errstate(all="ignore"):
        expected = np.asarray(second(*wide, **attributes))
        expected = expected.astype(example.op.reference and call(example.op, *inputs, *attributes.values()).dtype
                                   or example.dtype)
    assert_agree(example.op, call(example.op, *inputs, *attributes.values()), expected, str(example))


# Elementwise: plain Python on every element, in higher precision

FUNCTIONS = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "sigmoid": lambda x: scipy.special.expit(x.astype(np.longdouble)), "relu": lambda x: np.where(x < 0, 0, x),
    "clip": lambda x, low, high: np.where(np.isnan(x + low + high), np.nan,
                                          np.where(low > high, high, np.where(x < low, low, np.where(x > high, high, x)))),
    "divide": lambda a, b: a / b, "power": np.power,
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_higher_precision(name, rng) -> None:
    for example in cases(name, dtypes=FLOATS):
        if example.case.label != "specials" and (name, example.dtype) != ("clip", dt.float64):
            agree(example, rng, FUNCTIONS[name])


PYTHON = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "remainder": lambda a, b: a % b if b else 0,
    "power": lambda a, b: a**b,
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": max, "minimum": min, "negative": lambda a: -a, "abs": abs, "sign": lambda a: (a > 0) - (a < 0),
    "clip": lambda x, low, high: min(max(x, low), high), "relu": lambda x: max(x, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_integers_are_pythons_modulo_their_range(name, rng) -> None:
    for example in cases(name, dtypes=INTEGERS):
        if example.case.label.startswith("large"):
            continue
        inputs, _ = arguments(example, rng)
        result = call(example.op, *inputs)
        together = np.broadcast_arrays(*inputs)
        exact = [PYTHON[name](*map(int, numbers)) for numbers in zip(*(x.flat for x in together), strict=True)]
        wrapped = [n % 2 ** (8 * example.dtype.itemsize) for n in exact]
        expected = np.array(wrapped, np.uint64).astype(example.dtype).reshape(result.shape)
        assert_agree(example.op, result, expected, str(example))


def test_float_remainders_are_pythons(rng) -> None:
    for example in [*cases("remainder", dtypes=(dt.float64,)), *cases("floor_divide", dtypes=(dt.float64,))]:
        if example.case.label in ("extremes", "large"):
            continue
        (a, b), _ = arguments(example, rng)
        function = (lambda x, y: x % y) if example.op.name == "remainder" else (lambda x, y: x // y)
        result = call(example.op, a, b)
        pairs = zip(*(x.flat for x in np.broadcast_arrays(a, b)), strict=True)
        expected = np.array([function(float(x), float(y)) for x, y in pairs]).reshape(result.shape)
        assert_agree(example.op, result, expected, str(example))


def test_power_of_special_floats() -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, math.inf, -math.inf, math.nan, 3.0]
    for a, b in itertools.product(values, values):
        try:
            expected = math.pow(a, b)
        except (ValueError, OverflowError):  # Python raises where IEEE 754 has a pole or no number
            odd = b == int(b) and int(b) % 2 == 1 if math.isfinite(b) else False
            expected = math.copysign(math.inf, a if odd else 1) if a == 0 else math.nan
        result = host("power", np.array(a), np.array(b))
        assert_agree(OPERATORS["power"], result, np.array(expected), f"{a} ** {b}")


COMPARISONS = {
    "equal": lambda a, b: a == b, "not_equal": lambda a, b: a != b, "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b, "greater": lambda a, b: a > b, "greater_equal": lambda a, b: a >= b,
    "logical_and": lambda a, b: a and b, "logical_or": lambda a, b: a or b, "logical_xor": lambda a, b: a != b,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_relations_are_pythons(name, rng) -> None:
    for example in cases(name, dtypes=(dt.boolean, dt.int64, dt.uint64, dt.float32)):
        if example.case.label == "large":
            continue
        (a, b), _ = arguments(example, rng)
        result = call(example.op, a, b)
        pairs = zip(*(x.flat for x in np.broadcast_arrays(a, b)), strict=True)
        expected = [bool(COMPARISONS[name](x.item(), y.item())) for x, y in pairs]
        np.testing.assert_array_equal(result.reshape(-1), np.array(expected, bool), str(example))


def test_casts_of_floats_round_towards_zero_and_saturate() -> None:
    values = [0.5, -0.5, 1.5, -1.5, 127.5, 1e3, -1e3, 3e9, -3e9, 1e30, -1e30, math.inf, -math.inf]
    for source, target in itertools.product(FLOATS, INTEGERS):
        numbers = np.array(values).astype(source)
        limits = np.iinfo(target)
        expected = [min(max(math.trunc(x), limits.min), limits.max) if math.isfinite(x)
                    else limits.max if x > 0 else limits.min for x in map(float, numbers)]  # fmt: skip
        got = host("cast", np.append(numbers, np.array(np.nan).astype(source)), dtype=target)
        assert got.tolist() == [*expected, 0], f"{source} to {target}"


def test_casts_to_booleans_ask_for_zero() -> None:
    for dtype in FLOATS:
        numbers = np.array([0.0, -0.0, 1e-7, np.nan, np.inf]).astype(dtype)
        assert host("cast", numbers, dtype=dt.boolean).tolist() == [False, False, True, True, True]
    assert host("cast", np.array([0, 256, -1]), dtype=dt.boolean).tolist() == [False, True, True]


def test_casts_of_integers_wrap() -> None:
    numbers = np.array([-1, 0, 255, 256, 2**40 + 3, -(2**63)])
    for target in INTEGERS:
        wrapped = [int(n) % 2 ** (8 * target.itemsize) for n in numbers]
        assert host("cast", numbers, dtype=target).tolist() == np.array(wrapped, np.uint64).astype(target).tolist()


# Reductions, products, softmax

STATISTICS = {
    "sum": lambda x, axis, keepdims: np.vectorize(math.fsum, otypes=[float], signature="(n)->()")(x)
    if keepdims is None else x.sum(axis=axis, keepdims=keepdims),
    "mean": lambda x, axis, keepdims: x.mean(axis=axis, keepdims=keepdims),
    "softmax": scipy.special.softmax, "log_softmax": scipy.special.log_softmax,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # SciPy and NumPy speak up where a row is empty or NaN
@pytest.mark.parametrize("name", ["mean", "softmax", "log_softmax"])
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


# Movement, one element at a time


def moved(example, rng, place) -> None:
    """`place(index, *inputs, **attributes)` names the input and the index that an element comes from, or a number."""
    inputs, attributes = arguments(example, rng)
    result = call(example.op, *inputs, *attributes.values())
    expected = np.empty(result.shape, result.dtype)
    for index in np.ndindex(*result.shape):
        expected[index] = place(index, *inputs, **attributes)
    assert_agree(example.op, result, expected, str(example))


def padded(index, x, low, high, interior, value):
    source = []
    for i, a, k, n in zip(index, low, interior, x.shape, strict=True):
        if i < a or (i - a) % (k + 1) or (i - a) // (k + 1) >= n:
            return value
        source.append((i - a) // (k + 1))
    return x[tuple(source)]


def updated(index, x, value, start, step):
    source = []
    for i, a, k, n in zip(index, start, step, value.shape, strict=True):
        if i < a or (i - a) % k or (i - a) // k >= n:
            return x[index]
        source.append((i - a) // k)
    return value[tuple(source)]


def joined(index, *xs, axis):
    place = list(index)
    for x in xs:
        if place[axis] < x.shape[axis]:
            return x[tuple(place)]
        place[axis] -= x.shape[axis]
    raise AssertionError("no input holds this element")


def taken(index, x, indices, axis):
    where = indices[index[axis : axis + indices.ndim]]
    return x[(*index[:axis], int(where), *index[axis + indices.ndim :])]


MOVES = {
    "pad": padded, "update_slice": updated, "concat": joined, "take": taken,
    "slice": lambda index, x, start, stop, step: x[
        tuple(a + i * k for i, a, k in zip(index, start, step, strict=True))],
    "flip": lambda index, x, axes: x[tuple(n - 1 - i if a in axes else i for a, (i, n) in
                                          enumerate(zip(index, x.shape, strict=True)))],
    "permute": lambda index, x, axes: x[tuple(index[axes.index(a)] for a in range(len(axes)))],
    "broadcast_to": lambda index, x, shape: x[tuple(
        0 if n == 1 else i for i, n in zip(index[len(shape) - x.ndim :], x.shape, strict=True))],
    "reshape": lambda index, x, shape: list(x.flat)[int(np.ravel_multi_index(index, shape)) if shape else 0],
    "one_hot": lambda index, indices, depth, dtype: int(indices[index[:-1]]) == index[-1],
    "where": lambda index, c, a, b: (np.broadcast_to(v, np.broadcast_shapes(c.shape, a.shape, b.shape))[index]
                                     for v in (a if np.broadcast_to(c, np.broadcast_shapes(
                                         c.shape, a.shape, b.shape))[index] else b,)).__next__(),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_movement_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.boolean, dt.int32, dt.float32)):
        if all(math.prod(x.shape) < 5000 for x in arguments(example, rng)[0]):
            moved(example, rng, MOVES[name])


def test_scatter_by_plain_loops(rng) -> None:
    for example in cases("scatter", dtypes=(dt.boolean, dt.int32, dt.float32)):
        (x, indices, updates), how = arguments(example, rng)
        axis, expected = how["axis"], x.copy()
        for index in np.ndindex(*updates.shape):
            where = int(indices[index[axis : axis + indices.ndim]])
            place = (*index[:axis], where, *index[axis + indices.ndim :])
            expected[place] = updates[index] + (expected[place] if how["mode"] == "add" else 0)
        assert_agree(example.op, call(example.op, x, indices, updates, axis, how["mode"]), expected, str(example))


# Windows, by loops over every window and by SciPy


def nhwc(x, layout):
    return x if layout == "NHWC" else np.moveaxis(x, 1, 3)


def hwio(kernel, layout):
    return kernel if layout == "NHWC" else kernel.transpose(2, 3, 1, 0)


def windows(size, count, window, strides, padding, dilation):
    """((window's row, column), (place within it), (place in the image)) wherever a window sees the image."""
    for at in itertools.product(*map(range, count)):
        for k in itertools.product(*map(range, window)):
            place = tuple(o * s - p[0] + i * d for o, s, p, i, d in zip(at, strides, padding, k, dilation, strict=True))
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield at, k, place


def trilinear(x, kernel, g, how):
    """Each term of the convolution's form: ((n, i, j, c), (k, l, c', o), (n, h, w, o)) with all channels at once."""
    groups, (n, *size, channels), (*count, outputs) = how["groups"], x.shape, g.shape[1:]
    per, out = channels // groups, outputs // groups
    slide = (how["strides"], how["padding"], how["dilation"])
    for (h, w), (k, m), (i, j) in windows(size, count, kernel.shape[:2], *slide):
        for group in range(groups):
            c, o = slice(group * per, (group + 1) * per), slice(group * out, (group + 1) * out)
            yield (slice(0, n), i, j, c), (k, m, slice(None), o), (slice(0, n), h, w, o)


@pytest.mark.parametrize("name", ["conv2d", "conv2d_input_gradient", "conv2d_kernel_gradient"])
def test_convolutions_by_plain_loops(name, rng) -> None:
    """The three are one form with x, the kernel and g in it, each time with another one to be found."""
    for example in cases(name, dtypes=(dt.float64, dt.bfloat16)):
        if example.case.label.startswith("wide"):
            continue
        (first, second), how = arguments(example, rng)
        layout = how["layout"]
        result = call(example.op, first, second, *how.values())
        zeros = np.zeros(result.shape)
        sides = {"conv2d": (first, second, zeros), "conv2d_input_gradient": (zeros, second, first),
                 "conv2d_kernel_gradient": (first, zeros, second)}[name]  # fmt: skip
        x, kernel, g = (f(v.astype(np.float64), layout) for f, v in zip((nhwc, hwio, nhwc), sides, strict=True))
        for a, b, c in trilinear(x, kernel, g, how):
            if name == "conv2d":
                g[c] += x[a] @ kernel[b]
            elif name == "conv2d_input_gradient":
                x[a] += g[c] @ kernel[b].T
            else:
                kernel[b] += x[a].T @ g[c]
        expected = {"conv2d": g, "conv2d_input_gradient": x, "conv2d_kernel_gradient": kernel}[name]
        back = (3, 2, 0, 1) if name == "conv2d_kernel_gradient" else (0, 3, 1, 2)
        expected = expected if layout == "NHWC" else expected.transpose(back)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


def test_conv2d_is_scipys_correlation(rng) -> None:
    x, kernel = rng.standard_normal((9, 11)), rng.standard_normal((3, 4))
    how = {"strides": (1, 1), "dilation": (1, 1), "groups": 1, "layout": "NHWC"}
    valid = host("conv2d", x[None, :, :, None], kernel[:, :, None, None], padding=((0, 0), (0, 0)), **how)
    np.testing.assert_allclose(valid[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "valid"), rtol=1e-12)
    full = host("conv2d", x[None, :, :, None], kernel[:, :, None, None], padding=((2, 2), (3, 3)), **how)
    np.testing.assert_allclose(full[0, :, :, 0], scipy.signal.correlate2d(x, kernel, "full"), rtol=1e-11, atol=1e-12)
    back = host("conv2d_input_gradient", valid, kernel[:, :, None, None], size=(9, 11), padding=((0, 0), (0, 0)), **how)
    convolved = scipy.signal.convolve2d(valid[0, :, :, 0], kernel, "full")
    np.testing.assert_allclose(back[0, :, :, 0], convolved, rtol=1e-11, atol=1e-12)


def test_max_pool_is_scipys_maximum_filter(rng) -> None:
    x = rng.standard_normal((8, 9))
    pooled = host("max_pool2d", x[None, None], window=(3, 3), strides=(1, 1), padding=((1, 1), (1, 1)),
                  dilation=(1, 1), layout="NCHW")  # fmt: skip
    expected = scipy.ndimage.maximum_filter(x, 3, mode="constant", cval=-np.inf)
    np.testing.assert_array_equal(pooled[0, 0], expected)


def pool_by_loops(name, inputs, how):
    """In NHWC; the sum, the maximum with its place, or what a place names, over each window."""
    image = how.pop("size", None) or inputs[0].shape[1:3]
    x, *rest = (x.astype(np.float64) for x in inputs)
    count = rest[0].shape[1:3] if rest else None
    slide = (how["strides"], how["padding"], how["dilation"])
    if count is None:
        count = [(n + sum(p) - (k - 1) * d - 1) // s + 1 for n, k, s, p, d in
                 zip(image, how["window"], *slide, strict=True)] if name != "sum_pool2d_gradient" else x.shape[1:3]  # fmt: skip
    gradient = name in ("pool2d_put", "sum_pool2d_gradient")
    shape = (x.shape[0], *(image if gradient else count), x.shape[3])
    out, best = np.zeros(shape), np.zeros(shape)
    seen = np.zeros(shape, int)
    for at, k, place in windows(image, count, how["window"], *slide):
        position = k[0] * how["window"][1] + k[1]
        to, source = (np.s_[:, *place], np.s_[:, *at]) if gradient else (np.s_[:, *at], np.s_[:, *place])
        value = x[source]
        if rest:
            here = rest[0][np.s_[:, *at]] == position
            out[to] += np.where(here, value, 0)
        elif name.startswith("max"):
            better = (seen[to] == 0) | (value > out[to]) | (np.isnan(value) & ~np.isnan(out[to]))
            out[to] = np.where(better, value, out[to])
            best[to] = np.where(better, position, best[to])
        else:
            out[to] += value
        seen[to] += 1
    return {"max_pool2d_index": best, "avg_pool2d": out / (
        math.prod(how["window"]) if how.get("count_padding") else np.maximum(seen, 1))}.get(name, out)


POOLS = ["max_pool2d", "max_pool2d_index", "pool2d_take", "pool2d_put", "sum_pool2d", "sum_pool2d_gradient",
         "avg_pool2d"]  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools_by_plain_loops(name, rng) -> None:
    for example in cases(name, dtypes=(dt.float64, dt.float16, dt.int32)):
        if example.case.label == "lowest":  # beyond what float64 holds
            continue
        inputs, how = arguments(example, rng)
        result = call(example.op, *inputs, *how.values())
        layout = how["layout"]
        expected = pool_by_loops(name, [nhwc(x, layout) for x in inputs], how)
        expected = expected if layout == "NHWC" else np.moveaxis(expected, 3, 1)
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))


# Creation


def test_progressions(rng) -> None:
    def progression(start, step, size, dtype):
        wide = dt.accumulator(dtype)
        return host("progression", start=Number(start, wide), step=Number(step, wide), size=size, dtype=dtype)

    np.testing.assert_array_equal(progression(3, -2, 5, dt.int8), [3, 1, -1, -3, -5])
    np.testing.assert_array_equal(progression(0, 0.1, 50, dt.float64), [0.1 * k for k in range(50)])
    np.testing.assert_array_equal(progression(250, 3, 4, dt.uint8), [250, 253, 0, 3])


# Random numbers

# Random123 1.14, tests/kat_vectors: philox4x32 with 10 rounds: counter, key, result
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


def philox(counter, key):
    """Philox4x32-10 of one counter, word by word, as the paper has it."""
    (a, b, c, d), (k0, k1), mask = counter, key, 0xFFFFFFFF
    for _ in range(10):
        first, third = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = third >> 32 ^ b ^ k0, third & mask, first >> 32 ^ d ^ k1, first & mask
        k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
    return a, b, c, d


def words(number):
    return number & 0xFFFFFFFF, number >> 32


@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_the_published_vectors(counter, key, expected) -> None:
    assert philox(counter, key) == expected


def test_the_first_block_has_a_published_vector() -> None:
    """Seed 0 and draw 0 make the first block's counter and key zero."""
    assert philox_words(np.zeros(2, np.uint64), 4).tolist() == list(KNOWN_ANSWERS[0][2])


def test_block_counters_and_keys_are_where_they_belong() -> None:
    from nnc_core.operator.random import _philox_blocks

    for (a, b, c, d), (k0, k1), expected in KNOWN_ANSWERS:
        out = np.empty((1, 4), np.uint32)
        _philox_blocks(k0 | k1 << 32, c | d << 32, np.array([a | b << 32], np.uint64), out)
        assert out[0].tolist() == list(expected)


@pytest.mark.parametrize("key", [(0, 0), (7, 9), (2**64 - 1, 2**63 + 5)])
def test_random_bits_are_philox_of_block_and_draw(key) -> None:
    seed, draw = key
    stream = [w for block in range(5) for w in philox((*words(block), *words(draw)), words(seed))]
    keys = np.array(key, np.uint64)
    assert host("random_bits", keys, shape=(18,), dtype=dt.uint32).tolist() == stream[:18]
    pairs = [high << 32 | low for high, low in zip(stream[::2], stream[1::2], strict=True)]
    assert host("random_bits", keys, shape=(3, 3), dtype=dt.uint64).reshape(-1).tolist() == pairs[:9]


def test_longer_draws_begin_as_shorter_ones() -> None:
    key = np.array([3, 4], np.uint64)
    long = host("random_bits", key, shape=(70001,), dtype=dt.uint32)
    np.testing.assert_array_equal(host("random_bits", key, shape=(65538,), dtype=dt.uint32), long[:65538])


KEY = np.array([2024, 1], np.uint64)
COUNT = 40_000


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_uniform_numbers_are_uniform(dtype) -> None:
    drawn = host("uniform", KEY, shape=(COUNT,), dtype=dtype).astype(np.float64)
    assert 0 <= drawn.min() <= drawn.max() < 1
    digits = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}[dtype]
    np.testing.assert_array_equal(np.floor(drawn * 2.0**digits), drawn * 2.0**digits)
    counts = np.bincount((drawn * 64).astype(int), minlength=64)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4 / COUNT**0.5


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_normal_numbers_are_normal(dtype) -> None:
    drawn = host("normal", KEY, shape=(COUNT // 100, 100), dtype=dtype).astype(np.float64).reshape(-1)
    assert np.isfinite(drawn).all()
    edges = scipy.stats.norm.ppf(np.arange(1, 64) / 64)
    counts = np.histogram(drawn, [-np.inf, *edges, np.inf])[0]
    if dtype.itemsize > 2:  # half floats are too coarse for bins of equal probability
        assert scipy.stats.chisquare(counts).pvalue > 1e-3
    assert abs(drawn.mean()) < 4 / COUNT**0.5
    assert abs(drawn.var() - 1) < 4 * (2 / COUNT) ** 0.5
    assert abs((drawn**3).mean()) < 4 * (15 / COUNT) ** 0.5


def test_normal_numbers_are_box_and_mullers() -> None:
    u = host("uniform", KEY, shape=(50, 2), dtype=dt.float64)
    expected = [math.sqrt(-2 * math.log(1 - a)) * math.cos(2 * math.pi * b) for a, b in u]
    np.testing.assert_allclose(host("normal", KEY, shape=(50,), dtype=dt.float64), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_bernoulli_has_its_probability(probability) -> None:
    drawn = host("bernoulli", KEY, shape=(COUNT,), probability=probability)
    spread = (probability * (1 - probability) / COUNT) ** 0.5
    assert abs(drawn.mean() - probability) <= 4 * spread
    bits = host("random_bits", KEY, shape=(COUNT,), dtype=dt.uint32).astype(np.float64)
    np.testing.assert_array_equal(drawn, bits < probability * 2.0**32)
