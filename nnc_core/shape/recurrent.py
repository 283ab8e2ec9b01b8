"""Rules of recurrent networks: x (length, batch, features), states (batch, size)."""

from __future__ import annotations

from typing import Any

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import floating
from nnc_core.type import DimLike, Dims, TensorSpec, TupleSpec

NONLINEARITIES = ("tanh", "relu")


def _check(**parts: tuple[TensorSpec, Dims]) -> None:
    for name, (spec, shape) in parts.items():
        if spec.shape != shape:
            raise ShapeError(f"{name.replace('_', ' ')} is {spec}, expected shape {shape}")


def _sequence(x: TensorSpec, *others: TensorSpec) -> tuple[DimLike, DimLike, DimLike]:
    """Length, batch and features of x; everything is of one float dtype."""
    for other in others:
        if floating(other).dtype != floating(x).dtype:
            raise DTypeError(f"dtypes {x.dtype} and {other.dtype} differ", hint="cast one of them with astype")
    if x.ndim != 3:
        raise ShapeError(f"x is {x}, expected (length, batch, features)")
    length, batch, features = x.shape
    return length, batch, features


def _size(state: TensorSpec) -> DimLike:
    if state.ndim != 2:
        raise ShapeError(f"the state is {state}, expected (batch, size)")
    return state.shape[1]


def _check_mask(mask: tuple[TensorSpec, ...], length: DimLike, batch: DimLike) -> None:
    for m in mask:
        if m.dtype != dt.boolean:
            raise DTypeError(f"the mask is {m.dtype}, not boolean")
        _check(the_mask=(m, (length, batch)))


def _results(dtype: Any, *shapes: Dims) -> TupleSpec:
    return TupleSpec(tuple([TensorSpec(shape, dtype) for shape in shapes]))


def rnn(x: TensorSpec, h: TensorSpec, input_weight: TensorSpec, hidden_weight: TensorSpec, bias: TensorSpec,
        *rest: Any) -> TensorSpec:
    """(h, hs)"""
    *mask, nonlinearity, _ = rest
    if nonlinearity not in NONLINEARITIES:
        raise AttributeValueError(f"nonlinearity {nonlinearity!r} is none of {', '.join(map(repr, NONLINEARITIES))}")
    length, batch, features = _sequence(x, h, input_weight, hidden_weight, bias)
    n = _size(h)
    _check(h=(h, (batch, n)), the_input_weight=(input_weight, (features, n)), the_hidden_weight=(hidden_weight, (n, n)),
           the_bias=(bias, (n,)))
    _check_mask(tuple(mask), length, batch)
    return _results(x.dtype, (batch, n), (length, batch, n))


def gru(x: TensorSpec, h: TensorSpec, input_weight: TensorSpec, hidden_weight: TensorSpec, input_bias: TensorSpec,
        hidden_bias: TensorSpec, *rest: Any) -> TensorSpec:
    """(h, hs)"""
    *mask, _, _ = rest
    length, batch, features = _sequence(x, h, input_weight, hidden_weight, input_bias, hidden_bias)
    n = _size(h)
    _check(h=(h, (batch, n)), the_input_weight=(input_weight, (features, 3 * n)),
           the_hidden_weight=(hidden_weight, (n, 3 * n)), the_input_bias=(input_bias, (3 * n,)),
           the_hidden_bias=(hidden_bias, (3 * n,)))
    _check_mask(tuple(mask), length, batch)
    return _results(x.dtype, (batch, n), (length, batch, n))


def lstm(x: TensorSpec, h: TensorSpec, c: TensorSpec, input_weight: TensorSpec, hidden_weight: TensorSpec,
         bias: TensorSpec, *rest: Any) -> TensorSpec:
    """(h, c, hs)"""
    *extra, projected, _ = rest
    projection, mask = extra[: int(projected)], extra[int(projected) :]
    length, batch, features = _sequence(x, h, c, input_weight, hidden_weight, bias, *projection)
    m, n = _size(h), _size(c)
    _check(h=(h, (batch, m)), c=(c, (batch, n)), the_input_weight=(input_weight, (features, 4 * n)),
           the_hidden_weight=(hidden_weight, (m, 4 * n)), the_bias=(bias, (4 * n,)))
    if projection:
        _check(the_projection=(projection[0], (n, m)))
    elif m != n:
        raise ShapeError(f"h {h} and c {c} differ in size, and there is no projection")
    _check_mask(tuple(mask), length, batch)
    return _results(x.dtype, (batch, m), (batch, n), (length, batch, m))
