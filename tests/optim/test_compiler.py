"""The neural compiler: a network and its training as one static graph, which carries all that it must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import OperandError, ShapeError
from nnc_core.optim import clipping
from nnc_core.optim.owl import Params, batch, gradient, learning_rate, loss, momentum, newton, regularisation
from nnc_core.optim.runs.objective import loss_of, regularised
from nnc_core.random.generator import default_generator
from tests.devices import devices

QUIET = Params(epochs=1, batch=batch.Full(), loss=loss.Quadratic(), learning_rate=0.05, verbosity=False)
RNG = np.random.default_rng(2)
X, Y = RNG.uniform(0.2, 1.0, (6, 3)), RNG.uniform(0.5, 1.5, (6, 2))
ROWS = [RNG.permutation(6) for _ in range(4)]
"""Each step sees the rows in another order: what depends on it, as dropout does, must not be carried wrongly."""


class Centred(nn.Module):
    """Takes off a running mean in evaluation, the batch's own in training: state that no gradient is taken by."""

    def __init__(self, features: int, dtype: Any = None) -> None:
        self.mean = nnc.Cell(nnc.zeros(features, dtype=dtype))

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        if not self.training:
            return x - self.mean.read()
        mean = nnc.mean(x, axis=0)
        self.mean.write(self.mean.read() * 0.9 + mean * 0.1)
        return x - mean


def network(dtype: str = "float64", seed: int = 0) -> nn.Sequential:
    g = nnc.Generator(seed)
    return nn.Sequential(
        nn.Linear(3, 4, generator=g, dtype=dtype), nn.Tanh(), Centred(4, dtype),
        nn.Dropout(0.25, nnc.Generator(seed + 1)), nn.Linear(4, 2, generator=g, dtype=dtype))


def specs(dtype: str = "float64") -> tuple[nnc.TensorSpec, nnc.TensorSpec]:
    kind = getattr(nnc, dtype)
    return nnc.TensorSpec((6, 3), kind), nnc.TensorSpec((6, 2), kind)


def eager_steps(params: Params, made: nn.Module, dtype: str) -> tuple[list[float], dict[str, Any]]:
    minimiser = params.minimiser(made.named_parameters())
    objective = regularised(loss_of(made, params.loss), params)
    step = optim.make_descent(objective, minimiser, eager=True)
    losses = [step(nnc.asarray(X[r].astype(dtype)), nnc.asarray(Y[r].astype(dtype))).item() for r in ROWS]
    return losses, {**made.state_dict(), **{f"minimiser.{k}": v for k, v in minimiser.state_dict().items()}}


def compiled_steps(params: Params, made: nn.Module, dtype: str) -> tuple[list[float], dict[str, Any]]:
    training = optim.compile_training(made, params, *specs(dtype))
    losses = [training.step(X[r].astype(dtype), Y[r].astype(dtype)).item() for r in ROWS]
    return losses, {**made.state_dict(),
                    **{f"minimiser.{k}": v for k, v in training.minimiser.state_dict().items()}}


def agree(found: tuple[list[float], dict[str, Any]], wanted: tuple[list[float], dict[str, Any]], rtol: float) -> None:
    np.testing.assert_allclose(found[0], wanted[0], rtol=rtol, atol=rtol)
    assert found[1].keys() == wanted[1].keys()
    for name, x in found[1].items():
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, wanted[1][name], rtol=rtol, atol=rtol, err_msg=name)
        else:
            np.testing.assert_array_equal(x, wanted[1][name], err_msg=name)


# ---- the whole update
DEFECTS: dict[str, dict[str, Any]] = {
    "a rate that decays": {"learning_rate": learning_rate.Decay(0.2, 0.5)},
    "an exponential one": {"learning_rate": learning_rate.ExpDecay(0.2, 0.3)},
    "Adam's correction": {"learning_rate": learning_rate.Adam(0.05)},
    "a schedule": {"learning_rate": learning_rate.Schedule([0.1, 0.02, 0.05])},
    "L1": {"regularisation": regularisation.L1(0.1)},
    "L2": {"regularisation": regularisation.L2(0.1, squared=False)},
    "an elastic net": {"regularisation": regularisation.ElasticNet(0.1, 0.2)},
    "CD": {"gradient": gradient.ConjugateDescent()},
    "NonlinearCG": {"gradient": gradient.FletcherReeves()},
    "NewtonCG": {"gradient": newton.NewtonCG(3), "learning_rate": 0.5},
    "all at once": {"learning_rate": learning_rate.RMSprop(0.01), "gradient": gradient.HestenesStiefel(),
                    "momentum": momentum.Nesterov(0.5), "regularisation": regularisation.L2(0.01),
                    "clipping": clipping.Norm(0.5)},
    "AdamW": {"learning_rate": learning_rate.Const(),
              "make_minimiser": lambda ps: optim.AdamW(ps, optim.schedules.Cosine(0.1, 5))},
}
"""What Owl's compiled training gets wrong: numbers frozen at step 999, weights regularised without a gradient, methods
that start from nothing, running statistics that are not carried."""


@pytest.mark.parametrize("case", DEFECTS)
@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-10), ("float32", 1e-5)])
def test_the_compiled_step_is_the_eager_one(case: str, dtype: str, rtol: float) -> None:
    params = replace(QUIET, **DEFECTS[case])
    wanted = eager_steps(params, network(dtype), dtype)
    found = compiled_steps(params, network(dtype), dtype)
    agree(found, wanted, rtol)
    assert np.isfinite(found[0]).all()
    assert len(set(found[0])) == len(ROWS)  # each loss is its own, not a look at the last one
    assert found[1]["minimiser.step"] == len(ROWS)


@pytest.mark.parametrize("on", devices())
def test_on_every_device(on: str) -> None:
    params = replace(QUIET, **DEFECTS["all at once"])
    with nnc.use_device(on):
        agree(compiled_steps(params, network(), "float64"), eager_steps(params, network(), "float64"), 1e-10)


def test_the_graph_carries_all_state_in_place() -> None:
    made = network()
    training = optim.compile_training(made, replace(QUIET, momentum=momentum.Standard()), *specs())
    carried = {input for _, input in training.iopairs}
    weights = {f"network.{name}" for name in made.named_parameters()}
    assert weights | {"network.2.mean", "network.3.generator", "minimiser.step"} <= carried
    assert {f"minimiser.velocity.{name}" for name in made.named_parameters()} <= carried
    assert set(training.graph.inputs) == carried | {"x", "y"}
    assert len(training.run.donated) == len(carried)
    assert all(output == f"new.{input}" for output, input in training.iopairs)
    plan = training.memory_plan
    assert 0 < plan.bound <= plan.peak < 10_000
    training.step(X, Y)  # from now on nobody else holds the arrays: they are overwritten
    held = [(cell, cell.lend().array) for cell in (*made.cells().values(), *training.minimiser.cells().values())]
    training.step(X, Y)
    for cell, array in held:
        buffer_of = cell.lend().stack.device.buffer_of
        before, after = buffer_of(array), buffer_of(cell.lend().array)
        assert before is after or np.shares_memory(before, after)


def test_the_graph_can_be_read_and_drawn(tmp_path: Any) -> None:
    training = optim.compile_training(network(), QUIET, *specs())
    text = str(training)
    assert text.startswith("training(x: float64[6,3], y: float64[6,2], network.0.weight: float64[3,4], ")
    assert "bernoulli(network.3.generator" in text and "loss=%" in text
    assert "new.network.2.mean takes the memory of network.2.mean" in text
    assert training.graph.to_dot().count("->") == training.graph.complexity[1]
    assert training.graph.draw(tmp_path / "training.png").stat().st_size > 1000
    assert "matmul" in training.explain()
    assert repr(training) == f"<training: {training.graph.complexity[0]} nodes, {len(training.iopairs)} iopairs>"


@pytest.mark.parametrize("on", devices())
def test_a_saved_graph_trains_on_another_device(tmp_path: Any, on: str) -> None:
    made = network()
    training = optim.compile_training(made, replace(QUIET, learning_rate=learning_rate.Adam(0.05)), *specs())
    training.step(X, Y)
    nnc.save_graph(training.graph, tmp_path / "training")
    elsewhere = optim.StateGraph(nnc.load_graph(tmp_path / "training"), training.state(), on)
    for rows in ROWS:
        wanted = training.step(X[rows], Y[rows]).item()
        found = elsewhere(x=X[rows], y=Y[rows])
        assert found.keys() == {"loss"}
        assert found["loss"].device.id == on
        np.testing.assert_allclose(found["loss"].item(), wanted, rtol=1e-10)
    for name, x in training.state().items():
        np.testing.assert_allclose(elsewhere.state_dict()[name], x, rtol=1e-9, atol=1e-12)


def test_state_graphs_are_asked_for_what_they_take() -> None:
    training = optim.compile_training(network(), QUIET, *specs())
    state = training.state()
    with pytest.raises(OperandError, match=r"missing network\.0\.weight"):
        optim.StateGraph(training.graph, {k: v for k, v in state.items() if k != "network.0.weight"})
    with pytest.raises(OperandError, match="unknown weight"):
        optim.StateGraph(training.graph, {**state, "weight": np.zeros(3)})
    step = optim.StateGraph(training.graph, state)
    with pytest.raises(OperandError, match=r"given x(.|\n)*takes x, y"):
        step(x=X)
    before = step.state_dict()
    step(x=X, y=Y)
    step.load_state_dict(before)
    np.testing.assert_array_equal(step.state_dict()["network.0.weight"], state["network.0.weight"])
    assert "arrays of state" in repr(step)


def test_what_changes_reaches_the_graph() -> None:
    """A setting of the minimiser, an attribute of the network, the mode of training, another batch."""
    made = network()
    minimiser = optim.SGD(made.named_parameters(), 0.1)
    training = optim.compile_training(made, QUIET, *specs(), minimiser=minimiser)
    first = training.graph
    assert training.graph is first
    training.step(X[:4], Y[:4])
    assert training.graph is first
    minimiser.learning_rate = 0.0
    before = made.state_dict()
    training.step(X, Y)
    np.testing.assert_array_equal(made.state_dict()["0.weight"], before["0.weight"])
    assert training.graph is not first
    made.eval()
    assert "bernoulli" in str(first) and "bernoulli" not in str(training.graph)


def test_tensors_from_outside_are_constants_of_the_graph(tmp_path: Any) -> None:
    weights = nnc.asarray(np.array([1.0, 3.0]))
    params = replace(QUIET, loss=lambda y, p: nnc.sum(weights * (y - p) ** 2))
    made = nn.Linear(3, 2, dtype="float64")
    training = optim.compile_training(made, params, X, Y)
    assert "outside0" not in training.graph.inputs
    nnc.save_graph(training.graph, tmp_path / "graph")
    elsewhere = optim.StateGraph(nnc.load_graph(tmp_path / "graph"), training.state(), "strict:0")
    np.testing.assert_allclose(elsewhere(x=X, y=Y)["loss"].item(), training.step(X, Y).item(), rtol=1e-12)


def test_random_numbers_of_the_default_generator_are_carried() -> None:
    def noisy(y: nnc.Tensor, p: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum((y - p + default_generator().normal(p.shape, dtype="float64")) ** 2)

    found = []
    for steps in (eager_steps, compiled_steps):
        made = network()
        nnc.manual_seed(3)
        found.append(steps(replace(QUIET, loss=noisy), made, "float64"))
    agree(*found, 1e-10)
    training = optim.compile_training(network(), replace(QUIET, loss=noisy), *specs())
    assert ("new.random", "random") in training.iopairs
    assert training.step(X, Y).item() != training.step(X, Y).item()


# ---- Owl's three depths
def test_gradients_alone() -> None:
    """compile_simple: forward, loss and gradients; nothing is updated but running statistics and random keys."""
    made, twin = network(), network()
    graph = optim.compile_gradients(made, loss.Quadratic(), *specs())
    found = graph(X, Y)
    wanted = nn.value_and_grad(twin, lambda x, y: loss.Quadratic()(y, twin(x)))(nnc.asarray(X), nnc.asarray(Y))
    np.testing.assert_allclose(found[0].item(), wanted[0].item(), rtol=1e-12)
    assert found[1].keys() == made.named_parameters().keys()
    for name, g in wanted[1].items():
        np.testing.assert_allclose(found[1][name].numpy(), g.numpy(), rtol=1e-10, atol=1e-13)
    assert {input for _, input in graph.iopairs} == {"network.2.mean", "network.3.generator"}
    assert {"loss", "gradient.0.weight", "new.network.2.mean"} <= set(graph.graph.outputs)
    agree(([], made.state_dict()), ([], twin.state_dict()), 1e-12)


def test_a_mean_loss_and_its_gradients() -> None:
    """compile_shallow: the loss divided by the rows of the batch."""
    whole = optim.compile_gradients(network(), loss.Quadratic(), *specs())(X, Y)
    mean = optim.compile_gradients(network(), loss.Quadratic(), *specs(), mean=True)(X, Y)
    np.testing.assert_allclose(mean[0].item() * 6, whole[0].item(), rtol=1e-12)
    np.testing.assert_allclose(mean[1]["0.weight"].numpy() * 6, whole[1]["0.weight"].numpy(), rtol=1e-10)


class Two(nn.Module):
    """Two inputs, two outputs."""

    def __init__(self) -> None:
        self.left, self.right = nn.Linear(3, 2, dtype="float64"), nn.Linear(2, 2, dtype="float64")

    def forward(self, a: nnc.Tensor, b: nnc.Tensor) -> dict[str, nnc.Tensor]:
        return {"sum": self.left(a) + self.right(b), "product": self.left(a) * self.right(b)}


def both(y: nnc.Tensor, p: dict[str, nnc.Tensor]) -> nnc.Tensor:
    return nnc.sum((p["sum"] - y) ** 2) + nnc.sum(p["product"] ** 2)


def test_networks_of_several_inputs_and_outputs() -> None:
    made = Two()
    params = replace(QUIET, loss=both, epochs=3, batch=batch.Mini(3))
    training = optim.compile_training(made, params, (X, Y), Y)
    assert {"x.0", "x.1", "y"} <= set(training.graph.inputs)
    losses = [training.step((X, Y), Y).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    progress = optim.train(made, params, (X, Y), Y)
    assert progress.losses[-1] < losses[0]
    inference = optim.compile_model(made, (X, Y))
    assert inference.graph.list_outputs() == ["prediction.sum", "prediction.product"]
    found = optim.model(made, batch_size=4)(X, Y)
    for name, x in inference((X, Y)).items():
        np.testing.assert_allclose(found[name].numpy(), x.numpy(), rtol=1e-12)
    assert optim.evaluate(made, both, (X, Y), Y, batch_size=5) == pytest.approx(
        optim.evaluate(made, both, (X, Y), Y), rel=1e-12)


def test_inputs_are_arrays_or_specs_of_known_size() -> None:
    with pytest.raises(ShapeError, match=r"float64\[batch,3\] has sizes without a number"):
        optim.compile_training(network(), QUIET, nnc.TensorSpec((nnc.Dim("batch"), 3), nnc.float64), Y)


def test_a_network_without_parameters_can_be_compiled_for_inference() -> None:
    graph = optim.compile_model(nn.Sequential(nn.Tanh(), nn.Dropout(0.5)), X)
    np.testing.assert_allclose(graph(X).numpy(), np.tanh(X), rtol=1e-12)
    assert graph.iopairs == ()
