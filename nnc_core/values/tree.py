"""Nested structures of tensors: dicts, lists, tuples (named ones too), dataclasses with tensors or host arrays in them
and None, with anything else as leaves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nnc_core.values.tensor import Tensor


class Structure(NamedTuple):
    """A structure without its leaves; hashable, so that it can be part of a key."""

    kind: Any  # None for a leaf, else the container's type
    keys: tuple[Hashable, ...] = ()
    parts: tuple[Structure, ...] = ()


LEAF = Structure(None)


@dataclass(frozen=True)
class _Defaulting:
    """The kind of dicts that make what is missing."""

    kind: type[defaultdict[Any, Any]]
    factory: Any


def leaf_names(structure: Structure, name: str) -> Iterator[str]:
    """The names of the leaves: "x", or "x.0" and "x.mask" in structures."""
    if structure.kind is None:
        yield name
    for key, part in zip(structure.keys or range(len(structure.parts)), structure.parts, strict=True):
        yield from leaf_names(part, f"{name}.{key}")


def flatten(tree: Any, *, sort: bool = True) -> tuple[list[Any], Structure]:
    """Leaves from left to right, and the rest; dicts in the order of their sorted keys, or as they are."""
    leaves: list[Any] = []
    return leaves, _walk(tree, leaves, sort)


def _walk(tree: Any, leaves: list[Any], sort: bool) -> Structure:
    if tree.__class__ is Tensor:
        leaves.append(tree)
        return LEAF
    if tree is None:
        return Structure(type(None))
    if isinstance(tree, dict):
        keys = _sorted(tree) if sort else tuple(tree)
        kind = _Defaulting(type(tree), tree.default_factory) if isinstance(tree, defaultdict) else type(tree)
        return Structure(kind, keys, tuple([_walk(tree[k], leaves, sort) for k in keys]))
    if isinstance(tree, (list, tuple)):
        return Structure(type(tree), (), tuple([_walk(x, leaves, sort) for x in tree]))
    fields = getattr(type(tree), "__dataclass_fields__", None)
    if fields is not None and _has_tensors(tree, fields):
        names = tuple([name for name in fields if hasattr(tree, name)])
        return Structure(type(tree), names, tuple([_walk(getattr(tree, k), leaves, sort) for k in names]))
    leaves.append(tree)
    return LEAF


def _sorted(tree: Mapping[Any, Any]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(tree, key=lambda k: (str(type(k)), k)))
    except TypeError:  # keys of one type that has no order
        return tuple(sorted(tree, key=lambda k: (str(type(k)), repr(k))))


def _has_tensors(tree: Any, fields: Mapping[str, Any]) -> bool:
    return any(isinstance(x, (Tensor, np.ndarray)) for name in fields
               for x in flatten(getattr(tree, name, None), sort=False)[0])


def unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    """The structure with these leaves."""
    kind, keys, parts = structure
    if kind is None:
        return next(leaves)
    if kind is type(None):
        return None
    built = [unflatten(p, leaves) for p in parts]
    if isinstance(kind, _Defaulting):
        return kind.kind(kind.factory, zip(keys, built, strict=True))
    if issubclass(kind, dict):
        empty: dict[Any, Any] = kind.__new__(kind)
        return _filled(empty, keys, built)
    if hasattr(kind, "__dataclass_fields__"):
        return _made(kind, keys, built)
    return kind(*built) if hasattr(kind, "_fields") else kind(built)


def _filled(made: dict[Any, Any], keys: tuple[Any, ...], values: list[Any]) -> dict[Any, Any]:
    """Item by item: what a subclass does with a sequence of pairs is its own affair."""
    for key, value in zip(keys, values, strict=True):
        made[key] = value
    return made


def _made(kind: type, names: tuple[Any, ...], values: list[Any]) -> Any:
    """A dataclass with these fields, without running its own code on them: it may expect arrays."""
    made: Any = object.__new__(kind)
    for name, value in zip(names, values, strict=True):
        object.__setattr__(made, name, value)
    return made


def leaf_count(structure: Structure) -> int:
    return 1 if structure.kind is None else sum(map(leaf_count, structure.parts))


def spread(prefix: Any, structure: Structure) -> list[Any]:
    """Something for each leaf of a structure, by a tree that is like its beginning; ValueError where it is not.

    A dict stands for whatever has names, a list or tuple for either; anything else, None too, for all that is below it.
    """
    if isinstance(prefix, dict):
        if set(prefix) != set(structure.keys):
            raise ValueError(f"{prefix!r}, which has {len(prefix)} names, for {_described(structure)}")
        return [x for key, part in zip(structure.keys, structure.parts, strict=True) for x in spread(prefix[key], part)]
    if isinstance(prefix, (list, tuple)):
        if structure.keys or structure.kind is None or len(prefix) != len(structure.parts):
            raise ValueError(f"{prefix!r}, which has {len(prefix)} entries, for {_described(structure)}")
        return [x for below, part in zip(prefix, structure.parts, strict=True) for x in spread(below, part)]
    return [prefix] * leaf_count(structure)


def _described(structure: Structure) -> str:
    if structure.kind is None:
        return "a tensor"
    kind = getattr(structure.kind, "__name__", "dict")
    return f"{kind} of {', '.join(map(repr, structure.keys)) if structure.keys else len(structure.parts)}"


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """f on the leaves of trees that are alike."""
    leaves, structure = flatten(tree)
    others = [flatten(t)[0] for t in rest]
    return unflatten(structure, iter([f(*xs) for xs in zip(leaves, *others, strict=True)]))
