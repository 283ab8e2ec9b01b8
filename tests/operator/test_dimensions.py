"""Dimensions that are not known yet: polynomials in normal form, which numbers can be put into."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nnc_core.base.errors import SymbolicDimensionError
from nnc_core.type import Dim, is_static, names_of, substitute

NAMES = ("a", "b", "c")
numbers = st.integers(-5, 5)
leaves = st.one_of(numbers, st.sampled_from(NAMES).map(Dim))


def combined(children):
    return st.one_of(
        st.builds(lambda x, y: x + y, children, children), st.builds(lambda x, y: x - y, children, children),
        st.builds(lambda x, y: x * y, children, children),
    )  # fmt: skip


def divided(children):
    return st.builds(lambda x, n: x // n, children, st.integers(1, 4))


polynomials = st.recursive(leaves, combined, max_leaves=6)
dimensions = st.recursive(leaves, lambda c: st.one_of(combined(c), divided(c)), max_leaves=6)
sizes = st.fixed_dictionaries({name: st.integers(0, 9) for name in NAMES})


@given(polynomials, polynomials, polynomials)
def test_equal_polynomials_are_equal_objects(x, y, z) -> None:
    for left, right in [
        (x + y, y + x), (x * y, y * x), ((x + y) + z, x + (y + z)), ((x * y) * z, x * (y * z)),
        (x * (y + z), x * y + x * z), (x - y, x + (-1) * y), (x + 0, x), (x * 1, x), (0 - (0 - x), x),
    ]:  # fmt: skip
        assert left == right
        assert hash(left) == hash(right)
        assert repr(left) == repr(right)


@given(polynomials)
def test_what_has_no_name_is_an_int(x) -> None:
    for nothing in (x - x, x * 0, 0 * x):
        assert nothing == 0
        assert isinstance(nothing, int)
    assert isinstance(x, int) == (not names_of((x,)))


@given(polynomials, polynomials)
def test_different_polynomials_differ_somewhere(x, y) -> None:
    """Of degree at most 6 in each name, they are equal if they agree on 7 values of each."""
    grid = [dict(zip(NAMES, at, strict=True)) for at in itertools.product(range(7), repeat=3)]
    assert (x == y) == all(substitute(x, at) == substitute(y, at) for at in grid)


@given(dimensions, dimensions, sizes)
def test_substituting_is_a_ring_homomorphism(x, y, at) -> None:
    def value(dim):
        return substitute(dim, at)

    assert value(x + y) == value(x) + value(y)
    assert value(x - y) == value(x) - value(y)
    assert value(x * y) == value(x) * value(y)
    assert value(-x) == -value(x)


@given(dimensions, st.integers(1, 6), sizes)
def test_quotients_round_down(x, n, at) -> None:
    assert substitute(x // n, at) == substitute(x, at) // n


@given(polynomials, st.integers(1, 6))
def test_whole_multiples_divide_without_a_rest(x, n) -> None:
    assert (x * n) // n == x


@given(polynomials, st.lists(st.sampled_from(NAMES), max_size=3), st.integers(1, 6))
def test_whole_multiples_of_a_monomial_divide_without_a_rest(x, names, n) -> None:
    by = n
    for name in names:
        by = by * Dim(name)
    assert (x * by) // by == x


@given(dimensions, dimensions, sizes)
def test_quotients_of_dimensions(x, y, at) -> None:
    assume(substitute(y, at) != 0)
    assert substitute(x // y, at) == substitute(x, at) // substitute(y, at)


def test_quotients_are_names_of_their_own() -> None:
    n = Dim("n")
    half = (n + 1) // 2
    assert half == (1 + n) // 2
    assert half != n // 2
    assert half - half == 0
    assert half + half == 2 * half
    assert half.names == {"n"}
    assert repr(half * 3) == "3*(n+1//2)"


def test_names_are_collected_and_missing_ones_named() -> None:
    a, b = Dim("a"), Dim("b")
    assert names_of((a * b, 3, a // (b + 1))) == {"a", "b"}
    assert names_of((1, 2)) == set()
    assert not is_static((1, a))
    assert is_static((1, a - a))
    with pytest.raises(SymbolicDimensionError, match="no size given for dimension 'b'"):
        substitute(a + b, {"a": 1})


def test_a_dimension_is_no_number() -> None:
    for use in (int, range, lambda d: [1, 2][d]):
        with pytest.raises(SymbolicDimensionError, match="has no number until"):
            use(Dim("n"))
    for use in (lambda d: d * 0.5, lambda d: d + 1.0, lambda d: [0] * d, lambda d: d - "1"):
        with pytest.raises(TypeError):
            use(Dim("n"))


@pytest.mark.parametrize(("dim", "shown"), [
    (Dim("n") + 1, "n+1"), (2 * Dim("n"), "2*n"), (Dim("n") * Dim("m"), "m*n"), (Dim("n") - Dim("n") + 4, "4"),
    (Dim("n") - 1, "n-1"), (-Dim("n"), "-n"), (3 - 2 * Dim("n"), "-2*n+3"),
])  # fmt: skip
def test_how_they_read(dim, shown) -> None:
    assert str(dim) == shown
