"""Which variables, attributes and items the code of a function can read: a walk by the names in the code.

Only the user's own code is walked through: this package watches what it reads by guards, and what is installed in the
interpreter's libraries is taken for constant.
"""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Iterable, Mapping, Set
from dis import get_instructions
from functools import lru_cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from nnc_core.base.line import HOUSE
from nnc_core.tracing.scope import MISSING, Closed, Contents, Elements, Item, Place, Slot
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

_STANDARD = str(Path(os.__file__).parent) + "/"
_IMPLICIT = frozenset(("__call__", "__init__", "__post_init__", "__getattr__", "__enter__", "__exit__", "forward"))
"""Methods that are called without being named."""
_CONTAINERS = (list, dict, set, deque, tuple, frozenset)
_SIMPLE = (int, float, complex, str, bytes, type(None), Tensor, Cell, np.generic, np.dtype)


def places(roots: Iterable[Any], but: Iterable[Any] = ()) -> dict[Any, Place]:
    """All places that code reached from these functions and objects can read, by keys that are the same each time it is
    asked; what is reached through `but` alone is left out."""
    barred = frozenset(id(x) for x in but)
    names: frozenset[str] = frozenset()
    while True:  # an attribute may lead to code that names more attributes
        walk = _Walk(names, barred)
        walk.run(roots)
        if walk.names == names:
            return walk.found
        names = frozenset(walk.names)


def asks_for_int(roots: Iterable[Any]) -> bool:
    """Whether the code asks if something is an int: sizes with names are none."""
    walk = _Walk(frozenset(), frozenset())
    walk.run(roots)
    return any(map(_asks_for_int, walk.codes))


class _Walk:
    """One walk with the names of attributes that are known so far."""

    def __init__(self, names: Set[str], barred: Set[int]) -> None:
        self.known, self.barred = names, barred
        self.names = set(names)
        self.codes: list[CodeType] = []
        self.found: dict[Any, Place] = {}
        self.seen: set[int] = set()
        self.pending: deque[tuple[Any, str]] = deque()

    def run(self, roots: Iterable[Any]) -> None:
        self.pending.extend((x, getattr(x, "__qualname__", type(x).__name__)) for x in roots)
        while self.pending:
            x, text = self.pending.popleft()
            if isinstance(x, _SIMPLE) or id(x) in self.seen or id(x) in self.barred:
                continue
            self.seen.add(id(x))
            self._visit(x, text)

    def _visit(self, x: Any, text: str) -> None:
        if isinstance(x, FunctionType):
            self._function(x)
        elif isinstance(x, MethodType):
            self._later((x.__self__, _named(x.__self__)), (x.__func__, text))
        elif isinstance(x, partial):
            self._later(*[(y, text) for y in (x.func, *x.args, *x.keywords.values())])
        elif isinstance(x, (property, staticmethod, classmethod)):
            self._later((getattr(x, "fget", None) or getattr(x, "__func__", None), text))
        elif isinstance(x, _CONTAINERS):
            self._container(x, text)
        elif isinstance(x, np.ndarray):
            self.found["elements", id(x)] = Elements(x, f"elements of {text}")
        elif isinstance(x, ModuleType):
            if _is_users(getattr(x, "__file__", None)):
                self._attributes(x, vars(x), x.__name__)
        elif isinstance(x, type):
            self._class(x)
        else:
            self._object(x)

    def _later(self, *found: tuple[Any, str]) -> None:
        self.pending.extend(found)

    # ---- code
    def _function(self, f: FunctionType) -> None:
        if not _is_users(f.__code__.co_filename):  # a wrapper perhaps, such as `nnc.grad` gives
            self._later(*[(Closed(cell, "").read(), f.__qualname__) for cell in f.__closure__ or ()])
            return
        self.codes.append(f.__code__)
        codes = _nested(f.__code__)
        written = _written(f.__code__)
        for name in {name for code in codes for name in code.co_names}:
            self.names.add(name)
            if name in f.__globals__:
                self._place(("global", id(f.__globals__), name), Item(f.__globals__, name, f"global `{name}`"), written)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._place(("closed", id(cell), name), Closed(cell, f"variable `{name}`"), written)
        self._later(*[(x, f"defaults of {f.__name__}") for x in (f.__defaults__ or ())],
                    *[(x, f"defaults of {f.__name__}") for x in (f.__kwdefaults__ or {}).values()])

    def _place(self, key: Any, place: Item | Closed | Slot, written: Set[str] = frozenset()) -> None:
        value = place.read()
        name = key[2]
        if name not in written and not _is_library(value):
            self.found[key] = place
        self._later((value, place.text))

    # ---- data
    def _container(self, x: Any, text: str) -> None:
        if not isinstance(x, (tuple, frozenset)):
            self.found["items", id(x)] = Contents(x, f"items of {text}")
        items = [*x.keys(), *x.values()] if isinstance(x, dict) else list(x)
        self._later(*[(y, f"an item of {text}") for y in items if not isinstance(y, _SIMPLE)])

    def _object(self, x: Any) -> None:
        cls = type(x)
        inner = getattr(x, "__dict__", None)
        if hasattr(cls, "_read_version"):  # a module: it watches itself which attributes it has
            self._later(*[(y, f"{name} of {cls.__name__}") for name, y in (inner or {}).items()])
        elif not _is_house(cls):
            self._attributes(x, inner or {}, cls.__name__)
            self._slots(x, cls)
        else:
            self._later(*[(y, cls.__name__) for y in (inner or {}).values() if callable(y)])
        self._class(cls, x)

    def _attributes(self, x: Any, namespace: Mapping[str, Any], owner: str) -> None:
        for name in self.known & namespace.keys():
            self._place(("attribute", id(x), name), Item(namespace, name, f"{name} of {owner}"))

    def _slots(self, x: Any, cls: type) -> None:
        for c in cls.__mro__:
            for name in self.known & vars(c).keys():
                if isinstance(vars(c)[name], MemberDescriptorType):
                    self._place(("attribute", id(x), name), Slot(x, name, f"{name} of {cls.__name__}"))

    def _class(self, cls: type, x: Any = None) -> None:
        """What instances find in their classes, and may have themselves later."""
        for c in cls.__mro__:
            if c is object or not _is_users(_file_of(c)):
                continue
            for name in (self.known | _IMPLICIT) & vars(c).keys():
                y = vars(c)[name]
                if isinstance(y, MemberDescriptorType):
                    continue
                if isinstance(y, (FunctionType, property, staticmethod, classmethod)):
                    self._later((y, name))
                    continue
                self._place(("attribute", id(c), name), Item(vars(c), name, f"{name} of {c.__name__}"))
                own = getattr(x, "__dict__", None)
                if own is not None and name not in own and not hasattr(cls, "_read_version"):
                    self.found["attribute", id(x), name] = Item(own, name, f"{name} of {cls.__name__}")


# ---- code objects
@lru_cache(maxsize=1024)
def _nested(code: CodeType) -> tuple[CodeType, ...]:
    """The code with that of the functions and comprehensions inside."""
    found = [code]
    for c in found:
        found += [x for x in c.co_consts if isinstance(x, CodeType)]
    return tuple(found)


@lru_cache(maxsize=1024)
def _written(code: CodeType) -> frozenset[str]:
    """Variables of its surroundings that the code itself gives values to."""
    return frozenset(str(i.argval) for c in _nested(code) for i in get_instructions(c)
                     if i.opname in ("STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"))


@lru_cache(maxsize=1024)
def _asks_for_int(code: CodeType) -> bool:
    for c in _nested(code):
        asks = not {"isinstance", "type", "__class__"}.isdisjoint(c.co_names) or any(
            i.opname == "MATCH_CLASS" for i in get_instructions(c))
        if asks and not {"int", "integer", "Integral", "Number"}.isdisjoint(c.co_names):
            return True
    return False


# ---- whose it is
@lru_cache(maxsize=4096)
def _is_users(file: str | None) -> bool:
    if file is None or file.startswith((HOUSE, _STANDARD, "<frozen")):
        return False
    return "/site-packages/" not in file and "/dist-packages/" not in file


@lru_cache(maxsize=1024)
def _file_of(cls: type) -> str | None:
    try:
        return inspect.getfile(cls)
    except (TypeError, OSError):
        return "" if cls.__module__ == "__main__" else None


def _is_house(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "nnc_core"


def _is_library(x: Any) -> bool:
    """Modules, and functions and classes of the libraries, which nobody exchanges."""
    if x is MISSING or isinstance(x, ModuleType):
        return True
    if isinstance(x, FunctionType):
        return not _is_users(x.__code__.co_filename)
    return isinstance(x, type) and not _is_users(_file_of(x))


def _named(x: Any) -> str:
    return type(x).__name__
