"""Items by arrays and masks, mixed with basic keys: what NumPy does."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import nnc_core as nnc
from tests.tensors.indexing.keys import each_device, numbered, on_device


# ---- several arrays, masks, and both mixed with basic keys
@st.composite
def shapes_and_mixed_keys(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A key of integers, slices, None, ..., arrays of integers and masks, in any order."""
    shape = draw(array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    common = draw(st.sampled_from([(3,), (2, 3), (1,), ()]))
    keys: list[Any] = []
    axis, ellipsis = 0, False
    while axis < len(shape) and draw(st.integers(0, 6)):
        length = shape[axis]
        kind = draw(st.sampled_from(["integer", "slice", "array", "array", "mask", "None", "..."]))
        if kind == "integer":
            keys.append(draw(st.integers(-length, length - 1)))
        elif kind == "slice":
            keys.append(draw(st.slices(length)))
        elif kind == "array":
            kept = common[draw(st.integers(0, len(common))) :]
            keys.append(draw(arrays(np.int64, kept, elements=st.integers(-length, length - 1))))
        elif kind == "mask":
            axes = draw(st.integers(1, len(shape) - axis))
            keys.append(draw(arrays(np.bool_, shape[axis : axis + axes])))
            axis += axes - 1
        elif kind == "None" or (kind == "..." and not ellipsis):
            keys.append(None if kind == "None" else ...)
            ellipsis = ellipsis or kind == "..."
            continue
        else:
            continue
        axis += 1
    key = tuple(keys)
    try:
        numbered(shape)[key]
    except IndexError:  # masks and arrays that do not broadcast
        assume(False)
    return shape, key


@each_device
@given(shapes_and_mixed_keys(), st.integers(0, 1))
def test_mixed_keys_read_what_numpy_reads(where: str, drawn: Any, which: int) -> None:
    shape, key = drawn
    host = numbered(shape)
    with nnc.use_device(where):
        found = nnc.asarray(host)[on_device(key, which)]
    assert found.shape == host[key].shape
    np.testing.assert_array_equal(found.numpy(), host[key])


@each_device
@given(shapes_and_mixed_keys(), st.integers(0, 1), st.booleans())
def test_mixed_keys_write_what_numpy_writes(where: str, drawn: Any, which: int, scalar: bool) -> None:
    shape, key = drawn
    host = numbered(shape)
    value: Any = -7.0 if scalar else -1 - numbered(np.shape(host[key]))
    wanted, added = host.copy(), host.copy()
    wanted[key] = value
    np.add.at(added, key, np.broadcast_to(np.float32(value), host[key].shape))
    with nnc.use_device(where):
        given_value = value if scalar else nnc.asarray(value)
        x = nnc.asarray(host)
        x[on_device(key, which)] = given_value
        np.testing.assert_array_equal(x.numpy(), wanted)
        found = nnc.asarray(host).at[on_device(key, which)].add(given_value)
    np.testing.assert_allclose(found.numpy(), added, rtol=1e-6)


@given(shapes_and_mixed_keys(), st.integers(0, 1))
def test_every_mode_reads_mixed_keys_the_same(drawn: Any, which: int) -> None:
    shape, key = drawn
    host = numbered(shape)
    weights = 1 + numbered(np.shape(host[key]))

    def f(x: nnc.Tensor, masks: bool = False) -> nnc.Tensor:
        return x[on_device(key, which, masks)]

    with nnc.use_device("strict:0"):
        x = nnc.asarray(host)
        with nnc.deferred():
            deferred = f(x, masks=True)
        found = deferred.numpy(), nnc.jit(f)(x).numpy()
        g = nnc.grad(lambda x: nnc.sum(f(x) * nnc.asarray(weights)))(x)
    for array in found:
        np.testing.assert_array_equal(array, host[key])
    wanted = np.zeros_like(host)
    np.add.at(wanted, key, weights)
    np.testing.assert_allclose(g.numpy(), wanted, rtol=1e-6)


def test_an_index_that_is_not_known_yet(x: nnc.Tensor) -> None:
    """In deferred and compiled code a 0-dimensional integer tensor is not looked at."""
    row = nnc.asarray(np.array(1))
    with nnc.deferred():
        i = row * 1
        deferred = x[i, 1:]
        assert deferred.is_deferred and i.is_deferred
    assert deferred.tolist() == [4, 5]
    f = nnc.jit(lambda x, i: x[i])
    assert f(x, row).tolist() == [3, 4, 5] and f(x, row - 1).tolist() == [0, 1, 2] and f.traces == 1


def test_empty_keys_and_masks_of_no_dimensions(x: nnc.Tensor) -> None:
    host = numbered((2, 3))
    for key in ([], np.array([], np.int64), np.array(True), np.array(False), (np.array(True), 0)):
        np.testing.assert_array_equal(x[key].numpy(), host[key])
    assert nnc.asarray(5.0)[np.array(True)].tolist() == [5.0]
