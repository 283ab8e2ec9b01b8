"""Dimensions that are not known yet: integer polynomials over names, in normal form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from itertools import count
from math import prod
from typing import Any, TypeAlias, Union

import numpy as np

from nnc_core.base.errors import SymbolicDimensionError
from nnc_core.type.watching import DimWatcher, watching

Monomial: TypeAlias = tuple["str | Quotient", ...]
Terms: TypeAlias = "dict[Monomial, int]"
DimLike: TypeAlias = Union[int, "Dim"]
Dims: TypeAlias = tuple[DimLike, ...]


class SymbolicSize(str):
    """The name of a size that depends on data: resolved when it has been counted."""

    size: int | None = None
    source: Any = None
    """The operation whose elements it counts, by which its number is found."""

    def resolve(self, size: int) -> None:
        """Set its size, from now on."""
        self.size = size


class Quotient:
    """A floor division that has no polynomial form; behaves as one more name."""

    __slots__ = ("denominator", "numerator", "text")

    def __init__(self, numerator: DimLike, denominator: DimLike) -> None:
        self.numerator, self.denominator = numerator, denominator
        self.text = f"({_text(numerator)}//{_text(denominator)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return self.text


class Dim:
    """A polynomial; equal polynomials are equal objects, and one without names is an int from the start.

    Nobody knows its number, so that it differs from every int, has no order, and is no index.  While a function is
    traced whose sizes are known this time (`watching`), all these questions are answered by the number, and noted.
    """

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
        if isinstance(other, Dim) and self._key == other._key:
            return True
        if isinstance(other, float):
            return (watcher := _watcher(self)) is not None and watcher.number(self) == other
        if not isinstance(other, _WHOLE) or (watcher := _watcher(self, other)) is None:
            return False
        difference = self - other
        return watcher.equal(difference) if isinstance(difference, Dim) else difference == 0

    def __lt__(self, other: Any) -> bool:
        return _is_negative(self - other)

    def __gt__(self, other: Any) -> bool:
        return _is_negative(other - self)

    def __le__(self, other: Any) -> bool:
        return not _is_negative(other - self)

    def __ge__(self, other: Any) -> bool:
        return not _is_negative(self - other)

    def __bool__(self) -> bool:
        return _watcher(self) is None or not _is_zero(self)

    def __hash__(self) -> int:
        watcher = watching.get()
        known = None if watcher is None else watcher.hashed(self)
        return hash(self._key) if known is None else hash(known)

    def __repr__(self) -> str:
        watcher = _watcher(self)
        return _text(self) if watcher is None else str(watcher.number(self))

    def __format__(self, spec: str) -> str:
        return format(self.__index__(), spec) if spec else repr(self)

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self.__index__() + other if isinstance(other, float) else NotImplemented
        total = dict(self.terms)
        for monomial, factor in _terms(other).items():
            total[monomial] = total.get(monomial, 0) + factor
        return Dim._of(total)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self.__index__() * other if isinstance(other, float) else NotImplemented
        product: Terms = {}
        for m, f in self.terms.items():
            for n, g in _terms(other).items():
                key = tuple(sorted(m + n, key=str))
                product[key] = product.get(key, 0) + f * g
        return Dim._of(product)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self * -1

    def __sub__(self, other: Any) -> Any:
        return self + other * -1

    def __rsub__(self, other: Any) -> Any:
        return self * -1 + other

    def __floordiv__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return self.__index__() // other if isinstance(other, float) else NotImplemented
        return _floor(self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        if not isinstance(other, _WHOLE):
            return other // self.__index__() if isinstance(other, float) else NotImplemented
        return _floor(other, self)

    def __index__(self) -> int:
        watcher = _watcher(self)
        if watcher is not None:
            return watcher.number(self)
        raise SymbolicDimensionError(f"dimension {self!r} has no number until the graph is specialised or called",
                                     hint="give the shape as a number, or keep the expression in dimensions")

    __int__ = __index__


_WHOLE = (int, Dim, np.integer)
_BY_NUMBER = {"truediv": operator.truediv, "mod": operator.mod, "divmod": divmod, "pow": operator.pow}
"""Operations that leave the polynomials: done with the number, where there is one."""


def _by_number(function: Callable[[Any, Any], Any], swapped: bool) -> Callable[[Dim, Any], Any]:
    def method(self: Dim, other: Any) -> Any:
        if not isinstance(other, (*_WHOLE, float)):
            return NotImplemented
        mine, its = operator.index(self), operator.index(other) if isinstance(other, Dim) else other
        return function(its, mine) if swapped else function(mine, its)

    return method


for _name, _function in _BY_NUMBER.items():
    setattr(Dim, f"__{_name}__", _by_number(_function, swapped=False))
    setattr(Dim, f"__r{_name}__", _by_number(_function, swapped=True))


def _watcher(*dims: Any) -> DimWatcher | None:
    """The watcher that knows the numbers of all these dimensions, if there is one."""
    watcher = watching.get()
    return watcher if watcher is not None and names_of(dims) <= watcher.names else None


def _is_zero(difference: Any) -> bool:
    watcher = _watcher(difference)
    return watcher.is_zero(difference) if watcher is not None and isinstance(difference, Dim) else difference == 0


def _is_negative(difference: Any) -> bool:
    if not isinstance(difference, Dim):
        return bool(difference < 0)
    watcher = _watcher(difference)
    return operator.index(difference) < 0 if watcher is None else watcher.is_negative(difference)


def _floor(numerator: Any, denominator: Any) -> DimLike:
    """The quotient as a polynomial if there is no rest, unless it is known to be by zero."""
    exact = _divided(_terms(numerator), _terms(denominator))
    if exact is not None and not (isinstance(denominator, Dim) and _watcher(denominator) and _is_zero(denominator)):
        return Dim._of(exact)
    return Dim._of({(Quotient(numerator, denominator),): 1})


def _divided(terms: Terms, divisor: Terms) -> Terms | None:
    """The polynomial by one monomial with a positive factor, if there is no rest: 64*n by n is 64."""
    if len(divisor) != 1:
        return None
    ((atoms, factor),) = divisor.items()
    found: Terms = {}
    for monomial, f in terms.items():
        if not f:
            continue
        left = list(monomial)
        for atom in atoms:
            if atom not in left:
                return None
            left.remove(atom)
        if factor < 1 or f % factor:
            return None
        found[tuple(left)] = f // factor
    return found


def _text(dim: DimLike) -> str:
    """The polynomial, of the highest degree first."""

    def show(monomial: Monomial, factor: int) -> str:
        sign = "-" if factor < 0 else "+"
        return sign + "*".join([str(abs(factor))] * (abs(factor) != 1 or not monomial) + [str(a) for a in monomial])

    if not isinstance(dim, Dim):
        return str(dim)
    ordered = sorted(dim.terms.items(), key=lambda t: (-len(t[0]), str(t[0])))
    return "".join(show(m, f) for m, f in ordered).removeprefix("+")


_numbers = count(1)
_asked = False


def symbolic_size(source: Any = None) -> SymbolicSize:
    """A name unlike every other, for a size that depends on data."""
    global _asked
    _asked = True
    name = SymbolicSize(f"n#{next(_numbers)}")
    name.source = source
    return name


def any_data_dependent() -> bool:
    """False as long as nobody has asked for a size that depends on data: spares other programs looking for them."""
    return _asked


def is_data_dependent(name: str) -> bool:
    """True for the name of a size that depends on data, also of one that was read from a file."""
    return "#" in name


def _terms(dim: Any) -> Terms:
    return dim.terms if isinstance(dim, Dim) else {(): operator.index(dim)}


def substitute(dim: DimLike, sizes: Mapping[str, int]) -> int:
    """The number that a dimension has for these sizes; SymbolicDimensionError names a missing one."""
    if isinstance(dim, int):
        return dim
    return sum(factor * prod(_atom(atom, sizes) for atom in monomial) for monomial, factor in dim.terms.items())


def specialised(dim: DimLike, sizes: Mapping[str, int]) -> DimLike:
    """Numbers for the names in a dimension; those of sizes that depend on data may be missing, and then they stay."""
    if not isinstance(dim, Dim):
        return dim
    if all(name in sizes or not is_data_dependent(name) for name in dim.names):
        return substitute(dim, sizes)
    return renamed(dim, lambda name: name if name not in sizes and is_data_dependent(name) else _atom(name, sizes))


def resolved(dim: DimLike) -> DimLike:
    """Numbers for the dimensions whose sizes depend on data, once they are resolved."""
    return dim if not isinstance(dim, Dim) else renamed(dim, _resolved)


def _resolved(name: str) -> str | int:
    size = name.size if isinstance(name, SymbolicSize) else None
    return name if size is None else size


def renamed(dim: DimLike, replace: Callable[[str], str | int]) -> DimLike:
    """The dimension with names replaced by names or numbers."""
    if not isinstance(dim, Dim):
        return dim
    total: DimLike = 0
    for monomial, factor in dim.terms.items():
        term: DimLike = factor
        for atom in monomial:
            if isinstance(atom, Quotient):
                value = renamed(atom.numerator, replace) // renamed(atom.denominator, replace)
            else:
                new = replace(atom)
                value = Dim(new) if isinstance(new, str) else new
            term = value * term
        total = term + total
    return total


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
    return all([isinstance(d, int) for d in shape])
