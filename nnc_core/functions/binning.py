"""The edges of bins, and which bin a number lies in."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, OperandError, ShapeError
from nnc_core.functions.constants import constant_beside, host_of
from nnc_core.functions.pieces import cut
from nnc_core.functions.reduction import as_dtype
from nnc_core.type import promote
from nnc_core.values.argument_checks import mismatch_error
from nnc_core.values.arguments import as_value_beside
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

Bins = int | str | Any
"""A number of bins, the name of a rule, or the edges."""
RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
"""NumPy's, which say how many bins there are."""


def _range_of(v: Value, given: Any) -> tuple[Value, Value]:
    """The ends; not equal ones."""
    if given is not None:
        return _ends(v, *_pair(given))
    if v.shape[0] == 0:
        return _ends(v, 0.0, 1.0)
    low, high = F.min(v, axis=(0,)), F.max(v, axis=(0,))
    _check_span(low, high)
    alike = F.equal(low, high)
    return F.where(alike, F.subtract(low, 0.5), low), F.where(alike, F.add(high, 0.5), high)


def _check_span(low: Value, high: Value) -> None:
    """Refuse a range of the data that no bins divide; of what is computed later nobody knows it."""
    first, last = host_of(low), host_of(high)
    if first is None or last is None:
        return
    with np.errstate(all="ignore"):
        span = last - first
    if not np.isfinite(span):
        ends = f"from {float(first):g} to {float(last):g}"  # float: scalars of bfloat16 do not know how to be shown
        raise AttributeValueError(f"the data, {ends}, do not span a finite {low.dtype} range",
                                  hint="give range=, or the edges of bins")


def _pair(given: Any) -> tuple[float, float]:
    host = given.numpy() if isinstance(given, Tensor) else np.asarray(given)
    if host.shape != (2,) or host.dtype.kind not in "iuf":
        raise mismatch_error("range", given, "a pair of numbers", "range=(0, 1)")
    return float(host[0]), float(host[1])


def _ends(v: Value, low: float, high: float) -> tuple[Value, Value]:
    if not (np.isfinite(low) and np.isfinite(high)) or low > high:
        raise AttributeValueError(f"range {low:g} to {high:g} does not rise from a finite number to another")
    apart = 0.5 if low == high else 0.0
    first, last = (constant_beside(v, e, v.dtype) for e in (low - apart, high + apart))
    return first, last


def _even_edges(v: Value, count: int, given: Any) -> Value:
    if count < 1:
        raise AttributeValueError(f"{count} bins are too few")
    low, high = _range_of(v, given)
    steps = constant_beside(v, np.arange(count + 1), v.dtype)
    edges = F.add(low, F.multiply(steps, F.divide(F.subtract(high, low), float(count))))
    return F.where(F.equal(steps, count), high, edges)


def edges_of(v: Value, bins: Bins, given: Any, weights: Value | None = None, whole: bool = False) -> Value:
    """A vector that rises, of the dtype of v; `whole`: of what were integers, whose bins no rule makes narrower than
    1."""
    if isinstance(bins, str):
        if bins not in RULES:
            raise AttributeValueError(f"bins {bins!r} is none of {', '.join(RULES)}", hint="a number, or the edges")
        if weights is not None:
            raise OperandError(f"the rule {bins!r} knows no weights", hint="give the number of bins")
        host = _host(v, f"the rule {bins!r}").astype(np.int64 if whole else np.float64)
        return constant_beside(v, np.histogram_bin_edges(host, bins, given), v.dtype)
    if isinstance(bins, (int, np.integer)) and not isinstance(bins, bool):
        return _even_edges(v, int(bins), given)
    edges = as_value_beside(bins, v)
    if edges.ndim != 1 or edges.shape[0] == 0:
        raise ShapeError(f"bins {edges.spec} are neither a number nor a vector of edges")
    if _falls(bins, edges):
        raise AttributeValueError("the edges of bins should rise", hint="sort them")
    dtype = promote(edges.dtype, v.dtype)
    return as_dtype(edges, dtype)


def _falls(bins: Any, edges: Value) -> bool:
    """Tell whether edges fall somewhere; of a tensor that is not computed nobody knows."""
    host = host_of(edges) if isinstance(bins, Tensor) else np.asarray(bins)
    return host is not None and bool((host[1:] < host[:-1]).any())


def _host(v: Value, what: str) -> np.ndarray[Any, Any]:
    """Rules look at the data, here and now."""
    host = Tensor(v).numpy()
    if host.size and not np.isfinite(host).all():
        raise AttributeValueError(f"{what} needs finite numbers")
    return host


def bin_numbers(v: Value, edges: Value) -> Value:
    """int64: the bin of each; the last one has both its edges.  What lies in none has the number of bins."""
    m = edges.shape[0]
    assert isinstance(m, int)
    dtype = promote(v.dtype, edges.dtype)
    v, edges = (as_dtype(u, dtype) for u in (v, edges))
    place = F.subtract(F.searchsorted(edges, v, right=True), 1)
    last = F.logical_and(F.equal(v, cut(edges, 0, m - 1, m)), F.equal(place, m - 1))
    place = F.where(last, m - 2, place)
    return F.where(F.less(place, 0), m - 1, place)
