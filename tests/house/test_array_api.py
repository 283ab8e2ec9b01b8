"""nnc_core holds to the Array API standard: names, parameters, the array object and how its parts hang together."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.house.array_api import ATTRIBUTES, CONSTANTS, DTYPES, FUNCTIONS, INSPECTION, METHODS


def found(name: str) -> Any:
    """What a dotted name stands for in nnc; None if there is nothing."""
    return reduce(lambda value, part: getattr(value, part, None), name.split("."), nnc)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_there(name: str) -> None:
    assert callable(found(name)), f"the standard wants nnc.{name}"
    outer, _, last = name.rpartition(".")
    namespace = found(outer) if outer else nnc
    assert last in getattr(namespace, "__all__", dir(namespace))


def parameters(text: str) -> Mapping[str, inspect.Parameter]:
    scope: dict[str, Any] = {}
    exec(f"def function({text}): ...", scope)
    return inspect.signature(scope["function"]).parameters


def takes(function: Any, wanted: Mapping[str, inspect.Parameter]) -> str:
    """What of the wanted parameters a function does not take; "" if nothing."""
    mine = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in mine.values()):
        return ""
    positional = [p for p in mine.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = {n: p for n, p in mine.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    for place, (name, p) in enumerate(wanted.items()):
        if p.kind is p.VAR_POSITIONAL:
            if not any(q.kind is q.VAR_POSITIONAL for q in mine.values()):
                return f"*{name}"
        elif p.kind is not p.KEYWORD_ONLY and place >= len(positional):
            return f"{name} by position"
        elif p.kind is p.KEYWORD_ONLY and name not in by_name:
            return f"{name}="
        elif p.kind is p.KEYWORD_ONLY and by_name[name].default != p.default:
            return f"{name}={p.default!r}"
    needed = [q for q in mine.values() if q.default is q.empty and q.kind not in (q.VAR_POSITIONAL, q.VAR_KEYWORD)]
    return "" if len(needed) <= len(wanted) else f"nothing for {needed[-1]}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_the_standard_gives_them(name: str) -> None:
    missing = takes(found(name), parameters(FUNCTIONS[name]))
    assert not missing, f"nnc.{name} does not take {missing}"


def test_the_checker_sees_what_is_missing() -> None:
    wanted = parameters("x, /, *, axis=None, keepdims=False")
    assert takes(lambda x: x, wanted) == "axis=" and takes(lambda x, axis=0, keepdims=False: x, wanted) == "axis=None"
    assert takes(lambda: 0, wanted) == "x by position" and takes(lambda x, axis=None, keepdims=False: x, wanted) == ""
    assert takes(lambda x, y, z, w, axis=None, keepdims=False: x, wanted).startswith("nothing for w")
    assert takes(lambda x: x, parameters("*arrays")) == "*arrays"


def test_constants_and_dtypes() -> None:
    assert [name for name in (*CONSTANTS, *DTYPES) if not hasattr(nnc, name)] == []
    assert nnc.newaxis is None and np.isnan(nnc.nan) and nnc.inf > 1e308
    assert all(np.dtype(getattr(nnc, name)).name == name for name in DTYPES)


@pytest.mark.parametrize("name", METHODS)
def test_the_array_object_has_methods(name: str) -> None:
    assert callable(getattr(nnc.Tensor, name))


def test_the_array_object_has_attributes() -> None:
    x = nnc.ones((2, 3))
    assert [name for name in ATTRIBUTES if not hasattr(x, name)] == []
    assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, nnc.float32)
    assert x.T.shape == x.mT.shape == (3, 2)
    assert x.device == x.to_device(x.device).device == nnc.empty_like(x).device


def test_the_array_object_knows_its_namespace() -> None:
    xp = nnc.ones(1).__array_namespace__(api_version="2024.12")
    assert xp is nnc and xp.__array_api_version__ == "2024.12"
    info = xp.__array_namespace_info__()
    assert all(callable(getattr(info, name)) for name in INSPECTION)


def test_arrays_become_python_numbers() -> None:
    assert (bool(nnc.asarray(2)), int(nnc.asarray(2.5)), float(nnc.asarray(2)), complex(nnc.asarray(2.5))) == (
        True, 2, 2.0, 2.5 + 0j)
    assert complex(nnc.asarray(1 + 2j, device="strict:0")) == 1 + 2j and [1, 2, 3][nnc.asarray(1)] == 2
