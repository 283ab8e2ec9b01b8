"""Regions of a storage: what is proved about them is so, byte by byte."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.layout import Layout
from nnc_core.engine.regions import apart, part, same_elements
from nnc_core.operator import OPERATORS

SLICE = OPERATORS["slice"]
dtypes = st.sampled_from([np.dtype(t) for t in (np.float32, np.float64, np.uint8)])
shapes = st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple)


def touched(x: Layout) -> set[int]:
    """Every byte of an array."""
    found: set[int] = set()
    for index in product(*map(range, x.shape)):
        first = x.offset + sum(i * s for i, s in zip(index, x.strides, strict=True))
        found.update(range(first, first + x.dtype.itemsize))
    return found


@st.composite
def slices(draw: st.DrawFn, whole: Layout, steps: bool) -> Layout:
    start, stop, step = [], [], []
    for n in whole.shape:
        a = draw(st.integers(0, n))
        start.append(a)
        stop.append(draw(st.integers(a, n)))
        step.append(draw(st.integers(1, 2)) if steps else 1)
    assert SLICE.view is not None
    seen = SLICE.view(whole, tuple(start), tuple(stop), tuple(step))
    assert seen is not None
    return seen


@given(st.data(), shapes, dtypes)
def test_parts_cut_along_axes_are_told_apart(data: st.DataObject, shape: tuple[int, ...], dtype: np.dtype) -> None:
    whole = Layout.packed(shape, dtype, 8 * data.draw(st.integers(0, 3)))
    order = data.draw(st.permutations(range(len(shape))))
    whole = whole._replace(shape=tuple(shape[i] for i in order), strides=tuple(whole.strides[i] for i in order))
    a, b = data.draw(slices(whole, steps=False)), data.draw(slices(whole, steps=False))
    assert apart(a, b) == apart(b, a) == (not touched(a) & touched(b))


layouts = st.builds(
    lambda dtype, offset, dims: Layout(tuple(n for n, _ in dims), dtype, offset * dtype.itemsize,
                                       tuple(s * dtype.itemsize for _, s in dims)),
    dtypes, st.integers(20, 40), st.lists(st.tuples(st.integers(0, 4), st.integers(-5, 9)), max_size=3))


@given(layouts, layouts)
def test_what_is_said_to_be_apart_is(a: Layout, b: Layout) -> None:
    assert not apart(a, b) or not touched(a) & touched(b)


@given(st.data(), shapes, dtypes)
def test_in_steps_as_well(data: st.DataObject, shape: tuple[int, ...], dtype: np.dtype) -> None:
    whole = Layout.packed(shape, dtype)
    a, b = data.draw(slices(whole, steps=True)), data.draw(slices(whole, steps=True))
    assert not apart(a, b) or not touched(a) & touched(b)


def test_every_other_element() -> None:
    even, odd = (Layout((4,), np.dtype(np.float32), first, (8,)) for first in (0, 4))
    assert apart(even, odd) and not apart(even, even)


@given(st.data(), shapes, st.integers(0, 2))
def test_a_part_is_a_slice(data: st.DataObject, shape: tuple[int, ...], axis: int) -> None:
    axis = min(axis, len(shape) - 1)
    whole = Layout.packed(shape, np.dtype(np.float32), 64)
    begin = data.draw(st.integers(0, shape[axis]))
    length = data.draw(st.integers(0, shape[axis] - begin))
    start, stop = [0] * len(shape), list(shape)
    start[axis], stop[axis] = begin, begin + length
    assert SLICE.view is not None
    sliced = SLICE.view(whole, tuple(start), tuple(stop), (1,) * len(shape))
    assert sliced is not None and same_elements(part(whole, axis, begin, length), sliced)


def test_strides_that_nobody_steps_along_do_not_matter() -> None:
    a = Layout((3, 1), np.dtype(np.float32), 0, (4, 0))
    assert same_elements(a, a._replace(strides=(4, 4))) and not same_elements(a, a._replace(strides=(8, 0)))
    assert not same_elements(a, a._replace(offset=4)) and not same_elements(a, a._replace(shape=(3,), strides=(4,)))
    nothing = a._replace(shape=(0, 1))
    assert same_elements(nothing, nothing._replace(offset=4))
