"""Products of a matrix that stays the same and a vector, by the transposed matrix: when, and with which bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

ROUNDS = 5


def given(rows: int, columns: int, dtype: str) -> dict[str, Any]:
    """A matrix and a vector; the first ones have an infinity and no number."""
    rng = np.random.default_rng(rows)
    w, c = rng.standard_normal((rows, columns)) / columns, rng.standard_normal(columns)
    if dtype == "int32":
        w, c = w * 100 * columns, c * 100
    else:
        w[1, 2], w[3, 4], c[5] = np.inf, np.nan, -0.0
    return {"w": nnc.asarray(w.astype(dtype)), "c": nnc.asarray(c.astype(dtype))}


def of_round(w: Any, c: Any) -> Any:
    y = w @ c
    return y % 5 if y.dtype == nnc.int32 else nnc.minimum(nnc.tanh(y), 0.5)


def in_loop(arrays: dict[str, Any], changes: bool = False) -> Any:
    """Rounds that multiply by a matrix, compiled; it may change in each."""
    symbols = {name: nnc.var_arr(name, x.shape, dtype=x.dtype) for name, x in arrays.items()}

    def step(carry: Any, i: Any) -> Any:
        w, c = carry
        return (w + 1 if changes else w, of_round(w if changes else symbols["w"], c)), i

    (_, y), _ = nnc.scan(step, (symbols["w"], symbols["c"]), nnc.arange(ROUNDS))
    return nnc.export(symbols, {"y": y}, capture="constant").compile()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
@pytest.mark.parametrize("size", [15, 16, 37, 64, 128, 200])
def test_loops_give_the_bits_of_their_rounds(size: int, dtype: str) -> None:
    arrays = given(size, size, dtype)
    with nnc.config.using(deterministic=True):
        found = np.asarray(in_loop(arrays)(**arrays)["y"])
        c = arrays["c"]
        for _ in range(ROUNDS):
            c = of_round(arrays["w"], c)
    np.testing.assert_array_equal(found, np.asarray(c))


def test_the_matrix_is_transposed_once_where_it_stays() -> None:
    arrays = given(64, 64, "float32")
    assert " pack(" in in_loop(arrays).explain()
    assert " pack(" not in in_loop(arrays, changes=True).explain()
    few = given(15, 64, "float32")
    assert " pack(" not in nnc.export({"c": (c := nnc.var_arr("c", (64,)))}, {"y": few["w"] @ c},
                                    capture="constant").compile().explain()


def test_an_order_of_additions_is_kept_where_bits_are_promised() -> None:
    """A library adds products of large matrices and vectors, eagerly as well."""
    arrays = given(200, 200, "float32")
    with nnc.config.using(deterministic=True):
        assert " pack(" not in in_loop(arrays).explain()
    assert " pack(" in in_loop(arrays).explain()


def test_constants_are_transposed_when_a_graph_is_compiled() -> None:
    arrays = given(48, 40, "float32")
    c = nnc.var_arr("c", (40,))
    with nnc.config.using(deterministic=True):
        run = nnc.export({"c": c}, {"y": arrays["w"] @ c}, capture="constant").compile()
        assert "float32[1, 40], float32[40, 48]" in run.explain()
        np.testing.assert_array_equal(np.asarray(run(c=arrays["c"])["y"]), np.asarray(arrays["w"] @ arrays["c"]))
