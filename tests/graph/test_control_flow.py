"""Loops, branches and calls in each other: values and derivatives of first and second order, in every mode, are those
of the program that Python unrolls, and of finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.values.tree import flatten
from tests.graph.flows import PROGRAMS, Recorded, Scalar, Unrolled, arguments, bound

Host = np.ndarray[Any, Any]
Derivative = Callable[[Scalar, Sequence[nnc.Tensor], Sequence[nnc.Tensor]], Any]
STEP = 1e-5


def everything(args: Sequence[nnc.Tensor]) -> tuple[int, ...]:
    return tuple(range(len(args)))


def value(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return f(*args)


def gradient(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return nnc.grad(f, everything(args))(*args)


def tangent(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return nnc.jvp(f, args, along)[1]


def reverse_over_reverse(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    def slope(*args: nnc.Tensor) -> nnc.Tensor:
        total, *rest = [nnc.sum(g * v) for g, v in zip(gradient(f, args, along), along, strict=True)]
        for part in rest:
            total = total + part
        return total

    return nnc.grad(slope, everything(args))(*args)


def forward_over_reverse(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return nnc.jvp(lambda *args: gradient(f, args, along), args, along)[1]


def reverse_over_forward(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return nnc.grad(lambda *args: tangent(f, args, along), everything(args))(*args)


def forward_over_forward(f: Scalar, args: Sequence[nnc.Tensor], along: Sequence[nnc.Tensor]) -> Any:
    return nnc.jvp(lambda *args: tangent(f, args, along), args, along)[1]


PRODUCTS = (reverse_over_reverse, forward_over_reverse, reverse_over_forward)
"""Each gives the Hessian times `along`."""
DERIVATIVES: tuple[Derivative, ...] = (value, gradient, tangent, *PRODUCTS, forward_over_forward)


# ---- the ways of running
def eagerly(f: Callable[..., Any], args: Sequence[nnc.Tensor]) -> list[Host]:
    return hosts(f(*args))


def deferred(f: Callable[..., Any], args: Sequence[nnc.Tensor]) -> list[Host]:
    with nnc.deferred():
        results = f(*args)
    return hosts(results)


def compiled(f: Callable[..., Any], args: Sequence[nnc.Tensor]) -> list[Host]:
    g = nnc.jit(f)
    first, second = (hosts(g(*args)) for _ in range(2))
    assert g.traces == 1 and all(a.tobytes() == b.tobytes() for a, b in zip(first, second, strict=True))
    return second


def symbolic(f: Callable[..., Any], args: Sequence[nnc.Tensor]) -> list[Host]:
    """A graph from named inputs to named outputs; compiled, and called with other arrays of the same values."""
    with nnc.deferred():
        results = flatten(f(*args))[0]
    inputs = {f"x{i}": x for i, x in enumerate(args)}
    graph = nnc.export(inputs, {f"y{i}": y for i, y in enumerate(results)}, on_unused="ignore")
    found = graph.compile()(**{k: nnc.asarray(x.numpy()) for k, x in inputs.items()})
    return hosts([found[k] for k in graph.list_outputs()])


MODES = (eagerly, deferred, compiled, symbolic)


def hosts(tree: Any) -> list[Host]:
    return [t.numpy() for t in flatten(tree)[0]]


def directions(args: Sequence[nnc.Tensor]) -> list[nnc.Tensor]:
    rng = np.random.default_rng(7)
    return [nnc.asarray(rng.uniform(0.5, 1.0, a.shape) * rng.choice([-1, 1], a.shape)) for a in args]


@cache
def unrolled(name: str, derivative: Derivative) -> tuple[Host, ...]:
    """Of the program in which Python repeats and chooses, one operation at a time."""
    program = PROGRAMS[name]
    args = arguments(program)
    f = bound(program, Unrolled)
    return tuple(hosts(derivative(f, args, directions(args))))


def near(found: Sequence[Host], wanted: Sequence[Host], tolerance: float = 1e-12) -> None:
    assert len(found) == len(wanted) > 0
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape) and np.isfinite(b).all()
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_unrolled_program(name: str, mode: Any) -> None:
    """All of them at once: forward and backward loops of several orders share what they can."""
    program = PROGRAMS[name]
    args = arguments(program)
    f, along, n = bound(program, Recorded), directions(args), len(args)
    found = iter(mode(lambda *all: [derivative(f, all[:n], all[n:]) for derivative in DERIVATIVES], [*args, *along]))
    for derivative in DERIVATIVES:
        expected = unrolled(name, derivative)
        near([next(found) for _ in expected], expected)
    assert next(found, None) is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    """The gradient along a direction, and the Hessian times it; by compiled code alone."""
    program = PROGRAMS[name]
    args = arguments(program)
    along = directions(args)

    @nnc.jit
    def both(args: list[nnc.Tensor]) -> Any:
        return nnc.value_and_grad(bound(program, Recorded), everything(args))(*args)

    above, below = (both([a + h * v for a, v in zip(args, along, strict=True)]) for h in (STEP, -STEP))
    slope = sum(float((g * v.numpy()).sum()) for g, v in zip(hosts(both(args)[1]), along, strict=True))
    assert slope == pytest.approx(float(above[0] - below[0]) / (2 * STEP), rel=1e-6, abs=1e-8)
    product = [(a - b) / (2 * STEP) for a, b in zip(hosts(above[1]), hosts(below[1]), strict=True)]
    near(list(unrolled(name, reverse_over_reverse)), product, 1e-6)


# ---- what is known besides
def test_newtons_iteration_has_the_derivatives_of_what_it_converges_to() -> None:
    """The cube root of a^2 + 1."""
    a = arguments(PROGRAMS["newton"])[0]
    f = bound(PROGRAMS["newton"], Recorded)
    x = a.numpy()
    root = np.cbrt(x * x + 1)
    first = 2 * x / (3 * root**2)
    second = 2 / (3 * root**2) - 8 * x * x / (9 * root**5)
    for run in (lambda g: g, nnc.jit):
        np.testing.assert_allclose(run(nnc.grad(f))(a).numpy(), first, rtol=1e-8)
        np.testing.assert_allclose(run(nnc.grad(lambda a: nnc.sum(nnc.grad(f)(a))))(a).numpy(), second, rtol=1e-6)


def test_a_third_derivative() -> None:
    """sin(sin(sin(x))) by a loop, differentiated three times by reverse sweeps, and by forward ones."""

    def f(flow: Any, x: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(flow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nnc.sin(y)), (nnc.asarray(0), x))[1])

    def thrice(flow: Any, x: nnc.Tensor, v: nnc.Tensor) -> list[nnc.Tensor]:
        backward, along = (lambda x: f(flow, x)), (lambda x: f(flow, x))
        for _ in range(3):
            backward = lambda x, g=backward: nnc.sum(nnc.grad(g)(x) * v)  # noqa: E731
            along = lambda x, g=along: nnc.jvp(g, (x,), (v,))[1]  # noqa: E731
        return [backward(x), along(x)]

    x, v = nnc.asarray(np.array([0.3, -0.7])), nnc.asarray(np.array([0.5, 1.5]))
    wanted = hosts(thrice(Unrolled, x, v))
    assert wanted[0] == pytest.approx(wanted[1])
    near(compiled(lambda x, v: thrice(Recorded, x, v), [x, v]), wanted)
    near(deferred(lambda x, v: thrice(Recorded, x, v), [x, v]), wanted)


def test_how_often_it_goes_round_is_known_when_it_runs() -> None:
    """One compiled gradient for every number of rounds, none included."""
    program = PROGRAMS["early"]
    f = nnc.jit(nnc.value_and_grad(bound(program, Recorded)))
    plain = nnc.value_and_grad(bound(program, Unrolled))
    for scale in (8.0, 0.1, 1.0, 4.0):
        x = arguments(program)[0] * scale
        near(hosts(f(x)), hosts(plain(x)))
    assert f.traces == 1


def test_one_compiled_gradient_takes_every_branch() -> None:
    program = PROGRAMS["chosen"]
    f = nnc.jit(nnc.value_and_grad(bound(program, Recorded), (0, 1)))
    plain = nnc.value_and_grad(bound(program, Unrolled), (0, 1))
    x, w = arguments(program)
    for sign in (1.0, -1.0, 1.0):
        near(hosts(f(nnc.abs(x) * sign, w)), hosts(plain(nnc.abs(x) * sign, w)))
    assert f.traces == 1


def test_the_gradient_of_a_graph_that_was_exported() -> None:
    """`Graph.grad` on nodes gives what differentiating tensors gives."""
    for name in ("rolled", "loop_of_branches", "nested"):
        program = PROGRAMS[name]
        args = arguments(program)
        with nnc.deferred():
            y = bound(program, Recorded)(*args)
        inputs = {f"x{i}": x for i, x in enumerate(args)}
        graph = nnc.stack_for(None).graph.grad(nnc.export(inputs, {"y": y}), "y", list(inputs))
        found = graph.compile()(**inputs)
        near(hosts([found[f"dx{i}"] for i in range(len(args))]), unrolled(name, gradient))


def test_nothing_flows_through_integers_and_what_is_idle() -> None:
    """A weight that only reaches values nobody reads, or an index, has a gradient of zeros."""
    _, w = hosts(nnc.jit(nnc.grad(bound(PROGRAMS["idle"], Recorded), (0, 1)))(*arguments(PROGRAMS["idle"])))
    assert not w.any()
    _, w = hosts(nnc.jit(nnc.grad(bound(PROGRAMS["never"], Recorded), (0, 1)))(*arguments(PROGRAMS["never"])))
    assert not w.any()
