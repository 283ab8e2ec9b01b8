"""Words of nnc's in the metadata of models that it has written: which initialisers are state, and how they lay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx

from nnc_core.base.errors import FileFormatError
from nnc_core.io.onnx.names import BUFFERS, PARAMETERS, TRANSPOSED
from nnc_core.io.onnx.reading.lanes import Host


class ExportedState(NamedTuple):
    """Facts that a graph of ONNX does not hold."""

    parameters: frozenset[str] | None
    """The initialisers that are state; None in models of others: all that can be."""
    buffers: frozenset[str]
    """Those that are not trained."""
    orders: Mapping[str, tuple[int, ...]]
    """The order of axes that gives back an initialiser as it was."""

    def ours(self, name: str, array: Host) -> Host:
        """An initialiser as it was."""
        if name not in self.orders:
            return array
        if sorted(self.orders[name]) != list(range(array.ndim)):
            raise FileFormatError(f"the metadata give {name!r} the axes {self.orders[name]}, which has {array.ndim}")
        return np.ascontiguousarray(np.transpose(array, self.orders[name]))

    def stored_axes(self, name: str) -> tuple[int, ...] | None:
        """The order of our axes in which the model reads an initialiser; None for our own."""
        order = self.orders.get(name)
        return None if order is None else tuple(order.index(axis) for axis in range(len(order)))


def exported_state(model: onnx.ModelProto) -> ExportedState:
    """Facts that a model's metadata tell."""
    said = {entry.key: entry.value for entry in model.metadata_props}
    try:
        names = json.loads(said[PARAMETERS]) if PARAMETERS in said else None
        orders = json.loads(said.get(TRANSPOSED, "{}"))
        return ExportedState(None if names is None else frozenset(map(str, names)),
                             frozenset(map(str, json.loads(said.get(BUFFERS, "[]")))),
                             {str(name): _axes(order) for name, order in orders.items()})
    except (ValueError, TypeError, AttributeError) as error:
        raise FileFormatError(f"the metadata that begin with 'nnc.' are not what nnc writes: {error}") from error


def _axes(order: Any) -> tuple[int, ...]:
    found = tuple(int(axis) for axis in order)
    if sorted(found) != list(range(len(found))):
        raise ValueError(f"{order!r} is no order of axes")
    return found
