"""Derivatives that users give, under every transform: none drops a rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails

Function = Callable[[nnc.Tensor], nnc.Tensor]
POINTS = [0.3, 0.7, 1.1]


def sine_vjp() -> nnc.custom_vjp:
    """The sine, with twice its derivative."""
    f = nnc.custom_vjp(lambda x: nnc.sin(x))
    return f.defvjp(lambda x: (nnc.sin(x), nnc.cos(x)), lambda c, g: (g * c * 2.0,))


def sine_jvp() -> nnc.custom_jvp:
    f = nnc.custom_jvp(lambda x: nnc.sin(x))
    return f.defjvp(lambda primals, tangents: (nnc.sin(primals[0]), tangents[0] * nnc.cos(primals[0]) * 2.0))


def scanned(f: Function) -> Function:
    return lambda x: nnc.scan(lambda c, row: (c, f(row)), nnc.asarray(0.0), x)[1]


def branched(f: Function) -> Function:
    return lambda x: nnc.cond(nnc.sum(x) > 0, f, nnc.negative, x)


def repeated(f: Function) -> Function:
    return lambda x: nnc.while_loop(lambda i, y: i < 1, lambda i, y: (i + 1, f(y)), (0, x))[1]


def in_rows(f: Function) -> Function:
    return lambda x: f(nnc.reshape(x, (3, 1))).reshape(3)


TRANSFORMS: Mapping[str, Callable[[Function], Function]] = {
    "vmap": nnc.vmap,
    "vmap of vmap": lambda f: in_rows(nnc.vmap(nnc.vmap(f))),
    "vmap of the closure alone": lambda f: lambda x: nnc.vmap(lambda i: f(x) * (i == 1))(nnc.arange(3))[1],
    "jit": nnc.jit,
    "jit of vmap": lambda f: nnc.jit(nnc.vmap(f)),
    "vmap of jit": lambda f: nnc.vmap(nnc.jit(f)),
    "vmap of a jitted step": lambda f: nnc.vmap(nnc.jit(f, inline_limit=0)),
    "scan": scanned,
    "map": lambda f: lambda x: nnc.map(f, x),
    "cond": branched,
    "while_loop": repeated,
    "vmap of scan": lambda f: in_rows(nnc.vmap(scanned(f))),
    "vmap of cond": lambda f: nnc.vmap(branched(f)),
    "vmap of while_loop": lambda f: nnc.vmap(repeated(f)),
    "scan of vmap": lambda f: in_rows(scanned(nnc.vmap(f))),
}


def backward(f: Function, x: nnc.Tensor) -> nnc.Tensor | None:
    v = nnc.variable(x)
    nnc.sum(f(v)).backward()
    return v.grad


def deferred(f: Function, x: nnc.Tensor) -> nnc.Tensor | None:
    v = nnc.variable(x)
    with nnc.deferred():
        y = nnc.sum(f(v))
    y.backward()
    return v.grad


def exported(f: Function, x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        y = nnc.sum(f(x))
    graph = nnc.export({"x": x}, {"y": y}, capture="constant")
    return nnc.stack_for(x.device).graph.grad(graph, "y", ["x"]).compile(x.device)(x=x)["dx"]


def total(f: Function) -> Function:
    return lambda x: nnc.sum(f(x))


REVERSE: Mapping[str, Callable[[Function, nnc.Tensor], nnc.Tensor | None]] = {
    "grad": lambda f, x: nnc.grad(total(f))(x),
    "jit of grad": lambda f, x: nnc.jit(nnc.grad(total(f)))(x),
    "vjp": lambda f, x: nnc.vjp(f, x)[1](nnc.ones(3))[0],
    "jacobian": lambda f, x: nnc.sum(nnc.jacobian(f)(x), axis=0),
    "backward": backward, "deferred": deferred, "export": exported,
}
FORWARD: Mapping[str, Callable[[Function, nnc.Tensor], nnc.Tensor]] = {
    "jvp": lambda f, x: nnc.jvp(f, (x,), (nnc.ones(3),))[1],
    "jit of jvp": lambda f, x: nnc.jit(lambda x: nnc.jvp(f, (x,), (nnc.ones(3),))[1])(x),
}
RULES = pytest.mark.parametrize("make", [sine_vjp, sine_jvp])


@pytest.mark.parametrize("transform", TRANSFORMS)
@RULES
def test_the_rule_is_used(device: str, make: Callable[[], Any], transform: str) -> None:
    f, x = TRANSFORMS[transform](make()), nnc.asarray(POINTS)
    np.testing.assert_allclose(f(x).numpy(), np.sin(POINTS), rtol=1e-5)
    for name, derivative in {**REVERSE, **(FORWARD if make is sine_jvp else {})}.items():
        found = derivative(f, x)
        assert found is not None
        np.testing.assert_allclose(found.numpy(), 2 * np.cos(POINTS), rtol=1e-5, err_msg=name)
    np.testing.assert_allclose(nnc.hessian(total(f))(x).numpy(), np.diag(-2 * np.sin(POINTS)), rtol=1e-5, atol=1e-6)


def test_a_straight_through_estimator_under_vmap(device: str) -> None:
    f = nnc.custom_vjp(lambda x: nnc.round(x))
    f.defvjp(lambda x: (nnc.round(x), None), lambda kept, g: (g,))
    assert nnc.grad(lambda x: nnc.sum(nnc.vmap(f)(x)))(nnc.ones(2)).tolist() == [1, 1]


def scaled() -> nnc.custom_vjp:
    """Two results of two arguments, whose cotangents are not the derivatives."""
    f = nnc.custom_vjp(lambda x, w: (x * w, x + w))
    return f.defvjp(lambda x, w: ((x * w, x + w), (x, w)),
                    lambda kept, g: (g[0] * kept[1] * 10, g[0] * kept[0] * 100 + g[1]))


@pytest.mark.parametrize("wrap", [lambda f: f, nnc.jit])
def test_an_argument_that_all_examples_share(device: str, wrap: Any) -> None:
    x, w = nnc.asarray([[1.0, 2.0], [3.0, 4.0]]), nnc.asarray([5.0, 7.0])

    def loss(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
        product, total = nnc.vmap(scaled(), in_axes=(0, None))(x, w)
        return nnc.sum(product) + nnc.sum(total)

    by_x, by_w = wrap(nnc.grad(loss, argnums=(0, 1)))(x, w)
    assert by_x.tolist() == [[50, 70], [50, 70]]
    assert by_w.tolist() == [402, 602], "the sum over the examples"


def test_forward_mode_where_one_argument_is_shared(device: str) -> None:
    f = nnc.custom_jvp(lambda x, w: x * w)
    f.defjvp(lambda p, t: (p[0] * p[1], t[0] * p[1] * 10 + t[1] * p[0] * 100))
    x, w = nnc.asarray([1.0, 3.0]), nnc.asarray(5.0)
    mapped = nnc.vmap(f, in_axes=(0, None))
    _, tangent = nnc.jvp(mapped, (x, w), (nnc.ones(2), nnc.ones(())))
    assert tangent.tolist() == [150, 350]
    assert nnc.grad(lambda w: nnc.sum(mapped(x, w)))(w).item() == 400


def test_a_mapped_vjp_has_no_forward_derivative_either(device: str) -> None:
    with fails(ValueError, "custom_jvp", line=False):
        nnc.jvp(nnc.vmap(sine_vjp()), (nnc.ones(2),), (nnc.ones(2),))
