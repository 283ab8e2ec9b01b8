"""A plan changes nothing: compiled graphs, whose values share one arena, give what every operator gives on its own.

All memory that a call allocates is filled with 0xFF before, which every float dtype reads as NaN: what is read
before it is written, or after it was overwritten, shows.  Compared bit for bit, under `config.deterministic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.device import Buffer, Device
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.case import Array
from nnc_plugins.conformance.programs import RandomProgram, random_program
from nnc_plugins.conformance.running import called, compiles_slowly, one_by_one

GRAPHS, GRAPHS_COMPILED = 12, 3  # in a test; where each kernel has to be compiled there are fewer


class Poison:
    """Fills what the device allocates, and can do so again."""

    def __init__(self, device: Device) -> None:
        self.device, self.reserve = device, device.reserve
        self.buffers: list[Buffer] = []

    def __call__(self, nbytes: int) -> Buffer:
        buffer = self.reserve(nbytes)
        self.buffers.append(buffer)
        self.fill(buffer)
        return buffer

    def fill(self, buffer: Buffer) -> None:
        self.device.fill(buffer, b"\xff").wait()


@pytest.fixture
def poison(device: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poison]:
    found = Poison(device)
    with config.using(deterministic=True):
        yield found


def assert_same(found: dict[str, Array], wanted: dict[str, Array], graph: SymbolicGraph, what: str) -> None:
    for name, array in wanted.items():
        wrong = ~same_bits(found[name], array)
        assert not wrong.any(), f"{what}, output {name}: {int(wrong.sum())} of {array.size} elements differ in\n{graph}"


def check(stack: Stack, program: RandomProgram, poison: Poison, monkeypatch: pytest.MonkeyPatch, *,
          optimise: bool) -> None:
    """Twice with an arena of NaN, and once more with what the second call left there."""
    graph, given = program
    others = {name: (x + 1).astype(x.dtype) for name, x in given.items()}
    wanted, later = one_by_one(stack, graph, given), one_by_one(stack, graph, others)
    run = stack.engine.compile(graph, optimise=optimise)
    with monkeypatch.context() as patch:
        stack.device.trim()
        patch.setattr(stack.device, "reserve", poison)
        poison.buffers.clear()
        assert_same(called(run, given), wanted, graph, "the first call")
        for buffer in poison.buffers:
            poison.fill(buffer)
        assert_same(called(run, others), later, graph, "a call with a filled arena")
        assert_same(called(run, given), wanted, graph, "a call after another")


@pytest.mark.parametrize("optimise", [False, True], ids=["as written", "optimised"])
@pytest.mark.parametrize("batch", range(4), ids="batch {}".format)
def test_random_graphs(stack: Stack, rng: np.random.Generator, poison: Poison, monkeypatch: pytest.MonkeyPatch,
                       batch: int, optimise: bool) -> None:
    few = compiles_slowly(stack.device)
    rng = np.random.default_rng([batch, *rng.integers(0, 2**32, 2)])
    for _ in range(GRAPHS_COMPILED if few else GRAPHS):
        program = random_program(stack, rng)
        check(stack, program, poison, monkeypatch, optimise=optimise)


VIEWS: dict[str, Callable[[Nodes, Node], Node]] = {
    "transposed": lambda F, y: F.permute(y, axes=(1, 0)),
    "its first row": lambda F, y: F.slice(y, start=(0, 0), stop=(1, 6), step=(1, 1)),
    "every other column": lambda F, y: F.reshape(F.slice(y, start=(0, 0), stop=(6, 6), step=(1, 2)), shape=(3, 6)),
    "broadcast": lambda F, y: F.broadcast_to(F.slice(y, start=(2, 0), stop=(3, 6), step=(1, 1)), shape=(6, 6)),
    "transposed twice over": lambda F, y: F.permute(F.reshape(F.permute(y, axes=(1, 0)), shape=(6, 6)), axes=(1, 0)),
    "itself": lambda F, y: F.reshape(F.reshape(y, shape=(36,)), shape=(6, 6)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_memory_is_not_taken_over_while_a_view_of_it_is_read(
        stack: Stack, rng: np.random.Generator, poison: Poison, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """y dies in y - view(y), which may be written over y only if the view lies there element by element."""
    F = stack.operator.open()
    x = F.placeholder("x", TensorSpec((6, 6), float32))
    y, z = F.tanh(x), F.sin(x)
    seen = VIEWS[name](F, y)
    rows = F.concat(seen, seen, axis=0) if seen.shape == (3, 6) else seen
    later = F.multiply(F.subtract(y, rows), z)
    before = F.subtract(VIEWS[name](F, z), F.slice(z, start=(0, 0), stop=seen.shape, step=(1, 1)))
    graph = SymbolicGraph({"x": x}, {"later": F.negative(later), "before": F.negative(before)})
    given = {"x": rng.uniform(-1, 1, (6, 6)).astype(np.float32)}
    for optimise in (False, True):
        check(stack, RandomProgram(graph, given), poison, monkeypatch, optimise=optimise)


def test_a_chain_reuses_its_memory(stack: Stack, rng: np.random.Generator, poison: Poison,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty products of matrices need two places at a time, not forty."""
    F = stack.operator.open()
    x = y = F.placeholder("x", TensorSpec((8, 8), float32))
    for _ in range(40):
        y = F.tanh(F.matmul(y, x))
    graph = SymbolicGraph({"x": x}, {"y": F.add(y, 1)})
    check(stack, RandomProgram(graph, {"x": rng.uniform(-1, 1, (8, 8)).astype(np.float32)}), poison, monkeypatch,
          optimise=False)
    plan = stack.engine.compile(graph, optimise=False).memory_plan
    assert plan.bound <= plan.peak < plan.total / 10


def test_state_is_updated_in_place_and_read_before(stack: Stack, rng: np.random.Generator, poison: Poison,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """w' = w - x takes the memory of w, and the other reader of w runs first."""
    F = stack.operator.open()
    w, x = (F.placeholder(k, TensorSpec((5, 7), float32)) for k in "wx")
    graph = SymbolicGraph({"w": w, "x": x}, {"new": F.subtract(w, x), "seen": F.multiply(w, 2)}, (("new", "w"),))
    run = stack.engine.compile(graph)
    executor, state = stack.engine.executor, rng.uniform(-1, 1, (5, 7)).astype(np.float32)
    change = rng.uniform(-1, 1, (5, 7)).astype(np.float32)
    array, given = executor.upload(state), executor.upload(change)
    stack.device.trim()
    monkeypatch.setattr(stack.device, "reserve", poison)
    for _ in range(3):
        results = run.run({"w": array, "x": given})
        assert (executor.download(results["seen"]) == 2 * state).all()
        state = state - change
        array = results["new"]
        assert (executor.download(array) == state).all()
