"""Matrices as cuSOLVER and cuBLAS have them: column by column, one behind the other or by a table of addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nnc_core.base.dtype import complex64, complex128, float32, float64
from tests.cuda.host_calls import memory

DTYPES = {"S": float32, "D": float64, "C": complex64, "Z": complex128}
SOLVER, BLAS = 81, 82
"""Handles."""
INVALID = 3
"""CUSOLVER_STATUS_INVALID_VALUE."""


def columns(address: int, rows: int, count: int, distance: int, dtype: Any) -> Any:
    """A matrix that lies column by column."""
    flat = memory(address, (count - 1) * distance + rows, dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, count), (dtype.itemsize, distance * dtype.itemsize))


def following(address: int, times: int, rows: int, count: int, distance: int, dtype: Any) -> Iterator[Any]:
    """Matrices that lie one behind the other."""
    for number in range(times):
        yield columns(address + number * distance * count * dtype.itemsize, rows, count, distance, dtype)


def pointed(table: int, times: int, rows: int, count: int, distance: int, dtype: Any) -> Iterator[Any]:
    """Matrices whose addresses are in a table."""
    for address in memory(table, times, np.dtype(np.int64)):
        yield columns(int(address), rows, count, distance, dtype)
