"""`x[key] = v` writes where x lies if nobody else can see it: nobody else ever sees it change."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, DeferredInplaceError, OutOfRangeError, ShapeError
from nnc_core.operator import Operator
from nnc_core.values.accepted import SET_ITEM
from nnc_core.values.in_place import _OWNER
from tests.tensors.values.in_place import HOST, fresh, written

pytestmark = [pytest.mark.skipif(not any(_OWNER), reason="this Python does not count references"),
              pytest.mark.skipif(nnc.stack_for(None).device.spec.kind != "cpu", reason="cpu:0 writes in place")]


@pytest.fixture(autouse=True)
def kernels_known() -> None:
    """The first item of all is written by operators."""
    written(fresh())


# ---- what is written
def test_an_array_of_its_own_is_written_where_it_lies() -> None:
    x, want = fresh(), HOST.copy()
    for key, value in (((1, 2), 5.0), (0, 7), ((slice(None), 1), -1.5), ((..., 0), 2.0), (slice(0, 2), 3.0),
                       ((None, 2, 3), 4.0), ((-1, -1), 9.0), ((slice(0, 3, 2), slice(1, 3)), 0.5)):
        assert written(x, key, value), key
        want[key] = value
        np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("make", [lambda: nnc.zeros(8), lambda: nnc.asarray(HOST[0]) * 2.0, lambda: nnc.zeros(()),
                                  lambda: nnc.reshape(nnc.arange(8, dtype="float32"), (2, 4)),
                                  lambda: nnc.Generator(1).normal(8),
                                  lambda: nnc.jit(lambda a: a + 1.0)(nnc.zeros(8))])
def test_results_of_all_kinds_are_written_where_they_lie(make: Callable[[], nnc.Tensor]) -> None:
    x = make()
    assert written(x, ..., 2.5)
    np.testing.assert_array_equal(x.numpy(), np.full(x.shape, 2.5, np.float32))


def test_a_tensor_is_written_as_numpy_writes_an_array() -> None:
    x, want, row = fresh(), HOST.copy(), nnc.asarray(HOST[2] * 2)
    assert written(x, 1, row)
    want[1] = HOST[2] * 2
    assert written(x, slice(None), nnc.reshape(row, (1, 1, 4)))
    want[:] = HOST[2] * 2
    np.testing.assert_array_equal(x.numpy(), want)


@pytest.mark.parametrize("value", [np.inf, -0.0, np.nan, 1e300, -1e300, 1e-45, 2**24, 2**24 + 1, 2**53 + 1, -(2**60),
                                   True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64"])
def test_numbers_are_what_a_cast_makes_of_them(value: Any, dtype: str) -> None:
    x, y = nnc.zeros(3, dtype=dtype), nnc.zeros(3, dtype=dtype)
    x[1] = value
    kept = nnc.reshape(y, (3,))
    y[1] = value  # of which somebody holds the memory
    assert kept.numpy()[1] == 0
    assert x.numpy().tobytes() == y.numpy().tobytes()


@pytest.mark.parametrize("value", [3.7, -3.7, 1, 255, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64", "bool"])
def test_integers_too(value: Any, dtype: str) -> None:
    def after(shared: bool) -> Any:
        x = nnc.zeros(3, dtype=dtype)
        kept = nnc.reshape(x, (3,)) if shared else None
        try:
            x[1] = value
        except AttributeValueError as error:
            return str(error).split("\n")[0]
        del kept
        return x.numpy().tobytes()

    assert after(False) == after(True)


@pytest.mark.parametrize(("key", "value", "error"), [
    ((3, 0), 1.0, OutOfRangeError), ((0, 0, 0), 1.0, OutOfRangeError), (0, nnc.zeros(3), ShapeError),
    (slice(0, 2), nnc.zeros((3, 4)), ShapeError),
])  # fmt: skip
def test_errors_are_those_of_a_copy_and_change_nothing(key: Any, value: Any, error: type[Exception]) -> None:
    x, shared = fresh(), fresh()
    kept = nnc.reshape(shared, (3, 4))
    with pytest.raises(error) as lone:
        x[key] = value
    with pytest.raises(error) as copied:
        shared[key] = value
    assert str(lone.value).split("\n")[0] == str(copied.value).split("\n")[0]
    np.testing.assert_array_equal(x.numpy(), HOST)
    np.testing.assert_array_equal(kept.numpy(), HOST)


def test_empty_ranges_and_arrays() -> None:
    x, none = fresh(), nnc.zeros((0, 3))
    assert written(x, slice(2, 1))
    np.testing.assert_array_equal(x.numpy(), HOST)
    none[...] = 1.0
    assert none.shape == (0, 3)


def test_the_handle_points_at_a_fresh_value() -> None:
    x = fresh()
    x[0, 0] = 1.0
    before = weakref.ref(x._value)
    x[0, 0] = 2.0  # into a copy: somebody could look
    assert before() is None and written(x)


# ---- modes
def test_compiled_code_sees_the_value_of_each_call() -> None:
    f, x = nnc.jit(lambda a: a * 2.0), fresh()
    first = f(x)
    x[0, 0] = 5.0
    second = f(x)
    x[0, 0] = 6.0
    np.testing.assert_array_equal(first.numpy(), HOST * 2)
    assert second.numpy()[0, 0] == 10 and f(x).numpy()[0, 0] == 12


@pytest.mark.parametrize("compiled", [False, True])
def test_constants_of_a_graph_stay(compiled: bool) -> None:
    a, x = nnc.ones((3, 4)), fresh()
    with nnc.deferred():
        y = a + x
    graph = nnc.export({"a": a}, {"y": y}, capture="constant")
    del y
    run = graph.compile() if compiled else None
    x[1, 2] = 1000.0
    np.testing.assert_array_equal((run or graph.compile())(a=a)["y"].numpy(), HOST + 1)


def test_results_of_compiled_code_are_of_each_call() -> None:
    f, x = nnc.jit(lambda a: a * 2.0), fresh()
    for _ in range(4):
        y = f(x)
        np.testing.assert_array_equal(y.numpy(), HOST * 2)
        y[1, 1] = -1.0
        assert y.numpy()[1, 1] == -1
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_a_captured_tensor_is_read_anew() -> None:
    w = fresh()
    f = nnc.jit(lambda a: a + w)
    assert f(nnc.zeros((3, 4))).numpy()[0, 0] == 0
    w[0, 0] = 3.0
    assert f(nnc.zeros((3, 4))).numpy()[0, 0] == 3


def test_what_python_has_read_is_compared() -> None:
    n = nnc.asarray(np.array([2.0], np.float32))
    f = nnc.jit(lambda a: a * float(n[0]))
    assert f(nnc.ones(2)).numpy()[0] == 2
    n[0] = 5.0
    assert f(nnc.ones(2)).numpy()[0] == 5


def test_memoised_results_are_not_those_of_what_was_written_over() -> None:
    x = fresh()
    with nnc.memoise():
        before = nnc.exp(x)
    x[0, 0] = 1.0
    with nnc.memoise():
        assert nnc.exp(x).numpy()[0, 0] == np.exp(np.float32(1))
    assert before.numpy()[0, 0] == 1


def test_deferred_writes_are_recorded_and_traced_ones_refused() -> None:
    x = fresh()

    def write(a: nnc.Tensor) -> nnc.Tensor:
        x[0, 0] = 1.0
        return a

    with pytest.raises(DeferredInplaceError):
        nnc.jit(write)(nnc.ones(1))
    np.testing.assert_array_equal(x.numpy(), HOST)
    held = x.numpy()
    with nnc.deferred():
        y = x * 1
        x[0, 0] = -1.0
    assert x.is_deferred and x[0, 0].item() == -1.0
    np.testing.assert_array_equal(y.numpy(), held)


def test_the_gradient_of_what_was_computed_before_stays() -> None:
    v, x = nnc.variable(HOST), fresh()
    loss = nnc.sum(v * x * x)
    x[1, 2] = 0.0
    loss.backward()
    assert v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), HOST * HOST)


def test_variables_and_their_gradients_are_copied() -> None:
    v = nnc.variable(HOST)
    held = v.detach()
    with nnc.no_grad():
        v[0, 0] = 4.0
    assert v.requires_grad and held.numpy()[0, 0] == 0 and v.numpy()[0, 0] == 4


def test_a_parameter_that_is_written_is_not_seen_in_what_was_read() -> None:
    layer = nn.Linear(4, 3)
    weight = layer.weight.read().detach()
    before = weight.numpy()
    weight[0, 0] = 50.0
    assert layer.weight.read().numpy()[0, 0] == before[0, 0]


def test_settings_that_look_at_each_operation_see_it() -> None:
    x = fresh()
    with nnc.config.using(deterministic=True):
        x[1, 2] = 5.0
    assert x.numpy()[1, 2] == 5


def test_a_stack_with_layers_of_its_own_is_asked() -> None:
    asked: list[Any] = []

    class Watching(Operator):
        def update_slice(self, F: Any, x: Any, piece: Any, *, start: Any, step: Any) -> Any:
            asked.append(start)
            return F.full_like(x, 6.0)

    stack = nnc.make_stack(nnc.stack_for("cpu:0").device, Operator=Watching)
    with nnc.use_device(stack):
        x = nnc.asarray(HOST)
        for _ in range(2):
            x[0, 0] = 3.0
            assert x.numpy()[0, 0] == 6
    assert len(asked) == 2 and SET_ITEM not in stack.accepted


# ---- threads
def test_threads_that_read_see_a_value_before_or_after_a_write() -> None:
    x, stop, wrong = nnc.zeros(20_000), threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            seen = (x + 0.0).numpy()
            if (seen != seen[0]).any():
                wrong.append(seen)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(300):
        x[...] = float(i)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong


def test_a_copy_of_another_thread_stays() -> None:
    x, ready, go, seen = fresh(), threading.Event(), threading.Event(), []

    def hold() -> None:
        mine = nnc.Tensor(x._value)
        ready.set()
        go.wait()
        seen.append(mine.numpy())

    t = threading.Thread(target=hold)
    t.start()
    ready.wait()
    x[1, 2] = 1000.0
    go.set()
    t.join()
    np.testing.assert_array_equal(seen[0], HOST)
    assert x.numpy()[1, 2] == 1000


# ---- what is written is a part of the same memory
@pytest.mark.parametrize(("key", "part", "apart"), [
    (0, 1, True), ((slice(None), 0), (slice(None), 1), False), (slice(0, 1), slice(2, 3), True), ((0, 1), (2, 3), True),
    (slice(0, 2), slice(1, 3), False), (0, 0, False), (..., slice(0, 1), False), ([0], 1, False), (-1, 0, True),
])  # fmt: skip
def test_parts_of_itself_are_written_where_they_lie_apart(key: Any, part: Any, apart: bool) -> None:
    x, want = fresh(), HOST.copy()
    want[key] = want[part].copy()
    row = x[part]
    seen = row.numpy()
    assert written(x, key, row) == apart
    np.testing.assert_array_equal(x.numpy(), want)
    np.testing.assert_array_equal(row.numpy(), seen)
    x[part] = 50.0
    np.testing.assert_array_equal(row.numpy(), seen)


def test_parts_of_itself_that_others_hold_too() -> None:
    x = fresh()
    rows = [x[1], x[1]]
    assert not written(x, 0, rows[0]), "two parts are held"
    y = nnc.asarray(np.arange(100.0))[:10]
    whole, part = y.numpy(), y[3:5]
    other = y[4:6]
    y[0:2] = part
    assert y.numpy().tolist() == [3.0, 4.0, *whole[2:]] and other.numpy().tolist() == [4.0, 5.0]


def test_single_elements_of_a_vector_move() -> None:
    want = np.array([1.0, 2.0, 3.0])
    y = nnc.asarray(want)
    for i, j in ((0, 1), (1, 2), (2, 0), (-1, 1), (0, 0)):
        y[i] = y[j]
        want[i] = want[j]
        assert y.tolist() == want.tolist()
