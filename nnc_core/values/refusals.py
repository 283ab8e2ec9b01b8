"""Errors for values that cannot be computed, or should not be computed unasked."""

from __future__ import annotations

import warnings

from nnc_core.base.config import config
from nnc_core.base.errors import Error, ImplicitComputeError, ImplicitComputeWarning, SymbolValueError
from nnc_core.base.line import users_frame
from nnc_core.symbol import show_line, user_line
from nnc_core.values.unshaped import text_of
from nnc_core.values.value import Value


def no_value(v: Value, what: str = "the value") -> Error:
    """The error for asking a symbol for its value; a trace knows more about it."""
    refusal = getattr(v.trace, "refusal", None)
    if refusal is not None:
        return refusal(v, what)  # type: ignore[no-any-return]
    return SymbolValueError(f"a symbol {text_of(v)} has no value: {what} was asked for",
                            line=show_line(v.line or user_line()),
                            hint="call the compiled graph, or assign the symbol and eval; nnc.where chooses by data")


def object_to(v: Value, why: str) -> None:
    """Raise or warn, as `config.implicit_compute` says, since a deferred value is computed that nobody asked for."""
    if config.implicit_compute == "allow" or v.trace is not None:
        return
    recorded = "" if v.line is None else f", recorded at {show_line(v.line)},"
    error = ImplicitComputeError(
        f"a deferred {v.spec}{recorded} is computed: {why}", line=show_line(user_line()),
        hint="nnc.realize(...) where it should be computed, or nnc.config.implicit_compute = \"allow\"")
    if config.implicit_compute == "error":
        raise error
    warnings.warn(str(error), ImplicitComputeWarning, stacklevel=users_frame())
