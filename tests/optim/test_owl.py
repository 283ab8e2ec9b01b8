"""Owl's Optimise: each of its 44 options, eager, compiled and in NumPy, on every device; and options put together.

Owl has 41 constructors (7 learning rates, 4 batches, 6 losses, 7 gradient methods, 3 momenta, 4 regularisations, 3
clippings, 3 stoppings, 4 checkpoints) and 3 ways to run them (function, weights, network): that is how 44 is counted
here.  What is ours beyond them is in EXTRA.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.optim import clipping
from nnc_core.optim.owl import (
    Params,
    batch,
    checkpoint,
    gradient,
    learning_rate,
    loss,
    momentum,
    newton,
    regularisation,
    stopping,
)
from tests.devices import devices
from tests.optim.owl_reference import reference

pytestmark = pytest.mark.filterwarnings("ignore:solve has no kernel")

ROWS = 7
RNG = np.random.default_rng(5)
X, Y = RNG.uniform(0.2, 1.0, (ROWS, 3)), RNG.uniform(0.5, 1.5, (ROWS, 2))
WEIGHTS = {"weight": RNG.uniform(0.1, 0.5, (3, 2)), "bias": RNG.uniform(0.1, 0.3, 2)}
LABELS = RNG.integers(0, 2, ROWS)
SIGNS = np.where(RNG.uniform(size=(ROWS, 2)) > 0.5, 1.0, -1.0)


def cubes(target: nnc.Tensor, prediction: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(nnc.abs(prediction - target) ** 3)


BASE = Params(epochs=4, batch=batch.Full(), loss=loss.Quadratic(), learning_rate=0.05, verbosity=False)
OPTIONS: dict[str, dict[str, dict[str, Any]]] = {
    "learning_rate": {
        "Adagrad": {"learning_rate": learning_rate.Adagrad(0.1)},
        "Const": {"learning_rate": learning_rate.Const(0.1)},
        "Decay": {"learning_rate": learning_rate.Decay(0.2, 0.5)},
        "Exp_decay": {"learning_rate": learning_rate.ExpDecay(0.2, 0.3)},
        "RMSprop": {"learning_rate": learning_rate.RMSprop(0.05, 0.9)},
        "Adam": {"learning_rate": learning_rate.Adam(0.1, 0.9, 0.99)},
        "Schedule": {"learning_rate": learning_rate.Schedule([0.1, 0.02, 0.05])},
    },
    "batch": {
        "Full": {"batch": batch.Full()},
        "Mini": {"batch": batch.Mini(3), "epochs": 2.5},
        "Sample": {"batch": batch.Sample(4, seed=3)},
        "Stochastic": {"batch": batch.Stochastic(), "epochs": 1},
    },
    "loss": {
        "Hinge": {"loss": loss.Hinge()},
        "L1norm": {"loss": loss.L1Norm()},
        "L2norm": {"loss": loss.L2Norm()},
        "Quadratic": {"loss": loss.Quadratic()},
        "Cross_entropy": {"loss": loss.CrossEntropy()},
        "Custom": {"loss": loss.Custom(cubes)},
    },
    "gradient": {
        "GD": {"gradient": gradient.GD()},
        # these two divide by a change of the gradient, which short steps leave no digits of in float32
        "CG": {"gradient": gradient.HestenesStiefel(), "learning_rate": 0.2},
        "CD": {"gradient": gradient.ConjugateDescent()},
        "NonlinearCG": {"gradient": gradient.FletcherReeves()},
        "DaiYuanCG": {"gradient": gradient.DaiYuan(), "learning_rate": 0.2},
        "NewtonCG": {"gradient": newton.NewtonCG(), "learning_rate": 0.8},
        "Newton": {"gradient": newton.Newton(), "learning_rate": 0.8},
    },
    "momentum": {
        "Standard": {"momentum": momentum.Standard(0.8)},
        "Nesterov": {"momentum": momentum.Nesterov(0.8)},
        "None": {"momentum": None},
    },
    "regularisation": {
        "L1norm": {"regularisation": regularisation.L1(0.3)},
        "L2norm": {"regularisation": regularisation.L2(0.3, squared=False)},
        "Elastic_net": {"regularisation": regularisation.ElasticNet(0.2, 0.3, squared=False)},
        "None": {"regularisation": None},
    },
    "clipping": {
        "L2norm": {"clipping": clipping.Norm(0.4)},
        "Value": {"clipping": clipping.Value(-0.3, 0.2)},
        "None": {"clipping": None},
    },
    "stopping": {
        "Const": {"stopping": stopping.Const(0.4), "epochs": 9},
        "Early": {"stopping": stopping.Early(2, None)},
        "None": {"stopping": None},
    },
    "checkpoint": {
        "Batch": {"checkpoint": checkpoint.EveryBatches(2, lambda now: None)},
        "Epoch": {"checkpoint": checkpoint.EveryEpochs(1.5, lambda now: None)},
        "Custom": {"checkpoint": checkpoint.Custom(lambda now: None)},
        "None": {"checkpoint": None},
    },
}
EXTRA: dict[str, dict[str, Any]] = {
    "polak-ribiere": {"gradient": gradient.PolakRibiere()},
    "polak-ribiere-without-restart": {"gradient": gradient.PolakRibiere(restart=False)},
    "lbfgs": {"gradient": newton.LBFGS(2), "learning_rate": learning_rate.LineSearch(), "epochs": 6},
    "damped-newton": {"gradient": newton.Newton(0.5), "learning_rate": 1.0},
    "newton-cg-search": {"gradient": newton.NewtonCG(2), "learning_rate": learning_rate.LineSearch()},
    "line-search": {"learning_rate": learning_rate.LineSearch(2.0)},
    "armijo": {"learning_rate": learning_rate.LineSearch(8.0, 0.2, 1.0), "gradient": gradient.PolakRibiere()},
    "schedule-function": {"learning_rate": learning_rate.Schedule(optim.schedules.Listed([0.1, 0.02]))},
    "squared-l2": {"regularisation": regularisation.L2(0.3)},
    "squared-elastic-net": {"regularisation": regularisation.ElasticNet(0.2, 0.3)},
    "global-norm": {"clipping": clipping.GlobalNorm(0.4)},
    "softmax": {"loss": loss.SoftmaxCrossEntropy()},
}
ALL = {f"{kind}-{name}": options for kind, named in OPTIONS.items() for name, options in named.items()} | EXTRA


def data_for(params: Params) -> tuple[Any, Any]:
    if isinstance(params.loss, loss.Hinge):
        return X, SIGNS
    return X, LABELS if isinstance(params.loss, loss.SoftmaxCrossEntropy) else Y


def network(dtype: str) -> nn.Linear:
    made = nn.Linear(3, 2)
    made.weight = nn.Parameter(nnc.asarray(WEIGHTS["weight"].astype(dtype)))
    made.bias = nn.Parameter(nnc.asarray(WEIGHTS["bias"].astype(dtype)))
    return made


def trained(params: Params, dtype: str) -> tuple[list[float], dict[str, Any]]:
    model = network(dtype)
    x, y = data_for(params)
    y = y if y.dtype.kind == "i" else y.astype(dtype)
    progress = optim.minimise_network(params, model, x.astype(dtype), y)
    return progress.losses, model.state_dict()


def compare(params: Params, dtype: str, rtol: float) -> None:
    eager = trained(replace(params, compiled=False), dtype)
    compiled = trained(replace(params, compiled=True), dtype)
    x, y = data_for(params)
    order = network(dtype).named_parameters()
    wanted = reference(params, x, y, {name: WEIGHTS[name] for name in order}, mean=True)
    for found, other, tolerance in ((eager, compiled, rtol), (eager, wanted, 10 * rtol)):
        np.testing.assert_allclose(found[0], other[0], rtol=tolerance, atol=tolerance)
        for name, w in found[1].items():
            np.testing.assert_allclose(w, other[1][name], rtol=tolerance, atol=tolerance)


def test_every_option_of_owl_is_here() -> None:
    assert sum(len(named) for named in OPTIONS.values()) + len({"fun", "weight", "network"}) == 44


@pytest.mark.parametrize("option", ALL)
@pytest.mark.parametrize("on", devices())
def test_each_option_eager_compiled_and_in_numpy(on: str, option: str) -> None:
    with nnc.use_device(on):
        compare(replace(BASE, **ALL[option]), "float64", 1e-10)


@pytest.mark.parametrize("option", ALL)
@pytest.mark.parametrize("on", devices())
def test_each_option_in_float32(on: str, option: str) -> None:
    with nnc.use_device(on), nnc.config.using(deterministic=True):
        compare(replace(BASE, **ALL[option]), "float32", 1e-5)


@pytest.mark.parametrize("option", ALL)
def test_each_option_as_a_static_graph(option: str) -> None:
    """Steps of the neural compiler, and of its graph without the network, are those of an eager run."""
    params = replace(BASE, batch=batch.Full(), epochs=3, **{k: v for k, v in ALL[option].items()
                                                            if k not in ("batch", "epochs", "stopping")})
    losses, weights = trained(replace(params, compiled=False), "float64")
    x, y = data_for(params)
    training = optim.compile_training(network("float64"), params, x, y)
    alone = optim.StateGraph(training.graph, training.state())
    np.testing.assert_allclose([training.step(x, y).item() for _ in losses], losses, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose([alone(x=x, y=y)["loss"].item() for _ in losses], losses, rtol=1e-10, atol=1e-10)
    for name, w in weights.items():
        for state in (training.state(), alone.state_dict()):
            np.testing.assert_allclose(state[f"network.{name}"], w, rtol=1e-10, atol=1e-10)


MATRIX = [dict(itertools.chain(*[o.items() for o in choice])) for choice in itertools.product(
    [{"learning_rate": learning_rate.Adagrad(0.1)}, {"learning_rate": learning_rate.Decay(0.1, 0.5)},
     {"learning_rate": learning_rate.ExpDecay(0.1, 0.3)}, {"learning_rate": learning_rate.RMSprop(0.05)},
     {"learning_rate": learning_rate.Adam(0.1)}, {"learning_rate": learning_rate.Schedule([0.1, 0.02])},
     {"learning_rate": 0.02}],
    [{"gradient": g} for g in (gradient.GD(), gradient.HestenesStiefel(), gradient.ConjugateDescent(),
                               gradient.FletcherReeves(), gradient.DaiYuan(), newton.NewtonCG(), newton.Newton())],
    OPTIONS["momentum"].values(),
    [*OPTIONS["regularisation"].values()],
    OPTIONS["clipping"].values())]


def sampled(seed: int, count: int) -> list[int]:
    return sorted(np.random.default_rng(seed).choice(len(MATRIX), count, replace=False).tolist())


def compare_combination(options: dict[str, Any]) -> None:
    """Newton's methods with a norm that is not squared have no constant Hessian: the reference has it of a square."""
    if options["gradient"] in (newton.Newton(), newton.NewtonCG()):
        kind = options["regularisation"]
        if isinstance(kind, (regularisation.L2, regularisation.ElasticNet)):
            options = {**options, "regularisation": replace(kind, squared=True)}
    compare(replace(BASE, **options, epochs=3, batch=batch.Mini(5)), "float64", 1e-9)


@pytest.mark.parametrize("on", devices())
def test_combinations(seed: int, on: str) -> None:
    """Some of all learning rates × gradient methods × momenta × regularisations × clippings."""
    with nnc.use_device(on):
        for i in sampled(seed, 12 if on == devices()[0] else 2):
            compare_combination(MATRIX[i])


@pytest.mark.slow
@pytest.mark.parametrize("on", devices())
@pytest.mark.parametrize("part", range(7))
def test_all_combinations(part: int, on: str) -> None:
    """Every one on the first device, every tenth on the others."""
    with nnc.use_device(on):
        for i in range(part, len(MATRIX), 7 if on == devices()[0] else 70):
            compare_combination(MATRIX[i])


# ---- the three ways to run
def ways(test: Any) -> Any:
    """On each device, eager and compiled, in both precisions."""
    for mark in (pytest.mark.parametrize("compiled", [False, True]), pytest.mark.parametrize("on", devices()),
                 pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-10)])):
        test = mark(test)
    return test


@ways
def test_minimise_weight(on: str, compiled: bool, dtype: str, rtol: float) -> None:
    params = replace(BASE, batch=batch.Mini(3), momentum=momentum.Standard(), compiled=compiled)
    with nnc.use_device(on):
        first = {name: nnc.asarray(w.astype(dtype)) for name, w in WEIGHTS.items()}
        progress, last = optim.minimise_weight(params, lambda w, x: x @ w["weight"] + w["bias"], first,
                                               X.astype(dtype), Y.astype(dtype))
        losses, wanted = reference(params, X, Y, WEIGHTS, mean=False)
    np.testing.assert_allclose(progress.losses, losses, rtol=rtol)
    for name, w in wanted.items():
        np.testing.assert_allclose(last[name].numpy(), w, rtol=rtol)
        np.testing.assert_array_equal(first[name].numpy(), WEIGHTS[name].astype(dtype))


@ways
def test_minimise_fun(on: str, compiled: bool, dtype: str, rtol: float) -> None:
    """By hand: x - 0.1 * (2 x) and so on, from (1, -2)."""
    params = replace(BASE, epochs=5, learning_rate=0.1, compiled=compiled)
    with nnc.use_device(on):
        first = nnc.asarray(np.array([1.0, -2.0], dtype))
        progress, x = optim.minimise_fun(params, lambda x: nnc.sum(x * x), first)
    np.testing.assert_allclose(progress.losses, [5 * 0.8 ** (2 * i) for i in range(5)], rtol=rtol)
    np.testing.assert_allclose(x.numpy(), np.array([1.0, -2.0]) * 0.8**5, rtol=rtol)


@ways
def test_minimise_network(on: str, compiled: bool, dtype: str, rtol: float) -> None:
    """Under Owl's name and under that of its neural module."""
    params = replace(BASE, batch=batch.Mini(3), momentum=momentum.Nesterov(), compiled=compiled)
    x, y = X.astype(dtype), Y.astype(dtype)
    with nnc.use_device(on):
        models = [network(dtype), network(dtype)]
        found = [optim.minimise_network(params, models[0], x, y), optim.train(models[1], params, x, y)]
        losses, wanted = reference(params, X, Y, {name: WEIGHTS[name] for name in models[0].named_parameters()},
                                   mean=True)
    for progress, model in zip(found, models, strict=True):
        np.testing.assert_allclose(progress.losses, losses, rtol=rtol)
        for name, w in wanted.items():
            np.testing.assert_allclose(model.state_dict()[name], w, rtol=rtol)


def rosenbrock(v: nnc.Tensor) -> nnc.Tensor:
    return 100 * (v[1] - v[0] ** 2) ** 2 + (1 - v[0]) ** 2


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method, epochs", [
    (newton.LBFGS(), 45), (newton.Newton(), 30), (newton.NewtonCG(), 90), (gradient.HestenesStiefel(), 60),
])
def test_minimise_fun_finds_the_valley_of_rosenbrock(method: Any, epochs: int, compiled: bool) -> None:
    params = Params(epochs=epochs, gradient=method, learning_rate=learning_rate.LineSearch(), compiled=compiled)
    progress, x = optim.minimise_fun(params, rosenbrock, nnc.asarray(np.array([-1.2, 1.0])))
    np.testing.assert_allclose(x.numpy(), [1, 1], atol=1e-3)
    assert progress.losses[0] == pytest.approx(24.2)
    assert len(progress.losses) == progress.batch == epochs


def test_minimise_fun_takes_structures_and_regularises() -> None:
    params = Params(epochs=200, learning_rate=0.1, regularisation=regularisation.L2(0.5), verbosity=False)
    _, x = optim.minimise_fun(params, lambda t: nnc.sum((t["a"] - 3) ** 2) + nnc.sum((t["b"][0] + 1) ** 2),
                              {"a": nnc.zeros(2, dtype=nnc.float64), "b": [nnc.zeros(1, dtype=nnc.float64)]})
    np.testing.assert_allclose(x["a"].numpy(), [2, 2])
    np.testing.assert_allclose(x["b"][0].numpy(), [-2 / 3])


def test_negative_curvature_gives_a_way_down() -> None:
    """At a saddle NewtonCG goes where the gradient says, Newton's own direction to the saddle."""
    start = nnc.asarray(np.array([1.0, 0.1]))
    saddle = lambda v: v[0] ** 2 - v[1] ** 2 + 0.1 * v[1] ** 4  # noqa: E731
    found = {}
    for method in (newton.NewtonCG(), newton.Newton()):
        params = Params(epochs=12, gradient=method, learning_rate=learning_rate.LineSearch())
        found[type(method)] = float(saddle(optim.minimise_fun(params, saddle, start)[1]))
    assert found[newton.NewtonCG] == pytest.approx(-2.5, abs=1e-4)
    assert found[newton.Newton] > -0.1
