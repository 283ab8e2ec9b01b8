"""Constants inside nodes: numbers by their bytes, arrays by identity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import copysign
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, integer_limits, is_integer, is_stored_integer
from nnc_core.base.errors import AttributeValueError, GraphError

_LEAST, _MOST = 1e-4, 6e4
"""Sizes of numbers that every dtype takes without a warning."""


class Number:
    """A scalar with its dtype; equal only if the bits are: 0.0 and -0.0 differ, and so do 1 and True."""

    __slots__ = ("_hash", "bits", "dtype")

    def __init__(self, value: Any, dtype: DType) -> None:
        self.dtype, self.bits = dtype, _bits(value, dtype)
        self._hash = hash((self.bits, dtype))

    @property
    def value(self) -> Any:
        """The number as a NumPy scalar."""
        return np.frombuffer(self.bits, self.dtype)[0]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Number) and self.bits == other.bits and self.dtype == other.dtype

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Number, (self.value, self.dtype)

    def __repr__(self) -> str:
        return str(self.value)


def _bits(value: Any, dtype: DType) -> bytes:
    if (value.__class__ is int or value.__class__ is float) and (not value or _LEAST <= abs(value) <= _MOST):
        return np.asarray(value).astype(dtype).tobytes()
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype).tobytes()


class _NegativeZero(float):
    """-0.0 as an attribute: equal to itself alone, while to Python it is 0.0, and 0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other.__class__ is _NegativeZero

    def __ne__(self, other: object) -> bool:
        return other.__class__ is not _NegativeZero

    def __hash__(self) -> int:
        return hash(_NegativeZero)


_NEGATIVE_ZERO = _NegativeZero(-0.0)


def is_negative_zero(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and value == 0 and copysign(1.0, value) < 0


def float_attribute(value: Any) -> Any:
    """A float such that equal attributes are the same to the bit; anything else as it is."""
    return _NEGATIVE_ZERO if value.__class__ is float and is_negative_zero(value) else value


def number_of(value: Any, dtype: DType) -> Number:
    """A Python number as a scalar of that dtype, made once where it is asked for often."""
    return _known_number(value, dtype) if _is_key(value) else Number(value, dtype)


def checked_number(value: Any, dtype: DType) -> Number:
    """The same; an integer that does not fit is an error, not another number."""
    return _known_checked(value, dtype) if _is_key(value) else _checked(value, dtype)


def _is_key(value: Any) -> bool:
    """0.0 and -0.0 are one key."""
    return value.__class__ is int or (value.__class__ is float and bool(value))


def _checked(value: Any, dtype: DType) -> Number:
    whole = is_integer(dtype) or is_stored_integer(dtype)
    if whole and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        least, most = integer_limits(dtype)
        if not least <= value <= most:
            raise AttributeValueError(f"{value} does not fit into {dtype} ({least} to {most})",
                                      hint="cast the array with astype first")
    return Number(value, dtype)


_known_number = lru_cache(maxsize=1024, typed=True)(Number)
_known_checked = lru_cache(maxsize=1024, typed=True)(_checked)


class Literal:
    """A constant array with the id of the device that it is on ("" for the host); compared by identity.

    One that is made of others is computed each time that it is read, so that nobody holds it besides what it becomes.
    """

    __slots__ = ("_array", "_make", "device", "sources", "spare")

    def __init__(self, array: Any, device: str = "") -> None:
        self._array, self.device = array, device
        self._make: Callable[[], Any] | None = None
        self.sources: Sequence[Literal] = ()
        """Constants that it is made of, which nothing else reads."""
        self.spare = False
        """True if its memory may be had as soon as what it becomes is there."""

    @classmethod
    def made(cls, make: Callable[[], Any], sources: Sequence[Literal] = ()) -> Literal:
        """An array of the host that a function computes."""
        literal = cls(None)
        literal._make, literal.sources = make, sources
        literal.spare = any([source.spare for source in sources])
        return literal

    def give_up(self, make: Callable[[], Any] | None = None) -> None:
        """Hold no array any more; `make` computes it if it is read all the same, which is an error otherwise."""
        for source in self.sources:
            source.give_up()
        self._array, self._make, self.device, self.sources, self.spare = None, make or _given_up, "", (), False

    @property
    def array(self) -> Any:
        """The elements."""
        return self._array if self._make is None else self._make()

    def __repr__(self) -> str:
        return f"literal of {self.device or 'the host'}"


def _given_up() -> Any:
    raise GraphError("the constants of this graph were given up to what it was compiled to",
                     hint="compile it without consume=True, or export it again")
