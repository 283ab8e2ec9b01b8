"""Tilings: what they make of shapes and elements; `pack` by its loop nest and by the device's code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.errors import ShapeError
from nnc_core.base.tiling import Tiling
from nnc_core.graph import SymbolicGraph
from nnc_core.operator.packing import PACK, UNPACK
from nnc_core.stacks import stack_for
from nnc_plugins.conformance.running import called, spec_of
from tests.devices import devices

PANELS = Tiling((1, 16), (1, 0, 3))
CHANNELS = Tiling((1, 4, 1, 1), (0, 1, 2, 3, 5))


@st.composite
def tilings(draw: st.DrawFn) -> tuple[Tiling, tuple[int, ...]]:
    """One with a shape for it."""
    blocks = tuple(draw(st.lists(st.integers(1, 4), min_size=0, max_size=3)))
    axes = [*range(len(blocks)), *[len(blocks) + i for i, n in enumerate(blocks) if n != 1]]
    return Tiling(blocks, tuple(draw(st.permutations(axes)))), tuple([draw(st.integers(1, 7)) for _ in blocks])


def by_loops(x: np.ndarray, tiling: Tiling) -> np.ndarray:  # type: ignore[type-arg]
    """Element by element."""
    out = np.zeros(tiling.packed(x.shape), x.dtype)
    for at in np.ndindex(out.shape):
        axes = dict(zip(tiling.order, at, strict=True))
        place = tuple([axes[i] * n + axes.get(x.ndim + i, 0) for i, n in enumerate(tiling.blocks)])
        if all(i < n for i, n in zip(place, x.shape, strict=True)):
            out[at] = x[place]
    return out


def test_panels() -> None:
    x = np.arange(2 * 20, dtype=np.float32).reshape(2, 20)
    y = PANELS.pack(x)
    assert PANELS.packed((2, 20)) == y.shape == (2, 2, 16)
    assert y[0].tolist() == x[:, :16].tolist() and y[1, :, :4].tolist() == x[:, 16:].tolist() and not y[1, :, 4:].any()


@given(tilings())
def test_every_tiling_against_loops(drawn: tuple[Tiling, tuple[int, ...]]) -> None:
    tiling, shape = drawn
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    y = tiling.pack(x)
    np.testing.assert_array_equal(y, by_loops(x, tiling))
    np.testing.assert_array_equal(tiling.unpack(y, shape), x)


@pytest.mark.parametrize("id", devices())
@pytest.mark.parametrize(("tiling", "shape"), [
    (PANELS, (3, 32)), (PANELS, (3, 33)), (CHANNELS, (2, 6, 3, 3)), (Tiling((1, 1), (1, 0)), (3, 2)),
    (Tiling((), ()), ()), (Tiling((4, 2), (1, 0, 2, 3)), (9, 5)),
], ids=str)  # fmt: skip
def test_the_operator_on_each_device(id: str, tiling: Tiling, shape: tuple[int, ...]) -> None:
    stack = stack_for(id)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    F = stack.operator.open()
    given = F.placeholder("x", spec_of(x))
    graph = SymbolicGraph({"x": given}, {"y": F.apply(PACK, (given,), (tiling,))})
    run = stack.engine.compile(graph)
    assert "host" not in run.explain().split("\n")[1]
    np.testing.assert_array_equal(called(run, {"x": x})["y"], tiling.pack(x))


def test_what_is_read_has_the_shape_that_was_packed() -> None:
    x = np.ones((3, 20), np.float32)
    spec = UNPACK.infer(PACK.infer(spec_of(x), PANELS), PANELS, (3, 20))
    assert spec == spec_of(x)


@pytest.mark.parametrize(("blocks", "order"), [((1, 16), (1, 0)), ((2,), (0, 0)), ((0,), (0,)), ((1,), (0, 1))])
def test_orders_that_are_none(blocks: tuple[int, ...], order: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="orders no axes of blocks"):
        Tiling(blocks, order)


def test_arrays_of_another_rank() -> None:
    with pytest.raises(ShapeError, match="has not the 2 axes"):
        PANELS.packed((3,))
