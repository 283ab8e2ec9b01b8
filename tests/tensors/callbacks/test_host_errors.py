"""Functions of the host that fail, and those that print; Owl's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import (
    AxisError,
    DTypeError,
    ExecutionError,
    NotSupportedError,
    OperandError,
    ShapeError,
)
from nnc_core.io import save_graph
from tests.tensors.callbacks.called import Array, Called, each_mode
from tests.tensors.ways import in_mode


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
    assert "test_host_errors.py" in text
    assert "callback" in text
    assert (x + 1).tolist() == [[1, 2, 3], [4, 5, 6]]


@each_mode
def test_what_the_function_raises_comes_through(mode: str, x: nnc.Tensor) -> None:
    def failing(a: Array) -> Array:
        if broken:
            raise KeyError("no such thing")
        return a

    broken = True
    with pytest.raises(ExecutionError, match=r"(?s)failing raised KeyError: 'no.*at: test_host_errors.py:\d+ in") as e:
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
    with pytest.raises(NotSupportedError, match=r"test_host_errors\.py"):
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
    with pytest.raises(ExecutionError, match=r"(?s)print_ raised IndexError.*test_host_errors\.py"):
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
