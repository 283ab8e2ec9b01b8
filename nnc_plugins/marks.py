"""Marks on disk that a plugin is being tried.  One that outlives its process says that the process died of the plugin.

The process holds a lock on its mark, which the system takes away with the process, whatever ended it: a mark without
a lock is that of a crash, or of a hang that somebody has killed.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

PATIENCE = 10.0
"""Seconds after which Ctrl-C is taken for the end of a hang: the mark stays."""
_ENDING = ".mark"


class Marks:
    """The marks in a folder.  Where nothing can be written there, nothing is marked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def trying(self, name: str, source: str, step: str) -> Iterator[None]:
        """Mark a plugin while it does one of its first steps, such as "being imported"."""
        made, began = self._make(name, {"source": source, "step": step}), time.monotonic()
        stays = False
        try:
            yield
        except KeyboardInterrupt:
            stays = time.monotonic() - began > PATIENCE
            raise
        finally:
            if made is not None:
                if not stays:
                    made[0].unlink(missing_ok=True)
                made[1].close()

    def left(self, name: str, source: str) -> str | None:
        """The step in which a plugin has ended a process; None if it has not.  Other versions of it do not count."""
        found = None
        for path in self._paths(name):
            facts = _facts_of_the_dead(path)
            if facts is not None and facts.get("source") == source:
                found = str(facts.get("step"))
            elif facts is not None:
                path.unlink(missing_ok=True)
        return found

    def clear(self, name: str) -> None:
        """Forget what a plugin has done."""
        for path in self._paths(name):
            if _facts_of_the_dead(path) is not None:
                path.unlink(missing_ok=True)

    def _paths(self, name: str) -> list[Path]:
        beginning = f"{quote(name, safe='')}@"
        with suppress(OSError):
            return [path for path in self.folder.iterdir()
                    if path.name.startswith(beginning) and path.name.endswith(_ENDING)]
        return []

    def _make(self, name: str, facts: dict[str, Any]) -> tuple[Path, IO[str]] | None:
        path = self.folder / f"{quote(name, safe='')}@{secrets.token_hex(8)}{_ENDING}"
        try:
            self.folder.mkdir(0o700, parents=True, exist_ok=True)
            file = path.with_suffix(".new").open("x", encoding="utf-8")
        except OSError:
            return None
        try:
            _lock(file)
            file.write(json.dumps(facts))
            file.flush()
            os.rename(file.name, path)  # locked before anybody finds it
        except OSError:
            with suppress(OSError):  # what could not be written is tried again
                file.close()
            Path(file.name).unlink(missing_ok=True)
            return None
        return path, file


def _facts_of_the_dead(path: Path) -> dict[str, Any] | None:
    """The content of a mark; None if its process is alive, or has removed it before it let go of it."""
    try:
        with path.open("r+", encoding="utf-8") as file:
            _lock(file, shared=True)
            facts = json.load(file) if path.exists() else None
    except (OSError, ValueError):  # held by its process, or gone by now
        return None
    return facts if isinstance(facts, dict) else None


if sys.platform == "win32":
    import msvcrt

    def _lock(file: IO[str], shared: bool = False) -> None:
        """OSError if another process holds it."""
        file.seek(1 << 30)  # a byte that nobody reads: locks keep readers off
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        file.seek(0)
else:
    import fcntl

    def _lock(file: IO[str], shared: bool = False) -> None:
        """OSError if another process holds it."""
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
