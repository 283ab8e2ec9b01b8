"""Weights that are packed when a graph is compiled: the same bits as without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.tiling import Tiling
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.packing import UNPACK
from nnc_core.operator.program import Input, Program, Step, StepResult
from nnc_core.type import TensorSpec
from nnc_cpu.products.backend import PackedProducts, problem_of
from nnc_cpu.products.plan import WIDEST, choose_tile, panel_width, plan_of
from tests.cpu.products.running import HOSTS, compiler, interpreted, run, same_bits, values
from tests.cpu.products.test_convolution import CASES
from tests.cpu.products.test_convolution import command as convolution
from tests.cpu.products.test_matmul import matrices

Values = np.ndarray[Any, Any]


def reading_panels(command: Command, tiling: Tiling) -> Command:
    """The command with its second input packed."""
    a, b = (TensorSpec(x.shape, x.dtype) for x in command.inputs)
    packed = TensorSpec(tiling.packed(b.static_shape), b.dtype)
    out = TensorSpec(command.output.shape, command.output.dtype)
    steps = (Step(UNPACK, (tiling, b.static_shape), (Input(1),), b),
             Step(OPERATORS[command.name], command.attributes, (Input(0), StepResult(0)), out))
    program = Program(steps, (a, packed), (1,), library=1)
    return Command(FUSED.name, (program,), (a.layout(), packed.layout()), command.outputs)


def check(command: Command, tiling: Tiling, host: str) -> None:
    a, b = (values(x, seed) for seed, x in enumerate(command.inputs))
    ours, theirs = (values(command.output, 99) for _ in range(2))
    packed = tiling.pack(b.reshape(command.inputs[1].shape)).reshape(-1)
    run(compiler(host).kernel(problem_of(reading_panels(command, tiling))), [a, packed, ours])
    interpreted(command, [a, b, theirs])
    assert same_bits(ours, theirs)


@pytest.mark.parametrize("host", HOSTS)
def test_bits_do_not_depend_on_packing(host: str) -> None:
    lanes = compiler(host).vector // 4
    for transposed, columns in ((False, lanes), (True, 2 * lanes + 3), (False, 5 * lanes)):
        order = (0, 1, 2) if transposed else (1, 0, 3)
        blocks = (2 * lanes, 1) if transposed else (1, 2 * lanes)
        check(matrices(7, columns, 19, float32, tb=transposed), Tiling(blocks, order), host)
    for name in ("3x3", "strides", "pointwise"):
        made = convolution("conv", CASES[name], float32)
        check(made, Tiling((1, 1, 1, lanes), (3, 0, 1, 2, 7)), host)


def test_wanted_are_panels_of_many_weights() -> None:
    products, convolutions = PackedProducts("matmul"), PackedProducts("conv")
    [(place, tiling)] = products.wants(matrices(50, 300, 200, float32)).items()
    assert place == 1 and products.refuse(reading_panels(matrices(50, 300, 200, float32), tiling)) is None
    [(_, turned)] = products.wants(matrices(50, 300, 200, float64, tb=True)).items()
    assert turned.packed((300, 200))[1] == 200
    assert products.wants(matrices(500, 20, 20, float32)) == {}
    image, kernel = Layout.packed((1, 8, 8, 64), float32), Layout.packed((3, 3, 64, 64), float32)
    made = Command("conv", ((1, 1), ((1, 1), (1, 1)), (1, 1), 1, "NHWC"), (image, kernel), (image,))
    [(_, tiling)] = convolutions.wants(made).items()
    assert convolutions.refuse(reading_panels(made, tiling)) is None


def test_panels_of_another_kind_are_refused() -> None:
    for made, tiling in ((matrices(5, 6, 7, float32), Tiling((2, 1), (0, 1, 2))),
                         (convolution("conv", CASES["3x3"], float32), Tiling((1, 1, 2, 1), (2, 0, 1, 3, 6)))):
        with pytest.raises(NotSupportedError, match="packed as it should be"):
            problem_of(reading_panels(made, tiling))


def test_constants_are_packed_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((64, 300), (300, 200)))
    with nnc.deferred():
        y = nnc.relu(x @ w)
    frozen = nnc.export({"x": x}, {"y": y}, capture="constant").compile()
    free = nnc.export({"x": x, "w": w}, {"y": y}).compile()
    assert "fused(unpack matmul relu)" in frozen.explain() and " pack(" not in frozen.explain()
    assert "pack(" not in free.explain().replace("unpack(", "") and "fused(matmul relu)" in free.explain()
    np.testing.assert_array_equal(np.asarray(frozen(x=x)["y"]), np.asarray(free(x=x, w=w)["y"]))


@pytest.mark.parametrize("transposed", [False, True])
def test_weights_that_many_rounds_read_are_packed_before_them(transposed: bool) -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(shape).astype(np.float32) / 9) for shape in ((40, 200), (200, 200)))

    def rounds(count: int) -> Any:
        """So many, as a loop; packed or not."""
        return nnc.jit(lambda x, w: nnc.scan(lambda v, _: (nnc.tanh(v @ (w.T if transposed else w)), None), x,
                                             length=count)[0])

    several, few = rounds(5), rounds(2)
    found = several(x, w).numpy()
    lines = several.explain(x, w).splitlines()
    [packing] = [i for i, line in enumerate(lines) if " pack(" in line]
    assert packing < next(i for i, line in enumerate(lines) if "5 times" in line)
    assert " pack(" not in few.explain(x, w), "that would not pay"
    wanted = nnc.jit(lambda v: nnc.tanh(v @ (w.T if transposed else w)))(few(few(x, w), w))
    np.testing.assert_array_equal(found, wanted.numpy())


def test_panels_suit_few_rows() -> None:
    """32 rows are tiles of 8 by three vectors, not of 6 by four."""
    vector = compiler("here").vector
    few, many = (problem_of(matrices(rows, 1024, 256, float32)) for rows in (32, 320))
    tile = choose_tile(32, 1024, vector // 4, vector == WIDEST)
    assert panel_width(few, vector) == tile.vectors * vector // 4
    assert panel_width(many, vector) == (4 if vector == WIDEST else 2) * vector // 4


@pytest.mark.parametrize(("columns", "vectors"), [(0, 1), (10, 1), (32, 2)])
def test_tiles_are_no_wider_than_a_product(columns: int, vectors: int) -> None:
    """Their sums lie close together, and no panel is another one's last."""
    assert choose_tile(784, columns, 16, True).vectors <= vectors


def test_panels_that_lie_packed_are_shared_by_few_rows() -> None:
    made = matrices(32, 4 * compiler("here").vector, 300, float32)
    [(_, tiling)] = PackedProducts("matmul").wants(made).items()
    problem, vector = problem_of(reading_panels(made, tiling)), compiler("here").vector
    alone, shared = (plan_of(problem, vector, threads=threads) for threads in (1, 2))
    assert alone.tasks < shared.tasks
    assert not shared.tasks % alone.tasks
