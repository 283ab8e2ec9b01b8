"""How often a loop's body is written down: rounds played through with buffers that move."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.engine.unrolling import Roles, Unrolling, state_after, unroll

LIMIT = 8


def played(carried: str, after: str, *, start: str | None = None, written: str | None = None) -> Unrolling | None:
    """Roles are letters; small ones are the loop's own buffers, capitals lie outside."""
    roles = Roles(list(carried), list(after))
    new = [r for r in after if r not in carried] if written is None else list(written)
    return unroll(roles, dict(zip(carried, start or carried, strict=True)), new, LIMIT)


def counts(unrolling: Unrolling | None) -> tuple[int, int]:
    """Rounds before, and copies of the body besides one."""
    assert unrolling is not None
    return len(unrolling.first), unrolling.copies


@pytest.mark.parametrize(("start", "first"), [("x", 0), ("X", 1)], ids=["its own", "from outside"])
def test_a_value_computed_elsewhere_takes_turns_between_two_places(start: str, first: int) -> None:
    """x = conv(x): NNC's type I; what comes from outside is read there in the first round, its type II."""
    assert counts(played("x", "y", start=start)) == (first, 1)


@pytest.mark.parametrize(("start", "first"), [("x", 0), ("X", 1)], ids=["its own", "from outside"])
def test_a_value_overwritten_in_place_needs_no_copy(start: str, first: int) -> None:
    assert counts(played("x", "x", start=start, written="x")) == (first, 0)


@pytest.mark.parametrize(("carried", "after"), [("ab", "bt"), ("abc", "bct"), ("abcd", "bcdt")])
def test_a_shift_of_n_values_takes_n_more_copies(carried: str, after: str) -> None:
    n = len(carried)
    assert counts(played(carried, after)) == (0, n)
    outside = played(carried, after, start=carried.upper())
    if 2 * n + 1 > LIMIT:
        assert outside is None
    else:
        assert counts(outside) == (n, n), "until the last value from outside is gone"


def test_values_that_change_places_are_never_written() -> None:
    assert counts(played("ab", "ba")) == (0, 1)
    assert counts(played("abc", "bca")) == (0, 2)
    assert counts(played("ab", "ba", start="AB")) == (0, 1), "they may stay outside"


def test_an_unchanged_value_stays_where_it_is() -> None:
    assert counts(played("k", "k", start="K", written="")) == (0, 0)
    assert counts(played("kx", "ky", start="KX")) == (1, 1)


def test_cycles_repeat_together() -> None:
    """Two places and three: six rounds."""
    assert counts(played("xab", "ybt")) == (0, 5)


def test_too_many_copies_are_not_written() -> None:
    """Three places and four: twelve rounds."""
    assert played("abcde", "bsdet") is None


def test_cycles_list_roles_in_the_order_in_which_buffers_move() -> None:
    assert Roles(list("ab"), list("bt")).cycles == [["t", "b", "a"]], "t takes a's buffer, b t's, a b's"
    assert Roles(list("ab"), list("ba")).cycles == [["a", "b"]]
    assert Roles(list("kx"), list("ky")).cycles == [["y", "x"], ["k"]]


@st.composite
def loops(draw: st.DrawFn) -> tuple[list[int], list[int], set[int], dict[int, Any]]:
    """Carried roles, those they have after a round, the ones overwritten in place, where they are at first."""
    n = draw(st.integers(1, 4))
    carried = list(range(n))
    after = [draw(st.sampled_from([i, 10 + i])) for i in draw(st.permutations(carried))]
    inplace = {r for r in carried if r in after and draw(st.booleans())}
    return carried, after, inplace, {r: draw(st.sampled_from([r, f"outside {r}"])) for r in carried}


@given(loops())
def test_every_round_finds_its_values(loop: tuple[list[int], list[int], set[int], dict[int, Any]]) -> None:
    """Memory is played with tokens: no value is overwritten before its last reader, and none outside ever."""
    carried, after, inplace, start = loop
    roles = Roles(carried, after)
    written = sorted({r for r in after if r >= 10} | inplace)
    unrolling = unroll(roles, start, written, 24)
    assert unrolling is not None, "the places of four values repeat within 12 rounds, and come from outside for 4"
    values: dict[int, Any] = {r: ("first", r) for r in carried}
    memory = {start[r]: v for r, v in values.items()}
    outside = {b for b in memory if isinstance(b, str)}
    for n in range(30):
        state = state_after(unrolling, n)
        assert {r: memory[state[r]] for r in carried} == values, f"round {n}"
        inside, computed = dict(state), dict(values)
        for role in written:
            target = inside[role] = roles.target(role, inside)
            assert target not in outside
            memory[target] = computed[role] = (n, role)
        values = {c: computed[a] for c, a in zip(carried, after, strict=True)}
