"""What CNNP's models are trained by (nnc.md 5.2 and 5.5), as it is said here.

The names in brackets are those of `ccv_cnnp_model_...`; docs/training.md has the table.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import NotSupportedError, OperandError, StateError
from nnc_core.optim import clipping
from nnc_core.optim.owl import Params, batch, loss
from tests.devices import devices

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (6, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]])).astype(np.float32)


def network(seed: int = 0) -> nn.Sequential:
    g = nnc.Generator(seed)
    return nn.Sequential(nn.Linear(3, 4, generator=g), nn.Tanh(), nn.Linear(4, 1, generator=g))


def error(prediction: nnc.Tensor, y: Any) -> nnc.Tensor:
    return nnc.mean((prediction - nnc.asarray(y)) ** 2)


def weights(model: nn.Module) -> dict[str, Any]:
    return model.state_dict()


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found.keys() == wanted.keys()
    for name, w in wanted.items():
        np.testing.assert_allclose(found[name], w, rtol=1e-5, atol=1e-6, err_msg=name)


# ---- in one go, and in three
@pytest.mark.parametrize("on", devices())
def test_fit_is_evaluate_backward_and_apply_gradients(on: str) -> None:
    """(fit) against (evaluate, backward, apply_gradients)."""
    with nnc.use_device(on):
        whole, parts = network(), network().requires_grad_()
        one, two = optim.Adam(whole.named_parameters(), 0.05), optim.Adam(parts.named_parameters(), 0.05)
        step = optim.make_step(nn.value_and_grad(whole, lambda x, y: error(whole(x), y)), one)
        for _ in range(4):
            value = step(nnc.asarray(X), nnc.asarray(Y))
            found = error(parts(nnc.asarray(X)), Y)  # evaluate
            found.backward()  # backward
            two.update(parts.gradients())  # apply_gradients
            parts.zero_grad()
            np.testing.assert_allclose(found.item(), value.item(), rtol=1e-5)
        same(weights(parts), weights(whole))


def test_backward_takes_the_gradients_of_the_outputs() -> None:
    """(backward) with ingrads: the loss need not be known here; and without, ones as NNC has it."""
    model = network().requires_grad_()
    prediction = model(nnc.asarray(X))
    given = 2 * (prediction.detach() - nnc.asarray(Y)) / 6
    prediction.backward(given)
    twin = network()
    wanted = nn.value_and_grad(twin, lambda: error(twin(nnc.asarray(X)), Y))()[1]
    for name, g in model.gradients().items():
        np.testing.assert_allclose(g.numpy(), wanted[name].numpy(), rtol=1e-5, atol=1e-7)
    model.zero_grad()
    model(nnc.asarray(X)).sum().backward()
    twin.requires_grad_()
    twin(nnc.asarray(X)).backward(nnc.ones((6, 1)))
    same({k: g.numpy() for k, g in model.gradients().items()}, {k: g.numpy() for k, g in twin.gradients().items()})


def test_which_gradients_are_wanted() -> None:
    """(evaluate) with requires_grad off, with gradients of trainables, and of trainables and inputs (outgrads)."""
    model, x = network(), nnc.asarray(X)
    assert not model(x).requires_grad
    model.requires_grad_()
    error(model(x), Y).backward()
    assert x.grad is None
    variable = nnc.variable(X)
    model.zero_grad()
    error(model(variable), Y).backward()
    numeric = nnc.grad(lambda t: error(network()(t), Y))(nnc.asarray(X))
    assert variable.grad is not None
    np.testing.assert_allclose(variable.grad.numpy(), numeric.numpy(), rtol=1e-5, atol=1e-7)
    with nnc.no_grad():
        assert not model(variable).requires_grad


def test_only_the_inputs_have_gradients() -> None:
    """(backward) of a model that is not trained: gradients go through it."""
    frozen, x = network(), nnc.variable(X)
    error(frozen(x), Y).backward()
    assert x.grad is not None and np.abs(x.grad.numpy()).sum() > 0
    assert all(p.grad is None for p in frozen.parameters())


def test_an_evaluation_as_a_test() -> None:
    """(evaluate) with is_test: no dropout, whatever the model is set to."""
    model = nn.Sequential(network(), nn.Dropout(0.5))
    with nnc.evaluating():
        found = model(nnc.asarray(X))
    np.testing.assert_array_equal(found.numpy(), network()(nnc.asarray(X)).numpy())
    assert model.training


# ---- gradients added up
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_add_up_until_they_are_applied(compiled: bool) -> None:
    """(backward) several times before (apply_gradients): the sum; and the mean, by Accumulated, in one graph."""
    model, whole = network().requires_grad_(), network()
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    for half in (slice(0, 3), slice(3, 6)):
        nnc.mean((model(nnc.asarray(X[half])) - nnc.asarray(Y[half])) ** 2 / 2).backward()
    minimiser.update(model.gradients())
    step = optim.make_step(nn.value_and_grad(whole, lambda x, y: error(whole(x), y)),
                           optim.SGD(whole.named_parameters(), 0.1), eager=not compiled)
    step(nnc.asarray(X), nnc.asarray(Y))
    same(weights(model), weights(whole))
    halves = network()
    collected = optim.Accumulated(optim.SGD(halves.named_parameters(), 0.1), 2)
    step = optim.make_step(nn.value_and_grad(halves, lambda x, y: error(halves(x), y)), collected, eager=not compiled)
    for half in (slice(0, 3), slice(3, 6)):
        step(nnc.asarray(X[half]), nnc.asarray(Y[half]))
    same(weights(halves), weights(whole))


# ---- minimisers
def test_each_part_has_its_minimiser() -> None:
    """(set_minimizer) for some parameters: another kind for them, by Combined; the same kind otherwise, by groups."""
    model, twin = network(), network()
    names = model.named_parameters()
    first = {name: p for name, p in names.items() if name.startswith("0.")}
    rest = {name: p for name, p in names.items() if name not in first}
    both = optim.Combined(optim.SGD(first, 0.1, momentum=0.9), optim.AdamW(rest, 0.01))
    step = optim.make_step(nn.value_and_grad(model, lambda x, y: error(model(x), y)), both)
    own = [optim.SGD({n: twin.named_parameters()[n] for n in first}, 0.1, momentum=0.9),
           optim.AdamW({n: twin.named_parameters()[n] for n in rest}, 0.01)]
    for _ in range(3):
        step(nnc.asarray(X), nnc.asarray(Y))
        _, gradients = nn.value_and_grad(twin, lambda: error(twin(nnc.asarray(X)), Y))()
        for m in own:
            m.update({name: gradients[name] for name in m.parameters})
    same(weights(model), weights(twin))
    assert both.step.read().item() == 3
    assert {"0.step", "0.velocity.0.weight", "1.first.2.weight", "1.correction.first"} <= both.cells().keys()
    assert "SGD(2 parameters" in repr(both) and "AdamW(2 parameters" in repr(both)


def test_combined_minimisers_are_saved_and_trained_by_params() -> None:
    def make(ps: Any) -> optim.Combined:
        names = list(ps)
        return optim.Combined(optim.SGD({n: ps[n] for n in names[:2]}, 0.1),
                              optim.Lion({n: ps[n] for n in names[2:]}, 0.01))

    params = Params(epochs=4, batch=batch.Full(), loss=loss.Quadratic(), make_minimiser=make, verbosity=False)
    model = network()
    progress = optim.train(model, params, X, Y)
    assert progress.losses == sorted(progress.losses, reverse=True)
    assert progress.minimiser is not None
    again = make(network().named_parameters())
    again.load_state_dict(progress.minimiser.state_dict())
    assert again.step.read().item() == 4
    again.take_numbers({**progress.minimiser.numbers(), "1.learning_rate": 0.5})
    assert [m.learning_rate for m in again.minimisers] == [0.1, 0.5]


def test_minimisers_that_cannot_be_combined() -> None:
    ps = network().named_parameters()
    with pytest.raises(OperandError, match="belongs to two of the minimisers"):
        optim.Combined(optim.SGD(ps, 0.1), optim.SGD(ps, 0.1))
    with pytest.raises(NotSupportedError, match="evaluate the function"):
        optim.Combined(optim.LBFGS(ps))
    with pytest.raises(StateError, match=r"missing 0\.bias, 2\.bias"):
        optim.Combined(optim.SGD(ps, 0.1)).update({"0.weight": nnc.zeros((3, 4))})


def test_another_rate_from_here_on() -> None:
    """(set_minimizer) in the middle of training: a changed setting keeps the state, a new minimiser begins anew."""
    model = network()
    minimiser = optim.SGD(model.named_parameters(), 0.1, momentum=0.5)
    step = optim.make_step(nn.value_and_grad(model, lambda x, y: error(model(x), y)), minimiser)
    step(nnc.asarray(X), nnc.asarray(Y))
    velocity = minimiser.state_dict()["velocity.0.weight"]
    minimiser.learning_rate = 0.0
    before = weights(model)
    step(nnc.asarray(X), nnc.asarray(Y))
    same(weights(model), before)
    assert not np.array_equal(minimiser.state_dict()["velocity.0.weight"], velocity)
    assert optim.SGD(model.named_parameters(), 0.1, momentum=0.5).state_dict()["step"] == 0


def test_a_part_is_kept_as_it_is() -> None:
    """Parameters that no minimiser has are not trained, and cost no gradient."""
    model = network()
    head = {name: p for name, p in model.named_parameters().items() if name.startswith("2.")}
    before = weights(model)
    gradients = nn.value_and_grad(model, lambda x, y: error(model(x), y), parameters=head)
    step = optim.make_step(gradients, optim.SGD(head, 0.1))
    step(nnc.asarray(X), nnc.asarray(Y))
    after = weights(model)
    np.testing.assert_array_equal(after["0.weight"], before["0.weight"])
    assert not np.array_equal(after["2.weight"], before["2.weight"])


# ---- gradients and parameters by name
def test_functions_of_gradients_and_parameters() -> None:
    """(parameters_clip_grad_norm, parameter_gradients_isnan, parameter_gradients_map, parameters_map,
    parameters_zip_map)"""
    model = network().requires_grad_()
    error(model(nnc.asarray(X)) * 100, Y).backward()
    gradients = model.gradients()
    clipped = clipping.GlobalNorm(1.0)(gradients)
    assert clipping.global_norm(clipped).item() == pytest.approx(1.0, rel=1e-5)
    assert not any(nnc.any(nnc.isnan(g)).item() for g in gradients.values())
    mapped = {name: nnc.clip(g, -0.1, 0.1) for name, g in gradients.items()}
    optim.SGD(model.named_parameters(), 0.1).update(mapped)
    for p in model.parameters():
        p.write(p.read() * 0.5)
    mean, other = optim.Average(model.named_parameters(), 0.9), weights(model)
    model.parameters()[0].write(nnc.zeros((3, 4)))
    mean.update()
    with mean.applied():
        np.testing.assert_allclose(weights(model)["0.weight"], 0.9 * other["0.weight"], rtol=1e-6)


def test_parameters_of_another_model() -> None:
    """(set_parameters, share_parameters, copy, parameter_copy, set_parameter, read, write)"""
    model, other = network(0), network(1)
    other.load_state_dict(model.state_dict())
    same(weights(other), weights(model))
    twin = copy.deepcopy(model)
    twin.parameters()[0].write(nnc.ones((3, 4)))
    assert not np.array_equal(weights(twin)["0.weight"], weights(model)["0.weight"])
    shared = nn.Sequential(model[0], nn.Tanh(), nn.Linear(4, 1))
    assert shared.parameters()[0] is model.parameters()[0]


def test_another_size_of_batch_needs_no_new_model() -> None:
    """(absorb, dry_run, memory_size): shapes are compiled for as they come, and before the first run if wanted."""
    model = network()
    params = Params(loss=loss.Quadratic(), verbosity=False)
    training = optim.compile_training(model, params, nnc.TensorSpec((6, 3), nnc.float32),
                                      nnc.TensorSpec((6, 1), nnc.float32))
    before = weights(model)
    assert training.memory_plan.peak > 0
    same(weights(model), before)  # compiled, not run
    training.step(X, Y)
    training.step(X[:4], Y[:4])
    assert training.minimiser.step.read().item() == 2
