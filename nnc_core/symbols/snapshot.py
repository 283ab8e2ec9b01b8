"""Snapshots of state: what is assigned to symbols and evaluated from it, and what cells hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.random.generator import Generator
from nnc_core.recording.symbols import SYMBOLS, Known
from nnc_core.symbol import postorder
from nnc_core.symbols.assigned import AssignedGraph
from nnc_core.symbols.symbolic import standing
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.modes import current_trace
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten
from nnc_core.values.unshaped import Unshaped
from nnc_core.values.value import Value


class Snapshot:
    """State at one moment.  Keeps its symbols and arrays alive; copies nothing, since values are never overwritten."""

    def __init__(self, symbols: Iterable[Value], cells: Iterable[Cell], unshaped: Iterable[Unshaped]) -> None:
        with SYMBOLS.lock:
            self.unshaped = {v: (None if v.declared is None else v.declared.now, v.pinned) for v in unshaped}
            self.known: dict[Value, Known | None] = {v: SYMBOLS.known.get(v) for v in symbols}
            self.frozen = {v for v in self.known if v in SYMBOLS.frozen}
        self.cells: dict[Cell, Tensor] = {cell: cell.read() for cell in cells}

    def __repr__(self) -> str:
        valued = sum(k is not None for k in self.known.values())
        return f"<snapshot of {len(self.known)} symbols, {valued} with values, and {len(self.cells)} cells>"


@located
def snapshot(*state: Any) -> Snapshot:
    """Remember state for `restore`.

    Takes symbols (with all that they depend on), graphs of `make_graph`, cells, generators, and structures of these,
    such as `module.cells()`.  Of symbols it keeps what was assigned, what was evaluated, what is frozen and where the
    generators of random ones stand.
    """
    _check_untraced("snapshot")
    outputs: list[Value] = []
    cells: dict[Cell, None] = {}
    for x in flatten(list(state))[0]:
        if isinstance(x, Cell):
            cells[x] = None
        elif isinstance(x, Generator):
            cells[x.key] = None
        else:
            outputs += _symbols(x)
    unshaped = [v for v in postorder(outputs) if isinstance(v, Unshaped)]
    shaped = [x for v in (*outputs, *unshaped) if (x := standing(Tensor(v))) is not None]
    symbols = [v for v in postorder(shaped, leaf=lambda v: v.trace is None) if v.trace is not None]
    cells.update(dict.fromkeys(SYMBOLS.generators[v].key for v in symbols if v in SYMBOLS.generators))
    return Snapshot(symbols, cells, unshaped)


def _symbols(x: Any) -> list[Value]:
    if isinstance(x, AssignedGraph):
        return [t._value for t in (*x.outputs.values(), *x.inputs.values())]
    if isinstance(x, Tensor) and x._value.trace is SYMBOLS:
        return [x._value]
    what = f"a tensor {x.spec}, which never changes" if isinstance(x, Tensor) else type(x).__name__
    raise OperandError(f"{what}: it has no state", hint="symbols, graphs of nnc.make_graph, cells and generators do")


@located
def restore(snapshot: Snapshot) -> None:
    """Put state back.  What was valid at the snapshot is valid again; what else depends on it is evaluated anew.

    Cells get their values back where they are now, even if they were lost or moved since.
    """
    _check_untraced("restore")
    for cell, tensor in snapshot.cells.items():
        cell.write(tensor.to(cell.device))
    with SYMBOLS.lock:
        for symbol, (now, pinned) in snapshot.unshaped.items():
            symbol.pinned = pinned
            if symbol.declared is not None:
                symbol.declared.becomes(now)
        SYMBOLS.shapes += 1
        later = SYMBOLS.clock  # so that everything outside the snapshot is older than what it is computed from
        for v, known in snapshot.known.items():
            if known is None:
                SYMBOLS.known.pop(v, None)
            else:
                SYMBOLS.known[v] = Known(known.stamp + later, known.array)
            (SYMBOLS.frozen.add if v in snapshot.frozen else SYMBOLS.frozen.discard)(v)
        SYMBOLS.clock = later + max((k.stamp for k in snapshot.known.values() if k is not None), default=0)
        SYMBOLS.changes += 1


def _check_untraced(what: str) -> None:
    if current_trace.get() is not None:
        raise NotSupportedError(f"{what} inside a function that is traced", hint="call it outside of nnc.jit")
