"""The memory planners that go beyond one pass over the lifetimes: the search, and NNC's allocation graph."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.engine.allocation import PLANNERS, Lifetime, allocate, allocate_by
from nnc_core.engine.allocation.choose import ArenaPlanner
from nnc_core.engine.allocation.lifetime import Demand, IntArray, make_demand
from nnc_core.engine.allocation.search import Search, least_steps, rank_rows, search, static_ranks
from nnc_core.engine.allocation.sections import Sections, most_members
from nnc_core.engine.allocation.stacking import NEVER, stack

ONE_PASS = [name for name in PLANNERS if name != "search"]
GRAPH = "allocation_graph"

lifetime = st.builds(lambda nbytes, first, length: Lifetime(nbytes, first, first + length),
                     st.one_of(st.integers(1, 400), st.sampled_from((64, 128))), st.integers(-3, 20),
                     st.integers(0, 10))
lifetimes = st.lists(lifetime, min_size=1, max_size=30)


def puzzle(seed: int, parts: int) -> list[Lifetime]:
    """Forty steps of 4,096 bytes cut into rectangles at random: a plan that meets the bound exists."""
    draw = random.Random(seed)
    pieces = [(0, 40, 0, 64)]
    while len(pieces) < parts:
        left, right, low, high = pieces.pop(draw.randrange(len(pieces)))
        if draw.random() < 0.5 and right - left > 1:
            cut = draw.randrange(left + 1, right)
            pieces += [(left, cut, low, high), (cut, right, low, high)]
        elif high - low > 1:
            cut = draw.randrange(low + 1, high)
            pieces += [(left, right, low, cut), (left, right, cut, high)]
        else:
            pieces.append((left, right, low, high))
    return [Lifetime(64 * (high - low), left, right - 1) for left, right, low, high in pieces]


def top_of(demand: Demand, offsets: IntArray) -> int:
    return int((offsets + demand.sizes).max())


def ended(items: Sequence[Lifetime], steps: int) -> Search:
    state = Search(Sections.of(make_demand(items, alignment=1)), steps)
    state.run()
    return state


@given(items=lifetimes)
def test_sections_say_who_overlaps(items: list[Lifetime]) -> None:
    sections = Sections.of(make_demand(items, alignment=1))
    columns = [set(column) for column in sections.members.T.tolist()]
    for i, j in itertools.combinations(range(len(items)), 2):
        overlap = items[i].first <= items[j].last and items[j].first <= items[i].last
        assert overlap == any({i, j} <= column for column in columns)
    assert not any(a <= b for a, b in itertools.permutations(columns, 2))
    assert [sum(items[i].nbytes for i in column) for column in columns] == (sections.totals * sections.unit).tolist()


@given(items=lifetimes)
def test_members_are_not_underestimated(items: list[Lifetime]) -> None:
    demand = make_demand(items, alignment=1)
    assert Sections.of(demand).members.size <= most_members(demand)


def test_sections_count_in_the_largest_unit() -> None:
    items = [Lifetime(96, 0, 1), Lifetime(64, 1, 2)]
    assert Sections.of(make_demand(items, alignment=8)).unit == 32
    assert Sections.of(make_demand(items, alignment=8, segment=104)).unit == 8


def test_a_segment_beyond_all_offsets_is_none() -> None:
    sections = Sections.of(make_demand([Lifetime(64, 0, 1)] * 3, alignment=64, segment=1 << 50))
    assert sections.segment is None


@given(items=lifetimes)
def test_static_ranks_are_permutations(items: list[Lifetime]) -> None:
    ranks = static_ranks(Sections.of(make_demand(items, alignment=1)))
    assert (np.sort(ranks, axis=1) == np.arange(len(items))).all()


def test_static_ranks_by_hand() -> None:
    """Sections: {0, 1}, {1, 2}, {1, 3}."""
    items = [Lifetime(50, 0, 0), Lifetime(10, 0, 2), Lifetime(20, 1, 1), Lifetime(30, 2, 2)]
    by_low, by_high = static_ranks(Sections.of(make_demand(items, alignment=1)))[:2].tolist()
    assert by_low == [0, 1, 2, 3]  # begun at once: 50 x 1 before 10 x 3
    assert by_high == [3, 1, 2, 0]  # kept to the end: 30 before 10


@given(rows=st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=4))
def test_rank_rows(rows: list[list[float]]) -> None:
    for row, ranks in zip(rows, rank_rows(np.array(rows)).tolist(), strict=True):
        assert sorted(range(4), key=lambda i: ranks[i]) == sorted(range(4), key=lambda i: row[i])


@given(items=lifetimes, seed=st.integers(0, 9))
def test_stacked_plans_do_not_depend_on_their_neighbours(items: list[Lifetime], seed: int) -> None:
    sections = Sections.of(make_demand(items, alignment=1))
    ranks = rank_rows(np.random.default_rng(seed).random((5, len(items))))
    together = stack(sections, ranks, NEVER)
    for i in range(5):
        alone = stack(sections, ranks[i:i + 1], NEVER)
        assert (alone.heights[0], alone.offsets[:, 0].tolist()) == (together.heights[i],
                                                                    together.offsets[:, i].tolist())
    tops = (together.offsets + sections.sizes[:, None]).max(axis=0)
    assert together.heights.tolist() == tops.tolist()


@given(items=lifetimes, seed=st.integers(0, 9))
def test_plans_at_the_limit_are_given_up(items: list[Lifetime], seed: int) -> None:
    sections = Sections.of(make_demand(items, alignment=1))
    ranks = rank_rows(np.random.default_rng(seed).random((5, len(items))))
    heights = stack(sections, ranks, NEVER).heights
    limit = int(np.median(heights))
    assert stack(sections, ranks, limit).heights.tolist() == np.where(heights < limit, heights, NEVER).tolist()


def test_one_placement_is_looked_ahead() -> None:
    """By rank the 10 would lie at 0, and the 30 of its step above the 40 that rests on it: 80 instead of 70."""
    items = [Lifetime(10, 0, 0), Lifetime(40, 0, 1), Lifetime(30, 1, 1)]
    sections = Sections.of(make_demand(items, alignment=1))
    built = stack(sections, np.array([[0, 1, 2]]), NEVER)
    assert built.heights[0] * sections.unit == 70


@given(items=lifetimes, steps=st.integers(0, 1 << 22), more=st.integers(0, 1 << 22))
def test_more_steps_are_never_worse(items: list[Lifetime], steps: int, more: int) -> None:
    demand = make_demand(items, alignment=1)
    first = top_of(demand, search(demand, 0))
    fewer = top_of(demand, search(demand, steps))
    assert demand.bound <= top_of(demand, search(demand, steps + more)) <= fewer <= first


@pytest.mark.parametrize("steps", [0, 2_000_000, 3_000_000, 4_000_000])
def test_no_more_steps_than_allowed(steps: int) -> None:
    items = puzzle(3, 90)
    least = least_steps(make_demand(items, alignment=1))
    state = ended(items, steps)
    assert 0 < least < 2_000_000
    assert state.spent <= max(steps, least)
    assert state.spent > steps - 2 * least
    assert (state.tried > 1) == (steps > 0)


def test_search_is_deterministic() -> None:
    one, two = (ended(puzzle(3, 90), 1 << 24) for _ in range(2))
    assert one.tried == two.tried > 20
    assert one.best.tolist() == two.best.tolist()


def test_search_ends_at_the_bound() -> None:
    state = ended([Lifetime(64, step, step + 3) for step in range(30)], 1 << 40)
    assert (state.tried, state.heights[0]) == (1, state.sections.bound)


def test_search_ends_where_the_bound_is_out_of_reach() -> None:
    """No two of the 60 fit into one segment of 100."""
    state = Search(Sections.of(make_demand([Lifetime(60, 0, 1)] * 12, alignment=1, segment=100)), 1 << 60)
    state.run()
    assert state.heights[0] * state.sections.unit == 1160 > 12 * 60
    assert state.tried == 12 ** 2 // 4


@pytest.mark.parametrize(("seed", "parts"), [(3, 30), (5, 30), (7, 30), (0, 50), (2, 50), (7, 50)])
def test_puzzles_that_one_pass_does_not_solve(seed: int, parts: int) -> None:
    items = puzzle(seed, parts)
    assert min(allocate_by(name, items, alignment=64).ratio for name in ONE_PASS) > 1
    plan = allocate(items, alignment=64)
    assert (plan.planner, plan.ratio) == ("search", 1.0)


def test_search_is_not_run_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def place(demand: Demand, steps: int) -> IntArray:
        raise AssertionError("searched")

    monkeypatch.setitem(PLANNERS, "search", ArenaPlanner(place, lambda demand, budget: 0))
    assert allocate([Lifetime(64, step, step + 3) for step in range(30)], alignment=64).ratio == 1.0
    with pytest.raises(AssertionError, match="searched"):
        allocate(puzzle(3, 30), alignment=64)


def test_search_takes_half_of_the_budget_or_nothing() -> None:
    items = puzzle(3, 30)
    least = 2 * least_steps(make_demand(items, alignment=64))
    greedy = min(allocate_by(name, items, alignment=64).peak for name in ONE_PASS)
    assert allocate(items, alignment=64, budget=least - 2).peak == greedy
    for budget in (least, 1 << 24, 1 << 26):
        found = allocate_by("search", items, alignment=64, budget=budget).peak
        assert allocate(items, alignment=64, budget=budget).peak <= min(found, greedy)


def test_sizes_too_large_to_be_searched() -> None:
    items = [Lifetime((1 << 55) + i, i // 2, i // 2 + 2) for i in range(20)]
    demand = make_demand(items, alignment=1)
    assert not Sections.of(demand).exact
    assert search(demand, 1 << 20).tolist() == list(allocate_by("greedy_by_size", items, alignment=1).offsets)


def test_wide_offsets_are_searched() -> None:
    """The unit is one byte, so offsets need more than 32 bits."""
    small = puzzle(3, 30)
    large = [Lifetime((item.nbytes << 30) + 1, item.first, item.last) for item in small]
    plan = allocate_by("search", large, alignment=1)
    assert Sections.of(make_demand(large, alignment=1)).sizes.dtype == np.int64
    assert plan.peak < min(allocate_by(name, large, alignment=1).peak for name in ONE_PASS)


def plain_allocation_graph(items: Sequence[Lifetime]) -> list[int]:
    """NNC's rules with a dictionary of edges; blocks one after another."""
    start, end = -1, len(items)
    edges: dict[tuple[int, int], tuple[int, int]] = {}
    group: dict[int, int] = {}
    offset: dict[int, int] = {}
    blocks: list[int] = []
    length = max(item.first for item in items) - min(item.first for item in items) + 1

    def overlaps(i: int) -> int:
        return sum(items[j].first <= items[i].last and items[i].first <= items[j].last
                   for j in range(len(items)) if j not in group)

    def distance(i: int, giver: int, taker: int) -> tuple[int, bool, int] | None:
        before = length if giver == start else items[i].first - items[giver].last
        after = length if taker == end else items[taker].first - items[i].last
        fits = before > 0 and after > 0 and edges[giver, taker][0] >= items[i].nbytes
        return (before + after, taker != end, before) if fits else None

    while len(group) < len(items):
        size = max(items[i].nbytes for i in range(len(items)) if i not in group)
        largest = sorted((i for i in range(len(items)) if i not in group and items[i].nbytes == size),
                         key=lambda i: -overlaps(i))
        chosen, edge = largest[0], None
        for i in largest:
            options = [(found, key) for key in edges if (found := distance(i, *key))]
            if options:
                chosen, edge = i, min(options, key=lambda option: option[0])[1]
                break
        at = 0
        if edge is None:
            group[chosen], edge = len(blocks), (start, end)
            blocks.append(size)
        else:
            free, at = edges[edge]
            edges[edge] = free - size, at + size
            group[chosen] = group[edge[1] if edge[0] == start else edge[0]]
        offset[chosen] = at
        edges[edge[0], chosen] = edges[chosen, edge[1]] = size, at
    return [sum(blocks[:group[i]]) + offset[i] for i in range(len(items))]


@given(items=lifetimes)
def test_allocation_graph_is_what_it_says(items: list[Lifetime]) -> None:
    assert list(allocate_by(GRAPH, items, alignment=1).offsets) == plain_allocation_graph(items)


def test_allocation_graph_takes_the_tightest_edge() -> None:
    """The 40 fits after the 100 of step 0 and after that of step 2: it goes where less time passes."""
    items = [Lifetime(100, 0, 0), Lifetime(100, 0, 2), Lifetime(40, 4, 4)]
    assert allocate_by(GRAPH, items, alignment=1).offsets == (0, 100, 100)


def test_allocation_graph_splits_what_is_handed_on() -> None:
    """The 100 hands 60 on to the one and the rest of its bytes to the other."""
    items = [Lifetime(100, 0, 0), Lifetime(60, 1, 1), Lifetime(40, 1, 1), Lifetime(50, 2, 2)]
    plan = allocate_by(GRAPH, items, alignment=1)
    assert plan.offsets == (0, 0, 60, 0)
    assert plan.peak == plan.bound == 100


def test_allocation_graph_opens_blocks_side_by_side() -> None:
    """The 80 could use both halves of step 0 only if they were one block."""
    items = [Lifetime(50, 0, 0), Lifetime(50, 0, 0), Lifetime(80, 1, 1)]
    plan = allocate_by(GRAPH, items, alignment=1)
    assert plan.offsets == (0, 80, 0)
    assert (plan.peak, plan.bound) == (130, 100)


def test_allocation_graph_tries_equals_by_overlaps() -> None:
    """Of the two 20 the later overlaps more, so it is placed first and takes the bytes that both could have."""
    items = [Lifetime(20, 1, 1), Lifetime(20, 1, 3), Lifetime(30, 0, 0), Lifetime(5, 2, 2), Lifetime(5, 3, 3)]
    offsets = allocate_by(GRAPH, items, alignment=1).offsets
    assert offsets[1] == offsets[2] == 0
    assert offsets[0] == 30
