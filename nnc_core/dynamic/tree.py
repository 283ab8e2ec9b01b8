"""Nested structures of tensors: dicts, lists, tuples (named ones too) and None, with anything else as leaves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple


class Structure(NamedTuple):
    """What a structure is without its leaves; hashable, so that it can be part of a key."""

    kind: Any  # None for a leaf, else the container's type
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()


LEAF = Structure(None)


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Leaves from left to right, and the rest; dicts in the order of their sorted keys."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves)


def _walk(tree: Any, leaves: list[Any]) -> Structure:
    if tree is None:
        return Structure(type(None))
    if isinstance(tree, dict):
        keys = sorted(tree, key=lambda k: (str(type(k)), k))
        return Structure(type(tree), tuple(keys), tuple(_walk(tree[k], leaves) for k in keys))
    if isinstance(tree, (list, tuple)):
        return Structure(type(tree), (), tuple(_walk(x, leaves) for x in tree))
    leaves.append(tree)
    return LEAF


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The structure with these leaves."""
    kind, keys, parts = structure
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    built = [unflatten(p, leaves) for p in parts]
    if issubclass(kind, dict):
        return kind(zip(keys, built, strict=True))
    return kind(*built) if hasattr(kind, "_fields") else kind(built)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """f on the leaves of trees that are alike."""
    leaves, structure = flatten(tree)
    others = [flatten(t)[0] for t in rest]
    return unflatten(structure, iter([f(*xs) for xs in zip(leaves, *others, strict=True)]))
