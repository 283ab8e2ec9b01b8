"""Scores of attention, and the keys that each query may look at: before and behind it, within a window, in sequences of
their own lengths."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any, NamedTuple

from nnc_core.base.dtype import boolean, int64, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.functions.constants import beside
from nnc_core.functions.pieces import cut
from nnc_core.operator.attention import masked, product
from nnc_core.operator.wide import widened_operand
from nnc_core.shape.neural import check_bias
from nnc_core.type import Dim, DimLike, whole
from nnc_core.values.arguments import as_value_beside
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value


class Sight(NamedTuple):
    """Keys that a query may look at: query i is at place i + offset."""

    causal: bool = False
    offset: Any = 0
    """A number, a named dimension, or a number for each sequence."""
    window: tuple[int | None, int | None] = (None, None)
    key_lengths: Any = None


class Mask(NamedTuple):
    """Inputs and attributes of operators of attention beside queries, keys and values."""

    inputs: tuple[Value, ...]
    causal: bool
    offset: int


def sight(causal: bool, offset: Any, window: Any, key_lengths: Any) -> Sight:
    """The same, checked; a single number as window holds for both sides."""
    pair = (window, window) if window is None or not isinstance(window, (tuple, list)) else tuple(window)
    if len(pair) != 2:
        raise AttributeValueError(f"window {window!r} is neither a number nor a pair of numbers or None")
    left, right = (None if n is None else whole(n, "the window", 0) for n in pair)
    return Sight(bool(causal), offset, (left, right), key_lengths)


def mask_of(q: Value, k: Value, given: tuple[Value, ...], seen: Sight) -> Mask:
    """One mask for all that is hidden, unless the operators know it by themselves."""
    for m in given:
        check_bias(m.spec, (*q.shape[:-1], k.shape[-2]))
    plain = isinstance(seen.offset, int)
    if plain and seen.window == (None, None) and seen.key_lengths is None:
        return Mask(given, seen.causal, int(seen.offset))
    with beside(q):
        allowed = _allowed(q, k, seen)
    if allowed is None:
        return Mask(given, False, 0)
    for m in given:
        allowed = F.logical_and(m, allowed) if m.dtype == boolean else F.where(allowed, m, -inf)
    return Mask((allowed,), seen.causal and plain, int(seen.offset) if plain else 0)


def _allowed(q: Value, k: Value, seen: Sight) -> Value | None:
    """(queries, keys), or (..., 1, queries, keys) where sequences differ."""
    keys = F.arange(size=k.shape[-2], dtype=int64)
    places = _places(q, seen.offset)
    terms = []
    left, right = seen.window
    if left is not None:
        terms.append(F.greater_equal(keys, F.subtract(places, left)))
    if right is not None:
        terms.append(F.less_equal(keys, F.add(places, right)))
    if seen.causal and not isinstance(seen.offset, int):
        terms.append(F.less_equal(keys, places))
    if seen.key_lengths is not None:
        terms.append(F.less(keys, _by_sequence(q, seen.key_lengths, "key_lengths")))
    found = None
    for term in terms:
        found = term if found is None else F.logical_and(found, term)
    return found


def _places(q: Value, offset: Any) -> Value:
    """Those of the queries: (queries, 1), or (..., 1, queries, 1)."""
    queries = q.shape[-2]
    if isinstance(offset, int):
        steps = F.arange(size=queries, dtype=int64, start=offset)
    elif isinstance(offset, Dim):
        steps = cut(F.arange(size=offset + queries, dtype=int64), 0, offset, offset + queries)
    else:
        steps = F.arange(size=queries, dtype=int64)
    column = F.reshape(steps, shape=(queries, 1))
    return column if isinstance(offset, (int, Dim)) else F.add(column, _by_sequence(q, offset, "offset"))


def _by_sequence(q: Value, given: Any, what: str) -> Value:
    """A number for each sequence, (...), as (..., 1, 1, 1); or one for all."""
    v = as_value_beside(given, q)
    if not is_integer(v.dtype):
        raise DTypeError(f"{what} is {v.dtype}, not of integers", hint="cast with astype")
    if v.ndim and v.shape != q.shape[:-3]:
        raise ShapeError(f"{what} is {v.spec}, expected a number for each of {q.shape[:-3]} sequences")
    return F.reshape(F.cast(v, dtype=int64), shape=(*v.shape, 1, 1, 1) if v.ndim else ())


# ---- scores
def scale_of(q: Value, scale: float | None) -> float:
    """1 / sqrt(features) where it is not said."""
    features = q.shape[-1]
    if scale is not None:
        return float(scale)
    if not isinstance(features, int):
        raise AttributeValueError(f"the scale of {features} features is not known", hint="give scale=")
    return 1 / sqrt(features) if features else 1.0


def scores_of(q: Value, k: Value, scale: float, softcap: float | None) -> Value:
    """scale * q @ k.T, brought smoothly into [-softcap, softcap]; halves in float32."""
    q, k = widened_operand(F, q), widened_operand(F, k)
    length: DimLike = k.shape[-2]
    scores = product(F, F.multiply(q, scale), k, True, (*q.shape[:-1], length))
    return scores if softcap is None else F.multiply(F.tanh(F.divide(scores, softcap)), softcap)


def hidden(scores: Value, mask: Mask) -> tuple[Value, Value | None]:
    """Scores with what is added to them, and which may be looked at; None if that is all."""
    inputs = tuple([widened_operand(F, m) for m in mask.inputs])
    return masked(F, scores, inputs, mask.causal, mask.offset)


def checked_softcap(softcap: float | None) -> float | None:
    """None for 0, as ONNX has it; AttributeValueError below."""
    if softcap is not None and not softcap >= 0:
        raise AttributeValueError(f"softcap {softcap!r} should not be negative")
    return float(softcap) if softcap else None
