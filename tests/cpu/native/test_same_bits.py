"""Programs in machine code give the bits that they give from Python: straight ones, loops, branches, training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from tests.cpu.native.runs import Captured, Mixed, Values, on, same_bits

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Values:
    return RNG.standard_normal(shape).astype(np.float32)


X, ROWS, W = floats(12), floats(9, 12), floats(12, 12) / 4
THREE = [(k * X + k,) for k in range(3)]


def repeated(n: Any, x: Any) -> Any:
    return nnc.while_loop(lambda i, _: i < n, lambda i, x: (i + 1, nnc.tanh(x) * 1.25), (0, x))


def fibonacci(x: Any) -> Any:
    """Three carried values that go round."""
    return nnc.while_loop(lambda i, *_: i < 11, lambda i, a, b, c: (i + 1, b, c, nnc.sin(a + b)), (0, x, x + 1, -x))


def cumulated(x: Any, rows: Any) -> Any:
    return nnc.scan(lambda c, r: (nnc.tanh(c * 0.5 + r), c * r), x, rows)


def backwards(x: Any, rows: Any) -> Any:
    return nnc.scan(lambda c, r: (nnc.tanh(c * 0.5 + r), c - r), x, rows, reverse=True)


def nested(x: Any, rows: Any) -> Any:
    """A loop in a loop, both with rows."""
    def outer(c: Any, r: Any) -> Any:
        inner, ys = nnc.scan(lambda d, s: (nnc.sin(d + s), d * s), c + r, rows[:3])
        return inner, nnc.sum(ys, axis=0)

    return nnc.scan(outer, x, rows)


def branch(x: Any) -> Any:
    return nnc.cond(nnc.sum(x) > 0, lambda x: nnc.tanh(x) * 2, lambda x: nnc.exp(x) - 1, x)


def branches_in_a_loop(x: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        arms = [lambda x: (nnc.tanh(x),), lambda x: (x * 1.5,), lambda x: (x - 0.25,)]
        [y] = nnc.case_of(i % 4, arms, (x,), (x + 1,))
        return i + 1, nnc.cond(nnc.sum(y) > 0, lambda y: nnc.flip(y), lambda y: y + 0.125, y)

    return nnc.while_loop(lambda i, _: i < 13, step, (0, x))


def loop_in_a_branch(x: Any) -> Any:
    return nnc.cond(nnc.sum(x) > 0, lambda x: repeated(7, x)[1], lambda x: cumulated(x, nnc.stack([x, -x, x]))[0], x)


def mixed(x: Any) -> Any:
    """Commands that NumPy runs between others."""
    y = nnc.sort(nnc.tanh(x))
    z = nnc.cumulative_sum(y * 2)
    return nnc.sort(nnc.flip(z) - y), nnc.argsort(z), nnc.exp(y)


def mixed_loop(x: Any, rows: Any) -> Any:
    """NumPy's commands that see rows and what goes round."""
    def step(c: Any, r: Any) -> Any:
        s = nnc.sort(c + r)
        return nnc.flip(s) * 0.5, nnc.sort(s * c)

    return nnc.scan(step, x, rows)


def mixed_rounds(x: Any) -> Any:
    return nnc.while_loop(lambda i, a, b: i < 7, lambda i, a, b: (i + 1, nnc.sort(b), nnc.tanh(a) - b), (0, x, -x))


CASES: dict[str, tuple[Callable[..., Any], list[tuple[Values, ...]]]] = {
    "commands": (lambda x: (nnc.tanh(x * 1.5), nnc.sum(x), x[3:] + x[:-3]), THREE),
    "views and outputs": (lambda x: (x + 1, nnc.reshape(x + 1, (3, 4)), x), THREE),
    "no elements": (lambda x: (nnc.tanh(x[:0]), nnc.sum(x[:0]), x * 2), THREE),
    "while loop": (lambda x: repeated(10, x), THREE),
    "a number of rounds that is data": (lambda n, x: repeated(n, x),
                                        [(np.int64(k), X) for k in (0, 1, 2, 3, 50, 5)]),
    "values go round": (fibonacci, THREE),
    "scan": (cumulated, [(X, ROWS), (X + 1, -ROWS)]),
    "scan backwards": (backwards, [(X, ROWS), (X + 1, -ROWS)]),
    "scan in a scan": (nested, [(X, ROWS), (X + 1, -ROWS)]),
    "branch": (branch, [(X,), (abs(X),), (-abs(X),), (X + 1,)]),
    "branches in a loop": (branches_in_a_loop, THREE),
    "loop in a branch": (loop_in_a_branch, [(abs(X),), (-abs(X),), (abs(X) + 1,)]),
    "mixed": (mixed, THREE),
    "mixed loop": (mixed_loop, [(X, ROWS), (X + 1, -ROWS)]),
    "mixed rounds": (mixed_rounds, THREE),
    "gradient of a branch": (nnc.grad(lambda x: nnc.sum(branch(x) ** 2)), [(X,), (abs(X),), (-abs(X),)]),
    "gradient of a scan": (nnc.grad(lambda x, r: nnc.sum(cumulated(x, r)[0] ** 2)), [(X, ROWS), (X + 1, -ROWS)]),
    "gradient of a while loop": (nnc.grad(lambda x, n: nnc.sum(repeated(n, x)[1] ** 2)),
                                 [(X, np.int64(k)) for k in (0, 1, 5, 20, 3)]),
    "gradient of values that go round": (nnc.grad(lambda x: sum(nnc.sum(y) for y in fibonacci(x)[1:])), THREE),
    "gradient of branches in a loop": (nnc.grad(lambda x: nnc.sum(branches_in_a_loop(x)[1] ** 2)), THREE),
    "gradient of a loop in a branch": (nnc.grad(lambda x: nnc.sum(loop_in_a_branch(x) ** 2)), [(abs(X),), (-abs(X),)]),
    "gradient of a mixed while loop": (nnc.grad(lambda x: nnc.sum(mixed_rounds(x)[1] ** 2)), THREE),
    "gradient of a mixed loop": (nnc.grad(lambda x, r: nnc.sum(mixed_loop(x, r)[1] ** 2)), [(X, ROWS)]),
}


@pytest.mark.parametrize("kind", [Captured, Mixed], ids=["machine code", "mixed"])
@pytest.mark.parametrize("name", CASES)
def test_machine_code_and_python_give_the_same_bits(name: str, kind: type[Captured]) -> None:
    f, calls = CASES[name]
    same_bits(f, *calls, *calls, kind=kind)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_branches_are_chosen_by_integers_of_each_dtype(dtype: str) -> None:
    def f(i: Any, x: Any) -> Any:
        return nnc.case_of(i, [lambda x: (x * 2,), lambda x: (x * 3,)], (x,), (x * 0,))

    largest = np.iinfo(dtype).max
    smallest = np.iinfo(dtype).min
    same_bits(f, *[(np.array(i, dtype), X) for i in (0, 1, 2, largest, smallest)])


def test_a_branch_that_there_is_not_is_an_error_and_the_next_call_is_right() -> None:
    native = Captured()
    with nnc.config.using(deterministic=True):
        wanted = X * 2
        with on(native):
            f = nnc.jit(lambda i, x: nnc.case_of(i, [lambda x: (nnc.tanh(x),), lambda x: (x * 2,)], (x * 1,)))
            for _ in range(2):
                [y] = f(nnc.asarray(1), nnc.asarray(X))
                np.testing.assert_array_equal(y.numpy(), wanted)
                with pytest.raises(nnc.errors.OutOfRangeError, match="no branch 7 among 2"):
                    f(nnc.asarray(7), nnc.asarray(X))


def test_tapes_that_one_program_fills_and_another_reads() -> None:
    """Deferred loops are programs of their own; their gradients read what these have put on tapes."""
    def slopes(device: Captured) -> list[Values]:
        with on(device):
            found = []
            for n in (3, 0, 7, 3, 30):
                x = nnc.variable(X * 0.5 + n / 8)
                with nnc.deferred():
                    nnc.sum(repeated(nnc.asarray(n), x)[1] ** 2).backward()
                found.append(x.grad.numpy())
            return found

    native, python = Captured(), Captured(native=False)
    for ours, theirs in zip(slopes(native), slopes(python), strict=True):
        assert ours.tobytes() == theirs.tobytes()
    assert any(program.native.slots.filled for program in native.programs if program.native is not None)


# ---- training
def loss_of(w: Any, x: Any, rows: Any) -> Any:
    last, ys = nnc.scan(lambda c, r: (nnc.tanh(c @ w + r), nnc.sum(c * r)), x, rows)
    return nnc.sum(last ** 2) + nnc.mean(ys)


def trained_step_by_step(w: Any, x: Any, rows: Any) -> Any:
    """Gradients of a loop, used by the steps of a loop."""
    def step(w: Any, _: Any) -> Any:
        loss, slope = nnc.value_and_grad(loss_of)(w, x, rows)
        return w - 0.05 * slope, loss

    return nnc.scan(step, w, None, 6)


def trained_under_a_condition(w: Any, x: Any, rows: Any) -> Any:
    """Steps that happen while the loss is large, and not in every round."""
    def step(i: Any, w: Any, loss: Any) -> Any:
        now, slope = nnc.value_and_grad(loss_of)(w, x, rows)
        return i + 1, nnc.cond(i % 3 == 1, lambda w, s: w, lambda w, s: w - 0.05 * s, w, slope), now

    return nnc.while_loop(lambda i, w, loss: (i < 8) & (loss > 0.01), step, (0, w, nnc.asarray(1.0)))


@pytest.mark.parametrize("train", [trained_step_by_step, trained_under_a_condition])
def test_weights_after_several_steps_are_the_same(train: Any) -> None:
    same_bits(train, (W, X, ROWS), (W * 2, X, ROWS))


def test_weights_of_a_network_that_is_trained_by_compiled_steps() -> None:
    """Its cells are overwritten in place; dropout and the rate of the step number stay live."""
    native, python = (trained(device) for device in (Captured(), Captured(native=False)))
    assert native.keys() == python.keys()
    for name, value in native.items():
        assert value.tobytes() == python[name].tobytes(), name


def trained(device: Captured) -> dict[str, Values]:
    with on(device):
        generator = nnc.Generator(1)
        network = nn.Sequential(
            nn.Linear(12, 16, generator=generator), nn.ReLU(), nn.Dropout(0.25, generator=generator),
            nn.Linear(16, 3, generator=generator))
        minimiser = optim.Adam(network.named_parameters(), learning_rate=0.01)
        gradients = nn.value_and_grad(network, lambda x, label: nnc.cross_entropy(network(x), label))

        @nnc.jit
        def step(x: Any, label: Any) -> Any:
            loss, grads = gradients(x, label)
            minimiser.update(grads)
            return loss

        for k in range(5):
            step(nnc.asarray(ROWS + k), nnc.asarray(np.arange(9) % 3))
        assert device.in_machine_code or not device.native
        return {name: value.numpy() for name, value in network.named_parameters().items()}


def test_arguments_and_results_lie_elsewhere_in_every_call() -> None:
    """What has gone round in the memory of one call's arguments is not looked for in that of the next one's."""

    def rotated(a: Any, b: Any, c: Any, y: Any) -> Any:
        return nnc.while_loop(lambda i, *_: i < 5, lambda i, a, b, c, y: (i + 1, b, c, a + b * 1.25, nnc.tanh(b)),
                              (0, a, b, c, y))

    device, kept = Captured(), []
    with on(device):
        for k in range(6):
            given = [nnc.asarray(X + k + j) for j in range(4)]
            with nnc.deferred():
                late = rotated(*given)
            kept += [given, late]
            for y, wanted in zip(late, rotated(*given), strict=True):
                np.testing.assert_allclose(y.numpy(), wanted.numpy(), rtol=1e-6)
    assert device.in_machine_code
