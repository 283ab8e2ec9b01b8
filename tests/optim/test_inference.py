"""Inference by a trained network: the same in every mode and each time, without dropout, by running statistics."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, DataError
from nnc_core.operator.random import Bits, Distributions, Random
from nnc_core.optim.owl import Params, batch, learning_rate, loss
from tests.devices import devices
from tests.optim.layer_networks import NETWORKS, trained_copy

X = np.random.default_rng(4).uniform(-1, 1, (7, 3)).astype(np.float32)
Y = (X[:, :2] ** 2).astype(np.float32)
RANDOM = {name for kind in (Bits, Distributions, Random) for name in vars(kind) if not name.startswith("_")}


@pytest.fixture(scope="module")
def trained() -> nn.Module:
    """With dropout, and with statistics that have run."""
    g = nnc.Generator(0)
    network = nn.Sequential(nn.Linear(3, 8, generator=g), nn.BatchNorm(8), nn.ReLU(), nn.Dropout(0.4, nnc.Generator(1)),
                            nn.Linear(8, 2, generator=g))
    params = Params(epochs=5, batch=batch.Mini(4), loss=loss.Quadratic(), learning_rate=learning_rate.Adam(0.01),
                    verbosity=False)
    optim.train(network, params, X, Y)
    return network


def eager(network: nn.Module, *xs: nnc.Tensor) -> Any:
    return optim.model(network, compiled=False)(*xs)


def evaluated(network: nn.Module, *xs: nnc.Tensor) -> Any:
    network.eval()
    try:
        return network(*xs)
    finally:
        network.train()


def deferred(network: nn.Module, *xs: nnc.Tensor) -> Any:
    with nnc.deferred():
        y = optim.model(network)(*xs)
    return y


def jitted(network: nn.Module, *xs: nnc.Tensor) -> Any:
    def inference(*xs: nnc.Tensor) -> Any:
        with nnc.evaluating():
            return network(*xs)

    return nnc.jit(inference)(*xs)


def hybrid(network: nn.Module, *xs: nnc.Tensor) -> Any:
    twin = copy.deepcopy(network).hybridize()
    with nnc.evaluating():
        return twin(*xs)


def static_graph(network: nn.Module, *xs: nnc.Tensor) -> Any:
    return optim.compile_model(network, xs)(xs)


def exported(network: nn.Module, *xs: nnc.Tensor) -> Any:
    with nnc.deferred(), nnc.evaluating():
        y = network(*xs)
    graph = nnc.export({f"x{i}": x for i, x in enumerate(xs)}, {"y": y}, capture="constant", on_unused="ignore")
    assert not {node.op.name for node in graph.nodes} & RANDOM
    return graph.compile(xs[0].device.id)(**{f"x{i}": x for i, x in enumerate(xs)})["y"]


WAYS: dict[str, Callable[..., Any]] = {
    "eager": eager, "eval()": evaluated, "deferred": deferred, "jit": jitted, "hybridize": hybrid,
    "compile_model": static_graph, "export": exported,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("on", devices())
def test_each_way_of_inference_gives_the_same_bits_each_time(trained: nn.Module, way: str, on: str) -> None:
    network = copy.deepcopy(trained).to(on)
    with nnc.use_device(on), nnc.config.using(deterministic=True):
        x = nnc.asarray(X)
        before = network.state_dict()
        first, second = (WAYS[way](network, x).numpy() for _ in range(2))
        assert first.tobytes() == second.tobytes() == eager(network, x).numpy().tobytes()
        assert network.training
        for name, value in network.state_dict().items():  # statistics and random keys stay
            np.testing.assert_array_equal(value, before[name], err_msg=name)
        assert not np.array_equal(network(x).numpy(), first)  # in training there is dropout


def test_the_graph_of_inference_holds_nothing_random(trained: nn.Module) -> None:
    graph = optim.compile_model(trained, X)
    assert not {node.op.name for node in graph.graph.nodes} & RANDOM
    assert not any("generator" in name for name in graph.graph.inputs)
    assert graph.iopairs == ()
    training = optim.compile_training(trained, Params(loss=loss.Quadratic()), X, Y)
    assert {node.op.name for node in training.graph.nodes} & RANDOM


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, None])
def test_rows_in_parts_are_put_together(trained: nn.Module, size: int | None, compiled: bool) -> None:
    whole = optim.model(trained)(X).numpy()
    found = optim.model(trained, batch_size=size, compiled=compiled)(X)
    assert found.shape == (7, 2)
    np.testing.assert_allclose(found.numpy(), whole, rtol=1e-5, atol=1e-6)


def test_a_model_follows_the_weights_and_says_what_it_is(trained: nn.Module) -> None:
    network = copy.deepcopy(trained)
    model = optim.model(network, batch_size=4)
    before = model(X).numpy()
    params = Params(loss=loss.Quadratic(), batch=batch.Full(), verbosity=False)
    optim.train(network, params, X, Y)
    assert not np.array_equal(model(X).numpy(), before)
    assert repr(model) == "<inference by Sequential, 4 rows at once>"
    with pytest.raises(AttributeValueError, match="batch_size is 0"):
        optim.model(network, batch_size=0)
    with pytest.raises(DataError, match="as many rows in each"):
        optim.model(Sum(), batch_size=2)(X, X[:3])


class Sum(nn.Module):
    def forward(self, a: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
        return a + b


def test_evaluation_of_one_thread_leaves_another_training(trained: nn.Module) -> None:
    inside, looked = threading.Event(), threading.Event()
    seen: dict[str, bool] = {}

    def evaluation() -> None:
        with nnc.evaluating():
            seen["there"] = trained.training
            inside.set()
            looked.wait(10)

    thread = threading.Thread(target=evaluation)
    thread.start()
    inside.wait(10)
    seen["here"] = trained.training
    looked.set()
    thread.join()
    assert seen == {"there": False, "here": True}


@pytest.mark.parametrize("inside", [False, True])
def test_evaluation_around_compiled_code_and_in_it(inside: bool) -> None:
    """Traced once for training and once for evaluation; what is around a trace is looked at, what is in it is part."""
    layer = nn.Dropout(0.5, nnc.Generator(0))

    def f(x: nnc.Tensor) -> nnc.Tensor:
        if not inside:
            return layer(x) + 1
        with nnc.evaluating():
            y = nnc.cond(nnc.sum(x) > 0, layer, lambda t: t, x)
        return y + layer(x)

    compiled, x = nnc.jit(f), nnc.ones(64)
    for _ in range(2):
        with nnc.evaluating():
            np.testing.assert_array_equal(compiled(x).numpy(), np.full(64, 2.0))
        for _ in range(2):
            found = compiled(x).numpy()
            assert set(found.tolist()) == {1.0, 3.0}
    assert compiled.traces == 2
    assert optim.compile_model(layer, x)._step.traces == 1


def test_inference_is_traced_once(trained: nn.Module) -> None:
    graph, model = optim.compile_model(trained, X), optim.model(trained)
    for _ in range(3):
        assert graph(X).numpy().tobytes() == model(X).numpy().tobytes()
        trained(nnc.asarray(X))
    assert graph._step.traces == model._run.traces == 1


def test_evaluate_is_the_mean_over_rows(trained: nn.Module) -> None:
    kind = loss.Quadratic()
    wanted = ((optim.model(trained)(X).numpy() - Y) ** 2).sum() / 7
    for compiled in (False, True):
        for size in (None, 2, 7):
            found = optim.evaluate(trained, kind, X, Y, batch_size=size, compiled=compiled)
            assert found == pytest.approx(wanted, rel=1e-5)
    labels = np.argmax(Y, -1)
    right = optim.evaluate(trained, lambda y, p: nnc.sum(nnc.argmax(p, axis=-1) == y), X, labels, batch_size=3)
    assert right == pytest.approx(np.mean(optim.model(trained)(X).numpy().argmax(-1) == labels))
    with pytest.raises(DataError, match="as many rows in each"):
        optim.evaluate(trained, kind, X, Y[:3])


# ---- every layer
@pytest.mark.parametrize("case", NETWORKS)
def test_inference_of_every_layer(case: str) -> None:
    """After training, all ways give the same bits, and an exported graph draws nothing."""
    network, xs = trained_copy(case)
    with nnc.config.using(deterministic=True):
        given = tuple(nnc.asarray(x) for x in xs)
        wanted = eager(network, *given).numpy()
        for way, run in WAYS.items():
            assert run(network, *given).numpy().tobytes() == wanted.tobytes(), way
