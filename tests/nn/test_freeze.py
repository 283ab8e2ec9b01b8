"""Frozen parameters, groups by name, and functions on all parameters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import DTypeError, GradientError, NotSupportedError, OperandError, ShapeError, StateError
from tests.support import drawn


def net() -> nn.Sequential:
    g = nnc.Generator(2)
    return nn.Sequential(nn.Linear(3, 4, generator=g), nn.Tanh(), nn.Linear(4, 2, generator=g))


X, Y = drawn(5, 3), drawn(5, 2, seed=1)
ALL = ["0.weight", "0.bias", "2.weight", "2.bias"]


def loss_of(model: nn.Module) -> Any:
    return ((model(X) - Y) ** 2).mean()


def training(model: nn.Module, minimiser: optim.Minimiser, eager: bool) -> Any:
    return optim.make_step(nn.value_and_grad(model, lambda: loss_of(model)), minimiser, eager=eager)


def changed(model: nn.Module, before: dict[str, Any]) -> set[str]:
    return {name for name, a in model.state_dict().items() if not np.array_equal(a, before[name])}


# ---- what is frozen
def test_what_is_trained_and_what_is_not() -> None:
    model = net()
    assert model.freeze("0.*") is model
    assert list(model.named_parameters()) == ["2.weight", "2.bias"] == list(model.named_parameters(frozen=False))
    assert list(model.named_parameters(frozen=True)) == ["0.weight", "0.bias"]
    assert list(model.named_parameters(frozen=None)) == ALL == list(model.state_dict())
    assert model.parameters() == [model[2].weight, model[2].bias]
    assert model[0].weight.frozen and not model[2].weight.frozen
    assert not model[0].is_trainable and model.is_trainable
    assert not model.named_buffers()
    model.unfreeze("*.bias")
    assert list(model.named_parameters()) == ["0.bias", "2.weight", "2.bias"]
    model.freeze()
    assert not model.is_trainable and not model.parameters()
    model.unfreeze()
    assert list(model.named_parameters()) == ALL
    with pytest.raises(OperandError, match=r"no parameter's name matches 'encoder\.\*'(.|\n)*there are 0.weight"):
        model.freeze("2.*", "encoder.*")
    assert model.is_trainable and list(model.named_parameters()) == ALL, "nothing changes unless all patterns match"


def test_copies_and_states_keep_it() -> None:
    model = net().freeze("0.*")
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert list(twin.named_parameters(frozen=True)) == ["0.weight", "0.bias"]
        twin.unfreeze()
        assert model[0].weight.frozen
    other = net()
    other.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(other(X).numpy(), model(X).numpy())


def test_functional_calls_take_frozen_ones_too() -> None:
    model = net().freeze()
    zeros = {"2.weight": nnc.zeros((4, 2)), "2.bias": nnc.ones(2)}
    assert model.functional_call(zeros, X).tolist() == [[1.0, 1.0]] * 5


# ---- training
@pytest.mark.parametrize("eager", [True, False])
@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: optim.AdamW(p, 0.05, weight_decay=0.1),
    lambda p: optim.SGD(p, 0.1, clipping=optim.clipping.GlobalNorm(0.1)),
    lambda p: optim.Accumulated(optim.SGD(p, 0.1), 1), lambda p: optim.Adam(p, 0.05, nonfinite="error"),
], ids=["SGD", "AdamW", "clipped", "accumulated", "guarded"])
def test_freezing_and_thawing_between_steps_of_one_minimiser(eager: bool, make: Any) -> None:
    """What is frozen stays to the bit, weight decay and momentum included; compiled steps are traced again."""
    model = net()
    step = training(model, make(model.named_parameters()), eager)
    step()
    for patterns, moved in ((["0.*"], {"2.weight", "2.bias"}), (["*.weight"], {"0.bias", "2.bias"}), ([], set(ALL))):
        model.unfreeze()
        if patterns:
            model.freeze(*patterns)
        before = model.state_dict()
        step()
        step()
        assert changed(model, before) == moved


def test_eager_and_compiled_go_the_same_way() -> None:
    found = []
    for eager in (True, False):
        model = net()
        step = training(model, optim.Adam(model.named_parameters(), 0.1), eager)
        losses = [float(step())]
        model.freeze("0.*")
        losses += [float(step()), float(step())]
        model.unfreeze()
        found.append([*losses, float(step()), float(step())])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_a_frozen_network_is_trained_like_the_rest_alone() -> None:
    """Gradients of the rest are those of a network whose first part is a constant."""
    model, alone = net(), net()
    grads = nn.value_and_grad(alone, lambda: loss_of(alone))()[1]
    model.freeze("0.*")
    loss, found = nn.value_and_grad(model, lambda: loss_of(model))()
    assert set(found) == {"2.weight", "2.bias"}
    for name, g in found.items():
        np.testing.assert_allclose(g.numpy(), grads[name].numpy(), rtol=1e-5)
    _, asked = nn.value_and_grad(model, lambda: loss_of(model), parameters={"w": model[0].weight})()
    np.testing.assert_allclose(asked["w"].numpy(), grads["0.weight"].numpy(), rtol=1e-5)
    assert float(loss) > 0


def test_the_dynamic_graph() -> None:
    model = net()
    model.requires_grad_()
    model.freeze("0.*")
    loss_of(model).backward()
    assert model[0].weight.grad is None and not model[0].weight.requires_grad
    assert set(model.gradients()) == {"2.weight", "2.bias"}
    assert abs(model.gradients()["2.weight"].numpy()).max() > 0
    model.zero_grad()
    model.unfreeze()
    assert model[0].weight.requires_grad, "what requires gradients does so again"
    loss_of(model).backward()
    assert abs(model.gradients()["0.weight"].numpy()).max() > 0
    model.freeze()
    assert not loss_of(model)._value.tracked


def test_nothing_is_left_to_train() -> None:
    model = net().freeze()
    with pytest.raises(GradientError, match=r"no parameters to differentiate by(.|\n)*all are frozen: module.unfreeze"):
        nn.value_and_grad(model, lambda: loss_of(model))()


def test_a_descent_says_that_it_cannot_leave_parameters_out() -> None:
    model = net()
    step = training(model, optim.owl.Descent(model.named_parameters()), True)
    step()
    model.freeze("0.*")
    with pytest.raises(NotSupportedError, match=r"some are frozen(.|\n)*make a new one"):
        step()
    training(model, optim.owl.Descent(model.named_parameters()), True)()


def test_parts_of_a_combination() -> None:
    """One part frozen as a whole: its state stays, the others go on."""
    model = net()
    named = model.named_parameters()
    first = optim.Adam({n: p for n, p in named.items() if n.startswith("0")}, 0.1, nonfinite="skip")
    second = optim.SGD({n: p for n, p in named.items() if n.startswith("2")}, 0.1)
    step = training(model, optim.Combined(first, second), False)
    step()
    model.freeze("0.*")
    before = model.state_dict()
    step()
    assert changed(model, before) == {"2.weight", "2.bias"}
    assert (first.step.read().item(), second.step.read().item()) == (1, 2)


@pytest.mark.parametrize("eager", [True, False])
def test_gradients_that_were_added_up_before_freezing_are_forgotten_with_the_rest(eager: bool) -> None:
    model = net()
    minimiser = optim.Accumulated(optim.SGD(model.named_parameters(), 0.1), 2)
    step = training(model, minimiser, eager)
    step()
    model.freeze("0.*")
    step()
    assert not any(cell.read().numpy().any() for cell in minimiser.slots["sum"].values())


def test_a_minimiser_that_did_not_see_all_says_what_is_unknown() -> None:
    model = net().freeze("0.*")
    step = training(model, optim.SGD(model.named_parameters(), 0.1), True)
    step()
    model.unfreeze()
    with pytest.raises(StateError, match=r"unknown 0\.bias, 0.weight"):
        step()


# ---- groups
def test_groups_by_name() -> None:
    model = net()
    groups = optim.groups_by_name(model.named_parameters(), {"*.bias": {"weight_decay": 0.0},
                                                             "2.*": {"learning_rate": 0.0}})
    assert [list(g.parameters) for g in groups] == [["0.bias", "2.bias"], ["2.weight"], ["0.weight"]]
    assert [g.options for g in groups] == [{"weight_decay": 0.0}, {"learning_rate": 0.0}, {}]
    before = model.state_dict()
    training(model, optim.SGD(groups, 0.1, weight_decay=0.1), False)()
    assert changed(model, before) == {"0.weight", "0.bias", "2.bias"}
    assert len(optim.groups_by_name(model.named_parameters(), {"*": {}})) == 1
    with pytest.raises(OperandError, match=r"no parameter is left for the pattern '0\.bias'(.|\n)*first match counts"):
        optim.groups_by_name(model.named_parameters(), {"*.bias": {}, "2.*": {}, "0.bias": {}})


# ---- all parameters
def test_map_parameters() -> None:
    model, mean = net(), net()
    mean.freeze("0.bias")
    before, other = mean.state_dict(), {name: a + 1 for name, a in model.state_dict().items()}
    model.load_state_dict(other)
    nn.map_parameters(lambda m, p: m * 0.75 + p * 0.25, mean, model)
    for name, a in mean.state_dict().items():
        np.testing.assert_allclose(a, before[name] + 0.25, rtol=1e-6, atol=1e-6, err_msg=name)
    before = model.state_dict()
    nn.map_parameters(lambda p: p.clip(-0.1, 0.1), model, names=("*.weight",))
    assert changed(model, before) <= {"0.weight", "2.weight"} and abs(model.state_dict()["0.weight"]).max() <= 0.1


@pytest.mark.parametrize("call, error, words", [
    (lambda m: nn.map_parameters(lambda p, q: p, m, nn.Linear(2, 2)), StateError,
     "Linear and Sequential have not the same parameters: only one has 0.bias"),
    (lambda m: nn.map_parameters(lambda p: 3, m), OperandError, "gave a int for '0.weight'"),
    (lambda m: nn.map_parameters(lambda p: p * 0 if p.ndim == 2 else nnc.ones(7), m), ShapeError, "holds"),
    (lambda m: nn.map_parameters(lambda p: p.astype("float64") if p.shape == (2,) else p * 0, m), DTypeError, "holds"),
    (lambda m: nn.map_parameters(lambda p: p, m, names=("3.*",)), OperandError, "no parameter's name matches"),
])
def test_map_parameters_changes_all_or_none(call: Any, error: type[Exception], words: str) -> None:
    model = net()
    before = model.state_dict()
    with pytest.raises(error, match=words):
        call(model)
    assert changed(model, before) == set()


def test_nan_among_gradients(device: str) -> None:
    fine = {"a": nnc.ones(3), "b": nnc.asarray([np.inf, 0.0])}
    for run in (nn.has_nan, nnc.jit(nn.has_nan)):
        assert run(fine).item() is False
        assert run({**fine, "c": nnc.asarray([0.0, np.nan])}).item() is True
        assert run([nnc.asarray([np.nan])]).item() is True
    assert nn.has_nan({}).item() is False
