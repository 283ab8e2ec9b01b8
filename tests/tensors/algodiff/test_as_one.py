"""Functions of several operators that run as one program where gradients are followed (`decisions/0067`)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.algodiff.tape import every_step, history
from nnc_core.base.cache import LRU
from nnc_core.device import REPRODUCIBLE
from nnc_core.values import as_one, modes
from nnc_core.values.joint_steps import JointStep
from tests.devices import devices

CALLS = as_one.STEPPED + 3
RNG = np.random.default_rng(3)
X, Y = RNG.standard_normal((2, 4, 5)).astype(np.float32)
SHARES = (np.abs(Y) / np.abs(Y).sum(1, keepdims=True)).astype(np.float32)
LABELS = np.array([0, 4, 2, 2])
W, U = (RNG.standard_normal(shape).astype(np.float32) for shape in ((5, 24), (6, 24)))
B, C = RNG.standard_normal((2, 24)).astype(np.float32)
H, S = RNG.standard_normal((2, 4, 6)).astype(np.float32)


def _weights(gates: int, w: Any) -> nnc.RecurrentWeights:
    n = 6 * gates
    return nnc.RecurrentWeights(w, nnc.asarray(U[:, :n]), nnc.asarray(B[:n]), nnc.asarray(C[:n]))


def _gru(w: Any) -> Any:
    return nnc.gru_cell(nnc.asarray(X), nnc.asarray(H), _weights(3, w))


def _lstm(w: Any) -> Any:
    return nnc.lstm_cell(nnc.asarray(X), (nnc.asarray(H), nnc.asarray(S)), _weights(4, w))


CASES: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "mse_loss": (lambda x: nnc.mse_loss(x, nnc.asarray(Y)), X),
    "huber_loss": (lambda x: nnc.huber_loss(x, nnc.asarray(Y), delta=0.5), X),
    "kl_div": (lambda x: nnc.kl_div(x, nnc.asarray(SHARES), reduction="batchmean"), X),
    "binary": (lambda x: nnc.binary_cross_entropy_with_logits(x, nnc.asarray(SHARES)), X),
    "cross_entropy": (lambda x: nnc.cross_entropy(x, nnc.asarray(LABELS)), X),
    "smoothed": (lambda x: nnc.cross_entropy(x, nnc.asarray(LABELS), label_smoothing=0.1, ignore_index=2), X),
    "shares": (lambda x: nnc.cross_entropy(x, nnc.asarray(SHARES)), X),
    "layer_norm": (lambda x: nnc.layer_norm(x, nnc.asarray(Y[0])), X),
    "batch_norm": (lambda x: nnc.batch_norm_training(x, nnc.asarray(Y[0])).output, X),
    "gru": (_gru, W[:, :18]),
    "lstm": (_lstm, W),
}
"""Functions of a variable, and where they are called."""


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[LRU[Any, Any]]:
    """Nothing has been called before."""
    fresh: LRU[Any, Any] = LRU(as_one.MOST_PROGRAMS)
    monkeypatch.setattr(as_one, "_programs", fresh)
    monkeypatch.setattr(as_one, "_sightings", LRU(as_one.MOST_SIGHTINGS))
    yield fresh


@pytest.fixture(params=devices())
def place(request: pytest.FixtureRequest) -> Iterator[str]:
    """A device, without `config.deterministic`, under which operators run one by one."""
    with nnc.use_device(request.param):
        yield request.param


def _is_exact(place: str) -> bool:
    return REPRODUCIBLE in nnc.zeros(1, device=place).device.features


def _gone_back(f: Callable[[Any], Any], x: Any) -> list[Any]:
    """The results and the gradient of their products with some numbers."""
    v = nnc.variable(nnc.asarray(x))
    given = f(v)
    results = list(given) if isinstance(given, tuple) else [given]
    numbers = [nnc.asarray(np.cos(np.arange(y.size, dtype=np.float32)).reshape(y.shape)) for y in results]
    nnc.backward(results, numbers)
    assert v.grad is not None
    return [y.numpy() for y in (*results, v.grad)]


def _scalar(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def squared(x: Any) -> Any:
        y = f(x)
        return sum([(part * part).sum() for part in (y if isinstance(y, tuple) else (y,))])

    return squared


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_stay_what_they_were(place: str, name: str, programs: LRU[Any, Any]) -> None:
    f, x = CASES[name]
    first, *others = [_gone_back(f, x) for _ in range(CALLS + 2)]
    for found in others:
        for a, b in zip(found, first, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    assert [p is not None for p in programs.values()] == [_is_exact(place)]


@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_the_bits_that_its_operators_have_under_deterministic(place: str, name: str) -> None:
    f, x = CASES[name]
    if not _is_exact(place):
        pytest.skip("its compiler may round otherwise")
    found = [_gone_back(f, x) for _ in range(CALLS + 4)][-1]
    with nnc.config.using(deterministic=True):
        wanted = [_gone_back(f, x) for _ in range(4)][-1]
    assert [y.tobytes() for y in found] == [y.tobytes() for y in wanted]


@pytest.mark.parametrize("name", ["mse_loss", "cross_entropy", "gru", "lstm"])
def test_gradients_of_second_order_go_through_a_call(place: str, name: str) -> None:
    f, x = _scalar(CASES[name][0]), CASES[name][1]
    found = []
    for _ in range(CALLS):
        v = nnc.variable(nnc.asarray(x))
        (g,) = nnc.gradients(f(v), [v], create_graph=True)
        (again,) = nnc.gradients((g * g).sum(), [v])
        found.append(again.numpy())
    for again in found[1:]:
        np.testing.assert_allclose(again, found[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(nnc.grad(lambda v: (nnc.grad(f)(v) ** 2).sum())(nnc.asarray(x)).numpy(), found[0],
                               rtol=1e-4, atol=1e-5)


def test_a_call_is_one_entry_of_the_graph_until_steps_are_asked_for(place: str) -> None:
    v = nnc.variable(nnc.asarray(X))
    y = [nnc.huber_loss(v, nnc.asarray(Y)) for _ in range(CALLS)][-1]
    if not _is_exact(place):
        return
    assert isinstance(y._value.step, JointStep) and y._value.step.call.unfolded is None
    assert len(history([y._value])) == 3
    steps = every_step([y._value])
    assert len(steps) > 5 and steps[-1] is y._value and v._value in steps
    assert nnc.bookkeeping_count(y) == sum(x.step is not None and x.tracked for x in steps)


def test_hooks_inside_of_what_was_called_see_gradients(place: str) -> None:
    for _ in range(CALLS):
        seen: list[Any] = []
        v = nnc.variable(nnc.asarray(X))
        h, c = nnc.lstm_cell(v, (nnc.asarray(H), nnc.asarray(S)), _weights(4, nnc.asarray(W)))
        c.register_hook(lambda g, seen=seen: seen.append(g.numpy()))
        h.register_hook(lambda g: g * 2)
        (h.sum() + c.sum()).backward()
        assert len(seen) == 1 and v.grad is not None
        latest = v.grad.numpy()
    x = nnc.variable(nnc.asarray(X))
    with nnc.config.using(deterministic=True):
        h, c = nnc.lstm_cell(x, (nnc.asarray(H), nnc.asarray(S)), _weights(4, nnc.asarray(W)))
        h.register_hook(lambda g: g * 2)
        (h.sum() + c.sum()).backward()
    assert x.grad is not None
    np.testing.assert_allclose(latest, x.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_by_a_result_of_a_call(place: str) -> None:
    for _ in range(CALLS):
        v = nnc.variable(nnc.asarray(X))
        h, c = nnc.lstm_cell(v, (nnc.asarray(H), nnc.asarray(S)), _weights(4, nnc.asarray(W)))
        gh, gc_ = nnc.gradients((h * h).sum(), [h, c])
        np.testing.assert_allclose(gh.numpy(), 2 * h.numpy(), rtol=1e-6)
        assert gc_ is not None and np.abs(gc_.numpy()).sum() > 0


def test_operands_are_kept_as_they_were_when_somebody_writes(place: str) -> None:
    for _ in range(CALLS):
        v, y = nnc.variable(nnc.asarray(X)), nnc.asarray(Y)
        loss = nnc.mse_loss(v, y)
        y[0] = 100.0
        loss.backward()
        assert v.grad is not None
        np.testing.assert_allclose(v.grad.numpy(), (X - Y) * 2 / X.size, rtol=1e-5, atol=1e-7)


def test_labels_that_are_no_class_are_refused_each_time(place: str) -> None:
    v = nnc.variable(nnc.asarray(X))
    for _ in range(CALLS):
        nnc.cross_entropy(v, nnc.asarray(LABELS))
    if nnc.zeros(1)._value.stack.device.expose(nnc.zeros(1)._value.array) is None:
        return
    with pytest.raises(nnc.errors.OutOfRangeError, match="label 5"):
        nnc.cross_entropy(v, nnc.asarray(LABELS + 5))


def test_errors_are_those_of_the_first_call(place: str) -> None:
    v = nnc.variable(nnc.asarray(X))
    texts = set()
    for _ in range(CALLS):
        with pytest.raises(nnc.errors.ShapeError, match="mse_loss") as caught:
            nnc.mse_loss(v, nnc.asarray(Y[:2]))
        texts.add(str(caught.value))
    assert len(texts) == 1


def test_settings_and_numbers_make_other_programs(place: str, programs: LRU[Any, Any]) -> None:
    v, y = nnc.variable(nnc.asarray(X)), nnc.asarray(Y)
    for _ in range(CALLS):
        for delta in (1, 1.0, 0.25):
            d = np.abs(X - Y)
            wanted = np.where(d <= delta, d * d / 2, delta * (d - delta / 2)).mean()
            np.testing.assert_allclose(float(nnc.huber_loss(v, y, delta=delta)), wanted, rtol=1e-5)
    assert len(programs) == 3


def test_no_gradient_no_program(place: str, programs: LRU[Any, Any]) -> None:
    v, y = nnc.variable(nnc.asarray(X)), nnc.asarray(Y)
    for _ in range(CALLS):
        nnc.mse_loss(y, y)
        with nnc.no_grad():
            nnc.mse_loss(v, y)
        with nnc.deferred():
            nnc.mse_loss(v, y)
        with nnc.config.using(deterministic=True):
            nnc.mse_loss(v, y)
        with modes.step_by_step():
            nnc.mse_loss(v, y)
    assert not len(programs)


def test_what_a_call_keeps_goes_with_its_results(place: str) -> None:
    v, y = nnc.variable(nnc.asarray(X)), nnc.asarray(Y)
    for _ in range(CALLS):
        loss = nnc.huber_loss(v, y)
    held = weakref.ref(loss._value)
    gc.disable()
    try:
        del loss
        assert held() is None
    finally:
        gc.enable()


def test_a_hook_on_a_result_that_another_is_computed_from(place: str) -> None:
    for _ in range(CALLS):
        seen: list[Any] = []
        h, c = _lstm(nnc.variable(nnc.asarray(W)))
        c.register_hook(lambda g, seen=seen: seen.append(g))
        h.sum().backward()
        assert len(seen) == 1


def test_a_graph_is_exported_with_every_operator(place: str) -> None:
    names = set()
    for _ in range(CALLS):
        v = nnc.variable(nnc.asarray(X))
        graph = nnc.export({"x": v}, {"loss": nnc.mse_loss(v, nnc.asarray(Y))}, capture="constant")
        names.add(tuple([node.op.name for node in graph.nodes]))
    assert len(names) == 1 and "subtract" in names.pop()
