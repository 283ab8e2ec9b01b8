"""The tree of modules: found by attribute name, walked without recursion, everything once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from nnc_core.base.errors import StateError
from nnc_core.random.generator import Generator
from nnc_core.values.cell import Cell

_PLAIN = frozenset((bool, int, float, str, type(None)))
"""Classes of most attributes, which hold no part of a tree."""
_OWN = frozenset(("_construction", "_before_forward", "_after_forward"))
"""Attributes that modules have by themselves, and replace as a whole."""
_numbers = count(1)
_changes = [0]
_known: WeakKeyDictionary[ModuleNode, tuple[int, dict[str, Cell]]] = WeakKeyDictionary()
"""Cells of trees by their root, and the number of the last change when they were found."""


class ModuleNode:
    """A node of the tree of modules: `Module` derives from it."""

    def describe(self) -> str:
        """The text between the brackets of repr: subclasses name their settings."""
        return ""


class ModulePlace(NamedTuple):
    """A module where it was found; the root has path and name "" and depth 0."""

    module: ModuleNode
    path: str
    name: str
    depth: int


def walk(root: ModuleNode) -> Iterator[ModulePlace]:
    """All modules in the order of definition; a shared one at its first place only."""
    for place, _ in _with_entries(root):
        yield place


def _with_entries(root: ModuleNode) -> Iterator[tuple[ModulePlace, list[tuple[str, Any]]]]:
    """`walk`, with the entries of each module."""
    seen: set[int] = set()
    waiting = [ModulePlace(root, "", "", 0)]
    while waiting:
        place = waiting.pop()
        if id(place.module) in seen:
            continue
        seen.add(id(place.module))
        found = list(entries(place.module))
        yield place, found
        waiting += [ModulePlace(x, join(place.path, name), name, place.depth + 1)
                    for name, x in reversed(found) if isinstance(x, ModuleNode)]


def cells_of(root: ModuleNode) -> dict[str, Cell]:
    """Parameters and buffers by path; a shared one under its first name only.

    Training asks at each step: what was found holds until an attribute of some module is set."""
    known = _known.get(root)
    if known is None or known[0] != _changes[0]:
        before, found = _changes[0], dict[Cell, str]()
        places = list(_with_entries(root))
        for place, held in places:
            for name, x in held:
                if isinstance(x, Cell):
                    found.setdefault(x, join(place.path, name))
        known = before, {name: cell for cell, name in found.items()}
        if all([_is_settled(x) for place, _ in places for name, x in vars(place.module).items() if name not in _OWN]):
            _known[root] = known
    return dict(known[1])


def _is_settled(x: Any) -> bool:
    """Tell whether nothing can be put into an attribute unseen."""
    return not isinstance(x, (list, dict, set)) and (not isinstance(x, tuple) or all(map(_is_settled, x)))


def note_change() -> None:
    """An attribute of some module was set, or taken away."""
    _changes[0] = next(_numbers)


def join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def entries(module: ModuleNode) -> Iterator[tuple[str, Any]]:
    """The attributes that are part of the tree, tuples taken apart, a generator as the cell of its key."""
    for name, x in vars(module).items():
        if x.__class__ not in _PLAIN:
            yield from _entries(type(module).__name__, name, x)


def _entries(owner: str, name: str, x: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(x, (ModuleNode, Cell)):
        yield name, x
    elif isinstance(x, Generator):
        yield name, x.key
    elif isinstance(x, tuple):
        for i, part in enumerate(x):
            yield from _entries(owner, f"{name}.{i}", part)
    elif isinstance(x, (list, dict, set)):
        for part in x.values() if isinstance(x, dict) else x:
            if isinstance(part, (ModuleNode, Cell, Generator)):
                raise StateError(f"{owner}.{name} is a {type(x).__name__} that holds a {type(part).__name__}, "
                                 "which may change unseen", hint="make it a tuple or an nn.Sequential")
