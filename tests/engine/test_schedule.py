"""Orders of commands: as little as possible lives at once, and what depends on something comes after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.engine.groups import NodeGroup
from nnc_core.engine.schedule import Scheduler
from nnc_core.engine.scheduling import arrange, choose
from nnc_core.engine.scheduling.commands import Commands
from nnc_core.engine.scheduling.footprint import Footprint
from nnc_core.engine.scheduling.in_place_concat import Joins
from nnc_core.engine.scheduling.lookahead import Lookahead
from nnc_core.engine.scheduling.orders import depth_first, freeing_soon, greedy
from nnc_core.engine.scheduling.problem import Frontier, Problem
from nnc_core.operator import PLACEHOLDER, Nodes
from nnc_core.stacks import Stack, stack_for
from nnc_core.symbol import Node
from nnc_core.type import Op, TensorSpec
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.programs import random_program
from nnc_plugins.conformance.running import called, one_by_one
from tests.engine.conftest import floats, graph
from tests.engine.graphs import Scheduled, keeps, optimum

MIX = Op("mix", ("*xs",), ("bytes",), lambda *a: TensorSpec((a[-1] // 4,), float32), lambda *a: None)
"""Stands for any command: what it reads must be there, and its result has so many bytes."""


class Sketch(NamedTuple):
    """For each command, in the order written, the kilobytes of its result and what it reads."""

    commands: Sequence[tuple[int, tuple[int, ...]]]
    updates: Sequence[int] = ()
    """Commands whose results take the memory of an input that they, and `readers` of theirs, read."""
    readers: Mapping[int, Sequence[int]] = {}
    kept: Sequence[int] = ()
    """Outputs beside those that nothing reads."""


def drawn(sketch: Sketch) -> Commands:
    """The commands of a sketch."""
    states = {n: Node(PLACEHOLDER, (), (f"w{n}",), TensorSpec((256 * sketch.commands[n][0],), float32), None)
              for n in sketch.updates}
    nodes: list[Node] = []
    for n, (size, read) in enumerate(sketch.commands):
        more = [states[m] for m in states if n == m or n in sketch.readers.get(m, ())]
        inputs = (*[nodes[m] for m in read], *more)
        nodes.append(Node(MIX, inputs, (1024 * size,), TensorSpec((256 * size,), float32), None))
    read = {m for _, found in sketch.commands for m in found}
    outputs = [y for n, y in enumerate(nodes) if n not in read or n in sketch.kept]
    groups = [NodeGroup(MIX, y.inputs, y.attributes, y) for y in nodes]
    return Commands(groups, outputs, {nodes[n]: x for n, x in states.items()}, stack_for("strict:0").engine.decider)


def footprint_of(commands: Commands) -> Footprint:
    return Footprint(commands, Joins(dict(commands.layouts)), lambda group: 0)


def no_bodies(group: NodeGroup) -> int:
    raise AssertionError("there are none")


CLASSICS = {
    "fan out and in": Sketch([(8, ()), (8, ()), (8, ()), (1, (0,)), (1, (1,)), (1, (2,)), (1, (3, 4, 5))]),
    "gradients kept for updates at the end": Sketch(
        [(2, ()), (2, (0,)), (2, (1,)), (9, (0,)), (9, (1,)), (9, (3,)), (9, (4,))], updates=(5, 6)),
    "the small branch first": Sketch([(2, ()), (3, (0,)), (9, ()), (1, (2,)), (1, (1, 3))]),
    "reversed branches": Sketch([(4, ()), (1, ()), (10, (1,)), (6, (0,)), (1, (2,)), (5, (3,)), (1, (4, 5))]),
    "masks made long before they are used": Sketch(
        [(8, ()), (8, ()), (2, ()), (2, (2, 0)), (2, (3, 1)), (1, (4,))]),
    "a value kept for one late reader": Sketch([(9, ()), (3, ()), (3, (1,)), (3, (2,)), (1, (0,)), (1, (3, 4))]),
    "an hourglass": Sketch([(3, ()), (3, ()), (1, (0, 1)), (9, (2,)), (9, (2,)), (1, (3,)), (1, (4,)), (1, (5, 6))]),
}


@pytest.mark.parametrize("name", CLASSICS)
def test_the_optimum_where_the_order_written_is_bad(name: str) -> None:
    commands = drawn(CLASSICS[name])
    footprint = footprint_of(commands)
    found = arrange(commands, no_bodies)
    assert len(commands.groups) <= 8 and keeps(commands, commands.written)
    assert found.bound == optimum(commands, footprint) < footprint.bound(commands.written)
    order = [commands.number[g.node] for g in found.groups]
    assert keeps(commands, order) and footprint.bound(order) == found.bound


def test_an_update_waits_for_every_other_reader() -> None:
    """The update is ready first and would free most; the two readers of its target come before it."""
    commands = drawn(Sketch([(2, ()), (8, (0,)), (1, ()), (1, (2,)), (1, (3,))], updates=(1,), readers={1: (3, 4)}))
    assert commands.before[1] == [0, 3, 4] and commands.settled == {1}
    order = [commands.number[g.node] for g in arrange(commands, no_bodies).groups]
    assert order.index(1) > max(order.index(3), order.index(4))


rows = st.lists(st.tuples(st.integers(1, 9), st.sets(st.integers(1, 12), max_size=3)), min_size=1, max_size=40)
sketches = rows.map(lambda rows: Sketch([(size, tuple(sorted({n - k for k in back if k <= n})))
                                         for n, (size, back) in enumerate(rows)]))
small = sketches.filter(lambda s: len(s.commands) <= 7)


@given(small)
def test_few_commands_get_the_optimum(sketch: Sketch) -> None:
    commands = drawn(sketch)
    footprint = footprint_of(commands)
    best = optimum(commands, footprint)
    assert arrange(commands, no_bodies).bound == best
    problem = Problem(footprint, commands.before, commands.users())
    found = Lookahead(problem, best + 1, 1 << 20).order()
    assert found is not None and footprint.bound(found) == best
    assert Lookahead(problem, best, 1 << 20).order() is None, "none is below the optimum"


@given(sketches)
def test_every_way_to_find_an_order_keeps_what_depends_on_what(sketch: Sketch) -> None:
    commands = drawn(sketch)
    footprint = footprint_of(commands)
    problem = Problem(footprint, commands.before, commands.users())
    turned, written = problem.turned(), commands.written
    for order in (freeing_soon(problem, written, 1 << 60), depth_first(problem, written, shallow_first=True),
                  depth_first(problem, written, shallow_first=False), greedy(problem, written),
                  greedy(turned, written[::-1])[::-1], freeing_soon(turned, written[::-1], 1 << 60)[::-1],
                  Lookahead(problem, 1 << 60, 1 << 12).order() or written):
        assert keeps(commands, order)
        assert footprint.bound(order) >= footprint.least()


@given(sketches)
def test_what_lives_is_known_while_an_order_is_made(sketch: Sketch) -> None:
    commands = drawn(sketch)
    footprint = footprint_of(commands)
    frontier = Frontier(Problem(footprint, commands.before, commands.users()))
    for n, lives in zip(commands.written, footprint.profile(commands.written), strict=True):
        assert n in frontier.ready() and frontier.needs(n) == lives, "nothing here works in place"
        frontier.run(n)
    assert frontier.live == 0 and not frontier.ready()


@given(sketches)
def test_freeing_soon_never_lets_more_live_than_it_may(sketch: Sketch) -> None:
    commands = drawn(sketch)
    footprint = footprint_of(commands)
    problem = Problem(footprint, commands.before, commands.users())
    limit = footprint.bound(commands.written)
    assert footprint.bound(freeing_soon(problem, commands.written, limit)) <= limit


def test_large_graphs_are_tried_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work grows with the number of commands: how often an order is gone over does not."""
    runs: list[int] = []
    lives = Footprint.lives
    monkeypatch.setattr(Footprint, "lives", lambda f, order: (runs.append(len(order)), lives(f, order))[1])
    rows = [(1 + n % 7, tuple(sorted({max(n - 1, 0), max(n - 3, 0)} - {n}))) for n in range(20_000)]
    commands = drawn(Sketch(rows))
    found = arrange(commands, no_bodies)
    assert len(runs) == 1 + choose.FEWEST_TRIES and set(runs) == {20_000}
    assert keeps(commands, [commands.number[g.node] for g in found.groups])


# ---- graphs of operators
def aligned(stack: Stack, nbytes: int) -> int:
    alignment = stack.device.spec.alignment
    return -(-nbytes // alignment) * alignment


@pytest.mark.parametrize("device", ["cpu:0", "strict:0", "strict-noviews:0", "strict-align128:0"])
@given(seed=st.integers(0, 1 << 20))
def test_random_graphs_need_what_was_foreseen_and_never_more_than_as_written(device: str, seed: int) -> None:
    stack = stack_for(device)
    scheduled = Scheduled(stack, random_program(stack, np.random.default_rng(seed)).graph)
    found, written = scheduled.tree(), scheduled.tree(as_written=True)
    groups, foreseen = [item.group for item in found.items], found.bound
    found_bound = scheduled.bound(found)
    # An update may take memory of which other parts are read: less is needed, or more if an output was to take that.
    partly = sum(aligned(stack, g.node.spec.nbytes) for g in groups if g.op.name == "update_slice")
    assert found_bound == foreseen or (partly and found_bound <= foreseen + partly)
    if not found.joins.whole:
        assert found_bound <= scheduled.bound(written) or partly
    else:
        commands = scheduled.commands()
        order = [commands.number[g.node] for g in groups if g.node in commands.number]
        assert keeps(commands, order)
        assert foreseen <= scheduled.footprint(found.joins).bound(commands.written)
        assert foreseen <= (1 + 1 / choose.WORTH) * scheduled.footprint().bound(commands.written)


@pytest.mark.parametrize("device", ["cpu:0", "strict-poison:0", "strict-align128:0", "strict-noviews:0"])
@given(seed=st.integers(0, 1 << 20), optimise=st.booleans())
def test_random_graphs_give_the_same_bits_in_any_order(device: str, seed: int, optimise: bool) -> None:
    with config.using(deterministic=True):
        stack = stack_for(device)
        program = random_program(stack, np.random.default_rng(seed))
        wanted = one_by_one(stack, program.graph, program.given)
        found = called(stack.engine.compile(program.graph, optimise=optimise), program.given)
        for name, array in wanted.items():
            assert same_bits(found[name], array).all(), f"{name} of seed {seed}"


def test_what_an_output_is_computed_from_in_place_costs_nothing(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 64)
    scheduled = Scheduled(stack, graph({"x": x}, {"y": F.sin(F.negative(F.exp(x)))}))
    assert scheduled.tree().bound == scheduled.bound(scheduled.tree()) == 0


def test_gradients_die_in_their_updates(stack: Stack, F: Nodes) -> None:
    """Weights of a chain of layers: however deep it is, one weight's gradient lives at a time."""

    def bound(layers: int) -> int:
        F = stack.operator.open()
        x, inputs, ys, outputs = floats(F, "x", 2, 32), {}, [], {}
        y = x
        for i in range(layers):
            inputs[f"w{i}"] = floats(F, f"w{i}", 32, 32)
            ys.append(y)
            y = F.tanh(F.matmul(y, inputs[f"w{i}"]))
        g = F.full_like(y, 1)
        for i in reversed(range(layers)):
            w = inputs[f"w{i}"]
            outputs[f"new{i}"] = F.subtract(w, F.multiply(F.matmul(ys[i], g, transpose_a=True), 0.1))
            g = F.matmul(g, w, transpose_b=True)
        given = {"x": x, **inputs}
        made = graph(given, dict(sorted(outputs.items())), *[(f"new{i}", f"w{i}") for i in range(layers)])
        run = stack.engine.compile(made)
        assert run.donated == set(inputs)
        return int(run.memory_plan.bound)

    assert bound(12) - bound(4) < 12 * 1024, "values of layers are added, 256 bytes each, not gradients of 4 KiB"


def test_effects_keep_their_order() -> None:
    """The second call would free much more than the first, and comes second all the same."""
    said: list[str] = []

    def say(what: str) -> Callable[..., Any]:
        def told(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            said.append(what)
            return np.asarray(x[:1], np.float32)

        return told

    def f(x: nnc.Tensor) -> nnc.Tensor:
        large = nnc.concat([x * float(k) for k in range(8)])
        first = nnc.callback(say("first"), nnc.TensorSpec((1,), float32), nnc.flip(x))
        second = nnc.callback(say("second"), nnc.TensorSpec((1,), float32), large)
        return first + second

    for device in ("cpu:0", "strict:0"):
        with nnc.use_device(device):
            x = nnc.asarray(np.ones(64, np.float32))
            f(x)
            order, said[:] = list(said), []
            nnc.jit(lambda y: f(y))(x)
            assert said == order
            said.clear()


def test_the_same_graph_is_ordered_alike_every_time(stack: Stack) -> None:
    program = random_program(stack, np.random.default_rng(7))
    orders = [[item.group.op.name for item in Scheduled(stack, program.graph).tree().items] for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]


def test_bodies_are_ordered_by_themselves(stack: Stack) -> None:
    """In the body of a loop three large values are reduced, one after the other."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        def body(i: nnc.Tensor, total: nnc.Tensor) -> Any:
            large = [nnc.broadcast_to(total[:1] * float(k), (2048,)) * 2.0 for k in range(3)]
            tops = [nnc.max(v) for v in large]
            return i + 1, total + tops[0] + tops[1] + tops[2]

        return nnc.while_loop(lambda i, _: i < 3, body, (nnc.asarray(0), x))[1]

    with nnc.use_device("strict:0"):
        run = nnc.jit(f).lower(nnc.asarray(np.ones(4, np.float32))).program
    large = [s for s in run.plan.arena if s.nbytes == 8192]
    assert large and max(sum(s.first <= t <= s.last for s in large) for t in {s.first for s in large}) == 1


def test_the_scheduler_arranges_each_body_once(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    arranged = Scheduler._arrange
    monkeypatch.setattr(Scheduler, "_arrange", lambda self, groups, *rest: (
        counted.append(len(groups)), arranged(self, groups, *rest))[1])
    with nnc.use_device("strict:0"):
        nnc.jit(lambda x: nnc.scan(lambda c, _: (nnc.sin(c), None), x, None, 5)[0]).lower(
            nnc.asarray(np.ones(4, np.float32)))
    assert len(counted) == 4, "the graph and its body, in the best order and in that written"
