"""Numbers that a user gives: NumPy's are as good as Python's."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, Error


def whole(x: Any, what: str, least: int | None = None, hint: str | None = None) -> int:
    """x as a Python integer: NumPy's are taken too, and tensors of one.  AttributeValueError for anything else, for
    booleans, and for less than `least`."""
    number = None if isinstance(x, (bool, np.bool_)) else _index(x)
    if number is None or (least is not None and number < least):
        raise AttributeValueError(f"{what} {x!r} is no integer" + ("" if least is None else f" from {least} on"),
                                  hint=hint)
    return number


def _index(x: Any) -> int | None:
    try:
        index = operator.index(x)
    except Error:
        raise  # a tensor's own: its value is not known, or is no integer
    except TypeError:
        return None
    return None if isinstance(index, bool) else index


def plain(x: Any) -> Any:
    """NumPy's numbers as Python's, in tuples and lists too; anything else as it is."""
    if isinstance(x, np.generic) and x.dtype.kind in "biufc":
        return x.item()
    if type(x) in (tuple, list) and any(isinstance(y, (np.generic, tuple, list)) for y in x):
        return type(x)(map(plain, x))
    return x
