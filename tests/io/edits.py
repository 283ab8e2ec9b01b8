"""Every single edit of a JSON value: what a file might hold that is whole and still wrong."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

WRONG: tuple[Any, ...] = (None, True, -1, 5, 1.5, float("nan"), "x", "", [], [[]], {}, {"x": 1})


def edits(whole: Any) -> Iterator[tuple[str, Any]]:
    """(what was done, the value) for each place: removed, doubled in a list, an unknown key added, or something else
    put there."""
    for place in _places(whole):
        for wrong in WRONG:
            yield f"{place} = {wrong!r}", _changed(whole, place, lambda owner, key, x=wrong: _put(owner, key, x))
        if place:
            yield f"{place} removed", _changed(whole, place, lambda owner, key: owner.pop(key))
        found = _at(whole, place)
        if isinstance(found, dict):
            yield f"{place} with more", _changed(whole, place, lambda o, k, x=found: _put(o, k, {**x, "unknown": 1}))
        if isinstance(found, list) and found:
            yield f"{place} doubled", _changed(whole, place, lambda o, k, x=found: _put(o, k, [*x, *x]))


def _places(x: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, list) else ()
    for key, part in parts:
        yield from _places(part, (*path, key))


def _at(whole: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        whole = whole[key]
    return whole


def _changed(whole: Any, path: tuple[Any, ...], change: Any) -> Any:
    """A copy along the path; what is beside it is shared."""
    owner = [whole]
    keys = [0, *path]
    found: Any = owner
    for key in keys[:-1]:
        found[key] = copy(found[key])
        found = found[key]
    change(found, keys[-1])
    return owner[0]


def _put(owner: Any, key: Any, x: Any) -> None:
    owner[key] = x
