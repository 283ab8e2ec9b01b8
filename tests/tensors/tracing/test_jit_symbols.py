"""What traced tensors cannot do: give their values while they are traced, and anything afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ConcretizationError, LeakedTraceError, SymbolValueError
from tests.tensors.faults import fails

ASK: dict[str, Callable[[Any], Any]] = {
    "bool": bool, "int": int, "float": float, "item": lambda s: s.item(), "numpy": lambda s: s.numpy(),
    "tolist": lambda s: s.tolist(),
    "index": lambda s: range(s.astype("int32")), "asarray": np.asarray, "realize": lambda s: s.realize(),
    "wait": lambda s: s.wait(), "and": lambda s: s and 1, "compared": lambda s: s > 0 or s < 0,
    "in": lambda s: s in [1.0, 2.0], "contains": lambda s: 1.0 in nnc.stack([s, s]),
    "sorted": lambda s: sorted([s, s]), "max": lambda s: max(s, s), "array of a list": lambda s: np.asarray([s, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("how", ASK)
def test_python_asks_for_a_value(x: nnc.Tensor, how: str) -> None:
    """The error names the line that asks, the function, and the argument that the value depends on."""

    def scaled(x: Any, unused: Any) -> Any:
        s = nnc.sum(x * 2)
        ASK[how](s)
        return x

    with fails(ConcretizationError, "'scaled'", "argument `x`", "test_jit_symbols.py", "nnc.where", "static_argnums"):
        nnc.jit(scaled)(x, x)
    assert not nnc.is_deferred_mode()
    scaled(x, x)


def test_the_error_is_a_type_error(x: nnc.Tensor) -> None:
    assert issubclass(ConcretizationError, TypeError) and issubclass(ConcretizationError, SymbolValueError)

    def branch(x: Any) -> Any:
        return x if x.sum() > 0 else -x  # here

    with pytest.raises(TypeError) as caught:
        nnc.jit(branch)(x)
    text = str(caught.value)
    assert "the truth value of a symbol bool[]" in text and "in branch" in text and "`x`" in text


@pytest.mark.parametrize(("call", "named"), [
    (lambda f, x: f({"a": [x, x + 1]}), "argument `tree['a'][1]`"),
    (lambda f, x: f(tree={"a": (x, x + 1)}), "argument `tree['a'][1]`"),
])
def test_a_leaf_of_an_argument_is_named(x: nnc.Tensor, call: Any, named: str) -> None:
    def f(tree: Any) -> Any:
        return x if tree["a"][1].sum() > 0 else tree

    with fails(TypeError, named):
        call(nnc.jit(f), x)


def test_everything_that_it_depends_on_is_named(x: nnc.Tensor) -> None:
    w = nnc.Cell(nnc.ones(3), "weight")

    @nnc.jit
    def f(x: Any, *more: Any, y: Any) -> Any:
        return float((x * w.read() + more[1]).sum() + y.sum() * 0)

    with fails(TypeError, "argument `x`", "cell 'weight'", "argument `more[1]`", "argument `y`"):
        f(x, x + 1, x + 2, y=x + 3)


def test_a_value_inside_a_gradient(x: nnc.Tensor) -> None:
    def loss(x: Any) -> Any:
        return (x * x).sum() if x.sum() > 0 else x.sum()

    with fails(TypeError, "argument `x`", "in loss"):
        nnc.jit(lambda x: nnc.grad(loss)(x))(x)


def test_no_branch_is_taken_silently(device: str) -> None:
    """Of the parent: the first branch was baked in, and the second call gave a wrong result."""

    def f(x: Any) -> Any:
        if x.sum().item() > 0:
            return x - 1
        return x + 1

    net = nnc.jit(f)
    for x in (nnc.ones(2), -nnc.ones(2)):
        with pytest.raises(TypeError):
            net(x)


def test_in_deferred_mode_it_computes(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
        assert y.sum() > 0 and float(y.sum()) == 30.0 and y.tolist()[0] == [0.0, 2.0, 4.0]


# ---- leaks
USE: dict[str, Callable[[Any], Any]] = {
    "add": lambda t: t + 1, "reversed add": lambda t: 1 + t, "unary": nnc.exp, "reduced": lambda t: t.sum(),
    "numpy": lambda t: t.numpy(), "bool": lambda t: bool(t[0, 0]), "item": lambda t: t.item(),
    "realize": lambda t: t.realize(), "indexed": lambda t: t[0], "assigned": lambda t: t.__setitem__(0, 1.0),
    "in place": lambda t: t.__iadd__(1), "rows": lambda t: list(t), "detached": lambda t: t.detach() * 2,
    "matmul": lambda t: t @ t.T, "jit": lambda t: nnc.jit(lambda y: y * 2)(t), "grad": nnc.grad(lambda t: t.sum()),
    "closure": lambda t: nnc.jit(lambda y: y * t)(nnc.ones((2, 3))), "deferred": lambda t: _deferred(t),
    "where": lambda t: nnc.where(t > 0, 1.0, 2.0),
}  # fmt: skip


def _deferred(t: Any) -> Any:
    with nnc.deferred():
        return t + 1


@pytest.mark.parametrize("how", USE)
def test_a_leaked_tensor_is_refused(x: nnc.Tensor, how: str) -> None:
    leaked = []

    @nnc.jit
    def traced(x: Any) -> Any:
        leaked.append(x * 2)
        return x

    traced(x)
    (t,) = leaked
    if how == "item":
        t = _last(x)
    with fails(LeakedTraceError, "outlived", "test_jit_symbols.py", "return it from the function"):
        USE[how](t)
    assert "symbol" in repr(t) and t.shape in ((2, 3), ())


def _last(x: nnc.Tensor) -> nnc.Tensor:
    leaked: list[nnc.Tensor] = []
    nnc.jit(lambda x: leaked.append(x.sum()) or x)(x)
    return leaked[0]


def test_the_line_and_the_function_are_named(x: nnc.Tensor) -> None:
    leaked = []

    def forward(x: Any) -> Any:
        leaked.append(nnc.tanh(x))
        return x

    nnc.jit(forward)(x)
    with fails(RuntimeError, "'forward'", "in forward", operator="multiply"):
        leaked[0] * 2


def test_a_leaked_argument(x: nnc.Tensor) -> None:
    leaked = []
    nnc.jit(lambda x: leaked.append(x) or x)(x)
    with fails(LeakedTraceError, "outlived"):
        leaked[0] + 1


def test_a_leak_of_a_trace_that_failed(x: nnc.Tensor) -> None:
    leaked = []

    def f(x: Any) -> Any:
        leaked.append(x * 2)
        raise KeyError

    with pytest.raises(KeyError):
        nnc.jit(f)(x)
    with fails(LeakedTraceError, "outlived"):
        leaked[0] + 1
