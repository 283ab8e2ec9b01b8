"""Functions that move, join, repeat and take apart, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.type import Dim
from tests.tensors.against_numpy import (
    Code,
    assert_derivatives,
    assert_same,
    assert_same_in_every_mode,
    run,
)
from tests.tensors.faults import fails


def numbers(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(sum(shape)).normal(size=shape), np.float32)


V, X, Y, Z = numbers(5), numbers(3, 4), numbers(2, 4), numbers(2, 3, 4)

MOVED: dict[str, tuple[Code, tuple[np.ndarray, ...]]] = {
    "reshape": (lambda xp, x: xp.reshape(x, (-1, 2)), (X,)),
    "ravel": (lambda xp, x: xp.ravel(x), (Z,)),
    "permute_dims": (lambda xp, x: xp.permute_dims(x, (2, 0, 1)), (Z,)),
    "moveaxis": (lambda xp, x: [xp.moveaxis(x, 0, -1), xp.moveaxis(x, (0, 2), (1, 0)), xp.moveaxis(x, [2], [0])], (Z,)),
    "swapaxes": (lambda xp, x: xp.swapaxes(x, 0, -1), (Z,)),
    "matrix_transpose": (lambda xp, x: xp.matrix_transpose(x), (Z,)),
    "expand_dims": (lambda xp, x: [xp.expand_dims(x, axis=-1), xp.expand_dims(x, axis=(0, 2))], (X,)),
    "squeeze": (lambda xp, x: [xp.squeeze(xp.reshape(x, (1, 3, 1, 4))),
                               xp.squeeze(xp.reshape(x, (1, 3, 1, 4)), axis=2)], (X,)),
    "flip": (lambda xp, x: [xp.flip(x), xp.flip(x, axis=1), xp.flipud(x), xp.fliplr(x)], (X,)),
    "rot90": (lambda xp, x: [xp.rot90(x, k, a) for k in (-1, 0, 1, 2, 3, 5) for a in ((0, 1), (2, 0))], (Z,)),
    "roll": (lambda xp, x: [
        xp.roll(x, 1, axis=0), xp.roll(x, -9, axis=1), xp.roll(x, 5), xp.roll(x, (1, 2), axis=(0, 1)),
        xp.roll(x, 1, axis=(0, 1)), xp.roll(x, (1, 3), axis=0), xp.roll(x[:0], 2, axis=0)], (X,)),
    "atleast": (lambda xp, x: [f(y) for f in (xp.atleast_1d, xp.atleast_2d, xp.atleast_3d)
                               for y in (x, x[0], x[0, 0])], (X,)),
    "broadcast": (lambda xp, x, v: [xp.broadcast_to(v, (2, 5)), *xp.broadcast_arrays(xp.reshape(x, (3, 1, 4)), v[:4])],
                  (X, V)),
    "concat": (lambda xp, x, y: [xp.concat([x, y, x]), xp.concat([x, y], axis=None)], (X, Y)),
    "stack": (lambda xp, x: [xp.stack([x, x]), xp.stack([x, x], axis=-1)], (X,)),
    "hstack and others": (lambda xp, x, v: [
        xp.hstack([v, v]), xp.hstack([x, x]), xp.vstack([v, v]), xp.vstack([x, v[:4]]),
        xp.dstack([v, v]), xp.dstack([x, x]), xp.column_stack([v[:3], x])], (X, V)),
    "append": (lambda xp, x, y: [xp.append(x, y, axis=0), xp.append(x, y), xp.append(x, np.float32(1.5))], (X, Y)),
    "block": (lambda xp, x, y: [
        xp.block([[x, x[:, :1]], [y, xp.zeros((2, 1), dtype=xp.float32)]]), xp.block([y[0], np.float32(2)]),
        xp.block(x), xp.block([[x[0]], [x[1]]])], (X, Y)),
    "unstack": (lambda xp, x: xp.unstack(x, axis=1), (Z,)),
    "array_split": (lambda xp, x: [p for s in (1, 2, 3, [1, 3], [0, 9], [3, 1], [-1]) for p in xp.array_split(x, s, 1)],
                    (X,)),
    "split and others": (lambda xp, x, v: [*xp.split(x, 2), *xp.hsplit(x, [1]), *xp.vsplit(x, 2), *xp.dsplit(x, 4),
                                           *xp.hsplit(v, [2])], (Z, V)),
    "tile": (lambda xp, x: [xp.tile(x, r) for r in (2, (2,), (1, 3), (2, 1, 2), (0, 1), ())], (X,)),
    "repeat": (lambda xp, x: [xp.repeat(x, 2), xp.repeat(x, 3, axis=1), xp.repeat(x, 0, axis=0),
                              xp.repeat(x, [1, 0, 2], axis=0), xp.repeat(x, np.array([2]), axis=-1)], (X,)),
    "insert": (lambda xp, x, v: [
        xp.insert(x, 1, v[:4], 0), xp.insert(x, -1, v[:3], axis=1), xp.insert(x, [1], [[1], [2], [3]], axis=1),
        xp.insert(x, [3, 1], v[:2], axis=1), xp.insert(x, slice(0, 3, 2), 7, axis=0), xp.insert(x, 5, 7),
        xp.insert(x, np.array([True, False, True]), 7, 0), xp.insert(x, [], 7, axis=0)], (X, V)),
    "delete": (lambda xp, x: [xp.delete(x, [3, -1]), xp.delete(x, slice(1, 3), axis=1)] + [
        xp.delete(x, k, 0) for k in (1, -1, [0, 2], [], slice(None, None, 2), [True, False, True])], (X,)),
    "triangles": (lambda xp, x: [f(x, k=k) for f in (xp.tril, xp.triu) for k in (-5, -1, 0, 2, 6)], (Z,)),
    "diag": (lambda xp, x, v: [xp.diag(y, k) for y in (x, v) for k in (-3, -1, 0, 1, 7)], (X, V)),
    "diagflat": (lambda xp, x: [xp.diagflat(x), xp.diagflat(x, -2)], (X,)),
    "diagonal": (lambda xp, x: [xp.diagonal(x, k, a, b) for k in (-9, -1, 0, 2) for a, b in ((0, 1), (2, 0), (-1, 1))],
                 (Z,)),
    "trace": (lambda xp, x: [xp.trace(x), xp.trace(x, 1, 2, 0), xp.trace(x[0], -1)], (Z,)),
    "meshgrid": (lambda xp, x, v: [
        g for s in (False, True) for i in ("xy", "ij") for given in ((v,), (v, x[0]), (v, x[0], v))
        for g in xp.meshgrid(*given, indexing=i, sparse=s)], (X, V)),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_gives_what_numpy_gives(device: str, name: str) -> None:
    code, arrays = MOVED[name]
    assert_same(run(code, arrays), code(np, *arrays))


@pytest.mark.parametrize("name", MOVED)
def test_in_every_mode(name: str) -> None:
    code, arrays = MOVED[name]
    assert_same_in_every_mode(code, arrays)


@pytest.mark.parametrize("name", MOVED)
def test_derivatives(name: str) -> None:
    code, arrays = MOVED[name]
    if name == "block":  # zeros of its own, of float32
        code = lambda xp, x, y: xp.block([[x, x[:, :1]], [y, y[:, :1]]])  # noqa: E731
    assert_derivatives(code, arrays)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "bfloat16", "float16", "complex128"])
def test_other_dtypes(dtype: str) -> None:
    host = (np.arange(12).reshape(3, 4) % 5).astype(nnc.ones(0, dtype=dtype).dtype)
    x = nnc.asarray(host)
    pairs = [(nnc.roll(x, 1, axis=0), np.roll(host, 1, 0)), (nnc.tile(x, 2), np.tile(host, 2)),
             (nnc.repeat(x, [1, 0, 2], axis=0), np.repeat(host, [1, 0, 2], 0)), (nnc.tril(x), np.tril(host)),
             (nnc.diag(x[0]), np.diag(host[0])), (nnc.diag(x), np.diag(host)), (nnc.rot90(x), np.rot90(host)),
             (nnc.insert(x, 1, 1, 0), np.insert(host, 1, 1, 0)), (nnc.delete(x, 1, 1), np.delete(host, 1, 1))]
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_resize_flat_and_broadcast_shapes() -> None:
    for shape in ((5, 4), (2,), (3, 4), (), (0, 2)):
        assert_same(nnc.resize_flat(nnc.asarray(X), shape), np.resize(X, shape))
    assert nnc.resize_flat(nnc.ones((0, 3)), (2, 2)).tolist() == [[0, 0], [0, 0]]
    assert nnc.broadcast_shapes((2, 1), 3, (1, 1, 1)) == (1, 2, 3) and nnc.broadcast_shapes() == ()
    n = Dim("n")
    assert nnc.broadcast_shapes((n, 1), (1, 4)) == (n, 4)


def test_coordinates(device: str) -> None:
    for k in (-2, 0, 3):
        assert_same(nnc.tri(3, 5, k, dtype="int32"), np.tri(3, 5, k, np.int32))
        assert_same(nnc.tril_indices(3, k, 4), np.tril_indices(3, k, 4))
        assert_same(nnc.triu_indices(4, k), np.triu_indices(4, k))
    assert_same(nnc.diag_indices(3, 2), np.diag_indices(3, 2))
    assert_same(nnc.indices((2, 3)), np.indices((2, 3)))
    assert_same(nnc.indices((2, 0, 3), dtype="float32", sparse=True), np.indices((2, 0, 3), np.float32, sparse=True))
    assert nnc.indices(()).shape == (0,)
    assert_same(nnc.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype="int32"),
                np.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype=np.int32))
    assert nnc.tri(2, device="strict:0").device.id == "strict:0"
    assert nnc.tri(2).device.id == device


@pytest.mark.parametrize(("shape", "wrap"), [((3, 4), False), ((7, 3), False), ((7, 3), True), ((3, 3, 3), False),
                                             ((4, 2), True), ((2, 5), True)])
def test_fill_diagonal(shape: Any, wrap: bool) -> None:
    for value in (5.0, [1.0, 2.0]):
        wanted = numbers(*shape)
        x = nnc.asarray(wanted)
        np.fill_diagonal(wanted, value, wrap)
        assert_same(nnc.fill_diagonal(x, value, wrap), wanted)
    square = numbers(3, 3)
    assert_derivatives(lambda xp, x, v: nnc.fill_diagonal(x, v), (square, numbers(2)))


def test_methods(device: str) -> None:
    x = nnc.asarray(Z)
    for name, arguments in (("repeat", (2, 1)), ("swapaxes", (0, 2)), ("diagonal", (1, 1, 2)), ("trace", (0, 1, 2)),
                            ("ravel", ()), ("squeeze", ())):
        assert_same(getattr(x, name)(*arguments), getattr(Z, name)(*arguments))
    assert_same(x[0].dot(nnc.asarray(V[:4])), Z[0].dot(V[:4]))


# ---- counts that depend on data
def test_counts_may_be_a_tensor(device: str) -> None:
    x, counts = nnc.asarray(X), nnc.asarray(np.array([2, 0, 3]))
    wanted = np.repeat(X, [2, 0, 3], 0)
    assert_same(nnc.repeat(x, counts, axis=0), wanted)
    with nnc.deferred():
        late = nnc.repeat(x, counts + 0, axis=0)
        assert late.static_shape == (None, 4)
        doubled = late * 2
    assert_same(doubled, wanted * 2)
    f = nnc.jit(lambda x, counts: nnc.repeat(x, counts, axis=0) + 1)
    assert_same(f(x, counts), wanted + 1)
    assert_same(f(x, counts + 1), np.repeat(X, [3, 1, 4], 0) + 1)
    g = nnc.grad(lambda x: nnc.sum(nnc.repeat(x, counts, axis=0) ** 2))(x)
    np.testing.assert_allclose(g.numpy(), 2 * X * np.array([[2], [0], [3]]), rtol=1e-6)
    assert_same(nnc.repeat(x, nnc.asarray(2), axis=1), np.repeat(X, 2, 1))


def test_counts_that_are_none(device: str) -> None:
    x = nnc.asarray(X)
    with fails(ValueError, "negative"):
        nnc.repeat(x, nnc.asarray(np.array([1, -1, 0])), axis=0)
    with fails(ValueError, "repeats int64[2] for axis 0", operator="repeat"):
        nnc.repeat(x, nnc.asarray(np.array([1, 1])), axis=0)
    with fails(TypeError, "not integers"):
        nnc.repeat(x, nnc.ones(3), axis=0)


# ---- named dimensions
def test_named_dimensions() -> None:
    n = Dim("n")
    codes: dict[str, Code] = {
        "roll": lambda xp, x: xp.roll(x, 1, axis=0), "roll back": lambda xp, x: xp.roll(x, -2, axis=0),
        "tile": lambda xp, x: xp.tile(x, (2, 1)), "repeat": lambda xp, x: xp.repeat(x, 2, axis=0),
        "tril": lambda xp, x: xp.tril(x, k=-1), "flatten": lambda xp, x: xp.ravel(x),
        "outer grid": lambda xp, x: xp.meshgrid(x[:, 0], x[:, 1])[1], "diag": lambda xp, x: xp.diag(x[:, 0], 1),
        "diagonal of a square": lambda xp, x: xp.diagonal(x[:, 0, None] * x[:, 1]),
    }
    for name, code in codes.items():
        with nnc.deferred():
            x = nnc.var_arr("x", shape=(n, 4))
            y = code(nnc, x)
        compiled = nnc.export(inputs={"x": x}, outputs={"y": y}).compile()
        for rows in (3, 5):
            host = numbers(rows, 4)
            (found,) = compiled(x=nnc.asarray(host)).values()
            np.testing.assert_allclose(found.numpy(), code(np, host), rtol=1e-6, err_msg=name)


# ---- properties
@given(st.data())
def test_parts_joined_are_the_whole(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    host = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    cuts = data.draw(st.one_of(st.integers(1, 5), st.lists(st.integers(0, 5), max_size=3).map(sorted)))
    x = nnc.asarray(host)
    parts = nnc.array_split(x, cuts, axis)
    assert_same(parts, np.array_split(host, cuts, axis))
    assert_same(nnc.concat(parts, axis=axis), host)
    by = data.draw(st.integers(-9, 9))
    assert_same(nnc.roll(nnc.roll(x, by, axis=axis), -by, axis=axis), host)
    assert_same(nnc.moveaxis(nnc.moveaxis(x, axis, 0), 0, axis), host)
    assert_same(nnc.stack(nnc.unstack(x, axis=axis), axis=axis) if host.shape[axis] else x, host)


# ---- what does not work
@pytest.mark.parametrize(("code", "kind", "said"), [
    (lambda x: nnc.reshape(x, (-1, -1)), ValueError, "more than one -1"),
    (lambda x: nnc.moveaxis(x, (0, 1), 0), ValueError, "2 axes (0, 1) for 1 places 0"),
    (lambda x: nnc.moveaxis(x, (0, 0), (0, 1)), ValueError, "names an axis twice"),
    (lambda x: nnc.swapaxes(x, 0, 2), ValueError, "axis 2 is out of range"),
    (lambda x: nnc.squeeze(x, axis=1), ValueError, "axis 1 of float32[2,3] has length 3, not 1"),
    (lambda x: nnc.rot90(x, 1, (0, 0)), ValueError, "names an axis twice"),
    (lambda x: nnc.roll(x, (1, 2, 3), axis=(0, 1)), ValueError, "3 shifts (1, 2, 3) for 2 axes"),
    (lambda x: nnc.concat([]), TypeError, "nothing to join"),
    (lambda x: nnc.vstack([x, x[:, :2]]), ValueError, "differ in more than axis 0"),
    (lambda x: nnc.block([[x], x]), ValueError, "nested differently"),
    (lambda x: nnc.block([]), ValueError, "empty lists"),
    (lambda x: nnc.split(x, 2, axis=1), ValueError, "does not divide into 2 equal parts"),
    (lambda x: nnc.array_split(x, 0), ValueError, "0 parts"),
    (lambda x: nnc.array_split(x, [0.5]), TypeError, "a list of indices is float64"),
    (lambda x: nnc.vsplit(x[0], 1), ValueError, "fewer than 2 dimensions"),
    (lambda x: nnc.tile(x, (-1, 2)), ValueError, "repetitions (-1, 2) are negative"),
    (lambda x: nnc.repeat(x, -1), ValueError, "no counts"),
    (lambda x: nnc.repeat(x, [1, 2, 3], axis=0), ValueError, "repeats of shape (3,) for axis 0"),
    (lambda x: nnc.repeat(x, 1.5), TypeError, "a count is float64"),
    (lambda x: nnc.insert(x, 9, 0.0, axis=0), IndexError, "index 9 is out of range for an axis of length 2"),
    (lambda x: nnc.insert(x, [0, 1], nnc.ones(5), axis=0), ValueError, "float32[5]"),
    (lambda x: nnc.delete(x, 2, axis=0), IndexError, "index 2 is out of range"),
    (lambda x: nnc.delete(x, [True], axis=0), ValueError, "a mask of shape (1,) for an axis of length 2"),
    (lambda x: nnc.tril(x[0]), ValueError, "float32[3] is no matrix"),
    (lambda x: nnc.diag(x[None]), ValueError, "neither a vector nor a matrix"),
    (lambda x: nnc.diagonal(x, axis1=1, axis2=-1), ValueError, "are one axis"),
    (lambda x: nnc.fill_diagonal(x[0], 1), ValueError, "has no diagonal"),
    (lambda x: nnc.fill_diagonal(x[None], 1), ValueError, "should have one length"),
    (lambda x: nnc.meshgrid(x), ValueError, "coordinates are vectors"),
    (lambda x: nnc.meshgrid(x[0], indexing="yx"), ValueError, "neither 'xy' nor 'ij'"),
    (lambda x: nnc.resize_flat(x, (-1, 2)), ValueError, "negative dimension"),
])  # fmt: skip
def test_errors_name_the_function_and_the_line(x: nnc.Tensor, code: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said):
        code(x)


def test_a_diagonal_whose_length_has_no_number() -> None:
    x = nnc.var_arr("x", shape=(Dim("n"), Dim("m")))
    with fails(NotImplementedError, "whose length has no number", operator="diagonal"):
        nnc.diagonal(x)
