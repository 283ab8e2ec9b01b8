"""Convolutions that are pooled as they are computed: the bits of convolution, what follows it and pool one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED, command_of
from nnc_core.operator.products.arrange import arranged
from nnc_core.operator.program import Input, Literal, Operand, Program, Step, StepResult
from nnc_core.type import TensorSpec
from nnc_cpu.partial_sums import in_parts
from nnc_cpu.products.backend import PackedConvolutions, problem_of
from nnc_cpu.products.kind import TABLE
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.plan import Tile
from tests.cpu.products.running import HOSTS, compiler, run, same_bits, values

Values = np.ndarray[Any, Any]


class Pooled(NamedTuple):
    """A convolution and the pool behind it."""

    image: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]
    window: tuple[int, ...]
    pool_strides: tuple[int, ...]
    pool_dilation: tuple[int, ...]
    groups: int = 1

    @property
    def order(self) -> str:
        return {3: "NWC", 4: "NHWC", 5: "NDHWC"}[len(self.image)]

    @property
    def pool(self) -> tuple[Any, ...]:
        return self.window, self.pool_strides, ((0, 0),) * len(self.window), self.pool_dilation, self.order


CASES = {
    "2x2": Pooled((3, 8, 10, 5), (3, 3, 5, 9), (1, 1), ((1, 1), (1, 1)), (1, 1), (2, 2), (2, 2), (1, 1)),
    "odd sizes": Pooled((2, 9, 7, 1), (5, 5, 1, 37), (1, 1), ((2, 2), (2, 2)), (1, 1), (2, 2), (2, 2), (1, 1)),
    "windows apart": Pooled((2, 11, 12, 3), (3, 2, 3, 6), (1, 1), ((1, 0), (0, 1)), (1, 1), (2, 3), (3, 4), (1, 1)),
    "dilated": Pooled((1, 13, 12, 4), (3, 3, 4, 5), (1, 1), ((1, 1), (1, 1)), (2, 1), (2, 2), (4, 3), (3, 2)),
    "strides": Pooled((2, 17, 15, 4), (3, 3, 4, 20), (2, 2), ((1, 1), (0, 1)), (1, 1), (3, 3), (3, 3), (1, 1)),
    "groups": Pooled((2, 7, 6, 8), (3, 3, 4, 6), (1, 1), ((1, 1), (1, 1)), (1, 1), (2, 2), (2, 2), (1, 1), 2),
    "pointwise": Pooled((2, 6, 5, 7), (1, 1, 7, 33), (1, 1), ((0, 0), (0, 0)), (1, 1), (2, 2), (2, 2), (1, 1)),
    "one row": Pooled((2, 6, 5, 7), (3, 3, 7, 5), (1, 1), ((1, 1), (1, 1)), (1, 1), (1, 5), (1, 5), (1, 1)),
    "one dimension": Pooled((3, 20, 4), (5, 4, 6), (2,), ((2, 1),), (1,), (3,), (3,), (1,)),
    "three dimensions": Pooled((2, 4, 6, 5, 3), (2, 3, 2, 3, 4), (1, 2, 1), ((1, 0), (1, 1), (0, 1)), (1, 1, 2),
                               (2, 1, 2), (2, 1, 2), (1, 1, 1)),
    "runs": Pooled((2, 7, 9, 3), (5, 3, 3, 6), (1, 1), ((2, 2), (0, 0)), (2, 1), (2, 2), (2, 2), (1, 1)),
    "runs and strides": Pooled((2, 9, 19, 1), (2, 4, 1, 5), (1, 2), ((1, 0), (0, 1)), (1, 1), (2, 2), (3, 2), (1, 1)),
}  # fmt: skip


class Around:
    """A program of a convolution and what follows it."""

    def __init__(self, case: Pooled, dtype: DType = float32) -> None:
        self.case, self.dtype = case, dtype
        self.inputs = [TensorSpec(shape, dtype) for shape in (case.image, case.kernel)]
        self.steps: list[Step] = []
        how = (case.strides, case.padding, case.dilation, case.groups, case.order)
        self.conv = self.step("conv", Input(0), Input(1), attributes=how)

    def given(self, *shape: int) -> Input:
        self.inputs.append(TensorSpec(shape, self.dtype))
        return Input(len(self.inputs) - 1)

    def spec(self, x: Operand) -> TensorSpec:
        match x:
            case Input(number):
                return self.inputs[number]
            case StepResult(number):
                return self.steps[number].spec
        return TensorSpec((), x.dtype)

    def step(self, name: str, *operands: Operand, attributes: tuple[Any, ...] = ()) -> StepResult:
        op = OPERATORS[name]
        self.steps.append(Step(op, attributes, operands, op.infer(*map(self.spec, operands), *attributes)))
        return StepResult(len(self.steps) - 1)

    def pool(self, name: str, x: Operand) -> StepResult:
        return self.step(name, x, attributes=self.case.pool)

    def command(self, *results: StepResult) -> Command:
        program = Program(tuple(self.steps), tuple(self.inputs), tuple([r.number for r in results]), library=0)
        return Command(FUSED.name, (program,), tuple([x.layout() for x in self.inputs]),
                       tuple([self.steps[r.number].spec.layout() for r in results]))


def biased(case: Pooled, dtype: DType = float32) -> tuple[Around, StepResult]:
    p = Around(case, dtype)
    return p, p.step("relu", p.step("add", p.conv, p.given(case.kernel[-1])))


def largest(case: Pooled, dtype: DType = float32) -> Command:
    """Bias and relu before; the maximum and its place."""
    p, x = biased(case, dtype)
    best, place = p.pool("max_pool", x), p.pool("max_pool_index", x)
    return p.command(place, best)


def plainly(case: Pooled, dtype: DType = float32) -> Command:
    p = Around(case, dtype)
    return p.command(p.pool("max_pool", p.conv))


def mean(case: Pooled, dtype: DType = float32) -> Command:
    """A sum, a formula behind it, and an operand of each window."""
    p, x = biased(case, dtype)
    total = p.pool("sum_pool", x)
    scaled = p.step("divide", total, Literal.of(np.prod(case.window), dtype))
    return p.command(p.step("tanh", p.step("add", scaled, p.given(*p.spec(total).static_shape))))


MAKERS = {"largest": largest, "plainly": plainly, "mean": mean}


def one_by_one(command: Command, given: list[Values]) -> list[Values]:
    """The results, each step interpreted by itself."""
    program: Program = command.attributes[0]
    found: list[Values] = []
    for n, step in enumerate(program.steps):
        read = [x for x in step.operands if not isinstance(x, Literal)]
        places = iter(range(len(read)))
        operands = tuple([x if isinstance(x, Literal) else Input(next(places)) for x in step.operands])
        alone = Program((step._replace(operands=operands),), tuple(map(program.spec_of, read)), (0,))
        rule = step.op.nest or FUSED.nest
        assert rule is not None
        nest = expand(rule(program.command_of(n) if step.op.nest else command_of(alone)), EXPANSIONS)
        out = np.zeros(step.spec.static_shape, step.spec.dtype)
        arrays = [*[given[x.number] if isinstance(x, Input) else found[x.number] for x in read], out]
        storage = [np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in arrays]
        interpret(nest, storage, **({} if n == program.library else {"in_parts": in_parts}))
        found.append(storage[-1].view(step.spec.dtype).reshape(step.spec.static_shape))
    return [found[n] for n in program.results]


def check(command: Command, host: str = "here", tile: Tile | None = None, given: list[Values] | None = None) -> None:
    given = given or [values(x, seed) for seed, x in enumerate(command.inputs)]
    ours = [values(x, 99 + n) for n, x in enumerate(command.outputs)]
    run(compiler(host).kernel(problem_of(command), tile), [*given, *ours])
    shaped = [x.reshape(layout.shape) for x, layout in zip(given, command.inputs, strict=True)]
    for a, b in zip(ours, one_by_one(command, shaped), strict=True):
        assert same_bits(a, b.reshape(-1))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("case", CASES)
def test_bits_are_those_of_one_by_one(case: str, host: str) -> None:
    for make in MAKERS.values():
        check(make(CASES[case]), host, Tile(3, 2))


@pytest.mark.parametrize("dtype", [bfloat16, float16, float64])
@pytest.mark.parametrize("case", ["2x2", "strides", "groups", "odd sizes"])
def test_other_dtypes_and_tiles_that_are_chosen(case: str, dtype: DType) -> None:
    for make in MAKERS.values():
        check(make(CASES[case], dtype))


@pytest.mark.parametrize("case", [
    Pooled((3, 28, 28, 1), (5, 5, 1, 32), (1, 1), ((2, 2), (2, 2)), (1, 1), (2, 2), (2, 2), (1, 1)),
    Pooled((1, 20, 23, 40), (3, 3, 40, 150), (1, 1), ((1, 1), (1, 1)), (1, 1), (2, 2), (2, 2), (1, 1)),
    Pooled((2, 33, 31, 3), (3, 3, 3, 17), (1, 1), ((1, 1), (1, 1)), (1, 1), (3, 3), (3, 3), (1, 1)),
    Pooled((1, 44, 41, 2), (3, 3, 2, 9), (1, 1), ((1, 1), (1, 1)), (1, 1), (3, 5), (3, 5), (1, 1)),
], ids=["as in LeNet", "many channels", "nine elements", "fifteen elements"])  # fmt: skip
def test_blocks_of_rows_end_with_windows(case: Pooled) -> None:
    check(largest(case))
    check(largest(case), tile=Tile(13, 1))


@pytest.mark.parametrize(("case", "tile"), [
    (Pooled((1, 4, 4, 1), (13, 13, 1, 5), (1, 1), ((6, 6), (12, 12)), (1, 2), (4, 4), (4, 4), (1, 1)), Tile(13, 1)),
    (Pooled((1, 18, 18, 2), (5, 5, 2, 20), (1, 1), ((2, 2), (4, 4)), (1, 2), (3, 3), (3, 3), (1, 1)), None),
], ids=["many elements of windows", "tiles of the processor"])  # fmt: skip
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_tables_have_room_for_what_the_last_tile_notes(case: Pooled, tile: Tile | None, dtype: DType) -> None:
    """Blocks end with pooling windows, which may be in the middle of a tile."""
    made = largest(case, dtype)
    for exact in (True, False):
        plan = compiler("here").plan(problem_of(made), tile if exact else None, exact)
        numbers = dict(zip(names_of(plan.kind), plan.numbers, strict=True))
        noted = -(-numbers["block_rows"] // plan.kind.rows) * plan.kind.rows
        assert numbers["group"] * noted <= TABLE
    check(made, tile=tile)


def test_bias_with_all_axes_of_one_image() -> None:
    """Strides of axes of length one say nothing about rows."""
    case = Pooled((1, 12, 9, 5), (3, 3, 5, 9), (1, 1), ((1, 1), (1, 1)), (1, 1), (2, 2), (2, 2), (1, 1))
    p = Around(case)
    command = p.command(p.pool("max_pool", p.step("add", p.conv, p.given(1, 1, 1, 9))))
    assert PackedConvolutions("conv").refuse(command) is None
    check(command)


@given(st.integers(0, 1 << 30))
def test_random_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def drawn(low: int, high: int) -> tuple[int, int]:
        return int(rng.integers(low, high)), int(rng.integers(low, high))

    groups, channels, outputs = (int(rng.integers(1, n)) for n in (3, 5, 24))
    window, apart = drawn(1, 4), drawn(1, 3)
    if window == (1, 1):
        window = (2, 1)
    strides = tuple([(k - 1) * d + 1 + int(rng.integers(0, 2)) for k, d in zip(window, apart, strict=True)])
    case = Pooled((int(rng.integers(1, 4)), *drawn(18, 28), groups * channels),
                  (*drawn(1, 4), channels, groups * (outputs + 2)),
                  drawn(1, 3), (drawn(0, 3), drawn(0, 3)), drawn(1, 3), window, strides, apart, groups)
    make = list(MAKERS.values())[int(rng.integers(0, 3))]
    check(make(case), list(HOSTS)[int(rng.integers(0, len(HOSTS)))])


def test_nan_infinities_and_zeros_of_both_signs() -> None:
    """The kernel is one element of one channel, so that the image's values are what is pooled."""
    case = Pooled((2, 8, 8, 4), (1, 1, 4, 4), (1, 1), ((0, 0), (0, 0)), (1, 1), (2, 2), (2, 2), (1, 1))
    rng = np.random.default_rng(0)
    image = rng.choice(np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1]), case.image)
    for make in (plainly, largest):
        command = make(case)
        rest = [values(x, seed) for seed, x in enumerate(command.inputs[1:])]
        check(command, given=[image.reshape(-1), *rest])
    lowest = np.full(case.image, -np.inf, np.float32)
    check(plainly(case), given=[lowest.reshape(-1), np.ones(16, np.float32)])


def refusal(command: Command) -> str:
    reason = PackedConvolutions("conv").refuse(command)
    assert reason is not None
    return reason


def test_what_does_not_fit_is_refused() -> None:
    case = CASES["2x2"]._replace(image=(3, 16, 16, 8), kernel=(3, 3, 8, 16))
    assert "in common" in refusal(largest(case._replace(window=(3, 3))))
    assert "25 elements" in refusal(largest(case._replace(window=(5, 5), pool_strides=(5, 5))))
    depthwise = case._replace(kernel=(3, 3, 1, 8), groups=8)
    assert "depthwise" in refusal(largest(depthwise))
    p, x = biased(case)
    assert "wanted by others" in refusal(p.command(x, p.pool("max_pool", x)))
    p, x = biased(case)
    residual = p.step("add", x, p.given(*p.spec(x).static_shape))
    assert "order of pooling windows" in refusal(p.command(p.pool("max_pool", residual)))
    p, x = biased(case)
    assert "different values" in refusal(p.command(p.pool("max_pool", p.conv), p.pool("max_pool_index", x)))
    with pytest.raises(NotSupportedError, match="pooled as it is computed"):
        arranged(largest(case))


# ---- whole networks
def network(layout: str, pool: type[nn.Module]) -> nn.Sequential:
    """Two convolutions with pools: images of odd sizes, channels first or last."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding="SAME", layout=layout), nn.ReLU(), pool(2, layout=layout),
        nn.Conv2d(16, 24, 3, layout=layout), pool(3, layout=layout), nn.ReLU(), nn.Dropout(0.2), nn.Flatten(),
        nn.Linear(24 * 3 * 2, 5))


def images(layout: str) -> nnc.Tensor:
    shape = (20, 23, 19, 1) if layout == "NHWC" else (20, 1, 23, 19)
    return nnc.asarray(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("pool", [nn.MaxPool2d, nn.AvgPool2d], ids=["max", "mean"])
def test_training_gives_the_weights_of_one_command_for_each_operator(layout: str, pool: Any) -> None:
    x, labels = images(layout), nnc.asarray(np.random.default_rng(1).integers(0, 5, 20))

    def trained(fusion: bool) -> list[Values]:
        nnc.manual_seed(0)
        net = network(layout, pool)
        rule = optim.Adagrad(net.named_parameters(), 0.01)
        step = optim.make_step(nn.value_and_grad(net, lambda x, y: nnc.cross_entropy(net(x), y)), rule)
        with config.using(fusion=fusion, deterministic=True):
            for _ in range(4):
                step(x, labels)
            text = step.lower(x, labels).explain()
        together = [line for line in text.splitlines() if "conv add" in line and "_pool" in line]
        assert len(together) == (2 if fusion else 0), text
        return [np.asarray(p.read()) for p in net.named_parameters().values()]

    for together, apart in zip(trained(True), trained(False), strict=True):
        np.testing.assert_array_equal(together, apart)


def test_inference_gives_what_eager_and_deferred_code_give() -> None:
    net, x = network("NHWC", nn.MaxPool2d).eval(), images("NHWC")
    with nnc.no_grad(), config.using(deterministic=True):
        with nnc.deferred():
            y = net(x)
        run = nnc.export({"x": x}, {"y": y}, capture="constant").compile()
        assert "conv add relu max_pool" in run.explain(), run.explain()
        expected = np.asarray(net(x))
        np.testing.assert_array_equal(np.asarray(run(x=x)["y"]), expected)
        np.testing.assert_array_equal(np.asarray(nnc.jit(net)(x)), expected)
        np.testing.assert_array_equal(np.asarray(y), expected)


def test_an_image_that_is_wanted_is_written() -> None:
    """The user wants what is pooled as well, or it is wanted besides the pool."""
    rng = np.random.default_rng(0)
    x = nnc.asarray(rng.standard_normal((4, 16, 16, 8)).astype(np.float32))
    w = nnc.asarray(rng.standard_normal((3, 3, 8, 16)).astype(np.float32))
    with nnc.deferred():
        y = nnc.relu(nnc.conv2d(x, w))
        z, total = nnc.max_pool2d(y, 2), nnc.sum(y)
    for wanted in ({"y": y, "z": z}, {"z": z, "total": total}):
        run = nnc.export({"x": x, "w": w}, wanted).compile()
        assert "fused(conv relu max_pool" not in run.explain()
        with config.using(fusion=False):
            apart = nnc.export({"x": x, "w": w}, wanted).compile()(x=x, w=w)
        for name, value in run(x=x, w=w).items():
            np.testing.assert_array_equal(np.asarray(value), np.asarray(apart[name]))


def test_the_place_may_be_all_that_is_wanted() -> None:
    rng = np.random.default_rng(0)
    x = nnc.asarray(rng.standard_normal((4, 16, 16, 8)).astype(np.float32))
    w = nnc.asarray(rng.standard_normal((3, 3, 8, 16)).astype(np.float32))
    with nnc.deferred():
        best, place = nnc.max_pool2d(nnc.conv2d(x, w), 2, with_indices=True)
    run = nnc.export({"x": x, "w": w}, {"best": best, "place": place}).compile()
    assert "fused(conv max_pool" in run.explain(), run.explain()
    with config.using(fusion=False):
        apart = nnc.export({"x": x, "w": w}, {"best": best, "place": place}).compile()(x=x, w=w)
    for name, value in run(x=x, w=w).items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(apart[name]))
