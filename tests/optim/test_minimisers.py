"""Minimisers against updates written in NumPy, in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, DeviceError, DTypeError, OperandError, ShapeError, StateError
from nnc_core.values.cell import LONGEST_PAST, Cell
from tests.devices import devices
from tests.nn.network import MODES
from tests.optim.references import CASES

STEPS = 6


def apply(minimiser: optim.Minimiser, mode: str, name: str, gradients: Any) -> None:
    def update(g: nnc.Tensor) -> None:
        minimiser.update({name: g})

    if mode == "compiled":
        update = nnc.jit(update)
    for g in gradients:
        given = nnc.asarray(g)
        if mode == "deferred":
            with nnc.deferred():
                update(given)
        else:
            update(given)
    if mode == "compiled":
        assert update.traces == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_against_numpy(case: str, mode: str, rng: np.random.Generator) -> None:
    make, expected = CASES[case]
    first, gradients = rng.normal(size=(2, 3)), rng.normal(size=(STEPS, 2, 3))
    p = nn.Parameter(nnc.asarray(first))
    minimiser = make({"p": p})
    apply(minimiser, mode, "p", gradients)
    np.testing.assert_allclose(p.read().numpy(), expected(first, gradients), rtol=1e-12)
    assert minimiser.state_dict()["step"] == STEPS


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-10)])
@pytest.mark.parametrize("on", devices())
@pytest.mark.parametrize("case", CASES)
def test_eager_and_compiled_agree_on_every_device(case: str, on: str, dtype: str, rtol: float,
                                                  rng: np.random.Generator) -> None:
    make, expected = CASES[case]
    first, gradients = rng.normal(size=(2, 3)).astype(dtype), rng.normal(size=(STEPS, 2, 3)).astype(dtype)
    with nnc.use_device(on), nnc.config.using(deterministic=True):
        found = []
        for mode in ("eager", "compiled"):
            p = nn.Parameter(nnc.asarray(first))
            apply(make({"p": p}), mode, "p", gradients)
            found.append(p.read().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=rtol)
    wanted = expected(first.astype(np.float64), gradients.astype(np.float64))
    np.testing.assert_allclose(found[0], wanted, rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("case", CASES)
def test_all_modes_give_the_same_bits(case: str, rng: np.random.Generator) -> None:
    first, gradients = rng.normal(size=7).astype(np.float32), rng.normal(size=(STEPS, 7)).astype(np.float32)
    found = []
    with nnc.config.using(deterministic=True):
        for mode in MODES:
            p = nn.Parameter(nnc.asarray(first))
            minimiser = CASES[case][0]({"p": p})
            apply(minimiser, mode, "p", gradients)
            state = {**minimiser.state_dict(), "p": p.read().numpy()}
            found.append({name: a.tobytes() for name, a in state.items()})
    assert found[0] == found[1] == found[2]


def test_adam_loses_no_digits_in_float32() -> None:
    """With a constant gradient every step of Adam is the learning rate, which 1 - 0.999**t in float32 would spoil."""
    p = nn.Parameter(nnc.zeros(1))
    minimiser = optim.Adam([p], 1.0, epsilon=0.0)
    for count in range(1, 6):
        minimiser.update({"0": nnc.asarray([0.5])})
        np.testing.assert_allclose(p.read().numpy(), [-count], rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("case", ["adagrad", "adam", "amsgrad", "adamax", "nadam", "radam", "rmsprop", "adadelta",
                                  "rprop", "lars-nesterov", "adafactor"])
def test_a_gradient_of_zero_moves_nothing(case: str, dtype: str) -> None:
    p = nn.Parameter(nnc.ones(3).astype(dtype))
    minimiser = CASES[case][0]([p])
    minimiser.update({"0": nnc.zeros_like(p.read())})
    np.testing.assert_array_equal(p.read().astype("float32").numpy(), [1, 1, 1])
    minimiser.update({"0": nnc.ones_like(p.read())})
    assert (p.read().astype("float32").numpy() < 1).all()


@pytest.mark.parametrize("compiled", [False, True])
def test_a_schedule_is_evaluated_at_each_step(compiled: bool) -> None:
    p = nn.Parameter(nnc.zeros(1, dtype=nnc.float64))
    minimiser = optim.SGD([p], lambda step: 1 / (step + 1))
    update = nnc.jit(lambda g: minimiser.update({"0": g})) if compiled else lambda g: minimiser.update({"0": g})
    seen = []
    for _ in range(4):
        update(nnc.ones(1, dtype=nnc.float64))
        seen.append(p.read().item())
    np.testing.assert_allclose(np.diff([0.0, *seen]), [-1, -1 / 2, -1 / 3, -1 / 4], rtol=1e-6)


def test_a_changed_setting_reaches_compiled_code() -> None:
    p = nn.Parameter(nnc.zeros(1))
    minimiser = optim.SGD([p], 1.0)
    update = nnc.jit(lambda g: minimiser.update({"0": g}))
    update(nnc.ones(1))
    minimiser.learning_rate = 0.25
    update(nnc.ones(1))
    update(nnc.ones(1))
    assert p.read().item() == -1.5
    assert update.traces == 2


def test_one_fused_command_updates_an_adagrad_parameter() -> None:
    """On a device that compiles loop nests."""
    with nnc.use_device("strict:0"):
        p = Cell(nnc.zeros(4), "p")
        minimiser = optim.Adagrad({"p": p}, 0.1)
        update = nnc.jit(lambda g: minimiser.update({"p": g}))
        text = update.lower(nnc.zeros(4)).explain()
    assert "fused(multiply add multiply sqrt add divide subtract)" in text
    assert text.count("sqrt") == 1


def test_deferred_training_does_not_pile_up_its_past() -> None:
    """Neither what is looked at (the parameter) nor what is not (the step count)."""
    p = nn.Parameter(nnc.zeros(2))
    minimiser = optim.SGD([p], 0.1)
    with nnc.deferred():
        for _ in range(2 * LONGEST_PAST):
            before = p.read()
            minimiser.update({"0": nnc.ones(2)})
            before.realize()
    assert history(p) < 10
    assert history(minimiser.step) < 2 * LONGEST_PAST
    assert minimiser.step.read().item() == 2 * LONGEST_PAST


def history(cell: Cell) -> int:
    """How many steps back from what a cell holds."""
    value, length = cell._value, 0
    while value.inputs:
        value, length = value.inputs[0], length + 1
    return length


@pytest.mark.parametrize("gradients, error, words", [
    ({}, StateError, "SGD: missing p"),
    ({"p": np.ones(3), "q": np.ones(3)}, StateError, "unknown q"),
    ({"p": np.ones(1)}, ShapeError, r"the gradient of 'p' is float64\[1\]"),
    ({"p": np.ones(3, np.float32)}, DTypeError, r"float32\[3\](.|\n)*cast"),
])
def test_gradients_that_do_not_fit_change_nothing(gradients: Any, error: type[Exception], words: str) -> None:
    p = nn.Parameter(nnc.zeros(3, dtype=nnc.float64))
    minimiser = optim.SGD({"p": p}, 1.0)
    with pytest.raises(error, match=words):
        minimiser.update({name: nnc.asarray(g) for name, g in gradients.items()})
    assert minimiser.state_dict()["step"] == 0
    minimiser.update({"p": nnc.ones(3, dtype=nnc.float64)})
    np.testing.assert_array_equal(p.read().numpy(), [-1, -1, -1])


@pytest.mark.parametrize("make, error, words", [
    (lambda p: optim.SGD([p], -1.0), AttributeValueError, "SGD: learning_rate is -1.0"),
    (lambda p: optim.SGD([p], float("nan")), AttributeValueError, "learning_rate is nan"),
    (lambda p: optim.SGD([p], p), AttributeValueError, "learning_rate"),
    (lambda p: optim.SGD([p], 0.1, nesterov=True), AttributeValueError, "nesterov needs a momentum"),
    (lambda p: optim.Adam([p], beta1=1.0), AttributeValueError, "beta1 is 1.0"),
    (lambda p: optim.SGD([], 0.1), OperandError, "no parameters"),
    (lambda p: optim.SGD([p.read()], 0.1), OperandError, "parameter '0' is Tensor"),
    (lambda p: optim.SGD(5, 0.1), OperandError, "(?s)parameters is int, expected a mapping.*test_minimisers.py"),
    (lambda p: optim.SGD("ab", 0.1), OperandError, "parameter '0' is str"),
    (lambda p: optim.Adam(None), OperandError, "parameters is NoneType"),
    (lambda p: optim.Adam([p], "fast"), AttributeValueError, "learning_rate is 'fast'"),
    (lambda p: optim.Group(1.5), OperandError, "parameters is float"),
    (lambda p: optim.Accumulated(5, 2), OperandError, "Accumulated: minimiser is 5 \\(int\\), expected a Minimiser"),
    (lambda p: optim.StateGraph(5, {}), OperandError, "StateGraph: graph is 5 \\(int\\), expected a SymbolicGraph"),
    (lambda p: optim.train(5, None, 1, 2), OperandError, "(?s)train: network is 5.*test_minimisers.py"),
    (lambda p: optim.groups_by_name(5, {}), OperandError, "groups_by_name: "),
])
def test_wrong_settings_are_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(nn.Parameter(nnc.zeros(1)))


def test_state_round_trip_and_mismatch() -> None:
    def made() -> tuple[Any, optim.Minimiser]:
        p = nn.Parameter(nnc.ones(2))
        return p, optim.Adam({"w": p}, 0.1)

    p, minimiser = made()
    for _ in range(2):
        minimiser.update({"w": nnc.asarray([1.0, 2.0])})
    q, other = made()
    q.write(p.read())
    other.load_state_dict(minimiser.state_dict())
    for one in (minimiser, other):
        one.update({"w": nnc.asarray([3.0, -1.0])})
    np.testing.assert_array_equal(p.read().numpy(), q.read().numpy())
    with pytest.raises(StateError, match=r"missing correction\.first, correction\.second, first\.w"):
        other.load_state_dict(optim.SGD({"w": p}, 0.1).state_dict())


def test_state_moves_with_its_parameters(device: str) -> None:
    model = nn.Linear(2, 1)
    minimiser = optim.Adam(model.named_parameters(), 0.1)
    model.to("strict-nofloat64:0")
    minimiser.to("strict-nofloat64:0")
    with nnc.use_device("strict-nofloat64:0"):
        minimiser.update({name: nnc.ones_like(p.read()) for name, p in model.named_parameters().items()})
    assert {c.device.id for c in minimiser.cells().values()} == {"strict-nofloat64:0"}


@pytest.mark.parametrize("mode", MODES)
def test_parameters_that_moved_without_their_minimiser(mode: str) -> None:
    other = "strict-nofloat64:0"
    model = nn.Linear(2, 1).to(other)
    minimiser = optim.Adam(model.named_parameters(), 0.1).to("strict:0")
    given = nnc.ones((2, 1), device=other), nnc.ones((1,), device=other)
    message = f"parameter 'weight' is on {other}, 'step' of Adam on strict:0.*\n.*\n?.*minimiser.to\\('{other}'\\)"
    run = nnc.jit if mode == "compiled" else lambda f: f
    with nnc.use_device(other), pytest.raises(DeviceError, match=message), nnc.deferred(mode == "deferred"):
        run(lambda w, b: minimiser.update({"weight": w, "bias": b}))(*given)


def test_groups_that_are_dicts() -> None:
    with pytest.raises(OperandError, match=r"parameter '0' is dict.*\n?.*optim\.Group\(cells"):
        optim.SGD([{"params": nn.Linear(2, 1).parameters(), "lr": 0.1}], 0.2)
