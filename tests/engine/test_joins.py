"""Values computed straight into their part of a larger one, and arrays changed part by part: nothing is copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import FallbackWarning
from nnc_core.builtin import FLAVOURS
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.engine import ComputationGraph
from nnc_core.engine.candidates import loop_nest
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.stacks import Stack, make_stack
from tests.devices import devices
from tests.engine.conftest import floats
from tests.engine.graphs import dense_block, dense_kernels, inception, inception_kernels
from tests.engine.joins import X, joined, watched
from tests.engine.plans import both_ways, loops, lowered

MOVES = ("copy", "concat", "reshape", "permute", "slice", "broadcast_to")
"""Commands that compute nothing."""
DEVICES = tuple(dict.fromkeys([*devices(), "strict-align128:0", "strict-poison:0", "strict-async:0"]))
SEED = 5


def moved(run: ComputationGraph) -> dict[str, int]:
    """The commands that compute nothing, by name."""
    return dict(Counter(s.group.op.name for s in run.plan.steps if s.group.op.name in MOVES))


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
    apart = lowered(f, *args, device=device)
    with config.using(fusion=True):
        together = lowered(f, *args, device=device)
    turned = network is dense and device == "cpu:0"  # convolutions turn their images as they read them, if fused
    run = together if turned else apart
    assert moved(together) == moved(run) == {} and run.memory_plan.joined >= 5
    both_ways(f, *args, device=device)


@pytest.mark.parametrize("network", [dense, branched])
def test_devices_without_views_join_by_commands(network: Callable[[], Any]) -> None:
    f, args = network()
    run = lowered(f, *args, device="strict-noviews:0")
    assert run.memory_plan.joined == 0 and moved(run)["concat"] >= 1
    both_ways(f, *args, device="strict-noviews:0")


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
