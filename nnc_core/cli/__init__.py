"""Floor 20: the `nnc` command."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from nnc_core.base.missing import MissingPackageError, require

__all__ = ["main"]


def main() -> None:
    """Run `nnc` with the arguments of this process; without click and rich, say in one line what to install."""
    try:
        for package in ("click", "rich"):
            require(package, purpose="the command line", extra="cli")
    except MissingPackageError as error:
        sys.exit(f"nnc: {error.message}; {error.hint}")
    from nnc_core.cli.group import nnc

    warnings.showwarning = _show_warning
    nnc(prog_name="nnc")


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int,
                  file: Any = None, line: str | None = None) -> None:
    """Show a warning without its place: who runs a command needs the message, not the line of a library."""
    print(f"warning: {message}", file=file or sys.stderr)
