"""Reading and replacing items: what NumPy does, but values instead of views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import nnc_core as nnc
from nnc_core.base.errors import ConcretizationError
from tests.tensors.faults import fails
from tests.tensors.indexing.keys import each_device, numbered


@st.composite
def shapes_and_keys(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    shape = draw(array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    return shape, draw(basic_indices(shape, allow_newaxis=True, max_dims=6))


@each_device
@given(shapes_and_keys())
def test_basic_keys_read_what_numpy_reads(where: str, drawn: Any) -> None:
    shape, key = drawn
    host = numbered(shape)
    found = nnc.asarray(host, device=where)[key]
    assert found.shape == host[key].shape
    np.testing.assert_array_equal(found.numpy(), host[key])


@each_device
@given(shapes_and_keys(), st.booleans(), st.sampled_from(["set", "add", "item"]))
def test_basic_keys_write_what_numpy_writes(where: str, drawn: Any, scalar: bool, how: str) -> None:
    shape, key = drawn
    host = numbered(shape)
    value: Any = -7.0 if scalar else -1 - numbered(np.shape(host[key]))
    x = nnc.asarray(host, device=where)
    given_value = value if scalar else nnc.asarray(value, device=where)
    wanted = host.copy()
    wanted[key] = host[key] + value if how == "add" else value
    if how == "item":
        x[key] = given_value
        found = x
    else:
        found = getattr(x.at[key], how)(given_value)
        np.testing.assert_array_equal(x.numpy(), host)
    np.testing.assert_array_equal(found.numpy(), wanted)


@given(shapes_and_keys())
def test_every_mode_reads_the_same(drawn: Any) -> None:
    shape, key = drawn
    host = numbered(shape)
    with nnc.use_device("strict:0"):
        x = nnc.asarray(host)
        with nnc.deferred():
            deferred = x[key]
        compiled = nnc.jit(lambda x: x[key])(x)
    np.testing.assert_array_equal(deferred.numpy(), host[key])
    np.testing.assert_array_equal(compiled.numpy(), host[key])


@given(shapes_and_keys())
def test_the_gradient_of_a_key_counts_reads(drawn: Any) -> None:
    shape, key = drawn
    host = numbered(shape)
    weights = 1 + numbered(np.shape(host[key]))
    with nnc.use_device("strict:0"):
        g = nnc.grad(lambda x: nnc.sum(x[key] * nnc.asarray(weights)))(nnc.asarray(host))
    wanted = np.zeros_like(host)
    wanted[key] = weights
    np.testing.assert_array_equal(g.numpy(), wanted)


@pytest.mark.parametrize("index", [[0], [2, 0, 2], np.array([1, -1]), np.array([[0, 1], [2, 2]]),
                                   np.array([], np.int64), np.array([1], np.uint8)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_array_of_integers_takes_slices(device: str, index: Any, axis: int) -> None:
    host = numbered((3, 4, 3))
    key = (*[slice(None)] * axis, index)
    wanted = host[key]
    for k in (index, nnc.asarray(np.asarray(index, np.int64 if not len(index) else None))):
        found = nnc.asarray(host)[(*[slice(None)] * axis, k)]
        np.testing.assert_array_equal(found.numpy(), wanted)
    np.testing.assert_array_equal(nnc.asarray(host)[(..., *key[axis:], *[slice(None)] * (2 - axis))].numpy(), wanted)


@pytest.mark.parametrize("mode", ["set", "add"])
def test_an_array_of_integers_writes_slices(device: str, mode: str) -> None:
    host, index = numbered((3, 4)), np.array([2, 0, 2])
    value = 100 + numbered((3, 4))
    found = getattr(nnc.asarray(host).at[index], mode)(value)
    wanted = host.copy()
    if mode == "set":
        wanted[index] = value
    else:
        np.add.at(wanted, index, value)
    np.testing.assert_array_equal(found.numpy(), wanted)
    x = nnc.asarray(host)
    x[:, [1, 3]] = -1
    host[:, [1, 3]] = -1
    np.testing.assert_array_equal(x.numpy(), host)


@pytest.mark.parametrize("value", [-1.0, "ten times"])
def test_masks_choose_where_to_write(device: str, value: Any) -> None:
    host = numbered((2, 3))
    x, mask = nnc.asarray(host), host > 2
    new = x * 10 if value == "ten times" else value
    for m in (x > 2, mask):
        y = nnc.asarray(x)
        y[m] = new
        np.testing.assert_array_equal(y.numpy(), np.where(mask, host * 10 if value == "ten times" else value, host))
        assert y.dtype == nnc.float32
    np.testing.assert_array_equal(x.at[x > 2].add(1).numpy(), np.where(mask, host + 1, host))


def test_a_mask_is_for_the_first_axes(device: str) -> None:
    x, rows = nnc.asarray(numbered((3, 3))), np.array([True, False, True])
    x[rows] = -1
    wanted = numbered((3, 3))
    wanted[rows] = -1
    np.testing.assert_array_equal(x.numpy(), wanted)
    with fails(ValueError, "bool[2]", "float32[3,3]"):
        x[np.array([True, False])] = 0


def test_elements_beside_a_mask_keep_every_bit(device: str) -> None:
    large = 2**62 + 1
    x = nnc.asarray(np.array([large, 5]))
    x[nnc.asarray([False, True])] = nnc.asarray(7.9)
    assert x.tolist() == [large, 7]


def test_a_row_of_values_for_a_mask(x: nnc.Tensor) -> None:
    x[x > 2] = [10.0, 20.0, 30.0]
    assert x.tolist() == [[0, 1, 2], [10, 20, 30]]
    x[np.array([True, False])] = nnc.asarray([[7.0, 8.0, 9.0]])
    assert x.tolist() == [[7, 8, 9], [10, 20, 30]]
    for wrong in ([1.0, 2.0], nnc.ones((2, 2))):
        with fails(ValueError, "does not fit"):
            x[x > 9] = wrong
    assert x.tolist() == [[7, 8, 9], [10, 20, 30]]


def test_values_are_cast_and_broadcast_to_the_place(device: str) -> None:
    x = nnc.asarray(np.zeros((2, 3), np.int32))
    x[0] = nnc.asarray([1.9, -1.9, 0.0])
    x[1, ...] = True
    assert x.tolist() == [[1, -1, 0], [1, 1, 1]] and x.dtype == nnc.int32
    y = nnc.zeros((2, 3))
    y[:, ::2] = nnc.asarray([[5.0], [6.0]])
    assert y.tolist() == [[5, 0, 5], [6, 0, 6]]


def test_integers_may_be_tensors_and_numpys(device: str) -> None:
    host = numbered((3, 4))
    x = nnc.asarray(host)
    for k in (np.int8(-1), nnc.asarray(np.array(2)), np.array(2)):
        np.testing.assert_array_equal(x[k].numpy(), host[2])
    assert x[nnc.asarray(np.array(1)), 1:3].tolist() == [5, 6]


@pytest.mark.parametrize(("key", "kind", "said"), [
    (5, IndexError, "index 5 is out of range for axis 0 of length 2"),
    ((0, -4), IndexError, "index -4 is out of range for axis 1 of length 3"),
    ((0, 0, 0), IndexError, "3 indices for 2 dimensions"),
    ((..., ...), TypeError, "at most one ..."),
    (1.5, TypeError, "float"),
    ("a", TypeError, "str"),
    (True, TypeError, "bool"),
    (([0, 1], [0, 1, 2]), ValueError, "(2,) and (3,) do not broadcast"),
    (([0, 1], [0, 3]), IndexError, "index 3 is out of range for axis 1 of length 3"),
    ((slice(1), [0, -4]), IndexError, "index -4 is out of range for axis 1 of length 3"),
    ([2], IndexError, "index 2 is out of range for axis 0 of length 2"),
    (([0], [0], [0]), IndexError, "3 indices for 2 dimensions"),
    (np.zeros((2, 3, 1), bool), IndexError, "3 indices for 2 dimensions"),
    (np.zeros((3,), bool), ValueError, "a mask bool[3] does not fit float32[2,3]"),
    ((slice(None), [True, False]), ValueError, "a mask bool[2] does not fit float32[2,3]"),
    ((np.zeros((2, 3), bool), 0), IndexError, "3 indices for 2 dimensions"),
    (np.array([0.5]), TypeError, "float64"),
    (["a"], TypeError, "an index array is <U1"),
    (slice(None, None, 0), ValueError, "the slice ::0 has step 0"),
    ((0, slice(1.5, None)), TypeError, "the slice 1.5:: is not made of integers"),
], ids=str)  # fmt: skip
def test_keys_that_do_not_work(x: nnc.Tensor, key: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said):
        x[key]
    with fails(kind, said):
        x[key] = 0
    with fails(kind, said):
        x.at[key].set(0)


def test_steps_beyond_any_axis(x: nnc.Tensor) -> None:
    far = 2**70
    for key in (slice(None, None, far), slice(-far, far, far), slice(None, None, -far)):
        host = x.numpy()
        np.testing.assert_array_equal(x[key].numpy(), host[key])
        host[key] = 7
        for set_rows in (lambda t, key=key: t.at[key].set(7), nnc.jit(lambda t, key=key: t.at[key].set(7))):
            np.testing.assert_array_equal(set_rows(x).numpy(), host)


# ---- code as it is written in scientific Python
def test_code_like_that_of_scikit_learn(device: str) -> None:
    """Standardise, clip outliers, impute, count labels, build a confusion matrix, pick the k best."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(20, 4)).astype(np.float32)
    data[3, 1] = data[7, 2] = np.nan
    labels = rng.integers(0, 3, 20)

    def program(xp: Any, x: Any, y: Any) -> list[Any]:
        missing = xp.isnan(x)
        x[missing] = 0
        columns = xp.nonzero(xp.sum(xp.astype(missing, xp.float32), axis=0) > 0)[0]
        x[:, columns] *= 2
        rows = xp.nonzero(y == 1)[0]
        sub = x[rows][:, [0, 2]]
        x[x > 1] = 1
        x[0] += 1
        x[rows, -1] = -5
        x[5:7, :2] = [[1.0], [2.0]]
        confusion = xp.zeros((3, 3), dtype=xp.float32)
        confusion[y[:3], y[3:6]] += 1
        best = x[y == 2, 1:]
        return [x, columns, sub, confusion, best, x[~missing], x[rows[:, None], [0, 1]]]

    wanted = program(np, data.copy(), labels)
    found = program(nnc, nnc.asarray(data), nnc.asarray(labels))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6)


def test_values_that_do_not_fit_the_place(x: nnc.Tensor) -> None:
    with fails(ValueError, "float32[2]"):
        x[0] = nnc.ones(2)
    with fails(ValueError):
        x[:, 1:] = nnc.ones((3, 2))
    with fails(TypeError, "str"):
        x[0] = "a"
    np.testing.assert_array_equal(x.numpy(), numbered((2, 3)))


def test_iteration_and_length(x: nnc.Tensor) -> None:
    rows = list(x)
    assert [r.tolist() for r in rows] == [[0, 1, 2], [3, 4, 5]] and len(x) == 2
    first, second = x
    assert first.shape == second.shape == (3,)
    with fails(TypeError, "0-dimensional", line=False):
        len(x[0, 0])


@pytest.mark.parametrize("f", [lambda x, i: x[i : i + 2], lambda x, i: x[:, i:], lambda x, i: x.at[:i].set(0)])
def test_a_slice_from_a_computed_place_says_how(f: Any, x: nnc.Tensor) -> None:
    with pytest.raises(ConcretizationError, match=r"argument `i`[\s\S]*try: x\[i \+ nnc\.arange\(n\)\] takes n"):
        nnc.jit(f)(x, nnc.asarray(1))
    found = nnc.jit(lambda x, i: x[:, i + nnc.arange(2)])(x, nnc.asarray(1))
    assert found.tolist() == [[1, 2], [4, 5]]
