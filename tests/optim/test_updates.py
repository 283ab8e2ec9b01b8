"""What minimisers do around their rules: groups, masks, clipping, accumulation, means of weights, bad numbers."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    OperandError,
    StateError,
    UnknownAttributeError,
)
from nnc_core.io import load_training_state, save_training_state
from nnc_core.optim.clipping import global_norm
from tests.devices import devices
from tests.optim import references

COMPILED = pytest.mark.parametrize("compiled", [False, True])
A, B = np.array([1.0, -2.0]), np.array([[3.0, 0.5], [-1.0, 2.0]])
GRADIENTS = [{"a": A * k - 1, "b": B / k} for k in (1.0, 2.0, 3.0, 4.0)]


def parameters() -> dict[str, nn.Parameter]:
    return {"a": nn.Parameter(nnc.asarray(A)), "b": nn.Parameter(nnc.asarray(B))}


def train(minimiser: optim.Minimiser, compiled: bool, gradients: Any = GRADIENTS) -> dict[str, Any]:
    run = nnc.jit(minimiser.update) if compiled else minimiser.update
    for g in gradients:
        run({name: nnc.asarray(x) for name, x in g.items()})
    if compiled:
        assert run.traces == 1  # type: ignore[union-attr]
    return {name: p.read().numpy() for name, p in minimiser.parameters.items()}


def of(name: str) -> np.ndarray[Any, Any]:
    return np.stack([g[name] for g in GRADIENTS])


# ---- groups
@COMPILED
def test_groups_have_settings_of_their_own(compiled: bool) -> None:
    ps = parameters()
    groups = [optim.Group({"a": ps["a"]}, learning_rate=0.5, momentum=0.0),
              optim.Group({"b": ps["b"]}, learning_rate=optim.schedules.Step(0.2, 2, 0.5))]
    minimiser = optim.SGD(groups, 0.1, 0.9)
    found = train(minimiser, compiled)
    np.testing.assert_allclose(found["a"], references.sgd(A, of("a"), 0.5))
    np.testing.assert_allclose(found["b"], references.sgd(B, of("b"), lambda t: 0.2 * 0.5 ** (t // 2), 0.9))
    assert set(minimiser.cells()) == {"step", "velocity.b"}


@COMPILED
def test_betas_of_groups_have_corrections_of_their_own(compiled: bool) -> None:
    ps = parameters()
    minimiser = optim.Adam([optim.Group([ps["a"]]), optim.Group([ps["b"]], beta1=0.5, beta2=0.6)], 0.1)
    found = train(minimiser, compiled, [{"0": g["a"], "1": g["b"]} for g in GRADIENTS])
    np.testing.assert_allclose(found["0"], references.adam(A, of("a"), 0.1))
    np.testing.assert_allclose(found["1"], references.adam(B, of("b"), 0.1, 0.5, 0.6))


def test_a_changed_setting_of_a_group_reaches_compiled_code() -> None:
    p = nn.Parameter(nnc.zeros(1))
    minimiser = optim.SGD([optim.Group([p], learning_rate=1.0)], 5.0)
    update = nnc.jit(lambda g: minimiser.update({"0": g}))
    update(nnc.ones(1))
    minimiser.groups[0]["learning_rate"] = 0.25
    update(nnc.ones(1))
    assert p.read().item() == -1.25
    with pytest.raises(AttributeValueError, match="SGD: learning_rate is -1"):
        minimiser.groups[0]["learning_rate"] = -1


def test_settings_of_groups_are_saved(tmp_path: Any) -> None:
    def made() -> tuple[nn.Module, optim.Minimiser]:
        model = nn.Linear(2, 1)
        weight, bias = model.named_parameters().values()
        return model, optim.SGD([optim.Group([weight], learning_rate=0.5), optim.Group([bias])], 0.1, 0.9)

    (model, minimiser), (other, second) = made(), made()
    minimiser.groups[0]["learning_rate"] = 0.75
    minimiser.momentum = 0.5
    save_training_state(tmp_path / "run", model, minimiser)
    load_training_state(tmp_path / "run", other, second, exact=False)
    assert (second.groups[0]["learning_rate"], second.momentum) == (0.75, 0.5)


def test_copies_of_a_minimiser_are_independent() -> None:
    minimiser = optim.Adam([optim.Group(parameters(), beta1=0.5)], optim.schedules.Cosine(0.1, 9))
    other = copy.deepcopy(minimiser)
    train(minimiser, False)
    assert (int(other.step.read()), int(minimiser.step.read())) == (0, 4)
    for name, x in train(other, False).items():
        np.testing.assert_array_equal(x, minimiser.parameters[name].read().numpy())


@COMPILED
@pytest.mark.parametrize("kind", [optim.SGD, optim.AdamW])
def test_weight_decay_may_leave_parameters_out(kind: Any, compiled: bool) -> None:
    minimiser = kind(parameters(), 0.1, weight_decay=0.3, decays=lambda name, p: len(p.spec.shape) > 1)
    found = train(minimiser, compiled)
    plain = train(kind(parameters(), 0.1, weight_decay=0.0), False)
    whole = train(kind(parameters(), 0.1, weight_decay=0.3), False)
    np.testing.assert_allclose(found["a"], plain["a"])
    np.testing.assert_allclose(found["b"], whole["b"])
    assert not np.allclose(plain["b"], whole["b"])


@pytest.mark.parametrize("make, error, words", [
    (lambda ps: optim.SGD([optim.Group(ps, speed=1)], 0.1), AttributeValueError, "'speed', which is no setting"),
    (lambda ps: optim.SGD([optim.Group(ps, momentum=-1)], 0.1), AttributeValueError, "momentum is -1"),
    (lambda ps: optim.SGD([optim.Group(ps), optim.Group(ps)], 0.1), OperandError, "'a' is there twice"),
    (lambda ps: optim.SGD([optim.Group(ps), ps["a"]], 0.1), OperandError, "a Parameter among groups"),
    (lambda ps: optim.SGD([optim.Group([])], 0.1), OperandError, "no parameters"),
    (lambda ps: optim.SGD(ps, 0.1, speed=1), UnknownAttributeError, "SGD: 'speed' is no setting"),
    (lambda ps: optim.SGD(ps, 0.1, nonfinite="warn"), AttributeValueError, "nonfinite is 'warn'"),
    (lambda ps: optim.SGD(ps, 0.1, clipping=1.0), AttributeValueError, "clipping is 1.0, expected a function"),
    (lambda ps: optim.SGD(ps, 0.1, scale=float("inf")), AttributeValueError, "scale is inf"),
    (lambda ps: optim.SGD(ps, 0.1, dampening=0.1), AttributeValueError, "dampening needs a momentum"),
    (lambda ps: optim.SGD(ps, 0.1, 0.9, True, dampening=0.1), AttributeValueError, "nesterov=False"),
    (lambda ps: optim.Adam(ps, amsgrad=1), AttributeValueError, "amsgrad is 1, expected True or False"),
    (lambda ps: optim.Rprop(ps, lambda t: 0.1), AttributeValueError, "not a schedule"),
    (lambda ps: optim.Rprop(ps, growth=0.9), AttributeValueError, "growth 0.9 should be above 1"),
    (lambda ps: optim.Accumulated(optim.SGD(ps, 0.1), 0), AttributeValueError, "every is 0"),
    (lambda ps: optim.Average(ps, 1.5), AttributeValueError, "decay is 1.5"),
    (lambda ps: optim.Average({}), OperandError, "no parameters to average"),
    (lambda ps: optim.owl.Descent(ps, momentum=0.9), AttributeValueError, "one of optim.owl.momentum, or None"),
    (lambda ps: optim.Adam([nnc.Cell(nnc.zeros(2).astype("complex64"))]), DTypeError, "complex parameters"),
    (lambda ps: optim.clipping.GlobalNorm(0), AttributeValueError, "limit is 0"),
    (lambda ps: optim.clipping.Value(1, -1), AttributeValueError, "low 1 should be a number below high -1"),
])
def test_wrong_options_are_refused(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make(parameters())


def test_a_momentum_that_comes_too_late_is_refused() -> None:
    minimiser = optim.SGD(parameters(), 0.1)
    minimiser.momentum = 0.9
    with pytest.raises(StateError, match="made without 'velocity'"):
        train(minimiser, False)


# ---- clipping
def clipped(kind: str, g: dict[str, Any]) -> dict[str, Any]:
    length = np.sqrt(sum((x**2).sum() for x in g.values()))
    if kind == "global":
        return {name: x * min(1.0, 1.5 / length) for name, x in g.items()}
    if kind == "each":
        return {name: x * min(1.0, 1.5 / np.sqrt((x**2).sum())) for name, x in g.items()}
    return {name: np.clip(x, -0.5, 1.0) for name, x in g.items()}


@COMPILED
@pytest.mark.parametrize("kind", ["global", "each", "value"])
def test_clipping(kind: str, compiled: bool) -> None:
    make = {"global": optim.clipping.GlobalNorm(1.5), "each": optim.clipping.Norm(1.5),
            "value": optim.clipping.Value(-0.5, 1.0)}[kind]
    found = train(optim.SGD(parameters(), 0.1, clipping=make), compiled)
    wanted = [clipped(kind, g) for g in GRADIENTS]
    np.testing.assert_allclose(found["a"], references.sgd(A, np.stack([g["a"] for g in wanted]), 0.1))
    np.testing.assert_allclose(found["b"], references.sgd(B, np.stack([g["b"] for g in wanted]), 0.1))


def test_norms_of_half_precision_do_not_overflow() -> None:
    g = {"a": nnc.full(4, 300.0, dtype=nnc.float16)}
    assert float(global_norm(g)) == 600
    np.testing.assert_allclose(optim.clipping.GlobalNorm(2.0)(g)["a"].numpy(), [1, 1, 1, 1])


def test_a_gradient_of_zero_is_not_scaled_to_nothing_that_is_a_number() -> None:
    g = {"a": nnc.zeros(2)}
    for clip in (optim.clipping.Norm(1.0), optim.clipping.GlobalNorm(1.0)):
        np.testing.assert_array_equal(clip(g)["a"].numpy(), [0, 0])


# ---- accumulation
@COMPILED
@pytest.mark.parametrize("on", devices())
def test_accumulated_gradients_are_those_of_the_whole_batch(on: str, compiled: bool) -> None:
    with nnc.use_device(on):
        minimiser = optim.Accumulated(optim.Adam(parameters(), 0.1), 2)
        found = train(minimiser, compiled)
        means = [{k: (GRADIENTS[i][k] + GRADIENTS[i + 1][k]) / 2 for k in "ab"} for i in (0, 2)]
        whole = train(optim.Adam(parameters(), 0.1), False, means)
    for name in "ab":
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-12)
    assert int(minimiser.step.read()) == 2
    assert int(minimiser.count.read()) == 0


def test_accumulation_goes_on_from_a_saved_state() -> None:
    first, second = (optim.Accumulated(optim.SGD(parameters(), 0.1, 0.9), 3) for _ in range(2))
    train(first, False, GRADIENTS[:2])
    second.load_state_dict(first.state_dict())
    assert "sum.a" in first.cells()
    assert int(second.count.read()) == 2
    train(first, False, GRADIENTS[2:])
    for name, x in train(second, True, GRADIENTS[2:]).items():
        np.testing.assert_allclose(x, first.parameters[name].read().numpy(), rtol=1e-12)
        assert not np.allclose(x, {"a": A, "b": B}[name])


# ---- means of weights
@COMPILED
def test_running_means_of_weights(compiled: bool) -> None:
    ps = parameters()
    minimiser, mean = optim.SGD(ps, 0.1), optim.Average(ps, 0.8)

    def step(g: Any) -> None:
        minimiser.update(g)
        mean.update()

    run = nnc.jit(step) if compiled else step
    wanted = A
    p = A
    for g in GRADIENTS:
        run({name: nnc.asarray(x) for name, x in g.items()})
        p = p - 0.1 * g["a"]
        wanted = 0.8 * wanted + 0.2 * p
    np.testing.assert_allclose(mean.means["a"].read().numpy(), wanted)
    np.testing.assert_allclose(ps["a"].read().numpy(), p)
    with pytest.raises(ZeroDivisionError), mean.applied():
        np.testing.assert_allclose(ps["a"].read().numpy(), wanted)
        raise ZeroDivisionError
    np.testing.assert_allclose(ps["a"].read().numpy(), p)


@COMPILED
def test_the_plain_mean_of_weights(compiled: bool) -> None:
    p = nn.Parameter(nnc.asarray([0.0]))
    mean = optim.Average([p], lambda t: t / (t + 1))
    update = nnc.jit(mean.update) if compiled else mean.update
    for x in (1.0, 2.0, 6.0):
        p.write(nnc.asarray([x]))
        update()
    np.testing.assert_allclose(mean.means["0"].read().numpy(), [3.0], rtol=1e-6)
    other = optim.Average([p])
    other.load_state_dict(mean.state_dict())
    np.testing.assert_allclose(other.means["0"].read().numpy(), [3.0], rtol=1e-6)


def test_the_average_of_asgd() -> None:
    p = nn.Parameter(nnc.asarray(A))
    minimiser = optim.ASGD({"a": p}, 0.1, shrink=0.0, start=2)
    seen = []
    for g in of("a"):
        minimiser.update({"a": nnc.asarray(g)})
        seen.append(p.read().numpy())
    np.testing.assert_allclose(minimiser.slots["average"]["a"].read().numpy(), np.mean(seen[2:], axis=0))


# ---- numbers that are none
BAD = [GRADIENTS[0], {"a": A * np.nan, "b": B}, {"a": A, "b": B * np.inf}, GRADIENTS[3]]


@COMPILED
@pytest.mark.parametrize("on", devices())
def test_bad_gradients_are_skipped_with_a_warning(on: str, compiled: bool) -> None:
    with nnc.use_device(on):
        minimiser = optim.Adam(parameters(), 0.1, nonfinite="skip")
        run = nnc.jit(minimiser.update) if compiled else minimiser.update
        said = []
        for g in BAD:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run({name: nnc.asarray(x) for name, x in g.items()})
            said.append([str(w.message) for w in caught if w.category is optim.NonfiniteWarning])
        wanted = train(optim.Adam(parameters(), 0.1), False, [BAD[0], BAD[3]])
    assert [len(s) for s in said] == [0, 1, 1, 0]
    assert "Adam: update 2 got gradients that are not finite, of 'a'" in said[1][0]
    assert "of 'b'" in said[2][0]
    assert int(minimiser.step.read()) == 2
    for name in "ab":
        np.testing.assert_allclose(minimiser.parameters[name].read().numpy(), wanted[name], rtol=1e-12)


@COMPILED
def test_bad_gradients_are_an_error_that_leaves_all_as_it_was(compiled: bool) -> None:
    minimiser = optim.Adam(parameters(), 0.1, nonfinite="error")
    run = nnc.jit(minimiser.update) if compiled else minimiser.update
    run({name: nnc.asarray(x) for name, x in BAD[0].items()})
    before = minimiser.state_dict()
    with pytest.raises(ExecutionError, match="NonfiniteError: Adam: update 2 got gradients that are not finite"):
        run({name: nnc.asarray(x) for name, x in BAD[1].items()})
    for name, x in minimiser.state_dict().items():
        np.testing.assert_array_equal(x, before[name])
    run({name: nnc.asarray(x) for name, x in BAD[3].items()})
    wanted = train(optim.Adam(parameters(), 0.1), False, [BAD[0], BAD[3]])
    np.testing.assert_allclose(minimiser.parameters["a"].read().numpy(), wanted["a"], rtol=1e-12)


def test_by_default_bad_gradients_show_in_the_weights() -> None:
    found = train(optim.SGD(parameters(), 0.1), False, BAD[:2])
    assert np.isnan(found["a"]).all()
    assert np.isfinite(found["b"]).all()


# ---- NNC's commands
NNC = {  # by the attributes of its commands
    optim.SGD: {"nesterov": "nesterov", "rate": "learning_rate", "scale": "scale", "decay": "weight_decay",
                "momentum": "momentum", "dampening": "dampening"},
    optim.Adam: {"rate": "learning_rate", "beta1": "beta1", "beta2": "beta2", "decay": "weight_decay",
                 "epsilon": "epsilon", "amsgrad": "amsgrad"},
    optim.AdamW: {"rate": "learning_rate", "beta1": "beta1", "beta2": "beta2", "decay": "weight_decay",
                  "epsilon": "epsilon", "amsgrad": "amsgrad"},
    optim.LAMB: {"rate": "learning_rate", "beta1": "beta1", "beta2": "beta2", "decay": "weight_decay",
                 "epsilon": "epsilon"},
    optim.RMSprop: {"rate": "learning_rate", "decay": "weight_decay", "alpha": "smoothing", "momentum": "momentum",
                    "epsilon": "epsilon"},
}


@pytest.mark.parametrize("kind", NNC)
def test_the_minimisers_of_nnc_have_its_attributes(kind: Any) -> None:
    """All but `step`, which is live in a cell."""
    values = {"nesterov": True, "amsgrad": True, "dampening": 0.0}
    made = kind(parameters(), **{ours: values.get(ours, 0.25) for ours in NNC[kind].values()})
    assert {ours: getattr(made, ours) for ours in NNC[kind].values()} == {
        ours: values.get(ours, 0.25) for ours in NNC[kind].values()}
    assert all(np.isfinite(x).all() for x in train(made, True).values())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("parts", [{}, {"gradient": optim.owl.gradient.PolakRibiere()},
                                   {"learning_rate": optim.owl.learning_rate.Adam(0.1)},
                                   {"learning_rate": optim.owl.learning_rate.LineSearch()}])
def test_owls_parts_in_half_precision(parts: dict[str, Any], dtype: str) -> None:
    p = nn.Parameter(nnc.asarray([3.0, -200.0]).astype(dtype))
    minimiser = optim.owl.Descent([p], **{"learning_rate": 0.1, **parts})
    step = optim.make_descent(lambda ws: nnc.sum(ws["0"].astype("float32") ** 2), minimiser)
    losses = [step().item() for _ in range(4)]
    assert sorted(losses, reverse=True) == losses
    assert losses[-1] < losses[0]


# ---- few commands
@pytest.mark.parametrize("make, one, three", [
    (lambda ps: optim.SGD(ps, 0.1), 2, 4), (lambda ps: optim.SGD(ps, 0.1, 0.9), 2, 4),
    (lambda ps: optim.Adagrad(ps, 0.1), 2, 4), (lambda ps: optim.Adam(ps, 0.1), 4, 6),
    (lambda ps: optim.AdamW(ps, 0.1), 4, 6), (lambda ps: optim.RMSprop(ps, 0.1), 2, 4),
    (lambda ps: optim.Lion(ps, 0.1), 3, 7), (lambda ps: optim.LAMB(ps, 0.1), 2, 5),
])
def test_commands_of_an_update(make: Any, one: int, three: int) -> None:
    """For one parameter, and for three, on a device that compiles loop nests."""
    counts = []
    with nnc.use_device("strict:0"), nnc.config.using(deterministic=False):
        for count in (1, 3):
            cells = {str(i): nnc.Cell(nnc.zeros(4 + i)) for i in range(count)}
            update = nnc.jit(make(cells).update)
            counts.append(len(update.lower({name: c.read() for name, c in cells.items()}).program.records))
    assert counts == [one, three]


def test_one_fused_command_ends_an_update_of_adam() -> None:
    with nnc.use_device("strict:0"):
        minimiser = optim.Adam([nnc.Cell(nnc.zeros(4))], optim.schedules.Cosine(0.1, 100))
        text = nnc.jit(lambda g: minimiser.update({"0": g})).lower(nnc.zeros(4)).explain()
    assert text.count("add divide subtract)") == 1


class Adapted(nn.Module):
    """A fixed network behind an adapter of low rank."""

    def __init__(self, base: nn.Module, a: Any, b: Any) -> None:
        self.base, self.a, self.b = base, nn.Parameter(nnc.asarray(a)), nn.Parameter(nnc.asarray(b))

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return self.base(x + x @ self.a.read() @ self.b.read())


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "jit"])
def test_an_adapter_is_trained_beside_a_fixed_network(eager: bool) -> None:
    rng = np.random.default_rng(0)
    x, a, b, t = (rng.normal(size=s) for s in ((5, 6), (6, 2), (2, 6), (5, 3)))
    base = nn.Linear(6, 3, dtype=nnc.float64)
    net = Adapted(base, a, b)
    kept = {name: p.numpy() for name, p in base.named_parameters().items()}
    minimiser = optim.SGD({"a": net.a, "b": net.b}, 0.1)
    loss = lambda x: nnc.sum(net(x) * nnc.asarray(t))  # noqa: E731
    with pytest.raises(StateError, match=r"unknown base\.bias, base\.weight(?s:.*)parameters=minimiser\.parameters"):
        optim.make_step(nn.value_and_grad(net, loss), minimiser, eager=True)(nnc.asarray(x))
    wanted = nn.value_and_grad(net, loss, parameters=minimiser.parameters)
    optim.make_step(wanted, minimiser, eager=eager)(nnc.asarray(x))
    back = t @ base.weight.numpy().T
    np.testing.assert_allclose(net.a.numpy(), a - 0.1 * x.T @ back @ b.T, rtol=1e-10)
    np.testing.assert_allclose(net.b.numpy(), b - 0.1 * (x @ a).T @ back, rtol=1e-10)
    assert all((p.numpy() == kept[name]).all() for name, p in base.named_parameters().items())
