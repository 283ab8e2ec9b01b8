"""Checks of layers: settings when they are made, inputs when they are called."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

from nnc_core.base.dtype import DType, is_inexact
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.nn.tree import ModuleNode
from nnc_core.symbol import show_line, user_line
from nnc_core.type import admit_numpy, default_float, whole

Int = int | Sequence[int]
WORDS = {1: "one dimension", 2: "two dimensions", 3: "three dimensions", 4: "four dimensions", 5: "five dimensions"}


# ---- settings
def at_least_one(module: str, **sizes: int) -> None:
    """Raise AttributeValueError for a size that is no positive integer."""
    _check_integers(module, 1, sizes)


def _check_integers(module: str, least: int, sizes: dict[str, Any]) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < least:
            raise AttributeValueError(f"{name} is {size!r}, expected an integer of at least {least}", operator=module)


def per_axis(module: str, name: str, value: Int, rank: int, least: int = 1) -> tuple[int, ...]:
    """One integer for each spatial dimension, from one for all or from a sequence of as many."""
    numbers = (value,) * rank if isinstance(value, int) else tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(numbers) != rank:
        raise AttributeValueError(f"{name} is {value!r}, expected an integer" + f" or {rank} of them" * (rank > 1),
                                  operator=module)
    _check_integers(module, least, {name if rank == 1 else f"{name}[{i}]": n for i, n in enumerate(numbers)})
    return numbers


def one_of(module: str, name: str, value: Any, choices: Collection[Any]) -> None:
    """Raise AttributeValueError for a value that is none of the choices."""
    if not isinstance(value, Hashable) or value not in choices:
        raise AttributeValueError(f"{name} {value!r} is none of {', '.join(map(str, choices))}", operator=module)


def within(module: str, low: float, high: float, **numbers: float) -> None:
    """Raise AttributeValueError for a number that is not low <= number < high."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not low <= number < high:
            raise AttributeValueError(f"{name} is {number!r}, expected {low} <= {name} < {high}", operator=module)


def float_dtype(module: str, dtype: Any) -> DType:
    """The dtype of weights: the default float where none is given."""
    found = default_float() if dtype is None else admit_numpy(dtype)
    if not is_inexact(found):
        raise DTypeError(f"weights of dtype {found}, expected floats", operator=module)
    return found


# ---- inputs
def title(module: ModuleNode) -> str:
    """The module with its settings, without its parts."""
    return f"{type(module).__name__}({module.describe()})"


def misfit(module: ModuleNode, x: Any, why: str, hint: str | None = None) -> ShapeError:
    """The error for an input that does not fit, at the user's line."""
    return ShapeError(f"the input is {getattr(x, 'spec', x)}, {why}", operator=title(module),
                      line=show_line(user_line()), hint=hint)


def check_rank(module: ModuleNode, x: Any, layout: str) -> None:
    """Raise ShapeError unless x has an axis for each letter of the layout."""
    if x.ndim != len(layout):
        raise misfit(module, x, f"expected {WORDS[len(layout)]}, {layout}")


def check_length(module: ModuleNode, x: Any, axis: int, length: int, what: str) -> None:
    """Raise ShapeError unless x has that axis, and it that length or one that is not known yet."""
    if not -x.ndim <= whole(axis, "axis") < x.ndim:
        raise misfit(module, x, f"which has no axis {axis} for the {what}")
    found = x.shape[axis]
    if isinstance(found, int) and found != length:
        raise misfit(module, x, f"its {what} (axis {axis % x.ndim}) should be {length}, not {found}")
