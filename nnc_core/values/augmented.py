"""`array += tensor`: NumPy hands the operator over, as it does `array + tensor`, though the array is to be written."""

from __future__ import annotations

import dis
import operator
import sys
from functools import lru_cache
from types import CodeType, FrameType
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
    return _is_augmented(frame.f_code, frame.f_lasti) or _calls_augmented(frame)


@lru_cache(maxsize=1024)
def _is_augmented(code: CodeType, offset: int) -> bool:
    found = next((i for i in dis.get_instructions(code) if i.offset == offset), None)
    return found is not None and found.opname == "BINARY_OP" and found.argrepr.endswith("=")


_IN_PLACE = {name: getattr(operator, name) for name in (
    "iadd", "iand", "ifloordiv", "ilshift", "imatmul", "imod", "imul", "ior", "ipow", "irshift", "isub", "itruediv",
    "ixor")}


def _calls_augmented(frame: FrameType) -> bool:
    """Tell whether the code calls `operator.iadd` or one like it, by that name or a variable."""
    name, is_attribute = _called(frame.f_code, frame.f_lasti)
    if is_attribute:
        return name in _IN_PLACE
    held = frame.f_locals.get(name, frame.f_globals.get(name))
    return any(held is f for f in _IN_PLACE.values())


@lru_cache(maxsize=1024)
def _called(code: CodeType, offset: int) -> tuple[str, bool]:
    """The name of the function that a call loads, and whether it is an attribute; "" where nobody can tell.

    What the instructions before the call leave on the stack are its arguments, and before them the function.
    """
    before = [i for i in dis.get_instructions(code) if i.offset <= offset]
    if not before or before[-1].opname not in ("CALL", "PRECALL"):
        return "", False
    left = before.pop().arg or 0
    if before and before[-1].opname == "PRECALL":
        before.pop()
    while before and left > 0 and not before[-1].is_jump_target:
        i = before.pop()
        left -= dis.stack_effect(i.opcode, i.arg, jump=False)
    if before and before[-1].opname == "PUSH_NULL":
        before.pop()
    if left or not before or "LOAD_" not in before[-1].opname:
        return "", False
    name = before[-1].argval
    if isinstance(name, tuple):  # one instruction that stores or loads one variable, then loads another
        name = name[-1]
    return str(name), before[-1].opname in ("LOAD_ATTR", "LOAD_METHOD")


def write(array: np.ndarray[Any, Any], operator: str, tensor: Any) -> Any:
    """The array itself, changed by NumPy with what the tensor holds."""
    return getattr(np, operator)(array, np.asarray(tensor), out=array)
