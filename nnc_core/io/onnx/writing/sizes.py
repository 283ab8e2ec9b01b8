"""NamedSizes that have names, computed where the graph runs: from the shapes of the values that have them."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.errors import NotSupportedError
from nnc_core.io.onnx.writing.emitter import NodeEmitter
from nnc_core.type import Dim, DimLike, Dims, is_static
from nnc_core.type.dim import Monomial, Quotient


class NamedSizes:
    """Names of dimensions, and where they are found; texts of dimensions."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, int, int]] = {}
        self._counted: dict[str, str] = {}

    def learn(self, name: str, shape: Dims) -> None:
        """Take note of a value, under that name in the ONNX graph, from whose shape sizes can be read."""
        for axis, size in enumerate(shape):
            if isinstance(size, Dim) and len(size.terms) == 1:
                ((monomial, factor),) = size.terms.items()
                if len(monomial) == 1 and isinstance(monomial[0], str):
                    self._learn(monomial[0], (name, axis, factor))

    def _learn(self, size: str, place: tuple[str, int, int]) -> None:
        known = self._places.get(size)
        if known is None or known[2] > place[2]:
            self._places[size] = place

    def text(self, size: DimLike) -> str | int:
        """A dimension as files have it; what depends on data is numbered anew."""
        if not isinstance(size, Dim):
            return size
        for name in sorted(size.names):
            if "#" in name:
                self._counted.setdefault(name, f"counted#{len(self._counted)}")
        text = repr(size)
        for name, short in self._counted.items():
            text = text.replace(name, short)
        return text

    # ---- as values
    def size(self, b: NodeEmitter, size: DimLike) -> str:
        """An int64 row of one element."""
        if not isinstance(size, Dim):
            return b.integers([size])
        total = None
        for monomial, factor in size.terms.items():
            term = self._term(b, monomial, factor)
            total = term if total is None else b.op("Add", total, term)
        assert total is not None
        return total

    def _term(self, b: NodeEmitter, monomial: Monomial, factor: int) -> str:
        parts = [self._atom(b, atom) for atom in monomial]
        if factor != 1 or not parts:
            parts.append(b.integers([factor]))
        product = parts[0]
        for part in parts[1:]:
            product = b.op("Mul", product, part)
        return product

    def _atom(self, b: NodeEmitter, atom: str | Quotient) -> str:
        if isinstance(atom, Quotient):
            return b.op("Div", self.size(b, atom.numerator), self.size(b, atom.denominator))
        if atom not in self._places:
            raise NotSupportedError(f"the size {atom!r} is that of no axis of an input",
                                    hint="give it a number, or an input that has it")
        name, axis, factor = self._places[atom]
        found = b.op("Shape", name, start=axis, end=axis + 1)
        return found if factor == 1 else b.op("Div", found, b.integers([factor]))

    def shape(self, b: NodeEmitter, shape: Sequence[DimLike]) -> str:
        """An int64 row of sizes."""
        if is_static(tuple(shape)):
            return b.integers([int(n) for n in shape])
        parts = [self.size(b, n) for n in shape]
        return parts[0] if len(parts) == 1 else b.op("Concat", *parts, axis=0)
