"""Regions of one storage: parts of a larger array, and whether two arrays have bytes in common."""

from __future__ import annotations

from nnc_core.base.layout import Layout


def part(whole: Layout, axis: int, begin: int, length: int) -> Layout:
    """The elements from `begin` on along an axis."""
    shape = (*whole.shape[:axis], length, *whole.shape[axis + 1 :])
    offset = whole.offset + (begin * whole.strides[axis] if length else 0)
    return Layout(shape, whole.dtype, offset, whole.strides)


def same_elements(a: Layout, b: Layout) -> bool:
    """Tell whether both see the same elements in the same order; strides that nobody steps along do not matter."""
    if (a.shape, a.dtype) != (b.shape, b.dtype):
        return False
    return 0 in a.shape or (a.offset == b.offset and all(
        n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True)))


def apart(a: Layout, b: Layout) -> bool:
    """Tell whether no byte belongs to both, as far as can be proved: always for parts of one array cut along its axes.

    Each address is written in digits whose places are the strides of both, so that an array is a box of digits; boxes
    without an overlap along some digit have none.
    """
    if 0 in a.shape or 0 in b.shape:
        return True
    steps = [_steps(a), _steps(b)]
    if any(s < 0 for found in steps for s in found):
        return _outside(a, b)
    places = sorted(steps[0].keys() | steps[1].keys(), reverse=True)
    boxes = [_box(x, found, places) for x, found in zip((a, b), steps, strict=True)]
    if boxes[0] is None or boxes[1] is None:
        return _outside(a, b)
    return any(high < low or top < bottom for (low, top), (bottom, high) in zip(boxes[0], boxes[1], strict=True))


def _steps(x: Layout) -> dict[int, int]:
    """Count how often each stride is taken."""
    found: dict[int, int] = {}
    for n, s in zip(x.shape, x.strides, strict=True):
        if n > 1 and s:
            found[s] = found.get(s, 0) + n - 1
    return found


def _box(x: Layout, steps: dict[int, int], places: list[int]) -> list[tuple[int, int]] | None:
    """First and last digit at each place, then the first and last byte of an element; None if a digit carries."""
    rest, box = x.offset, []
    for place in places:
        digit, rest = divmod(rest, place)
        box.append((digit, digit + steps.get(place, 0)))
    box.append((rest, rest + x.dtype.itemsize - 1))
    reach = box[-1][1] + 1
    for place, (_, last) in zip(reversed(places), reversed(box[:-1]), strict=True):
        if reach > place:
            return None
        reach += last * place
    return box


def _outside(a: Layout, b: Layout) -> bool:
    """Tell whether one ends before the other begins."""
    return a.extent <= _begin(b) or b.extent <= _begin(a)


def _begin(x: Layout) -> int:
    return x.offset + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s < 0)
