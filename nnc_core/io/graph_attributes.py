"""Attributes of nodes as JSON and back: numbers, texts, tuples, dtypes, specs, named dimensions, numbers of bodies."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import ALL_DTYPES, DType
from nnc_core.base.errors import FileFormatError, NotSupportedError
from nnc_core.symbol import Body, Number, float_attribute
from nnc_core.type import Dim, DimLike, Dims, TensorSpec, TupleSpec


def encode(value: Any, number_of: Callable[[Body], int] | None = None) -> Any:
    """JSON for an attribute: plain where JSON says the same, else an object of one member that names the kind.

    Floats are stored as the hexadecimal bytes of a big-endian double, so that NaN, infinities and -0 survive; bodies
    as the numbers that `number_of` gives them.
    NotSupportedError for anything that is no attribute of a graph (arrays and objects of a device are not).
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, tuple):
        return [encode(v, number_of) for v in value]
    if isinstance(value, Body) and number_of is not None:
        return {_BODY: number_of(value)}
    for kind, (type_, write, _) in _KINDS.items():
        if isinstance(value, type_):
            return {kind: write(value)}
    raise NotSupportedError(f"a {type(value).__name__} cannot be written to a graph file: {value!r}",
                            hint="attributes are numbers, texts, dtypes, specs, dimensions and tuples of these")


def decode(data: Any, body: Callable[[Any], Body] | None = None) -> Any:
    """The attribute that `encode` gave this JSON for; FileFormatError for any other."""
    if data is None or type(data) in (bool, int, str):
        return data
    if isinstance(data, list):
        return tuple([decode(d, body) for d in data])
    if isinstance(data, dict) and len(data) == 1:
        ((kind, content),) = data.items()
        if kind in _KINDS:
            return _KINDS[kind][2](content)
        if kind == _BODY and body is not None:
            return body(content)
    raise FileFormatError(f"{str(data)[:80]} stands for no attribute")


def _write_float(value: float) -> str:
    return struct.pack(">d", value).hex()


def _read_float(text: str) -> float:
    (value,) = struct.unpack(">d", bytes.fromhex(text))
    return float_attribute(value)  # type: ignore[no-any-return]


def _read_dtype(name: str) -> DType:
    return ALL_DTYPES[name]


def _write_number(number: Number) -> list[str]:
    return [number.dtype.name, number.bits.hex()]


def _read_number(data: list[str]) -> Number:
    return Number(_read_scalar(data), _read_dtype(data[0]))


def _write_scalar(value: np.generic) -> list[str]:
    return [value.dtype.name, value.tobytes().hex()]


def _read_scalar(data: list[str]) -> Any:
    name, bits = data
    (value,) = np.frombuffer(bytes.fromhex(bits), _read_dtype(name))
    return value


def _write_specs(spec: TupleSpec) -> list[Any]:
    return [encode(part) for part in spec.parts]


def _read_specs(data: list[Any]) -> TupleSpec:
    parts = tuple([decode(d) for d in data])
    if not all(isinstance(part, TensorSpec) for part in parts):
        raise FileFormatError(f"{str(data)[:80]} are no specs")
    return TupleSpec(parts)


def _write_spec(spec: TensorSpec) -> list[Any]:
    return [spec.dtype.name, [encode(d) for d in spec.shape]]


def _read_spec(data: list[Any]) -> TensorSpec:
    name, dims = data
    return TensorSpec(_read_dims(dims), _read_dtype(name))


def _read_dims(data: list[Any]) -> Dims:
    dims = tuple([_read_dim(d) for d in data])
    if any(isinstance(d, int) and d < 0 for d in dims):
        raise FileFormatError(f"shape {dims} has a negative dimension")
    return dims


def _read_dim(data: Any) -> DimLike:
    dim = decode(data)
    if type(dim) is int or isinstance(dim, Dim):
        return dim
    raise FileFormatError(f"{str(data)[:80]} is no dimension")


def _write_polynomial(dim: Dim) -> list[Any]:
    """[[factor, [name or [numerator, denominator], ...]], ...]"""
    return [[factor, [atom if isinstance(atom, str) else [encode(atom.numerator), encode(atom.denominator)]
                      for atom in monomial]] for monomial, factor in dim.terms.items()]


def _read_polynomial(data: list[Any]) -> DimLike:
    total: DimLike = 0
    for factor, atoms in data:
        total = total + prod([_read_atom(a) for a in atoms], start=_read_dim(factor))
    return total


def _read_atom(data: Any) -> DimLike:
    if isinstance(data, str):
        return Dim(data)
    numerator, denominator = data
    return _read_dim(numerator) // _read_dim(denominator)


_BODY = "body"
_KINDS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "scalar": (np.generic, _write_scalar, _read_scalar),  # before float: np.float64 is one
    "float": (float, _write_float, _read_float),
    "dtype": (np.dtype, lambda dtype: dtype.name, _read_dtype),
    "number": (Number, _write_number, _read_number),
    "specs": (TupleSpec, _write_specs, _read_specs),  # before spec: it is one
    "spec": (TensorSpec, _write_spec, _read_spec),
    "dim": (Dim, _write_polynomial, _read_polynomial),
}
