"""Rows that no window can be opened on: loops that go over them with an index instead.

A window needs rows whose beginnings are aligned, on a device that has views.  Where that is not so, a row is taken out
by an index that the loop carries, and put back into a carried whole by the same index.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

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


class _IndexedRows(NamedTuple):
    """Rows of a loop, by the numbers of the body's inputs and outputs."""

    taken: list[int]
    """Inputs that are taken by index."""
    put: list[int]
    """Outputs that are put by index."""
    scanned: list[int]
    """Inputs that are windows."""
    stacked: list[int]
    """Outputs that are windows."""

    def wholes_put(self, loop: LoopAttributes) -> list[TensorSpec]:
        """Arrays that rows are put into."""
        rows = [loop.body.outputs[j] for j in self.put]
        return [TensorSpec((loop.length, *row.shape), row.dtype) for row in rows]


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
        old = LoopAttributes.of(loop)
        rows = self._rows(old)
        if rows is None:
            return None
        F: Any = self
        n, (carried, _, captured) = old.carried_count, old.split(loop.inputs)
        start = F.full(shape=(), value=old.length - 1 if old.reverse else 0, dtype=int64)
        zeros = [F.full(shape=spec.shape, value=0, dtype=spec.dtype) for spec in rows.wholes_put(old)]
        made = F.loop([*carried, start, *zeros], [loop.inputs[j] for j in rows.scanned],
                      [*[loop.inputs[j] for j in rows.taken], *captured], body=self._body(loop, old, rows),
                      length=old.length, reverse=old.reverse)
        self.made[made] = None
        at = {j: j for j in range(n)} | {j: n + 1 + i for i, j in enumerate((*rows.put, *rows.stacked))}
        return [F.pick(made, index=at[j]) for j in range(len(old.body.outputs))]

    def _rows(self, loop: LoopAttributes) -> _IndexedRows | None:
        """Rows that need an index; None if there are none, or the loop has no certain length."""
        inputs, outputs = loop.body.inputs, loop.body.outputs
        begin, end = loop.carried_count, loop.carried_count + loop.scanned_count
        taken = [j for j in range(begin, end) if self._needs_index(inputs[j].spec)]
        put = [j for j in range(begin, len(outputs)) if self._needs_index(outputs[j].spec)]
        if not isinstance(loop.length, int) or not (taken or put):
            return None
        return _IndexedRows(taken, put, [j for j in range(begin, end) if j not in taken],
                            [j for j in range(begin, len(outputs)) if j not in put])

    def _body(self, loop: Node, old: LoopAttributes, rows: _IndexedRows) -> Body:
        """A round that carries the index and the wholes that it puts rows into, and captures those it takes them of."""
        G: Any = self.operator.open()
        for x in old.body.nodes:
            G.table.adopt(x)
        index = G.placeholder("index", TensorSpec((), int64))
        wholes = [G.placeholder("whole", loop.inputs[j].spec) for j in rows.taken]
        so_far = [G.placeholder("rows", spec) for spec in rows.wholes_put(old)]
        found = {old.body.inputs[j]: G.take(w, index, axis=0) for j, w in zip(rows.taken, wholes, strict=True)}
        outputs = rebuild(old.body.outputs, G, replaced=found)
        new = [G.symbol.node(G.table, PUT_ROW, (whole, outputs[j], index), ())
               for whole, j in zip(so_far, rows.put, strict=True)]
        step = G.add(index, G.full(shape=(), value=-1 if old.reverse else 1, dtype=int64))
        return Body((*old.carried, index, *so_far, *[old.body.inputs[j] for j in rows.scanned], *wholes, *old.captured),
                    (*outputs[: old.carried_count], step, *new, *[outputs[j] for j in rows.stacked]))
