"""Captured names: variables outside of a function that its code reads, and attributes and items of what they hold.

Nobody says when a variable is given another value, so that compiled code looks at all of them before each call.  They
are found before the function is traced, by the names in its code and in the user's functions and classes that are
reached from there.  What the code changes itself, a list that it appends to, a count that it keeps, is none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from operator import is_
from types import CellType, FunctionType
from typing import Any, Protocol
from weakref import ref

import numpy as np

from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import unchanged
from nnc_core.values.value import Handle

MISSING = type("Missing", (), {"__repr__": lambda self: "nothing"})()
"""The value of a variable that is not there."""
PLAIN = (int, float, complex, str, bytes, type(None), tuple, frozenset, np.generic, np.dtype)
"""Values that are told apart by what they are; all others by which object they are."""


class CapturedName(Protocol):
    """Something that is read by name; its text says which."""

    text: str

    def read(self) -> Any:
        """The present value."""

    def same(self, now: Any, then: Any) -> bool:
        """True if code that was traced with `then` is right for `now`."""


class Item:
    """A name in a namespace: a global variable, an attribute."""

    def __init__(self, namespace: Mapping[str, Any], name: str, text: str) -> None:
        self.namespace, self.name, self.text = namespace, name, text

    def read(self) -> Any:
        return self.namespace.get(self.name, MISSING)

    def same(self, now: Any, then: Any) -> bool:
        return now is then or (isinstance(then, PLAIN) and unchanged(now, then))


class Closed:
    """A variable of a surrounding function."""

    def __init__(self, cell: CellType, text: str) -> None:
        self.cell, self.text = cell, text

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    same = Item.same


class Slot:
    """An attribute of an object without a dictionary."""

    def __init__(self, owner: Any, name: str, text: str) -> None:
        self.owner, self.name, self.text = owner, name, text

    def read(self) -> Any:
        return getattr(self.owner, self.name, MISSING)

    same = Item.same


class Contents:
    """The items of a list, a dict, a set."""

    def __init__(self, container: Iterable[Any], text: str) -> None:
        self.container, self.text = container, text

    def read(self) -> Any:
        c = self.container
        return (*c.keys(), *c.values()) if isinstance(c, Mapping) else tuple(c)

    def same(self, now: Any, then: Any) -> bool:
        if len(now) != len(then):
            return False
        return all(map(is_, now, then)) or all([a is b or (isinstance(b, PLAIN) and unchanged(a, b))
                                                for a, b in zip(now, then, strict=True)])


class Defaults:
    """The default values of a function's parameters."""

    def __init__(self, function: FunctionType, text: str) -> None:
        self.function, self.text = function, text

    def read(self) -> Any:
        f = self.function
        return (*(f.__defaults__ or ()), *f.__kwdefaults__.values()) if f.__kwdefaults__ else f.__defaults__ or ()

    same = Contents.same


class Referent:
    """The object that a weak reference leads to."""

    def __init__(self, reference: ref[Any], text: str) -> None:
        self.read, self.text = reference, text

    same = Item.same


class InContext:
    """The value of a context variable."""

    def __init__(self, variable: ContextVar[Any], text: str) -> None:
        self.variable, self.text = variable, text

    def read(self) -> Any:
        return self.variable.get(MISSING)

    same = Item.same


class Version:
    """The number of times that attributes of a network's module have been replaced."""

    def __init__(self, module: Any, text: str) -> None:
        self.module, self.text = module, text
        self.read = module._read_version

    same = Item.same


class Elements:
    """The elements of a host array; compared as bytes, so that a NaN is equal to itself."""

    def __init__(self, array: np.ndarray[Any, Any], text: str) -> None:
        self.array, self.text = array, text

    def read(self) -> Any:
        return self.array

    def same(self, now: Any, then: Any) -> bool:
        return now.shape == then.shape and now.dtype == then.dtype and np.array_equal(_bytes(now), _bytes(then))


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    packed = np.ascontiguousarray(array)
    if packed.dtype.hasobject:
        return np.array([id(x) for x in packed.flat])
    return packed.reshape(-1).view(np.uint8)


class Variable:
    """A variable with a tensor: another tensor of the same kind in it is read, and the code stays right."""

    def __init__(self, place: CapturedName) -> None:
        self.place = place

    @property
    def _value(self) -> Any:
        return self.place.read()._value


class CapturedNames:
    """Captured names and what was there when the code was traced."""

    def __init__(self, found: Mapping[Any, CapturedName], stored: Mapping[Any, CapturedName]) -> None:
        self.then: dict[Any, tuple[CapturedName, Any]] = {key: (place, _kept(place)) for key, place in found.items()}
        self.stored: dict[Any, tuple[CapturedName, Any]] = {key: (place, place.read())
                                                            for key, place in stored.items()}
        self.followed: dict[CapturedName, Tensor] = {}
        self._watched: tuple[tuple[Callable[[], Any], Any, CapturedName], ...] = ()

    def settle(self, still: Iterable[Any], guarded: Iterable[Any],
               looked_at: Callable[[Tensor], bool]) -> list[tuple[Any, CapturedName, Any]]:
        """The function has been traced: keep what it has not changed, is among `still`, and not among the modules that
        are `guarded`.  Gives what it has changed: key, name, and what was there.

        A tensor in a variable may be exchanged unless its elements were `looked_at`, or several variables lead to it.
        """
        still, known = set(still), {id(x) for x in guarded}
        now = {key: place.same(place.read(), value) for key, (place, value) in self.then.items()}
        kept = {key: (place, value) for key, (place, value) in self.then.items()
                if now[key] and key in still and not (isinstance(place, Version) and id(place.module) in known)}
        changed = [(key, place, value) for key, (place, value) in self.then.items() if not now[key]]
        changed += [(key, place, value) for key, (place, value) in self.stored.items()
                    if not place.same(place.read(), value)]
        self.then, self.stored = kept, {}
        ids = [id(value) for _, value in kept.values()]
        inner = {id(x) for place, value in kept.values() if isinstance(place, Contents) for x in value}
        for place, value in kept.values():
            if (isinstance(value, Tensor) and ids.count(id(value)) == 1 and id(value) not in inner
                    and not looked_at(value)):
                self.followed[place] = value
        self._watched = tuple([(place.read, value, place) for place, value in kept.values()])
        return changed

    def follow(self, tensor: Handle) -> Variable | Handle:
        """The place that a tensor from outside is read from at each call."""
        return next((Variable(place) for place, t in self.followed.items() if t is tensor), tensor)

    def holds(self) -> bool:
        """True if everything is as it was."""
        for read, then, place in self._watched:
            now = read()
            if now is not then and not place.same(now, then) and not self._is_followed(place, now):
                return False
        return True

    def _is_followed(self, place: CapturedName, now: Any) -> bool:
        return place in self.followed and isinstance(now, Tensor) and now._value.trace is None

    def changes(self) -> list[str]:
        """The changes, as "global `n`: 2 -> 3"."""
        said = []
        for read, then, place in self._watched:
            now = read()
            if now is not then and not place.same(now, then) and not self._is_followed(place, now):
                said.append(f"{place.text}{_shown(then, now)}")
        return said

    def __str__(self) -> str:
        return ", ".join(place.text for _, _, place in self._watched)

    def __len__(self) -> int:
        return len(self._watched)


def _kept(place: CapturedName) -> Any:
    value = place.read()
    return value.copy() if isinstance(place, Elements) else value


def _shown(then: Any, now: Any) -> str:
    if isinstance(then, (int, float, complex, str, type(None))):
        return f": {then!r} -> {now!r}"
    if isinstance(then, np.ndarray) and then.shape == getattr(now, "shape", None):
        return ": other elements"
    return ": other items" if type(then) is tuple else ": another object"
