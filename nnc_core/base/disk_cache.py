"""Caches on disk: entries that can be made again, kept between processes within `config.cache_limit`.

What is read may be code that runs, so nothing is taken from a folder or a file that another user could have written.
Entries are there whole or not at all, and carry a checksum.  Whatever fails on the disk is said once, and what is asked
for is made as if there were no cache.
"""

from __future__ import annotations

import os
import re
import stat
import time
import warnings
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import NamedTuple

from nnc_core.base.atomic import open_atomically
from nnc_core.base.cache_folder import VARIABLE, cache_folder
from nnc_core.base.config import config
from nnc_core.base.errors import FallbackWarning
from nnc_core.base.line import users_frame

TAG = "CACHEDIR.TAG"
"""The file that marks a cache: programs that make backups know it."""
_TAG_TEXT = b"Signature: 8a477f597d28d172789f06886806bc55\n# A cache of nnc: `nnc cache clear` empties it.\n"
_ENTRY = re.compile(r"[0-9a-f]{32}")
_UNFINISHED = re.compile(r"\.nnc-.*\.tmp")
_SUM_BYTES = 16
_USED_AGAIN = 3600.0
"""Seconds between two notes that an entry is in use: each is a write to the disk."""
_LOOKS = 64
"""Looks at all entries while as many bytes are written as there may be."""
_HINT = f"name a folder of your own in nnc.config.cache_folder or {VARIABLE}; nnc.config.cache_limit = 0 uses none"


class CacheFile(NamedTuple):
    """A file in a cache."""

    path: str
    nbytes: int
    used: float
    """When it was last used, in seconds, to the hour."""


def key_of(*parts: bytes) -> str:
    """The key of an entry: a digest of all that decides what it is."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def disk_cache(name: str) -> DiskCache | None:
    """The cache of this name; None if `config.cache_limit` is 0."""
    return _cache_in(cache_folder() / name) if config.cache_limit else None


def disk_caches() -> list[DiskCache]:
    """All caches that there are."""
    return [_cache_in(tag.parent) for tag in sorted(cache_folder().glob(f"*/{TAG}"))]


@cache
def _cache_in(path: Path) -> DiskCache:
    return DiskCache(path)


class DiskCache:
    """Entries by key in one folder; several processes may use it at once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.writes = True
        self._said: set[str] = set()
        self._dice = Random()  # apart from the one that users seed

    def has(self, key: str) -> bool:
        """Tell whether there is an entry, which may turn out to be no use."""
        return os.path.exists(self.path / key)

    def read(self, key: str) -> bytes | None:
        """Return what is kept for a key; None if that is nothing, or nothing that can be relied on."""
        try:
            if not self._is_own(self.path.stat(), self.path):
                return None
            content = self._content(self.path / key)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn("read", f"nothing can be read from the cache {self.path} ({_cause(error)})", _HINT)
            return None
        if content is not None and content[:_SUM_BYTES] == _checksum(key, content[_SUM_BYTES:]):
            return content[_SUM_BYTES:]
        if content is not None:
            self.discard(key)
        return None

    def write(self, key: str, content: bytes) -> None:
        """Keep something for a key; what has not been used for longest goes if there is too much."""
        if not self.writes or len(content) > config.cache_limit:
            return
        try:
            self._make()
            if not self._is_own(self.path.stat(), self.path):
                return
            with open_atomically(self.path / key, durable=False) as file:
                os.chmod(file.name, 0o600)
                file.write(_checksum(key, content) + content)
            # Each process looks seldom, all together often enough.
            if self._dice.random() * config.cache_limit < len(content) * _LOOKS:
                self._shrink(config.cache_limit)
        except OSError as error:
            self.writes = False
            self._warn("write", f"nothing can be kept in the cache {self.path} ({_cause(error)}): what is compiled now "
                       "is compiled again by the next process", _HINT)

    def discard(self, key: str) -> None:
        """Remove an entry that is no use."""
        self._warn("damaged", f"an entry of the cache {self.path} is damaged ({key}): it is made again",
                   "if this happens again, examine the disk; `nnc cache clear` empties the cache")
        _remove(self.path / key)

    def entries(self) -> Iterator[CacheFile]:
        """All entries; none if there is no such folder."""
        return self._files(_ENTRY)

    def clear(self) -> int:
        """Remove all entries; how many bytes these were."""
        return sum([entry.nbytes for pattern in (_ENTRY, _UNFINISHED) for entry in self._files(pattern)
                    if _remove(entry.path)])

    def _content(self, path: Path) -> bytes | None:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not self._is_own(status, path):
                return None
            content = file.read()
        if time.time() - status.st_mtime > _USED_AGAIN:
            _use_again(path)
        return content

    def _make(self) -> None:
        if not (self.path / TAG).exists():
            self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
            self.path.mkdir(0o700, exist_ok=True)
            with open_atomically(self.path / TAG, durable=False) as file:
                file.write(_TAG_TEXT)

    def _is_own(self, status: os.stat_result, path: Path) -> bool:
        """True if nobody else can have written a file or folder."""
        if not hasattr(os, "geteuid"):
            return True
        if status.st_uid != os.geteuid():
            self._warn("foreign", f"{path} belongs to another user, so that nothing is taken from there", _HINT)
        elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            self._warn("foreign", f"other users may write {path}, so that nothing is taken from there",
                       f"`nnc cache clear`, then `chmod go-w {path}`")
        else:
            return True
        return False

    def _shrink(self, limit: int) -> None:
        """Leave an eighth of the room free, if there is too much."""
        for unfinished in self._files(_UNFINISHED):
            if time.time() - unfinished.used > _USED_AGAIN:  # its process was killed
                _remove(unfinished.path)
        entries = sorted(self.entries(), key=lambda entry: entry.used)
        total = sum([entry.nbytes for entry in entries])
        if total > limit:
            for entry in entries:
                total -= entry.nbytes * _remove(entry.path)
                if total <= limit * 7 // 8:
                    return

    def _files(self, pattern: re.Pattern[str]) -> Iterator[CacheFile]:
        try:
            found = [*os.scandir(self.path)]
        except FileNotFoundError:
            return
        for file in found:
            if pattern.fullmatch(file.name):
                try:
                    status = file.stat(follow_symlinks=False)
                except FileNotFoundError:  # another process has removed it
                    continue
                yield CacheFile(file.path, status.st_size, status.st_mtime)

    def _warn(self, what: str, message: str, hint: str) -> None:
        if what not in self._said:
            self._said.add(what)
            warnings.warn(f"{message}; {hint}", FallbackWarning, stacklevel=users_frame())


def _checksum(key: str, content: bytes) -> bytes:
    return blake2b(content, digest_size=_SUM_BYTES, key=key.encode()).digest()


def _cause(error: OSError) -> str:
    return error.strerror or type(error).__name__


def _use_again(path: Path) -> None:
    try:
        os.utime(path)
    except OSError:  # what cannot be written cannot be too much either
        return


def _remove(path: str | Path) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
