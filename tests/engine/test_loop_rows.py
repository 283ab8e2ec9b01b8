"""Rows that loops go over and stack up, and tapes of loops whose length is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.record import Repeat, Window
from nnc_core.engine import ComputationGraph
from tests.engine.loops import X, cumulated
from tests.engine.plans import both_ways, kinds, lowered

# ---- rows
ROWS = np.linspace(-1, 1, 5 * 32, dtype=np.float32).reshape(5, 32)


@pytest.mark.parametrize("reverse", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize(("device", "columns", "windows"), [
    ("strict:0", 32, True), ("strict:0", 16, True), ("strict:0", 3, False), ("strict-align128:0", 32, True),
    ("strict-align128:0", 16, False), ("strict-noviews:0", 32, False), ("strict-small:0", 16, True),
    ("strict-async:0", 16, True),
])
def test_rows_are_windows_where_they_are_aligned(device: str, columns: int, windows: bool, reverse: bool) -> None:
    """Otherwise they are taken and put by an index, and the values are the same."""
    xs = ROWS[:, :columns]
    run = lowered(lambda xs: cumulated(xs, reverse), xs, device=device)
    names = [s.group.op.name for s in run.plan.steps]
    assert ("Window" in kinds(run)) == windows
    assert ("put_row" in names) == ("take" in names) == (not windows)
    assert "copy" not in names or not windows, "rows are read and computed where they lie"
    last, ys = both_ways(lambda xs: cumulated(xs, reverse), xs, device=device)
    c, wanted = np.zeros(columns, np.float32), np.empty_like(xs)
    for i in range(5)[::-1] if reverse else range(5):
        c, wanted[i] = c[::-1] * np.float32(0.5) + xs[i], c * xs[i]
    np.testing.assert_array_equal(last, c)
    np.testing.assert_array_equal(ys, wanted)


def test_windows_lie_within_the_whole_in_every_round() -> None:
    """Backwards the last row comes first."""
    xs = np.concatenate([ROWS] * 4)
    for reverse in (False, True):
        run = lowered(lambda xs, reverse=reverse: cumulated(xs, reverse), xs)
        found: dict[int, list[int]] = {}
        for record in run.records:
            inner = record.records if isinstance(record, Repeat) else (record,)
            for i in range(record.count if isinstance(record, Repeat) else 1):
                for w in inner:
                    if isinstance(w, Window):
                        found.setdefault(w.source, []).append(w.offset + w.step * i)
        rows = [k * 128 for k in range(20)]
        assert len(found) == 2 and all(at == (rows[::-1] if reverse else rows) for at in found.values())


def test_some_rows_are_windows_and_some_are_not() -> None:
    def f(xs: Any, ns: Any) -> list[Any]:
        last, (ys, ms) = nnc.scan(lambda c, row: (c + row[0], (c * row[0], row[1] + 1)), xs[0] * 0.0, (xs, ns))
        return [last, ys, ms]

    run = lowered(f, ROWS, np.arange(5))
    assert "Window" in kinds(run) and "put_row" in [s.group.op.name for s in run.plan.steps]
    np.testing.assert_array_equal(both_ways(f, ROWS, np.arange(5))[2], np.arange(5) + 1)


# ---- tapes
def slope(x: Any, limit: Any) -> Any:
    """The gradient through a loop that runs until a sum reaches a limit, or not at all."""

    def loss(x: Any) -> Any:
        return nnc.sum(nnc.while_loop(lambda y: nnc.sum(y) < limit, lambda y: (y * y + 0.5,), (x,))[0])

    return nnc.grad(loss)(x)


def by_hand(x: np.ndarray[Any, Any], limit: float) -> np.ndarray[Any, Any]:
    slopes = np.ones_like(x)
    while x.sum() < limit:
        slopes, x = slopes * 2 * x, x * x + np.float32(0.5)
    return slopes


LIMITS = (20.0, 1e9, -100.0, 60.0)
"""Several rounds, more, none, fewer."""


def test_a_tape_holds_as_many_rounds_as_ran() -> None:
    f = nnc.jit(slope)
    with nnc.use_device("strict-poison:0"):
        x = nnc.asarray(X * 0.5 + 1)
        run = f.lower(x, nnc.asarray(np.float32(20))).program
        assert {"TapePush", "TapeRead", "TapeReset", "Repeat"} <= set(kinds(run))
        for limit in (*LIMITS, *LIMITS[::-1]):
            found = f(x, nnc.asarray(np.float32(limit))).numpy()
            np.testing.assert_allclose(found, by_hand(x.numpy(), limit), rtol=1e-5)
        assert f.traces == 1


class Allocations:
    """Sizes of what a device allocates."""

    def __init__(self, run: ComputationGraph, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        allocate = run.device.allocate

        def counted(nbytes: int) -> Any:
            self.sizes.append(nbytes)
            return allocate(nbytes)

        monkeypatch.setattr(run.device, "allocate", counted)

    def during(self, action: Callable[[], object]) -> list[int]:
        self.sizes.clear()
        action()
        return sorted(self.sizes)


def test_tapes_use_their_memory_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run allocates its outputs alone, as do shorter ones; a longer one what it has more."""
    run = lowered(slope, X * 0.5 + 1, np.float32(20))
    upload = run.executor.upload
    inputs = {shape: name for name, shape in ((k, n.shape) for k, n in run.graph.inputs.items())}
    given = {limit: {inputs[(16,)]: upload(X * np.float32(0.5) + 1), inputs[()]: upload(np.array(limit, np.float32))}
             for limit in LIMITS}
    allocations = Allocations(run, monkeypatch)
    first = allocations.during(lambda: run.run(given[20.0]))
    again = allocations.during(lambda: run.run(given[20.0]))
    assert len(again) < len(first)
    fresh = allocations.during(lambda: run.run(given[-100.0]))
    assert again == fresh, "no round at all needs as much as a second run: the outputs"
    longer = allocations.during(lambda: run.run(given[1e9]))
    assert len(longer) > len(fresh)
    assert allocations.during(lambda: run.run(given[1e9])) == fresh
    assert allocations.during(lambda: run.run(given[60.0])) == fresh


def test_a_loop_that_goes_back_may_leave_a_tape_for_another() -> None:
    """Second order: the way back of the first loop is taped backwards, and that tape is turned."""

    def curvature(x: Any, limit: Any) -> Any:
        return nnc.grad(lambda x: nnc.sum(slope(x, limit) ** 2))(x)

    with nnc.use_device("strict:0"):
        x, limit = nnc.asarray(X * np.float32(0.5) + 1), nnc.asarray(np.float32(60))
        f = nnc.jit(curvature)
        assert "TapeReverse" in kinds(f.lower(x, limit).program)
        for _ in range(2):
            np.testing.assert_allclose(f(x, limit).numpy(), curvature(x, limit).numpy(), rtol=1e-4)
