"""Files that are there whole or not at all: written under a temporary name, then renamed.

Readers see the old content or the new, never a part; a failing writer or a killed process leaves the old file
as it was (a killed process may leave a `.nnc-*.tmp` file beside it, which can be deleted).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from nnc_core.base.missing import MissingFileError, NotAFileError


@contextmanager
def open_atomically(path: str | os.PathLike[str], durable: bool = True) -> Iterator[BinaryIO]:
    """Open a binary file for writing that takes the place of `path` when the block ends without an exception.

    A symbolic link is followed, so that the file it points at is replaced; a replaced file's mode is kept.
    `durable`: it is on the disk then, and survives a loss of power.
    Raises MissingFileError when the directory does not exist, NotAFileError when `path` is a directory.
    """
    target = _writable_target(path)
    temporary = target.with_name(f".nnc-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        _keep_mode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if durable:
        _sync_directory(target.parent)


def write_atomically(path: str | os.PathLike[str], writer: Callable[[BinaryIO], object]) -> None:
    """Let `writer` fill a binary file that takes the place of `path` once whole; see `open_atomically`."""
    with open_atomically(path) as file:
        writer(file)


def _writable_target(path: str | os.PathLike[str]) -> Path:
    name, target = os.fspath(path), Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise MissingFileError(f"cannot write {name!r}: there is no directory {str(target.parent)!r}",
                               hint="create the directory first")
    if target.is_dir():
        raise NotAFileError(f"cannot write {name!r}: it is a directory", hint="give the name of a file in it")
    return target


def _keep_mode(old: Path, new: Path) -> None:
    with suppress(FileNotFoundError):
        os.chmod(new, stat.S_IMODE(old.stat().st_mode))


def _sync_directory(directory: Path) -> None:
    # Makes the rename durable. Windows cannot open directories and some network file systems refuse to sync
    # them; the content itself is synced already, so a refusal costs durability of the name alone.
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
