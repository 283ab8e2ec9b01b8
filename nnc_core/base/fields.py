"""Tests of what was read from JSON, field by field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.errors import Error, FileFormatError

Test = Callable[[Any], bool]
RESTORE = "restore the file from a copy"


def parsed(text: str, what: str) -> Any:
    """JSON as Python's.  FileFormatError for what is none, or is nested too deeply to be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{what} is no JSON: {error}", hint=RESTORE) from error


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 0


def is_text(x: Any) -> bool:
    return isinstance(x, str)


def is_list(x: Any) -> bool:
    return isinstance(x, list)


def is_object(x: Any) -> bool:
    return isinstance(x, dict)


def are_numbers(x: Any) -> bool:
    return isinstance(x, list) and all(map(is_number, x))


def are_texts(x: Any) -> bool:
    """An object whose values are texts."""
    return isinstance(x, dict) and all(map(is_text, x.values()))


def check_fields(found: Any, tests: Mapping[str, Test], what: str, error: type[Error]) -> None:
    """Raise the error unless `found` is an object whose fields are there and pass their tests."""
    if not isinstance(found, Mapping):
        raise error(f"{what} is {found!r}, expected an object with {', '.join(tests)}", hint=RESTORE)
    for name, test in tests.items():
        if name not in found:
            raise error(f"{what} has no {name!r}", hint=RESTORE)
        if not test(found[name]):
            raise error(f"{what} has {found[name]!r} for {name!r}, which cannot be", hint=RESTORE)



