"""The history of deferred computation: what it keeps, and what it lets go."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import UnconnectedError
from nnc_core.symbol import postorder
from nnc_core.values import evaluation
from nnc_core.values.evaluation import evaluate
from nnc_core.values.history import LONGEST_HISTORY
from nnc_core.values.value import Value
from tests.sizes import LONG
from tests.tensors.conftest import devices
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
F64 = np.float64(0.5)
QUICKEST = devices()[0]


def test_what_was_computed_can_still_be_exported(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        y = x * 2
        z = y + y
    z.numpy()
    compiled = nnc.export({"x": x}, {"z": z}).compile(device)
    np.testing.assert_array_equal(compiled(x=HOST + 1)["z"].numpy(), (HOST + 1) * 4)


def test_history_goes_with_the_last_tensor(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
        z = y + y
    z.numpy()
    assert z._value.inputs == (y._value, y._value), "it can be named as an input of an export"
    inside = weakref.ref(y._value)
    del y
    assert inside() is None, "nobody looks at its array any more"
    inside = weakref.ref(z._value.inputs[0])
    assert inside().step is not None and inside().array is None, "z can be exported"
    del z
    gc.collect()
    assert inside() is None


def test_what_a_history_let_go_is_computed_again_for_who_asks(x: nnc.Tensor, device: str) -> None:
    with nnc.deferred():
        z = nnc.sin(x) * 2 + 1
        w = nnc.sin(z) * z
    nnc.realize(z, w)
    (doubled, _), (sine, _) = z._value.inputs, w._value.inputs
    assert doubled.array is None and sine.array is None
    for _ in range(2):
        held = z._value.inputs[0]
        evaluate([held])
        np.testing.assert_array_equal(nnc.Tensor(held).numpy(), (nnc.sin(x) * 2).numpy())
        assert held.inputs[0].array is None, "only what was asked for"
        held.array = None
    del z  # what w was made of is gone itself
    evaluate([sine])
    np.testing.assert_array_equal(nnc.Tensor(sine).numpy(), nnc.sin(nnc.sin(x) * 2 + 1).numpy())
    assert sine.inputs[0].array is None
    assert nnc.export({"x": x}, {"w": w}).compile(device)(x=x)["w"].shape == x.shape


def test_another_thread_may_let_go_of_what_is_being_computed(x: nnc.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    with nnc.deferred():
        y = nnc.sin(x) * 2
    v, quicker = y._value, [True]
    enqueued_for = evaluation.enqueued_for

    def interrupted(line: Any) -> Any:
        if quicker and all(i.array is not None for i in v.inputs):
            quicker.clear()
            evaluate([v])  # as another thread would
        return enqueued_for(line)

    monkeypatch.setattr(evaluation, "enqueued_for", interrupted)
    np.testing.assert_allclose(y.numpy(), np.sin(HOST) * 2, rtol=1e-6)
    assert not quicker and v.step is not None and v.step.inputs[0].array is None


def test_many_threads_compute_one_record(x: nnc.Tensor) -> None:
    for _ in range(20):
        with nnc.deferred():
            y = x
            for _ in range(30):
                y = nnc.sin(y) + x * 0.5
        with ThreadPoolExecutor(4) as pool:
            first, *others = pool.map(lambda _, y=y: y.numpy(), range(4))
        for other in others:
            np.testing.assert_array_equal(other, first)


Weights = dict[str, nnc.Tensor]
Loss = Callable[[Weights], nnc.Tensor]


def _by_values(loss: Loss, weights: Weights) -> Weights:
    error, gradients = nnc.value_and_grad(loss)(weights)
    weights = {k: w - 0.01 * gradients[k] for k, w in weights.items()}
    nnc.realize(error, weights)
    return weights


def _by_gradients_alone(loss: Loss, weights: Weights) -> Weights:
    weights = nnc.grad(loss)(weights)
    nnc.realize(weights)
    return weights


def _backward(loss: Loss, weights: Weights) -> Weights:
    variables = {k: nnc.variable(w) for k, w in weights.items()}
    error = loss(variables)
    error.backward()
    with nnc.no_grad():
        weights = {k: v - 0.01 * v.grad for k, v in variables.items()}
    nnc.realize(error, weights)
    return weights


@pytest.mark.parametrize("loop", [_by_values, _by_gradients_alone, _backward])
def test_training_holds_the_arrays_of_one_round(loop: Callable[[Loss, Weights], Weights]) -> None:
    """The history of a loop is steps: of its weights, activations and gradients only what is in use is in memory."""
    def loss(weights: Weights) -> nnc.Tensor:
        return nnc.mean(nnc.tanh(given @ weights["w"]) @ weights["v"])

    def arrays() -> int:
        gc.collect()
        return sum(type(x) is np.ndarray and x.nbytes >= given.nbytes for o in gc.get_objects()
                   if isinstance(o, Value) for x in gc.get_referents(o))

    with nnc.use_device(QUICKEST):
        given = nnc.ones((16, 16))
        weights = {"w": nnc.full((16, 16), 0.1), "v": nnc.full((16, 16), 0.1)}
        before = arrays()
        with nnc.deferred():
            for _ in range(40):
                weights = loop(loss, weights)
        ends = 2 if loop is _backward else 0  # variables have no history: that of the weights begins at the last ones
        assert arrays() <= before + 2 + ends
        assert ends or len(_history(weights["w"])) > 40, "and the steps are there"


def test_a_loop_through_gradients_alone_is_bounded() -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.asarray(1.0)
        with nnc.deferred():
            for _ in range(1500):
                x = nnc.grad(nnc.sin)(x)
                nnc.realize(x)
        assert len(_history(x)) <= 4 * 4 * LONGEST_HISTORY


def test_without_keep_graph_what_was_computed_forgets(x: nnc.Tensor) -> None:
    with nnc.deferred(keep_graph=False):
        y = x * 2
        z = y + y
        lazy = z + 1
    inside = weakref.ref(y._value)
    del y
    z.numpy()
    assert z._value.step is None and inside() is None
    np.testing.assert_array_equal(lazy.numpy(), HOST * 4 + 1)
    with fails(ValueError, "history", line=False):
        nnc.export({"x": x}, {"z": z})


def test_a_loop_that_carries_tensors_does_not_grow(x: nnc.Tensor) -> None:
    past: list[weakref.ref] = []
    for _ in range(20):
        with nnc.deferred(keep_graph=False):
            x = nnc.sin(x) * 0.5 + 0.1
        past.append(weakref.ref(x._value))
        nnc.realize(x)
    assert sum(r() is not None for r in past) == 1


def _rounds(s: nnc.Tensor, rounds: int, **options: bool) -> tuple[nnc.Tensor, list[weakref.ref]]:
    past = []
    for _ in range(rounds):
        with nnc.deferred(**options):
            s = s + 1
        nnc.realize(s)
        past.append(weakref.ref(s._value))
    return s, past


def _alive(past: list[weakref.ref]) -> int:
    gc.collect()
    return sum(r() is not None for r in past)


def _history(s: nnc.Tensor) -> list[Value]:
    return postorder([s._value])


def test_a_loop_that_computes_every_round_is_bounded_unless_asked() -> None:
    with nnc.use_device(QUICKEST):
        s, past = _rounds(nnc.asarray([0.0]), 3000)
        rounds = sum(v.step is not None and v.op.name == "add" for v in _history(s))
        assert s.item() == 3000 and LONGEST_HISTORY <= rounds <= 4 * LONGEST_HISTORY
        assert _alive(past) == 1, "only the last has its array"
        s, past = _rounds(nnc.asarray([0.0]), 1500, keep_graph=True)
        assert _alive(past) == 1500


def test_the_bound_holds_for_chains_that_read_far_back() -> None:
    with nnc.use_device(QUICKEST):
        delayed = [nnc.asarray([0.0])] * 300
        for _ in range(2500):
            with nnc.deferred():
                s = delayed.pop(0) * 0.5 + delayed[-1]
            nnc.realize(s)
            delayed.append(s)
        assert len(_history(s)) <= 3 * (4 * LONGEST_HISTORY + 300)


def test_readings_beside_a_carried_value_do_not_change_the_bound() -> None:
    with nnc.use_device(QUICKEST):
        a, b = nnc.asarray([0.0]), nnc.asarray([1.0])
        for _ in range(1500):
            with nnc.deferred():
                a = a + b
                b = b * 0.5 + a
                seen = a.sum()
            nnc.realize(b)
            assert seen.is_deferred and seen.item() == a.item()
        assert len(_history(b)) <= 4 * 4 * LONGEST_HISTORY


def test_recent_rounds_are_exported_and_forgotten_ones_are_an_error() -> None:
    with nnc.use_device(QUICKEST):
        for start in (0.0, [0.0]):  # a scalar would become a constant
            x = nnc.asarray(start)
            s, past = _rounds(x, 2 * LONGEST_HISTORY - 1)
            compiled = nnc.export({"x": x}, {"s": s}).compile(QUICKEST)
            assert compiled(x=x + 5)["s"].item() == len(past) + 5
            middle, _ = _rounds(s, 900)
            s, _ = _rounds(middle, LONGEST_HISTORY - 1)
            assert nnc.export({"m": middle}, {"s": s}).compile(QUICKEST)(m=x)["s"].item() == LONGEST_HISTORY - 1
            for capture in ("error", "constant"):
                with fails(UnconnectedError, "history was freed", "test_deferred_history.py", "keep_graph=True"):
                    nnc.export({"x": x}, {"s": s}, capture=capture, on_unused="ignore")


def test_early_results_that_a_long_loop_reads_keep_their_history() -> None:
    with nnc.use_device(QUICKEST):
        x, s = nnc.asarray([2.0]), nnc.asarray([0.0])
        with nnc.deferred():
            doubled = x * 2
        for _ in range(1200):
            with nnc.deferred():
                s = s * 0 + doubled
            nnc.realize(s)
        assert nnc.export({"x": x}, {"y": doubled}).compile(QUICKEST)(x=x + 1)["y"].item() == 6


def test_thousands_of_operations_that_are_computed_at_once_are_exported() -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.asarray([0.0])
        with nnc.deferred():
            y = x
            for _ in range(3000):
                y = y + x
        nnc.realize(y)
        graph = nnc.export({"x": x}, {"y": y})
        assert sum(node.op.name == "add" for node in postorder(graph.outputs.values()) if node.inputs) == 3000


def test_a_gradient_through_a_long_loop_is_complete() -> None:
    with nnc.use_device(QUICKEST):
        v = nnc.variable([1.0])
        s, past = _rounds(v * 1, 1200)
        s.sum().backward()
        assert v.grad is not None and v.grad.item() == 1 and _alive(past) == 1200


def test_gradients_keep_what_they_need(device: str) -> None:
    v = nnc.variable(HOST)
    with nnc.deferred(keep_graph=False):
        loss = (nnc.sin(v) * v).sum()
    loss.numpy()
    loss.backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), np.cos(HOST) * HOST + np.sin(HOST), rtol=1e-4, atol=1e-5)


def test_a_long_chain_that_forgets_holds_one_array_at_a_time() -> None:
    with nnc.use_device(QUICKEST):
        with nnc.deferred(keep_graph=False):
            first = y = nnc.asarray(0.0) + 1
            values = weakref.WeakSet()
            for _ in range(LONG):
                y = y + 1
                if len(values) < 1000:
                    values.add(y._value)
        assert y.item() == LONG + 1
        gc.collect()
        assert len(values) == 0 and y._value.step is None and first.item() == 1


def test_deferred_training_with_cells_does_not_grow(device: str) -> None:
    cell = nnc.Cell(nnc.asarray(HOST), "weight")
    past: list[weakref.ref] = []
    for _ in range(20):
        with nnc.deferred():
            cell.write(cell.read() * 0.5)
        past.append(weakref.ref(cell.read()._value))
        cell.read().numpy()
    gc.collect()
    assert sum(r() is not None for r in past) <= 2
