"""Owl's runs: stopping, checkpoints, validation, going on, messages, and what is refused."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import (
    AttributeValueError,
    DataError,
    DTypeError,
    NonfiniteError,
    NotSupportedError,
    OperandError,
    StateError,
)
from nnc_core.io import load_training_state, save_training_state
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

COMPILED = pytest.mark.parametrize("compiled", [False, True])
QUIET = Params(epochs=3, batch=batch.Mini(4), loss=loss.Quadratic(), learning_rate=0.05, verbosity=False)


def square(v: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(v * v)


def points(seed: int = 0, count: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3)).astype(np.float32)
    return x, (x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3).astype(np.float32)


# ---- parameters
def test_defaults_are_those_of_owl() -> None:
    found = Params()
    assert (found.epochs, found.batch, found.gradient, found.loss) == (1.0, batch.Sample(100), gradient.GD(),
                                                                       loss.CrossEntropy())
    assert found.learning_rate == learning_rate.Const(0.001)
    assert [found.regularisation, found.momentum, found.clipping, found.stopping, found.checkpoint] == [None] * 5
    assert found.verbosity
    assert (learning_rate.Adagrad(), learning_rate.Decay(), learning_rate.ExpDecay()) == (
        learning_rate.Adagrad(0.01), learning_rate.Decay(0.1, 0.1), learning_rate.ExpDecay(1.0, 0.1))
    assert (learning_rate.RMSprop(), learning_rate.Adam()) == (
        learning_rate.RMSprop(0.001, 0.9), learning_rate.Adam(0.001, 0.9, 0.999))
    assert (momentum.Standard().m, momentum.Nesterov().m, clipping.Norm().limit) == (0.9, 0.9, 1.0)
    assert (stopping.Const().a, stopping.Early()) == (1e-6, stopping.Early(750, 10))


def test_a_configuration_is_shown() -> None:
    assert "    learning_rate  : Adam(a=0.1, b1=0.9, b2=0.999)" in str(Params(learning_rate=learning_rate.Adam(0.1)))


@pytest.mark.parametrize("make, words", [
    (lambda: Params(epochs=0), "Params: epochs is 0, expected a number above 0"),
    (lambda: Params(batch=32), "batch is 32, expected one of optim.owl.batch"),
    (lambda: Params(learning_rate=-0.1), "learning_rate is -0.1"),
    (lambda: Params(gradient="GD"), "gradient is 'GD', expected a method of optim.owl.gradient"),
    (lambda: Params(loss=None), "loss is None"),
    (lambda: Params(momentum=0.9), "momentum is 0.9, expected one of optim.owl.momentum"),
    (lambda: Params(stopping=1e-3), "stopping is 0.001"),
    (lambda: Params(checkpoint=3), "checkpoint is 3"),
    (lambda: Params(nonfinite="stop"), "nonfinite is 'stop'"),
    (lambda: batch.Mini(0), "Mini: size is 0"),
    (lambda: stopping.Early(0), "stagnation is 0"),
    (lambda: checkpoint.EveryEpochs(0, print), "count is 0"),
    (lambda: checkpoint.Custom(3), "3 is no function of the progress"),
    (lambda: loss.Custom("f"), "'f', expected a function"),
    (lambda: learning_rate.Adam(b1=1.0), "b1 is 1.0"),
    (lambda: learning_rate.LineSearch(decrease=0.9, curvature=0.5), "below curvature 0.5"),
    (lambda: newton.LBFGS(0), "memory is 0"),
    (lambda: newton.Newton(-1), "damping is -1"),
    (lambda: momentum.Standard(-0.1), "m is -0.1"),
    (lambda: regularisation.L1(-1), "a is -1"),
])
def test_wrong_options_are_refused(make: Any, words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        make()


# ---- what a minimiser of Owl's parts refuses
def test_methods_that_ask_the_function_are_not_content_with_gradients() -> None:
    for parts in ({"gradient": newton.Newton()}, {"learning_rate": learning_rate.LineSearch()}):
        minimiser = optim.owl.Descent([nn.Parameter(nnc.ones(2))], **parts)
        assert minimiser.needs_loss
        with pytest.raises(NotSupportedError, match=r"evaluate the function(.|\n)*descend"):
            minimiser.update({"0": nnc.ones(2)})
    assert not optim.owl.Descent([nn.Parameter(nnc.ones(2))]).needs_loss


def test_what_has_no_groups_and_no_common_dtype_says_so() -> None:
    cells = [nn.Parameter(nnc.ones(2)), nn.Parameter(nnc.ones(2, dtype=nnc.float64))]
    with pytest.raises(NotSupportedError, match="has no groups"):
        optim.owl.Descent([optim.Group([cells[0]]), optim.Group([cells[1]])])
    with pytest.raises(DTypeError, match="parameters of float32 and float64 are no vector"):
        optim.LBFGS(cells)
    minimiser = optim.owl.Descent(cells)
    minimiser.momentum = momentum.Standard()
    with pytest.raises(StateError, match="made without velocity"):
        minimiser.update({"0": cells[0].read(), "1": cells[1].read()})


@COMPILED
def test_a_line_search_stays_where_no_step_leads_down(compiled: bool) -> None:
    """Uphill, because the gradients are those of another function; and where there are no numbers."""
    for loss_fn, sign in ((square, -1.0), (lambda v: nnc.log(square(v) - 2), 1.0)):
        p = nn.Parameter(nnc.ones(2))
        minimiser = optim.owl.Descent([p], learning_rate.LineSearch(first=1e-3, most=4))
        update = nnc.jit(lambda g, m=minimiser, f=loss_fn: m.update({"0": g}, lambda ws: f(ws["0"])))
        (update if compiled else update.f)(nnc.full(2, sign))
        np.testing.assert_array_equal(p.read().numpy(), [1, 1])


@COMPILED
def test_a_minimiser_may_be_given_the_function(compiled: bool) -> None:
    p = nn.Parameter(nnc.asarray(np.array([3.0, -1.0])))
    minimiser = optim.LBFGS({"v": p})
    step = optim.make_descent(lambda ws, target: square(ws["v"] - target), minimiser, eager=not compiled)
    losses = [step(nnc.asarray(np.array([1.0, 2.0]))).item() for _ in range(8)]
    assert losses[0] == 13
    np.testing.assert_allclose(p.read().numpy(), [1, 2], atol=1e-9)
    other = optim.LBFGS({"v": nn.Parameter(p.read())})
    other.load_state_dict(minimiser.state_dict())
    assert {"history.steps", "history.changes", "weights.v", "gradient.v", "step"} == set(other.cells())


# ---- regularisation
@pytest.mark.parametrize("kind", [regularisation.L1(0.5), regularisation.L2(0.5), regularisation.L2(0.5, squared=False),
                                  regularisation.ElasticNet(0.5, 0.5, squared=False)])
def test_regularisation_of_nothing_has_a_gradient_of_nothing(kind: Any) -> None:
    g = nnc.grad(lambda w: kind({"w": w}))(nnc.zeros(3))
    np.testing.assert_array_equal(g.numpy(), [0, 0, 0])


def test_regularisation_takes_parameters_too() -> None:
    model = nn.Linear(2, 1)
    found = nn.value_and_grad(model, lambda: regularisation.L2(0.5)(model.named_parameters()))()[1]
    np.testing.assert_allclose(found["weight"].numpy(), model.weight.read().numpy())
    with pytest.raises(OperandError, match="no weights to regularise"):
        regularisation.L1(0.1)({})


def test_losses_at_their_corners_have_gradients() -> None:
    zeros, ones = nnc.zeros(2), nnc.ones(2)
    np.testing.assert_array_equal(nnc.grad(lambda p: loss.L2Norm()(ones, p))(ones).numpy(), [0, 0])
    value, g = nnc.value_and_grad(lambda p: loss.CrossEntropy()(nnc.asarray([0.0, 1.0]), p))(nnc.asarray([0.0, 0.5]))
    np.testing.assert_allclose(value.item(), np.log(2), rtol=1e-6)
    np.testing.assert_allclose(g.numpy(), [0, -2])
    assert loss.CrossEntropy()(ones, zeros).item() == np.inf


# ---- batches
def test_batches_depend_on_their_number_alone() -> None:
    assert batch.Mini(3).rows(2, 7).tolist() == [6, 0, 1]
    assert (batch.Mini(3).batches(7), batch.Full().batches(7), batch.Stochastic().batches(7)) == (2, 1, 7)
    assert (batch.Sample(3).batches(7), batch.Sample(100).batches(7)) == (2, 1)
    first, again = batch.Sample(50, seed=1).rows(4, 7), batch.Sample(50, seed=1).rows(4, 7)
    assert first.tolist() == again.tolist() != batch.Sample(50, seed=1).rows(5, 7).tolist()
    assert set(first.tolist()) == set(range(7))
    assert batch.Full().rows(3, 7) is None
    with pytest.raises(DataError, match="7 rows make no batch of 8"):
        batch.Mini(8).batches(7)


# ---- stopping
@COMPILED
def test_a_small_loss_stops(compiled: bool) -> None:
    params = Params(epochs=50, learning_rate=0.25, stopping=stopping.Const(0.1), compiled=compiled)
    progress, x = optim.minimise_fun(params, square, nnc.ones(1))
    assert progress.losses == [1.0, 0.25, 0.0625]
    assert (progress.stop, progress.reason) == (True, "the loss is below 0.1")
    assert x.tolist() == [0.125]  # the last batch has had its update


def test_stagnation_stops() -> None:
    params = Params(epochs=50, learning_rate=1.0, stopping=stopping.Early(3, None))
    progress, _ = optim.minimise_fun(params, square, nnc.ones(1))  # leaps from 1 to -1 and back
    assert progress.losses == [1.0] * 4
    assert progress.reason == "the loss has not fallen for 3 batches"


@COMPILED
def test_overfitting_stops(compiled: bool) -> None:
    """The validation data want the opposite, so that their loss grows from the first epoch on."""
    x, y = points()
    model = nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.5))
    modes = []
    model.register_forward_hook(lambda module, args, result: modes.append(module.training))
    params = replace(QUIET, epochs=20, stopping=stopping.Early(None, 4), compiled=compiled)
    progress = optim.minimise_network(params, model, x, y, validation=(x, -y - 20))
    assert progress.reason == "the validation loss has not fallen for 4 epochs"
    assert len(progress.validation_losses) == 5
    assert progress.epoch == 5
    assert set(modes) == {True, False}
    assert model.training


def test_overfitting_needs_data_to_show_on() -> None:
    with pytest.raises(DataError, match=r"there are none(.|\n)*validation="):
        optim.minimise_fun(Params(stopping=stopping.Early()), square, nnc.ones(1))


def test_losses_that_are_no_numbers_are_no_improvement() -> None:
    nan = float("nan")
    assert [stopping.since_least(x) for x in ([], [1.0], [nan, nan], [2.0, 1.0, nan, 1.0], [nan, 3.0])] == [
        0, 0, 1, 2, 0]


# ---- checkpoints
def test_checkpoints_come_when_they_are_due() -> None:
    seen: list[Any] = []

    def run(when: Any, epochs: float = 2) -> list[Any]:
        seen.clear()
        optim.minimise_weight(replace(QUIET, epochs=epochs, checkpoint=when), lambda w, x: x @ w, nnc.zeros((3, 1)),
                              *points())
        return list(seen)

    def note(now: optim.Progress) -> None:
        seen.append(now.batch)
        if now.batch == 5:
            now.stop = True

    assert run(checkpoint.EveryBatches(2, note)) == [2, 4, 6]
    assert run(checkpoint.EveryEpochs(1, note)) == [3, 6]
    assert run(checkpoint.EveryEpochs(0.34, note)) == [1, 2, 3, 4, 5]
    assert run(checkpoint.Custom(note)) == [1, 2, 3, 4, 5]
    assert run(None) == []


@COMPILED
def test_a_run_goes_on_from_a_file(tmp_path: Any, compiled: bool) -> None:
    """In another process all would be made anew: network, minimiser and progress."""
    x, y = points()
    params = replace(QUIET, epochs=4, batch=batch.Sample(4), gradient=gradient.FletcherReeves(), compiled=compiled,
                     learning_rate=learning_rate.Adam(0.05), momentum=momentum.Nesterov(0.5))
    whole = nn.Linear(3, 1, generator=nnc.Generator(0))
    wanted = optim.minimise_network(params, whole, x, y)

    model = nn.Linear(3, 1, generator=nnc.Generator(0))
    keep = checkpoint.EveryEpochs(2, lambda now: save_training_state(tmp_path / "run", model, now.minimiser))
    half = optim.minimise_network(replace(params, epochs=2, checkpoint=keep), model, x, y)
    again = nn.Linear(3, 1)
    minimiser = params.minimiser(again.named_parameters())
    load_training_state(tmp_path / "run", again, minimiser)
    state = optim.Progress(minimiser, half.batches_per_epoch, batch=half.batch, losses=half.losses)
    progress = optim.minimise_network(params, again, x, y, state=state)
    assert progress.losses == wanted.losses
    np.testing.assert_array_equal(again.weight.read().numpy(), whole.weight.read().numpy())


def test_a_function_goes_on_where_it_was() -> None:
    params = Params(epochs=6, learning_rate=0.1, momentum=momentum.Standard())
    wanted = optim.minimise_fun(params, square, nnc.ones(2))
    state, x = optim.minimise_fun(replace(params, epochs=2), square, nnc.ones(2))
    found = optim.minimise_fun(params, square, x, state=state)
    assert found[0].losses == wanted[0].losses
    assert found[1].tolist() == wanted[1].tolist()
    again = optim.minimise_fun(params, square, found[1], state=found[0])
    assert again[1].tolist() == wanted[1].tolist()  # nothing was left to do


def test_a_state_is_for_its_own_run() -> None:
    x, y = points()
    state = optim.minimise_network(QUIET, nn.Linear(3, 1), x, y)
    with pytest.raises(StateError, match="other parameters"):
        optim.minimise_network(QUIET, nn.Linear(3, 1), x, y, state=state)
    with pytest.raises(StateError, match="3 batches an epoch, it now has 1"):
        optim.minimise_network(replace(QUIET, batch=batch.Full()), nn.Linear(3, 1), x, y, state=state)
    with pytest.raises(StateError, match="2 tensors, there are 1"):
        optim.minimise_fun(QUIET, square, nnc.ones(1), state=state)


# ---- messages and mistakes
def test_a_verbose_run_says_how_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "nnc_core.optim"):
        optim.minimise_fun(Params(epochs=2, learning_rate=0.25), square, nnc.ones(1))
        optim.minimise_fun(Params(epochs=2, verbosity=False), square, nnc.ones(1))
    said = [r.getMessage() for r in caplog.records]
    assert said[0].startswith("--- training config")
    assert "E: 2.0/2 | B: 2/2 | L: 0.250000[▼]" in said[2]
    assert said[3].startswith("--- training summary: 2 batches in")
    assert len(said) == 4


@COMPILED
def test_a_loss_that_is_no_number(compiled: bool) -> None:
    def f(v: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.log(v))

    params = Params(epochs=5, learning_rate=1.0, compiled=compiled)
    with np.errstate(invalid="ignore"):
        with pytest.raises(NonfiniteError, match=r"the loss of batch 2 is nan(.|\n)*smaller learning rate"):
            optim.minimise_fun(params, f, nnc.asarray([0.5]))
        progress, _ = optim.minimise_fun(replace(params, nonfinite="propagate"), f, nnc.asarray([0.5]))
        assert (progress.batch, np.isnan(progress.losses[1])) == (5, True)
        with pytest.warns(optim.NonfiniteWarning, match="update 1 got gradients that are not finite"):
            progress, x = optim.minimise_fun(replace(params, nonfinite="skip"), f, nnc.asarray([0.0]))
    assert (progress.batch, x.tolist()) == (5, [0.0])


@pytest.mark.parametrize("x, y", [(np.ones((3, 2)), np.ones((2, 1))), (np.ones((0, 2)), np.ones((0, 1))),
                                  (np.float64(1), np.ones(1))])
def test_rows_that_do_not_fit_are_refused(x: Any, y: Any) -> None:
    with pytest.raises(DataError, match="expected as many rows in each"):
        optim.minimise_weight(QUIET, lambda w, x: x @ w, nnc.zeros((2, 1)), x, y)


def test_a_network_is_learnt_with_adam_and_early_stopping() -> None:
    x, y = points(count=32)
    model = nn.Linear(3, 1, generator=nnc.Generator(0))
    params = replace(QUIET, epochs=200, learning_rate=learning_rate.Adam(0.1), stopping=stopping.Early(60, 20))
    progress = optim.minimise_network(params, model, x, y, validation=points(1))
    assert progress.validation_losses[-1] < 1e-3
    np.testing.assert_allclose(model.weight.read().numpy(), [[1.0], [-2.0], [0.5]], atol=0.02)


def test_functional_call_uses_other_weights() -> None:
    model = nn.Linear(2, 1)
    x = nnc.ones((1, 2))
    given = {"weight": nnc.full((2, 1), 2.0), "bias": nnc.ones(1)}
    assert model.functional_call(given, x).tolist() == [[5.0]]
    before = model(x).tolist()
    assert nnc.grad(lambda w: model.functional_call({"weight": w}, x).sum())(given["weight"]).tolist() == [[1], [1]]
    assert model(x).tolist() == before
    with pytest.raises(OperandError, match="Linear has no parameter 'scale'"):
        model.functional_call({"scale": x}, x)
