"""Eager updates that are compiled: the same bits as operator by operator, and nobody can tell but by the clock."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.optim import clipping, schedules
from nnc_core.optim.minimisers import compiled_updates
from tests.devices import devices

Make = Callable[[Any], optim.Minimiser]
EXACT: dict[str, Make] = {
    "sgd": lambda ps: optim.SGD(ps, 0.1), "momentum": lambda ps: optim.SGD(ps, 0.1, momentum=0.9, weight_decay=0.01),
    "adam": lambda ps: optim.Adam(ps, 0.01), "amsgrad": lambda ps: optim.Adam(ps, 0.01, amsgrad=True),
    "adamw": lambda ps: optim.AdamW(ps, 0.01, weight_decay=0.1), "adamax": lambda ps: optim.Adamax(ps, 0.01),
    "radam": lambda ps: optim.RAdam(ps, 0.01), "adagrad": lambda ps: optim.Adagrad(ps, 0.01),
    "lion": lambda ps: optim.Lion(ps, 0.01), "rprop": lambda ps: optim.Rprop(ps, 0.01),
    "groups": lambda ps: optim.Adam([optim.Group({"a": ps["a"]}, learning_rate=0.5), optim.Group({"b": ps["b"]})]),
}  # fmt: skip
AS_WRITTEN: dict[str, Make] = {
    "powers": lambda ps: optim.NAdam(ps, 0.01), "sums": lambda ps: optim.LAMB(ps, 0.01),
    "a schedule": lambda ps: optim.Adam(ps, schedules.Cosine(0.1, 20)),
    "clipping": lambda ps: optim.Adam(ps, 0.01, clipping=clipping.GlobalNorm(1.0)),
    "a rule of the user's": lambda ps: Own(ps, 0.01), "a test of parameters": lambda ps: optim.Adam(
        ps, 0.01, weight_decay=0.1, decays=lambda name, cell: name == "a"),
}  # fmt: skip
DTYPES = ("float32", "float64", "float16", ml_dtypes.bfloat16)


class Own(optim.SGD):
    """A rule that counts its calls, as Python may."""

    calls = 0

    def rule(self, update: Any) -> nnc.Tensor:
        Own.calls += 1
        return super().rule(update)


def parameters(dtype: Any = "float32", device: str | None = None) -> dict[str, nn.Parameter]:
    rng = np.random.default_rng(0)
    hosts = {"a": rng.standard_normal((5, 7)).astype(dtype), "b": rng.standard_normal(3).astype(dtype)}
    return {name: nn.Parameter(nnc.asarray(x, device=device)) for name, x in hosts.items()}


def gradients(k: int, dtype: Any = "float32", device: str | None = None) -> dict[str, nnc.Tensor]:
    rng = np.random.default_rng(k + 1)
    hosts = {"a": rng.standard_normal((5, 7)).astype(dtype), "b": rng.standard_normal(3).astype(dtype)}
    return {name: nnc.asarray(x, device=device) for name, x in hosts.items()}


def is_compiled(minimiser: optim.Minimiser) -> bool:
    known = compiled_updates._UPDATES.get(minimiser)
    return known is not None and known._found is not None


def bits(minimiser: optim.Minimiser) -> dict[str, bytes]:
    held = {**minimiser.state_dict(), **{name: p.lend() for name, p in minimiser.parameters.items()}}
    return {name: (x if isinstance(x, np.ndarray) else nnc.Tensor(x).numpy()).tobytes() for name, x in held.items()}


def trained(make: Make, steps: int, dtype: Any = "float32", device: str | None = None) -> optim.Minimiser:
    minimiser = make(parameters(dtype, device))
    for k in range(steps):
        minimiser.update(gradients(k, dtype, device))
    return minimiser


@pytest.fixture
def stepped(monkeypatch: pytest.MonkeyPatch) -> Callable[..., optim.Minimiser]:
    """Trains operator by operator."""

    def train(*args: Any) -> optim.Minimiser:
        with monkeypatch.context() as patched:
            patched.setattr("nnc_core.optim.minimisers.minimiser.ran_compiled", lambda *given: False)
            return trained(*args)

    return train


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", EXACT)
def test_updates_of_exact_operators_are_compiled_and_change_no_bit(name: str, dtype: Any, stepped: Any) -> None:
    minimiser = trained(EXACT[name], 7, dtype)
    assert is_compiled(minimiser)
    assert bits(minimiser) == bits(stepped(EXACT[name], 7, dtype))


@pytest.mark.parametrize("device", devices())
def test_other_devices(device: str, stepped: Any) -> None:
    assert bits(trained(EXACT["adam"], 5, "float32", device)) == bits(stepped(EXACT["adam"], 5, "float32", device))


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_updates_that_may_give_other_bits_run_operator_by_operator(name: str, stepped: Any) -> None:
    minimiser = trained(AS_WRITTEN[name], 6)
    assert not is_compiled(minimiser)
    assert bits(minimiser) == bits(stepped(AS_WRITTEN[name], 6))


def test_rules_of_users_run_in_python_each_time() -> None:
    Own.calls = 0
    trained(lambda ps: Own(ps, 0.1), 10)
    assert Own.calls == 20


def test_settings_may_change_at_any_time(stepped: Any) -> None:
    def with_changes(make: Callable[[Make, int], optim.Minimiser]) -> dict[str, bytes]:
        minimiser = make(EXACT["adam"], 5)
        for setting, value in (("learning_rate", 0.5), ("weight_decay", 0.1), ("beta1", 0.5), ("scale", 0.25)):
            setattr(minimiser, setting, value)
            for k in range(4):
                minimiser.update(gradients(k))
        return bits(minimiser)

    changed = with_changes(trained)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nnc_core.optim.minimisers.minimiser.ran_compiled", lambda *given: False)
        assert with_changes(trained) == changed


def test_a_rate_of_minus_zero_is_not_taken_for_zero() -> None:
    minimiser = optim.SGD({"a": nn.Parameter(nnc.asarray([-0.0]))}, 0.0)
    for rate in (0.0, -0.0):
        minimiser.learning_rate = rate
        for _ in range(6):
            minimiser.parameters["a"].write(nnc.asarray([-0.0]))
            minimiser.update({"a": nnc.asarray([1.0])})
        assert np.signbit(minimiser.parameters["a"].read().numpy()[0]) == (rate == 0 and not np.signbit(rate))


def test_rates_that_a_loop_lowers_are_compiled_for_seldom() -> None:
    minimiser = EXACT["adam"](parameters())
    found = []
    for k in range(40):
        minimiser.learning_rate = 0.1 / (1 + k // 4)
        minimiser.update(gradients(0))
        found.append(compiled_updates._UPDATES[minimiser]._found)
    assert len({id(x) for x in found if x is not None}) == 1


def test_what_was_read_before_stays_as_it_was() -> None:
    minimiser = EXACT["adam"](parameters())
    a = minimiser.parameters["a"]
    for k in range(6):
        held, before = a.read(), a.read().numpy().copy()
        minimiser.update(gradients(k))
        assert held.numpy().tobytes() == before.tobytes() and a.read().numpy().tobytes() != before.tobytes()


def test_a_tape_that_is_kept_has_the_weights_of_then() -> None:
    a = nn.Parameter(nnc.asarray([1.0, 2.0]), requires_grad=True)
    minimiser = optim.SGD({"a": a}, 0.1)
    for _ in range(5):
        before = a.read().numpy().copy()
        loss = (a.read() * a.read()).sum()
        minimiser.update({"a": nnc.ones(2)})
        a.grad = None
        (found,) = nnc.gradients(loss, [nnc.Tensor(loss._value.inputs[0].inputs[0])])
        assert found is not None and found.numpy().tolist() == (2 * before).tolist()


def test_freezing_and_writing_between_updates(stepped: Any) -> None:
    minimiser, plain = trained(EXACT["adam"], 5), stepped(EXACT["adam"], 5)
    for one in (minimiser, plain):
        one.parameters["a"].frozen = True  # type: ignore[attr-defined]
        one.parameters["b"].write(nnc.ones(3))
        given = {"b": gradients(0)["b"]}
        one.update(given)
    assert bits(minimiser) == bits(plain)


def test_copies_go_on_from_there() -> None:
    minimiser = trained(EXACT["adam"], 5)
    for twin in (copy.deepcopy(minimiser), pickle.loads(pickle.dumps(minimiser))):
        assert bits(twin) == bits(minimiser)
        twin.update(gradients(9))
        assert bits(twin) != bits(minimiser)


def test_a_minimiser_is_not_kept_alive() -> None:
    minimiser = trained(EXACT["adam"], 6)
    assert is_compiled(minimiser)
    gone = weakref.ref(minimiser)
    del minimiser
    assert gone() is None


def test_watched_updates_run_operator_by_operator() -> None:
    with nnc.config.using(check_nan="nan"):
        assert not is_compiled(trained(EXACT["adam"], 6))


def test_deferred_updates_and_traces_are_as_before(stepped: Any) -> None:
    wanted = bits(stepped(EXACT["adam"], 6))
    with nnc.deferred():
        assert bits(trained(EXACT["adam"], 6)) == wanted
    minimiser = EXACT["adam"](parameters())
    step = nnc.jit(minimiser.update)
    for k in range(6):
        step(gradients(k))
    assert bits(minimiser) == wanted and minimiser not in compiled_updates._UPDATES
