"""Arrays and numbers of the host as values of a device."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, complex_of
from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.device import HostArray
from nnc_core.stacks import Stack
from nnc_core.symbol import Number
from nnc_core.type import admit_numpy, default_float
from nnc_core.values.modes import current_stack
from nnc_core.values.value import Value


@lru_cache(maxsize=1024)
def float_number(value: float, dtype: DType) -> Number:
    """Not for zeros: 0.0 and -0.0 are one key."""
    return Number(value, dtype)


_scalars: dict[tuple[Stack, Number], Any] = {}


def scalar_array(stack: Stack, number: Number) -> Any:
    """Scalars on the device, so that `x * 2` uploads the 2 once."""
    key = (stack, number)
    array = _scalars.get(key)
    if array is None:
        if len(_scalars) >= 1024:
            _scalars.clear()
        array = _scalars[key] = stack.engine.executor.upload(np.asarray(number.value).reshape(()))
    return array


def _host_array(x: Any, dtype: DType | None) -> Any:
    try:
        return np.asarray(x, dtype)
    except TypeError as error:
        raise OperandError(f"{type(x).__name__} is no array of numbers: {error}") from None
    except (ValueError, OverflowError) as error:
        wanted = "numbers" if dtype is None else dtype
        raise AttributeValueError(f"{type(x).__name__} is no array of {wanted}: {error}") from None


def host_value(x: Any, dtype: Any = None, stack: Stack | None = None) -> Value:
    """A host array (or nested lists of numbers) as a value of a device: a copy."""
    stack = stack or current_stack()
    host = _host_array(x, None if dtype is None else admit_numpy(dtype))
    if dtype is None and not isinstance(x, (np.ndarray, np.generic)):
        if host.dtype == np.float64:
            host = host.astype(default_float())
        elif host.dtype == np.complex128:
            host = host.astype(complex_of(default_float()))
    admitted = stack.type.admit(admit_numpy(host.dtype))
    return Value(stack.engine.executor.upload(host.astype(admitted, copy=False)), stack)


def ordered(array: HostArray, order: str) -> HostArray:
    """A host array in C or Fortran order."""
    if order not in ("C", "F"):
        raise AttributeValueError(f"order={order!r} of a host array", operator="numpy", hint='"C" or "F"')
    return np.asarray(array, order=order)  # type: ignore[call-overload, no-any-return]


def kept_value(host: HostArray, stack: Stack) -> Value:
    """A host array that nobody changes any more: in its own memory where the device can compute there, else a copy."""
    admitted = stack.type.admit(admit_numpy(host.dtype))
    array = stack.device.adopt(host) if admitted == host.dtype else None
    return host_value(host, stack=stack) if array is None else Value(array, stack)
