"""The choice of a few by searches: the positions that sorting gives, whatever the elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import DTYPES, is_float
from nnc_core.operator import ordering
from nnc_cpu.few_largest import FEW

CHOSEN = [name for name, dtype in DTYPES.items()
          if (is_float(dtype) and dtype.itemsize > 1) or dtype.kind in "iu"]  # fmt: skip


def rows(name: str, seed: int) -> np.ndarray:  # type: ignore[type-arg]
    """Few values, so that there are ties; zeros of either sign, NaN and infinities among them."""
    rng, dtype = np.random.default_rng(seed), DTYPES[name]
    if not is_float(dtype):
        info = np.iinfo(dtype)
        return rng.choice(np.array([info.min, info.min + 1, 0, 1, info.max], dtype), (3, 40, 2))
    special = [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5]
    return rng.choice(np.array(special), (3, 40, 2)).astype(dtype)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("name", CHOSEN)
def test_positions_are_those_of_sorting(name: str, largest: bool) -> None:
    for seed, (k, axis) in enumerate([(1, 1), (5, 1), (FEW, 1), (3, 0), (2, 2), (FEW + 1, 1)]):
        x = nnc.asarray(rows(name, seed), device="cpu:0")
        order = nnc.argsort(x, axis=axis, descending=largest).numpy()
        found = nnc.jit(lambda x, k=k, axis=axis: nnc.top_k(x, k, axis=axis, largest=largest)[1])(x)
        np.testing.assert_array_equal(found.numpy(), order.take(range(k), axis))


def test_only_rows_without_anything_else_are_left() -> None:
    """All elements are the smallest number: none may be chosen twice."""
    for x in (np.full(6, -np.inf, np.float32), np.full(6, np.nan), np.full(6, np.iinfo(np.int32).min, np.int32)):
        for largest in (True, False):
            found = nnc.jit(lambda x, largest=largest: nnc.top_k(x, 6, largest=largest)[1])(nnc.asarray(x))
            assert found.tolist() == [0, 1, 2, 3, 4, 5]


def test_loops_choose_without_python() -> None:
    x = nnc.asarray(np.random.default_rng(0).standard_normal(64).astype(np.float32), device="cpu:0")
    chosen = nnc.jit(lambda x: nnc.top_k(x, 4))
    assert "[numpy" not in chosen.explain(x).replace("refused by numpy", "")
    values, places = chosen(x)
    np.testing.assert_array_equal(values.numpy(), np.sort(x.numpy())[::-1][:4])
    np.testing.assert_array_equal(x.numpy()[places.numpy()], values.numpy())


@pytest.mark.parametrize("side", ["left", "right"])
def test_many_values_are_looked_up_by_machine_code(side: str) -> None:
    """Eagerly too, with NaN last as NumPy has it."""
    rng = np.random.default_rng(1)
    x = np.sort(np.r_[rng.standard_normal(500), [np.nan, np.inf, -np.inf, 0.0, -0.0]].astype(np.float32))
    values = np.r_[rng.standard_normal(20_000), [np.nan, np.inf, -np.inf, 0.0, -0.0]].astype(np.float32)
    wanted = np.searchsorted(x, values, side)  # type: ignore[call-overload]
    for f in (nnc.searchsorted, nnc.jit(nnc.searchsorted, static_argnames="side")):
        np.testing.assert_array_equal(f(nnc.asarray(x), nnc.asarray(values), side=side).numpy(), wanted)


EAGERLY = [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int64, np.uint64, np.bool_]


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", EAGERLY)
@pytest.mark.parametrize("shape", [(300,), (40, 90), (3, 2, 70), (0, 80), (1, 64)])
def test_eager_positions_are_those_of_the_reference(shape: tuple[int, ...], dtype: Any, largest: bool) -> None:
    rng = np.random.default_rng(3)
    few, wide = (rng.integers(0, high, shape) for high in (4, 100))
    mixed = few.astype(np.float64)
    mixed[..., ::7], mixed[..., 3::11] = -0.0, -np.inf if largest else np.inf
    with_nan = np.where(wide == 5, np.nan, mixed)
    endless = np.full(shape, -np.inf if largest else np.inf)
    many_nan = np.where(few == 1, np.nan, mixed)
    for x in (few, wide, mixed, with_nan, many_nan, endless):
        if np.issubdtype(dtype, np.inexact) or x is few or x is wide:
            host = x.astype(dtype)
            for k in (1, 3, 10, 16, FEW + 4):
                wanted = ordering.argsort(host, len(shape) - 1, largest)[..., :k]
                found = nnc.top_k(nnc.asarray(host), k, largest=largest).indices.numpy()
                np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_eager_positions_of_the_extremes_of_integers(dtype: Any) -> None:
    info = np.iinfo(dtype)
    host = np.array([[info.min, info.max] * 40, [info.min] * 80, [info.max] * 80], dtype)
    for largest in (True, False):
        wanted = ordering.argsort(host, 1, largest)[:, :6]
        np.testing.assert_array_equal(nnc.top_k(nnc.asarray(host), 6, largest=largest).indices.numpy(), wanted)
