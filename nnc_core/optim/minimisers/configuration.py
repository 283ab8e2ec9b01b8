"""Settings as text, the same in every process, by which a file knows the minimiser that it was written with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from nnc_core.type import plain


def setting_text(x: Any) -> str:
    """A setting as text: numbers, which files hold themselves, and functions, which none can compare, by kind alone."""
    x = plain(x)
    if isinstance(x, (int, float)):
        return "a number"
    if x is None or isinstance(x, str):
        return repr(x)
    if isinstance(x, (tuple, list)):
        return f"({_listed(map(_part, x))})"
    if is_dataclass(x) and not isinstance(x, type):
        return f"{type(x).__name__}({_listed(f'{f.name}={_part(getattr(x, f.name))}' for f in fields(x))})"
    shown = repr(x)
    return shown if " at 0x" not in shown else "a function" if callable(x) else f"a {type(x).__name__}"


def _part(x: Any) -> str:
    """A part of a setting, whose numbers are in no file otherwise."""
    x = plain(x)
    return repr(x) if isinstance(x, (int, float)) else setting_text(x)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(texts)
