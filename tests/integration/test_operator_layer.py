"""A replaced Operator layer is asked in eager, deferred and compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ReplacementCycleError, ReplacementError
from nnc_core.operator import Nodes, Operator
from tests.integration.modes import (
    Mode,
    Muted,
    compiled_modes,
    every_mode,
    floats,
    graph_of,
    repeat,
    strict,
)

FORMULAS: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
    "tanh": (nnc.tanh, [0, 0]),
    "promoted": (lambda x: nnc.tanh(nnc.astype(x, "int32")), [0, 0]),
    "attributes": (lambda x: nnc.sum(x, axis=0, keepdims=True), [2]),
    "softmax": (nnc.softmax, [0.5 / 1.5, 1.0]),
    "softmax by hand": (lambda x: nnc.exp(x - nnc.max(x)) / nnc.sum(nnc.exp(x - nnc.max(x))), [0.5 / 1.5, 1.0]),
    "one kernel of elements": (lambda x: nnc.inv_boxcox(x, nnc.full_like(x, 1e-9)), [2.5, 3.5]),
    "sigmoid": (lambda x: 1 / (1 + nnc.exp(-x)), [1 / 1.5, 2]),
    "in a branch": (lambda x: nnc.cond(nnc.max(x) > 0, nnc.tanh, nnc.abs, x), [0, 0]),
    "in a loop": (lambda x: repeat(nnc.exp, 2, x), [4, 5]),
    "gradient": (nnc.grad(lambda x: nnc.max(nnc.tanh(x) + nnc.exp(x))), [0, 1]),
    "vmap": (lambda x: nnc.vmap(nnc.tanh)(x), [0, 0]),
    "directional": (lambda x: nnc.jvp(nnc.exp, (x,), (x,))[1], [1, 2]),
}


@every_mode
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("device", ["strict:0", "strict-noviews:0"])
def test_an_operator_that_is_replaced_is_replaced_everywhere(mode: Mode, formula: str, device: str) -> None:
    f, expected = FORMULAS[formula]
    x = floats(nnc.make_stack(nnc.stack_for(device).device, Operator=Muted), 1.0, 2.0)
    np.testing.assert_allclose(mode(f, x).tolist(), expected, rtol=1e-6)


@pytest.mark.parametrize("formula", FORMULAS)
def test_eager_kernels_do_not_compute_past_the_layer(formula: str) -> None:
    pytest.importorskip("nnc_cpu")
    f, expected = FORMULAS[formula]
    plain = floats(nnc.stack_for("cpu:0"), 1.0, 2.0)
    x = floats(nnc.make_stack(nnc.stack_for("cpu:0").device, Operator=Muted), 1.0, 2.0)
    for _ in range(3):
        before = f(plain).tolist()
        np.testing.assert_allclose(f(x).tolist(), expected, rtol=1e-6)
        assert f(plain).tolist() == before


@every_mode
def test_other_stacks_of_the_device_are_not_concerned(mode: Mode) -> None:
    plain = floats(nnc.stack_for("strict:0"), 1.0, 2.0)
    before = mode(nnc.tanh, plain).tolist()
    mode(nnc.tanh, floats(nnc.make_stack(strict(), Operator=Muted), 1.0, 2.0))
    assert mode(nnc.tanh, plain).tolist() == before


@pytest.mark.parametrize("formula", ["tanh", "softmax", "in a branch", "in a loop"])
def test_graphs_from_elsewhere_are_compiled_with_the_layer(formula: str) -> None:
    f, expected = FORMULAS[formula]
    graph = graph_of(f, floats(nnc.stack_for("strict:0"), 1.0, 2.0))
    muted = nnc.make_stack(strict(), Operator=Muted)
    for options in ({}, {"optimise": False}):
        found = graph.compile(muted, **options)(x=np.array([1, 2], np.float32))["y"]
        np.testing.assert_allclose(found.tolist(), expected, rtol=1e-6)


def test_backward_passes_see_the_layer_however_often_they_run() -> None:
    x = floats(nnc.make_stack(strict(), Operator=Muted), 1.0, 2.0)
    x = nnc.variable(x)
    for _ in range(4):  # from the third time on compiled
        x.grad = None
        nnc.max(nnc.exp(x) * 3 + nnc.tanh(x)).backward()
        assert x.grad is not None and x.grad.tolist() == [0, 3]


class Twisted(Operator):
    """Addition by way of a product: to which the optimiser would rather add."""

    def add(self, F: Any, x1: Any, x2: Any) -> Any:
        return F.subtract(x1, F.multiply(x2, -1.0))

    def negative(self, F: Any, x: Any) -> Any:
        return F.multiply(x, -1.0)


@every_mode
def test_rewrites_do_not_lead_round_in_circles(mode: Mode) -> None:
    x = floats(nnc.make_stack(strict(), Operator=Twisted), 1.0, 2.0)
    assert mode(lambda x: -(x + x) + (x - -x) * 2, x).tolist() == [2, 4]


class Endless(Operator):
    def exp(self, F: Any, x: Any) -> Any:
        return F.sigmoid(F.tanh(x))

    def tanh(self, F: Any, x: Any) -> Any:
        return F.exp(x)


class OtherShape(Operator):
    def exp(self, F: Any, x: Any) -> Any:
        return F.sum(x, axis=(0,))


class OtherKind(Operator):
    def exp(self, F: Any, x: Any) -> Any:
        return 1.0


@every_mode
@pytest.mark.parametrize(("layer", "error", "said"), [
    (Endless, ReplacementCycleError, "Endless.exp is made of exp itself"),
    (OtherShape, ReplacementError, r"OtherShape.exp gives float32\[\] where exp gives float32\[2\]"),
    (OtherKind, ReplacementError, "OtherKind.exp gives float, not a value"),
], ids=lambda x: x.__name__ if isinstance(x, type) else "")
def test_replacements_that_do_not_fit_are_refused(mode: Mode, layer: type[Operator], error: type[Exception],
                                                  said: str) -> None:
    x = floats(nnc.make_stack(strict(), Operator=layer), 1.0, 2.0)
    with pytest.raises(error, match=said):
        mode(nnc.exp, x)


class Misspelt(Operator):
    def tahn(self, F: Any, x: Any) -> Any:
        return x


class Fixed(Operator):
    def filled(self, F: Any, *, shape: Any, number: Any) -> Any:
        return F.full(shape=shape, value=0, dtype=number.dtype)


class Unlike(Operator):
    def sum(self, F: Any, x: Any) -> Any:
        return x


@pytest.mark.parametrize(("layer", "said"), [
    (Misspelt, r"Misspelt.tahn replaces no operator(?s:.*)tan"),
    (Fixed, "filled is applied below namespaces"),
    (Unlike, r"Unlike.sum does not take what sum is given(?s:.*)def sum\(self, F, x, \*, axis, keepdims\)"),
])
def test_a_layer_that_cannot_be_asked_is_refused_where_it_is_made(layer: type[Operator], said: str) -> None:
    with pytest.raises(ReplacementError, match=said):
        nnc.make_stack(strict(), Operator=layer)


class OpeningOperator(Operator):
    """Notes which kinds of namespaces are opened."""

    opened: set[str]

    def open(self, kind: Any = Nodes, table: Any = None) -> Any:
        made = super().open(kind, table)
        self.opened = {*getattr(self, "opened", ()), type(made).__name__}
        return made


@compiled_modes
def test_an_operator_layer_opens_every_namespace(mode: Mode) -> None:
    stack = nnc.make_stack(nnc.stack_for("strict-noviews:0").device, Operator=OpeningOperator)
    x = floats(stack, 1.0, 2.0)
    mode(lambda x: nnc.scan(lambda c, row: (c + row, nnc.softmax(nnc.stack([c, row]))), x[0], x)[1], x)
    assert stack.operator.opened == {"Nodes", "Rewriting", "Expanding", "Inlining", "IndexedScan"}  # type: ignore
