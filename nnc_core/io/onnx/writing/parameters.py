"""Arrays with names of their own, as the weights of a network, stored in the order of axes in which they are read."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nnc_core.io.onnx.writing.emitter import Store
from nnc_core.io.onnx.writing.held import Order, inverse
from nnc_core.io.onnx.writing.records import Array, WrittenNode


class ParameterArrays:
    """Each keeps its name.  One that is read in one order of axes only is stored so; otherwise it is stored as it is,
    and other orders are transposed."""

    def __init__(self, store: Store, arrays: Mapping[str, Array]) -> None:
        self.store, self.arrays = store, arrays
        self._variants: dict[tuple[str, Order | None], str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def arranged(self, name: str, order: Order | None) -> str:
        """The name under which a parameter can be read with its axes in that order."""
        key = (name, order)
        if key not in self._variants:
            self._variants[key] = name if order is None else self.store.name("arranged")
        return self._variants[key]

    def finish(self) -> tuple[list[WrittenNode], dict[str, str], dict[str, Order]]:
        """Store the arrays.  Gives the transpositions that are left, names that are now the parameters' own, and of
        each parameter that is stored in another order the one that leads back to ours."""
        nodes: list[WrittenNode] = []
        renamed: dict[str, str] = {}
        back: dict[str, Order] = {}
        for name, array in self.arrays.items():
            read = {order: variant for (known, order), variant in self._variants.items() if known == name}
            (order,) = read if len(read) == 1 else (None,)
            if order is not None:
                renamed[read.pop(order)], back[name] = name, inverse(order)
                array = np.transpose(array, order)
            self.store.arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
            nodes += [WrittenNode("Transpose", [name], [variant], {"perm": list(axes)})
                      for axes, variant in read.items() if axes is not None]
        return nodes, renamed, back
