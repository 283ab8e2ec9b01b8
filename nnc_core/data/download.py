"""Files from the network, kept in the user's cache and checked against known hashes; done by pooch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from nnc_core.base.cache_folder import cache_folder
from nnc_core.base.errors import DataError
from nnc_core.base.missing import require

_CONNECT_SECONDS, _SILENCE_SECONDS = 5.0, 30.0


def fetch_files(hashes: Mapping[str, str], name: str, mirror: str,
                cache_directory: str | os.PathLike[str] | None, patience: float | None) -> dict[str, Path]:
    """Paths of the files of data set `name`, from the cache or else from `mirror` (a URL of a directory).

    `hashes` maps file names to "algorithm:hexdigest". With `patience`, all downloads together may take that
    many seconds. Raises DataError when a file cannot be had whole, MissingPackageError without pooch.
    """
    pooch = require("pooch", purpose=f"downloading {name}", extra="data")
    directory = Path(cache_directory) if cache_directory is not None else cache_folder() / name
    store = pooch.create(path=directory, base_url=mirror.rstrip("/") + "/", registry=dict(hashes))
    download = _downloader(pooch, patience)
    try:
        return {file: Path(store.fetch(file, downloader=download)) for file in hashes}
    except (OSError, ValueError) as error:  # requests' errors are OSErrors, a wrong hash is a ValueError
        raise DataError(f"no {name} from {mirror} ({_one_line(error)})",
                        hint=f"check the network, or put {', '.join(hashes)} into {directory}") from error


def _downloader(pooch: Any, patience: float | None) -> Callable[[str, str, Any], None]:
    deadline = None if patience is None else time.monotonic() + patience
    connect, silence = (min(limit, patience or limit) for limit in (_CONNECT_SECONDS, _SILENCE_SECONDS))
    # The deadline is looked at after each chunk, so chunks are small enough to arrive on a slow line.
    stream = pooch.HTTPDownloader(timeout=(connect, silence), chunk_size=4096)

    def download(url: str, output: str, store: Any) -> None:
        with open(output, "wb") as file:
            stream(url, file if deadline is None else _Punctual(file, deadline), store)

    return download


class _Punctual:
    """A file that refuses what comes after the deadline, because a slow line never times out by itself."""

    def __init__(self, file: BinaryIO, deadline: float) -> None:
        self._file, self._deadline = file, deadline

    def write(self, chunk: bytes) -> int:
        if time.monotonic() > self._deadline:
            raise TimeoutError("the download is too slow")
        return self._file.write(chunk)

    def flush(self) -> None:
        self._file.flush()


def _one_line(error: Exception) -> str:
    # urllib3 keeps what went wrong in `reason`, below the message that it ran out of attempts.
    cause = getattr(error.args[0], "reason", error) if error.args else error
    text = " ".join(str(cause).split()) or type(cause).__name__
    return text if len(text) <= 200 else text[:199] + "…"
