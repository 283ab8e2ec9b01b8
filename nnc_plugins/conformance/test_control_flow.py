"""Loops and branches, compiled for the device, against the same by NumPy: values, gradients, second derivatives.

Integers are equal.  Floats are those of float64 where the device has it, and are held to float64 on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import Error
from nnc_core.stacks import Stack
from nnc_plugins.conformance.agreement import assert_ulps
from nnc_plugins.conformance.case import Array

EACH, BESIDE = 800, 80
"""Units in the last place of each element, and of the largest: loops add up the errors of their steps."""
Arrays = Sequence[Array]
SHAPE = (3, 16)
"""Rows of 16 can be windows of a whole where 64 bytes are aligned; those of 5, in some programs, can be nowhere."""


class FlowProgram(NamedTuple):
    """A function of tensors, and what it means for NumPy arrays; of floats, with gradients, unless `integers`."""

    ours: Callable[..., Any]
    numpy: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Arrays]
    integers: bool = False


def floats(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.uniform(0.3, 0.9, shape) * rng.choice([-1, 1], shape) for shape in shapes]


def whole(*shapes: tuple[int, ...]) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.integers(-9, 9, shape, dtype=np.int32) for shape in shapes]


def _rows(xs: Any, reverse: bool) -> Any:
    return xs[::-1] if reverse else xs


# ---- loops under a condition
def _early(x: Any) -> Any:
    """A loop whose number of rounds depends on the data."""
    y, n = nnc.while_loop(lambda y, n: nnc.sum(y * y) < 40.0, lambda y, n: (y * 1.5 + nnc.sin(y), n + 1),
                          (x, nnc.asarray(0)))
    return [y, n]


def _early_numpy(x: Array) -> Any:
    n = np.array(0)
    while (x * x).sum() < 40.0:
        x, n = x * 1.5 + np.sin(x), n + 1
    return [x, n]


def _collatz(x: Any) -> Any:
    def step(x: Any, n: Any) -> tuple[Any, Any]:
        (x,) = nnc.case_of(x % 2, [lambda x: (x // 2,), lambda x: (3 * x + 1,)], (x,))
        return x, n + 1

    return list(nnc.while_loop(lambda x, n: x != 1, step, (nnc.abs(nnc.sum(x)) % 50 + 1, nnc.asarray(0))))


def _collatz_numpy(x: Array) -> Any:
    value, n = abs(int(x.sum())) % 50 + 1, 0
    while value != 1:
        value, n = 3 * value + 1 if value % 2 else value // 2, n + 1
    return [np.array(value), np.array(n)]


def _counted(x: Any, w: Any) -> Any:
    """Values that take turns in memory, and one that does not change."""
    def step(i: Any, a: Any, b: Any, k: Any) -> tuple[Any, ...]:
        return i + 1, b, nnc.tanh(a @ w) + b * 0.5, k

    return list(nnc.while_loop(lambda i, *_: i < 5, step, (nnc.asarray(0), x, x * 0.5, x * x)))[1:]


def _counted_numpy(x: Array, w: Array) -> Any:
    a, b = x, x * 0.5
    for _ in range(5):
        a, b = b, np.tanh(a @ w) + b * 0.5
    return [a, b, x * x]


def _never(x: Any, w: Any) -> Any:
    return [nnc.while_loop(lambda y, i: i < 0, lambda y, i: (y * w, i + 1), (x * x, nnc.asarray(0)))[0]]


def _fibonacci(x: Any) -> Any:
    """Pointers go round; integers wrap around."""
    return list(nnc.while_loop(lambda i, *_: i < 50, lambda i, a, b: (i + 1, b, a + b), (nnc.asarray(0), x, x + 1)))[1:]


def _fibonacci_numpy(x: Array) -> Any:
    a, b = x, x + 1
    for _ in range(50):
        a, b = b, a + b
    return [a, b]


# ---- loops along an axis
def _scan(reverse: bool) -> Callable[..., Any]:
    def ours(xs: Any, w: Any) -> Any:
        last, (ys, zs) = nnc.scan(lambda c, x: (nnc.tanh(c * w) + x, (c * x, nnc.sum(x))), w * 0.5, xs, reverse=reverse)
        return [last, ys, zs]

    return ours


def _scan_numpy(reverse: bool) -> Callable[..., Any]:
    def numpy(xs: Array, w: Array) -> Any:
        c, ys, zs = w * 0.5, [], []
        for x in _rows(xs, reverse):
            ys.append(c * x)
            zs.append(x.sum())
            c = np.tanh(c * w) + x
        return [c, np.stack(_rows(ys, reverse)), np.stack(_rows(zs, reverse))]

    return numpy


def _cumulated(reverse: bool) -> Callable[..., Any]:
    def ours(xs: Any) -> Any:
        last, ys = nnc.scan(lambda c, x: (c * 3 + x, c + x), xs[0], xs, reverse=reverse)
        return [last, ys, nnc.map(lambda x: x * x - 1, xs)]

    return ours


def _cumulated_numpy(reverse: bool) -> Callable[..., Any]:
    def numpy(xs: Array) -> Any:
        c, ys = xs[0], []
        for x in _rows(xs, reverse):
            ys.append(c + x)
            c = c * 3 + x
        return [c, np.stack(_rows(ys, reverse)), xs * xs - 1]

    return numpy


# ---- branches
def _by_number(i: int, replaced: bool) -> Callable[..., Any]:
    def ours(x: Any, w: Any) -> Any:
        branches = [lambda x, w: (x * w, nnc.exp(w)), lambda x, w: (nnc.sin(x) * w, x * x * x), lambda x, w: (x, w)]
        number = i + nnc.sum(x > 100.0)  # known when it runs
        return list(nnc.case_of(number, branches, (x, w), (w * 0.5, x) if replaced else None))

    return ours


def _by_number_numpy(i: int) -> Callable[..., Any]:
    def numpy(x: Array, w: Array) -> Any:
        return {0: [x * w, np.exp(w)], 1: [np.sin(x) * w, x * x * x], 2: [x, w]}.get(i, [w * 0.5, x])

    return numpy


def _decided(x: Any, w: Any) -> Any:
    """Both ways, by data."""
    return [nnc.cond(nnc.sum(x * x) > limit, lambda x: nnc.exp(x * w), lambda x: nnc.sin(x) * w, x)
            for limit in (1e3, -1.0)]


# ---- nested
def _nested(x: Any, w: Any) -> Any:
    """The inner loop goes round more often each time, and each round of it takes another branch."""
    def inner(i: Any, y: Any) -> Any:
        def step(j: Any, z: Any) -> tuple[Any, Any]:
            (z,) = nnc.case_of((i + j) % 3, [lambda z: (nnc.sin(z) * w,), lambda z: (z * z + w,)], (z,), (z * 0.5 + y,))
            return j + 1, z

        return nnc.while_loop(lambda j, z: j < i + 1, step, (nnc.asarray(0), y))[1]

    return [nnc.while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, inner(i, y)), (nnc.asarray(0), x))[1]]


def _nested_numpy(x: Array, w: Array) -> Any:
    for i in range(4):
        y = x
        for j in range(i + 1):
            x = (np.sin(x) * w, x * x + w, x * 0.5 + y)[(i + j) % 3]
    return [x]


def _scan_of_while(xs: Any, w: Any) -> Any:
    """In each step a loop whose end depends on the data."""
    def step(c: Any, x: Any) -> Any:
        y, k = nnc.while_loop(lambda y, k: (nnc.sum(y) < 9.0) & (k < 5), lambda y, k: (y * 1.3 + w * w, k + 1),
                              (x * x + 0.1 * c, nnc.asarray(0)))
        return nnc.sin(y) + c, y * k.astype(y.dtype)

    return list(nnc.scan(step, w, xs))


def _scan_of_while_numpy(xs: Array, w: Array) -> Any:
    c, ys = w, []
    for x in xs:
        y, k = x * x + 0.1 * c, 0
        while y.sum() < 9.0 and k < 5:
            y, k = y * 1.3 + w * w, k + 1
        c = np.sin(y) + c
        ys.append(y * k)
    return [c, np.stack(ys)]


def _loops_of_integers(xs: Any) -> Any:
    """Rows, a count and a sum that depends on both."""
    def step(c: Any, x: Any) -> Any:
        n, total = nnc.while_loop(lambda n, total: n < nnc.max(x), lambda n, total: (n + 2, total * 3 + n),
                                  (nnc.min(x), c))
        return total, (n, total - x)

    last, (ns, ys) = nnc.scan(step, nnc.sum(xs), xs)
    return [last, ns, ys]


def _loops_of_integers_numpy(xs: Array) -> Any:
    c, ns, ys = xs.sum(), [], []
    for x in xs:
        n = x.min()
        while n < x.max():
            c, n = c * 3 + n, n + 2
        ns.append(n)
        ys.append(c - x)
    return [c, np.stack(ns), np.stack(ys)]


PROGRAMS = {
    "while with early exit": FlowProgram(_early, _early_numpy, floats((5,))),
    "counted while": FlowProgram(_counted, _counted_numpy, floats((4, 4), (4, 4))),
    "while that never runs": FlowProgram(_never, lambda x, w: [x * x], floats((16,), (16,))),
    "while of integers": FlowProgram(_fibonacci, _fibonacci_numpy, whole((7,)), integers=True),
    "branches in a while": FlowProgram(_collatz, _collatz_numpy, whole((7,)), integers=True),
    "scan": FlowProgram(_scan(False), _scan_numpy(False), floats(SHAPE, (16,))),
    "scan backwards": FlowProgram(_scan(True), _scan_numpy(True), floats(SHAPE, (16,))),
    "scan of short rows": FlowProgram(_scan(False), _scan_numpy(False), floats((4, 5), (5,))),
    "scan of short rows backwards": FlowProgram(_scan(True), _scan_numpy(True), floats((4, 5), (5,))),
    "scan of integers": FlowProgram(_cumulated(False), _cumulated_numpy(False), whole((5, 3)), integers=True),
    "scan of integers backwards": FlowProgram(_cumulated(True), _cumulated_numpy(True), whole((5, 32)), integers=True),
    **{f"branch {i}": FlowProgram(_by_number(i, False), _by_number_numpy(i), floats((5,), (5,))) for i in range(3)},
    **{f"branch {i} or a replacement": FlowProgram(_by_number(i, True), _by_number_numpy(i), floats((5,), (5,)))
       for i in (-1, 1, 3)},
    "a branch by data": FlowProgram(_decided, lambda x, w: [np.sin(x) * w, np.exp(x * w)], floats((5,), (5,))),
    "nested": FlowProgram(_nested, _nested_numpy, floats((5,), (5,))),
    "a while in each step of a scan": FlowProgram(_scan_of_while, _scan_of_while_numpy, floats(SHAPE, (16,))),
    "a while of integers in each step of a scan": FlowProgram(
        _loops_of_integers, _loops_of_integers_numpy, whole((4, 3)), integers=True),
}  # fmt: skip
DIFFERENTIABLE = {k: p for k, p in PROGRAMS.items() if not p.integers}
each = pytest.mark.parametrize("name", PROGRAMS)
each_differentiable = pytest.mark.parametrize("name", DIFFERENTIABLE)


def _given(stack: Stack, program: FlowProgram, rng: np.random.Generator) -> tuple[list[Array], bool]:
    """The arrays, and whether their floats are float64."""
    exact = "float64" in stack.device.spec.dtypes
    arrays = program.inputs(rng)
    return [x if program.integers or exact else x.astype(np.float32) for x in arrays], exact


def _near(found: Any, wanted: Any, what: str) -> None:
    a, b = np.asarray(found), np.asarray(wanted)
    assert a.shape == b.shape, f"{what}: {a.shape} instead of {b.shape}"
    if a.dtype.kind in "iu":
        np.testing.assert_array_equal(a, b.astype(a.dtype), what)
    else:
        assert_ulps(a, b, a.dtype, each=EACH, beside=BESIDE, of=max(1.0, float(np.abs(b).max(initial=0))), what=what)


@each
@pytest.mark.parametrize("mode", ["eager", "deferred", "compiled"])
def test_equals_numpy(stack: Stack, on_device: str, rng: np.random.Generator, name: str, mode: str) -> None:
    program = PROGRAMS[name]
    arrays, _ = _given(stack, program, rng)
    with np.errstate(over="ignore"):
        wanted = program.numpy(*arrays)
    given = [nnc.asarray(x) for x in arrays]
    f = nnc.jit(program.ours) if mode == "compiled" else program.ours
    for _ in range(2):  # the second call finds the memory as the first has left it
        if mode == "deferred":
            with nnc.deferred():
                found = f(*given)
        else:
            found = f(*given)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            _near(a.numpy(), b, f"{mode}, result {i}")


@each
def test_compiled_gives_the_bits_of_eager(stack: Stack, on_device: str, rng: np.random.Generator, name: str) -> None:
    program = PROGRAMS[name]
    given = [nnc.asarray(x) for x in _given(stack, program, rng)[0]]
    with nnc.config.using(deterministic=True):
        for a, b in zip(nnc.jit(program.ours)(*given), program.ours(*given), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert a.numpy().tobytes() == b.numpy().tobytes()


def _loss(program: FlowProgram) -> Callable[..., nnc.Tensor]:
    """Cubes, so that second derivatives are not zero where the program is linear."""

    def loss(*args: nnc.Tensor) -> nnc.Tensor:
        total: Any = 0.0
        for y in program.ours(*args):
            if y.dtype.kind == "f":
                total = total + nnc.sum(y * y * y)
        return total  # type: ignore[no-any-return]

    return loss


def _loss_numpy(program: FlowProgram, arrays: Arrays) -> float:
    return float(sum([(y * y * y).sum() for y in program.numpy(*arrays) if y.dtype.kind == "f"]))


def _slopes(f: Callable[[Arrays], float], arrays: Arrays, step: float) -> list[Array]:
    """Gradients by differences, in float64 on the host."""
    found = []
    for k, x in enumerate(arrays):
        slopes = np.empty_like(x)
        for place in np.ndindex(x.shape):
            h = np.zeros_like(x)
            h[place] = step
            ends = [f([*arrays[:k], x + s * h, *arrays[k + 1 :]]) for s in (-2, -1, 1, 2)]
            slopes[place] = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step)
        found.append(slopes)
    return found


def _close(found: Arrays, wanted: Arrays, tolerance: float) -> None:
    """As near as difference quotients are, whatever the last places say."""
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


@each_differentiable
def test_gradients_equal_differences_of_numpy(stack: Stack, on_device: str, rng: np.random.Generator,
                                              name: str) -> None:
    """Reverse mode, compiled: loops run back along what they have kept."""
    program = PROGRAMS[name]
    arrays, exact = _given(stack, program, rng)
    wanted = _slopes(lambda xs: _loss_numpy(program, xs), [x.astype(np.float64) for x in arrays], 1e-3)
    grad = nnc.jit(nnc.grad(_loss(program), tuple(range(len(arrays)))))
    for _ in range(2):
        found = grad(*[nnc.asarray(x) for x in arrays])
        assert [g.shape for g in found] == [x.shape for x in arrays]
        _close([g.numpy() for g in found], wanted, 1e-6 if exact else 1e-3)


@each_differentiable
def test_tangents_equal_gradients(stack: Stack, on_device: str, rng: np.random.Generator, name: str) -> None:
    """Forward mode, compiled."""
    program = PROGRAMS[name]
    arrays, exact = _given(stack, program, rng)
    given = [nnc.asarray(x) for x in arrays]
    directions = [nnc.asarray(np.asarray(rng.uniform(-1, 1, x.shape)).astype(x.dtype)) for x in arrays]
    loss = _loss(program)
    slope: Any = nnc.jit(lambda xs, ds: nnc.jvp(loss, xs, ds)[1])(tuple(given), tuple(directions))
    grads = nnc.grad(loss, tuple(range(len(given))))(*given)
    terms = np.concatenate([(g.numpy() * d.numpy()).ravel() for g, d in zip(grads, directions, strict=True)])
    dtype, size = np.float64 if exact else np.float32, max(1.0, float(np.abs(terms).sum()))
    assert_ulps(slope.item(), terms.astype(np.float64).sum(), dtype, each=EACH, beside=EACH, of=size)


SECOND = ("while with early exit", "counted while", "scan backwards", "scan of short rows", "branch 1 or a replacement",
          "nested", "a while in each step of a scan")


@pytest.mark.parametrize("name", SECOND)
def test_second_order(stack: Stack, on_device: str, rng: np.random.Generator, name: str) -> None:
    """The product of the Hessian with a vector, by reverse over reverse, against differences of gradients."""
    program = PROGRAMS[name]
    arrays, exact = _given(stack, program, rng)
    if not exact:
        pytest.skip("differences of gradients need float64, which the device has not")
    everywhere = tuple(range(len(arrays)))
    directions = [rng.uniform(-1, 1, x.shape) for x in arrays]
    grad = nnc.grad(_loss(program), everywhere)

    def along(*xs: nnc.Tensor) -> nnc.Tensor:
        total: Any = 0.0
        for g, d in zip(grad(*xs), directions, strict=True):
            total = total + nnc.sum(g * nnc.asarray(d))
        return total  # type: ignore[no-any-return]

    found = nnc.jit(nnc.grad(along, everywhere))(*[nnc.asarray(x) for x in arrays])
    first = nnc.jit(grad)

    def at(step: float) -> list[Array]:
        return [g.numpy() for g in first(*[nnc.asarray(x + step * d) for x, d in zip(arrays, directions, strict=True)])]

    h = 1e-4
    ends = [at(k * h) for k in (-2, -1, 1, 2)]
    wanted = [(a - 8 * b + 8 * c - d) / (12 * h) for a, b, c, d in zip(*ends, strict=True)]
    _close([g.numpy() for g in found], wanted, 1e-6)


def test_no_branch_is_an_error(on_device: str) -> None:
    """That names the number; the next call works."""
    f = nnc.jit(lambda i, x: nnc.case_of(i, [lambda x: (x * 2,), lambda x: (x * 3,)], (x,))[0])
    x = nnc.asarray(np.arange(3, dtype=np.int32))
    with pytest.raises(Error, match="no branch 2 among 2"):
        f(nnc.asarray(np.array(2, np.int32)), x).numpy()
    assert f(nnc.asarray(np.array(1, np.int32)), x).tolist() == [0, 3, 6]


def test_results_of_a_loop_are_the_callers_own(on_device: str) -> None:
    """Inputs, whose memory goes round while a loop runs, stay as they are, and so do the results of earlier calls."""
    f = nnc.jit(lambda a, b: nnc.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, b, a + b),
                                            (nnc.asarray(0), a, b))[1:])
    a, b = nnc.asarray(np.arange(5, dtype=np.int32)), nnc.asarray(np.ones(5, np.int32))
    first = f(a, b)
    kept = [y.numpy().copy() for y in first]
    f(b, a)
    assert a.tolist() == [0, 1, 2, 3, 4] and b.tolist() == [1] * 5
    assert all((y.numpy() == k).all() for y, k in zip(first, kept, strict=True))
