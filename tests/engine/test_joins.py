"""Values computed straight into their part of a larger one, and arrays changed part by part: nothing is copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import FallbackWarning
from nnc_core.builtin import FLAVOURS
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.engine import ComputationGraph
from nnc_core.engine.candidates import loop_nest
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.stacks import Stack, make_stack, stack_for
from nnc_core.symbol import Node
from nnc_plugins.conformance.running import one_by_one
from tests.devices import devices
from tests.engine.conftest import call, floats, graph
from tests.engine.graphs import dense_block, dense_kernels, inception, inception_kernels
from tests.engine.plan_checker import check_plan
from tests.engine.plans import both_ways, loops, lowered

MOVES = ("copy", "concat", "reshape", "permute", "slice", "broadcast_to")
"""Commands that compute nothing."""
DEVICES = tuple(dict.fromkeys([*devices(), "strict-align128:0", "strict-poison:0", "strict-async:0"]))
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
SEED = 5


def moved(run: ComputationGraph) -> dict[str, int]:
    """The commands that compute nothing, by name."""
    return dict(Counter(s.group.op.name for s in run.plan.steps if s.group.op.name in MOVES))


def watched(run: ComputationGraph, given: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """A second run of a plan that was checked; `given` are what its inputs hold."""
    assert check_plan(run)
    for _ in range(2):
        found = run.run({k: run.executor.upload(given[k]) for k in run.graph.inputs})
    return {k: run.executor.download(a) for k, a in found.items()}


def dense(layers: int = 4) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rng = np.random.default_rng(SEED)
    kernels = dense_kernels(rng, layers, 32, 4)
    return (lambda x: dense_block(x, kernels)), (rng.normal(size=(2, 32, 4, 4)).astype(np.float32),)


def branched() -> tuple[Callable[..., Any], tuple[Any, ...]]:
    rng = np.random.default_rng(SEED)
    kernels = inception_kernels(rng, 4)
    return (lambda x: inception(x, kernels)), (rng.normal(size=(2, 4, 5, 5)).astype(np.float32),)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("network", [dense, branched])
def test_networks_of_joined_layers_copy_nothing(network: Callable[[], Any], device: str) -> None:
    f, args = network()
    run = lowered(f, *args, device=device)
    assert moved(run) == {} and run.memory_plan.joined >= 5
    both_ways(f, *args, device=device)


@pytest.mark.parametrize("network", [dense, branched])
def test_devices_without_views_join_by_commands(network: Callable[[], Any]) -> None:
    f, args = network()
    run = lowered(f, *args, device="strict-noviews:0")
    assert run.memory_plan.joined == 0 and moved(run)["concat"] >= 1
    both_ways(f, *args, device="strict-noviews:0")


def joined(stack: Stack, F: Nodes, inputs: Sequence[Node], **outputs: Node) -> ComputationGraph:
    """Compiled as it is written, under watch."""
    run: ComputationGraph = stack.engine.compile(
        SymbolicGraph({f"x{i}": x for i, x in enumerate(inputs)}, outputs), optimise=False)
    return run


def given_for(run: ComputationGraph) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(SEED)
    return {k: rng.uniform(-1, 1, n.spec.static_shape).astype(np.float32) for k, n in run.graph.inputs.items()}


def test_an_output_is_joined_where_it_is_given_out(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    run = joined(stack, F, [x], y=F.concat(F.exp(x), F.sin(x), axis=1))
    assert moved(run) == {} and run.memory_plan.peak == 0 and len(run.plan.steps) == 2
    found = watched(run, {"x0": X})["y"]
    np.testing.assert_array_equal(found, np.concatenate([np.exp(X), np.sin(X)], 1))


def test_only_what_has_a_place_already_is_copied(stack: Stack, F: Nodes) -> None:
    """An input, an output, the same operand again, and a slice of something: four copies for six operands."""
    x = floats(F, "x", 4, 6)
    a, b, wide = F.exp(x), F.sin(x), F.cos(floats(F, "z", 4, 9))
    part = F.slice(wide, start=(0, 2), stop=(4, 8), step=(1, 1))
    whole = F.concat(x, a, b, a, part, F.tanh(x), axis=1)
    run = joined(stack, F, [x, wide.inputs[0]], y=F.sum(whole, axis=(1,)), b=b)
    assert moved(run) == {"copy": 4} and run.memory_plan.joined == 2
    given = given_for(run)
    x, z = given["x0"], given["x1"]
    wanted = np.concatenate([x, np.exp(x), np.sin(x), np.exp(x), np.cos(z)[:, 2:8], np.tanh(x)], 1)
    np.testing.assert_allclose(watched(run, given)["y"], wanted.sum(1), rtol=1e-5, atol=1e-5)


def test_where_no_operand_can_be_placed_one_command_joins(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    run = joined(stack, F, [x], y=F.negative(F.concat(x, x, axis=0)))
    assert moved(run) == {"concat": 1}
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], -np.concatenate([X, X]))


def test_an_operand_is_read_where_it_lies(stack: Stack, F: Nodes) -> None:
    """Before and after it is joined, by commands that see a part of the whole, and views of it."""
    x = floats(F, "x", 4, 6)
    a = F.exp(x)
    before = F.negative(a)
    whole = F.concat(a, F.sin(x), axis=1)
    turned = F.permute(a, axes=(1, 0))
    run = joined(stack, F, [x], y=F.sum(whole, axis=(0, 1)), before=before, later=F.cos(F.multiply(turned, 2.0)))
    assert moved(run) == {}
    found = watched(run, {"x0": X})
    np.testing.assert_array_equal(found["before"], -np.exp(X))
    np.testing.assert_array_equal(found["later"], np.cos(np.exp(X).T * np.float32(2)))


def test_stacked_values_are_computed_in_their_rows(stack: Stack, F: Nodes) -> None:
    """`stack` joins values under a new axis: views of them."""
    x = floats(F, "x", 4, 6)
    rows = [F.reshape(f(x), shape=(4, 1, 6)) for f in (F.exp, F.sin, F.cos)]
    run = joined(stack, F, [x], y=F.negative(F.concat(*rows, axis=1)))
    assert moved(run) == {} and run.memory_plan.joined == 3
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], -np.stack([np.exp(X), np.sin(X), np.cos(X)], 1))


def test_turned_values_are_computed_turned(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    run = joined(stack, F, [x], y=F.negative(F.concat(F.permute(F.exp(x), axes=(1, 0)), F.permute(
        F.sin(x), axes=(1, 0)), axis=0)))
    assert moved(run) == {}
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], -np.concatenate([np.exp(X).T, np.sin(X).T]))


def test_what_could_not_be_reshaped_in_a_part_is_copied(stack: Stack, F: Nodes) -> None:
    """The first operand is also read in a row, which a part with gaps is not."""
    x = floats(F, "x", 4, 6)
    a = F.exp(x)
    run = joined(stack, F, [x], y=F.sum(F.concat(a, F.sin(x), axis=1), axis=(0,)),
                 row=F.negative(F.reshape(a, shape=(24,))))
    assert moved(run) == {"copy": 1}
    np.testing.assert_array_equal(watched(run, {"x0": X})["row"], -np.exp(X).reshape(-1))


def test_joined_at_every_depth(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    inner = F.concat(F.exp(x), F.sin(x), axis=1)
    outer = F.concat(F.concat(F.cos(x), inner, axis=1), F.tanh(x), axis=1)
    run = joined(stack, F, [x], y=F.negative(outer), inner=F.sum(inner, axis=(0,)))
    assert moved(run) == {} and run.memory_plan.joined == 4
    e, s, c, t = np.exp(X), np.sin(X), np.cos(X), np.tanh(X)
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], -np.concatenate([c, e, s, t], 1))


def test_a_concatenation_of_neighbours_is_a_view(stack: Stack, F: Nodes) -> None:
    """As in DenseNet: each layer reads all features so far, which lie in the last whole."""
    x = floats(F, "x", 4, 6)
    a, b = F.exp(x), F.sin(x)
    first = F.concat(a, b, axis=1)
    c = F.cos(F.sum(first, axis=(1,), keepdims=True))
    run = joined(stack, F, [x], y=F.negative(F.concat(a, b, c, axis=1)))
    assert moved(run) == {} and run.memory_plan.joined == 4, "the sum lies where its cosine will be"
    both = np.concatenate([np.exp(X), np.sin(X)], 1)
    found = watched(run, {"x0": X})["y"]
    np.testing.assert_array_equal(found[:, :12], -both)
    np.testing.assert_allclose(found[:, 12], -np.cos(both.sum(1)), rtol=1e-4, atol=1e-5)


def test_not_in_the_order_in_which_they_lie(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    a, b = F.exp(x), F.sin(x)
    other = F.sum(F.concat(b, a, axis=1), axis=(1,), keepdims=True)
    run = joined(stack, F, [x], y=F.negative(F.concat(a, b, F.cos(other), axis=1)))
    assert moved(run) == {"concat": 1}
    watched(run, {"x0": X})


def test_what_is_computed_in_place_starts_in_its_part(stack: Stack, F: Nodes) -> None:
    """Chains of three commands each: no memory but the whole."""
    x = floats(F, "x", 4, 64)
    chains = [F.sin(F.negative(f(x))) for f in (F.exp, F.cos, F.tanh)]
    run = joined(stack, F, [x], y=F.sum(F.concat(*chains, axis=1), axis=(0, 1)))
    assert moved(run) == {} and run.memory_plan.peak == 3 * 4 * 64 * 4
    given = given_for(run)
    (x,) = given.values()
    wanted = np.sin(-np.concatenate([np.exp(x), np.cos(x), np.tanh(x)], 1))
    np.testing.assert_allclose(watched(run, given)["y"], wanted.sum(), rtol=1e-4)


def test_joining_that_costs_much_memory_is_left(stack: Stack, F: Nodes) -> None:
    """A small value is made long before it is joined with a large one, and there is much between: the whole would
    live all that time."""
    x = floats(F, "x", 8)
    small = F.exp(x)
    y = F.broadcast_to(F.reshape(small, shape=(8, 1)), shape=(8, 512))
    for _ in range(3):
        y = F.flip(F.multiply(y, 0.5), axes=(0,))
    large = F.cos(F.broadcast_to(F.reshape(F.sum(y, axis=(0, 1)), shape=(1,)), shape=(2000,)))
    run = joined(stack, F, [x], y=F.sum(F.concat(small, large, axis=0), axis=(0,)))
    assert run.memory_plan.peak <= 2 * 8 * 512 * 4 + 1024
    watched(run, given_for(run))


class Packed(Kernel):
    """exp of packed arrays, by a nest."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        return self.kernel.bind(buffers, stream)


class PackedOnly(CommandBackend):
    """Library code that takes packed arrays only."""

    name = "packed"

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def refuse(self, command: Command) -> str | None:
        return None if all(x.contiguous and not x.offset for x in (*command.inputs, *command.outputs)) else "gaps"

    def prepare(self, command: Command) -> Kernel:
        nest = loop_nest(OPERATORS[command.name], command)
        assert nest is not None
        return Packed(self.stack.device.compile(nest))


def stack_of_its_own() -> Stack:
    """A strict device that nothing is known of yet."""
    return make_stack(StrictDevice(FLAVOURS[0]))


def test_a_backend_that_refuses_parts_keeps_its_work_and_a_copy_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it would write the part or read it: nothing is computed by other code than elsewhere."""
    stack = stack_of_its_own()
    backend = PackedOnly(stack)
    monkeypatch.setattr(stack.device, "backends", lambda name: (backend,) if name in ("exp", "cos") else ())
    F = stack.operator.open()
    x = floats(F, "x", 4, 6)
    read = F.sin(x)
    whole = F.concat(F.exp(x), read, F.tanh(x), axis=1)
    run = joined(stack, F, [x], y=F.sum(whole, axis=(1,)), z=F.cos(read))
    assert moved(run) == {"copy": 2} and run.memory_plan.joined == 1
    assert all(s.decision.backend == "packed" for s in run.plan.steps if s.group.op.name in ("exp", "cos"))
    found = watched(run, {"x0": X})
    np.testing.assert_array_equal(found["z"], np.cos(np.sin(X)))


def test_what_the_host_computes_is_uploaded_whole(F: Nodes) -> None:
    x, square = floats(F, "x", 3, 3), np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3) + 2 * np.eye(3, dtype="f4")
    with pytest.warns(FallbackWarning, match="inv"):
        run = joined(stack_of_its_own(), F, [x], y=F.negative(F.concat(F.exp(x), F.inv(x), axis=1)))
    assert [s.decision.backend for s in run.plan.steps if s.group.op.name == "inv"] == ["host"]
    assert moved(run) == {"copy": 1} and run.memory_plan.joined == 1
    found = watched(run, {"x0": square})["y"]
    np.testing.assert_allclose(found, -np.concatenate([np.exp(square), np.linalg.inv(square)], 1), rtol=1e-5)


def test_in_the_bodies_of_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            c = nnc.concat([nnc.sin(c[:8]), nnc.cos(c[8:])])
            return c, nnc.concat([nnc.exp(c), nnc.tanh(c)])

        last, rows = nnc.scan(body, x, None, 5)
        first = nnc.sum(rows[0]) > 100.0
        return nnc.cond(first, lambda a: nnc.concat([nnc.exp(a), a * 2.0]),
                        lambda a: nnc.concat([nnc.negative(a), nnc.sin(a)]), last), rows

    x = np.linspace(-1, 1, 16, dtype=np.float32)
    for device in ("cpu:0", "strict:0", "strict-noviews:0", "strict-align128:0", "strict-poison:0"):
        both_ways(f, x, device=device)
    run = lowered(f, x)
    assert len(loops(run)) == 1 and "concat" not in moved(run) and run.memory_plan.joined >= 5
    watched(run, {k: x for k in run.graph.inputs})


def test_slices_and_parts_that_are_split_off_are_read_where_they_lie() -> None:
    def f(x: Any) -> Any:
        left, right = nnc.split(nnc.exp(x), 2, axis=1)
        return left * right[::-1] + right[:, :1]

    run = lowered(f, X)
    assert moved(run) == {} or moved(run) == {"flip": 1}
    both_ways(f, X)


# ---- arrays changed part by part
def changed(F: Nodes, x: Node, row: int, value: Node) -> Node:
    return F.update_slice(x, value, start=(row, 0), step=(1, 1))


def rows_of(F: Nodes, x: Node, first: int, last: int) -> Node:
    return F.slice(x, start=(first, 0), stop=(last, 6), step=(1, 1))


def test_a_dead_value_is_changed_part_by_part_in_place(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    y, small = F.exp(x), F.sin(rows_of(F, x, 0, 1))
    for row in range(4):
        y = changed(F, y, row, small) if row != 2 else y
    run = joined(stack, F, [x], y=F.sum(y, axis=(0, 1)))
    assert [s.note for s in run.plan.steps if s.group.op.name == "update_slice"] == ["in place of input 0"] * 3
    wanted = np.exp(X)
    wanted[[0, 1, 3]] = np.sin(X[0])
    np.testing.assert_allclose(watched(run, {"x0": X})["y"], wanted.sum(), rtol=1e-5)


@pytest.mark.parametrize(("first", "last", "row", "in_place"), [(0, 2, 2, True), (2, 4, 0, True), (1, 3, 2, False)])
def test_parts_that_are_read_later_may_lie_beside_what_is_changed(
        stack: Stack, F: Nodes, first: int, last: int, row: int, in_place: bool) -> None:
    """The slice is read after the row has been replaced; if that is one of its own rows, the old ones are kept."""
    x = floats(F, "x", 4, 6)
    old = F.exp(x)
    new = changed(F, old, row, F.sin(rows_of(F, x, 0, 1)))
    total = F.sum(new, axis=(0, 1), keepdims=True)
    run = joined(stack, F, [x], y=F.multiply(rows_of(F, old, first, last), F.cos(total)), total=F.sum(total, axis=(0,)))
    (note,) = [s.note for s in run.plan.steps if s.group.op.name == "update_slice"]
    assert (note == "in place of input 0") == in_place
    after = np.exp(X)
    after[row] = np.sin(X[0])
    found = watched(run, {"x0": X})["y"]
    np.testing.assert_allclose(found, np.exp(X)[first:last] * np.cos(after.sum()), rtol=1e-3)


def test_a_part_moves_within_its_array(stack: Stack, F: Nodes) -> None:
    """x[0:2] = x[2:4], in place: the rows that are read lie apart from those that are written."""
    x = floats(F, "x", 4, 6)
    old = F.exp(x)
    run = joined(stack, F, [x], y=F.sum(changed(F, old, 0, rows_of(F, old, 2, 4)), axis=(0,)))
    (step,) = [s for s in run.plan.steps if s.group.op.name == "update_slice"]
    assert step.note == "in place of input 0"
    e = np.exp(X)
    np.testing.assert_array_equal(watched(run, {"x0": X})["y"], np.concatenate([e[2:], e[2:]]).sum(0))
    overlapping = joined(stack, F, [x], y=F.sum(changed(F, old, 0, rows_of(F, old, 1, 4)), axis=(0,)))
    (step,) = [s for s in overlapping.plan.steps if s.group.op.name == "update_slice"]
    assert step.note == ""
    np.testing.assert_array_equal(watched(overlapping, {"x0": X})["y"], np.concatenate([e[1:], e[3:]]).sum(0))


def test_at_set_on_a_dead_value() -> None:
    def f(x: Any) -> Any:
        y = nnc.exp(x)
        kept = y[3]
        for i in range(3):
            y = y.at[i].set(nnc.sin(x[0]) * float(i))
        return nnc.sum(y) + nnc.sum(kept)

    for device in ("cpu:0", "strict:0"):
        run = lowered(f, X, device=device)
        updates = [s.note for s in run.plan.steps if s.group.op.name == "update_slice"]
        assert updates and set(updates) == {"in place of input 0"}
        both_ways(f, X, device=device)


# ---- any of this, at random
PARTS = ("exp", "sin", "negative", "join", "join", "stack", "slice", "turn", "put", "mix")


@st.composite
def joiners(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    return draw(st.lists(st.tuples(st.sampled_from(PARTS), *[st.integers(0, 20)] * 3), min_size=3, max_size=24))


def grown(F: Nodes, rows: Sequence[tuple[str, int, int, int]]) -> SymbolicGraph:
    """A graph of joins, views and changes of parts, of matrices with two rows or columns and more."""
    x = floats(F, "x", 4, 6)
    pool: list[Node] = [x, F.exp(x)]
    for name, i, j, k in rows:
        a, b = pool[-1 - i % len(pool)], pool[-1 - j % len(pool)]
        axis = k % 2
        if name in ("exp", "sin", "negative"):
            new = getattr(F, name)(a)
        elif name == "mix":
            new = F.multiply(F.tanh(a), F.sum(b, axis=(0, 1)))
        elif name == "turn":
            new = F.permute(a, axes=(1, 0))
        elif name == "slice":
            start = (min(k, a.shape[0] - 1), 0) if axis == 0 else (0, min(k, a.shape[1] - 1))
            new = F.slice(a, start=start, stop=a.shape, step=(1, 1))
        elif name == "put":
            value = F.slice(b, start=(0, 0), stop=tuple(map(min, a.shape, b.shape)), step=(1, 1))
            new = F.update_slice(a, value, start=tuple(n - m for n, m in zip(a.shape, value.shape, strict=True)),
                                 step=(1, 1))
        elif name == "stack":
            new = F.reshape(F.concat(*[F.reshape(v, shape=(*a.shape, 1)) for v in (a, F.cos(a))], axis=2),
                            shape=(a.shape[0], 2 * a.shape[1]))
        else:
            other = 1 - axis
            parts = [v for v in (a, b, pool[-1]) if v.shape[other] == a.shape[other]]
            new = F.concat(*parts, axis=axis)
        if new.shape[0] * new.shape[1] <= 200:
            pool.append(new)
    read = {y for node in pool for y in node.inputs}
    outputs = [y for y in pool if y not in read] + [pool[len(pool) // 2]]
    return graph({"x": x}, {f"y{i}": y for i, y in enumerate(dict.fromkeys(outputs))})


@pytest.mark.parametrize("device", ["strict:0", "strict-align128:0"])
@given(rows=joiners(), optimise=st.booleans())
def test_at_random_what_is_read_is_what_was_written_there(
        device: str, rows: list[tuple[str, int, int, int]], optimise: bool) -> None:
    stack = stack_for(device)
    made = grown(stack.operator.open(), rows)
    run = stack.engine.compile(made, optimise=optimise)
    watched(run, {"x": X})


@pytest.mark.parametrize("device", ["cpu:0", "strict-poison:0", "strict-noviews:0"])
@given(rows=joiners(), optimise=st.booleans())
def test_at_random_the_bits_are_those_of_one_command_after_the_other(
        device: str, rows: list[tuple[str, int, int, int]], optimise: bool) -> None:
    with config.using(deterministic=True):
        stack = stack_for(device)
        made = grown(stack.operator.open(), rows)
        wanted = one_by_one(stack, made, {"x": X})
        run = stack.engine.compile(made, optimise=optimise)
        for _ in range(2):
            for name, y in call(run, x=X).items():
                assert y.tobytes() == wanted[name].tobytes(), f"{name}\n{made}\n{run.explain()}"


