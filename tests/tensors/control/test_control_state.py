"""State, random numbers, effects and modules in the bodies of loops and branches: as eager Python has them, in every
mode and on every device."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import ExecutionError, GradientError
from tests.semantics.networks import RunningNorm
from tests.support import drawn, eagerly, lazily

Program = Callable[..., Any]


RUNS = pytest.mark.parametrize("run", [eagerly, lazily, nnc.jit], ids=["eager", "deferred", "jit"])
COMPLETE = pytest.mark.parametrize("run", [eagerly, nnc.jit], ids=["eager", "jit"])
"""Where effects happen although nobody reads a result."""


def counted(times: int, body: Program, *carried: Any) -> Any:
    """body(i, *carried) so many times."""
    return nnc.while_loop(lambda i, *_: i < times, lambda i, *c: (i + 1, *body(i, *c)), (nnc.asarray(0), *carried))[1:]


def near(found: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    a, b = found.numpy(), wanted.numpy()
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(0.1, float(np.abs(b).max(initial=0))))


# ---- cells
@RUNS
def test_a_cell_that_a_body_writes_is_carried(device: str, run: Any) -> None:
    cell, total = nnc.Cell(nnc.asarray(1.0), "product"), nnc.Cell(nnc.asarray(0.0), "total")

    def program(x: nnc.Tensor) -> Any:
        def step(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            cell.write(cell.read() * 2)
            total.write(total.read() + y[0])
            return (y + cell.read(),)

        return counted(3, step, x)[0]

    f = run(program)
    for k in range(2):
        start = 8.0**k
        assert f(nnc.zeros(2)).tolist() == [start * 14] * 2
        assert cell.read().item() == start * 8
    assert total.read().item() == (0 + 2 + 6) + (0 + 16 + 48)


@RUNS
def test_cells_in_scans_branches_and_inner_loops(device: str, run: Any) -> None:
    """Only the branch that runs writes; an inner loop's cell is the outer loop's."""
    positive, calls = nnc.Cell(nnc.asarray(0.0)), nnc.Cell(nnc.asarray(0))

    def program(xs: nnc.Tensor) -> Any:
        def add(x: nnc.Tensor) -> nnc.Tensor:
            positive.write(positive.read() + x)
            return x

        def count(i: nnc.Tensor) -> tuple[()]:
            calls.write(calls.read() + 1)
            return ()

        def step(c: nnc.Tensor, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            y = nnc.cond(x > 0, add, lambda x: -x, x)
            counted(2, count)
            return c + y, positive.read()

        return nnc.scan(step, nnc.asarray(0.0), xs)

    last, ys = run(program)(nnc.asarray([1.0, -2.0, 3.0]))
    assert (last.item(), ys.tolist()) == (6.0, [1, 1, 4])
    assert (positive.read().item(), calls.read().item()) == (4.0, 6)


@RUNS
def test_a_cell_that_only_a_condition_reads(device: str, run: Any) -> None:
    """The body moves it, the condition sees it move."""
    fuel = nnc.Cell(nnc.asarray(5.0))

    def program(x: nnc.Tensor) -> Any:
        def burn(y: nnc.Tensor) -> tuple[nnc.Tensor]:
            fuel.write(fuel.read() - 2)
            return (y + 1,)

        return nnc.while_loop(lambda y: fuel.read() > 0, burn, (x,))[0]

    assert run(program)(nnc.asarray(0.0)).item() == 3 and fuel.read().item() == -1


# ---- random numbers
@RUNS
def test_random_numbers_are_those_of_python_loops(device: str, run: Any) -> None:
    """To the bit, and the generator goes on from where a Python loop would have left it."""

    def program(x: nnc.Tensor) -> Any:
        def step(c: nnc.Tensor, row: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            noise = nnc.cond(row[0] > 0, lambda: generator.uniform((2,)), lambda: generator.uniform((2,)) * 2)
            return c + noise, generator.integers(0, 100, (2,))

        return nnc.scan(step, nnc.zeros(2), x)

    x = nnc.asarray([[1.0, 0.0], [-1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]])
    generator = nnc.Generator(5)
    wanted = [t.numpy() for t in (*program(x), generator.uniform((3,)))]
    generator = nnc.Generator(5)
    found = [t.numpy() for t in (*run(program)(x), generator.uniform((3,)))]
    for a, b in zip(found, wanted, strict=True):
        assert a.tobytes() == b.tobytes()


@RUNS
def test_the_default_generator_in_a_body(device: str, run: Any) -> None:
    def program(x: nnc.Tensor) -> Any:
        drop = nn.Dropout(0.5, nnc.Generator(1))
        return counted(3, lambda i, y: (drop(y) + 1,), x)[0]

    assert run(program)(nnc.ones(16)).tolist() == program(nnc.ones(16)).tolist()
    assert len(set(program(nnc.ones(16)).tolist())) > 1


def test_draws_of_which_nothing_is_read_still_move_the_generator(device: str) -> None:
    def program(generator: nnc.Generator) -> nnc.Tensor:
        def step(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            generator.normal((100,))
            return (y + 1,)

        return counted(4, step, nnc.asarray(0.0))[0]

    plain, traced = nnc.Generator(2), nnc.Generator(2)
    f = nnc.jit(lambda: program(traced))
    assert f().item() == program(plain).item() == 4
    assert traced.uniform((3,)).tolist() == plain.uniform((3,)).tolist()
    assert "log(" not in str(f.lower().graph), "the numbers themselves are not made"


# ---- effects
def printed(run: Any, program: Program, *args: Any) -> list[str]:
    f = run(program)
    out = io.StringIO()
    with redirect_stdout(out):
        for t in nnc.asarray(0.0), f(*args):
            if isinstance(t, nnc.Tensor):
                t.numpy()
    return out.getvalue().splitlines()


@COMPLETE
def test_effects_in_a_loop_whose_results_nobody_reads(device: str, run: Any) -> None:
    def program(x: nnc.Tensor) -> nnc.Tensor:
        def step(i: nnc.Tensor) -> tuple[()]:
            nnc.debug_print("round {}", i)
            return ()

        counted(3, step)
        return x + 1

    assert printed(run, program, drawn(2)) == ["round 0", "round 1", "round 2"]


@RUNS
def test_effects_in_a_loop_of_which_only_another_result_is_read(device: str, run: Any) -> None:
    """The first value goes round idly: it is not what keeps the printing."""

    def program(x: nnc.Tensor) -> nnc.Tensor:
        def step(i: nnc.Tensor, idle: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor, Any, nnc.Tensor]:
            nnc.debug_print("at {}", i)
            return i + 1, 0, y * 2

        return nnc.while_loop(lambda i, idle, y: i < 2, step, (nnc.asarray(0), nnc.asarray(7), x))[2]

    assert printed(run, program, drawn(2)) == ["at 0", "at 1"]


@COMPLETE
def test_effects_of_a_body_without_results(device: str, run: Any) -> None:
    def program(xs: nnc.Tensor) -> nnc.Tensor:
        def show(x: nnc.Tensor, state: tuple[()]) -> tuple[None, tuple[()]]:
            nnc.debug_print("{:.0f}", x)
            return None, ()

        nnc.foreach(show, xs, ())
        nnc.cond(xs[0] > 1, lambda: nnc.debug_print("large"), lambda: None)
        nnc.cond(xs[0] < 1, lambda: nnc.debug_print("small"), lambda: None)
        return xs

    assert printed(run, program, nnc.asarray([5.0, 6.0])) == ["5", "6", "large"]


@COMPLETE
def test_effects_in_conditions_and_inner_loops(device: str, run: Any) -> None:
    """Inner loops that depend on nothing of the outer one run in each of its rounds all the same."""

    def program(x: nnc.Tensor) -> nnc.Tensor:
        def inner(j: nnc.Tensor) -> tuple[()]:
            nnc.debug_print("inner {}", j)
            return ()

        def outer(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            counted(2, inner)
            return (y + 1,)

        def test(z: nnc.Tensor) -> nnc.Tensor:
            nnc.debug_print("asked {}", z)
            return z < 1

        y = counted(2, outer, x)[0]
        return y + nnc.while_loop(test, lambda z: (z + 1,), (nnc.asarray(0),))[0]

    assert printed(run, program, nnc.asarray(0.0)) == ["inner 0", "inner 1"] * 2 + ["asked 0", "asked 1"]


@COMPLETE
@pytest.mark.parametrize("way", ["reverse", "forward"])
def test_effects_happen_once_where_they_are_differentiated(device: str, run: Any, way: str) -> None:
    """Branches run again on the way back, and so do loops in loops: silently."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        def show(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            return (nnc.tanh(nnc.debug_print("inner", y)),)

        def outer(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            (z,) = counted(2, show, y)
            return (nnc.cond(nnc.sum(z) > 100, lambda z: z, lambda z: nnc.sin(nnc.debug_print("branch", z)), z),)

        return nnc.sum(counted(2, outer, x)[0])

    def program(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.grad(f)(x) if way == "reverse" else nnc.jvp(f, (x,), (x * 0 + 1,))[1]

    assert printed(run, program, drawn(2)) == ["inner", "inner", "branch"] * 2
    plain = nnc.grad(f)(drawn(2)) if way == "reverse" else program(drawn(2))
    near(nnc.jit(program)(drawn(2)), plain)


@RUNS
def test_callbacks_in_bodies_give_values_and_gradients(device: str, run: Any) -> None:
    def sine(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.callback(np.sin, x.spec, x, vjp=lambda g, a: g * np.cos(a))

    def program(f: Program, x: nnc.Tensor) -> nnc.Tensor:
        def step(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            return (nnc.cond(nnc.sum(y) > 50, lambda y: y, f, y) + i.astype(y.dtype),)

        return nnc.sum(counted(3, step, x)[0] ** 2)

    for derived in (lambda f: f, nnc.grad):
        found = run(derived(lambda x: program(sine, x)))(drawn(3))
        near(found, derived(lambda x: program(nnc.sin, x))(drawn(3)))


def test_an_error_of_a_callback_in_a_body_names_it(device: str) -> None:
    def refuse(a: Any) -> Any:
        raise RuntimeError("not again")

    def program(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.map(lambda r: nnc.callback(refuse, r.spec, r), x)

    for run in (eagerly, lazily, nnc.jit):
        with pytest.raises(ExecutionError, match="refuse raised RuntimeError: not again") as caught:
            run(program)(drawn(3)).numpy()
        assert "test_control_state.py" in str(caught.value)
    assert nnc.map(lambda r: r + 1, nnc.zeros(2)).tolist() == [1, 1], "the device is usable afterwards"


# ---- modules
class Recurrent(nn.Module):
    """A cell with dropout and running statistics run along a sequence; the state when it ends."""

    def __init__(self) -> None:
        self.cell = nn.LSTMCell(3, 4, generator=nnc.Generator(1))
        self.norm = RunningNorm(4)
        self.drop = nn.Dropout(0.3, nnc.Generator(2))

    def forward(self, xs: nnc.Tensor) -> nnc.Tensor:
        def step(state: Any, x: nnc.Tensor) -> tuple[Any, nnc.Tensor]:
            h, c = self.cell(x, state)
            h = self.drop(self.norm(h))
            return (h, c), h

        start = nnc.zeros((xs.shape[1], 4)), nnc.zeros((xs.shape[1], 4))
        (h, _), hs = nnc.scan(step, start, xs)
        return h + nnc.sum(hs, axis=0)


def _state(model: nn.Module) -> dict[str, Any]:
    return {k: np.asarray(v) for k, v in model.state_dict().items()}


@RUNS
def test_modules_in_bodies(device: str, run: Any) -> None:
    """Weights are captured; statistics and random keys are carried."""
    plain, other = Recurrent(), Recurrent()
    f = run(lambda x: other(x))
    for k in range(3):
        if k == 2:
            plain.eval(), other.eval()
        near(f(drawn(5, 2, 3) * (k + 1)), plain(drawn(5, 2, 3) * (k + 1)))
    for name, wanted in _state(plain).items():
        np.testing.assert_allclose(_state(other)[name], wanted, rtol=2e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("hybrid", [False, True], ids=["plain", "hybridized"])
def test_gradients_of_modules_in_bodies(device: str, hybrid: bool) -> None:
    plain, other = Recurrent(), Recurrent()
    if hybrid:
        other.hybridize()
    for _ in range(2):
        losses, grads = zip(*[nn.value_and_grad(m, lambda m=m: nnc.sum(m(drawn(5, 6, 3)) ** 2))()
                              for m in (plain, other)], strict=True)
        near(losses[1], losses[0])
        assert grads[0].keys() == grads[1].keys() and len(grads[0]) == 6
        for name, wanted in grads[0].items():
            near(grads[1][name], wanted, 2e-4)
            assert np.abs(wanted.numpy()).max() > 0, name
    compiled = nnc.jit(lambda x: nn.value_and_grad(other, lambda: nnc.sum(other(x) ** 2))())
    wanted_loss, wanted_grads = nn.value_and_grad(plain, lambda: nnc.sum(plain(drawn(5, 6, 3)) ** 2))()
    loss, found = compiled(drawn(5, 6, 3))
    near(loss, wanted_loss)
    for name, wanted in wanted_grads.items():
        near(found[name], wanted, 2e-4)


@RUNS
def test_a_parameter_may_be_written_in_a_body(device: str, run: Any) -> None:
    """As any cell; but not where a gradient by it is taken."""
    w = nn.Parameter(nnc.ones(2), "w")

    def program(x: nnc.Tensor) -> nnc.Tensor:
        def step(i: nnc.Tensor, y: nnc.Tensor) -> tuple[nnc.Tensor]:
            w.write(w.read() * 2)
            return (y + w.read(),)

        return counted(2, step, x)[0]

    assert run(program)(nnc.zeros(2)).tolist() == [6, 6] and w.read().tolist() == [4, 4]

    class Model(nn.Module):
        def __init__(self) -> None:
            self.w = w

        def forward(self, x: nnc.Tensor) -> nnc.Tensor:
            return nnc.sum(program(x))

    model = Model()
    with pytest.raises(GradientError, match="parameter 'w' is written inside the function that is differentiated"):
        run(lambda x: nn.value_and_grad(model, lambda: model(x))()[0])(nnc.zeros(2))
    assert w.read().tolist() == [4, 4]


def test_a_compiled_function_is_called_in_a_body(device: str) -> None:
    """Compiled by itself it is a call; in a body it is part of the body, its state is carried."""
    cell = nnc.Cell(nnc.asarray(0.0))

    @nnc.jit
    def f(x: nnc.Tensor) -> nnc.Tensor:
        cell.write(cell.read() + 1)
        return nnc.tanh(x) + cell.read()

    def program(x: nnc.Tensor) -> nnc.Tensor:
        return counted(3, lambda i, y: (f(y),), x)[0]

    wanted = program(drawn(2))
    assert cell.read().item() == 3
    for run in (lazily, nnc.jit):
        cell.write(nnc.asarray(0.0))
        near(run(program)(drawn(2)), wanted)
        assert cell.read().item() == 3


@pytest.mark.parametrize("compiled", [False, True])
def test_a_callback_that_reads_captured_values_alone_runs_in_its_branch_alone(device: str, compiled: bool) -> None:
    seen: list[str] = []

    def inner(x: nnc.Tensor) -> nnc.Tensor:
        nnc.callback(lambda a: seen.append("inner"), None, x)
        return x * 3

    def f(outer: nnc.Tensor, nested: nnc.Tensor, x: nnc.Tensor) -> nnc.Tensor:
        def second() -> nnc.Tensor:
            nnc.callback(lambda a: seen.append("outer"), None, x)
            return nnc.cond(nested, lambda: inner(x), lambda: x * 2)

        return nnc.cond(outer, lambda: x + 1, second)

    run = nnc.jit(f) if compiled else f
    for flags, wanted, calls in (((True, True), 2, []), ((False, False), 2, ["outer"]),
                                 ((False, True), 3, ["outer", "inner"])):
        seen.clear()
        assert run(*map(nnc.asarray, flags), nnc.ones(2)).tolist() == [wanted] * 2
        assert seen == calls


def test_a_callback_that_reads_captured_values_runs_each_round(device: str) -> None:
    seen: list[float] = []

    def f(x: nnc.Tensor) -> nnc.Tensor:
        def body(i: nnc.Tensor) -> tuple[nnc.Tensor]:
            nnc.callback(lambda a: seen.append(float(a[0])), None, x)
            return (i + 1,)

        return nnc.while_loop(lambda i: i < 3, body, (nnc.asarray(0),))[0]

    assert nnc.jit(f)(nnc.ones(2) * 5).item() == 3
    assert seen == [5.0, 5.0, 5.0]
