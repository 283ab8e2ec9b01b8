"""Functions of the host as nodes: called as often as they are written, with the right arrays, in every mode."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.callbacks.called import Array, Called, each_mode
from tests.tensors.ways import in_mode

PAIR = (nnc.TensorSpec((), "float32"), nnc.TensorSpec((3,), "int32"))


# ---- values
@each_mode
def test_a_callback_in_the_middle(mode: str, x: nnc.Tensor) -> None:
    fn = Called(lambda a: np.cumsum(a, axis=1, dtype=a.dtype))
    y = in_mode(mode, lambda x: nnc.callback(fn, x, x * 2.0) + 1.0, x)
    assert y.tolist() == [[1, 3, 7], [7, 15, 25]]
    assert fn.times == 1
    (array,) = fn.seen[0]
    assert (type(array), array.dtype, array.shape) == (np.ndarray, np.float32, (2, 3))


@each_mode
def test_strided_operands(mode: str, x: nnc.Tensor) -> None:
    y = in_mode(mode, lambda x: nnc.callback(lambda a: a * 10, nnc.TensorSpec((2, 2), "float32"), x.T[1:, ::-1]), x)
    assert y.tolist() == [[40, 10], [50, 20]]


@each_mode
def test_what_the_function_does_to_its_arrays_is_not_seen(mode: str, x: nnc.Tensor) -> None:
    def careless(a: Array) -> Array:
        a += 1
        return a

    y = in_mode(mode, lambda x: nnc.callback(careless, x, x) + x, x)
    assert y.tolist() == [[1, 3, 5], [7, 9, 11]]
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
def test_several_results_and_nested_arguments(mode: str, x: nnc.Tensor) -> None:
    def fn(options: dict[str, Any], *rest: Any) -> tuple[float, Array]:
        assert rest == ("text", None)
        return float(options["a"].sum() * options["factor"]), options["b"][0].astype(np.int32) + 1

    def f(x: nnc.Tensor) -> nnc.Tensor:
        total, first = nnc.callback(fn, PAIR, {"a": x, "factor": 2, "b": x * 3.0}, "text", None)
        assert (total.shape, first.dtype) == ((), nnc.int32)
        return nnc.stack([total, *first.astype("float32")])

    assert in_mode(mode, f, x).tolist() == [30, 1, 4, 7]


def test_results_structured_as_a_dict(x: nnc.Tensor) -> None:
    spec = {"low": nnc.TensorSpec((3,), "float32"), "high": nnc.zeros(3)}
    found = nnc.jit(lambda x: nnc.callback(lambda a: {"low": a.min(0), "high": a.max(0)}, spec, x))(x)
    assert found["low"].tolist() == [0, 1, 2]
    assert found["high"].tolist() == [3, 4, 5]


@each_mode
def test_dtypes(mode: str, device: str) -> None:
    for dtype in ("bool", "int8", "uint64", "float16", "bfloat16", "float32"):
        x = nnc.asarray(np.array([[0, 1], [1, 1]])).astype(dtype)
        y = in_mode(mode, lambda x: nnc.callback(lambda a: a[::-1], x, x), x)
        assert y.dtype == x.dtype
        assert y.astype("int32").tolist() == [[1, 1], [0, 1]]


@each_mode
def test_empty_and_scalar_arrays(mode: str, device: str) -> None:
    y = in_mode(mode, lambda x: nnc.callback(lambda a: a.sum(), nnc.TensorSpec((), "float32"), x), nnc.zeros((0, 3)))
    assert y.item() == 0
    y = in_mode(mode, lambda x: nnc.callback(lambda a: np.zeros((2, 0), a.dtype), nnc.TensorSpec((2, 0), "float32"), x),
                nnc.asarray(1.0))
    assert y.shape == (2, 0)


def test_without_operands_compiled_code_calls_it_each_time(device: str) -> None:
    fn = Called(lambda: np.int64(fn.times))
    compiled = nnc.jit(lambda: nnc.callback(fn, nnc.TensorSpec((), "int64")) * 2)
    assert [compiled().item() for _ in range(3)] == [2, 4, 6]
    assert fn.times == 3


def test_named_dimensions(device: str) -> None:
    with nnc.deferred():
        a = nnc.var_arr("a", (nnc.Dim("n"), 2))
        y = nnc.callback(lambda a: a[::-1] + 1, a, a)
    run = nnc.export({"a": a}, {"y": y}).compile(device)
    for n in (1, 3):
        rows = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        assert run(a=rows)["y"].tolist() == (rows[::-1] + 1).tolist()


def test_symbols_of_owl(device: str) -> None:
    a = nnc.var_arr("a", (2,))
    fn = Called(lambda x: x * 2)
    y = nnc.callback(fn, a, a)
    for k in (1.0, 2.0):
        nnc.assign(a, nnc.asarray([k, k + 1]))
        nnc.eval_arr([y])
        nnc.eval_arr([y])  # valid already
        assert nnc.unpack_arr(y).tolist() == [2 * k, 2 * k + 2]
    assert fn.times == 2


# ---- how often
@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
def test_equal_callbacks_are_not_merged(mode: str, x: nnc.Tensor) -> None:
    fn = Called(lambda a: a + fn.times)
    y = in_mode(mode, lambda x: nnc.callback(fn, x, x) - nnc.callback(fn, x, x), x)
    assert fn.times == 2
    assert abs(y.numpy()).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_one_callback_is_called_once_however_often_its_result_is_used(x: nnc.Tensor) -> None:
    fn = Called(lambda a: a)

    def f(x: nnc.Tensor) -> nnc.Tensor:
        y = nnc.callback(fn, x, x)
        return y * y + y

    nnc.jit(f)(x)
    assert fn.times == 1


def test_constants_are_not_folded_through_it(device: str) -> None:
    fn = Called(lambda a: a)
    compiled = nnc.jit(lambda: nnc.callback(fn, nnc.TensorSpec((2,), "float32"), nnc.ones(2)))
    for k in range(1, 4):
        compiled()
        assert fn.times == k


@pytest.mark.parametrize("effect", [False, True])
def test_an_unused_one_is_left_out_unless_it_has_an_effect(effect: bool, x: nnc.Tensor) -> None:
    fn = Called(lambda a: a)

    def f(x: nnc.Tensor) -> nnc.Tensor:
        nnc.callback(fn, x, x, effect=effect)
        return x + 1

    compiled = nnc.jit(f)
    for k in range(1, 4):
        assert compiled(x).tolist() == (x + 1).tolist()
        assert fn.times == (k if effect else 0)


PLACES: dict[str, Any] = {
    "alone": lambda f, x: f(x),
    "in a loop": lambda f, x: nnc.scan(lambda c, _: (f(c), None), x, length=3)[0],
    "under a condition": lambda f, x: nnc.while_loop(lambda i, c: i < 3, lambda i, c: (i + 1, f(c)),
                                                     (nnc.asarray(0), x))[1],
    "in a branch": lambda f, x: nnc.cond(nnc.sum(x) > -1e9, f, lambda c: c, x),
    "in a function": lambda f, x: nnc.jit(f)(x),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("used", [True, False])
def test_several_results_and_an_effect(place: str, used: bool, x: nnc.Tensor) -> None:
    fn = Called(lambda a: (a + 1, {"half": a[:1] * 0.5}))
    spec = (x, {"half": nnc.TensorSpec((1, *x.shape[1:]), "float32")})

    def one(c: nnc.Tensor) -> nnc.Tensor:
        whole, rest = nnc.callback(fn, spec, c, effect=True)
        return whole + rest["half"] if used else c * 2

    wanted = PLACES[place](one, x)
    times = fn.times
    compiled = nnc.jit(lambda x: PLACES[place](one, x))
    for k in (2, 3):
        np.testing.assert_array_equal(compiled(x).numpy(), wanted.numpy())
        assert fn.times == k * times


def test_effects_are_in_order(x: nnc.Tensor) -> None:
    seen: list[str] = []

    def f(x: nnc.Tensor) -> nnc.Tensor:
        y = x
        for k in range(5):
            nnc.callback(lambda a, k=k: seen.append(f"x{k}"), None, x)
            y = nnc.tanh(y)
            nnc.callback(lambda a, k=k: seen.append(f"y{k}"), None, y)
        return x * 2

    compiled = nnc.jit(f)
    for _ in range(2):
        seen.clear()
        assert nnc.callback(lambda: seen.append("before"), None) is None
        compiled(x)
        assert seen == ["before", *[f"{name}{k}" for k in range(5) for name in "xy"]]


def test_effects_beside_updates_of_state(device: str) -> None:
    cell, seen = nnc.Cell(nnc.zeros(2)), []

    @nnc.jit
    def step() -> None:
        value = cell.read()
        nnc.callback(lambda a: seen.append(a.tolist()), None, value)
        cell.write(value + 1)

    for _ in range(3):
        step()
    assert seen == [[0, 0], [1, 1], [2, 2]]
    assert cell.read().tolist() == [3, 3]


def test_effects_in_loops_and_branches(x: nnc.Tensor) -> None:
    seen: list[float] = []

    def body(i: nnc.Tensor, s: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        nnc.callback(lambda i: seen.append(int(i)), None, i)
        return i + 1, s + x[0]

    def f(n: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda i, s: i < n, body, (nnc.asarray(0), nnc.zeros(3)))[1]

    for n in (3, 5):
        seen.clear()
        assert nnc.jit(f)(nnc.asarray(n)).tolist() == [0, n, 2 * n]
        assert seen == list(range(n))


def test_eager_callbacks_keep_nothing_alive(x: nnc.Tensor) -> None:
    def fn(a: Array) -> Array:
        return a

    seen = weakref.ref(fn)
    nnc.callback(fn, x, x)
    del fn
    gc.collect()
    assert seen() is None
