"""Missing files and optional packages: one clear error each."""

from __future__ import annotations

import importlib
from types import ModuleType

from nnc_core.base.errors import Error


class MissingFileError(Error, FileNotFoundError):
    """A file or directory that does not exist."""


class NotAFileError(Error, IsADirectoryError):
    """A directory where a file is needed."""


class MissingPackageError(Error, ImportError):
    """An optional package that is not installed."""


def require(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Import an optional module when it is first needed.

    Raises MissingPackageError, naming the purpose and the extra of nnc-core that installs the package.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(f"{purpose} needs the package {package}, which cannot be imported: {error}",
                                  hint=f"pip install nnc-core[{extra}]") from error
