"""Pools over all of an image, and over as many evenly spread windows as asked for."""

from __future__ import annotations

from typing import Any

from nnc_core.base.errors import AttributeValueError
from nnc_core.functions.resample_tables import Rule, windows_of
from nnc_core.functions.spatial import gathered_at, largest_in, resampled
from nnc_core.functions.window_options import (
    arranged,
    fits_other_sizes,
    restored,
    size_of,
    sizes_of,
    spatial_axes,
)
from nnc_core.type import Dims
from nnc_core.values.arguments import ArrayLike, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor

__all__ = ["adaptive_avg_pool", "adaptive_max_pool", "global_avg_pool", "global_max_pool"]


@names_itself
def global_avg_pool(x: ArrayLike, /, *, keepdims: bool = False, layout: str | None = None) -> Tensor:
    """The mean of each channel over all spatial dimensions: (batch, channels), or with axes of length 1.

    x has one, two or three spatial dimensions; channels are last unless `layout` says otherwise.
    """
    v, order = arranged(as_value(x), layout)
    return Tensor(restored(F.mean(v, axis=spatial_axes(order), keepdims=keepdims), layout))


@names_itself
def global_max_pool(x: ArrayLike, /, *, keepdims: bool = False, layout: str | None = None) -> Tensor:
    """The maximum of each channel over all spatial dimensions: (batch, channels), or with axes of length 1.

    Elements that share the maximum share its gradient, as in `max`.
    """
    v, order = arranged(as_value(x), layout)
    return Tensor(restored(F.max(v, axis=spatial_axes(order), keepdims=keepdims), layout))


@names_itself
def adaptive_avg_pool(x: ArrayLike, /, size: Any, *, layout: str | None = None) -> Tensor:
    """Means of `size` windows along each spatial dimension: a number, one for each, or None for as many as there are.

    Window i of n over a length L goes from floor(i * L / n) up to ceil((i + 1) * L / n).
    """
    v, order = arranged(as_value(x), layout)
    sizes = sizes_of(v, order)
    wanted = _wanted(size, sizes)
    if all(n == 1 for n in wanted):
        return Tensor(restored(F.mean(v, axis=spatial_axes(order), keepdims=True), layout))
    if not fits_other_sizes(v) and (how := _even(sizes, wanted, order)) is not None:
        return Tensor(restored(F.avg_pool(v, count_padding=False, **how), layout))
    return Tensor(restored(resampled(v, order, wanted, Rule("area")), layout))


@names_itself
def adaptive_max_pool(x: ArrayLike, /, size: Any, *, with_indices: bool = False, layout: str | None = None) -> Any:
    """Maxima of `size` windows along each spatial dimension, which lie as those of `adaptive_avg_pool`.

    The first maximum of a window has the gradient; `with_indices` is as in `max_pool2d`.
    """
    v, order = arranged(as_value(x), layout)
    sizes = sizes_of(v, order)
    wanted = _wanted(size, sizes)
    if not fits_other_sizes(v) and (how := _even(sizes, wanted, order)) is not None:
        y, places = F.max_pool(v, **how), F.max_pool_place(v, **how) if with_indices else None
    else:
        places = largest_in(v, windows_of([int(n) for n in sizes], [int(n) for n in wanted]), wanted, order)
        y = gathered_at(v, places, order)
    values = Tensor(restored(y, layout))
    return (values, Tensor(restored(places, layout))) if with_indices and places is not None else values


def _wanted(size: Any, sizes: Dims) -> Dims:
    given = tuple(size) if isinstance(size, (tuple, list)) else (size,) * len(sizes)
    if len(given) != len(sizes):
        raise AttributeValueError(f"size {size!r} is neither a number nor {len(sizes)} of them")
    wanted = size_of([n if s is None else s for s, n in zip(given, sizes, strict=True)], len(sizes))
    if any(isinstance(n, int) and n < 1 for n in wanted):
        raise AttributeValueError(f"size {size!r} should be at least 1")
    return wanted


def _even(sizes: Dims, wanted: Dims, order: str) -> dict[str, Any] | None:
    """The pool that it is where every window has the same size; lengths must be known to tell."""
    lengths, counts = [int(n) for n in sizes], [int(n) for n in wanted]
    if any(length % count for length, count in zip(lengths, counts, strict=True)) or 0 in lengths:
        return None
    window = tuple([length // count for length, count in zip(lengths, counts, strict=True)])
    return {"window": window, "strides": window, "padding": ((0, 0),) * len(window), "dilation": (1,) * len(window),
            "layout": order}
