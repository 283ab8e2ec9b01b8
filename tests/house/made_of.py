"""Which operators a function is made of, read from its code: what it and the functions that it calls take from F."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import cache
from itertools import pairwise
from types import CodeType, FunctionType
from typing import Any

from nnc_core.operator import OPERATORS
from nnc_core.type import Op

OURS = ("nnc_core.functions", "nnc_core.operator")
"""Where functions are followed to: what is outside of it is machinery."""


def operator_of(function: Any) -> Op | None:
    """The operator that a public function is, if it is no more than that."""
    found = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    ops = [content for content in found if isinstance(content, Op)]
    return ops[0] if len(ops) == 1 and not any(isinstance(c, FunctionType) for c in found) else None


def made_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of operators, sorted."""
    return tuple(sorted(_operators(function)))


@cache
def _operators(function: Any) -> frozenset[str]:
    found: set[str] = set()
    seen: set[int] = set()
    waiting = [function]
    while waiting:
        f = waiting.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        if (op := operator_of(f)) is not None:
            found.add(op.name)
        for code in _codes(f.__code__):
            found |= _taken_from_namespace(code)
        waiting += _called(f)
    return frozenset(found)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """With those of inner functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _taken_from_namespace(code: CodeType) -> set[str]:
    """The operators X of all F.X."""
    steps = [(step.opname, step.argval) for step in get_instructions(code)]
    taken = {name for (_, loaded), (does, name) in pairwise(steps)
             if does in ("LOAD_ATTR", "LOAD_METHOD") and "F" in (loaded, *_last(loaded))}
    return {name.rstrip("_") for name in taken} & OPERATORS.keys()


def _last(loaded: Any) -> tuple[Any, ...]:
    """Some versions of Python load two variables in one step."""
    return loaded[-1:] if isinstance(loaded, tuple) else ()


def _called(f: FunctionType) -> Iterator[FunctionType]:
    """What its code names, what it wraps, what it closes over and its defaults."""
    names = {name for code in _codes(f.__code__) for name in code.co_names}
    near = [f.__globals__.get(name) for name in names]
    near += [cell.cell_contents for cell in f.__closure__ or () if _is_full(cell)]
    for x in (*near, getattr(f, "__wrapped__", None)):
        if isinstance(x, FunctionType) and x.__module__.startswith(OURS):
            yield x


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - empty cells raise
    except ValueError:
        return False
    return True
