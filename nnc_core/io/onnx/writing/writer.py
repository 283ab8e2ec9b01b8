"""Writing the nodes of a graph, one after another, and finding their values again in whatever order axes lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.io.onnx.writing.dtypes import ELEMENT_TYPES
from nnc_core.io.onnx.writing.emitter import NodeEmitter
from nnc_core.io.onnx.writing.held import Held, Order, inverse
from nnc_core.io.onnx.writing.parameters import ParameterArrays
from nnc_core.io.onnx.writing.records import Array
from nnc_core.io.onnx.writing.sizes import NamedSizes
from nnc_core.io.onnx.writing.table import WRITERS
from nnc_core.operator import CONSTANT
from nnc_core.symbol import Literal, Node, show_line
from nnc_core.type import DimLike, Dims

_WRITTEN_OUT = 1024
"""Elements that a constant may have which is one number everywhere."""


class NodeWriter:
    """Writes nodes into one ONNX graph; bodies of control flow have writers of their own inside of it."""

    def __init__(self, emitter: NodeEmitter, sizes: NamedSizes, parameters: ParameterArrays,
                 uses: Mapping[Node, int]) -> None:
        self.b, self.sizes, self.parameters, self.uses = emitter, sizes, parameters, uses
        self.held: dict[Node, Any] = {}
        """Of each node that is written how it is held; a tuple of those of several results."""

    def inside(self, nodes: Iterable[Node]) -> NodeWriter:
        """A writer of a body, whose graph is inside this one."""
        return NodeWriter(NodeEmitter(self.b.store, self.b), self.sizes, self.parameters, uses_of(nodes))

    def beside(self, nodes: Iterable[Node]) -> NodeWriter:
        """A writer of other nodes into the same graph."""
        return NodeWriter(self.b, self.sizes, self.parameters, uses_of(nodes))

    def write(self, nodes: Iterable[Node]) -> None:
        """Write nodes that are not known yet, inputs first."""
        for node in nodes:
            if node not in self.held and node.op is not CONSTANT:
                self.held[node] = self._written(node)

    def _written(self, node: Node) -> Any:
        rule = WRITERS.get(node.op.name)
        if rule is None:
            raise NotSupportedError("ONNX has no operator for it", operator=node.op.name, line=show_line(node.line))
        try:
            return _as_held(rule.write(self, node))
        except Error as error:
            error.locate(operator=node.op.name, line=show_line(node.line))
            raise

    # ---- values
    def read(self, node: Node) -> str:
        """The name of a value with its axes as we have them."""
        return self.arranged(node, range(node.ndim))

    def arranged(self, node: Node, axes: Sequence[int]) -> str:
        """The name of a value with its axes in another order: `permute(node, axes)`."""
        if node.op is CONSTANT:
            return self.constant(np.transpose(_elements(node), tuple(axes)))
        held = self.held[node].moved(axes)
        if held.name in self.parameters:
            return self.parameters.arranged(held.name, held.order)
        return held.name if held.order is None else self.b.op("Transpose", held.name, perm=list(held.order))

    def constant(self, array: Array) -> str:
        """The name of an array; a large one of one number everywhere is made where the graph runs."""
        first = np.ravel(array[(slice(0, 1),) * array.ndim])
        if array.size <= _WRITTEN_OUT or array.tobytes() != first.tobytes() * array.size:
            return self.b.store.constant(array)
        return self.b.op("ConstantOfShape", self.shape(array.shape), value=first)

    def same(self, node: Node) -> Held:
        """The place of another node, which has the same value."""
        return Held(self.read(node)) if node.op is CONSTANT else self.held[node]

    def order_of(self, node: Node) -> Order:
        """The order of axes in which a value can be read without moving anything, undone: as `Held` has it."""
        held = self.held.get(node)
        if held is None or held.order is None or held.name in self.parameters:
            return tuple(range(node.ndim))
        return held.order  # type: ignore[no-any-return]

    def stored(self, node: Node, order: Order) -> str:
        """The name of the array that, with its axes in that order, is the value; of fewer axes where the first ones are
        missing, as broadcasting has it."""
        undone = inverse(order)
        missing = len(order) - node.ndim
        if missing <= 0 or node.ndim == 0:
            return self.arranged(node, undone if node.ndim else ())
        own = [axis - missing for axis in undone if axis >= missing]
        added = [k for k, axis in enumerate(undone) if axis < missing]
        first = next(k for k, axis in enumerate(undone) if axis >= missing)
        added = [k - first for k in added if k > first]
        name = self.arranged(node, own)
        return self.unsqueezed(name, added) if added else name

    def unsqueezed(self, name: str, axes: Sequence[int]) -> str:
        """A value with axes of length one more."""
        if name in self.b.store.arrays:
            return self.b.constant(np.expand_dims(self.b.store.arrays[name], tuple(axes)))
        return self.b.op("Unsqueeze", name, self.b.integers(axes))

    def flat(self, node: Node) -> str:
        """The name of an array of the same elements in C order, whatever its shape."""
        order = self.order_of(node)
        moving = [axis for axis in order if self._stored_length(node, order, axis) != 1]
        if node.op is CONSTANT or self.held[node].name in self.parameters or moving != sorted(moving):
            return self.read(node)
        return self.held[node].name  # type: ignore[no-any-return]

    @staticmethod
    def _stored_length(node: Node, order: Order, axis: int) -> DimLike:
        return node.shape[order.index(axis)]

    # ---- shapes and dtypes
    def shape(self, shape: Sequence[DimLike]) -> str:
        """A row of sizes."""
        return self.sizes.shape(self.b, shape)

    def scalar(self, size: DimLike, dtype: DType) -> str:
        """A size as a number of shape ()."""
        if isinstance(size, int):
            return self.b.constant(size, dtype)
        found = self.b.op("Squeeze", self.sizes.size(self.b, size), self.b.integers([0]))
        return self.cast(found, np.dtype(np.int64), dtype)

    def reshaped(self, name: str, shape: Dims) -> str:
        """A value with its elements in another shape; one size may follow from the others."""
        named = [k for k, n in enumerate(shape) if not isinstance(n, int)]
        if len(named) == 1 and 0 not in shape:
            return self.b.op("Reshape", name, self.b.integers([-1 if k in named else int(n) for k, n in
                                                               enumerate(shape)]))
        return self.b.op("Reshape", name, self.shape(shape), allowzero=1)

    def expanded(self, name: str, shape: Dims) -> str:
        """A value broadcast to a shape."""
        return self.b.op("Expand", name, self.shape(shape))

    def cast(self, name: str, source: DType, target: DType) -> str:
        """A value in another dtype, as ONNX converts it."""
        return name if source == target else self.b.op("Cast", name, to=ELEMENT_TYPES[target])


def _elements(node: Node) -> Any:
    literal = node.attributes[0]
    assert isinstance(literal, Literal)
    return np.asarray(literal.array)


def _as_held(written: Any) -> Any:
    if isinstance(written, Held):
        return written
    return Held(written) if isinstance(written, str) else tuple(map(_as_held, written))


def uses_of(nodes: Iterable[Node]) -> Counter[Node]:
    """Counts of how often each node is read."""
    return Counter(x for node in nodes for x in node.inputs)


