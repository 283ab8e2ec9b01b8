"""Matrix products as machine code: the interpreter's bits for every shape of tiles and panels, on every width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64, int32
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import broadcast_layout
from nnc_cpu.addresses import arguments_of
from nnc_cpu.products import backend, plan, right
from nnc_cpu.products.kind import MOST_STRIP
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.plan import Tile, plan_of
from tests.cpu.products.running import HOSTS, compiler, interpreted, run, same_bits, values

Values = np.ndarray[Any, Any]

SMALL_TILE = Tile(3, 2)
TURNED = [(False, False), (True, False), (False, True), (True, True)]


def command_of(a: Layout, b: Layout, ta: bool = False, tb: bool = False, out: Layout | None = None) -> Command:
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-1 if ta else -2], b.shape[-2 if tb else -1])
    return Command("matmul", (ta, tb), (a, b), (out or Layout.packed(shape, a.dtype),))


def packed(a: Sequence[int], b: Sequence[int], dtype: DType = float32, ta: bool = False, tb: bool = False) -> Command:
    return command_of(Layout.packed(tuple(a), dtype), Layout.packed(tuple(b), dtype), ta, tb)


def matrices(m: int, n: int, k: int, dtype: DType, ta: bool = False, tb: bool = False) -> Command:
    return packed((k, m) if ta else (m, k), (n, k) if tb else (k, n), dtype, ta, tb)


def check(command: Command, host: str = "here", tile: Tile | None = None,
          arrays: Sequence[Values] | None = None) -> Values:
    """The same bits as the interpreter's, whatever lies beside the arrays untouched; the storage of the result."""
    given = list(arrays or [values(x, seed) for seed, x in enumerate(command.inputs)])
    ours, theirs = (values(command.output, 99) for _ in range(2))
    run(compiler(host).kernel(backend.problem_of(command), tile), [*given, ours])
    interpreted(command, [*given, theirs])
    assert same_bits(ours, theirs)
    return ours


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_all_remainders(host: str, dtype: DType, ta: bool, tb: bool) -> None:
    """Rows, columns and steps around those of tiles, panels and vectors."""
    width = 2 * compiler(host).vector // dtype.itemsize
    sizes = (3, width, 16), (4, width + 1, 17), (5, 2 * width - 1, 1), (6, width // 2, 7), (7, 3, 31), (8, 1, 2)
    for size in sizes:
        check(matrices(*size, dtype, ta, tb), host, SMALL_TILE)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("dtype", [float16, bfloat16], ids=str)
def test_halves_are_added_as_float32(host: str, dtype: DType) -> None:
    for ta, tb in TURNED:
        for size in ((5, 35, 19), (3, 7, 1), (50, 20, 33)):
            check(matrices(*size, dtype, ta, tb), host, SMALL_TILE)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_blocks_of_halves(ta: bool, tb: bool) -> None:
    check(matrices(103, 70, 530, float16, ta, tb))


@pytest.mark.parametrize("size", [(1, 1, 1), (1, 300, 3), (2, 17, 5), (31, 100, 20), (65, 64, 9), (90, 15, 4)])
def test_tiles_that_are_chosen(size: tuple[int, int, int]) -> None:
    check(matrices(*size, float32))


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_blocks_of_rows_and_steps(ta: bool, tb: bool) -> None:
    """More rows than a task has, more steps than are packed at once, more columns than are read in place."""
    check(matrices(203, 70, 530, float32, ta, tb), tile=SMALL_TILE)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_strips_of_panels(host: str, ta: bool, tb: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many panels as a task has, and a rest of them; for each panel the rows of A are those of the first."""
    monkeypatch.setattr(plan, "CACHED", 0)
    monkeypatch.setattr(plan, "SHARES", 1)
    width = 2 * compiler(host).vector // 4
    command = packed((2, 530, 23) if ta else (2, 23, 530), (5 * width + 3, 530) if tb else (530, 5 * width + 3),
                     float32, ta, tb)
    with config.using(threads=1):
        assert compiler(host).plan(backend.problem_of(command), SMALL_TILE).kind.strips
        check(command, host, SMALL_TILE)


def test_b_is_read_where_it_lies() -> None:
    check(matrices(200, 40, 300, float32), tile=SMALL_TILE)
    check(matrices(3, 40, 4100, float32), tile=SMALL_TILE)
    check(matrices(3, 40, 4100, float32, ta=True), tile=SMALL_TILE)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_long_pieces_of_rows(host: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large matrix is read along its rows, some steps of many panels at a time; tiles of few rows are long."""
    monkeypatch.setattr(right, "LARGE", 0)
    lanes = compiler(host).vector // 4
    with config.using(threads=1):
        for columns in (16 * lanes, 8 * 3 * lanes, 5 * 4 * lanes + 3, 16 * 17 * lanes):
            for steps in (32, 100):
                made = compiler(host).plan(backend.problem_of(matrices(rows, columns, steps, float32)))
                strip = made.numbers[names_of(made.kind).index("strip")]
                panels = -(-columns // made.kind.width)
                assert made.kind.right == "panels" and strip == -(-panels // -(-panels // MOST_STRIP))
                check(matrices(rows, columns, steps, float32), host)
            check(packed((3, rows, 70), (3, 70, columns), float64), host)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("ta", [False, True])
@pytest.mark.parametrize("dtype", [float32, float64], ids=str)
def test_strips_of_panels_that_are_packed(host: str, ta: bool, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task packs some steps of each of its panels, all steps or a part; columns of A are copied for all of them."""
    monkeypatch.setattr(right, "LARGE", 0)
    monkeypatch.setattr(right, "PACKED_ROWS", 0)
    monkeypatch.setattr(plan, "FIRST_CACHED", 0)
    width = SMALL_TILE.vectors * compiler(host).vector // dtype.itemsize
    with config.using(threads=1):
        for rows, steps in ((3, 300), (7, 100), (203, 50), (64, 129)):
            command = packed((2, steps, rows) if ta else (2, rows, steps), (2, steps, 5 * width + 3), dtype, ta)
            kind = compiler(host).plan(backend.problem_of(command), SMALL_TILE).kind
            assert kind.right == "rows" and kind.copies == ta and kind.strips == (ta or steps > right.PACKED_STEPS)
            check(command, host, SMALL_TILE)


def test_pieces_of_rows_are_long_for_any_number_of_threads() -> None:
    for rows, columns in ((100, 1024), (8, 4096), (64, 128)):
        for threads in (1, 2, 8, 64):
            made = plan_of(backend.problem_of(matrices(rows, columns, 1000, float32)), plan.WIDEST, threads=threads)
            strip = made.numbers[names_of(made.kind).index("strip")]
            assert made.kind.strips and min(plan.LEAST_STRIP, columns // made.kind.width) <= strip <= MOST_STRIP


@pytest.mark.parametrize("host", HOSTS)
def test_the_first_tile_packs_b(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "right_of", lambda problem: "rows")
    width = 2 * compiler(host).vector // 4
    for size in ((203, 2 * width + 5, 530), (3, width, 257), (4, width + 1, 3), (7, 3, 40), (100, 4 * width, 1024)):
        command = matrices(*size, float32)
        assert plan_of(backend.problem_of(command), compiler(host).vector, SMALL_TILE).kind.right == "rows"
        check(command, host, SMALL_TILE)
    check(matrices(130, 70, 300, float32), host)
    check(matrices(130, 70, 300, float64, ta=True), host)


@pytest.mark.parametrize(("a", "b"), [
    ((4, 5, 7), (4, 7, 33)), ((4, 5, 7), (7, 33)), ((5, 7), (4, 7, 33)), ((2, 1, 3, 5, 7), (1, 4, 1, 7, 33)),
    ((3, 1, 7), (7, 5)), ((2, 3, 1, 4, 1, 7), (3, 1, 4, 7, 5)),
])  # fmt: skip
def test_batches(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(packed(a, b), tile=Tile(1, 2))


def test_batches_of_rows_that_share_b_are_one_matrix() -> None:
    problem = backend.problem_of(packed((8, 4, 7), (7, 5)))
    assert (problem.batch, problem.rows) == ((), 32)


@pytest.mark.parametrize(("ta", "tb"), TURNED)
def test_arrays_that_lie_apart(ta: bool, tb: bool) -> None:
    """Heads of attention: the axes of batches are not the outer ones; rows have gaps, arrays begin anywhere."""
    def heads(rows: int, width: int, offset: int) -> Layout:
        step = 4 * width + 3
        return Layout((2, 3, rows, width), float32, 4 * offset, (4 * rows * 3 * step, 4 * step, 12 * step, 4))

    a, b = heads(*((9, 5) if ta else (5, 9)), 3), heads(*((21, 9) if tb else (9, 21)), 1)
    check(command_of(a, b, ta, tb, out=heads(5, 21, 2)), tile=SMALL_TILE)


def test_rows_that_are_repeated_or_run_backwards() -> None:
    a, b = Layout.packed((1, 9), float32), Layout.packed((9, 20), float32)
    repeated = broadcast_layout(a, (6, 9))
    check(command_of(repeated, b), tile=SMALL_TILE)
    backwards = Layout((6, 9), float32, 4 * 45, (-36, 4))
    check(command_of(backwards, Layout((9, 20), float32, 4 * 160, (-80, 4))), tile=SMALL_TILE)


@pytest.mark.parametrize("host", HOSTS)
def test_numbers_that_are_not_finite(host: str) -> None:
    """Each stays in its row and column, also where tiles and panels are not whole."""
    command = matrices(7, 21, 5, float32)
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    a[7], a[11], b[30], b[50] = np.nan, np.inf, -np.inf, np.nan
    check(command, host, SMALL_TILE, [a, b])


def test_close_to_the_exact_product() -> None:
    command = matrices(300, 200, 1000, float32)
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    out = np.zeros((300, 200), np.float32)
    run(compiler("here").kernel(backend.problem_of(command)), [a, b, out])
    wide = [x.astype(np.float64).reshape(y.shape) for x, y in zip((a, b), command.inputs, strict=True)]
    bound = 1000 * 2.0**-24 * (abs(wide[0]) @ abs(wide[1]))
    assert (abs(out - wide[0] @ wide[1]) <= bound).all()


def test_tasks_are_independent() -> None:
    """Each by itself, the last first, gives what all together give."""
    command = matrices(400, 150, 40, float32, tb=True)
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    together, apart = (np.zeros(400 * 150, np.float32) for _ in range(2))
    kernel = compiler("here").kernel(backend.problem_of(command), SMALL_TILE)
    kernel.bind([x.view(np.uint8) for x in (a, b, together)])()
    tasks, arguments = kernel.tasks, arguments_of([x.view(np.uint8) for x in (a, b, apart)])
    for task in reversed(range(tasks.total)):
        tasks.function(arguments, tasks.numbers, task, task + 1)
    assert tasks.total > 10
    assert same_bits(together, apart)


def test_results_do_not_depend_on_how_many_share_the_work() -> None:
    problem = backend.problem_of(matrices(130, 70, 40, float32, tb=True))
    plans = [plan_of(problem, compiler("here").vector, SMALL_TILE, threads) for threads in (1, 4, 64)]
    assert plans[0].tasks < plans[1].tasks < plans[2].tasks
    assert len({plan.kind for plan in plans}) == 1
    with config.using(threads=64):
        check(matrices(130, 70, 40, float32, tb=True), tile=SMALL_TILE)


def test_sizes_are_not_in_the_code() -> None:
    small, large = ((300, 64, 300), (500, 192, 128), (301, 32, 77)), ((500, 640, 228), (700, 320, 900), (90, 1024, 300))
    for sizes in (small, large):
        kernels = [compiler("here").kernel(backend.problem_of(matrices(*size, float32)), SMALL_TILE) for size in sizes]
        assert len({id(kernel.code) for kernel in kernels}) == 1


def test_what_is_refused() -> None:
    products = backend.PackedProducts("matmul")
    refused = {
        "too small": matrices(8, 8, 8, float32),
        "there is nothing": matrices(64, 64, 0, float32),
        "nothing to multiply": matrices(0, 64, 64, float32),
        "no products of int32": matrices(64, 64, 64, int32),
        "neither the rows nor the columns of the first": command_of(
            Layout((64, 64), float32, 0, (1024, 8)), Layout.packed((64, 64), float32)),
        "neither the rows nor the columns of the second": command_of(
            Layout.packed((64, 64), float32), Layout((64, 64), float32, 0, (1024, 8))),
        "rows of the result": command_of(Layout.packed((64, 64), float32), Layout.packed((64, 64), float32),
                                         out=Layout((64, 64), float32, 0, (4, 256))),
        "axes of batches": command_of(Layout((2, 2, 2, 2, 64, 64), float32, 0, (9 << 20, 7 << 19, 1 << 20, 3 << 17,
                                                                               256, 4)),
                                      Layout.packed((2, 2, 2, 2, 64, 64), float32)),
        "made for matmul": matrices(64, 64, 64, float32)._replace(name="dot"),
    }  # fmt: skip
    for reason, command in refused.items():
        assert reason in (products.refuse(command) or ""), reason
    assert products.refuse(matrices(64, 64, 64, float32)) is None
