"""Calls of C functions as these tests see them: the kinds of all arguments, held to declarations as NVIDIA's headers
have them."""

from __future__ import annotations

import ctypes
from ctypes import c_byte, c_double, c_float, c_int, c_longlong, c_size_t, c_void_p
from typing import Any

import numpy as np

KINDS: dict[str, tuple[type, ...]] = {
    "handle": (c_void_p,), "address": (c_void_p,), "stream": (c_void_p,), "int": (c_int,), "char": (c_byte,),
    "plan": (c_int,), "long": (c_longlong,), "settings": (c_void_p,), "size": (c_size_t,), "buffer": (ctypes.Array,)}
BEHIND: dict[str, tuple[type, ...]] = {
    "int*": (c_int,), "plan*": (c_int,), "handle*": (c_void_p,), "long*": (c_longlong,), "size*": (c_size_t,),
    "settings*": (c_void_p,),
    "number*": (c_float, c_double, c_float * 2, c_double * 2)}
"""What is behind references."""


def checked(name: str, declared: str, arguments: tuple[Any, ...]) -> list[Any]:
    """The values of arguments, those that are references as the objects behind them; AssertionError where kinds are
    others than declared, which ctypes would pass on all the same."""
    kinds = declared.split()
    assert len(kinds) == len(arguments), f"{name} takes {declared}"
    return [_value(f"{name}: {kind}", kind, argument) for kind, argument in zip(kinds, arguments, strict=True)]


def _value(what: str, kind: str, argument: Any) -> Any:
    if kind in BEHIND:
        assert isinstance(argument._obj, BEHIND[kind]), what
        return argument._obj
    assert isinstance(argument, KINDS[kind]), f"{what} is given {argument!r}"
    if kind == "buffer":
        return argument
    return argument.value or 0 if kind in ("address", "handle", "stream", "settings") else argument.value


def memory(address: int, count: int, dtype: Any) -> Any:
    """An array of the host's memory."""
    size = int(count) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype) if size else np.empty(0, dtype)
