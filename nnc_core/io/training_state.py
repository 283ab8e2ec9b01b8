"""A training run on disk: weights, buffers, the minimiser's state and random keys in one checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping

from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.random import Generator
from nnc_core.dynamic.state import load_state, save_state
from nnc_core.io.checkpoint import load_arrays, save_arrays
from nnc_core.nn import Module
from nnc_core.optim import Minimiser

Path = str | os.PathLike[str]
Generators = Mapping[str, Generator]


def save_training_state(path: Path, module: Module, minimiser: Minimiser, generators: Generators | None = None,
                        metadata: Mapping[str, str] | None = None) -> None:
    """Write all that a run needs to go on bit for bit; an old file stays until the new one is whole.

    `generators` are those that are no part of the module, by names of the caller's choice; `metadata` is text, for
    example the epoch.  Settings of the minimiser are not saved.
    """
    save_arrays(path, save_state(_cells(module, minimiser, generators)), metadata)


def load_training_state(path: Path, module: Module, minimiser: Minimiser,
                        generators: Generators | None = None) -> dict[str, str]:
    """Put a saved run into a module, a minimiser and generators of the same kinds; the metadata.

    Nothing changes unless everything fits.  Raises StateError for names that are missing or unexpected, ShapeError,
    DTypeError, and what `load_arrays` raises for files that are missing or damaged.
    """
    arrays, metadata = load_arrays(path)
    load_state(_cells(module, minimiser, generators), arrays, f"the training state in {os.fspath(path)!r}")
    return metadata


def _cells(module: Module, minimiser: Minimiser, generators: Generators | None) -> dict[str, Cell]:
    keys = {name: g.key for name, g in (generators or {}).items()}
    parts = {"module": module.cells(), "minimiser": minimiser.cells(), "random": keys}
    return {f"{part}/{name}": cell for part, cells in parts.items() for name, cell in cells.items()}
