"""Reading and replacing items, with NumPy's keys: integers, slices, ..., None, arrays of integers, masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nnc_core.base.dtype import boolean, is_complex, is_inexact
from nnc_core.base.errors import DTypeError, Error, NotSupportedError, OperandError, OutOfRangeError, ShapeError
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.indexing import gathering, ranges
from nnc_core.symbol import show_line, user_line
from nnc_core.type import is_static
from nnc_core.values.accepted import GET_ITEM, SET_ITEM, accept_items
from nnc_core.values.dispatch import F
from nnc_core.values.evaluation import learn_sizes, shape_of
from nnc_core.values.in_place import copied_and_written, of_arrays
from nnc_core.values.modes import lazy
from nnc_core.values.operands import operand, value_of
from nnc_core.values.postponed import one, postponable
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

CHANGES: dict[str, Callable[[Value, Value], Value]] = {
    "set": lambda old, new: new, "add": F.add, "subtract": F.subtract, "multiply": F.multiply, "divide": F.divide,
    "power": F.power, "min": F.minimum, "max": F.maximum,
}  # fmt: skip
"""What `x.at[key]` does with an old element and a new one."""
BY_FACTORS = ("multiply", "divide", "power")
"""Those that the number 1 changes nothing by, and that several numbers change as their product does."""


def get_item(x: Value, key: Any) -> Value:
    """x[key]: by the device's own kernel where it has one for such a key."""
    if x.__class__ is Value and not x.tracked and x.array is not None and not CLOSED_BY and not lazy.get():
        kernel = x.stack.accepted.get(GET_ITEM)
        if kernel is not None:
            try:
                item = kernel(x.array, of_arrays(key, x))
            except Exception:
                item = NotImplemented  # the slow way finds out why
            if item is not NotImplemented:
                return Value(item, x.stack)
    return _knowing_sizes("getitem", _read, x, key)


def _knowing_sizes(name: str, function: Callable[..., Value], x: Value, key: Any, *rest: Any) -> Value:
    """Ask a function again where shapes did not fit before the sizes that depend on data were computed."""
    try:
        try:
            return function(x, key, *rest)
        except ShapeError:
            keys = key if isinstance(key, tuple) else (key,)
            values = [k._value if isinstance(k, Tensor) else k for k in (x, *keys, *rest)]
            if not learn_sizes([v for v in values if isinstance(v, Value)], name):
                raise
            return function(x, key, *rest)
    except Error as error:
        error.locate(operator=name, device=x.stack.device.spec.id, line=show_line(user_line()))
        raise


def set_item(x: Value, key: Any, value: Any, mode: str = "set") -> Value:
    """x with x[key] changed by value (a number, a tensor, a host array) in one of the CHANGES: a new value."""
    found = copied_and_written(x, key, value) if mode == "set" else None
    if found is not None:
        return found
    try:
        new = operand(value, x.stack, x.dtype if is_inexact(x.dtype) else None)
    except Error as error:
        error.locate(operator="setitem", device=x.stack.device.spec.id, line=show_line(user_line()))
        raise
    return _knowing_sizes("setitem", _written, x, key, new, mode)


def _read(x: Value, key: Any) -> Value:
    shape = x.shape
    keys, arrays = _expanded(key, len(shape))
    static = is_static(shape)
    if not static:
        x, keys = _clipped(x, keys)
    if arrays:
        y = gathering.read(x, gathering.taken_apart(x, keys))
    else:
        y = ranges.read(x, ranges.ranges(x, keys, shape if static else None))
    if y.array is not None and GET_ITEM not in x.stack.accepted:
        accept_items(x.stack, GET_ITEM)
    return y


def _clipped(x: Value, keys: list[Any]) -> tuple[Value, list[Any]]:
    """Slices of axes whose length depends on data taken beforehand, by positions, which are as many as there are."""
    out = list(keys)
    for i, axis in _places(x, keys):
        x = F.take(x, ranges.places_within(x, keys[i], axis), axis=axis)
        out[i] = ranges.FULL
    return x, out


def _places(x: Value, keys: list[Any]) -> list[tuple[int, int]]:
    """The keys that have to be clipped, each with its axis; none where the shape can be told."""
    axes = np.cumsum([0, *map(_axes, keys)])
    sliced = [(i, int(axes[i])) for i, k in enumerate(keys) if isinstance(k, slice)]
    found = [(i, axis) for i, axis in sliced if ranges.clipped_at(x.shape[axis], keys[i])]
    return [] if not found or is_static(shape_of(x)) else found


@by_shapes
def _written(x: Value, key: Any, value: Any, mode: str) -> Value:
    keys, arrays = _expanded(key, x.ndim)
    if not is_static(x.shape):
        keys, arrays = _by_positions(x, keys, arrays)
    new = _numeric(value, x)
    if mode == "divide" and not is_inexact(x.dtype):
        raise DTypeError(f"quotients are floats, which {x.spec} cannot hold", hint="cast it with astype")
    if not arrays:
        cut = ranges.ranges(x, keys)
        new = gathering.spread(new, cut.shape)
        y = ranges.write(x, cut, new if mode == "set" else CHANGES[mode](ranges.read(x, cut), new))
        if y.array is not None and SET_ITEM not in x.stack.accepted:
            accept_items(x.stack, SET_ITEM)
        return y
    mask = _only_mask(x, keys)
    if mask is not None and (new.ndim <= x.ndim - mask.ndim or new.shape == x.shape):
        y = _masked(x, mask, new, mode)
    else:
        y = _scattered(x, gathering.taken_apart(x, keys), new, mode)
    if y.array is not None and SET_ITEM not in x.stack.accepted:
        accept_items(x.stack, SET_ITEM)
    return y


def _by_positions(x: Value, keys: list[Any], arrays: bool) -> tuple[list[Any], bool]:
    """A slice that has to be clipped as an array of positions, where it stands alone."""
    found = _places(x, keys)
    if not found:
        return keys, arrays
    (i, axis), *others = found
    if others or arrays or any(not (k is Ellipsis or ranges.is_full(k)) for j, k in enumerate(keys) if j != i):
        raise NotSupportedError(f"slice {keys[i]} of axis {axis} of {x.spec}, whose length depends on data, beside "
                                "others", hint="write in two steps, or where a mask says so")
    return [*keys[:i], Tensor(ranges.places_within(x, keys[i], axis)), *keys[i + 1 :]], True


def _scattered(x: Value, apart: gathering.Gather, new: Value, mode: str) -> Value:
    """An element that is meant several times is changed as often; of equal indices "set" takes the last."""
    if mode == "subtract":
        return gathering.write(x, apart, F.negative(new), "add")
    if mode not in ("divide", "power"):
        return gathering.write(x, apart, new, mode)
    changed = CHANGES[mode](x, gathering.write(F.full_like(x, 1), apart, new, "multiply"))
    if not is_complex(x.dtype):
        return changed
    nowhere = F.cast(F.zeros_like(x), dtype=boolean)
    meant = gathering.write(nowhere, apart, F.number(True, boolean, x), "set")
    return F.where(meant, changed, x)  # z ** 1 is not z to the last bit


def _only_mask(x: Value, keys: list[Any]) -> Value | None:
    """The mask for the first axes of x that a key is, beside full slices."""
    if not gathering.is_mask(keys[0]) or not all(k is Ellipsis or ranges.is_full(k) for k in keys[1:]):
        return None
    mask = gathering.device_value(keys[0], x)
    if mask.shape != x.shape[: mask.ndim]:
        raise ShapeError(f"a mask {mask.spec} does not fit {x.spec}")
    return mask


def _masked(x: Value, mask: Value, new: Value, mode: str) -> Value:
    """No element has to be counted: the value is one for all, or has one for each element of x."""
    whole = F.reshape(mask, shape=(*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    if mode in BY_FACTORS:
        new = F.where(whole, new, 1)  # a power of what is not chosen need not exist, and neither its derivative
    changed = F.where(whole, CHANGES[mode](x, new), x)
    if changed.shape != x.shape:
        raise ShapeError(f"{new.spec} does not fit the elements of {x.spec} that a mask chooses")
    return changed


def _numeric(value: Any, like: Value) -> Value:
    """A value of x's dtype, as NumPy assigns."""
    if isinstance(value, Value):
        return value if value.dtype == like.dtype else F.cast(value, dtype=like.dtype)
    return F.number(value, like.dtype, like)


def _expanded(key: Any, ndim: int) -> tuple[list[Any], bool]:
    """The key with a full slice for each axis that is not mentioned, and whether there are arrays in it.

    An ellipsis stays before the slices that it stands for: it keeps arrays apart.
    """
    keys = key if isinstance(key, tuple) else (key,)
    arrays = any(map(gathering.is_array, keys))
    if arrays:
        keys = tuple(map(gathering.as_array, keys))
    used, ellipses, at = 0, 0, len(keys)
    for i, k in enumerate(keys):
        if k is Ellipsis:
            ellipses, at = ellipses + 1, i
        elif k is not None:
            used += _axes(k) if arrays else 1
    if used > ndim:
        raise OutOfRangeError(f"{used} indices for {ndim} dimensions")
    if ellipses > 1:
        raise OperandError("an index has at most one ...")
    marked = [Ellipsis] if arrays and ellipses else []
    return [*keys[:at], *marked, *[ranges.FULL] * (ndim - used), *keys[at + 1 :]], arrays


def _axes(k: Any) -> int:
    """The number of axes that a key speaks of."""
    if k is None or k is Ellipsis:
        return 0
    return int(k.ndim) if gathering.is_mask(k) else 1


class At:
    """`x.at`: functional updates of items."""

    __slots__ = ("_x",)

    def __init__(self, x: Tensor) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> AtKey:
        return AtKey(self._x, key)


class AtKey:
    """`x.at[key]`: where an array of indices means an element several times, all of its changes are made."""

    __slots__ = ("_key", "_x")

    def __init__(self, x: Tensor, key: Any) -> None:
        self._x, self._key = x, key

    def _changed(self, value: Any, mode: str) -> Tensor:
        return _changed(self._x, self._key, value, mode)

    def get(self) -> Tensor:
        """x[key]"""
        return self._x[self._key]

    def set(self, value: Any) -> Tensor:
        """x with x[key] = value; of equal indices the last one counts."""
        return self._changed(value, "set")

    def add(self, value: Any) -> Tensor:
        """x with value added at x[key]."""
        return self._changed(value, "add")

    def subtract(self, value: Any) -> Tensor:
        """x with value subtracted at x[key]."""
        return self._changed(value, "subtract")

    def multiply(self, value: Any) -> Tensor:
        """x with x[key] times value."""
        return self._changed(value, "multiply")

    def divide(self, value: Any) -> Tensor:
        """x with x[key] divided by value; by the product of all values where an element is meant several times."""
        return self._changed(value, "divide")

    def power(self, value: Any) -> Tensor:
        """x with x[key] to the power of value; of the product of all where an element is meant several times."""
        return self._changed(value, "power")

    def min(self, value: Any) -> Tensor:
        """x with the smaller of x[key] and value."""
        return self._changed(value, "min")

    def max(self, value: Any) -> Tensor:
        """x with the larger of x[key] and value."""
        return self._changed(value, "max")


@partial(postponable, like=one, name="setitem")
def _changed(x: Tensor, key: Any, value: Any, mode: str) -> Tensor:
    return Tensor(set_item(value_of(x), key, value, mode))
