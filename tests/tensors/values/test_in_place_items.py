"""`x[key] = v` writes where x lies if nobody else can see it: nobody else ever sees it change."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, DeferredInplaceError, OutOfRangeError, ShapeError
from nnc_core.operator import Operator
from nnc_core.values.accepted import SET_ITEM
from nnc_core.values.cell import Cell
from nnc_core.values.from_host import kept_value
from nnc_core.values.in_place import _OWNER

pytestmark = [pytest.mark.skipif(not any(_OWNER), reason="this Python does not count references"),
              pytest.mark.skipif(nnc.stack_for(None).device.spec.kind != "cpu", reason="cpu:0 writes in place")]
HOST = np.arange(12, dtype=np.float32).reshape(3, 4)


def fresh() -> nnc.Tensor:
    """A tensor in memory of its own, which nobody else refers to."""
    return nnc.asarray(HOST)


def place(x: nnc.Tensor) -> int:
    address: int = x._value.array.__array_interface__["data"][0]  # type: ignore[union-attr]
    return address


def written(x: nnc.Tensor, key: Any = (1, 2), value: Any = 100.0) -> bool:
    """Write; True if nothing was copied."""
    before = place(x)
    x[key] = value
    return place(x) == before


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


# ---- holders: each sees what it saw
def _array(x: nnc.Tensor) -> Any:
    return x._value.array


HOLDERS: dict[str, Callable[[nnc.Tensor], Any]] = {
    "another tensor": lambda x: nnc.Tensor(x._value),
    "to the same device": lambda x: x.to("cpu:0"),
    "detached": lambda x: x.detach(),
    "a row": lambda x: x[1],
    "a range": lambda x: x[0:2, 1:3],
    "a transpose": lambda x: x.T,
    "a reshape": lambda x: nnc.reshape(x, (4, 3)),
    "a broadcast": lambda x: nnc.broadcast_to(x, (2, 3, 4)),
    "a view of a view": lambda x: x.T[1:][0],
    "rows by iteration": lambda x: list(x),
    "a squeeze": lambda x: nnc.expand_dims(x, 0),
    "a list": lambda x: [nnc.Tensor(x._value)],
    "NumPy's view": lambda x: np.asarray(x, copy=False),
    "a view of NumPy's view": lambda x: np.asarray(x, copy=False)[1:],
    "a memoryview": lambda x: memoryview(np.asarray(x, copy=False)),
    "DLPack": lambda x: np.from_dlpack(x),
    "a capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
    "a borrower": lambda x: nnc.asarray(np.asarray(x, copy=False), copy=False),
    "a pointer's owner": lambda x: (np.asarray(x, copy=False), _array(x).ctypes.data_as(ctypes.c_void_p)),
    "a cell": lambda x: Cell(x, "state"),
    "a parameter": lambda x: nn.Parameter(x),
    "a generator's step": lambda x: (row for row in [nnc.Tensor(x._value)]),
    "a closure": lambda x: partial(_itself, nnc.Tensor(x._value)),
    "a deferred sum": lambda x: _deferred(x),
    "a tape": lambda x: _taped(x),
    "a gradient": lambda x: _with_gradient(x),
    "a weak reference": lambda x: weakref.ref(_array(x)),
}  # fmt: skip


def _itself(x: nnc.Tensor) -> nnc.Tensor:
    return x


def _deferred(x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        return x * 1.0


def _taped(x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
    v = nnc.variable(HOST)
    return v, v * x


def _with_gradient(x: nnc.Tensor) -> nnc.Tensor:
    v = nnc.variable(HOST)
    v.grad = x
    return v


SEEN: dict[str, Callable[[Any], Any]] = {
    "a row": lambda h: (h.numpy(), HOST[1]), "a range": lambda h: (h.numpy(), HOST[0:2, 1:3]),
    "a transpose": lambda h: (h.numpy(), HOST.T), "a reshape": lambda h: (h.numpy(), HOST.reshape(4, 3)),
    "a broadcast": lambda h: (h.numpy(), np.broadcast_to(HOST, (2, 3, 4))),
    "a view of a view": lambda h: (h.numpy(), HOST.T[1]),
    "rows by iteration": lambda h: (np.stack([r.numpy() for r in h]), HOST),
    "a squeeze": lambda h: (h.numpy()[0], HOST), "a list": lambda h: (h[0].numpy(), HOST),
    "a view of NumPy's view": lambda h: (h, HOST[1:]), "a capsule": lambda h: (np.from_dlpack(_Capsule(h)), HOST),
    "a pointer's owner": lambda h: (h[0], HOST), "a cell": lambda h: (h.read().numpy(), HOST),
    "a parameter": lambda h: (h.numpy(), HOST), "a generator's step": lambda h: (next(h).numpy(), HOST),
    "a closure": lambda h: (h().numpy(), HOST), "a tape": lambda h: (_gradient_of(h), HOST),
    "a gradient": lambda h: (h.grad.numpy(), HOST), "a weak reference": lambda h: (HOST if h() is None else h(), HOST),
}  # fmt: skip


class _Capsule:
    """What has a capsule, for those who ask for one."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _gradient_of(tape: tuple[nnc.Tensor, nnc.Tensor]) -> Any:
    v, y = tape
    nnc.sum(y).backward()
    assert v.grad is not None
    return v.grad.numpy()


@pytest.mark.parametrize("name", HOLDERS)
def test_whoever_holds_it_sees_what_it_saw(name: str) -> None:
    x = fresh()
    holder = HOLDERS[name](x)
    assert not written(x), "somebody holds it"
    seen, want = SEEN.get(name, lambda h: (np.asarray(h), HOST))(holder)
    np.testing.assert_array_equal(seen, want)
    assert x.numpy()[1, 2] == 100


@pytest.mark.parametrize("name", HOLDERS)
def test_and_lets_go_of_it(name: str) -> None:
    x = fresh()
    holder = HOLDERS[name](x)
    del holder
    x[0, 0] = 1.0
    assert written(x)


def test_the_value_that_is_written_keeps_its_own() -> None:
    x, row = fresh(), nnc.asarray(HOST[0] + 50)
    x[1] = row
    x[1, 0] = -1.0
    row[2] = -2.0
    np.testing.assert_array_equal(row.numpy(), [50, 51, -2, 53])
    np.testing.assert_array_equal(x.numpy()[1], [-1, 51, 52, 53])


@pytest.mark.parametrize("write", [lambda x: x.__setitem__(slice(1, None), x[:-1]), lambda x: x.__setitem__(0, x[2]),
                                   lambda x: x.__setitem__(..., x), lambda x: x.__setitem__(slice(None), x[::-1])])
def test_a_part_of_itself_is_read_before_it_is_written(write: Callable[[Any], None]) -> None:
    x, want = fresh(), HOST.copy()
    write(x)
    copied = HOST.copy()
    write(want if want.base is None else copied)
    np.testing.assert_array_equal(x.numpy(), want)


def test_a_row_is_written_apart_from_its_matrix() -> None:
    x = fresh()
    row = x[1]
    row[0] = 77.0
    assert row.numpy()[0] == 77
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_the_last_holder_of_a_part_may_write_it() -> None:
    row = fresh()[1]
    row[0] = 77.0
    np.testing.assert_array_equal(row.numpy(), [77, 5, 6, 7])


def test_a_broadcast_is_never_written_where_it_lies() -> None:
    x = nnc.broadcast_to(nnc.asarray(HOST[0]), (3, 4))
    x[0, 0] = 9.0
    np.testing.assert_array_equal(x.numpy(), [[9, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]])


def test_borrowed_memory_is_never_written() -> None:
    theirs = HOST.copy()
    x = nnc.asarray(theirs, copy=False)
    x[0, 0] = 9.0
    assert theirs[0, 0] == 0 and x.numpy()[0, 0] == 9


def test_memory_that_is_kept_is_never_written() -> None:
    frozen = HOST.copy()
    x = nnc.Tensor(kept_value(frozen, nnc.stack_for(None)))
    x[0, 0] = 9.0
    assert frozen[0, 0] == 0 and x.numpy()[0, 0] == 9


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


def test_deferred_and_traced_writes_are_refused_as_before() -> None:
    x = fresh()
    with nnc.deferred(), pytest.raises(DeferredInplaceError):
        x[0, 0] = 1.0
    np.testing.assert_array_equal(x.numpy(), HOST)


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
