"""Objects that the code of a function can read besides its arguments: a walk by the names in the code.

Only the user's own code is walked through: this package watches what it reads by guards, and what is installed in the
interpreter's libraries is taken for constant.
"""

from __future__ import annotations

import array
import inspect
import operator
import os
import queue
import random
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextvars import ContextVar
from functools import lru_cache, partial
from io import IOBase
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any

import numpy as np

from nnc_core.base.line import HOUSE
from nnc_core.tracing.bytecode import asks_for_int as code_asks_for_int
from nnc_core.tracing.bytecode import naming
from nnc_core.tracing.captured import (
    MISSING,
    CapturedName,
    Closed,
    Contents,
    Defaults,
    Elements,
    InContext,
    Item,
    Referent,
    Slot,
    Version,
)
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

_STANDARD = str(Path(os.__file__).parent) + "/"
_CONTAINERS = (list, dict, set, deque, tuple, frozenset, bytearray, array.array)
_SIMPLE = (int, float, complex, str, bytes, type(None), Tensor, Cell, np.generic, np.dtype)
_CLOCKS = frozenset(("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time",
                     "process_time_ns", "now", "today", "utcnow"))


def captures(roots: Iterable[Any], but: Iterable[Any] = ()) -> Captures:
    """All that code reached from these functions and objects can read; what is reached through `but` alone is left
    out."""
    barred = frozenset(id(x) for x in but)
    names, strings, every = set[str](), set[str](), False
    while True:  # an attribute may lead to code that names more attributes
        walk = Captures(names, strings, every, barred)
        walk.run(roots)
        if (walk.names, walk.strings, walk.every) == (names, strings, every):
            return walk
        names, strings, every = walk.names, walk.strings, walk.every


def asks_for_int(roots: Iterable[Any]) -> bool:
    """True if the code asks if something is an int: sizes with names are none."""
    walk = Captures(frozenset(), frozenset(), False, frozenset())
    walk.run(roots)
    return any(map(code_asks_for_int, walk.codes))


class Captures:
    """One walk with the names of attributes that are known so far."""

    def __init__(self, names: Set[str], strings: Set[str], every: bool, barred: Set[int]) -> None:
        self.known, self.sought, self.every, self.barred = names | strings, strings, every, barred
        self.names, self.strings = set(names), set(strings)
        self.codes: list[CodeType] = []
        self.found: dict[Any, CapturedName] = {}
        """By keys that are the same each time it is asked."""
        self.stored: dict[Any, CapturedName] = {}
        """Variables that the code gives values to."""
        self.generators: dict[int, Any] = {}
        """Sources of random numbers."""
        self.iterators: list[str] = []
        """Texts of iterators of Python's and of libraries."""
        self.steppers: set[int] = set()
        """Iterators that the user has written."""
        self.files: dict[int, IOBase] = {}
        self.entropy: list[str] = []
        self.clocks: list[str] = []
        self.unseen: list[tuple[str, int, str]] = []
        """File, line and name of lookups that cannot be followed."""
        self._seen: set[int] = set()
        self._pending: deque[tuple[Any, str]] = deque()

    def run(self, roots: Iterable[Any]) -> None:
        """Walk from these."""
        pending = self._pending
        pending.extend([(x, getattr(x, "__qualname__", type(x).__name__)) for x in roots])
        while pending:
            x, text = pending.popleft()
            if isinstance(x, _SIMPLE) or id(x) in self._seen or id(x) in self.barred:
                continue
            self._seen.add(id(x))
            kind: type = type(x)
            if isinstance(x, Iterator) and not isinstance(x, IOBase):
                if _is_users(_file_of(kind)):
                    self.steppers.add(id(x))
                else:
                    self.iterators.append(text)
            _visitor(kind)(self, x, text)

    def _later(self, *found: tuple[Any, str]) -> None:
        self._pending.extend(found)

    # ---- code
    def function(self, f: FunctionType, text: str) -> None:
        """Its variables, its defaults, and what it names."""
        if not _is_users(f.__code__.co_filename):  # a wrapper perhaps, such as `nnc.grad` gives
            self._later(*[(Closed(cell, "").read(), f.__qualname__) for cell in f.__closure__ or ()])
            return
        said = naming(f.__code__)
        self.codes += said.codes
        self.names |= said.names
        self.strings |= said.strings
        self.every |= said.every
        self.entropy += [name for name in sorted(said.entropy) if _is_library(f.__globals__.get(name, MISSING))
                         or isinstance(f.__globals__[name], (BuiltinFunctionType, MethodType))]
        self.unseen += [(f.__code__.co_filename, *found) for found in said.unseen]
        for name in (said.names | said.strings) & f.__globals__.keys():
            self._place(("global", id(f.__globals__), name), Item(f.__globals__, name, f"global `{name}`"), said.stored)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self._place(("closed", id(cell), name), Closed(cell, f"variable `{name}`"), said.stored)
        self._outside(said.names, said.strings)
        if f.__defaults__ or f.__kwdefaults__:
            place = Defaults(f, f"defaults of {f.__name__}")
            self.found["defaults", id(f)] = place
            positional = f.__code__.co_varnames[: f.__code__.co_argcount][-len(f.__defaults__ or ()) :]
            named = (*(positional if f.__defaults__ else ()), *(f.__kwdefaults__ or ()))
            self._later(*[(x, f"default `{name}` of {f.__name__}")
                          for name, x in zip(named, place.read(), strict=True)])
        if f.__dict__ or self.sought:
            self._attributes(f, f.__dict__, f.__name__)

    def _outside(self, names: Set[str], strings: Set[str]) -> None:
        """Modules that are imported inside of code, and the environment."""
        by_string = not {"modules", "__import__", "import_module"}.isdisjoint(names)
        self._later(*[(sys.modules[name], name) for name in (names | strings if by_string else names)
                      if name in sys.modules])
        if "environ" in names or "getenv" in names:
            for name in strings:
                self.found["environment", 0, name] = Item(os.environ, name, f"environment variable `{name}`")

    def method(self, x: MethodType, text: str) -> None:
        """The function and the object."""
        self._later((x.__self__, type(x.__self__).__name__), (x.__func__, text))

    def partial(self, x: partial[Any], text: str) -> None:
        """The function and its arguments."""
        self.found["items", id(x.keywords)] = Contents(x.keywords, f"keywords of {text}")
        self._later(*[(y, text) for y in (x.func, *x.args, *x.keywords.values())])

    def wrapped(self, x: Any, text: str) -> None:
        """The function that a property, a static method or a class method is made of."""
        self._later((getattr(x, "fget", None) or getattr(x, "__func__", None), text))

    def builtin(self, x: BuiltinFunctionType, text: str) -> None:
        """A method of an object, perhaps of a source of random numbers, or a clock."""
        if x.__module__ == "time" and x.__name__ in _CLOCKS:
            self.clocks.append(x.__name__)
        if not isinstance(x.__self__, (ModuleType, type(None))):
            self._later((x.__self__, text))

    def getter(self, x: Any, text: str) -> None:
        """Attributes that `operator.attrgetter` and `operator.methodcaller` name."""
        arguments = x.__reduce__()[1]
        self.strings |= {part for s in arguments if isinstance(s, str) for part in s.split(".")}

    def _place(self, key: Any, place: Item | Closed | Slot, stored: Set[str] = frozenset()) -> None:
        value = place.read()
        if key[2] in stored:
            self.stored[key] = place
        elif not _is_library(value):
            self.found[key] = place
        self._later((value, place.text))

    # ---- data
    def container(self, x: Any, text: str) -> None:
        """Items, and what they are."""
        if not isinstance(x, (tuple, frozenset)):
            self.found["items", id(x)] = Contents(x, f"items of {text}")
        items = [*x.keys(), *x.values()] if isinstance(x, Mapping) else list(x)
        self._later(*[(y, f"an item of {text}") for y in items if not isinstance(y, _SIMPLE)])

    def array(self, x: np.ndarray[Any, Any], text: str) -> None:
        """The elements of a host array."""
        self.found["elements", id(x)] = Elements(x, f"elements of {text}")

    def reference(self, x: weakref.ref[Any], text: str) -> None:
        """Follow a weak reference to its object."""
        self.found["referent", id(x)] = Referent(x, text)
        self._later((x(), text))

    def in_context(self, x: ContextVar[Any], text: str) -> None:
        """The value of a context variable."""
        self.found["context", id(x)] = place = InContext(x, f"context variable `{x.name}`")
        self._later((place.read(), place.text))

    def generator(self, x: Any, text: str) -> None:
        """A source of random numbers."""
        if isinstance(x, random.SystemRandom):
            self.entropy.append(text)
        else:
            self.generators[id(x)] = x

    def file(self, x: IOBase, text: str) -> None:
        """An open file, which is read from where it was left."""
        self.files[id(x)] = x

    def queue(self, x: queue.Queue[Any], text: str) -> None:
        """The items of a queue."""
        self._later((x.queue, text))

    def module(self, x: ModuleType, text: str) -> None:
        """The attributes of the user's modules, and which numbers and clocks a library's offers."""
        if _is_users(getattr(x, "__file__", None)):
            self._attributes(x, vars(x), x.__name__)
        elif x is random:
            self._later((getattr(random, "_inst", None), text))
        elif x is np.random or (x is np and "random" in self.known):
            self._later((np.random.mtrand._rand, text))
        elif x.__name__ in ("time", "datetime"):
            self.clocks += sorted(_CLOCKS & self.known)[:1]

    def instance(self, x: Any, text: str) -> None:
        """The attributes of an object, and the code of its class."""
        cls: type = type(x)
        inner = getattr(x, "__dict__", None) or {}
        if hasattr(cls, "_read_version"):  # a module of a network counts the changes of its attributes
            if not _is_house(cls) or not self.known.isdisjoint(inner):
                self.found["version", id(x)] = Version(x, f"attributes of {cls.__name__}")
            self._later(*[(y, f"{name} of {cls.__name__}") for name, y in inner.items()])
        elif _is_house(cls):
            self._later(*[(y, cls.__name__) for y in inner.values() if callable(y)])
        else:
            self._attributes(x, inner, cls.__name__)
            self._slots(x, cls)
        self.klass(cls, "", x)
        if isinstance(x, Mapping) and not _is_house(cls) and not _is_users(_file_of(cls)):
            self.container(x, text)

    def _attributes(self, x: Any, namespace: Mapping[str, Any], owner: str) -> None:
        known: Set[str] = self.known & namespace.keys()
        cls: type = type(x)
        if isinstance(x, FunctionType) or (not isinstance(x, ModuleType) and _is_users(_file_of(cls))):
            known = namespace.keys() if self.every else known
            for name in self.sought - namespace.keys():  # it may be there later
                self.found["attribute", id(x), name] = Item(namespace, name, f"{name} of {owner}")
        for name in known:
            self._place(("attribute", id(x), name), Item(namespace, name, f"{name} of {owner}"))

    def _slots(self, x: Any, cls: type) -> None:
        for c in cls.__mro__:
            for name in vars(c).keys() if self.every else self.known & vars(c).keys():
                if isinstance(vars(c)[name], MemberDescriptorType):
                    self._place(("attribute", id(x), name), Slot(x, name, f"{name} of {cls.__name__}"))

    def klass(self, cls: type, text: str, x: Any = None) -> None:
        """Follow what instances find in their classes, and may have themselves later."""
        own = getattr(x, "__dict__", None)
        for c in cls.__mro__:
            if c is object or not _is_users(_file_of(c)):
                continue
            for name in self.sought - vars(c).keys():
                self.found["attribute", id(c), name] = Item(vars(c), name, f"{name} of {c.__name__}")
            for name in (self.known & vars(c).keys()) | _implicit(c):
                y = vars(c)[name]
                if isinstance(y, MemberDescriptorType):
                    continue
                if isinstance(y, (FunctionType, property, staticmethod, classmethod)):
                    self._later((y, name))
                    continue
                self._place(("attribute", id(c), name), Item(vars(c), name, f"{name} of {c.__name__}"))
                if own is not None and name not in own and not hasattr(cls, "_read_version"):
                    self.found["attribute", id(x), name] = Item(own, name, f"{name} of {cls.__name__}")
        meta: type = type(cls)
        if meta is not type and _is_users(_file_of(meta)):
            self.klass(meta, text)


Visit = Callable[[Captures, Any, str], None]
_VISITS: tuple[tuple[Any, Visit], ...] = (
    (FunctionType, Captures.function), (MethodType, Captures.method), (partial, Captures.partial),
    ((property, staticmethod, classmethod), Captures.wrapped), (_CONTAINERS, Captures.container),
    (np.ndarray, Captures.array), (ModuleType, Captures.module), (type, Captures.klass),
    ((operator.attrgetter, operator.methodcaller), Captures.getter), (weakref.ref, Captures.reference),
    (ContextVar, Captures.in_context), (BuiltinFunctionType, Captures.builtin),
    ((random.Random, np.random.Generator, np.random.RandomState), Captures.generator),
    (IOBase, Captures.file), (queue.Queue, Captures.queue), (object, Captures.instance))
"""What is done with each kind of object; the first that fits."""


@lru_cache(maxsize=4096)
def _visitor(cls: Any) -> Visit:
    return next(visit for kind, visit in _VISITS if issubclass(cls, kind))


# ---- whose it is
def _implicit(cls: type) -> frozenset[str]:
    """Methods that are called without being named."""
    return frozenset([name for name, x in vars(cls).items() if isinstance(x, FunctionType)
                      and (name == "forward" or (name[:2] == "__" and name[-2:] == "__"))])


@lru_cache(maxsize=4096)
def _is_users(file: str | None) -> bool:
    if file is None or file.startswith((HOUSE, _STANDARD, "<frozen")):
        return False
    return "/site-packages/" not in file and "/dist-packages/" not in file


@lru_cache(maxsize=1024)
def _file_of(cls: Any) -> str | None:
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
