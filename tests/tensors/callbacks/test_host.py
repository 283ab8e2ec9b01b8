"""Functions of the host as nodes: called as often as they are written, with the right arrays, in every mode."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    AxisError,
    DTypeError,
    ExecutionError,
    GradientError,
    NotSupportedError,
    OperandError,
    ShapeError,
)
from nnc_core.io import save_graph
from tests.tensors.ways import in_mode

Array = np.ndarray[Any, Any]
PAIR = (nnc.TensorSpec((), "float32"), nnc.TensorSpec((3,), "int32"))


class Called:
    """A function that notes its calls."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn, self.seen = fn, []
        self.__name__ = getattr(fn, "__name__", "fn")

    def __call__(self, *args: Any) -> Any:
        self.seen.append(args)
        return self.fn(*args)

    @property
    def times(self) -> int:
        return len(self.seen)


each_mode = pytest.mark.parametrize("mode", ["eager", "deferred", "compiled", "exported"])


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


# ---- derivatives
def norm(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
    def forward(a: Array, b: Array) -> Array:
        return np.sqrt(a * a + b * b)

    def back(g: Array, a: Array, b: Array) -> tuple[Array, Array]:
        r = np.sqrt(a * a + b * b)
        return g * a / r, g * b / r

    return nnc.callback(forward, x, x, y, vjp=back)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_vjp(compiled: bool, x: nnc.Tensor) -> None:
    y = x + 1

    def f(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(norm(nnc.tanh(x), y) * x)

    def known(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sqrt(nnc.square(nnc.tanh(x)) + nnc.square(y)) * x)

    gradient = nnc.grad(f, (0, 1))
    for found, wanted in zip((nnc.jit(gradient) if compiled else gradient)(x, y), nnc.grad(known, (0, 1))(x, y),
                             strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_a_vjp_of_several_results_and_nested_arguments(x: nnc.Tensor) -> None:
    def forward(arguments: dict[str, Array], index: Array) -> tuple[Array, Array, Array]:
        return arguments["a"] * 2, arguments["b"].sum(), index

    def back(g: tuple[Array, Array, Array], arguments: dict[str, Array], index: Array) -> tuple[Any, None]:
        return {"a": g[0] * 2, "b": np.full_like(arguments["b"], g[1])}, None

    def f(a: nnc.Tensor, b: nnc.Tensor, use_second: bool) -> nnc.Tensor:
        spec = (a, nnc.TensorSpec((), "float32"), nnc.TensorSpec((), "int64"))
        first, second, _ = nnc.callback(forward, spec, {"a": a, "b": b}, nnc.asarray(3), vjp=back)
        return nnc.sum(first) + (second * 5.0 if use_second else 0.0)

    for use_second, wanted in ((True, 5.0), (False, 0.0)):
        da, db = nnc.grad(f, (0, 1))(x, x[0], use_second)
        assert da.tolist() == [[2, 2, 2], [2, 2, 2]]
        assert db.tolist() == [wanted] * 3


def test_backward_of_variables(device: str) -> None:
    v = nnc.variable([1.0, 2.0])
    fn = Called(lambda a: a**2)
    pull = Called(lambda g, a: 2 * g * a)
    nnc.sum(nnc.callback(fn, v, v, vjp=pull)).backward()
    assert v.grad is not None
    assert v.grad.tolist() == [2, 4]
    assert (fn.times, pull.times) == (1, 1)


def test_without_a_vjp_there_is_no_derivative(x: nnc.Tensor) -> None:
    def opaque(a: Array) -> Array:
        return a

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.callback(opaque, x, x))

    with pytest.raises(GradientError, match=r"(?s)opaque has no vjp.*test_host.py:\d+ in f.*vjp=") as caught:
        nnc.grad(f)(x)
    assert "stop_gradient" in str(caught.value)
    with pytest.raises(GradientError, match="no derivative in forward mode"):
        nnc.jvp(f, (x,), (x,))
    g = nnc.grad(lambda x: nnc.sum(nnc.callback(opaque, x, nnc.stop_gradient(x)) * x))(x)
    assert g.tolist() == x.tolist()


def test_a_vjp_has_no_derivative(x: nnc.Tensor) -> None:
    f = nnc.grad(lambda x: nnc.sum(norm(x, x + 1)))
    with pytest.raises(GradientError, match="back has no vjp"):
        nnc.grad(lambda x: nnc.sum(f(x)))(x)


@pytest.mark.parametrize(("returned", "said"), [
    (lambda g, a, b: g, "1 cotangents for 2 arguments"),
    (lambda g, a, b: (g, g, g), "3 cotangents for 2 arguments"),
    (lambda g, a, b: (g[0], g), "the spec says float32\\[2,3\\]"),
    (lambda g, a, b: (g.astype(np.float64), g), "returned float64"),
])
def test_wrong_cotangents_are_named(returned: Callable[..., Any], said: str, x: nnc.Tensor) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.callback(lambda a, b: a, x, x, x * 2.0, vjp=returned))

    with pytest.raises((OperandError, ShapeError, DTypeError), match=said) as caught:
        nnc.grad(f)(x)
    assert "test_host.py" in str(caught.value)


# ---- errors
@pytest.mark.parametrize(("fn", "error", "said"), [
    (lambda a: a[0], ShapeError, "returned float32[3]; the spec says float32[2,3]"),
    (lambda a: a.astype(np.float64), DTypeError, "returned float64[2, 3]; the spec says float32[2,3]"),
    (lambda a: a.tolist(), OperandError, "returned [[float, float, float], [float, float, float]], which is not"),
    (lambda a: None, OperandError, "returned None, which is not structured as the spec says"),
    (lambda a: "text", OperandError, "returned str; the spec says float32[2,3]"),
    (lambda a: (a, a), OperandError, "returned (ndarray, ndarray), which is not structured"),
    (lambda a: 1.0, ShapeError, "returned float64[]; the spec says float32[2,3]"),
])
@each_mode
def test_wrong_results_are_named(mode: str, fn: Any, error: type[Exception], said: str, x: nnc.Tensor) -> None:
    with pytest.raises(error) as caught:
        in_mode(mode, lambda x: nnc.callback(fn, x, x), x)
    text = str(caught.value)
    assert f"<lambda> {said}" in text
    assert "test_host.py" in text
    assert "callback" in text
    assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]]


@each_mode
def test_what_the_function_raises_comes_through(mode: str, x: nnc.Tensor) -> None:
    def failing(a: Array) -> Array:
        if broken:
            raise KeyError("no such thing")
        return a

    broken = True
    with pytest.raises(ExecutionError, match=r"(?s)failing raised KeyError: 'no such.*at: test_host.py:\d+ in") as e:
        in_mode(mode, lambda x: nnc.callback(failing, x, nnc.tanh(x)) * 2.0, x)
    causes: list[BaseException | None] = [e.value]
    while causes[-1] is not None:
        causes.append(causes[-1].__cause__)
    assert any(isinstance(c, KeyError) for c in causes)
    broken = False
    y = in_mode(mode, lambda x: nnc.callback(failing, x, nnc.tanh(x)) * 2.0, x)
    assert y.tolist() == (nnc.tanh(x) * 2.0).tolist()


def test_the_same_graph_runs_again_after_a_failure(x: nnc.Tensor) -> None:
    fn = Called(lambda a: a if fn.times > 1 else 1 / 0)
    compiled = nnc.jit(lambda x: nnc.callback(fn, x, x))
    with pytest.raises(ExecutionError, match="ZeroDivisionError"):
        compiled(x)
    assert compiled(x).tolist() == x.tolist()


def test_warnings_of_numpy_are_the_functions_own(device: str) -> None:
    def f() -> nnc.Tensor:
        return nnc.callback(lambda a: 1 / a, nnc.TensorSpec((1,), "float32"), nnc.zeros(1))

    with pytest.warns(RuntimeWarning, match="divide by zero"):
        f()
    with np.errstate(divide="ignore"):
        assert f().tolist() == [np.inf]


def test_a_spec_that_says_nothing(x: nnc.Tensor) -> None:
    with pytest.raises(OperandError, match="says nothing of a shape and a dtype"):
        nnc.callback(lambda a: a, (2, 3), x)


def test_graphs_with_callbacks_are_not_written(x: nnc.Tensor, tmp_path: Path) -> None:
    with nnc.deferred():
        y = nnc.callback(lambda a: a, x, x)
    with pytest.raises(NotSupportedError, match=r"test_host\.py"):
        save_graph(nnc.export({"x": x}, {"y": y}), tmp_path / "graph.nnc")


def test_it_breaks_capture_and_says_so(x: nnc.Tensor) -> None:
    compiled = nnc.jit(lambda x: nnc.callback(np.sin, x, x) + nnc.callback(np.cos, x, x))
    compiled(x)  # warnings are errors here
    text = compiled.lower(x).explain()
    assert "\nnot captured as a whole: callback (2) on the host; the device is waited for each time" in text
    assert "[host; " in text
    assert "not captured" not in nnc.jit(lambda x: x + 1).lower(x).explain()


# ---- printing
@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled", "exported"])
def test_debug_print(mode: str, x: nnc.Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    y = in_mode(mode, lambda x: nnc.debug_print("x = {}, {:.1f} of {n}", x * 2.0, nnc.sum(x), n=7) + 1.0, x)
    assert capsys.readouterr().out == "x = [[ 0.  2.  4.]\n [ 6.  8. 10.]], 15.0 of 7\n"
    assert y.tolist() == (x * 2.0 + 1.0).tolist()


def test_debug_print_once_a_call_and_in_order(x: nnc.Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        nnc.debug_print("start")
        y = nnc.debug_print("{}", x[0])
        nnc.debug_print("{}", (y * 2)[1])  # nobody uses it
        return y

    compiled = nnc.jit(f)
    for _ in range(2):
        assert compiled(x).tolist() == [0, 1, 2]
        assert capsys.readouterr().out == "start\n[0. 1. 2.]\n2.0\n"


@pytest.mark.parametrize("compiled", [False, True])
def test_derivatives_pass_through_debug_print(compiled: bool, x: nnc.Tensor,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.debug_print("{}", x * x)[0])

    gradient = nnc.jit(nnc.grad(f)) if compiled else nnc.grad(f)
    assert gradient(x).tolist() == [[0, 2, 4], [0, 0, 0]]
    assert capsys.readouterr().out.count("\n") == 2  # one array of two rows
    assert nnc.jvp(f, (x,), (nnc.ones_like(x),))[1].item() == 6


def test_debug_print_with_a_wrong_format(x: nnc.Tensor) -> None:
    with pytest.raises(ExecutionError, match=r"(?s)print_ raised IndexError.*test_host\.py"):
        nnc.debug_print("{} {}", x)


# ---- Owl
@each_mode
def test_owl(mode: str, x: nnc.Tensor) -> None:
    def collatz(n: float) -> float:
        return n / 2 if n % 2 == 0 else 3 * n + 1

    def digits(a: float, b: float) -> float:
        return 10 * a + b

    assert in_mode(mode, lambda x: nnc.host_map(collatz, x), x).tolist() == [[0, 4, 1], [10, 2, 16]]
    assert in_mode(mode, lambda x: nnc.host_fold(digits, 7, x, axis=1), x).tolist() == [[7012], [7345]]
    assert in_mode(mode, lambda x: nnc.host_fold(digits, 1, x, axis=-2), x).tolist() == [[103, 114, 125]]
    assert in_mode(mode, lambda x: nnc.host_fold(digits, 1, x), x).item() == 1012345
    assert in_mode(mode, lambda x: nnc.host_scan(digits, x, axis=0), x).tolist() == [[0, 1, 2], [3, 14, 25]]
    assert in_mode(mode, lambda x: nnc.host_scan(digits, x, axis=1), x).tolist() == [[0, 1, 12], [3, 34, 345]]
    assert in_mode(mode, lambda x: nnc.host_scan(digits, x), x).tolist() == [[0, 1, 12], [123, 1234, 12345]]
    assert in_mode(mode, lambda x: nnc.delay(lambda a: a[::-1], x), x).tolist() == [[3, 4, 5], [0, 1, 2]]
    assert in_mode(mode, lambda x: nnc.delay_array((3, 2), lambda xs: xs[0].T + xs[1].T, [x, x]), x).tolist() == [
        [0, 6], [2, 8], [4, 10]]


@each_mode
def test_lazy_print(mode: str, x: nnc.Tensor, capsys: pytest.CaptureFixture[str]) -> None:
    assert in_mode(mode, lambda x: nnc.lazy_print(x * 1.0) * 1.0, x).tolist() == x.tolist()
    assert capsys.readouterr().out == "float32[2, 3]\n[[0. 1. 2.]\n [3. 4. 5.]]\n"
    options: dict[str, Any] = {"header": False, "fmt": lambda v: f"<{v:.0f}>", "max_row": 2, "max_col": 2}
    in_mode(mode, lambda x: nnc.lazy_print(x * 1.0, **options) + 0.0, x)
    assert capsys.readouterr().out == "[[<0> ... <2>]\n [<3> ... <5>]]\n"


def test_owl_on_what_there_is_not(x: nnc.Tensor) -> None:
    with pytest.raises(AxisError, match="host_scan: axis 2 is out of range for 2 dimensions"):
        nnc.host_scan(max, x, axis=2)
    with pytest.raises(ExecutionError, match="odd raised ValueError: odd"):
        def odd(v: float) -> float:
            raise ValueError("odd")

        nnc.host_map(odd, x)
    assert nnc.host_map(abs, nnc.zeros((0, 2))).shape == (0, 2)
    assert nnc.host_fold(max, 3, nnc.zeros((0, 2), dtype="int32"), axis=0).tolist() == [[3, 3]]
