"""Blocks of masks as what is added to scores: steps by lanes, 0 and -inf for booleans."""

from __future__ import annotations

from math import inf

from nnc_core.base.dtype import DType, boolean
from nnc_cpu.attention.kind import AttentionKind, Mask
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held, stored
from nnc_cpu.products.panels import SIGNATURE, PanelWriter
from nnc_cpu.products.writing import difference, function_text, moved, product, smaller, store, total


class MaskWriter(PanelWriter):
    """Writes the function that lays a block of a mask out as tiles lay out scores."""

    def __init__(self, kind: AttentionKind, mask: Mask, halves: bool, declared: dict[str, None]) -> None:
        super().__init__(kind.tile(kind.rows, "rows", "rows" if mask.way == "along" else "columns"), kind.vectors,
                         halves, declared)
        self.mask = mask
        self.source, self.source_size = stored(mask.dtype), mask.dtype.itemsize

    def text(self, name: str) -> str:
        if self.mask.way in ("along", "turned"):
            return super().text(name)
        (self.shared if self.mask.way == "same" else self.singly)()
        return function_text(self.function, name, SIGNATURE)

    def converted(self, raw: Register) -> Register:
        return added(self.function, raw, self.mask.dtype, self.kind.dtype)

    def shared(self) -> None:
        """An element for all lanes."""
        f = self.function
        with f.loop(integer(0), self.length) as k:
            value = f.spread(self.element(product(f, k, self.step)), self.lanes)
            target = self.place(self.panel, k)
            for v in range(self.vectors):
                store(f, value, moved(f, target, self.type, integer(v), self.lanes), self.size, None)

    def singly(self) -> None:
        """Element by element; lanes that are not there get the last."""
        f = self.function
        last = difference(f, self.columns, integer(1))
        with f.loop(integer(0), self.length) as k, f.loop(integer(0), integer(self.vectors * self.lanes)) as lane:
            place = total(f, product(f, k, self.step), product(f, smaller(f, lane, last), self.column))
            f.set(moved(f, self.place(self.panel, k), self.type, lane), self.element(place))

    def element(self, place: Register) -> Register:
        f = self.function
        return self.converted(f.let(f"load {self.source}, {moved(f, self.b, self.source, place)}", self.source))


def added(f: FunctionWriter, raw: Register, mask: DType, dtype: DType) -> Register:
    """An element, or a vector, as it is added to scores."""
    if mask != boolean:
        return raw
    seen = f.let(f"icmp ne {raw}, {f.spread(integer(0, 8), raw.lanes).name}", "i1", raw.lanes)
    zero, hidden = (f.spread(constant(x, dtype), raw.lanes) for x in (0.0, -inf))
    return f.let(f"select {seen}, {zero}, {hidden}", held(dtype), raw.lanes)
