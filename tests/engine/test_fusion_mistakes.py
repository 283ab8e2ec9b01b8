"""Fusion that goes wrong: that a mistake in it is seen, what it refuses, and graphs too large for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.codegen import merged_stages
from nnc_core.engine import candidates
from nnc_core.engine.fusion import grouping, ways
from nnc_core.engine.fusion.cluster import Cluster
from nnc_core.engine.plan import CommandPlanner
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.fused import FUSED
from nnc_core.operator.inlining import Composer, fused_nest
from nnc_core.operator.program import Input, Literal, Program, Step, StepResult
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats, graph
from tests.engine.fused_pairs import assert_fused_as_apart
from tests.engine.plan_meaning import PlanError
from tests.engine.test_fusion import F32, commands, compiled, weights_after

# ---- mistakes that would be seen
SIDE = 48


def chain(F: Nodes) -> SymbolicGraph:
    """The product reads rows that a command in place would have overwritten; so many that not all are read at once."""
    x, w = floats(F, "x", SIDE, SIDE), floats(F, "w", SIDE, SIDE)
    return graph({"x": x, "w": w}, {"y": F.sin(F.relu(F.matmul(F.exp(F.sin(x)), w)))})


def differs(stack: Stack, F: Nodes) -> bool:
    """Whether the chain gives something else when it is fused."""
    given = {"x": np.arange(SIDE * SIDE, dtype=F32).reshape(SIDE, SIDE) / 8, "w": np.eye(SIDE, dtype=F32)[::-1] - 0.01}
    made = chain(F)
    try:
        fused = call(compiled(stack, made), **given)["y"]
    except PlanError:
        return True
    return bool((fused != call(compiled(stack, made, fusion=False), **given)["y"]).any())


def test_the_chain_is_right(stack: Stack, F: Nodes) -> None:
    assert not differs(stack, F)


def test_memory_taken_over_without_proof_is_seen(stack: Stack, F: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "inputs_read_where_written",
                        lambda nest, command, output=0: tuple(range(len(command.inputs))))
    stack = nnc.make_stack(stack_for("strict:0").device)
    assert differs(stack, F)


@pytest.mark.parametrize("other", ["abs", "negative"])
def test_an_epilogue_that_is_another_is_seen(stack: Stack, F: Nodes, other: str) -> None:
    written = FUSED.nest
    assert written is not None

    def swapped(command: Any) -> Any:
        (program,) = command.attributes
        steps = [s._replace(op=OPERATORS[other]) if s.op.name == "relu" else s for s in program.steps]
        return written(command._replace(attributes=(program._replace(steps=tuple(steps)),)))

    object.__setattr__(FUSED, "nest", swapped)
    try:
        assert differs(nnc.make_stack(stack_for("strict:0").device), F)
    finally:
        object.__setattr__(FUSED, "nest", written)


def moments(F: Nodes) -> SymbolicGraph:
    """Two passes, of which the second needs what the first has summed; rows and columns that share a square array."""
    x = floats(F, "x", 5, 5)
    mean = F.mean(x, axis=(0,), keepdims=True)
    centred = F.subtract(x, mean)
    return graph({"x": x}, {"s": F.sum(F.multiply(centred, centred), axis=(0,), keepdims=True), "m": mean, "c": centred,
                            "r": F.sum(x, axis=(1,), keepdims=False)})


def moments_differ(F: Nodes) -> bool:
    """Whether they are something else when they are fused on a new stack, or cannot be computed."""
    stack, given = nnc.make_stack(stack_for("strict:0").device), {"x": np.arange(25, dtype=F32).reshape(5, 5) ** 2 / 7}
    made = moments(F)
    apart = call(compiled(stack_for("strict:0"), made, fusion=False), **given)
    try:
        fused = call(compiled(stack, made), **given)
    except (PlanError, Error, KeyError):
        return True
    return any(fused[name].tobytes() != apart[name].tobytes() for name in apart)


def test_the_moments_are_right(F: Nodes) -> None:
    assert not moments_differ(F)


def test_a_pass_that_does_not_wait_for_its_sums_is_seen(F: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    place_for = merged_stages._Merging.place_for
    monkeypatch.setattr(merged_stages._Merging, "place_for", lambda self, stage, earliest: place_for(self, stage, 1))
    assert moments_differ(F)


def test_a_value_given_where_only_a_part_is_computed_is_seen(F: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Composer, "_is_whole", lambda self, element: True)
    x = floats(F, "x", 4, 4)
    e = F.exp(x)
    half = F.sum(F.slice(e, start=(0, 0), stop=(2, 4), step=(1, 1)), axis=(0,), keepdims=True)
    made = graph({"x": x}, {"h": half, "c": F.cumulative_sum(F.sin(e), axis=0)})
    monkeypatch.setattr(Cluster, "place_of", lambda self, node, form, requests: None)
    stack, given = nnc.make_stack(stack_for("strict:0").device), {"x": np.ones((4, 4), F32)}
    try:
        fused = call(compiled(stack, made), **given)
    except (PlanError, Error, IndexError, KeyError):
        return
    apart = call(compiled(stack, made, fusion=False), **given)
    assert any(fused[name].tobytes() != apart[name].tobytes() for name in apart)


def test_results_of_bodies_that_are_not_where_they_have_to_be_are_seen(stack: Stack, monkeypatch: Any) -> None:
    right = weights_after(2, fusion=True)
    put = CommandPlanner.command

    def forgetful(self: CommandPlanner, item: Any) -> Any:
        if item.group.op is FUSED:
            self.assigned.pop(item.group.node, None)
        return put(self, item)

    monkeypatch.setattr(CommandPlanner, "command", forgetful)
    try:
        wrong = weights_after(2, fusion=True)
    except PlanError:
        return
    assert any(a.tobytes() != b.tobytes() for a, b in zip(right, wrong, strict=True))


# ---- programs
def spec(*shape: int) -> TensorSpec:
    return TensorSpec(shape, F32)


def test_programs_are_compared_by_structure() -> None:
    def program(operand: Any) -> Program:
        return Program((Step(OPERATORS["exp"], (), (Input(0),), spec(3)),
                        Step(OPERATORS["add"], (), (StepResult(0), operand), spec(3))), (spec(3), spec(3)), (1,))

    assert program(Input(1)) == program(Input(1))
    assert hash(program(Input(1))) == hash(program(Input(1)))
    assert program(Input(0)) != program(StepResult(0)), "an input is no step"
    assert program(Literal.of(0.0, F32)) != program(Literal.of(-0.0, F32))
    assert program(Literal.of(np.nan, F32)) == program(Literal.of(np.nan, F32))


def test_what_cannot_be_one_nest_is_refused() -> None:
    """A fold of what is itself folded for each of its elements."""
    steps = (Step(OPERATORS["sum"], ((1,), True), (Input(0),), spec(3, 1)),
             Step(OPERATORS["sum"], ((0,), True), (StepResult(0),), spec(1, 1)))
    program = Program(steps, (spec(3, 4),), (1,))
    layouts = [spec(3, 4).layout()], [spec(1, 1).layout()]
    command = nnc.base.command.Command("fused", (program,), tuple(layouts[0]), tuple(layouts[1]))
    with pytest.raises(NotSupportedError, match="fold within a fold"):
        fused_nest(command, program)


# ---- large graphs
def test_a_weight_with_many_readers_is_looked_at_a_few_times_by_each(
        stack: Stack, F: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    original = grouping.Grouping._merged
    monkeypatch.setattr(grouping.Grouping, "_merged", lambda *args: (tried.append(args), original(*args))[1])
    x, w = floats(F, "x", 4, 4), floats(F, "w", 4, 4)
    y = x
    for _ in range(60):
        y = F.matmul(y, w)
    compiled(stack, graph({"x": x, "w": w}, {"y": y}))
    assert len(tried) <= 60 * grouping.MOST_TRIED


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("seed", range(6))
def test_graphs_too_large_to_keep_their_ways_give_the_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ways, "MOST_NODES", 0)
    assert_fused_as_apart(seed, stack_for("strict:0"))


def test_what_is_wanted_much_later_is_not_computed_beside(stack: Stack, F: Nodes) -> None:
    """A fold of large results would lie in memory all the while; one of small results is taken along."""
    x = floats(F, "x", 8, 2, 4)
    for fold, count in ((F.max(x, axis=(1,), keepdims=False), 2), (F.max(x, axis=(1, 2), keepdims=False), 1)):
        near = F.sum(x, axis=(1,) if fold.ndim == 2 else (1, 2), keepdims=False)
        for steps, wanted in ((1, 1), (grouping.NEAR, count)):
            between = near
            for _ in range(steps):
                between = F.sort(between, axis=0)
            run = compiled(stack, graph({"x": x}, {"y": F.add(between, F.cumulative_sum(fold, axis=0))}))
            folding = [label for label in commands(run) if "max" in label or "sum" in label.split("_sum")[0]]
            assert len(folding) == wanted, (fold.shape, steps, commands(run)[:4])


def test_what_is_wanted_much_later_takes_the_place_of_what_it_is_computed_of(stack: Stack, F: Nodes) -> None:
    """A fold of a value that nobody else wants by then is taken along, large as it is."""
    x = floats(F, "x", 8, 2, 4)
    for kept in (False, True):
        y = F.sort(x, axis=2)
        near, fold = F.sum(y, axis=(1,), keepdims=False), F.max(y, axis=(1,), keepdims=False)
        for _ in range(grouping.NEAR):
            near = F.sort(near, axis=0)
        outputs = {"z": F.add(near, F.cumulative_sum(fold, axis=0))} | ({"y": y} if kept else {})
        labels = commands(compiled(stack, graph({"x": x}, outputs)))
        assert any("sum max" in label for label in labels) != kept, labels
