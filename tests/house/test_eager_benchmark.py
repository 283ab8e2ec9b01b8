"""The eager benchmark goes through all public functions that NumPy has as well, and each of its rows runs."""

from __future__ import annotations

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


def test_every_row_runs() -> None:
    for case in of_size(8):
        case.ours()
        case.numpy()
