"""Rows that no window can be opened on: loops that go over them with an index instead.

A window needs rows whose beginnings are aligned, on a device that has views.  Where that is not so, a row is taken out
by an index that the loop carries, and put back into a carried whole by the same index.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from nnc_core.base.command import Command
from nnc_core.base.dtype import int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import NO_VIEWS, DeviceSpec
from nnc_core.operator import Nodes, Operator
from nnc_core.operator.control import LOOP, PICK, LoopAttributes
from nnc_core.operator.loops import open_nest
from nnc_core.optimiser import rebuild
from nnc_core.symbol import Body, Node, Table
from nnc_core.type import Op, TensorSpec


def _put_row(x: Any, row: Any, index: Any) -> Any:
    out = x.copy()
    out[int(index)] = row
    return out


def _put_row_nest(command: Command) -> LoopNest:
    nest = open_nest(command)
    k, *at = nest.outer(*command.output.shape)
    hit = nest.load(2).equal(nest.position(k))
    nest.store(0, hit.select(nest.load(1, *at), nest.load(0, k, *at)), k, *at)
    return nest.build()


PUT_ROW = Op("put_row", ("x", "row", "index"), (), lambda x, row, index: x, _put_row,
             "x with the row at an int64 index replaced.", nest=_put_row_nest, inplace=(0,), exact=True, storage=True)


class IndexedScan(Nodes):
    """Loops are made anew, where their rows need it, when something is picked from them."""

    def __init__(self, operator: Operator, table: Table, device: DeviceSpec) -> None:
        super().__init__(operator, table)
        self.device = device
        self.made: dict[Node, list[Node] | None] = {}

    def fresh(self) -> IndexedScan:
        return self.operator.open(partial(IndexedScan, device=self.device))

    def simplify(self, node: Node) -> Node:
        if node.op is not PICK or node.inputs[0].op is not LOOP:
            return node
        (loop,), (index,) = node.inputs, node.attributes
        if loop not in self.made:
            self.made[loop] = self._indexed(loop)
        results = self.made[loop]
        return node if results is None else results[index]

    def _needs_index(self, row: TensorSpec) -> bool:
        return NO_VIEWS in self.device.features or bool(row.nbytes % self.device.alignment)

    def _indexed(self, loop: Node) -> list[Node] | None:
        """All results of a loop that takes and puts rows by index; None if windows will do."""
        _, body, length, n, m, reverse = attributes = LoopAttributes.of(loop)
        if not isinstance(length, int):
            return None
        taken = [j for j in range(n, n + m) if self._needs_index(body.inputs[j].spec)]
        put = [j for j in range(n, len(body.outputs)) if self._needs_index(body.outputs[j].spec)]
        if not taken and not put:
            return None
        G: Any = self.operator.open()
        for x in body.nodes:
            G.table.adopt(x)
        index = G.placeholder("index", TensorSpec((), int64))
        wholes = [G.placeholder("whole", loop.inputs[j].spec) for j in taken]
        so_far = [G.placeholder("rows", TensorSpec((length, *body.outputs[j].shape), body.outputs[j].dtype))
                  for j in put]
        rows = {body.inputs[j]: G.take(w, index, axis=0) for j, w in zip(taken, wholes, strict=True)}
        outputs = rebuild(body.outputs, G, replaced=rows)
        new = [G.symbol.node(G.table, PUT_ROW, (acc, outputs[j], index), ())
               for acc, j in zip(so_far, put, strict=True)]
        scanned = [j for j in range(n, n + m) if j not in taken]
        stacked = [j for j in range(n, len(outputs)) if j not in put]
        step = G.add(index, G.full(shape=(), value=-1 if reverse else 1, dtype=int64))
        inner = Body((*attributes.carried, index, *so_far, *[body.inputs[j] for j in scanned], *wholes,
                      *attributes.captured),
                     (*outputs[:n], step, *new, *[outputs[j] for j in stacked]))
        F: Any = self
        start = F.full(shape=(), value=length - 1 if reverse else 0, dtype=int64)
        zeros = [F.full(shape=x.shape, value=0, dtype=x.dtype) for x in so_far]
        made = F.loop([*loop.inputs[:n], start, *zeros], [loop.inputs[j] for j in scanned],
                      [*[loop.inputs[j] for j in taken], *loop.inputs[n + m :]], body=inner, length=length,
                      reverse=reverse)
        at = {j: i for i, j in enumerate(range(n))} | {j: n + 1 + i for i, j in enumerate(put)}
        at |= {j: n + 1 + len(put) + i for i, j in enumerate(stacked)}
        self.made[made] = None
        return [F.pick(made, index=at[j]) for j in range(len(outputs))]
