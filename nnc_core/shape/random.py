"""Rules of random operators; a key is uint64[2]: the seed, and the number of the draw."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.elementwise import broadcast, floating
from nnc_core.shape.movement import check_shape
from nnc_core.type import DimLike, Dims, TensorSpec


def bits(key: TensorSpec, shape: Dims, dtype: DType) -> TensorSpec:
    """uint32 or uint64."""
    if key.dtype != dt.uint64:
        raise DTypeError(f"a key is uint64[2] (seed, draw), not {key}")
    if key.shape != (2,):
        raise ShapeError(f"a key is uint64[2] (seed, draw), not {key}")
    if dtype not in (dt.uint32, dt.uint64):
        raise DTypeError(f"bits come as uint32 or uint64, not {dtype}")
    return TensorSpec(check_shape(shape), dtype)


def floats(key: TensorSpec, shape: Dims, dtype: DType) -> TensorSpec:
    """Any floats."""
    if not dt.is_float(dtype):
        raise DTypeError(f"needs a floating-point dtype, not {dtype}")
    return TensorSpec(bits(key, shape, dt.uint32).shape, dtype)


def bernoulli(key: TensorSpec, shape: Dims, probability: float) -> TensorSpec:
    """Booleans."""
    if not 0 <= probability <= 1:
        raise AttributeValueError(f"probability {probability} is not between 0 and 1")
    return TensorSpec(bits(key, shape, dt.uint32).shape, dt.boolean)


def permutation(key: TensorSpec, size: DimLike) -> TensorSpec:
    """int64 positions."""
    return TensorSpec(bits(key, (size,), dt.uint64).shape, dt.int64)


def distinct(key: TensorSpec, size: DimLike, below: int) -> TensorSpec:
    """int64: no more than there are, from a range of at most 2**32."""
    if not 0 <= below <= 2**32 or (isinstance(size, int) and size > below):
        raise AttributeValueError(f"there are no {size} different integers below {below}, at most {2**32}")
    return permutation(key, size)


def wide_floats(key: TensorSpec, shape: Dims, dtype: DType) -> TensorSpec:
    """Floats in which 1 has a neighbour that is near enough."""
    if dtype not in (dt.float32, dt.float64):
        raise DTypeError(f"needs float32 or float64, not {dtype}")
    return floats(key, shape, dtype)


def _check_key(key: TensorSpec) -> None:
    bits(key, (), dt.uint32)


def gamma(key: TensorSpec, concentration: TensorSpec, log: bool) -> TensorSpec:
    """A float for each concentration."""
    _check_key(key)
    return floating(concentration)


def counts(key: TensorSpec, rate: TensorSpec, dtype: DType) -> TensorSpec:
    """An integer for each rate."""
    _check_key(key)
    return TensorSpec(floating(rate).shape, _integer(dtype))


def _integer(dtype: DType) -> DType:
    if not dt.is_integer(dtype):
        raise DTypeError(f"counts of dtype {dtype}", hint="one of int8 … uint64")
    return dtype


def binomial(key: TensorSpec, count: TensorSpec, probability: TensorSpec, dtype: DType) -> TensorSpec:
    """An integer for each pair."""
    _check_trials(key, count)
    return TensorSpec(broadcast(count.shape, floating(probability).shape), _integer(dtype))


def _check_trials(key: TensorSpec, count: TensorSpec) -> None:
    _check_key(key)
    if not dt.is_integer(count.dtype):
        raise DTypeError(f"the number of trials is {count.dtype}, not integers", hint="cast with astype")


def multinomial(key: TensorSpec, count: TensorSpec, probabilities: TensorSpec, dtype: DType) -> TensorSpec:
    """An integer for each category, along the last axis; the number of trials is broadcast to the others."""
    _check_trials(key, count)
    shape = floating(probabilities).shape
    if not shape:
        raise ShapeError(f"probabilities {probabilities} have no axis of categories")
    if broadcast(count.shape, shape[:-1]) != shape[:-1]:
        raise ShapeError(f"{count} numbers of trials do not broadcast to {shape[:-1]}")
    return TensorSpec(shape, _integer(dtype))


def choice(key: TensorSpec, weights: TensorSpec, size: DimLike, replace: bool) -> TensorSpec:
    """int64 positions in a vector of weights."""
    _check_key(key)
    if floating(weights).ndim != 1:
        raise ShapeError(f"the weights are {weights}, expected a vector")
    return TensorSpec(check_shape((size,)), dt.int64)
