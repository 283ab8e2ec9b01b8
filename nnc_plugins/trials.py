"""New plugins take their first steps in a process of their own, which may die of them.

What came of it is kept with all that decides it: the distribution, its files as they lie on the disk, this Python.  So
that a plugin is tried once for each version of it, and a program that meets one which crashes or hangs goes on.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from nnc_plugins.child import ON_TRIAL, Extent, examined, how_it_ended
from nnc_plugins.discovery import Candidate

OWN = frozenset({"nnc-core", "nnc-cpu", "nnc-opencl", "nnc-cuda"})
"""Distributions that are made with nnc: they load drivers when their devices are wanted, not before."""
PATIENCE = 20.0
"""Seconds that a plugin may compute, or do nothing."""
MOST_FILES = 2000
"""Files of a plugin that are looked at."""


class ProcessEnd(NamedTuple):
    """The end of a process that was a plugin's fault, such as "killed by SIGSEGV", and the step that it was in."""

    how: str
    step: str


class OutcomeStore(Protocol):
    """Bytes by keys of 32 hexadecimal digits, which nobody else can have written: core's `DiskCache`."""

    def read(self, key: str) -> bytes | None: ...

    def write(self, key: str, content: bytes) -> None: ...


Run: TypeAlias = Callable[[str, float, Mapping[str, Any], Extent], ProcessEnd | None]


def _run(name: str, seconds: float, options: Mapping[str, Any], extent: Extent) -> ProcessEnd | None:
    """Take the first steps of a plugin in a child process: how it has ended that; None if it has not, or if it did not
    come to the plugin."""
    try:
        found = examined(name, seconds, options, extent)
    except OSError:
        return None
    if "step" not in found.facts or found.finished:
        return None
    return ProcessEnd(how_it_ended(found.status, seconds), found.facts["step"])


class Trials:
    """The trials of installed plugins; without a store each process tries them anew."""

    def __init__(self, store: OutcomeStore | None, options: Mapping[str, Any] | None = None, patience: float = PATIENCE,
                 run: Run = _run) -> None:
        self._store, self._options, self._patience, self._run = store, dict(options or {}), patience, run

    def ending(self, candidate: Candidate, extent: Extent) -> ProcessEnd | None:
        """The end that the plugin makes of a process; None if it makes none, as far as can be told here."""
        if not _needs_trial(candidate) or not can_start_python():
            return None
        key = _key(candidate, extent)
        known = self._kept(key)
        if known is None:
            known = self._run(candidate.name, self._patience, self._options, extent) or _SOUND
            self._keep(key, known)
        return None if known == _SOUND else known

    def known(self, candidate: Candidate) -> ProcessEnd | None:
        """The end of a trial of the plugin; None if it came through, or there was none."""
        if not _needs_trial(candidate):
            return None
        found = [self._kept(_key(candidate, extent)) for extent in EXTENTS]
        return next((ending for ending in found if ending not in (None, _SOUND)), None)

    def passed(self, candidate: Candidate) -> None:
        """Keep that the plugin was seen to work."""
        if _needs_trial(candidate):
            for extent in EXTENTS:
                self._keep(_key(candidate, extent), _SOUND)

    def _kept(self, key: str) -> ProcessEnd | None:
        content = None if self._store is None else self._store.read(key)
        return None if content is None else ProcessEnd(*json.loads(content))

    def _keep(self, key: str, ending: ProcessEnd) -> None:
        if self._store is not None:
            self._store.write(key, json.dumps(ending).encode())


EXTENTS: tuple[Extent, ...] = ("import", "listing")
_SOUND = ProcessEnd("", "")


def can_start_python() -> bool:
    """True if `sys.executable` is an interpreter: programs that are frozen or that embed Python would start
    themselves."""
    name = os.path.basename(sys.executable or "").lower()
    return not getattr(sys, "frozen", False) and re.match("python|pypy|graalpy", name) is not None


def _needs_trial(candidate: Candidate) -> bool:
    distribution = re.sub(r"[-_.]+", "-", candidate.source.partition(" ")[0]).lower()
    return candidate.entry_point is not None and distribution not in OWN and ON_TRIAL not in os.environ


def _key(candidate: Candidate, extent: Extent) -> str:
    """A digest of what decides how a plugin's first steps end."""
    facts = [extent, candidate.name, candidate.source, sys.version, sys.prefix]
    if candidate.entry_point is not None:
        distribution = candidate.entry_point.dist
        facts += [candidate.entry_point.value, (distribution.read_text("RECORD") if distribution else "") or ""]
        facts += islice(_files(re.split(r"\W", candidate.entry_point.value, maxsplit=1)[0]), MOST_FILES)
    return blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _files(module: str) -> Iterator[str]:
    """Path, size and time of the files of a module or package of the top, which is not imported."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):  # it has been imported, and is odd
        spec = None
    if spec is None:
        return
    folders = spec.submodule_search_locations
    for path in [Path(spec.origin)] if folders is None and spec.origin else _under(folders or ()):
        try:
            status = path.stat()
        except OSError:  # in an archive, or gone
            continue
        yield f"{path} {status.st_size} {status.st_mtime_ns}"


def _under(folders: Any) -> Iterator[Path]:
    for folder in folders:
        for place, inner, files in os.walk(folder):
            inner[:] = sorted(name for name in inner if name != "__pycache__")
            yield from (Path(place, name) for name in sorted(files))
