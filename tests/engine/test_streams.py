"""Compiled graphs on several streams: the values of one stream, and an error wherever a wait is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.config import config
from nnc_core.base.errors import Error, ExecutionError
from nnc_core.base.loopnest import LoopNest
from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.builtin.flavours import Flavour
from nnc_core.device import Device, Kernel
from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack, make_stack, stack_for
from nnc_core.symbol import postorder
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.running import called
from tests.engine.conftest import call, floats, graph
from tests.engine.plan_meaning import PlanError
from tests.engine.plans import every_program
from tests.engine.stream_order import check_order
from tests.graph.strategies import RandomGraph, grow_graph

LATE = next(flavour for flavour in FLAVOURS if flavour.queues)


def on_streams(count: int, flavour: Flavour = LATE) -> Stack:
    device = StrictDevice(flavour)
    device.streams = count
    return make_stack(device)


@pytest.fixture(scope="module")
def three() -> Stack:
    return on_streams(3)


def two_branches(F: Nodes) -> SymbolicGraph:
    x, y = floats(F, "x", 50), floats(F, "y", 50)
    return graph({"x": x, "y": y}, {"z": F.add(F.sin(F.exp(x)), F.cos(F.tanh(y)))})


def streams_of(records: Sequence[Record]) -> set[int]:
    return {record.stream for record in records if isinstance(record, Call)}


def without_waits(records: Sequence[Record]) -> Iterator[list[Record]]:
    """The records without the waits of one call, or of the end."""
    begins = [n for n, r in enumerate(records) if isinstance(r, Await) and not isinstance(records[n - 1], Await)]
    for begin in begins:
        end = next((n for n in range(begin, len(records)) if not isinstance(records[n], Await)), len(records))
        yield [*records[:begin], *records[end:]]


def test_branches_run_on_streams_of_their_own(three: Stack, F: Nodes) -> None:
    run = three.engine.compile(two_branches(F))
    assert len(streams_of(run.records)) > 1
    first, *_, last = run.records
    assert isinstance(first, Signal) and first.stream == 0 and isinstance(last, Await) and last.stream == 0
    x, y = np.linspace(-1, 1, 50, dtype=np.float32), np.linspace(0, 3, 50, dtype=np.float32)
    for _ in range(5):
        np.testing.assert_allclose(call(run, x=x, y=y)["z"], np.sin(np.exp(x)) + np.cos(np.tanh(y)), rtol=1e-5)


def test_one_stream_has_calls_alone(stack: Stack, F: Nodes) -> None:
    assert all(isinstance(record, Call) and record.stream == 0
               for record in stack.engine.compile(two_branches(F)).records)


def test_a_chain_stays_on_one_stream(three: Stack, F: Nodes) -> None:
    x = floats(F, "x", 50)
    assert not any(isinstance(record, Signal) for record in
                   three.engine.compile(graph({"x": x}, {"y": F.sin(F.exp(F.tanh(x)))})).records)


def compiled_on(stack: Stack, found: RandomGraph) -> tuple[ComputationGraph, dict[str, Any]]:
    outputs = {f"y{i}": y for i, y in enumerate(found.outputs)}
    read = set(postorder(outputs.values()))
    inputs = {f"x{i}": p for i, p in enumerate(found.placeholders) if p in read}
    return stack.engine.compile(SymbolicGraph(inputs, outputs)), {k: found.values[p] for k, p in inputs.items()}


@given(seed=st.integers(0, 2**32), count=st.integers(2, 5))
def test_random_graphs_give_the_bits_of_one_stream_and_need_each_wait(seed: int, count: int) -> None:
    """Each program that is compiled is checked for order; none passes without the waits of any of its calls."""
    found = grow_graph(Random(seed), Random(seed).randint(2, 30))
    if not found.outputs:
        return
    with config.using(deterministic=True):
        try:
            alone, arrays = compiled_on(stack_for("strict:0"), found)
            wanted = called(alone, arrays)
        except Error:
            return
        run, _ = compiled_on(on_streams(count), found)
        values = called(run, arrays)
    for name in wanted:
        assert same_bits(values[name], wanted[name]).all(), name
    for records in without_waits(run.records):
        with pytest.raises(PlanError):
            check_order(run, records)


def trained(stack: Stack) -> list[np.ndarray[Any, Any]]:
    with nnc.use_device(stack):
        nnc.manual_seed(0)
        net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        minimiser = optim.Adam(net.named_parameters(), learning_rate=0.1)
        x = nnc.asarray(np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3))
        step = optim.make_step(nn.value_and_grad(net, lambda x: nnc.mean(net(x) ** 2)), minimiser)
        for _ in range(3):
            step(x)
        return [parameter.numpy() for parameter in net.parameters()]


def opencl_on(count: int) -> Stack:
    try:
        offered: Any = stack_for("opencl:0").device
    except Error as error:
        pytest.skip(f"no OpenCL device: {error}")
    device: Device = type(offered)(offered._device, "opencl:0")
    device.streams = count
    return make_stack(device)


@pytest.mark.parametrize("make", [on_streams, opencl_on], ids=["strict", "opencl"])
def test_training_on_streams_gives_the_bits_of_one(make: Any) -> None:
    with every_program() as programs:
        spread = trained(make(3))
    assert any(len(streams_of(run.records)) > 1 for run in programs)
    for a, b in zip(spread, trained(make(1)), strict=True):
        assert a.tobytes() == b.tobytes()


class Failing(StrictDevice):
    """The kernel of cos raises when it is launched, while another stream is at work."""

    def compile(self, nest: LoopNest) -> Kernel:
        kernel = super().compile(nest)
        if any(i.operation == "cos" for stage in nest.stages for i in stage.instructions):
            def bind(buffers: Any, stream: Any = None) -> Any:
                def launch() -> None:
                    raise ExecutionError("not today")
                return launch
            kernel.bind = bind  # type: ignore[method-assign]
        return kernel


def test_a_launch_that_fails_is_named_and_the_next_call_works(F: Nodes) -> None:
    device = Failing(LATE)
    device.streams = 2
    run = make_stack(device).engine.compile(two_branches(F))
    x = np.ones(50, np.float32)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="cos: not today"):
            call(run, x=x, y=x)


@pytest.mark.parametrize("settings", [{"eager": True}, {"check_nan": "nan"}])
def test_settings_that_run_command_by_command(three: Stack, F: Nodes, settings: dict[str, Any]) -> None:
    run = three.engine.compile(two_branches(F))
    x = np.linspace(0, 1, 50, dtype=np.float32)
    with config.using(**settings):
        np.testing.assert_allclose(call(run, x=x, y=x)["z"], np.sin(np.exp(x)) + np.cos(np.tanh(x)), rtol=1e-5)
