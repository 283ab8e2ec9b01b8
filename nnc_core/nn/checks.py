"""What constructors of layers check."""

from __future__ import annotations

from nnc_core.base.errors import AttributeValueError


def at_least_one(module: str, **sizes: int) -> None:
    """Raise AttributeValueError for a size that is no positive integer."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise AttributeValueError(f"{name} is {size!r}, expected an integer of at least 1", operator=module)


def as_pair(module: str, name: str, value: int | tuple[int, int]) -> tuple[int, int]:
    """(height, width) from one number for both or from a pair of positive integers."""
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2:
        raise AttributeValueError(f"{name} is {value!r}, expected an integer or a pair of them", operator=module)
    at_least_one(module, **{f"{name} ({axis})": size for axis, size in zip(("height", "width"), pair, strict=True)})
    return pair
