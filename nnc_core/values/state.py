"""State by name: cells written to host arrays and read back, all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nnc_core.base.errors import DTypeError, OperandError, ShapeError, StateError
from nnc_core.values.cell import Cell
from nnc_core.values.from_host import host_value, kept_value
from nnc_core.values.tensor import Tensor

HostArray = np.ndarray[Any, Any]


def save_state(cells: Mapping[str, Cell]) -> dict[str, HostArray]:
    """A host copy of each cell."""
    return {name: Tensor(cell.lend()).numpy() for name, cell in cells.items()}


def load_state(cells: Mapping[str, Cell], arrays: Mapping[str, Any], what: str = "the state",
               keep: bool = False) -> None:
    """Write an array into each cell, on the device where the cell is; nothing is written unless everything fits.

    With keep=True nobody changes the arrays any more: cells hold their memory where the device can compute there.
    Raises StateError for names that are missing or unexpected, ShapeError and DTypeError for an array that is not
    what its cell holds, OperandError for what is no array.
    """
    if not isinstance(arrays, Mapping):
        raise OperandError(f"{what} is {type(arrays).__name__}, expected a mapping from names to arrays",
                           hint="give what state_dict() or nnc.io.load_arrays(path)[0] gives; "
                                "nn.from_pytorch_state(module, arrays) loads by itself")
    _check_names(cells, arrays, what)
    host = {name: _fitting(name, cell, arrays[name], what) for name, cell in cells.items()}
    value = kept_value if keep else host_value
    values = {name: value(x, stack=cells[name]._value.stack) for name, x in host.items()}
    for name, loaded in values.items():
        cells[name].write(Tensor(loaded))


def _check_names(cells: Mapping[str, Cell], arrays: Mapping[str, Any], what: str) -> None:
    missing, unexpected = sorted(cells.keys() - arrays.keys()), sorted(arrays.keys() - cells.keys())
    if missing or unexpected:
        said = [f"missing {', '.join(missing)}"] * bool(missing)
        said += [f"unexpected {', '.join(unexpected)}"] * bool(unexpected)
        raise StateError(f"{what} does not fit: {'; '.join(said)}",
                         hint=f"it should have {', '.join(cells) or 'nothing'}")


def _fitting(name: str, cell: Cell, given: Any, what: str) -> HostArray:
    given = given.read() if isinstance(given, Cell) else given
    if not isinstance(given, (np.ndarray, np.generic, Tensor)):
        raise OperandError(f"{what}: {name!r} is {type(given).__name__}, not an array")
    array = given.numpy() if isinstance(given, Tensor) else np.asarray(given)
    if array.shape != cell.spec.shape:
        raise ShapeError(f"{what}: {name!r} has shape {array.shape}, expected {cell.spec}")
    if array.dtype != cell.spec.dtype:
        raise DTypeError(f"{what}: {name!r} has dtype {array.dtype}, expected {cell.spec}", hint="cast it with astype")
    return array
