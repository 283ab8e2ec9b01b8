"""Measured choices: the quickest code runs, what was measured is kept, and the order of preference rules elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import AttributeValueError, DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import CommandBackend, Device, Kernel, Launch
from nnc_core.engine import ComputationGraph
from nnc_core.engine.candidates import loop_nest
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack, make_stack
from tests.engine.conftest import call, floats, graph

ROWS = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


class Sine(CommandBackend):
    """Library code for sin that takes as long as it is told, or cannot be built."""

    def __init__(self, name: str, seconds: float = 0.0, fails: Exception | None = None) -> None:
        self.name, self.seconds, self.fails = name, seconds, fails
        self.runs = 0
        self.device: Device | None = None

    def refuse(self, command: Command) -> str | None:
        return None

    def prepare(self, command: Command) -> Kernel:
        if self.fails is not None:
            raise self.fails
        assert self.device is not None
        return SineKernel(self, self.device.compile(loop_nest(OPERATORS["sin"], command)))


class SineKernel(Kernel):
    def __init__(self, backend: Sine, nest: Kernel) -> None:
        self.backend, self.nest = backend, nest

    def bind(self, buffers: Sequence[Any], stream: Any = None) -> Launch:
        inner = self.nest.bind(buffers, stream)

        def launch() -> None:
            time.sleep(self.backend.seconds)
            self.backend.runs += 1
            inner()

        return launch


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path) -> Iterator[None]:
    with config.using(cache_folder=str(tmp_path)):
        yield


def stack_with(*backends: Sine) -> Stack:
    device = StrictDevice(Flavour("tuned"))
    for backend in backends:
        backend.device = device
        device.take("sin", backend)
    return make_stack(device)


def compiled(stack: Stack) -> ComputationGraph:
    F = stack.operator.open()
    x = floats(F, "x", 4, 3)
    run: ComputationGraph = stack.engine.compile(graph({"x": x}, {"y": F.sin(x)}))
    np.testing.assert_allclose(call(run, x=ROWS)["y"], np.sin(ROWS), rtol=1e-6)
    return run


def backend_of(run: ComputationGraph) -> str:
    (step,) = run.plan.steps
    return step.decision.backend


def test_the_quickest_code_runs_and_it_is_said_by_how_much() -> None:
    stack = stack_with(Sine("slow", 0.02), Sine("quick"))
    with config.using(autotune=10.0):
        run = compiled(stack)
    assert backend_of(run) in ("quick", "loop nest")
    line = run.explain().splitlines()[1]
    assert "s; measured: " in line and "slow 2" in line and " ms" in line


def test_without_it_the_order_of_preference_decides() -> None:
    slow, quick = Sine("slow", 0.001), Sine("quick")
    assert backend_of(compiled(stack_with(slow, quick))) == "slow"
    assert quick.runs == 0 and slow.runs == 1
    with config.using(autotune=10.0, deterministic=True):
        assert backend_of(compiled(stack_with(slow, quick))) == "slow"
    assert quick.runs == 0


def test_what_was_measured_decides_in_other_processes_too(tmp_path: Path) -> None:
    with config.using(autotune=10.0):
        first = backend_of(compiled(stack_with(Sine("slow", 0.02), Sine("quick"))))
        slow, quick = Sine("slow", 0.02), Sine("quick")
        assert backend_of(compiled(stack_with(slow, quick))) == first != "slow"
        assert slow.runs == 0 and quick.runs <= 1, "nothing is measured again"


def test_new_code_is_measured_beside_what_is_known() -> None:
    with config.using(autotune=10.0):
        stack = stack_with(Sine("slow", 0.02))
        assert backend_of(compiled(stack)) == "loop nest"
        other = Sine("other", 0.01)
        other.device = stack.device
        stack.device.take("sin", other)
        run = compiled(stack)
    assert backend_of(run) == "loop nest" and other.runs > 0 and "other 1" in run.explain()


def test_an_entry_that_is_damaged_is_measured_again(tmp_path: Path) -> None:
    with config.using(autotune=10.0):
        compiled(stack_with(Sine("slow", 0.02)))
        for entry in (tmp_path / "times").iterdir():
            if len(entry.name) == 32:
                entry.write_bytes(entry.read_bytes()[:-3])
        slow = Sine("slow", 0.02)
        with pytest.warns(FallbackWarning, match="damaged"):
            run = compiled(stack_with(slow))
    assert slow.runs > 0 and backend_of(run) == "loop nest"


def test_no_time_is_left() -> None:
    slow, quick = Sine("slow", 0.001), Sine("quick")
    with config.using(autotune=1e-9):
        assert backend_of(compiled(stack_with(slow, quick))) == "slow"
    assert quick.runs == 0


def test_code_that_is_refused_is_not_measured() -> None:
    stack = stack_with(Sine("refused", fails=NotSupportedError("not today")), Sine("slow", 0.02))
    with config.using(autotune=10.0):
        run = compiled(stack)
    assert backend_of(run) == "loop nest" and "refused" not in run.explain().split("measured")[1]


def test_code_that_fails_says_for_which_command() -> None:
    stack = stack_with(Sine("broken", fails=DeviceFailureError("no luck")))
    with config.using(autotune=10.0), pytest.raises(DeviceFailureError, match="no luck") as caught:
        compiled(stack)
    assert caught.value.operator == "sin"
    assert backend_of(compiled(stack_with(Sine("quick")))) == "quick"


def test_what_is_pinned_is_not_asked_for_its_time() -> None:
    stack = stack_with(Sine("slow", 0.02), Sine("quick"))
    with config.using(autotune=10.0):
        first = compiled(stack)
        pins = {key: "slow" for key in stack.engine.decider.decisions()}
        stack.engine.decider.pin(pins, strict=True)
        assert backend_of(compiled(stack)) == "slow" != backend_of(first)


def test_arrays_of_the_user_are_not_touched() -> None:
    """Updates in place are measured on buffers of their own."""
    stack = stack_with(Sine("slow", 0.005), Sine("quick"))
    F = stack.operator.open()
    x = floats(F, "x", 4, 3)
    with config.using(autotune=10.0):
        run = stack.engine.compile(graph({"x": x}, {"y": F.sin(F.add(x, x))}, ("y", "x")))
    np.testing.assert_allclose(call(run, x=ROWS)["y"], np.sin(2 * ROWS), rtol=1e-6)


def test_jit_on_the_cpu() -> None:
    with nnc.use_device("cpu:0"), config.using(autotune=10.0):
        f = nnc.jit(lambda x: nnc.matmul(nnc.exp(x), x.T))
        x = nnc.asarray(ROWS)
        np.testing.assert_allclose(f(x).numpy(), np.exp(ROWS) @ ROWS.T, rtol=1e-5)
        assert "measured" in f.lower(x).explain()


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "1", True, None])
def test_seconds_that_are_none(value: Any) -> None:
    with pytest.raises(AttributeValueError, match="autotune"):
        config.autotune = value
    assert config.autotune == 0.0
