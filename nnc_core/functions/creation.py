"""Making tensors: the Array API's creation functions, with `device=` everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import ceil, copysign, isfinite
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, int64, is_complex, is_integer, real_of
from nnc_core.base.errors import AttributeValueError, Error, OperandError, SymbolicDimensionError, UnknownShapeError
from nnc_core.functions.interop import imported, shared, taken_over
from nnc_core.functions.pieces import on_diagonal
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack
from nnc_core.symbol import checked_number, is_negative_zero, number_of
from nnc_core.type import Attributes, Dim, DimLike, admit_numpy, default_float, default_for
from nnc_core.values.arguments import ArrayLike, name_error, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import _stack as current
from nnc_core.values.modes import current_stack, stack_named
from nnc_core.values.operands import copied, holds_tensors, listed_value, value_of
from nnc_core.values.postponed import postponed
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "full", "full_like", "identity", "ones", "ones_like",
    "zeros", "zeros_like",
]  # fmt: skip


def asarray(x: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor from a host array, nested lists, a number or a tensor.

    Without dtype, array objects (NumPy's and others', buffers, NumPy's numbers in lists) keep theirs; Python floats
    get `config.default_float`.  Host data is copied, so that
    nobody else can change it.  With copy=False the tensor shares the array's memory instead, where the device computes
    in the host's memory, and otherwise it is a ValueError.  It then shows what is in the array at each eager read and
    at each call of compiled code; what is recorded or computed from it keeps what was there at that moment.  Nothing
    is ever written to the array through the tensor.
    """
    try:
        if x.__class__ is np.ndarray and copy is not False:
            return Tensor(host_value(x, dtype, stack_given(device)))
        if isinstance(x, Tensor):
            return _converted(x, dtype, device, copy)
        if hasattr(type(x), "__nnc_tensor__"):
            return _converted(x.__nnc_tensor__(), dtype, device, copy)
        if x.__class__ is not np.ndarray and (hasattr(x, "__dlpack__") or hasattr(x, "__cuda_array_interface__")):
            there = taken_over(x, stack_given(device), copy is not False)
            if there is not None:
                return _converted(there, dtype, None, copy if copy is False else None)
        if hasattr(x, "__dlpack__") and not hasattr(x, "__array__"):
            x = imported(x)
        if copy is False:
            return shared(x, dtype, stack_given(device))
        if hasattr(x, "__array__") or not isinstance(x, (list, tuple)):
            return Tensor(host_value(x, dtype, stack_given(device)))
        if holds_tensors(x):
            return _converted(Tensor(listed_value(x, None)), dtype, device, None)
        return Tensor(host_value(x, dtype, stack_given(device)))
    except UnknownShapeError as error:
        return postponed(error, asarray, (x,), {"dtype": dtype, "device": device, "copy": copy})  # type: ignore[no-any-return]
    except Error as error:  # not `located`, which a tensor that stays as it is would pay for
        name_error(error, "asarray")
        raise


def _converted(x: Tensor, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    out = Tensor(value_of(x)) if device is None else x.to(stack_given(device))
    wanted = out.dtype if dtype is None else admit_numpy(dtype)
    if copy is False and (wanted != x.dtype or out.device is not x.device):
        raise AttributeValueError(f"{x.spec} on {x.device.id} is no {wanted} on {out.device.id} without a copy",
                                  operator="asarray", hint="copy=None")
    if wanted != out.dtype:
        return Tensor(F.cast(value_of(out), dtype=wanted))
    return Tensor(copied(value_of(out))) if copy else out


def stack_given(device: Any) -> Stack:
    """The stack of a device that an argument names, or the current one."""
    return current_stack() if device is None else stack_named(device)


class created_on:  # noqa: N801
    """Create everything in this block on that device, or on the current one."""

    __slots__ = ("_stack", "_token")

    def __init__(self, device: Any) -> None:
        self._stack = stack_given(device)

    def __enter__(self) -> Stack:
        self._token = current.set(self._stack)
        return self._stack

    def __exit__(self, *error: object) -> None:
        current.reset(self._token)


def shape_given(shape: DimLike | Sequence[DimLike]) -> tuple[DimLike, ...]:
    """Dimensions as they were given; errors for what is none."""
    if shape.__class__ is int and shape >= 0:
        return (shape,)
    if shape.__class__ is tuple and {*map(type, shape)} == {int} and min(shape) >= 0:
        return shape
    dims = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    for d in dims:
        if isinstance(d, (int, np.integer)) and d < 0:
            raise AttributeValueError(f"shape {dims} has a negative dimension")
        if not isinstance(d, (int, np.integer, Dim)):
            raise OperandError(f"shape {dims}: {type(d).__name__} is no dimension", hint="an integer, or nnc.Dim(name)")
    return tuple(int(d) if isinstance(d, np.integer) else d for d in dims)


@names_itself
def full(shape: DimLike | Sequence[DimLike], fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """One number everywhere, or an array broadcast to the shape; the number's or array's dtype unless one is given.

    Raises ShapeError for an array that does not broadcast to the shape.
    """
    dims = shape_given(shape)
    if isinstance(fill_value, (Tensor, np.ndarray, list, tuple)):
        given = asarray(fill_value, dtype=dtype, device=device)
        return Tensor(F.broadcast_to(value_of(given), shape=dims))
    if not isinstance(fill_value, (int, float, complex, np.generic)):
        raise OperandError(f"fill_value: {type(fill_value).__name__} is no array and no number")
    return _filled(dims, fill_value, default_for(fill_value) if dtype is None else admit_numpy(dtype), device)


def _filled(dims: tuple[DimLike, ...], number: Any, dtype: DType, device: Any) -> Tensor:
    if device is None:
        return Tensor(F.filled(shape=dims, number=checked_number(number, current_stack().type.admit(dtype))))
    with created_on(device) as stack:
        return Tensor(F.filled(shape=dims, number=checked_number(number, stack.type.admit(dtype))))


def _float_given(dtype: Any) -> DType:
    return default_float() if dtype is None else admit_numpy(dtype)


@by_shapes
@names_itself
def zeros(shape: DimLike | Sequence[DimLike], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros of a shape, in `config.default_float` and on the device in use unless others are given."""
    return _filled(shape_given(shape), 0, _float_given(dtype), device)


@by_shapes
@names_itself
def ones(shape: DimLike | Sequence[DimLike], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones of a shape, in `config.default_float` and on the device in use unless others are given."""
    return _filled(shape_given(shape), 1, _float_given(dtype), device)


@by_shapes
@names_itself
def empty(shape: DimLike | Sequence[DimLike], *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros: tensors never show what was in memory before."""
    return _filled(shape_given(shape), 0, _float_given(dtype), device)


@names_itself
def full_like(x: ArrayLike, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`full` with the shape of an array, and where nothing else is said its dtype and device."""
    return _filled_like(x, fill_value, dtype, device)


def _filled_like(x: ArrayLike, fill_value: Any, dtype: Any, device: Any) -> Tensor:
    like = x if isinstance(x, Tensor) else asarray(x)
    return full(like.shape, fill_value, dtype=like.dtype if dtype is None else dtype,
                device=like._value.stack if device is None else device)


@by_shapes
@names_itself
def zeros_like(x: ArrayLike, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros with the shape of x, and its dtype and device unless others are given."""
    return _filled_like(x, 0, dtype, device)


@by_shapes
@names_itself
def ones_like(x: ArrayLike, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones with the shape of x, and its dtype and device unless others are given."""
    return _filled_like(x, 1, dtype, device)


@by_shapes
@names_itself
def empty_like(x: ArrayLike, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Zeros with the shape of x, and its dtype and device unless others are given."""
    return _filled_like(x, 0, dtype, device)


# ---- numbers in a row
@names_itself
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """start, start + step, ... below stop; arange(n) counts from 0."""
    if device is None and dtype is None and {start.__class__, step.__class__} <= _PLAIN and (
            stop is None or stop.__class__ in _PLAIN):
        if start.__class__ is step.__class__ is int and stop.__class__ is not float:
            attributes = _whole_numbers(start, stop, step)
        else:
            attributes = _some_floats(start, stop, step, copysign(1.0, start), default_float())
        if (_PROGRESSION, attributes) in current_stack().accepted:  # all that may be wrong has been asked by now
            return Tensor(F.apply(_PROGRESSION, (), attributes))
    first, last = (0, start) if stop is None else (start, stop)
    _check_numbers(start=first, stop=last, step=step)
    if step == 0:
        raise AttributeValueError("arange with step 0 never ends", operator="arange")
    first = int(first) if isinstance(first, Dim) else first
    total = first + step + (0 if isinstance(last, Dim) else last)
    wanted = default_for(total) if dtype is None else admit_numpy(dtype)
    if device is None:
        return _row(first, step, _count(first, last, step), wanted, current_stack())
    with created_on(device) as stack:
        return _row(first, step, _count(first, last, step), wanted, stack)


_PROGRESSION = OPERATORS["progression"]
_PLAIN = {int, float}


@lru_cache(maxsize=256)
def _whole_numbers(start: int, stop: int | None, step: int) -> Attributes:
    """The attributes of `progression` for whole numbers; none for those that may not fit."""
    first, last = (0, start) if stop is None else (start, stop)
    if max(abs(first), abs(last), abs(step)) >= FAR // 2:
        return ()
    size = len(range(first, last, step)) if step else 0
    return number_of(first, int64), number_of(step, int64), size, int64


@lru_cache(maxsize=256)
def _some_floats(start: float, stop: float | None, step: float, sign: float, dtype: DType) -> Attributes:
    """The same of numbers with a float among them; `sign` is that of the start, which tells zeros apart."""
    first, last = (0, start) if stop is None else (start, stop)
    if not step or not all(map(isfinite, (first, last, step))) or is_negative_zero(first):
        return ()
    wide = accumulator(dtype)
    return number_of(first, wide), number_of(step, wide), _count(first, last, step), dtype


def _row(first: Any, step: Any, size: Any, dtype: DType, stack: Stack) -> Tensor:
    _check_ends(first, step, size, stack.type.admit(dtype))
    if is_negative_zero(first) and not is_integer(dtype):  # added to multiples of the step it would lose its sign
        row = F.negative(F.arange(size=size, dtype=real_of(dtype), step=-step))
    else:
        row = F.arange(size=size, dtype=real_of(dtype), start=first, step=step)
    return Tensor(F.cast(row, dtype=dtype) if is_complex(dtype) else row)


def _check_numbers(**given: Any) -> None:
    for name, x in given.items():
        if x.__class__ is int:
            continue
        real = isinstance(x, (int, float, np.integer, np.floating, Dim))
        if not real or (isinstance(x, (float, np.floating)) and not isfinite(x)):
            raise OperandError(f"{name} is {x!r}, expected a finite real number",
                               hint="start + nnc.arange(length), or nnc.linspace between tensors"
                               if isinstance(x, Tensor) else None)


def _count(first: Any, last: Any, step: Any) -> Any:
    """Number of elements; of a named dimension in whole numbers as a dimension."""
    if isinstance(last, Dim) and isinstance(first, int) and isinstance(step, int):
        count = (last - first + step - 1) // step if step > 0 else (first - last - step - 1) // -step
        try:
            return 0 if count < 0 else count
        except SymbolicDimensionError:  # no call has given it a number yet
            return count
    return max(ceil((last - first) / step), 0)


def _check_ends(first: Any, step: Any, size: Any, dtype: Any) -> None:
    """AttributeValueError for integers that the dtype cannot hold."""
    if is_integer(dtype) and isinstance(size, int) and size > 0:
        for end in (first, first + (size - 1) * step):
            checked_number(end, dtype)


# ---- matrices
FAR = 1 << 62
"""No matrix has a diagonal beyond."""


@by_shapes
@names_itself
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """A matrix (n_rows, n_cols), square without n_cols: ones on its k-th diagonal, above the main one for k > 0."""
    rows, columns = shape_given((n_rows, n_rows if n_cols is None else n_cols))
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    with created_on(device) as stack:
        near = max(-FAR, min(k, FAR))
        dtype = stack.type.admit(wanted)
        if isinstance(rows, int) and isinstance(columns, int):
            return Tensor(_eye(rows, columns, near, dtype))
        places: Value = F.arange(size=rows, dtype=np.dtype(np.int64), start=near)
        if not near and rows == columns:
            return Tensor(F.one_hot(places, depth=columns, dtype=dtype))
        along: Value = F.arange(size=columns, dtype=np.dtype(np.int64))
        return Tensor(F.cast(F.equal(F.reshape(places, shape=(rows, 1)), along), dtype=dtype))


def _eye(rows: int, columns: int, k: int, dtype: DType) -> Value:
    count = min(rows, columns - k) if k >= 0 else min(rows + k, columns)
    if count < 1:
        return F.full(shape=(rows, columns), value=0, dtype=dtype)
    return on_diagonal(F.full(shape=(count,), value=1, dtype=dtype), rows, columns, k)


@by_shapes
@names_itself
def identity(n: int, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """The square matrix with ones on its diagonal."""
    return eye(n, dtype=dtype, device=device)
