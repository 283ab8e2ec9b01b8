"""`array += tensor`: NumPy hands the operator over, as it does `array + tensor`, though the array is to be written."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from types import CodeType
from typing import Any, TypeGuard

import numpy as np

OPERATORS_OF_TENSORS = {__name__, "nnc_core.values.tensor", "nnc_core.values.reading", "nnc_core.tensor_methods"}
"""Modules through which an operator passes on its way from the code that has it."""


def is_target(x: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Tell whether x is a host array that an augmented assignment is about to change.

    Python asks the tensor for `array + tensor` in both cases; only the instruction that runs tells them apart.
    """
    if not isinstance(x, np.ndarray):
        return False
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__") in OPERATORS_OF_TENSORS:
        frame = frame.f_back
    return _is_augmented(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=1024)
def _is_augmented(code: CodeType, offset: int) -> bool:
    found = next((i for i in dis.get_instructions(code) if i.offset == offset), None)
    return found is not None and found.opname == "BINARY_OP" and found.argrepr.endswith("=")


def write(array: np.ndarray[Any, Any], operator: str, tensor: Any) -> Any:
    """The array itself, changed by NumPy with what the tensor holds."""
    return getattr(np, operator)(array, np.asarray(tensor), out=array)
