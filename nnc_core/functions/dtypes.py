"""Inspection of dtypes and of this namespace, as the Array API has it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import ml_dtypes
import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, OperandError
from nnc_core.device import DeviceSpec
from nnc_core.functions.creation import created_on
from nnc_core.stacks import devices
from nnc_core.type import admit_numpy, default_float, default_for, promote, promote_number
from nnc_core.values.arguments import names_itself
from nnc_core.values.modes import current_stack
from nnc_core.values.tensor import Tensor

__all__ = ["__array_namespace_info__", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

KINDS: dict[str, Callable[[DType], bool]] = {
    "bool": lambda d: d == dt.boolean, "signed integer": lambda d: d in dt.SIGNED,
    "unsigned integer": lambda d: d in dt.UNSIGNED, "integral": dt.is_integer, "real floating": dt.is_float,
    "complex floating": dt.is_complex, "numeric": lambda d: d != dt.boolean and not dt.is_storage(d),
}  # fmt: skip
STANDARD = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
            "complex64", "complex128")
"""The dtypes that the Array API names; the halves are ours."""


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating-point dtype; of a complex one those of its parts."""

    dtype: DType
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of an integer dtype."""

    dtype: DType
    bits: int
    max: int
    min: int


def _dtype_of(x: Any, operator: str) -> DType:
    """The dtype of an array, or of what names a dtype."""
    if isinstance(x, (Tensor, np.ndarray, np.generic)):
        return admit_numpy(x.dtype)
    if isinstance(x, (bool, int, float, complex)):
        raise OperandError(f"{x!r} is no dtype and no array", operator=operator)
    return admit_numpy(x)


@names_itself
def finfo(type: Any, /) -> FloatInfo:
    """Limits of a floating-point dtype, or of an array's."""
    dtype = dt.real_of(_dtype_of(type, "finfo"))
    if not dt.is_float(dtype) and dtype not in dt.STORED_FLOATS:
        raise DTypeError(f"{dtype} is no floating-point dtype", operator="finfo", hint="iinfo")
    limits: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    names = ("eps", "max", "min", "smallest_normal", "smallest_subnormal")
    return FloatInfo(dtype, dt.bits_of(dtype), *[float(getattr(limits, name)) for name in names])


@names_itself
def iinfo(type: Any, /) -> IntegerInfo:
    """Limits of an integer dtype, or of an array's."""
    dtype = _dtype_of(type, "iinfo")
    if not dt.is_integer(dtype) and not dt.is_stored_integer(dtype):
        raise DTypeError(f"{dtype} is no integer dtype", operator="iinfo", hint="finfo")
    least, most = dt.integer_limits(dtype)
    return IntegerInfo(dtype, dt.bits_of(dtype), most, least)


@names_itself
def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that an operator gives for these arrays, dtypes and Python numbers."""
    numbers = [x for x in arrays_and_dtypes if isinstance(x, (bool, int, float, complex)) and not _is_numpy(x)]
    given = [_dtype_of(x, "result_type") for x in arrays_and_dtypes if not any(x is n for n in numbers)]
    if not given and not numbers:
        raise OperandError("no arrays and no dtypes", operator="result_type")
    common = reduce(promote, given) if given else reduce(promote, map(default_for, numbers))
    return reduce(promote_number, numbers, common)


def _is_numpy(x: Any) -> bool:
    """np.float64 is a float as well."""
    return isinstance(x, np.generic)


@names_itself
def can_cast(from_: Any, to: DType, /) -> bool:
    """True if promotion turns the one dtype (or an array's) into the other, beside an array of that."""
    given, wanted = _dtype_of(from_, "can_cast"), _dtype_of(to, "can_cast")
    try:
        return promote(given, wanted) == wanted
    except DTypeError:
        return False


@names_itself
def isdtype(dtype: Any, kind: Any) -> bool:
    """True if a dtype is of a kind: another dtype, "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", or one of several in a tuple.  Storage dtypes are of no kind."""
    given = admit_numpy(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(given, k) for k in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise AttributeValueError(f"{kind!r} is no kind of dtypes", operator="isdtype", hint=", ".join(KINDS))
        return KINDS[kind](given)
    return given == admit_numpy(kind)


class NamespaceInfo:
    """Capabilities of this namespace, and of each of its devices."""

    def capabilities(self) -> dict[str, Any]:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def devices(self) -> list[DeviceSpec]:
        """Those that plugins offer for work; the default one is among them in any case."""
        found, default = list(devices()), self.default_device()
        return found if default in found else [default, *found]

    def default_device(self) -> DeviceSpec:
        return current_stack().device.spec

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Default dtypes of arrays made without naming a dtype; they are the same on all devices."""
        floating = default_float()
        return {"real floating": floating, "complex floating": dt.complex_of(floating), "integral": dt.int64,
                "indexing": dt.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes that a device has, by name."""
        with created_on(device) as stack:
            there = [dt.DTYPES[name] for name in STANDARD if dt.DTYPES[name] in stack.type.dtypes]
        return {d.name: d for d in there if kind is None or isdtype(d, kind)}


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 - the standard's name
    """The Array API's inspection: capabilities, devices, dtypes."""
    return NamespaceInfo()
