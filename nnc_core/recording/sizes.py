"""Use of what was recorded for one size with another: which attributes of operators do not go along.

An operation that was recorded on an array of shape (4, 3) may hold the 4 in its attributes: `x[1:]` is recorded as
1:4.  Whether it was meant as "4" or as "all of them" is not known afterwards, so that such a node is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nnc_core.base.errors import ShapeError
from nnc_core.stacks import Stack
from nnc_core.type import Dim, Dims, Op, TensorSpec, is_data_dependent, map_dims, specialised, substitute
from nnc_core.values.data_dependent import mapped, names_in

SIZED = frozenset({"shape", "size", "start", "stop", "low", "high", "padding", "length", "repeats", "sections"})
"""Names of attributes that speak of sizes.  `Op.attributes` of a new operator should use them in this sense."""

Changed = Sequence[frozenset[int]]
"""For each input the axes whose size is another than the recorded one."""


def baked(op: Op, attributes: Sequence[Any], recorded: Sequence[TensorSpec], now: Sequence[TensorSpec]) -> str:
    """The attributes that may hold a size which is another one now, as text; "" if there are none."""
    changed = [_changed(a.shape, b.shape) for a, b in zip(recorded, now, strict=True)]
    if not any(changed):
        return ""
    given = dict(zip(op.attributes, attributes, strict=True))
    suspects = _RULES.get(op.name, _any_size)(given, changed, now)
    return ", ".join(f"{k}={given[k]}" for k in suspects)


def _changed(recorded: Dims, now: Dims) -> frozenset[int]:
    """A named dimension that was recorded as such is in no attribute as a number."""
    return frozenset(i for i, (a, b) in enumerate(zip(recorded, now, strict=True)) if a != b and not isinstance(a, Dim))


def _any_size(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    return [k for k, v in given.items() if k in SIZED and _holds_number(v)]


def _holds_number(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_number, value))
    return isinstance(value, int) and not isinstance(value, bool)


def _along(given: Mapping[str, Any], names: Iterable[str], axes: Iterable[int], harmless: int | None) -> list[str]:
    """Those of the attributes, one entry an axis, that hold another number than the harmless one on these axes."""
    return [k for k in names if any(isinstance(given[k][a], int) and given[k][a] != harmless for a in axes)]


def _slice(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    return _along(given, ("start",), changed[0], 0) + _along(given, ("stop",), changed[0], None)


def _pad(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    return _along(given, ("low", "high"), changed[0], 0)


def _update_slice(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    """The whole of an axis may be replaced by as much of the same."""
    x, value = now
    partial = {a for a in changed[0] | changed[1] if x.shape[a] != value.shape[a]}
    return ["start"] if partial else _along(given, ("start",), changed[0] | changed[1], 0)


def _spatial(layout: str) -> set[int]:
    return {axis for axis, letter in enumerate(layout) if letter not in "NC"}


def _of_size(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    return ["size"] if _spatial(given["layout"]) & changed[0] else []


def _window(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    """Padding may have come from "SAME", which asks for the size of images, not for their number; so does `size`."""
    padded = any(n != 0 for pair in given["padding"] for n in pair)
    found = ["padding"] if padded and _spatial(given["layout"]) & changed[0] else []
    resized = any(axes - {0} for axes in changed)
    return found + (["size"] if "size" in given and _holds_number(given["size"]) and resized else [])


def _weighted(given: Mapping[str, Any], changed: Changed, now: Sequence[TensorSpec]) -> list[str]:
    """Tables are made for one length."""
    return ["reach"] if given["axis"] in changed[0] else []


_WINDOWS = ("conv", "conv_input_gradient", "conv_kernel_gradient", "max_pool", "max_pool_index", "max_pool_place",
            "pool_take", "pool_put", "sum_pool", "sum_pool_gradient", "avg_pool", "unfold", "fold")  # fmt: skip
_RULES: dict[str, Callable[[Mapping[str, Any], Changed, Sequence[TensorSpec]], list[str]]] = {
    "slice": _slice, "pad": _pad, "update_slice": _update_slice, "resample": _weighted, "spread": _weighted,
    "of_size": _of_size, **dict.fromkeys(_WINDOWS, _window),
}  # fmt: skip


def solved(pairs: Iterable[tuple[str, Dims, Dims]]) -> dict[str, int]:
    """Sizes of the plain names, from (who, shape with names, shape with numbers); ShapeError where two do not agree."""
    known: dict[str, int] = {}
    said: dict[str, str] = {}
    listed = list(pairs)
    for who, named, numbers in listed:
        for d, n in zip(named, numbers, strict=True):
            name = str(d)
            if not isinstance(d, Dim) or name not in d.names:
                continue
            if known.setdefault(name, int(n)) != n:
                raise ShapeError(f"dimension {name!r} is {known[name]} in {said[name]} and {n} in {who}")
            said.setdefault(name, who)
    for who, named, numbers in listed:
        for d, n in zip(named, numbers, strict=True):
            if isinstance(d, Dim) and d.names <= known.keys() and substitute(d, known) != n:
                raise ShapeError(f"dimension {d} of {who} is {n}, with {known} it should be {substitute(d, known)}")
    return known


def numbered(value: Any, sizes: Mapping[str, int], stack: Stack | None = None) -> Any:
    """An attribute or a spec with numbers in the place of its named dimensions, as far as their sizes are given; with a
    stack also in the bodies of control flow."""

    def number(d: Dim) -> Any:
        is_given = all(name in sizes or is_data_dependent(name) for name in d.names)
        return specialised(d, sizes) if is_given else d

    return map_dims(value, number) if stack is None else mapped(value, number, stack)


def has_names(value: Any) -> bool:
    """True if an attribute, or a body in it, holds a named dimension."""
    return any(True for _ in names_in(value))
