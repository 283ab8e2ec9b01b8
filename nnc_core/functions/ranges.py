"""Numbers from one to another: at equal distances, or each the same multiple of the one before.

Between Python numbers they are NumPy's, rounded once.  Between tensors, which may be arrays of one shape, operators
compute them, so that gradients follow; the rows come first then, as in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, complex_of, float64, is_complex, is_float, is_inexact, is_integer
from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.creation import asarray
from nnc_core.functions.reduction import as_dtype, as_precise, float_of
from nnc_core.type import admit_numpy, default_float, whole
from nnc_core.values.arguments import ArrayLike, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = ["geomspace", "linspace", "logspace"]


@by_shapes
@names_itself
def linspace(start: ArrayLike, stop: ArrayLike, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: bool = True) -> Tensor:
    """`num` numbers from start to stop at equal distances; integers are rounded down."""
    count = whole(num, "num", 0)
    if _plain(start, stop):
        return _row(np.linspace(start, stop, count, endpoint=endpoint), dtype, device)
    wanted = None if dtype is None else admit_numpy(dtype)
    if wanted is None or not is_integer(wanted):
        return asarray(Tensor(_between(start, stop, count, endpoint)), dtype=dtype, device=device)
    first, last = (as_dtype(v, _wide(v)) for v in as_values(start, stop))
    return asarray(Tensor(F.floor(_counted(first, last, count, endpoint))), dtype=wanted, device=device)


@by_shapes
@names_itself
def logspace(start: ArrayLike, stop: ArrayLike, /, num: int = 50, *, endpoint: bool = True, base: float = 10.0,
             dtype: Any = None, device: Any = None) -> Tensor:
    """Powers of the base with exponents at equal distances from start to stop."""
    count = whole(num, "num", 0)
    if _plain(start, stop, base):
        return _row(np.logspace(start, stop, count, endpoint=endpoint, base=base), dtype, device)
    exponents = Tensor(_between(start, stop, count, endpoint))
    return asarray(base**exponents, dtype=dtype, device=device)


@by_shapes
@names_itself
def geomspace(start: ArrayLike, stop: ArrayLike, /, num: int = 50, *, endpoint: bool = True, dtype: Any = None,
              device: Any = None) -> Tensor:
    """`num` numbers from start to stop, each the same multiple of the one before.  Tensors have one sign."""
    count = whole(num, "num", 0)
    if not _plain(start, stop):
        values = as_values(start, stop)
        first, last = map(as_precise, values)
        ratio = F.power(F.divide(last, first), _shares(first, last, count, endpoint))
        return asarray(Tensor(_rounded(F.multiply(first, ratio), values)), dtype=dtype, device=device)
    if start == 0 or stop == 0:
        raise AttributeValueError(f"no multiples of one number lead from {start} to {stop}",
                                  hint="give two numbers that are not 0")
    return _row(np.geomspace(start, stop, count, endpoint=endpoint), dtype, device)


def _plain(*ends: Any) -> bool:
    return all(isinstance(x, (int, float, complex, np.generic)) for x in ends)


# ---- between numbers
def _row(host: np.ndarray[Any, Any], dtype: Any, device: Any) -> Tensor:
    """Host numbers of 64 bits as the dtype asked for, or as the default one of their kind."""
    plain = complex_of(default_float()) if is_complex(host.dtype) else default_float()
    wanted = plain if dtype is None else admit_numpy(dtype)
    if is_integer(wanted) and is_float(host.dtype):
        host = np.floor(host)
    return asarray(host, dtype=wanted, device=device)


# ---- between tensors
def _between(start: ArrayLike, stop: ArrayLike, count: int, endpoint: bool) -> Value:
    """Exact at both ends; between integers computed in float64, and rounded once."""
    values = as_values(start, stop)
    first, last = map(as_precise, values)
    if not any(is_inexact(v.dtype) for v in values):
        return _rounded(_counted(first, last, count, endpoint), values)
    share = _shares(first, last, count, endpoint)
    return _rounded(F.add(F.multiply(first, F.subtract(1, share)), F.multiply(last, share)), values)


def _rounded(y: Value, ends: Sequence[Value]) -> Value:
    """In the dtype that the ends have in common, integers as the default float."""
    real = float_of(ends)
    return as_dtype(y, complex_of(real) if is_complex(y.dtype) else real)


def _counted(first: Value, last: Value, count: int, endpoint: bool) -> Value:
    """Steps counted from the first, so that whole steps between whole numbers are exact, as the last number is."""
    parts = max(count - 1 if endpoint else count, 1)
    row = _positions(first, last, count)
    between = F.add(first, F.divide(F.multiply(F.subtract(last, first), row), parts))
    return F.where(F.equal(row, parts), last, between)


def _wide(v: Value) -> DType:
    return v.dtype if is_complex(v.dtype) or float64 not in v.stack.type.dtypes else float64


def _shares(first: Value, last: Value, count: int, endpoint: bool) -> Value:
    """0 to 1, or to less than 1."""
    return F.divide(_positions(first, last, count), max(count - 1 if endpoint else count, 1))


def _positions(first: Value, last: Value, count: int) -> Value:
    """0, 1, ... along an axis before those of the ends."""
    with use_device(first.stack):
        row = F.arange(size=count, dtype=float_of((first, last)))
    return F.reshape(row, shape=(count, *[1] * max(first.ndim, last.ndim)))
