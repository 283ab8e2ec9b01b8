"""jit: whatever way code spells what it reads, compiled code sees what is there at the call."""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import functools
import importlib
import inspect
import operator
import os
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import nnc_core as nnc
from nnc_core import nn

Change = Callable[[Any], Any]
Z = 2.0
KEY = "k"


class Plain:
    pass


class Found:
    """Attributes that are computed from a table."""

    def __init__(self) -> None:
        self.__dict__["table"] = {"k": 2.0}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["table"][name]
        except KeyError:
            raise AttributeError(name) from None


class Special:
    """Methods that are called without being named."""

    def __init__(self) -> None:
        self.number, self.count, self.truth, self.items = 2.0, 2, True, [2.0]

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.truth

    def __iter__(self) -> Any:
        return iter(self.items)

    def __contains__(self, x: Any) -> bool:
        return x in self.items

    def __float__(self) -> float:
        return self.number

    def __mul__(self, other: float) -> float:
        return self.number * other

    def __eq__(self, other: object) -> bool:
        return self.number == other

    __hash__ = None  # type: ignore[assignment]


class Meta(type):
    @property
    def k(cls) -> Any:
        return cls._k  # type: ignore[attr-defined]


class Made(metaclass=Meta):
    _k = 2.0


class Descriptor:
    def __get__(self, owner: Any, cls: Any = None) -> Any:
        return owner.held


class Described:
    k = Descriptor()

    def __init__(self) -> None:
        self.held = 2.0


@dataclasses.dataclass
class Record:
    k: float = 2.0


class Called(nn.Module):
    """A module that defines how it is called, not forward, and has other methods."""

    def __init__(self) -> None:
        self.k = 2.0

    def __call__(self, x: Any) -> Any:
        return x * self.k

    def other(self, x: Any) -> Any:
        return x * self.k


class Forwarded(nn.Module):
    def __init__(self) -> None:
        self.k = 2.0

    def forward(self, x: Any) -> Any:
        return x * self.k


def defaulted(x: Any, k: float = 2.0) -> Any:
    return x * k


def keyword(x: Any, *, k: float = 2.0) -> Any:
    return x * k


def attribute(holder: Any) -> Change:
    return lambda v: setattr(holder, "k", v)


def set_global(v: Any) -> None:
    globals()["Z"] = v


def plain(**attributes: Any) -> Any:
    made = Plain()
    vars(made).update({"k": 2.0} | attributes)
    return made


imported = types.ModuleType("tests_imported_module")
imported.__file__ = __file__
imported.k = 2.0  # type: ignore[attr-defined]
context: contextvars.ContextVar[float] = contextvars.ContextVar("context", default=2.0)
c, inner, found, special, described, record = plain(more=0.0), plain(), Found(), Special(), Described(), Record()
c.inner = inner
table: dict[str, Any] = {"k": 2.0}
called, forwarded = Called(), Forwarded()
reference, references = weakref.ref(c), weakref.WeakValueDictionary({"c": c})
get, get_inner = operator.attrgetter("k"), operator.attrgetter("inner.k")
chained, proxy = collections.ChainMap(table), types.MappingProxyType(table)
applied = functools.partial(lambda x, k: x * k, k=2.0)


def labelled() -> None:
    pass


labelled.k = 2.0  # type: ignore[attr-defined]


def set_key(v: Any) -> None:
    table["k"] = v


SPELLINGS: dict[str, tuple[Callable[..., Any], Change]] = {
    "getattr": (lambda x: x * getattr(c, "k"), attribute(c)),  # noqa: B009
    "getattr with a default": (lambda x: x * getattr(c, "absent", 2.0), lambda v: setattr(c, "absent", v)),
    "getattr by a variable": (lambda x: x * getattr(c, KEY), attribute(c)),
    "getattr by a computed name": (lambda x: x * getattr(c, "".join(["k"])), attribute(c)),
    "getattr in a comprehension": (lambda x: x * sum(getattr(c, n) for n in ("k", "more")), attribute(c)),
    "getattr handed on": (lambda x: x * functools.reduce(getattr, ["inner", "k"], c), attribute(inner)),
    "hasattr": (lambda x: x * (3.0 if hasattr(c, "later") else 2.0), lambda v: setattr(c, "later", v)),
    "vars": (lambda x: x * vars(c)["k"], attribute(c)),
    "__dict__": (lambda x: x * c.__dict__["k"], attribute(c)),
    "__dict__.get": (lambda x: x * c.__dict__.get("k"), attribute(c)),
    "attrgetter": (lambda x: x * operator.attrgetter("k")(c), attribute(c)),
    "attrgetter in a variable": (lambda x: x * get(c), attribute(c)),
    "attrgetter of a path": (lambda x: x * get_inner(c), attribute(inner)),
    "globals": (lambda x: x * globals()["Z"], set_global),
    "globals.get": (lambda x: x * globals().get("Z"), set_global),
    "sys.modules": (lambda x: x * sys.modules[__name__].Z, set_global),
    "import_module": (lambda x: x * importlib.import_module("tests_imported_module").k, attribute(imported)),
    "__getattr__": (lambda x: x * found.k, lambda v: found.table.__setitem__("k", v)),
    "getattr_static": (lambda x: x * inspect.getattr_static(c, "k"), attribute(c)),
    "__getattribute__": (lambda x: x * object.__getattribute__(c, "k"), attribute(c)),
    "defaults": (lambda x: defaulted(x), lambda v: setattr(defaulted, "__defaults__", (v,))),
    "keyword defaults": (lambda x: keyword(x), lambda v: setattr(keyword, "__kwdefaults__", {"k": v})),
    "a weak reference": (lambda x: x * reference().k, attribute(c)),
    "weak references": (lambda x: x * references["c"].k, attribute(c)),
    "asdict": (lambda x: x * dataclasses.asdict(record)["k"], attribute(record)),
    "a context variable": (lambda x: x * context.get(), lambda v: context.set(v)),
    "environ": (lambda x: x * float(os.environ["NNC_TEST_K"]), lambda v: os.environ.update(NNC_TEST_K=str(v))),
    "getenv": (lambda x: x * float(os.getenv("NNC_TEST_K", "")), lambda v: os.environ.update(NNC_TEST_K=str(v))),
    "a property of a metaclass": (lambda x: x * Made.k, lambda v: setattr(Made, "_k", v)),
    "a descriptor": (lambda x: x * described.k, lambda v: setattr(described, "held", v)),
    "a chain of dicts": (lambda x: x * chained["k"], set_key),
    "a view of a dict": (lambda x: x * proxy["k"], set_key),
    "a module that defines __call__": (lambda x: called(x), attribute(called)),
    "that module itself": (called, attribute(called)),
    "another method of a module": (lambda x: called.other(x), attribute(called)),
    "methodcaller": (lambda x: operator.methodcaller("other", x)(called), attribute(called)),
    "an attribute of a module": (lambda x: x * forwarded.k, attribute(forwarded)),
    "forward by name": (lambda x: forwarded.forward(x), attribute(forwarded)),
    "an attribute of a function": (lambda x: x * labelled.k, attribute(labelled)),  # type: ignore[attr-defined]
    "partial": (lambda x: applied(x), lambda v: applied.keywords.__setitem__("k", v)),
    "len": (lambda x: x * len(special), lambda v: setattr(special, "count", int(v))),
    "bool": (lambda x: x * (2.0 if special else 3.0), lambda v: setattr(special, "truth", v == 2.0)),
    "iter": (lambda x: x * sum(special), lambda v: setattr(special, "items", [v])),
    "in": (lambda x: x * (2.0 if 2.0 in special else 3.0), lambda v: setattr(special, "items", [v])),
    "float": (lambda x: x * float(special), lambda v: setattr(special, "number", v)),
    "an operator": (lambda x: x * (special * 1.0), lambda v: setattr(special, "number", v)),
    "a comparison": (lambda x: x * (2.0 if special == 2.0 else 3.0), lambda v: setattr(special, "number", v)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_there_at_the_call(device: str, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NNC_TEST_K", "2.0")
    monkeypatch.setitem(sys.modules, imported.__name__, imported)
    f, change = SPELLINGS[spelling]
    compiled, x = nnc.jit(f), nnc.asarray([1.0])
    try:
        for value in (2.0, 2.0, 7.0, 9.0):
            if value != 2.0:
                change(value)
            assert compiled(x).item() == f(x).item()
        assert compiled.traces <= 3
    finally:
        change(2.0)
