"""Options of windows: one number for all axes or one each, paddings by name, layouts that operators do not have."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.functions.constants import is_recorded
from nnc_core.recording.symbols import SYMBOLS
from nnc_core.shape.window import Image, has_channels_last
from nnc_core.type import Dim, DimLike, Dims
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value

Int = int | Sequence[int]
Ints = tuple[int, ...]
LAYOUTS = {1: ("NWC", "NCW", "CWN"), 2: ("NHWC", "NCHW", "CHWN"), 3: ("NDHWC", "NCDHW", "CDHWN")}
"""By the number of spatial dimensions; the last of each is NNC's, which operators see as the first."""


def is_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    return is_number(value) or isinstance(value, (float, np.floating))


def items(value: Any) -> tuple[Any, ...]:
    """The items of a sequence; anything else as the only one."""
    return tuple(value) if isinstance(value, Iterable) else (value,)


def per_axis(value: Any, rank: int, what: str) -> Ints:
    """One integer for each spatial dimension."""
    numbers = (value,) * rank if is_number(value) or isinstance(value, (bool, float, str)) else items(value)
    if len(numbers) != rank or not builtins.all(map(is_number, numbers)):
        raise AttributeValueError(f"{what} {value!r} is neither an integer nor {rank} of them")
    return tuple([int(n) for n in numbers])


def size_of(value: Any, rank: int, what: str = "size") -> Dims:
    """The same where named dimensions are allowed."""
    given = (value,) * rank if is_number(value) or isinstance(value, Dim) else items(value)
    if len(given) != rank or not builtins.all(is_number(n) or isinstance(n, Dim) for n in given):
        raise AttributeValueError(f"{what} {value!r} is neither a dimension nor {rank} of them")
    return tuple([n if isinstance(n, Dim) else int(n) for n in given])


def is_same(padding: Any) -> bool:
    """Tell whether there are to be as many results as elements for each stride: "SAME", as JAX writes it, or "same"."""
    return isinstance(padding, str) and padding.upper() == "SAME"


def padding_for(padding: Any, sizes: Dims, window: Dims, strides: Ints, dilation: Ints) -> Any:
    """((before, after), ...) from "SAME", "VALID" (or small letters), a number, or a number or a pair for each axis."""
    rank = len(sizes)
    if isinstance(padding, str) and padding.upper() == "VALID":
        return ((0, 0),) * rank
    if is_same(padding):
        return tuple(_same(*args) for args in zip(sizes, window, strides, dilation, strict=True))
    if isinstance(padding, str):
        raise AttributeValueError(f"padding {padding!r} is neither 'SAME' nor 'VALID'")
    if is_number(padding):
        return ((int(padding), int(padding)),) * rank
    pairs = tuple((p, p) if is_number(p) else tuple(p) for p in padding)
    if len(pairs) != rank or not builtins.all(len(p) == 2 and is_number(p[0]) and is_number(p[1]) for p in pairs):
        raise AttributeValueError(f"padding {padding!r} is no number and no sequence of {rank} numbers or pairs")
    return tuple([(int(a), int(b)) for a, b in pairs])


def _same(size: Any, window: Any, stride: int, dilation: int) -> tuple[int, int]:
    """As many windows as there are strides; an odd element of padding goes after."""
    if stride < 1:
        raise AttributeValueError(f"stride {stride} should be at least 1")
    covered = (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1
    total = builtins.max(covered - size, 0)
    return total // 2, total - total // 2


def sliding(sizes: Dims, window: Dims, strides: Any, padding: Any, dilation: Any) -> dict[str, Any]:
    """The attributes that say how windows slide."""
    rank = len(sizes)
    steps, spread = per_axis(strides, rank, "strides"), per_axis(dilation, rank, "dilation")
    return {"strides": steps, "dilation": spread, "padding": padding_for(padding, sizes, window, steps, spread)}


# ---- layouts
def rank_of(v: Value) -> int:
    """The number of spatial dimensions of a batch of images."""
    if v.ndim - 2 not in LAYOUTS:
        raise ShapeError(f"{v.spec} should have three, four or five dimensions: images, their spatial dimensions "
                         f"and channels")
    return v.ndim - 2


def operator_layout(layout: str | None, rank: int) -> str:
    """The layout in which operators see images; by default channels are last."""
    known = LAYOUTS[rank]
    if layout is not None and layout not in known:
        raise AttributeValueError(f"layout {layout!r} is none of {', '.join(map(repr, known))}")
    return known[1] if layout == known[1] else known[0]


def arranged(v: Value, layout: str | None, rank: int | None = None) -> tuple[Value, str]:
    """Images as operators see them, and the layout they have then."""
    rank = rank_of(v) if rank is None else rank
    order = operator_layout(layout, rank)
    image = v if not _is_last(layout) else restored(v, layout)
    Image.of(image.spec, order)
    return image, order


def restored(v: Value, layout: str | None) -> Value:
    """Images back in the user's layout: CHWN and NHWC become each other."""
    if not _is_last(layout) or v.ndim < 2:
        return v
    return F.permute(v, axes=(v.ndim - 1, *range(1, v.ndim - 1), 0))


def _is_last(layout: str | None) -> bool:
    return layout is not None and layout.endswith("N")


def arranged_kernel(kernel: Value, layout: str | None) -> Value:
    """A kernel as operators see it: that of CHWN is IHWO."""
    if not _is_last(layout) or kernel.ndim < 3:
        return kernel
    return F.permute(kernel, axes=(*range(1, kernel.ndim - 1), 0, kernel.ndim - 1))


def sizes_of(v: Value, order: str) -> Dims:
    """The spatial dimensions."""
    return Image.of(v.spec, order).size


def spatial_axes(order: str) -> Ints:
    return tuple(range(1, len(order) - 1)) if has_channels_last(order) else tuple(range(2, len(order)))


def along(order: str, n: DimLike, places: Sequence[DimLike], c: DimLike) -> Dims:
    """One number for each axis of images."""
    return Image(n, tuple(places), c).shape(order)


# ---- sizes
def fits_other_sizes(v: Value) -> bool:
    """True if what is done to v may later be done to arrays of other sizes, for which numbers made here may be wrong:
    then only such operators are used as are refused where they do not go along (`dynamic.graphs.sizes`)."""
    return is_recorded(v) and (v.trace is None or v.trace is SYMBOLS)


def bound_to_size(v: Value, order: str, how: dict[str, Any]) -> Value:
    """Images whose padding was made for their size, though it came out as none, so that no attribute shows it."""
    if not fits_other_sizes(v) or builtins.max(how["strides"]) == 1 or any(map(any, how["padding"])):
        return v
    return F.of_size(v, size=sizes_of(v, order), layout=order)
