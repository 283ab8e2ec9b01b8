"""Functions with derivatives of their own: eager, deferred, compiled, in graphs, to second order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

TWICE = 2.0  # what the rules below multiply the true derivative by, so that one sees which was used


def sine_vjp() -> nnc.custom_vjp:
    f = nnc.custom_vjp(lambda x: nnc.sin(x))
    return f.defvjp(lambda x: (nnc.sin(x), nnc.cos(x)), lambda c, g: (g * c * TWICE,))


def sine_jvp() -> nnc.custom_jvp:
    f = nnc.custom_jvp(lambda x: nnc.sin(x))
    return f.defjvp(lambda primals, tangents: (nnc.sin(primals[0]), tangents[0] * nnc.cos(primals[0]) * TWICE))


def deferring(f: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any) -> Any:
        with nnc.deferred():
            return f(*args)

    return recorded


BOTH = pytest.mark.parametrize("make", [sine_vjp, sine_jvp])
Make = Callable[[], Any]


@BOTH
def test_the_rule_takes_the_place_of_the_derivative(x: nnc.Tensor, make: Make) -> None:
    f = make()
    np.testing.assert_array_equal(f(x).numpy(), nnc.sin(x).numpy())
    wanted = (nnc.ones((2, 3)) * nnc.cos(x) * TWICE).numpy()
    v = nnc.variable(x)
    f(v).sum().backward()
    assert v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), wanted)
    np.testing.assert_array_equal(nnc.grad(lambda t: f(t).sum())(x).numpy(), wanted)


@BOTH
def test_second_order(x: nnc.Tensor, make: Make) -> None:
    """The derivative of the rule, which is -2 sin: through residuals too."""
    f = make()
    second = nnc.grad(lambda t: nnc.grad(lambda u: f(u).sum())(t).sum())
    np.testing.assert_allclose(second(x).numpy(), -TWICE * np.sin(x.numpy()), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(nnc.jit(second)(x).numpy(), second(x).numpy(), rtol=1e-5, atol=1e-6)
    v = nnc.variable(x)
    (first,) = nnc.gradients(f(v).sum(), [v], create_graph=True)
    assert first is not None
    (again,) = nnc.gradients(first.sum(), [v])
    assert again is not None
    np.testing.assert_array_equal(again.numpy(), second(x).numpy())


def square_root() -> nnc.custom_vjp:
    """Its forward calls the function itself, whose own steps would have no such derivative."""
    f = nnc.custom_vjp(lambda x: nnc.stop_gradient(nnc.sqrt(x)))

    def forward(x: nnc.Tensor) -> Any:
        y = f(x)
        return y, y

    return f.defvjp(forward, lambda y, g: (g / (2 * y),))


@pytest.mark.parametrize("run", [lambda f: f, nnc.jit, deferring], ids=["eager", "compiled", "deferred"])
def test_a_forward_that_calls_the_function_itself(device: str, run: Any) -> None:
    """To any order, residuals are differentiated by the rule as well, and examples side by side."""
    f, x = square_root(), nnc.asarray([1.0, 4.0, 9.0])
    root = x.numpy() ** 0.5
    np.testing.assert_allclose(run(nnc.grad(lambda t: f(t).sum()))(x).numpy(), 0.5 / root, rtol=1e-6)
    second = nnc.grad(lambda t: nnc.grad(lambda u: f(u).sum())(t).sum())
    np.testing.assert_allclose(run(second)(x).numpy(), -0.25 / root**3, rtol=1e-5)
    third = nnc.vmap(nnc.grad(nnc.grad(nnc.grad(f))))
    np.testing.assert_allclose(run(third)(x).numpy(), 0.375 / root**5, rtol=1e-5)


@BOTH
def test_compiled(x: nnc.Tensor, make: Make) -> None:
    f = make()
    eager = nnc.value_and_grad(lambda t: (f(t) * t).sum())
    value, g = eager(x)
    compiled_value, compiled = nnc.jit(eager)(x)
    assert compiled_value.item() == value.item()
    np.testing.assert_array_equal(compiled.numpy(), g.numpy())
    np.testing.assert_array_equal(nnc.grad(lambda t: (nnc.jit(f)(t) * t).sum())(x).numpy(), g.numpy())
    np.testing.assert_array_equal(nnc.jit(f)(x).numpy(), f(x).numpy())


@BOTH
def test_deferred(x: nnc.Tensor, make: Make) -> None:
    f = make()
    v = nnc.variable(x)
    with nnc.deferred():
        y = (f(v) * 3).sum()
    assert y.is_deferred
    y.backward()
    wanted = nnc.grad(lambda t: (f(t) * 3).sum())(x)
    assert v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), wanted.numpy())
    with nnc.deferred():
        late = f(x) + 1
    np.testing.assert_array_equal(late.numpy(), (nnc.sin(x) + 1).numpy())


@BOTH
def test_exported_graphs_are_differentiated_by_the_rule(device: str, make: Make) -> None:
    f, x = make(), nnc.asarray([0.5, 1.0])
    with nnc.deferred():
        y = (f(x) * x).sum()
    graph = nnc.export({"x": x}, {"y": y})
    wanted = nnc.grad(lambda t: (f(t) * t).sum())(x)
    found = nnc.stack_for(device).graph.grad(graph, "y", ["x"]).compile(device)(x=x)
    np.testing.assert_array_equal(found["dx"].numpy(), wanted.numpy())
    np.testing.assert_array_equal(graph.compile(device)(x=x)["y"].numpy(), y.numpy())
    names = {node.op.name for node in graph.compile(device).graph.nodes}
    assert not names & {"custom", "result", "cos"}, "compiled code contains the function alone"


def test_forward_mode(x: nnc.Tensor) -> None:
    t = nnc.ones((2, 3))
    value, tangent = nnc.jvp(sine_jvp(), (x,), (t,))
    np.testing.assert_array_equal(value.numpy(), nnc.sin(x).numpy())
    np.testing.assert_array_equal(tangent.numpy(), (t * nnc.cos(x) * TWICE).numpy())
    with fails(ValueError, "custom_jvp", line=False):
        nnc.jvp(sine_vjp(), (x,), (t,))


def test_several_arguments_and_results(device: str) -> None:
    """A dictionary and a number in, a pair out; one cotangent depends on both results."""
    f = nnc.custom_vjp(lambda p, k, b: (p["a"] * b, p["a"] + b * k))
    f.defvjp(lambda p, k, b: ((p["a"] * b, p["a"] + b * k), (p["a"], b, k)),
             lambda kept, g: ({"a": g[0] * kept[1] + g[1]}, None, g[0] * kept[0] + g[1] * kept[2]))
    a, b = nnc.asarray([2.0, 3.0]), nnc.asarray([5.0, 7.0])

    def loss(a: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
        first, second = f({"a": a}, 10.0, b)
        return (first * 2 + second * second).sum()

    def plain(a: nnc.Tensor, b: nnc.Tensor) -> nnc.Tensor:
        second = a + b * 10.0
        return (a * b * 2 + second * second).sum()

    for transform in (lambda g: g, nnc.jit):
        found = transform(nnc.grad(loss, argnums=(0, 1)))(a, b)
        wanted = nnc.grad(plain, argnums=(0, 1))(a, b)
        for g, w in zip(found, wanted, strict=True):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=1e-6)
    _, pull = nnc.vjp(lambda a, b: f({"a": a}, 10.0, b)[1], a, b)
    assert [t.tolist() for t in pull(nnc.ones(2))] == [[1, 1], [10, 10]]


def test_a_jvp_of_several_arguments_is_transposed(device: str) -> None:
    f = nnc.custom_jvp(lambda a, b: (a * b, nnc.exp(a)))
    f.defjvp(lambda p, t: ((p[0] * p[1], nnc.exp(p[0])), (t[0] * p[1] + p[0] * t[1], t[0] * nnc.exp(p[0]))))
    a, b = nnc.asarray([0.5, 1.0]), nnc.asarray([2.0, 3.0])
    for by in (0, 1):
        found = nnc.grad(lambda a, b: (f(a, b)[0] * 3 + f(a, b)[1]).sum(), argnums=by)(a, b)
        wanted = nnc.grad(lambda a, b: (a * b * 3 + nnc.exp(a)).sum(), argnums=by)(a, b)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6)
    np.testing.assert_allclose(nnc.hessian(lambda a: (f(a, b)[0] * f(a, b)[0]).sum())(a).numpy(),
                               np.diag(2 * b.numpy() ** 2), rtol=1e-5)


def test_a_forward_operation_written_in_numpy(device: str) -> None:
    """NNC's custom command: the user's host code, in the graph; its derivative is built in operators."""
    f = nnc.custom_vjp(lambda x: nnc.asarray(np.log1p(x.numpy())))
    f.defvjp(lambda x: (f.f(x), x), lambda x, g: (g / (x + 1),))
    v = nnc.variable([1.0, 3.0])
    y = f(v * 2)
    y.sum().backward()
    np.testing.assert_allclose(y.numpy(), np.log1p([2.0, 6.0]), rtol=1e-6)
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), [2 / 3, 2 / 7], rtol=1e-6)


def test_a_backward_operation_written_in_numpy(device: str) -> None:
    """The same the other way about, called in every pass, however often its structure has come."""
    calls = []

    def back(x: nnc.Tensor, g: nnc.Tensor) -> tuple[nnc.Tensor]:
        calls.append(g.shape)
        return (nnc.asarray(g.numpy() / (x.numpy() + 1)),)

    f = nnc.custom_vjp(lambda x: nnc.log(x + 1)).defvjp(lambda x: (nnc.log(x + 1), x), back)
    v = nnc.variable([1.0, 3.0])
    for times in range(1, 6):
        f(v).sum().backward()
        assert v.grad is not None and len(calls) == times
        np.testing.assert_allclose(v.grad.numpy(), np.array([0.5, 0.25]) * times, rtol=1e-6)


def test_what_python_changes_is_seen_by_the_next_pass(device: str) -> None:
    scale = [1.0]
    f = nnc.custom_vjp(lambda x: x * 1.0).defvjp(lambda x: (x * 1.0, None), lambda _, g: (g * scale[0],))
    v = nnc.variable(1.0)
    for k in range(6):
        scale[0], v.grad = float(k), None
        f(v).backward()
        assert v.grad is not None and v.grad.item() == k


def test_inside_no_grad_the_function_itself_runs(device: str) -> None:
    ran = []
    f = nnc.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (ran.append(1), (x * 2, None))[1], lambda _, g: (g,))  # type: ignore[func-returns-value]
    with nnc.no_grad():
        y = f(nnc.variable(3.0))
    assert y.item() == 6 and not y.requires_grad and not ran
    assert f(nnc.asarray(3.0)).item() == 6 and not ran


def test_history_of_the_forward_rule_is_not_kept(device: str) -> None:
    f = nnc.custom_vjp(lambda x: nnc.tanh(nnc.tanh(x)))
    f.defvjp(lambda x: (nnc.tanh(nnc.tanh(x)), x), lambda x, g: (g,))
    x = nnc.variable([1.0])
    assert nnc.bookkeeping_count(f(x)) == 3, "custom, pick and result; neither tanh"


def test_a_method_with_a_derivative_of_its_own(device: str) -> None:
    class Scaled:
        scale = 3.0

        @nnc.custom_vjp
        def forward(self, x: nnc.Tensor) -> nnc.Tensor:
            return x * self.scale

        forward.defvjp(lambda self, x: (x * self.scale, self.scale), lambda scale, g: (None, g * scale * TWICE))

    scaled = Scaled()
    assert nnc.grad(lambda x: scaled.forward(x))(nnc.asarray(1.0)).item() == 6


def test_zero_cotangents_and_integers(device: str) -> None:
    f = nnc.custom_vjp(lambda x, i: nnc.take(x, i, axis=0))
    f.defvjp(lambda x, i: (nnc.take(x, i, axis=0), x), lambda x, g: (nnc.ones_like(x), None))
    x, i = nnc.asarray([1.0, 2.0, 3.0]), nnc.asarray(np.array([2, 0]))
    assert nnc.grad(lambda x: f(x, i).sum())(x).tolist() == [1, 1, 1]


def test_bad_rules(x: nnc.Tensor) -> None:
    v = nnc.variable(x)
    with fails(ValueError, "defvjp", line=False):
        nnc.custom_vjp(lambda x: x)(v)
    with fails(ValueError, "defjvp", line=False):
        nnc.custom_jvp(lambda x: x)(v)
    with fails(ValueError, "(result, residuals)", line=False):
        nnc.custom_vjp(lambda x: x).defvjp(lambda x: x, lambda r, g: (g,))(v)

    def with_backward(backward: Callable[..., Any]) -> Callable[[], None]:
        f = nnc.custom_vjp(lambda x: x * 1).defvjp(lambda x: (x * 1, None), backward)
        return lambda: f(v).sum().backward()

    for backward, said in ((lambda r, g: g, "tuple of 1"), (lambda r, g: (g, g), "2 values"),
                           (lambda r, g: (g.sum(),), "float32[]"), (lambda r, g: ([g],), "structured"),
                           (lambda r, g: (1.0,), "float")):
        with fails(ValueError, said, line=False):
            with_backward(backward)()
    with fails(TypeError, "not a tensor", line=False):
        nnc.custom_vjp(lambda x: 1).defvjp(lambda x: (1, None), lambda r, g: (g,))(v)
    with fails(ValueError, "tangent", line=False):
        nnc.jvp(nnc.custom_jvp(lambda x: x * 1).defjvp(lambda p, t: (p[0], t[0].sum())), (x,), (x,))


def test_reading_a_variable_that_is_no_argument_is_an_error(device: str) -> None:
    w = nnc.variable(2.0)
    f = nnc.custom_vjp(lambda x: x * w).defvjp(lambda x: (x * w, None), lambda r, g: (g,))
    with fails(ValueError, "none of its arguments", "argument", line=False):
        f(nnc.variable(1.0))
