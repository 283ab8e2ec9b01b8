"""What follows a product, written into its tiles: the bits of the fused nest, in every order of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import DType, boolean, float16, float32, float64, int64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Literal, Operand, Program, Step, StepResult
from nnc_core.type import TensorSpec
from nnc_cpu.products import backend, plan, right
from nnc_cpu.products.at_once import ends_at_once
from nnc_cpu.products.kind import STEPS
from nnc_cpu.products.numbers import names_of
from nnc_cpu.products.plan import Tile, plan_of
from tests.cpu.products.running import HOSTS, compiler, interpreted, run, same_bits, values, whole

Values = np.ndarray[Any, Any]
SHAPE = (7, 37)
SMALL_TILE = Tile(3, 2)


class Around:
    """Programs around a product, of (7, 5) and (5, 37) where no other is wanted."""

    def __init__(self, dtype: DType = float32, shape: tuple[int, int] = SHAPE, steps: int = 5,
                 turned: bool = False) -> None:
        self.shape, (rows, columns) = shape, shape
        left = (steps, rows) if turned else (rows, steps)
        self.inputs = [TensorSpec(left, dtype), TensorSpec((steps, columns), dtype)]
        self.steps: list[Step] = []
        self.product = self.step("matmul", Input(0), Input(1), attributes=(turned, False), dtype=dtype)

    def given(self, *shape: int, dtype: DType = float32) -> Input:
        self.inputs.append(TensorSpec(shape, dtype))
        return Input(len(self.inputs) - 1)

    def step(self, name: str, *operands: Operand, attributes: tuple[Any, ...] = (), dtype: DType = float32,
             shape: Sequence[int] | None = None) -> StepResult:
        self.steps.append(Step(OPERATORS[name], attributes, operands, TensorSpec(tuple(shape or self.shape), dtype)))
        return StepResult(len(self.steps) - 1)

    def command(self, *results: StepResult, layouts: dict[int, Layout] | None = None) -> Command:
        places = (tuple(range(2)),) * (len(results) - 1)
        program = Program(tuple(self.steps), tuple(self.inputs), tuple([r.number for r in results]), library=0,
                          places=places)
        inputs = [(layouts or {}).get(n, x.layout()) for n, x in enumerate(self.inputs)]
        return Command(FUSED.name, (program,), tuple(inputs),
                       tuple([self.steps[r.number].spec.layout() for r in results]))


def check(command: Command, host: str = "here") -> None:
    """The bits of the nest of the program, which is written by other code."""
    given = [values(x, seed) for seed, x in enumerate(command.inputs)]
    ours, theirs = ([values(x, 99 + n) for n, x in enumerate(command.outputs)] for _ in range(2))
    run(compiler(host).kernel(backend.problem_of(command), SMALL_TILE), [*given, *ours])
    interpreted(command._replace(attributes=(_without_library(command),)), [*given, *theirs])
    for a, b in zip(ours, theirs, strict=True):
        assert same_bits(a, b)


def _without_library(command: Command) -> Program:
    program: Program = command.attributes[0]
    return program._replace(library=None)  # type: ignore[return-value]


def bias_and_relu() -> Command:
    p = Around()
    return p.command(p.step("relu", p.step("add", p.product, p.given(37))))


def residual() -> Command:
    p = Around()
    scaled = p.step("multiply", p.product, Literal.of(0.3, float32))
    return p.command(p.step("add", p.given(*SHAPE), scaled))


def columns() -> Command:
    """A number for each row, and one for all."""
    p = Around()
    moved = p.step("subtract", p.product, p.given(7, 1))
    return p.command(p.step("divide", moved, p.given()))


def gelu() -> Command:
    p = Around()
    inner = p.step("erf", p.step("multiply", p.product, Literal.of(0.7071067811865476, float32)))
    half = p.step("multiply", p.product, Literal.of(0.5, float32))
    return p.command(p.step("multiply", half, p.step("add", inner, Literal.of(1, float32))))


def swish() -> Command:
    p = Around()
    return p.command(p.step("multiply", p.product, p.step("sigmoid", p.product)))


def repeated_bias() -> Command:
    p = Around()
    bias = p.step("broadcast_to", p.given(37), attributes=(SHAPE,))
    return p.command(p.step("tanh", p.step("add", p.product, bias)))


def casts() -> Command:
    p = Around()
    wide = p.step("cast", p.product, attributes=(float64,), dtype=float64)
    moved = p.step("add", wide, p.given(37, dtype=float64), dtype=float64)
    return p.command(p.step("cast", moved, attributes=(float16,), dtype=float16))


def mask() -> Command:
    p = Around()
    chosen = p.step("where", p.given(*SHAPE, dtype=boolean), p.product, Literal.of(0, float32))
    return p.command(p.step("less", chosen, p.given(1, 37), dtype=boolean))


def integers() -> Command:
    p = Around()
    count = p.step("cast", p.product, attributes=(int64,), dtype=int64)
    return p.command(p.step("add", count, p.given(37, dtype=int64), dtype=int64))


def doubles() -> Command:
    p = Around(float64)
    return p.command(p.step("exp", p.step("add", p.product, p.given(37, dtype=float64), dtype=float64),
                            dtype=float64))


def reshaped() -> Command:
    """As images again, beside a mask and a residual that are some, scaled by a number."""
    p = Around()
    images = p.step("reshape", p.product, attributes=((7, 37, 1),), shape=(7, 37, 1))
    kept = p.step("where", p.given(7, 37, 1, dtype=boolean), images, Literal.of(0, float32), shape=(7, 37, 1))
    scaled = p.step("multiply", kept, p.given(1), shape=(7, 37, 1))
    flat = p.step("reshape", p.given(259), attributes=((7, 37, 1),), shape=(7, 37, 1))
    return p.command(p.step("add", scaled, flat, shape=(7, 37, 1)))


def momentum() -> Command:
    """A gradient, the velocity and the weights: three results of one tile."""
    p = Around()
    velocity = p.step("add", p.step("multiply", p.given(*SHAPE), Literal.of(0.9, float32)), p.product)
    weights = p.step("subtract", p.given(*SHAPE), p.step("multiply", velocity, Literal.of(0.1, float32)))
    return p.command(p.product, velocity, weights)


CASES = [bias_and_relu, residual, columns, gelu, swish, repeated_bias, casts, mask, integers, doubles, reshaped,
         momentum]


@pytest.mark.parametrize("host", HOSTS)
def test_bits_are_those_of_the_fused_nest(host: str) -> None:
    for case in CASES:
        check(case(), host)


def adagrad(shape: tuple[int, int], steps: int, turned: bool) -> Command:
    """New squares and weights; a number for each row keeps quotients finite."""
    p = Around(shape=shape, steps=steps, turned=turned)
    weights, squares = p.given(*shape), p.given(*shape)
    new = p.step("add", p.step("multiply", squares, squares), p.step("multiply", p.product, p.product))
    moved = p.step("divide", p.product, p.step("add", p.step("sqrt", new), p.given(shape[0], 1)))
    return p.command(new, p.step("subtract", weights, moved))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("turned", [False, True])
def test_tiles_end_what_the_one_before_has_summed(host: str, turned: bool) -> None:
    width = SMALL_TILE.vectors * compiler(host).vector // 4
    for shape, steps in (((8, 2 * width), 6), ((7, width + 3), 13), ((3, width), 50), ((200, 3 * width - 5), 49),
                         ((2, width), 20), ((8, width), 5), ((8, width), 530)):
        command = adagrad(shape, steps, turned)
        assert plan_of(backend.problem_of(command), compiler(host).vector, SMALL_TILE).kind.ends_late
        check(command, host)


def test_tiles_end_each_other_where_the_first_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "right_of", lambda problem: "rows")
    width = SMALL_TILE.vectors * compiler("here").vector // 4
    for shape in ((8, 2 * width), (3, width), (7, width + 3)):
        check(adagrad(shape, 24, False))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("turned", [False, True])
def test_tiles_end_their_own_sums_at_once(host: str, turned: bool) -> None:
    """Whole tiles and rests of rows and columns, and sums in one block of steps or several."""
    width = SMALL_TILE.vectors * compiler(host).vector // 4
    for shape, steps in (((8, 2 * width), 6), ((7, width + 3), 1), ((3, width), 50), ((2, width), 20),
                         ((200, 3 * width - 5), 9), ((8, width + 1), 530)):
        p = Around(shape=shape, steps=steps, turned=turned)
        biased = p.step("add", p.product, p.given(shape[1]))
        command = p.command(p.step("relu", p.step("add", biased, p.given(*shape))))
        assert ends_at_once(plan_of(backend.problem_of(command), compiler(host).vector, SMALL_TILE).kind)
        check(command, host)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("turned", [False, True])
def test_strips_of_panels_are_ended(host: str, turned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CACHED", 0)
    monkeypatch.setattr(plan, "SHARES", 1)
    width = SMALL_TILE.vectors * compiler(host).vector // 4
    p = Around(shape=(8, 5 * width - 3), steps=530, turned=turned)
    biased = p.command(p.step("relu", p.step("add", p.product, p.given(5 * width - 3))))
    with config.using(threads=1):
        for command in (biased, adagrad((8, 5 * width - 3), 530, turned)):
            assert compiler(host).plan(backend.problem_of(command), SMALL_TILE).kind.strips
            check(command, host)


def test_sums_that_are_ended_in_memory() -> None:
    """What takes long is written once for all vectors."""
    for case, at_once in ((residual, True), (momentum, True), (gelu, False), (swish, False)):
        assert ends_at_once(plan_of(backend.problem_of(case()), 64).kind) == at_once


def test_b_is_packed_beside_weights_that_push_it_out_of_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, whose B is read where it lies, unless ends of tiles go through more than caches hold."""
    def way(command: Command) -> str:
        return plan_of(backend.problem_of(command), plan.WIDEST).kind.right

    command = adagrad((70, 67), 20, True)
    assert way(command) == "panels"
    for steps in (20, STEPS):
        large = adagrad((600, 700), steps, True)
        made = plan_of(backend.problem_of(large), plan.WIDEST)
        assert way(large) == "rows" and made.numbers[names_of(made.kind).index("part")] == steps  # ended late
    monkeypatch.setattr(right, "MUCH", 0)
    assert way(command) == "rows"
    for host in HOSTS:
        check(command, host)
    p = Around()
    assert way(p.command(p.step("add", p.product, p.given(37)))) == "panels"  # few rows


def test_arrays_that_lie_apart() -> None:
    p = Around()
    y = p.step("add", p.step("multiply", p.product, p.given(*SHAPE)), p.given(37))
    layouts = {2: Layout(SHAPE, float32, 8, (4 * 50, 4)), 3: Layout((37,), float32, 12, (4,))}
    check(p.command(y, layouts=layouts))


def test_operands_may_be_written_over() -> None:
    packed = backend.PackedProducts("matmul")
    assert packed.inplace_of(residual(), 0, ()) == (2,)
    assert packed.inplace_of(bias_and_relu(), 0, ()) == ()
    assert packed.inplace_of(momentum(), 1, ()) == (2, 3)
    command = residual()
    a, b, r = (values(x, seed) for seed, x in enumerate(command.inputs))
    apart = np.zeros(whole(command.output), np.float32)
    kernel = compiler("here").kernel(backend.problem_of(command), SMALL_TILE)
    kernel.bind([x.view(np.uint8) for x in (a, b, r, apart)])()
    kernel.bind([x.view(np.uint8) for x in (a, b, r, r)])()
    assert same_bits(r, apart)


def test_what_is_also_multiplied_is_not_written_over() -> None:
    p = Around()
    p.inputs = [TensorSpec((5, 5), float32)]
    product = Step(OPERATORS["matmul"], (False, False), (Input(0), Input(0)), TensorSpec((5, 5), float32))
    total = Step(OPERATORS["add"], (), (StepResult(0), Input(0)), TensorSpec((5, 5), float32))
    p.steps = [product, total]
    command = p.command(StepResult(1))
    assert backend.PackedProducts("matmul").inplace_of(command, 0, ()) == ()
    check(command)


def refused(command: Command) -> str:
    with pytest.raises(NotSupportedError) as error:
        backend.problem_of(command)
    return error.value.message


def test_what_is_not_taken_in() -> None:
    p = Around()
    assert "another size" in refused(p.command(p.step("sum", p.product, attributes=((1,), False), shape=(7,))))
    p = Around()
    images = p.step("reshape", p.product, attributes=((7, 37, 1),), shape=(7, 37, 1))
    assert "or is repeated" in refused(p.command(p.step("add", images, p.given(7, 1, 1), shape=(7, 37, 1))))
    p = Around()
    assert "no formula" in refused(p.command(p.step("sort", p.product, attributes=(1, False))))
    p = Around()
    p.steps[0] = p.steps[0]._replace(operands=(StepResult(0), Input(1)))
    assert "comes before" in refused(p.command(p.product))
    p = Around()
    p.steps[0] = p.steps[0]._replace(op=OPERATORS["conv"])
    assert "made for matmul" in (backend.PackedProducts("matmul").refuse(p.command(p.product)) or "")


def test_networks_run_their_layers_as_one_command_each() -> None:
    rng = np.random.default_rng(0)
    x, w, bias = (nnc.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((64, 100), (100, 50), (50,)))
    layer = nnc.jit(lambda x, w, bias: nnc.relu(x @ w + bias))
    with nnc.deferred():
        y = nnc.relu(x @ w + bias)
    run = nnc.export({"x": x, "w": w, "bias": bias}, {"y": y}).compile()
    assert "fused(matmul add relu)" in run.explain() and "[packed; " in run.explain()
    expected = np.maximum(np.asarray(x) @ np.asarray(w) + np.asarray(bias), 0)
    np.testing.assert_allclose(np.asarray(layer(x, w, bias)), expected, rtol=1e-5, atol=1e-5)
    with config.using(deterministic=True):
        eager, compiled = nnc.relu(x @ w + bias), nnc.jit(lambda x, w, bias: nnc.relu(x @ w + bias))(x, w, bias)
        np.testing.assert_array_equal(np.asarray(eager), np.asarray(compiled))


def test_what_the_user_wants_as_well_is_given_beside_the_last_result() -> None:
    rng = np.random.default_rng(0)
    x, w = (nnc.asarray(rng.standard_normal(shape).astype(np.float32)) for shape in ((64, 100), (100, 50)))
    with nnc.deferred():
        product = x @ w
        y = nnc.tanh(product)
    given, wanted = {"x": x, "w": w}, {"y": y, "product": product}
    run = nnc.export(given, wanted).compile()
    assert "fused(matmul tanh)" in run.explain() and run.explain().startswith("1 command")
    with config.using(fusion=False):
        apart = nnc.export(given, wanted).compile()
    together, alone = run(x=x, w=w), apart(x=x, w=w)
    for name in wanted:
        np.testing.assert_array_equal(np.asarray(together[name]), np.asarray(alone[name]))


@pytest.mark.parametrize("minimiser", [optim.SGD, optim.Adam, optim.Adagrad], ids=lambda m: m.__name__)
def test_weights_are_updated_on_the_tiles_of_their_gradients(minimiser: Any) -> None:
    """In place, and with the bits of one command for each operator."""
    rng = np.random.default_rng(0)
    x = nnc.asarray(rng.standard_normal((64, 100)).astype(np.float32))
    labels = nnc.asarray(rng.integers(0, 50, 64))

    def trained(fusion: bool) -> list[Values]:
        nnc.manual_seed(0)
        net = nn.Sequential(nn.Linear(100, 70), nn.ReLU(), nn.Linear(70, 50))
        rule = minimiser(net.named_parameters(), 0.01)
        step = optim.make_step(nn.value_and_grad(net, lambda x, y: nnc.cross_entropy(net(x), y)), rule)
        with config.using(fusion=fusion):
            for _ in range(3):
                step(x, labels)
            text = step.lower(x, labels).explain()
        updates = [line for line in text.splitlines() if "matmul" in line and "[packed; in the memory of" in line]
        assert len(updates) == (2 if fusion else 0), text
        return [np.asarray(p.read()) for p in net.named_parameters().values()]

    for together, apart in zip(trained(True), trained(False), strict=True):
        np.testing.assert_array_equal(together, apart)
