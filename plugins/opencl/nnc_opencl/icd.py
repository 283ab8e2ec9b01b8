"""The drivers that the OpenCL loader sees: those of the system, and Intel's runtime where pip has installed it.

The loader reads the names of drivers once, at the process' first query of platforms, from a directory of
.icd files.  Intel's wheel ships such a file with a placeholder for a path, so the loader is shown a directory
of our own for that query.  The variable that names it selects drivers, nothing else, and is then taken back.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

VARIABLE = "OCL_ICD_VENDORS"
CHOICES = (VARIABLE, "OPENCL_VENDOR_PATH", "OCL_ICD_FILENAMES")
"""Variables by which a user chooses drivers; where one is set, the choice stands."""

RUNTIME, SUPPORT = "intel-opencl-rt", "intel-cmplr-lib-rt"
LIBRARY = "libintelocl.so"


def version(distribution: str) -> str | None:
    """The version that pip has installed, if any."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def intel_library() -> Path | None:
    """Intel's CPU driver of the wheel `intel-opencl-rt`, if it is installed."""
    try:
        files = metadata.files(RUNTIME) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())).resolve() for file in files if file.name == LIBRARY)
    return next((path for path in paths if path.exists()), None)


def loading_error(library: Path) -> str | None:
    """The reason why the system cannot load a driver; None if it can."""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return None


def vendor_directories() -> list[Path]:
    """The folders where loaders look by default: in the system's place, and in that of an environment (conda)."""
    return [Path("/etc/OpenCL/vendors"), Path(sys.prefix, "etc", "OpenCL", "vendors")]


def user_choice() -> str | None:
    """The variable, with its value, by which the user has chosen drivers."""
    return next((f"{name}={os.environ[name]}" for name in CHOICES if os.environ.get(name)), None)


def registered_drivers(directories: list[Path]) -> dict[str, str]:
    """Library by name of .icd file; files that name a path where nothing is are left out."""
    found: dict[str, str] = {}
    for file in (file for directory in directories for file in sorted(directory.glob("*.icd"))):
        library = file.read_text(errors="replace").partition("\n")[0].strip()
        if library and (not os.path.isabs(library) or Path(library).exists()):
            found.setdefault(file.name, library)
    return found


@contextmanager
def visible_drivers() -> Iterator[None]:
    """Within the block the loader's first query finds every driver.  Without Intel's wheel: nothing."""
    library = intel_library()
    if library is None or user_choice() or sys.platform != "linux":
        yield
        return
    drivers = {**registered_drivers(vendor_directories()), "nnc-intel.icd": str(library)}
    with tempfile.TemporaryDirectory(prefix="nnc-opencl-") as directory:
        for name, path in drivers.items():
            Path(directory, name).write_text(path + "\n")
        os.environ[VARIABLE] = directory
        try:
            yield
        finally:
            del os.environ[VARIABLE]
