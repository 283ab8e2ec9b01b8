"""Names in the code of a function, read from its bytecode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dis import Instruction, get_instructions
from functools import lru_cache
from itertools import pairwise
from types import CodeType
from typing import NamedTuple

_BY_STRING = frozenset(("getattr", "hasattr", "getattr_static", "__getattribute__", "attrgetter", "methodcaller"))
"""Functions that find an attribute by a string."""
_NAMESPACES = frozenset(("vars", "__dict__", "globals", "environ", "modules"))
"""Mappings whose keys are names."""
_OTHERS = frozenset(("getenv", "__import__", "import_module"))
_NEXT = {"__dict__": 2, "environ": 2, "getenv": 1}
"""How many instructions further a name stands that is a constant."""
_WHOLE = frozenset(("asdict", "astuple", "fields", "dir", "getmembers"))
"""Functions that read all attributes."""
_RUN = frozenset(("eval", "exec"))
_ENTROPY = frozenset(("urandom", "getrandom", "SystemRandom", "randbelow", "randbits", "token_bytes", "token_hex",
                      "token_urlsafe", "uuid1", "uuid4"))
_SEEDED = frozenset(("default_rng", "RandomState", "Random"))
"""Sources of random numbers that are another one each time if they are given no seed."""
_LOOKUPS = _BY_STRING | _NAMESPACES | _OTHERS | _WHOLE | _RUN
_GLOBAL_LOOKUPS = frozenset(("globals", "environ", "getenv"))
_MUTATORS = frozenset(("append", "appendleft", "extend", "add", "insert", "update", "clear", "discard", "remove"))


class Naming(NamedTuple):
    """Names in code and everything nested in it."""

    codes: tuple[CodeType, ...]
    names: frozenset[str]
    """Of globals, attributes and modules."""
    stored: frozenset[str]
    """Variables of its surroundings that the code itself gives values to."""
    strings: frozenset[str]
    """Names in its string constants, where code finds things by strings."""
    every: bool
    """Whether it finds attributes by names that it computes."""
    unseen: tuple[tuple[int, str], ...]
    """Line and name of what finds variables by names that it computes."""
    entropy: frozenset[str]
    """Functions that give what nobody can foresee."""


@lru_cache(maxsize=1024)
def naming(code: CodeType) -> Naming:
    """The names in this code."""
    codes = nested(code)
    names = frozenset(name for c in codes for name in c.co_names)
    listed = [instructions(c) for c in codes]
    stored = frozenset(str(i.argval) for one in listed for i in one
                       if i.opname in ("STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL", "DELETE_DEREF"))
    entropy = (names & _ENTROPY) | frozenset(name for one in listed for name in _unseeded(one))
    if _LOOKUPS.isdisjoint(names):
        return Naming(codes, names, stored, frozenset(), False, (), entropy)
    strings = frozenset(part for c in codes for s in _strings(c.co_consts) for part in s.split(".")
                        if part.isidentifier())
    computed = [found for one in listed for found in _computed(one)]
    every = not _WHOLE.isdisjoint(names) or any(name in _BY_STRING or name in ("vars", "__dict__")
                                                for _, name in computed)
    unseen = tuple((line, name) for line, name in computed if name in _GLOBAL_LOOKUPS | _RUN)
    return Naming(codes, names, stored, strings, every, unseen, entropy)


@lru_cache(maxsize=1024)
def instructions(code: CodeType) -> tuple[Instruction, ...]:
    """The instructions that matter here."""
    return tuple([i for i in get_instructions(code) if i.opname not in ("PRECALL", "PUSH_NULL", "CACHE", "NOP")])


@lru_cache(maxsize=1024)
def nested(code: CodeType) -> tuple[CodeType, ...]:
    """The code with that of the functions and comprehensions inside."""
    found = [code]
    for c in found:
        found += [x for x in c.co_consts if isinstance(x, CodeType)]
    return tuple(found)


@lru_cache(maxsize=1024)
def asks_for_int(code: CodeType) -> bool:
    """True if code asks if something is an int."""
    for c in nested(code):
        asks = not {"isinstance", "type", "__class__"}.isdisjoint(c.co_names) or any(
            i.opname == "MATCH_CLASS" for i in instructions(c))
        if asks and not {"int", "integer", "Integral", "Number"}.isdisjoint(c.co_names):
            return True
    return False


def line_of(codes: Sequence[CodeType], name: str) -> tuple[str, int] | None:
    """The file and the line that first give a value to a name, or name it where none does."""
    found: tuple[str, int] | None = None
    for c in codes:
        line = c.co_firstlineno
        for i in instructions(c):
            line = i.positions.lineno or line if i.positions else line
            if name == i.argval:
                if i.opname.startswith("STORE"):
                    return c.co_filename, line
                found = found or (c.co_filename, line)
    return found


def is_read(codes: Sequence[CodeType], name: str) -> bool:
    """True if code reads what is called so for anything but changing it."""
    return sum(_uses(c, name) for c in codes) > 0


@lru_cache(maxsize=1024)
def _uses(code: CodeType, name: str) -> int:
    """Loads of a name without those that a change of it needs, as `n += 1`, `x.append(1)` and `x[i] = 1` do."""
    count, before = 0, instructions(code)
    for k, i in enumerate(before):
        argument = i.argval if isinstance(i.argval, tuple) else (i.argval,)
        if name not in argument or i.opname == "LOAD_CONST":
            continue
        if i.opname.startswith("STORE"):
            count -= _is_update(before[:k])
        elif i.opname.startswith("LOAD") and not _is_mutated(before[k + 1 : k + 5]):
            count += 1
    return count


def _is_update(before: Sequence[Instruction]) -> bool:
    last = next((i for i in reversed(before) if i.opname != "SWAP"), None)
    return last is not None and last.opname == "BINARY_OP" and last.argrepr.endswith("=")


def _is_mutated(after: Sequence[Instruction]) -> bool:
    """True if what was loaded is the list, dict or set that the following instructions change."""
    if after and after[0].opname in ("LOAD_METHOD", "LOAD_ATTR"):
        return after[0].argval in _MUTATORS
    return len(after) > 1 and after[0].opname.startswith("LOAD") and after[1].opname in ("COPY", "STORE_SUBSCR")


def _strings(constants: Sequence[object]) -> Iterator[str]:
    for x in constants:
        if isinstance(x, str):
            yield x
        elif isinstance(x, (tuple, frozenset)):
            yield from _strings(tuple(x))


def _unseeded(listed: Sequence[Instruction]) -> Iterator[str]:
    """Sources of random numbers that are called without a seed."""
    for i, call in pairwise(listed):
        if i.opname.startswith("LOAD") and i.argval in _SEEDED and call.opname == "CALL" and not call.arg:
            yield i.argval


def _computed(listed: Sequence[Instruction]) -> Iterator[tuple[int, str]]:
    """Line and name of each lookup by a name that is not a constant."""
    for k, i in enumerate(listed):
        if not i.opname.startswith("LOAD") or i.opname == "LOAD_CONST" or i.argval not in _LOOKUPS:
            continue
        line = (i.positions.lineno if i.positions else None) or 0
        following = listed[k + 1 :]
        if i.argval in _BY_STRING or i.argval in _RUN:
            call = next((n for n, j in enumerate(following) if j.opname.startswith("CALL")), len(following))
            if i.argval in _RUN or not any(_is_string(j) for j in following[:call]):
                yield line, i.argval
        elif i.argval in ("vars", "globals"):
            call = next((n for n, j in enumerate(following) if j.opname.startswith("CALL")), len(following))
            if not any(map(_is_string, following[call + 1 : call + 3])):
                yield line, i.argval
        elif i.argval in _NEXT and not any(map(_is_string, following[: _NEXT[i.argval]])):
            yield line, i.argval


def _is_string(i: Instruction) -> bool:
    value = i.argval
    return i.opname == "LOAD_CONST" and (isinstance(value, str) or (
        isinstance(value, tuple) and bool(value) and all(isinstance(x, str) for x in value)))
