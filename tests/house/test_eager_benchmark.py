"""The eager benchmark goes through all public functions that NumPy has as well, and each of its rows runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks.eager import of_size
from nnc_core.functions import public

NOT_MEASURED = {"__array_namespace_info__": "a description", "resize": "of images here; NumPy's is resize_flat"}
"""Functions that have no row under their own name."""


def test_every_function_of_numpys_has_a_row() -> None:
    rows = {case.name.split()[0] for case in of_size(8)}
    named = {name for name in vars(public) if callable(getattr(np, name, None)) and hasattr(nnc, name)
             and not isinstance(getattr(nnc, name), type)}
    assert sorted(named - rows - NOT_MEASURED.keys()) == []


IN_PLACE = frozenset(("fill_diagonal", "place", "put_along_axis"))
"""Functions that give a new array here, and None in NumPy."""
OTHERWISE = frozenset(("polydiv", "linalg.lstsq", "top_k"))
"""Rows whose results are of other shapes: leading zeros and residuals, which depend on the numbers, are kept here, and
NumPy partitions for want of `top_k`."""


def shapes(result: Any) -> list[Any]:
    """Those of all arrays in a result; a text for what is none."""
    if isinstance(result, (tuple, list)):
        return [shape for part in result for shape in shapes(part)]
    return [np.shape(result) if isinstance(result, (nnc.Tensor, np.ndarray, np.generic, float, int)) else "none"]


def test_both_sides_of_every_row_give_results_of_the_same_shapes() -> None:
    different = set()
    for case in of_size(8):
        name, ours, numpy = case.name.split()[0], shapes(case.ours()), shapes(case.numpy())
        if name in IN_PLACE:
            assert numpy == ["none"] and ours != ["none"], case.name
        elif ours != numpy:
            different.add(name)
    assert different == OTHERWISE
