"""Words sorted digit by digit, from the lowest one on, by machine code: each pass goes through all words twice."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from nnc_cpu.addresses import address_of
from nnc_cpu.llvm.resident import load_for_ever

BITS = 10
"""Bits of a digit: the words of so many digits go to as many places, which the caches still hold."""

_BY_DIGIT = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p)


@cache
def _by_digit() -> Any:
    names = ("nnc_by_digit",)
    digits = 1 << BITS
    return _BY_DIGIT(load_for_ever("nnc_cpu.sorting", "digits.ll", names, DIGITS=digits, MASK=digits - 1)[names[0]])


def sort_by_bits(words: np.ndarray[Any, Any], lowest: int, end: int) -> None:
    """Sort a packed vector of uint64 in place by its bits from `lowest` up to `end`, and those beyond that make the
    last digit whole; where these are equal, words keep their order."""
    if not len(words):
        return
    by_digit, places = _by_digit(), np.empty(1 << BITS, np.int64)
    here, there = words, np.empty_like(words)
    for shift in range(lowest, end, BITS):
        by_digit(address_of(here), address_of(there), len(words), shift, address_of(places))
        here, there = there, here
    if here is not words:
        words[:] = here
