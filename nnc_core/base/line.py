"""The user's line: where outside this package an operation was written."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias, TypeVar

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a command that does the work of several operators."""

    each: tuple[Line | None, ...]


Line: TypeAlias = tuple[CodeType, int] | str | Lines
"""Code object and instruction offset: cheap to take, resolved to a line number only when shown.  Of a node that was
read from a file: the line as it was shown when the file was written."""
MOST_SHOWN = 3
"""Lines that are shown of one command."""

HOUSE = str(Path(__file__).parent.parent) + "/"
"""The folder of this package: code from here is no code of the user's."""
_COMMANDS = HOUSE + "cli/"  # they write graphs as users do
_RECORDED = "<recorded>"
"""The file of the frame in which recorded calls run again."""
_inside: list[str] = [HOUSE, contextlib.__file__]  # whose frames lie around what a context manager decorates
_outside: dict[str, bool] = {}
"""Answers by file name: asked for several frames of every operation."""


def count_as_inside(place: str) -> None:
    """Take the code of a file, or of a folder whose name ends with the separator, for no code of the user's."""
    if place not in _inside:
        _inside.append(place)
        _outside.clear()


def _is_outside(file: str) -> bool:
    _outside[file] = file.startswith(_COMMANDS) or not file.startswith(tuple(_inside))
    return _outside[file]


def user_line() -> Line | None:
    """The innermost frame that is not in this package, or in its commands; None at interpreter exit."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        outside = _outside.get(file)
        if _is_outside(file) if outside is None else outside:
            return (code, frame.f_lasti) if file != _RECORDED else frame.f_locals["line"]
        frame = frame.f_back  # type: ignore[assignment]
    return None


def called_at(line: Line | None, f: Callable[..., R], *args: Any) -> R:
    """f(*args) as if the user had written it in that line: a call that was recorded there and runs now."""
    return f(*args)


called_at.__code__ = called_at.__code__.replace(co_filename=_RECORDED)


def is_users(code: CodeType) -> bool:
    """True if code is not of this package, or of its commands."""
    file = code.co_filename
    outside = _outside.get(file)
    return _is_outside(file) if outside is None else outside


def users_frame() -> int:
    """The number of frames from the caller up to the user, for `stacklevel`."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and (frame.f_code.co_filename == _RECORDED
                                        or not _is_outside(frame.f_code.co_filename)):
        frame, level = frame.f_back, level + 1
    return level


def show_line(line: Line | None) -> str:
    """"file.py:12 in function"; "?" if unknown; of several lines "file.py:12, file.py:14 and 5 more in function"."""
    if line is None:
        return "?"
    if isinstance(line, str):
        return line
    if isinstance(line, Lines):
        return _show_lines(line)
    code, offset = line
    number = next((n for start, stop, n in code.co_lines() if start <= offset < stop), None)
    where = f"{Path(code.co_filename).name}:{number or code.co_firstlineno}"
    return where if code.co_name == "<module>" else f"{where} in {code.co_name}"


def _show_lines(lines: Lines) -> str:
    """Each line once: files as they come, each from its top."""
    shown = [text.partition(" in ") for text in dict.fromkeys(map(show_line, lines.each)) if text != "?"]
    files = list(dict.fromkeys([place.rpartition(":")[0] for place, _, _ in shown]))

    def order(part: tuple[str, str, str]) -> tuple[int, int]:
        file, _, number = part[0].rpartition(":")
        return files.index(file), int(number) if number.isdigit() else 0

    shown.sort(key=order)
    functions = {function for _, _, function in shown}
    single = f" in {functions.pop()}" if len(functions) == 1 and "" not in functions else ""
    texts = [place if single else "".join((place, *rest)) for place, *rest in shown]
    most = MOST_SHOWN if len(texts) <= MOST_SHOWN else MOST_SHOWN - 1
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return f"{', '.join(texts[:most])}{more}{single}" or "?"
