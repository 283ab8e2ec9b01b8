"""Rules of softmax, normalisations and attention."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import check_axes
from nnc_core.shape.elementwise import floating, show
from nnc_core.type import DimLike, Dims, TensorSpec, TupleSpec


# ---- softmax and what is made of it
def along_axis(x: TensorSpec, axis: int) -> TensorSpec:
    """Floats in, the same out."""
    check_axes((axis,), x.ndim)
    return floating(x)


def masked_along_axis(x: TensorSpec, mask: TensorSpec, axis: int) -> TensorSpec:
    """The mask is boolean, and broadcasts to x."""
    check_mask(mask, x.shape)
    return along_axis(x, axis)


def _broadcasts(shape: Dims, target: Dims) -> bool:
    own = target[len(target) - len(shape) :]
    return len(shape) <= len(target) and all(a in (1, b) for a, b in zip(shape, own, strict=True))


def check_mask(mask: TensorSpec, shape: Dims) -> None:
    if mask.dtype != dt.boolean:
        raise DTypeError(f"the mask is {mask.dtype}, not boolean", hint="compare it with 0")
    if not _broadcasts(mask.shape, shape):
        raise ShapeError(f"the mask {mask} does not broadcast to {show(shape)}")


def cross_entropy(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    """Logits (..., classes), integer labels (...)."""
    if not dt.is_integer(labels.dtype):
        raise DTypeError(f"labels are {labels.dtype}, not integers")
    if logits.shape[:-1] != labels.shape or not logits.shape:
        raise ShapeError(f"labels {labels} should have the shape of {logits} without its last axis")
    return TensorSpec(labels.shape, floating(logits).dtype)


def is_class(logits: TensorSpec, labels: TensorSpec) -> TensorSpec:
    return TensorSpec(cross_entropy(logits, labels).shape, dt.boolean)


# ---- normalisations
def along_axes(x: TensorSpec, axis: tuple[int, ...], epsilon: float) -> TensorSpec:
    """Floats in, the same out."""
    check_axes(axis, x.ndim)
    check_epsilon(epsilon)
    return floating(x)


def check_epsilon(epsilon: float) -> None:
    if not epsilon >= 0:
        raise AttributeValueError(f"epsilon {epsilon} is not at least 0")


def batch_norm(x: TensorSpec, mean: TensorSpec, variance: TensorSpec, scale: TensorSpec, bias: TensorSpec, axis: int,
               epsilon: float) -> TensorSpec:
    """A number for each channel in all but x; they may be wider floats than x."""
    check_axes((axis,), x.ndim)
    check_epsilon(epsilon)
    for name, part in (("mean", mean), ("variance", variance), ("scale", scale), ("bias", bias)):
        if floating(part).shape != (x.shape[axis],):
            raise ShapeError(f"the {name} is {part}, expected a number for each of {x.shape[axis]} channels, which are "
                             f"axis {axis} of {x}")
    return floating(x)


# ---- attention: (..., heads, length, features)
def attention_weights(query: TensorSpec, key: TensorSpec, *mask_and_attributes: object) -> TensorSpec:
    """(..., heads, queries, keys)"""
    *mask, _, _, _ = mask_and_attributes
    for name, x in (("query", query), ("key", key)):
        if x.ndim < 3:
            raise ShapeError(f"the {name} is {x}, expected (..., heads, length, features)")
    if floating(query).dtype != floating(key).dtype:
        raise DTypeError(f"the query is {query.dtype}, the key {key.dtype}", hint="cast one of them with astype")
    if query.shape[-1] != key.shape[-1] or query.shape[:-3] != key.shape[:-3]:
        raise ShapeError(f"query {query} and key {key} differ in their features, or in what is before their heads")
    check_heads(query.shape[-3], key.shape[-3])
    shape = (*query.shape[:-1], key.shape[-2])
    for m in mask:
        assert isinstance(m, TensorSpec)
        check_bias(m, shape)
    return TensorSpec(shape, query.dtype)


def check_bias(mask: TensorSpec, shape: Dims) -> None:
    """The mask of attention whose scores have that shape."""
    if mask.dtype != dt.boolean and not dt.is_float(mask.dtype):
        raise DTypeError(f"the mask is {mask.dtype}: neither boolean (what may be looked at) nor float (what is added)")
    if not _broadcasts(mask.shape, shape):
        raise ShapeError(f"the mask {mask} does not broadcast to (..., heads, queries, keys) = {show(shape)}")


def check_heads(heads: DimLike, key_heads: DimLike) -> None:
    if heads == key_heads:
        return
    if not (isinstance(heads, int) and isinstance(key_heads, int) and key_heads and heads % key_heads == 0):
        raise ShapeError(f"{heads} heads of the query do not divide among {key_heads} heads of keys and values")


def attention(query: TensorSpec, key: TensorSpec, value: TensorSpec, *mask_and_attributes: object) -> TupleSpec:
    """(..., heads, queries, features of a value), and (..., heads, queries) of the dtype of sums."""
    weights = attention_weights(query, key, *mask_and_attributes)
    if value.dtype != query.dtype:
        raise DTypeError(f"the query is {query.dtype}, the value {value.dtype}", hint="cast one of them with astype")
    if value.shape[:-1] != key.shape[:-1]:
        raise ShapeError(f"value {value} and key {key} differ in more than their features")
    sums = TensorSpec(weights.shape[:-1], dt.accumulator(query.dtype))
    return TupleSpec((TensorSpec((*sums.shape, value.shape[-1]), query.dtype), sums))


def attention_gradients(query: TensorSpec, key: TensorSpec, value: TensorSpec, cotangent: TensorSpec, sums: TensorSpec,
                        shift: TensorSpec, *mask_and_attributes: object) -> TupleSpec:
    """Those of query, key and value."""
    found, row = attention(query, key, value, *mask_and_attributes).parts
    _check_parts({"cotangent": (cotangent, found), "sums": (sums, row), "shift": (shift, row)})
    return TupleSpec((query, key, value))


def attention_gradients_from_result(query: TensorSpec, key: TensorSpec, value: TensorSpec, cotangent: TensorSpec,
                                    sums: TensorSpec, result: TensorSpec, *mask_and_attributes: object) -> TupleSpec:
    """Those of query, key and value."""
    found, row = attention(query, key, value, *mask_and_attributes).parts
    _check_parts({"cotangent": (cotangent, found), "sums": (sums, row), "result": (result, found)})
    return TupleSpec((query, key, value))


def _check_parts(parts: dict[str, tuple[TensorSpec, TensorSpec]]) -> None:
    """Hold operands to what attention of the same arrays gives."""
    for name, (part, wanted) in parts.items():
        if (part.shape, part.dtype) != (wanted.shape, wanted.dtype):
            raise ShapeError(f"the {name} is {part}, expected {wanted}")
