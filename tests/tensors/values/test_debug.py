"""NaN mode, errors of asynchronous work, and running compiled graphs step by step."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DeviceFailureError, NonfiniteError
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.stacks import opened, stack_for
from tests.tensors.faults import fails

BAD = np.array([1.0, -1.0, 0.0], np.float32)
MAKERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "log": (lambda x: nnc.log(x), "nan"), "sqrt": (lambda x: nnc.sqrt(x), "nan"),
    "divide": (lambda x: x * 0 / (x * 0), "nan"), "power": (lambda x: x**0.5, "nan"),
    "remainder": (lambda x: x % (x * 0), "nan"),
    "exp": (lambda x: nnc.exp(x * 1000), "nonfinite"), "multiply": (lambda x: (x * 1e30) * (x * 1e30), "nonfinite"),
    "sum": (lambda x: nnc.sum(x * x * 3e38), "nonfinite"), "matmul": (lambda x: (x * 3e38) @ (x * 3e38), "nonfinite"),
    "cast": (lambda x: (x * 1e6).astype("float16"), "nonfinite"),
}  # fmt: skip


@pytest.fixture
def bad(device: str) -> nnc.Tensor:
    return nnc.asarray(BAD)


@contextmanager
def watching(mode: str = "nan") -> Iterator[None]:
    with nnc.config.using(check_nan=mode):
        yield


# ---- NaN mode, eager and deferred
@pytest.mark.parametrize("name", MAKERS)
def test_the_operator_that_makes_one_is_named(bad: nnc.Tensor, device: str, name: str) -> None:
    make, mode = MAKERS[name]
    make(bad)  # nobody watches
    with watching(mode):
        with fails(FloatingPointError, "no operand has", "float32[", device, operator=name):
            make(bad)
        if name in ("log", "sqrt", "power"):
            assert nnc.isnan(make(bad * bad + 1)).any().item() is False
    make(bad)


@pytest.mark.parametrize("name", MAKERS)
def test_a_deferred_operator_is_named_with_the_line_that_recorded_it(bad: nnc.Tensor, name: str) -> None:
    make, mode = MAKERS[name]
    with nnc.deferred():
        y = make(bad)
        z = nnc.tanh(y * 2) + 1
    with watching(mode), fails(FloatingPointError, "in <lambda>", operator=name):
        z.numpy()
    z.numpy()


def test_operands_are_described(bad: nnc.Tensor) -> None:
    with watching(), fails(FloatingPointError, "1 NaN", "of 3 elements, the first at [1]", operator="log"):
        nnc.log(bad)
    with watching(), fails(FloatingPointError, "float32[3] from -1 to 1, mean 0, 1 zero"):
        nnc.log(bad)


@pytest.mark.parametrize("mode", ["nan", "nonfinite"])
@pytest.mark.parametrize("given", [
    lambda: nnc.full((2,), float("nan")) + 1, lambda: nnc.asarray([1.0, float("nan")]) * 2, lambda: nnc.zeros(2) / 1,
    lambda: nnc.where(nnc.asarray([True, False]), float("nan"), 1.0), lambda: nnc.asarray([float("inf")]) + 1,
    lambda: nnc.pad(nnc.ones(2), 1, value=-float("inf")), lambda: nnc.max(nnc.asarray([float("nan"), 1.0])),
    lambda: nnc.log(nnc.asarray([float("nan")])), lambda: nnc.ones(2) * float("inf"), lambda: nnc.empty((0, 3)).sum(),
    lambda: nnc.max_pool2d(nnc.ones((1, 3, 3, 1)), 2, padding="SAME"), lambda: nnc.asarray([1, 2]) * 2,
    lambda: nnc.softmax(nnc.asarray([1.0, -float("inf")])), lambda: nnc.asarray([float("nan")])[0],
])  # fmt: skip
def test_what_was_there_already_is_passed_on(device: str, mode: str, given: Callable[[], Any]) -> None:
    with watching(mode):
        found = given().numpy()
    np.testing.assert_array_equal(found, given().numpy())


def test_the_difference_of_infinities_is_nobody_elses_fault(device: str) -> None:
    x = nnc.asarray([float("inf")])
    for mode in ("nan", "nonfinite"):
        with watching(mode), fails(FloatingPointError, "NaN", operator="subtract"):
            x - x
    with watching("nan"):
        assert nnc.exp(nnc.asarray([1000.0])).item() == float("inf")


def test_a_composite_names_the_operator_inside(device: str) -> None:
    x = nnc.asarray([[1.0, float("inf")]])
    with watching("nan"), fails(FloatingPointError):
        nnc.softmax(x)


@pytest.mark.parametrize("backwards", [
    lambda v: nnc.sqrt(v).sum().backward(), lambda v: nnc.grad(lambda t: nnc.sqrt(t).sum())(v),
    lambda v: nnc.value_and_grad(lambda t: nnc.sqrt(t).sum())(v),
], ids=["backward", "grad", "value_and_grad"])  # fmt: skip
def test_a_derivative_names_the_operator_that_was_differentiated(
    device: str, backwards: Callable[[nnc.Tensor], object]
) -> None:
    v = nnc.variable([1.0, 0.0])
    with watching("nonfinite"), fails(FloatingPointError, "in the derivative of sqrt at test_debug.py"):
        backwards(v)
    with watching("nonfinite"), fails(FloatingPointError, operator="log"):
        nnc.log(v)
    with watching("nonfinite"), pytest.raises(NonfiniteError) as caught:
        nnc.log(v)
    assert "in the derivative of" not in str(caught.value), "the pass is over"


def test_evaluated_symbols_are_watched(device: str) -> None:
    s = nnc.var_arr("s", (2,))
    y = nnc.log(s) + 1
    nnc.assign(s, np.array([1.0, -1.0], np.float32))
    with watching(), fails(FloatingPointError, operator="log"):
        nnc.eval_arr([y])


# ---- who watches
def test_the_mode_belongs_to_a_context(bad: nnc.Tensor) -> None:
    """Other threads compute NaNs meanwhile; and they do not open the fast path for the one that watches."""
    failures: list[BaseException] = []
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        try:
            with nnc.use_device(bad.device):
                for _ in range(3):
                    nnc.log(bad)
                    entered.set()
                assert leave.wait(60)
                nnc.log(bad)
        except BaseException as error:
            failures.append(error)

    with watching():
        thread = threading.Thread(target=other)
        thread.start()
        assert entered.wait(60)
        for _ in range(2):
            with fails(FloatingPointError, operator="log"):
                nnc.log(bad)
        with nnc.config.using(check_nan="off"):
            nnc.log(bad)
        leave.set()
        thread.join(60)
    assert not failures


def test_a_task_keeps_the_mode_that_it_was_started_with(bad: nnc.Tensor) -> None:
    async def late() -> None:
        await asyncio.sleep(0)
        nnc.tanh(bad)
        for _ in range(2):
            with fails(FloatingPointError, operator="log"):
                nnc.log(bad)

    async def run() -> None:
        with nnc.config.using(check_nan="nan"):
            task = asyncio.create_task(late())
        nnc.log(bad)
        nnc.log(bad)
        await task

    asyncio.run(run())


def test_nobody_watches_when_the_last_context_is_gone(bad: nnc.Tensor) -> None:
    gc.collect()  # contexts of tests before, which may end at any time
    before = set(CLOSED_BY)
    with watching():
        context = contextvars.copy_context()
        assert CLOSED_BY - before
    assert CLOSED_BY - before, "the copy still watches"
    with fails(FloatingPointError, operator="log"):
        context.run(nnc.log, bad)
    del context
    assert not CLOSED_BY - before


def test_the_mode_of_the_process(bad: nnc.Tensor) -> None:
    nnc.log(bad)
    nnc.config.check_nan = "nan"
    try:
        for _ in range(2):
            with fails(FloatingPointError, operator="log"):
                nnc.log(bad)
    finally:
        nnc.config.check_nan = "off"
    nnc.log(bad)


def test_an_unknown_mode_is_refused(device: str) -> None:
    with fails(ValueError, "check_nan", "nonfinite", line=False), watching("yes"):
        pass
    with fails(ValueError, "check_nan", line=False):
        nnc.config.check_nan = True
    assert nnc.config.check_nan == "off"


def test_values_are_the_same_under_watch(device: str) -> None:
    def work(x: nnc.Tensor) -> Any:
        return nnc.value_and_grad(lambda t: (nnc.tanh(t @ t.T) ** 2).sum() + nnc.softmax(t)[0, 1])(x)

    x = nnc.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
    wanted = work(x)
    with watching("nonfinite"):
        for a, b in zip(work(x), wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


# ---- asynchronous work
WAITS: dict[str, Callable[[nnc.Tensor], object]] = {
    "numpy": lambda y: y.numpy(), "item": lambda y: y[0].item(), "wait": lambda y: y.wait(), "repr": repr,
    "float": lambda y: float(y.sum()), "bool": lambda y: bool((y > 0)[0]), "list": lambda y: y.tolist(),
    "array": lambda y: np.asarray(y), "dlpack": lambda y: np.from_dlpack(y), "to": lambda y: y.to("strict:0"),
    "synchronize": lambda y: nnc.synchronize(), "synchronize this": lambda y: nnc.synchronize(y.device),
}  # fmt: skip


def makes_trouble(x: nnc.Tensor) -> nnc.Tensor:
    y = nnc.tanh(x)
    return y * y + y


@pytest.mark.parametrize("wait", WAITS)
def test_an_error_surfaces_at_the_next_inspection_and_names_the_line(queued: str, wait: str) -> None:
    x = nnc.asarray([1.0, 2.0])
    y = makes_trouble(x)
    with fails(RuntimeError, "BrokenError: the kernel came to nothing", queued, "in makes_trouble", operator="tanh"):
        WAITS[wait](y)
    assert (x * 2).tolist() == [2, 4], "the device goes on"


def test_an_error_that_surfaces_at_other_work_names_its_own_line(queued: str) -> None:
    makes_trouble(nnc.asarray([1.0]))
    with fails(RuntimeError, "in makes_trouble", operator="tanh"):
        nnc.exp(nnc.asarray([3.0])).numpy()


def test_a_deferred_error_names_the_line_that_recorded_it(queued: str) -> None:
    with nnc.deferred():
        y = makes_trouble(nnc.asarray([1.0]))
    with fails(RuntimeError, "in makes_trouble", operator="tanh"):
        y.wait()


def test_each_error_is_raised_once(queued: str) -> None:
    y = makes_trouble(nnc.asarray([1.0]))
    with pytest.raises(DeviceFailureError):
        nnc.synchronize(queued)
    nnc.synchronize(queued)
    y.wait()


def test_synchronize_waits_for_what_was_enqueued(device: str) -> None:
    y = nnc.ones((50, 50)) @ nnc.ones((50, 50))
    for asked in (None, device, y.device):
        nnc.synchronize(asked)
    assert y[0, 0].item() == 50 and stack_for(device) in opened()
    with fails(ValueError, "nowhere:0", line=False):
        nnc.synchronize("nowhere:0")


# ---- step by step
@pytest.mark.usefixtures("a_command_for_each_operator")
def test_a_failing_command_is_named_with_its_line_when_run_step_by_step(queued: str) -> None:
    f = nnc.jit(makes_trouble)
    with nnc.config.using(eager=True), fails(RuntimeError, "in makes_trouble", "BrokenError", operator="tanh"):
        f(nnc.ones(3))


def test_step_by_step_agrees_with_compiled_and_eager(device: str) -> None:
    w = nnc.Cell(nnc.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)))

    def step(x: nnc.Tensor) -> Any:
        loss, g = nnc.value_and_grad(lambda m: (nnc.tanh(x @ m) ** 2).sum())(w.read())
        w.write(w.read() - 0.1 * g)
        return loss

    def trained(f: Callable[[nnc.Tensor], Any], eager: bool) -> tuple[list[float], Any]:
        w.write(nnc.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)))
        x = nnc.asarray(np.eye(3, dtype=np.float32))
        with nnc.config.using(eager=eager):
            return [f(x).item() for _ in range(3)], w.read().numpy()

    (a, wa), (b, wb), (c, wc) = (trained(nnc.jit(step), False), trained(nnc.jit(step), True), trained(step, False))
    assert a == b == c
    np.testing.assert_array_equal(wa, wb)
    np.testing.assert_array_equal(wa, wc)
