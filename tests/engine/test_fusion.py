"""Fused commands: what runs as one, that it gives what its operators give, and that a mistake in it would be seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.config import config
from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.operator.fused import FUSED
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats, graph
from tests.engine.fused_pairs import assert_fused_as_apart

MANY = settings(max_examples=100 if settings().max_examples < 100 else 2000)
F32 = np.dtype(np.float32)


def commands(run: ComputationGraph) -> list[str]:
    return [step.group.label for step in run.plan.steps]


def compiled(stack: Stack, made: SymbolicGraph, *, fusion: bool = True) -> ComputationGraph:
    with config.using(fusion=fusion, deterministic=True):
        run: ComputationGraph = stack.engine.compile(made)
        return run


# ---- what becomes one command
def test_a_chain_with_broadcasting_is_one_command(stack: Stack, F: Nodes) -> None:
    x, row = floats(F, "x", 4, 3), floats(F, "row", 3)
    run = compiled(stack, graph({"x": x, "row": row}, {"y": F.tanh(F.multiply(F.add(x, row), 2.0))}))
    assert commands(run) == ["fused(add multiply tanh)"]


def test_rows_in_stages_are_one_command(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 3)
    assert commands(compiled(stack, graph({"x": x}, {"y": F.softmax(x, axis=1)}))) == [
        "fused(max subtract exp sum divide)"]
    for columns in (3, 30_000):  # what is computed of a fold is computed once for each row, however long that is
        x = floats(F, "x", 400, columns)
        normalised = compiled(stack, graph({"x": x}, {"y": F.standardise(x, axis=(1,), epsilon=1e-5)}))
        assert len(commands(normalised)) == 1


def test_what_follows_a_product_or_a_convolution_is_computed_with_it(stack: Stack, F: Nodes) -> None:
    a, b, bias = floats(F, "a", 4, 5), floats(F, "b", 5, 3), floats(F, "bias", 3)
    y = F.relu(F.add(F.matmul(a, b), bias))
    assert commands(compiled(stack, graph({"a": a, "b": b, "bias": bias}, {"y": y}))) == ["fused(matmul add relu)"]
    for order, shape in (("NHWC", (2, 6, 5, 3)), ("NCHW", (2, 3, 6, 5))):
        x = floats(F, "x", *shape)
        k = floats(F, "k", *((3, 3, 3, 4) if order == "NHWC" else (4, 3, 3, 3)))
        y = F.conv(x, k, strides=(1, 1), padding=((1, 1), (1, 1)), dilation=(1, 1), groups=1, layout=order)
        made = graph({"x": x, "k": k}, {"y": F.maximum(F.multiply(y, 2.0), 0.5)})
        assert commands(compiled(stack, made)) == ["fused(conv multiply maximum)"], order
        given = {"x": np.arange(180, dtype=F32).reshape(shape), "k": np.ones(k.spec.static_shape, F32)}
        apart = call(compiled(stack, made, fusion=False), **given)["y"]
        np.testing.assert_array_equal(call(compiled(stack, made), **given)["y"], apart)


def test_views_between_are_accesses(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 2, 6)
    y = F.exp(F.permute(F.slice(F.sin(x), start=(0, 1), stop=(2, 5), step=(1, 2)), axes=(1, 0)))
    run = compiled(stack, graph({"x": x}, {"y": y}))
    assert commands(run) == ["fused(sin slice permute exp)"]
    host = np.arange(12, dtype=F32).reshape(2, 6)
    np.testing.assert_allclose(call(run, x=host)["y"], np.exp(np.sin(host)[:, 1:5:2].T), rtol=1e-6)


def test_what_two_commands_read_is_computed_once(stack: Stack, F: Nodes) -> None:
    a, b = floats(F, "a", 3), floats(F, "b", 3)
    product = F.multiply(a, b)
    total = F.sum(product, axis=(0,))
    run = compiled(stack, graph({"a": a, "b": b}, {"y": F.exp(product), "z": F.cumulative_sum(product, axis=0),
                                                   "t": total}))
    assert " ".join(commands(run)).count("multiply") == 1


def test_a_gradient_and_its_bias_sum_come_out_of_one_pass(stack: Stack, F: Nodes) -> None:
    x, h, g = floats(F, "x", 6, 5), floats(F, "h", 6, 4), floats(F, "g", 6, 4)
    dy = F.where(F.greater(h, 0.0), g, 0.0)
    made = graph({"x": x, "h": h, "g": g}, {"dw": F.matmul(x, dy, transpose_a=True),
                                            "db": F.sum(dy, axis=(0,), keepdims=False)})
    run = compiled(stack, made)
    assert commands(run) == ["fused(greater where sum)", "matmul"]
    rng = np.random.default_rng(0)
    given = {name: rng.normal(size=node.spec.static_shape).astype(F32) for name, node in made.inputs.items()}
    fused, apart = call(run, **given), call(compiled(stack, made, fusion=False), **given)
    assert all(fused[name].tobytes() == apart[name].tobytes() for name in fused)


def test_a_gradient_that_a_product_ends_with_is_stored_by_the_product(stack: Stack, F: Nodes) -> None:
    """A fold could take in what follows the product, but not the product."""
    h, g, w = floats(F, "h", 6, 4), floats(F, "g", 6, 3), floats(F, "w", 3, 4)
    dy = F.where(F.greater(h, 0.0), F.matmul(g, w), 0.0)
    run = compiled(stack, graph({"h": h, "g": g, "w": w}, {"dy": F.cumulative_sum(dy, axis=0),
                                                          "db": F.sum(dy, axis=(0,), keepdims=False)}))
    assert commands(run) == ["fused(greater matmul where)", "cumulative_sum", "sum"]


def test_values_of_rows_are_given_to_others(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 3)
    top = F.max(x, axis=(1,), keepdims=True)
    below = F.subtract(x, top)
    e = F.exp(below)
    total = F.sum(e, axis=(1,), keepdims=True)
    made = graph({"x": x}, {"y": F.divide(e, total), "b": F.cumulative_sum(below, axis=0), "l": F.sort(total, axis=0),
                            "t": F.cumulative_sum(top, axis=0)})
    run = compiled(stack, made)
    assert commands(run)[0] == "fused(max subtract exp sum divide)"
    assert len(run.plan.steps[0].command.outputs) == 4
    host = np.arange(12, dtype=F32).reshape(4, 3) % 5
    fused, apart = call(run, x=host), call(compiled(stack, made, fusion=False), x=host)
    assert all(fused[name].tobytes() == apart[name].tobytes() for name in fused)


def passes(run: ComputationGraph, number: int) -> list[tuple[int, ...]]:
    """The inner axes that a fused command goes through."""
    command = run.plan.steps[number].command
    assert FUSED.nest is not None
    return [stage.axes for stage in FUSED.nest(command).stages if stage.axes]


def test_sums_over_equal_axes_are_one_pass(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4, 6)
    sums = {"a": F.sum(x, axis=(0,), keepdims=True), "b": F.sum(F.multiply(x, x), axis=(0,), keepdims=False)}
    run = compiled(stack, graph({"x": x}, sums))
    assert len(commands(run)) == 1
    assert passes(run, 0) == [(4,)]
    host = np.arange(24, dtype=F32).reshape(4, 6)
    found = call(run, x=host)
    np.testing.assert_array_equal(found["a"], host.sum(0, keepdims=True))
    np.testing.assert_array_equal(found["b"], (host * host).sum(0))


def test_sums_over_other_axes_and_sums_that_wait_are_passes_of_their_own(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 5, 5)
    crossed = {"a": F.sum(x, axis=(0,), keepdims=True), "b": F.sum(x, axis=(1,), keepdims=True)}
    run = compiled(stack, graph({"x": x}, crossed))
    assert commands(run) == ["sum", "sum"]
    mean = F.mean(x, axis=(0,), keepdims=True)
    spread = F.mean(F.abs(F.subtract(x, mean)), axis=(0,), keepdims=True)
    run = compiled(stack, graph({"x": x}, {"m": mean, "s": spread, "t": F.sum(x, axis=(0,), keepdims=True)}))
    assert len(commands(run)) == 1
    assert passes(run, 0) == [(5,), (5,)]


def test_a_norm_of_a_batch_with_its_running_statistics_is_one_command(stack: Stack, F: Nodes) -> None:
    x, running = floats(F, "x", 8, 3), floats(F, "running", 3)
    centred = F.subtract(x, F.mean(x, axis=(0,), keepdims=True))
    scale = F.sqrt(F.add(F.mean(F.multiply(centred, centred), axis=(0,), keepdims=True), 1e-5))
    y = F.divide(centred, scale)
    made = graph({"x": x, "running": running}, {
        "y": y, "centred": centred, "scale": scale,
        "running": F.add(F.multiply(running, 0.9), F.multiply(F.mean(x, axis=(0,), keepdims=False), 0.1))})
    run = compiled(stack, made)
    assert len(commands(run)) == 1
    assert passes(run, 0) == [(8,), (8,), (8,)], "the mean, which both share, the spread, and the results"
    given = {"x": np.random.default_rng(0).normal(size=(8, 3)).astype(F32), "running": np.ones(3, F32)}
    fused, apart = call(run, **given), call(compiled(stack, made, fusion=False), **given)
    assert all(fused[name].tobytes() == apart[name].tobytes() for name in fused)


def test_a_command_does_not_wait_for_what_waits_for_it(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 3, 2)

    def placed(e: Any, by: Any) -> Any:
        return F.add(e, F.cumulative_sum(F.cumulative_sum(by, axis=0), axis=1))

    run = compiled(stack, graph({"x": x}, {"y": placed(F.exp(x), F.exp(x))}))
    assert commands(run) == ["exp", "cumulative_sum", "fused(cumulative_sum add)"]
    one, two = F.sin(x), F.cos(x)
    run = compiled(stack, graph({"x": x}, {"a": placed(one, two), "b": placed(two, one)}))
    assert len(commands(run)) == 5, "the command of one gives what the other's waits for, not both"


def test_dropout_is_one_command_and_keeps_its_mask(stack: Stack, F: Nodes) -> None:
    x, key = floats(F, "x", 4, 5), F.placeholder("key", TensorSpec((2,), np.dtype(np.uint64)))
    kept = F.bernoulli(key, shape=(4, 5), probability=0.75)
    y = F.where(kept, F.multiply(F.tanh(x), 1 / 0.75), 0.0)
    made = graph({"x": x, "key": key}, {"y": F.cumulative_sum(y, axis=0), "g": F.cumulative_sum(F.where(
        kept, F.sort(y, axis=0), 0.0), axis=1)})
    run = compiled(stack, made)
    assert "fused(random_bits less tanh multiply where)" in commands(run)
    given = {"x": np.linspace(-1, 1, 20, dtype=F32).reshape(4, 5), "key": np.array([7, 3], np.uint64)}
    fused, apart = call(run, **given), call(compiled(stack, made, fusion=False), **given)
    assert all(fused[name].tobytes() == apart[name].tobytes() for name in fused)


def test_random_bits_are_not_kept_for_a_mask_that_is_read_in_several_passes(stack: Stack, F: Nodes) -> None:
    x, key = floats(F, "x", 4, 5), F.placeholder("key", TensorSpec((2,), np.dtype(np.uint64)))
    y = F.where(F.bernoulli(key, shape=(4, 5), probability=0.5), x, 0.0)
    run = compiled(stack, graph({"x": x, "key": key}, {"y": F.softmax(y, axis=1)}))
    assert commands(run) == ["fused(random_bits less)", "fused(where max subtract exp sum divide)"]


def test_what_would_be_computed_over_and_over_stays_apart(stack: Stack, F: Nodes) -> None:
    """A product reads each element of its operands once for each column."""
    a, b = floats(F, "a", 64, 64), floats(F, "b", 64, 64)
    run = compiled(stack, graph({"a": a, "b": b}, {"y": F.matmul(F.exp(a), b)}))
    assert commands(run) == ["exp", "matmul"]


def test_nothing_is_joined_where_it_is_switched_off(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 3)
    made = graph({"x": x}, {"y": F.exp(F.sin(x))})
    assert commands(compiled(stack, made, fusion=False)) == ["sin", "exp"]


def test_the_explanation_says_what_runs_together(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 3)
    text = compiled(stack, graph({"x": x}, {"y": F.exp(F.sin(x))})).explain()
    assert "fused(sin exp)(float32[3]) -> float32[3]" in text


# ---- that it is right
@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("device", ["strict:0", "cpu:0"])
@MANY
@given(seed=st.integers(0, 2**32))
def test_random_graphs_give_the_same_bits(device: str, seed: int) -> None:
    assert_fused_as_apart(seed, stack_for(device))


def weights_after(steps: int, *, fusion: bool, device: str | Stack = "strict:0") -> list[Any]:
    """Weights of a small network with a loop and a branch in its loss, trained on the device."""
    with nnc.use_device(device), config.using(fusion=fusion, deterministic=True):
        rng = np.random.default_rng(0)
        x, labels = (nnc.asarray(a) for a in (rng.normal(size=(6, 5)).astype(F32), rng.integers(0, 3, 6)))
        weights = [nnc.asarray(rng.normal(size=s).astype(F32)) for s in ((5, 4), (4,), (4, 4), (4, 3))]
        moments = [nnc.zeros_like(w) for w in weights]

        def loss(w: list[nnc.Tensor]) -> nnc.Tensor:
            h = nnc.tanh(x @ w[0] + w[1])
            (h,) = nnc.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, nnc.tanh(v @ w[2] + v)), (0, h))[1:]
            h = nnc.cond(nnc.sum(h) > 0, lambda v: v * nnc.sigmoid(v), nnc.exp, h)
            return nnc.mean(nnc.cross_entropy(h @ w[3], labels))

        @nnc.jit
        def step(w: list[nnc.Tensor], m: list[nnc.Tensor]) -> Any:
            gradients = nnc.grad(loss)(w)
            m = [a * 0.9 + g for a, g in zip(m, gradients, strict=True)]
            return [a - 0.1 * b for a, b in zip(w, m, strict=True)], m

        for _ in range(steps):
            weights, moments = step(weights, moments)
        return [w.numpy() for w in (*weights, *moments)]


@pytest.mark.parametrize("way", ["apart", "eager"])
def test_weights_after_training_with_dropout_biases_and_softmax_are_the_same_bits(way: str) -> None:
    """Weights, and after several steps: single losses say little."""
    found, expected = classifier_after(3, way), classifier_after(3, "fused")
    for name, array in found.items():
        assert array.tobytes() == expected[name].tobytes(), name


def classifier_after(steps: int, way: str, device: str = "strict:0") -> dict[str, Any]:
    """Weights and statistics of a small classifier with dropout, a norm of batches and one of layers."""
    with nnc.use_device(device), config.using(fusion=way == "fused", deterministic=device == "strict:0"):
        rng = np.random.default_rng(0)
        x, labels = (nnc.asarray(a) for a in (rng.normal(size=(12, 7)).astype(F32), rng.integers(0, 5, 12)))
        g = nnc.Generator(1)
        network = nn.Sequential(nn.Linear(7, 6, generator=g), nn.BatchNorm(6), nn.ReLU(),
                                nn.Dropout(0.25, nnc.Generator(2)), nn.Linear(6, 6, generator=g),
                                nn.LayerNorm(6), nn.Tanh(), nn.Linear(6, 5, generator=g))
        minimiser = optim.Adam(network.named_parameters(), learning_rate=0.05)
        loss = nn.value_and_grad(network, lambda x, y: nnc.cross_entropy(network(x), y))
        step = optim.make_step(loss, minimiser, eager=way == "eager")
        for _ in range(steps):
            step(x, labels)
        return {name: cell.read().numpy() for name, cell in network.cells().items()}


def test_weights_after_training_through_loops_and_branches_are_the_same_bits() -> None:
    for fused, apart in zip(weights_after(4, fusion=True), weights_after(4, fusion=False), strict=True):
        assert fused.tobytes() == apart.tobytes()
