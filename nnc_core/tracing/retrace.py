"""The reasons why a function is traced again, and the warning when that happens too often."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Protocol

from nnc_core.base.config import config
from nnc_core.base.errors import RetraceWarning
from nnc_core.symbol import users_frame
from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.signature import Parameters, Signature

FIRST = "it is the first call"
_SHOWN = 3


class Kept(Protocol):
    """The compilations kept for a signature."""

    variants: tuple[Compilation, ...]


def reason(parameters: Parameters, kept: Mapping[Signature, Kept], signature: Signature,
           variants: Sequence[Compilation]) -> str:
    """The changes since the compilation that comes nearest was made."""
    if variants:
        return _first(variants[-1].traced.stale() or ["other backends have been chosen"])
    known = [s for s, entry in list(kept.items()) if entry.variants]
    differences = [parameters.changes(s, signature) for s in reversed(known)]
    return _first(min(differences, key=len)) if differences else FIRST


def _first(said: Sequence[str]) -> str:
    more = f" and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    return "; ".join(said[:_SHOWN]) + more


class Storm:
    """Counts traces of one function; warns once."""

    def __init__(self) -> None:
        self.warned = False

    def note(self, name: str, traces: int, because: str) -> None:
        """RetraceWarning when there are more than `config.trace_limit`."""
        if self.warned or traces <= config.trace_limit:
            return
        self.warned = True
        warnings.warn(
            f"{name!r} has been traced {traces} times, the last time because of {because}.  Numbers that change should "
            "be tensors (nnc.asarray); Python values that the code reads should stay as they are; "
            "nnc.config.trace_limit says how often is too often", RetraceWarning, stacklevel=users_frame())
