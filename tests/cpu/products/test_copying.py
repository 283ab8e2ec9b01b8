"""Products whose tiles pack the next block of B: the interpreter's bits for strips of panels, pieces and few rows."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import float32, float64
from nnc_cpu.addresses import arguments_of
from nnc_cpu.products import backend, plan
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.plan import Tile
from tests.cpu.products.running import HOSTS, SMALL_TILE, compiler, same_bits, values
from tests.cpu.products.test_matmul import check, matrices, packed

STEPS = 530


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack B whatever its size, in strips as long as may be."""
    for name in ("FOUND", "FEW_ROWS", "SMALL"):
        monkeypatch.setattr(plan, name, 0)
    monkeypatch.setattr(plan, "IN_PLACE", ())
    monkeypatch.setattr(plan, "STRIP_SHARES", 1)


def kind_of(host: str, columns: int, rows: int = 23) -> Kind:
    return compiler(host).plan(backend.problem_of(matrices(rows, columns, STEPS, float32)), SMALL_TILE).kind


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("strip", [1, 2, 3, 4, 9, 16])
@pytest.mark.usefixtures("always")
def test_strips(host: str, strip: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A strip, one that is not whole, and a last panel that is narrower, or has a vector less; two batches."""
    monkeypatch.setattr(plan, "MOST_STRIP", strip)
    lanes = compiler(host).vector // 4
    width = SMALL_TILE.vectors * lanes
    with config.using(threads=1):
        for columns in (2 * strip * width, (strip + 1) * width + 3, strip * width + lanes):
            kind = kind_of(host, columns)
            assert kind.copies_ahead and kind.strip == strip
            check(packed((2, 23, STEPS), (2, STEPS, columns)), host, SMALL_TILE)
            check(packed((23, STEPS), (2, STEPS, columns)), host, SMALL_TILE)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.usefixtures("always")
def test_left_columns_and_doubles(host: str) -> None:
    with config.using(threads=1):
        check(matrices(203, 70, STEPS, float32, ta=True), host, SMALL_TILE)
        check(matrices(203, 70, STEPS, float64), host, SMALL_TILE)
        check(matrices(40, 35, STEPS, float64, ta=True), host)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
@pytest.mark.usefixtures("always")
def test_fewer_tiles_than_vectors(host: str, rows: int) -> None:
    """Tiles copy several lines at a step; what they do not come to is copied behind them."""
    tile = Tile(min(rows, SMALL_TILE.rows), SMALL_TILE.vectors)
    for columns in (7, 70, 300):
        check(matrices(rows, columns, STEPS, float32), host, tile)
        check(matrices(rows, columns, STEPS, float32), host)


@pytest.mark.usefixtures("always")
def test_tasks_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece begins with nothing packed, and packs nothing for a task that others do."""
    monkeypatch.setattr(plan, "MOST_STRIP", 2)
    rows, columns = 400, 11 * SMALL_TILE.vectors * compiler("here").vector // 4
    command = packed((2, rows, STEPS), (2, STEPS, columns))
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    together, apart = (np.zeros(2 * rows * columns, np.float32) for _ in range(2))
    with config.using(threads=1):
        kernel = compiler("here").kernel(backend.problem_of(command), SMALL_TILE)
        kernel.bind([x.view(np.uint8) for x in (a, b, together)])()
    tasks, arguments = kernel.tasks, arguments_of([x.view(np.uint8) for x in (a, b, apart)])
    assert tasks.total > 20
    for begin in reversed(range(0, tasks.total, 5)):
        tasks.function(arguments, tasks.numbers, begin, min(begin + 5, tasks.total))
    assert same_bits(together, apart)


def test_blocks_of_steps_fit_their_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FOUND", 0)
    for strip in range(1, 17):
        monkeypatch.setattr(plan, "MOST_STRIP", strip)
        for steps in (513, 1000, 6272):
            problem = backend.problem_of(matrices(100, 4096, steps, float32))
            made = plan.plan_of(problem, plan.WIDEST)
            number = names_of(made.kind).index("part")
            assert made.kind.copies_ahead and made.kind.strip == strip
            assert 0 < made.numbers[number] <= made.kind.most_words


def test_when_b_is_packed_ahead() -> None:
    """Where rows are few, if it is large; not where all steps are one block, which the first tile packs."""
    def right(m: int, n: int, k: int) -> tuple[str, bool]:
        kind = plan.plan_of(backend.problem_of(matrices(m, n, k, float32)), plan.WIDEST).kind
        return kind.right, kind.copies_ahead

    assert right(100, 1024, 6272) == right(32, 1024, 1024) == right(8, 4096, 4096) == ("rows", True)
    assert right(8, 1024, 1024) == right(32, 256, 256) == ("panels", False)
    assert right(1024, 2048, 128) == ("rows", False)
