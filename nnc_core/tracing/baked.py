"""Effects of Python code during a trace that compiled code will not repeat: counts, draws, clocks.

A log that is written and never read, a table that is only added to, are no concern: their writing is not part of the
result.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from io import BytesIO, StringIO
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import JitWarning
from nnc_core.symbol import users_frame
from nnc_core.tracing.bytecode import is_read, line_of
from nnc_core.tracing.captured import CapturedName, Contents, Elements
from nnc_core.tracing.captures import Captures

_NUMBERS = (int, float, complex, str, bytes, np.generic)


class Source(NamedTuple):
    """Something that is drawn or read from, and its state before the trace."""

    said: str
    names: tuple[str, ...]
    """What the code may call it."""
    read: Callable[[], Any]
    before: Any


_DRAWS = "Python draws random numbers"


def states(walk: Captures) -> list[Source]:
    """The sources of random numbers and the files that code can reach, as they are now."""
    drawn = [_source(_DRAWS, ("random", "rng", "generator"), _state_of(x)) for x in walk.generators.values()]
    return drawn + [_source("it reads on in a file", ("read", "readline", "next"), partial(_place_in, x))
                    for x in walk.files.values()]


def _source(said: str, names: tuple[str, ...], read: Callable[[], Any]) -> Source:
    return Source(said, names, read, read())


def _place_in(file: Any) -> Any:
    """Return how far reading has come, so that writing at the end changes nothing; None where nobody can tell."""
    try:
        if isinstance(file, (StringIO, BytesIO)):
            return file.tell() - len(file.getvalue())
        return file.tell() if file.readable() and not file.writable() else None
    except (OSError, ValueError):
        return None


def _state_of(x: Any) -> Callable[[], Any]:
    if isinstance(x, random.Random):
        return x.getstate
    if isinstance(x, np.random.RandomState):
        return lambda: _hashed(x.get_state(legacy=False))
    return lambda: repr(x.bit_generator.state)


def _hashed(state: dict[str, Any]) -> Any:
    inner = state["state"]
    return inner["key"].tobytes(), inner["pos"], state["has_gauss"]


def baked(walk: Captures, changed: Iterable[tuple[Any, CapturedName, Any]], drawn: Iterable[Source]) -> list[str]:
    """Effects that the results of the trace hold and later calls will not repeat, as text with its place."""
    codes = walk.codes
    said = [f"it changes {place.text}{_at(codes, name)}"
            for name, place in _counted(codes, changed, walk.steppers)]
    said += dict.fromkeys(f"{d.said}{_at(codes, *d.names)}" for d in drawn if d.read() != d.before)
    if walk.entropy:
        said.append(f"{_DRAWS}{_at(codes, *map(_variable, walk.entropy))}")
    said += [f"it reads the clock `{name}`{_at(codes, name, 'time')}" for name in dict.fromkeys(walk.clocks)]
    said += [f"it advances the iterator `{name}`{_at(codes, 'next', name)}"
             for name in dict.fromkeys(map(_variable, walk.iterators))]
    said += [f"`{name}` finds variables by names that are computed (at {Path(file).name}:{line})"
             for file, line, name in dict.fromkeys(walk.unseen)]
    return said


def _counted(codes: list[CodeType], changed: Iterable[tuple[Any, CapturedName, Any]],
             steppers: Set[int]) -> Iterator[tuple[str, CapturedName]]:
    """The things that were changed and are read too."""
    for key, place, before in changed:
        name = _variable(place.text) if isinstance(place, (Contents, Elements)) else str(key[-1])
        if _counts(key, place, before, steppers) and (key[0] == "environment" or is_read(codes, name)):
            yield name, place


def _counts(key: Any, place: CapturedName, before: Any, steppers: Set[int]) -> bool:
    """True unless what was changed is a table that is filled, or something that is looked for once."""
    if isinstance(place, Contents):
        return _has_moved(place.container, before, place.read())
    if isinstance(place, Elements) or key[0] == "environment":
        return True
    if key[0] == "attribute" and key[1] in steppers:
        return True
    return isinstance(before, _NUMBERS) and isinstance(place.read(), _NUMBERS)


def _has_moved(container: Any, before: tuple[Any, ...], now: tuple[Any, ...]) -> bool:
    """True if items have gone, if a number has become another, or if the container counts or keeps an order."""
    if isinstance(container, Set):
        return not set(before) <= set(now)
    if not isinstance(container, Mapping):
        return True
    if isinstance(container, Counter) or getattr(container, "default_factory", None) in (int, float):
        return True
    old, new = (dict(zip(x[: len(x) // 2], x[len(x) // 2 :], strict=True)) for x in (before, now))
    return any(k not in new or (isinstance(v, _NUMBERS) and v is not new[k] and v != new[k]) for k, v in old.items())


def _variable(text: str) -> str:
    """The name of something, as its text has it."""
    quoted = text.split("`")
    if len(quoted) > 1:
        return quoted[1]
    return text.removeprefix("items of ").removeprefix("elements of ").partition(" ")[0]


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
