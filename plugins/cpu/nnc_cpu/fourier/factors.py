"""The order in which a length is taken apart, which is all that the bits of a transform depend on besides its elements.

A length that is the product of two is transformed as a matrix: along its columns, times roots of unity, along its rows
(Gentleman, Sande 1966), so that the parts of long rows fit into caches and vectors lie along rows or columns.
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt, prod
from typing import NamedTuple

LARGEST = 31
"""The largest prime factor that there is a butterfly for: of larger ones the text, which is written out, takes long to
compile."""
LEAST = 4
"""Rows and columns of the smallest matrix."""
VECTOR = 16
"""Elements of the widest vectors."""
BY_PRODUCTS = 1 << 15
"""Elements of the smallest matrix whose roots are products of two: a table of all would be as large as the array."""


class Factors(NamedTuple):
    """A length as radices: of the columns of its matrix, and of the rows; these are empty where there is no matrix."""

    columns: tuple[int, ...]
    rows: tuple[int, ...] = ()

    @property
    def by_products(self) -> bool:
        """True if its elements are multiplied by roots that are products of two tables'."""
        return self.height * self.width >= BY_PRODUCTS

    @property
    def height(self) -> int:
        """The length of columns."""
        return prod(self.columns)

    @property
    def width(self) -> int:
        """The length of rows."""
        return prod(self.rows)


@lru_cache(maxsize=1024)
def factors_of(points: int) -> Factors | None:
    """The radices of a length; None if one of its prime factors is too large."""
    if largest_prime(points) > LARGEST:
        return None
    heights = [n for n in range(LEAST, points // LEAST + 1) if points % n == 0] if points < 1 << 12 else [
        n for k in range(LEAST, isqrt(points) + 1) if points % k == 0 for n in (k, points // k)]
    if not heights:
        return Factors(radices_of(points))
    height = min(heights, key=lambda n: (_work(n) * _work(points // n) * _slope(n, points // n), -n))
    return Factors(radices_of(height), radices_of(points // height))


def _work(points: int) -> float:
    """Lanes that vectors have for each element, where the last is filled in part."""
    return -(-points // VECTOR) * VECTOR / points


def _slope(a: int, b: int) -> float:
    """Cost of one side that is longer than the other."""
    return max(a, b) / min(a, b)


def largest_prime(points: int) -> int:
    """The largest prime factor of a number, 1 of 1."""
    largest, prime = 1, 2
    while prime * prime <= points:
        if points % prime:
            prime += 1
        else:
            largest, points = max(largest, prime), points // prime
    return max(largest, points)


@lru_cache(maxsize=1024)
def radices_of(points: int) -> tuple[int, ...]:
    """The factors of a length, in the order of the passes: eights, with one sixteen or four for what they leave of a
    power of two, then odd primes."""
    found, twos, prime = list[int](), 0, 3
    while points % 2 == 0:
        points, twos = points // 2, twos + 1
    eights, left = divmod(twos, 3)
    if left == 1 and eights:
        found, eights, left = [16], eights - 1, 0
    found += [8] * eights + ([1 << left] if left else [])
    while points > 1:
        while points % prime == 0:
            found.append(prime)
            points //= prime
        prime += 2
    return tuple(found) or (1,)
