"""Reading and writing by arrays of indices: NumPy's, PyTorch's and JAX's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.type import Dim
from tests.tensors.against_numpy import Array, Code, assert_derivatives, assert_same, assert_same_in_every_mode, run
from tests.tensors.faults import fails

RNG = np.random.default_rng(1)
X = RNG.normal(size=(3, 4)).astype(np.float32)
C = RNG.normal(size=(2, 3, 4)).astype(np.float32)
ROWS, COLUMNS = np.array([[0, 2, 1, -1]]), np.array([[3, 0], [1, 1], [-2, 2]])
NUMBERS = RNG.integers(0, 3, (3, 4))
POSITIVE = X > 0

READ: dict[str, tuple[Code, tuple[Array, ...]]] = {
    "take": (lambda xp, x: [xp.take(x, xp.asarray(COLUMNS), axis=1), xp.take(x, xp.asarray([5, -1]))], (X,)),
    "take_along_axis": (lambda xp, x: [
        xp.take_along_axis(x, xp.asarray(ROWS), axis=0), xp.take_along_axis(x, xp.asarray(COLUMNS), axis=1),
        xp.take_along_axis(x, xp.asarray(COLUMNS), axis=-1), xp.take_along_axis(x, xp.asarray([5, 0, -1]), axis=None)],
        (X,)),
    "take_along_axis of three": (lambda xp, c: [
        xp.take_along_axis(c, xp.asarray(np.array([[[1], [0], [2]]])), axis=1),
        xp.take_along_axis(c[:1], xp.asarray(np.array([[[1, 0]], [[3, 3]]])), axis=2),
        xp.take_along_axis(c, xp.asarray(np.array([[[0, 1, 1, 0]]])), axis=0)], (C,)),
    "choose": (lambda xp, x: [
        xp.choose(xp.asarray(NUMBERS), [x, x * 2, np.float32(7)]),
        xp.choose(xp.asarray(NUMBERS + 4), [x, x[0], x[:, :1]], mode="wrap"),
        xp.choose(xp.asarray(NUMBERS - 1), [x, x[0]], mode="clip")], (X,)),
    "select": (lambda xp, x: [
        xp.select([x > 1, x > 0], [x, x * 2], np.float32(-1)), xp.select([x > 0], [x[0]], x[:, :1])], (X,)),
    "where": (lambda xp, x: [xp.where(x > 0, x, -x), xp.where(xp.asarray(POSITIVE), x, np.float32(0))], (X,)),
    "masks": (lambda xp, x: [x[xp.asarray(POSITIVE)], x[xp.asarray(POSITIVE[:, 0])]], (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_reads_what_numpy_reads(device: str, name: str) -> None:
    code, arrays = READ[name]
    assert_same(run(code, arrays), code(np, *arrays))


@pytest.mark.parametrize("name", READ)
def test_in_every_mode_and_differentiated(name: str) -> None:
    code, arrays = READ[name]
    assert_same_in_every_mode(code, arrays)
    assert_derivatives(code, arrays)


def test_elements_that_a_condition_chooses(device: str) -> None:
    """As many as the data say."""
    x, mask = nnc.asarray(X), nnc.asarray(POSITIVE)
    pairs: list[tuple[Callable[[], Any], Any]] = [
        (lambda: nnc.extract(mask, x), np.extract(POSITIVE, X)),
        (lambda: nnc.compress([True, False, True], x, axis=0), np.compress([True, False, True], X, 0)),
        (lambda: nnc.compress(nnc.asarray([0, 2, 1]), x, 1), np.compress([0, 2, 1], X, 1)),
        (lambda: nnc.compress(mask.ravel(), x), np.compress(POSITIVE.ravel(), X)),
        (lambda: nnc.where(mask), np.where(POSITIVE)),
    ]
    for code, wanted in pairs:
        assert_same(code(), wanted)
        with nnc.deferred():
            late = code()
        assert_same(late, wanted)


def test_place_goes_round_the_values(device: str) -> None:
    wanted = X.copy()
    np.place(wanted, POSITIVE, [1.0, 2.0, 3.0])
    assert_same(nnc.place(nnc.asarray(X), POSITIVE, [1.0, 2.0, 3.0]), wanted)
    assert_same(nnc.jit(nnc.place)(nnc.asarray(X), nnc.asarray(POSITIVE), nnc.asarray([1.0, 2.0, 3.0])), wanted)
    assert_derivatives(lambda xp, x, v: nnc.place(x, nnc.asarray(POSITIVE), v), (X, X[0]))


def test_masked_fill(device: str) -> None:
    assert_same(nnc.masked_fill(nnc.asarray(X), nnc.asarray(POSITIVE), 5), np.where(POSITIVE, np.float32(5), X))
    assert_same(nnc.masked_fill(nnc.asarray(X), POSITIVE[0], nnc.asarray(2)), np.where(POSITIVE[0], np.float32(2), X))
    assert_derivatives(lambda xp, x: nnc.masked_fill(x, POSITIVE, 5), (X,))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_put_along_axis(device: str, axis: Any) -> None:
    distinct = np.array([[3, 0], [1, 2], [-2, 0]])
    indices = {0: ROWS, 1: distinct, -1: np.array([[1]]), None: np.array([7, 0, -1])}[axis]
    values = np.float32(9) if axis == 0 else np.asarray(np.arange(indices.size).reshape(indices.shape), np.float32)
    wanted = X.copy()
    np.put_along_axis(wanted, indices, values, axis)
    x, i, v = (nnc.asarray(a) for a in (X, indices, values))
    assert_same(nnc.put_along_axis(x, i, v, axis), wanted)
    before = X.ravel()[indices] if axis is None else np.take_along_axis(X, np.broadcast_to(
        indices, indices.shape if axis == 0 else (3, indices.shape[1])), axis)
    np.put_along_axis(wanted, indices, np.maximum(before, values), axis)
    assert_same(nnc.put_along_axis(x, i, v, axis, mode="max"), wanted)


# ---- PyTorch's, element by element
def written(x: Array, axis: int, index: Array, src: Any, change: Callable[[Any, Any], Any]) -> Array:
    out = x.copy()
    for place in np.ndindex(*index.shape):
        at = list(place)
        at[axis] = index[place]
        out[tuple(at)] = change(out[tuple(at)], src if np.ndim(src) == 0 else src[place])
    return out


INDEX = np.array([[0, 2, 2], [1, 0, 2]])
SOURCE = RNG.uniform(0.5, 2, (3, 4)).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_and_scatter(device: str, axis: int) -> None:
    x, index = nnc.asarray(X), nnc.asarray(INDEX)
    wanted = np.empty(INDEX.shape, np.float32)
    for place in np.ndindex(*INDEX.shape):
        wanted[place] = X[(INDEX[place], place[1]) if axis == 0 else (place[0], INDEX[place])]
    assert_same(nnc.gather(x, axis, index), wanted)
    assert_same(nnc.scatter(x, axis, index, nnc.asarray(SOURCE)), written(X, axis, INDEX, SOURCE, lambda old, new: new))
    assert_same(nnc.scatter(x, axis, index, 7), written(X, axis, INDEX, 7, lambda old, new: new))
    assert_same(nnc.scatter(x, axis, index, SOURCE, reduce="multiply"),
                written(X, axis, INDEX, SOURCE, lambda old, new: old * new))
    assert_same(nnc.scatter_add(x, axis, index, nnc.asarray(SOURCE)),
                written(X, axis, INDEX, SOURCE, lambda old, new: old + new))


REDUCE: dict[str, Callable[[list[float]], float]] = {
    "sum": lambda v: float(np.sum(v)), "prod": lambda v: float(np.prod(v)), "mean": lambda v: float(np.mean(v)),
    "amax": max, "amin": min,
}  # fmt: skip


def reduced(x: Array, axis: int, index: Array, src: Array, reduce: str, include_self: bool) -> Array:
    groups: dict[tuple[int, ...], list[float]] = {}
    for place in np.ndindex(*index.shape):
        at = list(place)
        at[axis] = index[place]
        groups.setdefault(tuple(at), []).append(float(src[place]))
    out = x.copy()
    for at, values in groups.items():
        out[at] = REDUCE[reduce]([float(x[at])] * include_self + values)
    return out


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCE)
def test_scatter_reduce(device: str, reduce: str, include_self: bool) -> None:
    x = np.abs(X) + np.float32(0.1)
    for axis in (0, 1):
        found = nnc.scatter_reduce(nnc.asarray(x), axis, nnc.asarray(INDEX), nnc.asarray(SOURCE), reduce,
                                   include_self=include_self)
        assert_same(found, reduced(x, axis, INDEX, SOURCE, reduce, include_self))
    whole = (x * 9).astype(np.int32)
    found = nnc.scatter_reduce(nnc.asarray(whole), 1, INDEX, whole, reduce, include_self=include_self)
    np.testing.assert_array_equal(found.numpy(), np.floor(
        reduced(whole.astype(np.float64), 1, INDEX, whole, reduce, include_self)))


@pytest.mark.parametrize("reduce", REDUCE)
def test_derivatives_of_scatter_reduce(reduce: str) -> None:
    for include_self in (True, False):
        assert_derivatives(lambda xp, x, s, include_self=include_self: nnc.scatter_reduce(
            x, 1, nnc.asarray(INDEX), s, reduce, include_self=include_self), (X, SOURCE))


def test_index_add_and_select(device: str) -> None:
    wanted = X.copy()
    np.add.at(wanted, (slice(None), [0, 0, 3]), 2 * SOURCE[:, :3])
    assert_same(nnc.index_add(nnc.asarray(X), 1, [0, 0, 3], nnc.asarray(SOURCE[:, :3]), alpha=2), wanted)
    assert_same(nnc.index_select(nnc.asarray(X), 1, [3, 0]), X[:, [3, 0]])
    assert_same(nnc.index_select(nnc.asarray(X), 0, 1), X[[1]])
    assert_derivatives(lambda xp, x, s: nnc.index_add(x, 1, [0, 0, 3], s), (X, SOURCE[:, :3]))


# ---- JAX's segments
SEGMENTS = np.array([0, 2, 2, 0, 4])
FOLDS: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0), "prod": (np.multiply, 1), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf),
}  # fmt: skip


@pytest.mark.parametrize("name", FOLDS)
def test_segments(device: str, name: str) -> None:
    function, (fold, start) = getattr(nnc, f"segment_{name}"), FOLDS[name]
    data = RNG.normal(size=(5, 2)).astype(np.float32)
    wanted = np.full((6, 2), start, np.float32)
    fold.at(wanted, SEGMENTS, data)
    assert_same(function(nnc.asarray(data), nnc.asarray(SEGMENTS), 6), wanted)
    assert_same(function(nnc.asarray(data), nnc.asarray(SEGMENTS)), wanted[:5])
    assert_same(nnc.jit(lambda d, s: function(d, s, 6))(nnc.asarray(data), nnc.asarray(SEGMENTS)), wanted)
    whole = function(nnc.asarray(np.arange(5, dtype=np.int8)), SEGMENTS, 4 + 1)
    ends = {"max": -128, "min": 127, "sum": 0, "prod": 1}[name]
    assert whole.dtype == nnc.int8 and whole.tolist()[1] == ends


@pytest.mark.parametrize("name", FOLDS)
def test_derivatives_of_segments(name: str) -> None:
    function = getattr(nnc, f"segment_{name}")
    assert_derivatives(lambda xp, d: function(d, nnc.asarray(np.array([0, 1, 1, 0, 1])), 2), (RNG.normal(size=(5, 2)),))


def test_segments_of_nothing() -> None:
    assert nnc.segment_sum(nnc.ones((0, 2)), nnc.zeros(0, dtype="int64")).shape == (0, 2)
    assert nnc.segment_sum(nnc.ones((0, 2)), nnc.zeros(0, dtype="int64"), 3).tolist() == [[0, 0]] * 3


# ---- modes of indices, and sizes with names
def test_indices_out_of_range(device: str) -> None:
    """An error where the host sees them; kernels of other devices read 0 and write nothing."""
    x, wrong = nnc.asarray(X), nnc.asarray(np.array([[1], [4], [0]]))
    said = "index 4 is out of range for an axis of length 4"
    if device == "opencl:0":
        kept = X.copy()
        kept[[0, 2], [1, 0]] = 1.0
        assert nnc.put_along_axis(x, wrong, 1.0, 1).tolist() == kept.tolist()
        with nnc.config.using(check_indices=True), fails(IndexError, said, line=False):
            nnc.put_along_axis(x, wrong, 1.0, 1).numpy()
    else:
        with fails(IndexError, said, line=False):
            nnc.put_along_axis(x, wrong, 1.0, 1).numpy()
    if device == "cpu:0":
        with fails(IndexError, "index 4 is out of range", line=False):
            nnc.take_along_axis(x, wrong, axis=1)
    else:
        assert nnc.take_along_axis(x, wrong, axis=1).tolist() == [[float(X[0, 1])], [0.0], [float(X[2, 0])]]


def test_named_dimensions() -> None:
    x = nnc.var_arr("x", shape=(Dim("n"), 4))
    i = nnc.var_arr("i", shape=(Dim("n"), 2), dtype="int64")
    y = nnc.take_along_axis(x, i, axis=1)
    z = nnc.put_along_axis(x, i, y * 0, 1, mode="add")
    compiled = nnc.export(inputs={"x": x, "i": i}, outputs={"y": y, "z": z}).compile()
    for rows in (3, 2):
        found = compiled(x=nnc.asarray(X[:rows]), i=nnc.asarray(COLUMNS[:rows]))
        assert_same(found["y"], np.take_along_axis(X[:rows], COLUMNS[:rows], 1))
        assert_same(found["z"], X[:rows])


def test_many_examples_have_their_own_indices() -> None:
    """vmap of gathers and scatters is one gather and one scatter."""
    x, i = nnc.asarray(X), nnc.asarray(COLUMNS)
    assert_same(nnc.vmap(lambda row, at: nnc.take(row, at))(x, i), np.take_along_axis(X, COLUMNS, 1))
    wanted = X.copy()
    for row, at in zip(wanted, COLUMNS, strict=True):
        np.multiply.at(row, at, np.float32(3))
    assert_same(nnc.vmap(lambda row, at: row.at[at].multiply(3.0))(x, i), wanted)


@pytest.mark.parametrize(("code", "kind", "said"), [
    (lambda x: nnc.take_along_axis(x, nnc.asarray([0]), axis=1), ValueError, "as many dimensions"),
    (lambda x: nnc.take_along_axis(x, nnc.ones((2, 1)), axis=1), TypeError, "not integers"),
    (lambda x: nnc.put_along_axis(x, [[0]], 1.0, 1, mode="or"), ValueError, "mode 'or' is none of set, add"),
    (lambda x: nnc.put_along_axis(x, [[0, 1]], nnc.ones((2, 3)), 1), ValueError, "float32[2,3]"),
    (lambda x: nnc.gather(x, 0, [[0, 0, 0, 0]]), ValueError, "is longer than float32[2,3] along axis 1"),
    (lambda x: nnc.scatter(x, 0, [[0, 0, 0]], nnc.ones((1, 2))), ValueError, "has not an element for each"),
    (lambda x: nnc.scatter(x, 0, [[0]], 1.0, reduce="mean"), ValueError, "reduce 'mean' is none of"),
    (lambda x: nnc.scatter_reduce(x, 0, [[0]], 1.0, "median"), ValueError, "none of sum, prod, mean, amax, amin"),
    (lambda x: nnc.index_add(x, 0, [[0]], x), ValueError, "is no vector"),
    (lambda x: nnc.index_select(x, 0, [[0]]), ValueError, "is no vector"),
    (lambda x: nnc.segment_sum(x, [0]), ValueError, "do not tell the segment of each row"),
    (lambda x: nnc.choose([0], []), TypeError, "nothing to choose from"),
    (lambda x: nnc.choose([0.5], [x]), TypeError, "not integers"),
    (lambda x: nnc.choose([0], [x], mode="mirror"), ValueError, "mode 'mirror'"),
    (lambda x: nnc.select([x > 0], [x, x]), ValueError, "1 conditions for 2 choices"),
    (lambda x: nnc.select([x], [x]), TypeError, "not boolean"),
    (lambda x: nnc.masked_fill(x[0], nnc.asarray([[True], [False]]), 1.0), ValueError, "do not fit float32[3]"),
    (lambda x: nnc.compress([[True]], x), ValueError, "is no vector"),
    (lambda x: nnc.extract([True], x), ValueError, "a condition bool[1] for float32[2,3]"),
    (lambda x: nnc.place(x, x > 0, []), ValueError, "no values to place"),
])  # fmt: skip
def test_errors_name_the_function_and_the_line(x: nnc.Tensor, code: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said):
        code(x)


def test_the_number_of_segments_has_to_be_known_in_a_trace() -> None:
    with fails(TypeError, line=False):
        nnc.jit(lambda d, s: nnc.segment_sum(d, s))(nnc.ones(3), nnc.asarray([0, 1, 1]))
