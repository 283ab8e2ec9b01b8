"""Arrays and numbers of the host as values of a device."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, complex_of, integer_limits, is_stored_integer, real_of
from nnc_core.base.errors import AttributeValueError, OperandError
from nnc_core.device import HostArray
from nnc_core.stacks import Stack
from nnc_core.symbol import Number
from nnc_core.type import admit_numpy, default_float, promote, promote_number
from nnc_core.values.modes import current_stack, current_trace
from nnc_core.values.value import Handle, Value

SCALARS_KEPT = 1024


def scalar_array(stack: Stack, number: Number) -> Any:
    """Scalars on the device, so that `x * 2` uploads the 2 once."""
    array = stack.scalars.get(number)
    if array is None:
        if len(stack.scalars) >= SCALARS_KEPT:
            stack.scalars.clear()
        array = stack.scalars[number] = stack.engine.executor.upload(np.asarray(number.value).reshape(()))
    return array


def _host_array(x: Any, dtype: DType | None) -> Any:
    try:
        return np.asarray(x, dtype) if dtype is None or not is_stored_integer(dtype) else _few_bits(x, dtype)
    except TypeError as error:
        raise OperandError(f"{type(x).__name__} is no array of numbers: {error}") from None
    except (ValueError, OverflowError) as error:
        wanted = "numbers" if dtype is None else dtype
        raise AttributeValueError(f"{type(x).__name__} is no array of {wanted}: {error}") from None


def _few_bits(x: Any, dtype: DType) -> Any:
    """NumPy says which integers do not fit into a dtype of its own; those of a few bits wrap."""
    whole = np.asarray(x)
    if whole.dtype.kind in "iu" and whole.size:
        least, most = integer_limits(dtype)
        if whole.min() < least or whole.max() > most:
            raise OverflowError(f"integers from {whole.min()} to {whole.max()} do not fit {least} to {most}")
    return whole.astype(dtype)


# ---- dtypes that come with what is given
_NUMBERS = (bool, int, float, complex)
_PLAIN = frozenset(_NUMBERS)
_PROTOCOLS = ("__array__", "__array_interface__", "__array_struct__", "__dlpack__")


def dtype_given(x: Any) -> DType | None:
    """The dtype that tensors, array objects and NumPy scalars bring, in nested lists too; None for Python numbers.

    Python numbers beside them in a list are weak, as they are beside an operator.
    """
    if x.__class__ is np.ndarray:
        return admit_numpy(x.dtype)
    if x.__class__ is list and _PLAIN.issuperset(map(type, x)):
        return None
    dtypes: set[DType] = set()
    numbers: set[type] = set()
    _collect([x], dtypes, numbers)
    if not dtypes:
        return None
    return reduce(promote_number, [kind(0) for kind in numbers], reduce(promote, dtypes))


def _collect(xs: Sequence[Any], dtypes: set[DType], numbers: set[type]) -> None:
    kinds = set(map(type, xs))  # without a step of Python for each of a million numbers
    scalars = {kind for kind in kinds if issubclass(kind, np.generic)}
    dtypes.update(map(admit_numpy, scalars))
    plain = {kind for kind in kinds - scalars if issubclass(kind, _NUMBERS)}
    numbers.update(base for base in _NUMBERS if any(issubclass(kind, base) for kind in plain))
    others = kinds - scalars - plain
    for x in xs if others else ():
        if isinstance(x, (list, tuple)):
            _collect(x, dtypes, numbers)
        elif isinstance(x, Handle) or hasattr(type(x), "__nnc_tensor__"):
            dtypes.add((x if isinstance(x, Handle) else x.__nnc_tensor__())._value.dtype)
        elif type(x) in others and _is_array(x):
            dtypes.add(admit_numpy(_host_array(x, None).dtype))


def _is_array(x: Any) -> bool:
    """An object with a protocol of arrays, or a buffer."""
    if isinstance(x, (str, bytes)):
        return False
    if any([hasattr(x, name) for name in _PROTOCOLS]):
        return True
    try:
        memoryview(x).release()
    except (TypeError, BufferError):
        return False
    return True


def host_value(x: Any, dtype: Any = None, stack: Stack | None = None, beside: DType | None = None) -> Value:
    """A host array (or nested lists of numbers) as a value of a device: a copy.

    Array objects keep their dtype.  Python floats get that of the floats `beside` them, or the default one.
    """
    stack = stack or current_stack()
    given = admit_numpy(dtype) if dtype is not None else dtype_given(x)
    host = _host_array(x, given)
    if given is None:
        host = host.astype(_weak(host.dtype, beside), copy=False)
    admitted = stack.type.admit(admit_numpy(host.dtype))
    made = Value(stack.engine.executor.upload(host.astype(admitted, copy=False)), stack)
    trace = current_trace.get()
    if trace is not None:
        trace.inside[id(made)] = made
    return made


def _weak(dtype: Any, beside: DType | None) -> Any:
    """The dtype of Python numbers that NumPy takes as of this one."""
    if dtype.kind not in "fc":
        return dtype
    real = default_float() if beside is None else real_of(beside)
    return complex_of(real) if dtype.kind == "c" else real


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
