"""Effects of Python code during a trace that compiled code will not repeat: counts, draws, clocks.

A log that is written and never read, a table that is only added to, are no concern: their writing is not part of the
result.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import JitWarning
from nnc_core.symbol import users_frame
from nnc_core.tracing.bytecode import is_read, line_of
from nnc_core.tracing.captured import CapturedName, Contents
from nnc_core.tracing.captures import Captures

_NUMBERS = (int, float, complex, str, bytes, np.generic)


class RandomSource(NamedTuple):
    """A source of random numbers and its state before the trace."""

    read: Callable[[], Any]
    before: Any


def states(walk: Captures) -> list[RandomSource]:
    """The sources of random numbers that code can reach, as they are now."""
    return [RandomSource(read, read()) for read in map(_state_of, walk.generators.values())]


def _state_of(x: Any) -> Callable[[], Any]:
    if isinstance(x, random.Random):
        return x.getstate
    if isinstance(x, np.random.RandomState):
        return lambda: _hashed(x.get_state(legacy=False))
    return lambda: repr(x.bit_generator.state)


def _hashed(state: dict[str, Any]) -> Any:
    inner = state["state"]
    return inner["key"].tobytes(), inner["pos"], state["has_gauss"]


def baked(walk: Captures, changed: Iterable[tuple[Any, CapturedName, Any]], drawn: Iterable[RandomSource]) -> list[str]:
    """Effects that the results of the trace hold and later calls will not repeat, as text with its place."""
    codes = walk.codes
    said = [f"it changes {place.text}{_at(codes, name)}"
            for name, place in _counted(codes, changed)]
    if any(d.read() != d.before for d in drawn):
        said.append(f"Python draws random numbers{_at(codes, 'random', 'rng', 'generator')}")
    said += [f"it reads the clock `{name}`{_at(codes, name, 'time')}" for name in dict.fromkeys(walk.clocks)]
    said += [f"it advances the iterator `{name}`{_at(codes, 'next', name)}" for name in dict.fromkeys(walk.iterators)]
    said += [f"`{name}` finds variables by names that are computed (at {Path(file).name}:{line})"
             for file, line, name in dict.fromkeys(walk.unseen)]
    return said


def _counted(codes: list[CodeType],
             changed: Iterable[tuple[Any, CapturedName, Any]]) -> Iterator[tuple[str, CapturedName]]:
    """The things that were changed and are read too."""
    for key, place, before in changed:
        now = place.read()
        if isinstance(place, Contents):
            name = _variable(place.text)
            counts = isinstance(place.container, list) or any(
                isinstance(a, _NUMBERS) and a != b for a, b in zip(before, now, strict=False))
        else:
            name = str(key[-1])
            counts = isinstance(before, _NUMBERS) and isinstance(now, _NUMBERS)
        if counts and is_read(codes, name):
            yield name, place


def _variable(text: str) -> str:
    """The name of a container, as its text has it."""
    quoted = text.split("`")
    return quoted[1] if len(quoted) > 1 else text.removeprefix("items of ").partition(" ")[0]


def _at(codes: list[CodeType], *names: str) -> str:
    found = next((line for line in (line_of(codes, name) for name in names) if line is not None), None)
    if found is None and codes:
        found = codes[0].co_filename, codes[0].co_firstlineno
    return "" if found is None else f" (at {Path(found[0]).name}:{found[1]})"


def warn(name: str, said: list[str]) -> None:
    """One JitWarning about a function."""
    warnings.warn(f"{name!r} does once, while it is traced, what each call should do: {'; '.join(said)}.  Compiled "
                  "code holds what was found then.  Pass such values as arguments, keep state in nnc.Cell, and draw "
                  "with nnc.Generator", JitWarning, stacklevel=users_frame())
