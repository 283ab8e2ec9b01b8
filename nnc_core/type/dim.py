"""Dimensions that are not known yet: integer polynomials over names, in normal form."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from operator import index
from typing import TypeAlias, Union

from nnc_core.base.errors import SymbolicDimensionError

Monomial: TypeAlias = tuple["str | Quotient", ...]
Terms: TypeAlias = "dict[Monomial, int]"
DimLike: TypeAlias = Union[int, "Dim"]
Dims: TypeAlias = tuple[DimLike, ...]


class Quotient:
    """A floor division that has no polynomial form; behaves as one more name."""

    __slots__ = ("denominator", "numerator", "text")

    def __init__(self, numerator: DimLike, denominator: DimLike) -> None:
        self.numerator, self.denominator = numerator, denominator
        self.text = f"({numerator}//{denominator})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


class Dim:
    """A polynomial; equal polynomials are equal objects, and one without names is an int from the start."""

    __slots__ = ("_key", "terms")

    def __init__(self, name: str) -> None:
        self.terms: Terms = {(name,): 1}
        self._key = frozenset(self.terms.items())

    @staticmethod
    def _of(terms: Terms) -> DimLike:
        terms = {monomial: factor for monomial, factor in terms.items() if factor}
        if not terms:
            return 0
        if terms.keys() == {()}:
            return terms[()]
        dim = object.__new__(Dim)
        dim.terms = terms
        dim._key = frozenset(terms.items())
        return dim

    @property
    def names(self) -> frozenset[str]:
        """Every name in it, those inside quotients included."""
        found: set[str] = set()
        for monomial in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= names_of((atom.numerator, atom.denominator))
        return frozenset(found)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dim) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        def show(monomial: Monomial, factor: int) -> str:
            sign = "-" if factor < 0 else "+"
            return sign + "*".join([str(abs(factor))] * (abs(factor) != 1 or not monomial) + [str(a) for a in monomial])

        ordered = sorted(self.terms.items(), key=lambda t: (-len(t[0]), str(t[0])))
        return "".join(show(m, f) for m, f in ordered).removeprefix("+")

    def __add__(self, other: DimLike) -> DimLike:
        total = dict(self.terms)
        for monomial, factor in _terms(other).items():
            total[monomial] = total.get(monomial, 0) + factor
        return Dim._of(total)

    def __mul__(self, other: DimLike) -> DimLike:
        product: Terms = {}
        for m, f in self.terms.items():
            for n, g in _terms(other).items():
                key = tuple(sorted(m + n, key=str))
                product[key] = product.get(key, 0) + f * g
        return Dim._of(product)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> DimLike:
        return self * -1

    def __sub__(self, other: DimLike) -> DimLike:
        return self + other * -1

    def __rsub__(self, other: DimLike) -> DimLike:
        return self * -1 + other

    def __floordiv__(self, other: DimLike) -> DimLike:
        if isinstance(other, int) and other > 0 and all(f % other == 0 for f in self.terms.values()):
            return Dim._of({m: f // other for m, f in self.terms.items()})
        return Dim._of({(Quotient(self, other),): 1})

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return Dim._of({(Quotient(other, self),): 1})

    def __index__(self) -> int:
        raise SymbolicDimensionError(f"dimension {self!r} has no number until the graph is specialised or called",
                                     hint="give the shape as a number, or keep the expression in dimensions")

    __int__ = __index__


def _terms(dim: DimLike) -> Terms:
    return dim.terms if isinstance(dim, Dim) else {(): index(dim)}


def substitute(dim: DimLike, sizes: Mapping[str, int]) -> int:
    """The number that a dimension has for these sizes; SymbolicDimensionError names a missing one."""
    if isinstance(dim, int):
        return dim
    return sum(factor * prod(_atom(atom, sizes) for atom in monomial) for monomial, factor in dim.terms.items())


def _atom(atom: str | Quotient, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, Quotient):
        return substitute(atom.numerator, sizes) // substitute(atom.denominator, sizes)
    if atom not in sizes:
        raise SymbolicDimensionError(f"no size given for dimension {atom!r}", hint=f"given: {dict(sizes)}")
    return sizes[atom]


def names_of(dims: tuple[DimLike, ...]) -> frozenset[str]:
    """The names in some dimensions."""
    return frozenset().union(*(d.names for d in dims if isinstance(d, Dim)))


def is_static(shape: Dims) -> bool:
    """True if every dimension is a number."""
    return all(isinstance(d, int) for d in shape)
