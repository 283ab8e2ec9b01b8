"""Sorting keeps equal elements that can be told apart in order, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc


def special(dtype: Any, size: int, zeros: bool) -> Any:
    """A few numbers, zeros of either sign among them, or else NaN of many forms."""
    rng = np.random.default_rng(2)
    x = rng.choice(np.array([-1.0, -0.0 if zeros else 1.0, 0.0, 2.0], dtype), size)
    if zeros:
        return x
    places = rng.choice(size, size // 4, replace=False)
    forms = np.array(np.nan, dtype).view(f"u{x.itemsize}") + rng.integers(1, 200, len(places)).astype(f"u{x.itemsize}")
    x[places] = forms.view(dtype)
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [40, 3000])
@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("zeros", [False, True])
def test_every_form_of_nan_and_zero_keeps_its_bits_and_its_order(
        dtype: Any, size: int, step: int, zeros: bool) -> None:
    x = special(dtype, size * step, zeros)[::step]
    wanted = {False: np.sort(x, kind="stable"), True: np.flip(np.sort(np.flip(x), kind="stable"))}
    given = nnc.asarray(special(dtype, size * step, zeros), device="cpu:0")[::step]
    for descending, expected in wanted.items():
        for sort in (nnc.sort, nnc.jit(nnc.sort, static_argnames="descending")):
            assert sort(given, descending=descending).numpy().tobytes() == expected.tobytes()
