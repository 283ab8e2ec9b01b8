"""Memory planners: what overlaps in time never overlaps in memory, and plans are as good as they claim."""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnc_core.base.errors import AttributeValueError, DeviceMemoryError
from nnc_core.base.missing import MissingPackageError
from nnc_core.engine.allocation import PLANNERS, ArenaAllocation, Lifetime, allocate, allocate_by, draw_timeline
from nnc_core.engine.allocation.greedy import range_minimum
from nnc_core.engine.allocation.timeline import timeline_figure
from tests.sizes import LONG

SIZE, BREADTH, PEBBLE, CLASSES = "greedy_by_size", "greedy_by_breadth", "pebble", "size_classes"

lifetime = st.builds(lambda nbytes, first, length: Lifetime(nbytes, first, first + length),
                     st.one_of(st.integers(0, 400), st.sampled_from((0, 64, 128))), st.integers(-3, 25),
                     st.integers(0, 12))
lifetimes = st.lists(lifetime, max_size=40)
alignments = st.sampled_from((1, 8, 48, 64))
each_planner = pytest.mark.parametrize("planner", sorted(PLANNERS))


def rounded(nbytes: int, alignment: int) -> int:
    return -(-nbytes // alignment) * alignment


def most_alive(items: Sequence[Lifetime], alignment: int) -> int:
    def alive(step: int) -> int:
        return sum(rounded(item.nbytes, alignment) for item in items if item.first <= step <= item.last)

    return max((alive(item.first) for item in items), default=0)


def assert_valid(items: Sequence[Lifetime], plan: ArenaAllocation, alignment: int, segment: int | None) -> None:
    assert len(plan.offsets) == len(items)
    spans = [(item, offset, offset + rounded(item.nbytes, alignment))
             for item, offset in zip(items, plan.offsets, strict=True)]
    assert all(low >= 0 and low % alignment == 0 for _, low, _ in spans)
    assert all(low == 0 for item, low, _ in spans if item.nbytes == 0)
    spans = [span for span in spans if span[0].nbytes]
    for (a, a_low, a_high), (b, b_low, b_high) in itertools.combinations(spans, 2):
        assert a.last < b.first or b.last < a.first or a_high <= b_low or b_high <= a_low
    room = segment or max((high for _, _, high in spans), default=1)
    assert all(low // room == (high - 1) // room for _, low, high in spans)
    assert set(range(len(plan.segments))) == {low // room for _, low, _ in spans}
    for i, used in enumerate(plan.segments):
        assert used == max(high - i * room for _, low, high in spans if low // room == i)
    assert plan.peak == sum(plan.segments)
    assert plan.bound == most_alive(items, alignment) <= plan.peak
    assert plan.total == sum(item.nbytes for item in items)


@each_planner
@given(items=lifetimes, alignment=alignments)
def test_overlapping_lifetimes_never_share_bytes(planner: str, items: list[Lifetime], alignment: int) -> None:
    plan = allocate_by(planner, items, alignment=alignment)
    assert plan.planner == planner
    assert_valid(items, plan, alignment, None)


@each_planner
@given(items=lifetimes, alignment=alignments, spare=st.integers(0, 10))
def test_none_straddles_segments(planner: str, items: list[Lifetime], alignment: int, spare: int) -> None:
    largest = max((item.nbytes for item in items), default=0)
    segment = max(rounded(largest, alignment) + spare * alignment, alignment)
    plan = allocate_by(planner, items, alignment=alignment, segment=segment)
    assert_valid(items, plan, alignment, segment)


@given(items=lifetimes, alignment=alignments)
def test_allocate_takes_the_smallest_peak(items: list[Lifetime], alignment: int) -> None:
    plan = allocate(items, alignment=alignment)
    assert_valid(items, plan, alignment, None)
    assert plan.peak == min(allocate_by(name, items, alignment=alignment).peak for name in PLANNERS)
    assert plan == allocate(list(items), alignment=alignment)


@each_planner
def test_many_lifetimes_in_few_segments(planner: str) -> None:
    draw = random.Random(0)
    lengths = draw.choices((0, 1, 2, 7, 40), k=300)
    items = [Lifetime(draw.randrange(1, 5000), first, first + length) for first, length in enumerate(lengths)]
    assert_valid(items, allocate_by(planner, items, alignment=64), 64, None)
    assert_valid(items, allocate_by(planner, items, alignment=64, segment=8192), 64, 8192)


def plain_greedy(items: Sequence[Lifetime]) -> list[int]:
    """Greedy by size without arrays: the lowest offset that fits, of 0 and the ends of what is placed."""
    placed: dict[int, int] = {}
    for i in sorted(range(len(items)), key=lambda i: (-items[i].nbytes, items[i].first)):
        a = items[i]
        near = [(placed[j], placed[j] + items[j].nbytes) for j in placed
                if items[j].first <= a.last and items[j].last >= a.first]
        placed[i] = next(start for start in sorted({0, *(high for _, high in near)})
                         if all(start + a.nbytes <= low or high <= start for low, high in near))
    return [placed[i] for i in range(len(items))]


@given(items=st.lists(lifetime.filter(lambda item: item.nbytes > 0), max_size=30))
def test_greedy_by_size_is_what_it_says(items: list[Lifetime]) -> None:
    assert list(allocate_by(SIZE, items, alignment=1).offsets) == plain_greedy(items)


@given(values=st.lists(st.integers(-9, 9), min_size=1, max_size=40), data=st.data())
def test_range_minimum(values: list[int], data: st.DataObject) -> None:
    position = st.integers(0, len(values) - 1)
    ranges = data.draw(st.lists(st.tuples(position, position).map(sorted), max_size=20))
    low, high = np.array(ranges, np.int64).reshape(-1, 2).T
    found = range_minimum(np.array(values, np.int64), low, high)
    assert found.tolist() == [min(values[a:b + 1]) for a, b in ranges]


def test_pebble_follows_owl_by_hand() -> None:
    items = [
        Lifetime(100, 0, 1),  # nothing free: block 0 of 100
        Lifetime(50, 1, 2),  # nothing free: block 1 of 50
        Lifetime(40, 2, 3),  # block 0 is free and fits
        Lifetime(60, 3, 4),  # block 1 is free and too small: enlarged to 60
        Lifetime(10, 4, 4),  # block 0
        Lifetime(30, 4, 4),  # nothing free: block 2 of 30
        Lifetime(70, 5, 5),  # 30, 60 and 100 are free: the smallest that fits is block 0
        Lifetime(20, 5, 5),  # block 2 rather than block 1
    ]
    plan = allocate_by(PEBBLE, items, alignment=1)
    assert plan.offsets == (0, 100, 0, 100, 0, 160, 0, 160)
    assert (plan.peak, plan.bound, plan.total) == (190, 150, 380)
    assert plan.ratio == pytest.approx(190 / 150)


def test_pebble_enlarges_the_largest_free_block() -> None:
    items = [Lifetime(10, 0, 0), Lifetime(30, 0, 0), Lifetime(20, 0, 0), Lifetime(50, 1, 1)]
    assert allocate_by(PEBBLE, items, alignment=1).offsets == (0, 10, 60, 10)


def test_greedy_by_breadth_begins_at_the_widest_step() -> None:
    """60 bytes live at step 1: 40 and 20 are placed first, so the 50 of step 0 does not come between them."""
    items = [Lifetime(50, 0, 0), Lifetime(5, 0, 0), Lifetime(20, 1, 2), Lifetime(40, 1, 1),
             Lifetime(30, 2, 2)]
    plan = allocate_by(BREADTH, items, alignment=1)
    assert plan.offsets == (0, 50, 40, 0, 0)
    assert plan.peak == plan.bound == 60


def test_breadth_takes_the_tightest_gap_and_size_the_lowest() -> None:
    """Stacked at step 0: 50, 40, 30, 20, 15.  At step 9 the 40 (from 50) and the 20 (from 120) are free."""
    items = [Lifetime(50, 0, 9), Lifetime(40, 0, 0), Lifetime(30, 0, 9), Lifetime(20, 0, 0),
             Lifetime(15, 0, 9), Lifetime(10, 9, 9)]
    assert allocate_by(SIZE, items, alignment=1).offsets == (0, 50, 90, 120, 140, 50)
    assert allocate_by(BREADTH, items, alignment=1).offsets == (0, 50, 90, 120, 140, 120)


@each_planner
def test_optimum_by_hand(planner: str) -> None:
    items = [Lifetime(10, 0, 1), Lifetime(20, 1, 2), Lifetime(10, 2, 3)]
    plan = allocate_by(planner, items, alignment=1)
    assert plan.peak == plan.bound == 30
    assert plan.offsets[0] == plan.offsets[2]


def test_optimum_that_blocks_cannot_reach() -> None:
    """Two halves follow one whole: only a planner that splits space meets the bound."""
    items = [Lifetime(64, 0, 0), Lifetime(32, 1, 1), Lifetime(32, 1, 1)]
    assert allocate_by(PEBBLE, items, alignment=32).peak == 96
    for planner in (SIZE, BREADTH, CLASSES):
        assert allocate_by(planner, items, alignment=32).peak == 64


def test_free_neighbours_are_merged() -> None:
    items = [Lifetime(32, 0, 0), Lifetime(32, 0, 0), Lifetime(32, 0, 3), Lifetime(64, 1, 1),
             Lifetime(16, 2, 2)]
    plan = allocate_by(CLASSES, items, alignment=16)
    assert plan.offsets == (0, 32, 64, 0, 0)


@each_planner
def test_alignment_is_paid_in_peak_and_bound(planner: str) -> None:
    plan = allocate_by(planner, [Lifetime(1, 0, 1), Lifetime(65, 0, 1)], alignment=64)
    assert sorted(plan.offsets) in ([0, 64], [0, 128])
    assert (plan.peak, plan.bound, plan.total) == (192, 192, 66)


@each_planner
def test_segments_by_hand(planner: str) -> None:
    plan = allocate_by(planner, [Lifetime(60, 0, 0)] * 3, alignment=1, segment=100)
    assert plan.offsets == (0, 100, 200)
    assert plan.segments == (60, 60, 60)
    assert plan.peak == plan.bound == 180


@pytest.mark.parametrize("items", [[], [Lifetime(0, 0, 5), Lifetime(0, 2, 2)]])
def test_nothing_to_place(items: list[Lifetime]) -> None:
    plan = allocate(items, alignment=64, segment=128)
    assert plan.offsets == (0,) * len(items)
    assert (plan.peak, plan.bound, plan.total, plan.segments, plan.ratio) == (0, 0, 0, (), 1.0)


@pytest.mark.parametrize(("budget", "planner", "peak"),
                         [(0, CLASSES, 40), (70, CLASSES, 40), (71, SIZE, 30), (1 << 20, SIZE, 30)])
def test_budget_decides_who_plans(budget: int, planner: str, peak: int) -> None:
    """Six lifetimes: a greedy planner costs 36 steps, half of the budget; pebble costs more and is no better (45)."""
    items = [Lifetime(10, 0, 1), Lifetime(10, 0, 3), Lifetime(20, 2, 3), Lifetime(30, 10, 10),
             Lifetime(15, 11, 11), Lifetime(15, 11, 11)]
    assert allocate_by(PEBBLE, items, alignment=1).peak == 45
    plan = allocate(items, alignment=1, budget=budget)
    assert (plan.planner, plan.peak, plan.bound) == (planner, peak, 30)


def test_values_kept_for_ever() -> None:
    items = [Lifetime(8, 0, 1 << 60), Lifetime(8, 1, 1), Lifetime(8, 2, 1 << 60)]
    assert allocate(items, alignment=8).peak == 16


def test_huge_chain_meets_the_bound() -> None:
    items = [Lifetime(1000, step, step + 1) for step in range(LONG)]
    plan = allocate(items, alignment=64)
    assert plan.ratio == 1.0
    assert set(plan.offsets) == {0, 1024}


def test_value_larger_than_a_segment() -> None:
    with pytest.raises(DeviceMemoryError, match=r"step 3 needs 300 bytes.* at most 256 bytes\s+try: "):
        allocate([Lifetime(8, 0, 0), Lifetime(300, 3, 4)], alignment=64, segment=256)
    assert allocate([Lifetime(256, 3, 4)], alignment=64, segment=256).peak == 256


def test_more_bytes_than_addresses() -> None:
    with pytest.raises(DeviceMemoryError, match="more than"):
        allocate([Lifetime(1 << 70, 0, 0)], alignment=64)


@pytest.mark.parametrize("item", [Lifetime(-1, 0, 0), Lifetime(4, 2, 1)])
def test_malformed_lifetime(item: Lifetime) -> None:
    with pytest.raises(AttributeValueError, match="lifetime 1 has"):
        allocate([Lifetime(4, 0, 0), item], alignment=1)


@pytest.mark.parametrize(("alignment", "segment"), [(0, None), (64, 100), (64, 32)])
def test_malformed_arena(alignment: int, segment: int | None) -> None:
    with pytest.raises(AttributeValueError, match=r"multiple of alignment 64|positive"):
        allocate([Lifetime(4, 0, 0)], alignment=alignment, segment=segment)


def test_unknown_planner() -> None:
    with pytest.raises(AttributeValueError, match="greedy_by_size"):
        allocate_by("best", [], alignment=1)


CHAIN = [Lifetime(100 * (step % 3 + 1), step, step + 2) for step in range(12)] + [Lifetime(50, 3, 1 << 60)]


@pytest.mark.parametrize("name", ["plan.png", "plan.svg"])
def test_timeline_is_drawn_without_pyplot(tmp_path: Path, name: str) -> None:
    pytest.importorskip("matplotlib")
    before = set(sys.modules)
    labels = [f"%{i} $x" for i in range(len(CHAIN))]
    path = draw_timeline(CHAIN, allocate(CHAIN, alignment=64), tmp_path / name, labels)
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert "matplotlib.pyplot" not in set(sys.modules) - before


LABELS = ("conv", "workspace of conv_kernel_gradient", "max_pool_index", "$x_1$", "workspace of where")


@settings(max_examples=10)
@given(st.lists(lifetime, min_size=1, max_size=25), st.data())
def test_labels_of_a_timeline_lie_within_their_rectangles_and_apart(items: list[Lifetime], data: st.DataObject) -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    names = [data.draw(st.sampled_from(LABELS)) for _ in items]
    figure = timeline_figure(items, allocate(items, alignment=1), names)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    (axes,) = figure.axes
    shown = [text.get_window_extent(renderer) for text in axes.texts]
    corners = [axes.transData.transform(path.vertices) for c in axes.collections for path in c.get_paths()]
    for box in shown:
        assert any((c.min(0) <= box.min + 1).all() and (box.max - 1 <= c.max(0)).all() for c in corners), box
    for k, box in enumerate(shown):
        assert not any(box.overlaps(other) for other in shown[:k])


def test_labels_of_a_timeline_stand_upright_and_are_shortened_where_there_is_no_room() -> None:
    pytest.importorskip("matplotlib")
    items = [Lifetime(100, 0, 99), Lifetime(100, 0, 1), Lifetime(40, 50, 51), Lifetime(1, 99, 99)]
    names = ["conv", "greater_equal", "workspace of conv_kernel_gradient_with_a_long_name", "nothing fits here"]
    (axes,) = timeline_figure(items, allocate(items, alignment=1), names).axes
    found = {text.get_text(): text.get_rotation() for text in axes.texts}
    assert found == {"conv": 0, "greater_equal": 90, "workspace": 90}


def test_timeline_of_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert draw_timeline([], allocate([], alignment=64), tmp_path / "plan.png").stat().st_size > 0


def test_timeline_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingPackageError, match=r"nnc-core\[plots\]"):
        draw_timeline(CHAIN, allocate(CHAIN, alignment=64), tmp_path / "plan.png")


def test_timeline_refuses_other_lifetimes_and_formats(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plan = allocate(CHAIN, alignment=64)
    with pytest.raises(AttributeValueError, match="13 lifetimes given for 12"):
        draw_timeline(CHAIN[1:], plan, tmp_path / "plan.png")
    with pytest.raises(AttributeValueError, match="1 labels for 13"):
        draw_timeline(CHAIN, plan, tmp_path / "plan.png", ["x"])
    with pytest.raises(ValueError, match="nonsense"):
        draw_timeline(CHAIN, plan, tmp_path / "plan.nonsense")
    assert not list(tmp_path.iterdir())
