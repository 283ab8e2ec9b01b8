"""Compiled graphs on several streams: the values of one, and nothing goes on before what it waits for.

Asked of devices whose programs may be spread: those that say so by `Device.streams`, and those that leave `capture` to
core and have streams, which have to be ready for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import float32, int32
from nnc_core.base.record import Await, Call, Record, Signal
from nnc_core.device import Device
from nnc_core.device.stream import SerialStream
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.agreement import assert_same_bits
from nnc_plugins.conformance.case import Array
from nnc_plugins.conformance.programs import random_program
from nnc_plugins.conformance.running import called, compiles_slowly, get, kernel, one_by_one, put

N = 3001
SPEC = TensorSpec((N,), int32)
ONES = np.ones(N, np.int32)
GRAPHS, GRAPHS_COMPILED = 8, 2


@pytest.fixture
def spread(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    """The stack, with a device that says that its graphs are spread over streams."""
    device = stack.device
    if device.streams == 1:
        if isinstance(device.default_stream, SerialStream):
            pytest.skip("work is done when a call returns")
        if type(device).capture is not Device.capture:
            pytest.skip("its own programs run on one stream")
        monkeypatch.setattr(device, "streams", 3)
        device.__dict__.pop("side_streams", None)
    with config.using(deterministic=True):
        yield stack
    device.__dict__.pop("side_streams", None)


def test_branches_run_on_streams_of_their_own(spread: Stack, rng: np.random.Generator) -> None:
    F = spread.operator.open()
    inputs = {f"x{n}": F.placeholder(f"x{n}", TensorSpec((N,), float32)) for n in range(3)}
    ends: dict[str, Node] = {}
    for n, x in enumerate(inputs.values()):
        # each of another length, so that they are not done at once
        ends[f"y{n}"] = F.sum(F.concat(*[F.sin(F.exp(F.tanh(x)))] * (n + 1), axis=0), axis=(0,), keepdims=False)
    graph = SymbolicGraph(inputs, {**ends, "z": F.add(ends["y0"], F.add(ends["y1"], ends["y2"]))}, (), "branches")
    given = {name: rng.standard_normal(N).astype(np.float32) for name in inputs}
    run = spread.engine.compile(graph)
    assert len({record.stream for record in run.records if isinstance(record, Call)}) > 1
    for _ in range(5):
        _check(called(run, given), one_by_one(spread, graph, given))


def test_random_graphs_give_the_bits_of_their_operators(spread: Stack, rng: np.random.Generator) -> None:
    for _ in range(GRAPHS_COMPILED if compiles_slowly(spread.device) else GRAPHS):
        program = random_program(spread, rng)
        run = spread.engine.compile(program.graph)
        wanted = one_by_one(spread, program.graph, program.given)
        for _ in range(2):
            _check(called(run, program.given), wanted)


def _check(found: dict[str, Array], wanted: dict[str, Array]) -> None:
    for name, array in wanted.items():
        assert_same_bits(found[name], array, name)


# ---- records
def _around(stack: Stack) -> list[Record]:
    """b = a + 1 on the first side stream, a = b + 1 on the program's, c = a + 1 on the last, one after another."""
    add, last = kernel(stack, "add", SPEC, SPEC), stack.device.streams - 1
    a, b, c, one = range(4)
    return [Signal(0, 0), Await(1, 0), Call(add, (a, one, b), "add", stream=1), Signal(1, 1), Await(0, 1),
            Call(add, (b, one, a), "add"), Signal(0, 2), Await(last, 2), Call(add, (a, one, c), "add", stream=last),
            Signal(last, 3), Await(0, 3)]


def test_streams_wait_for_signals(spread: Stack) -> None:
    """The next run finds what the one before has left, and so does what comes later on the program's stream."""
    device = spread.device
    a, b, c = (put(device, 0 * ONES) for _ in range(3))
    program = device.capture(_around(spread), [a, b, c, put(device, ONES)], device.default_stream)
    for k in range(1, 11):
        program.run()
        assert (get(device, a, ONES) == 2 * k).all() and (get(device, c, ONES) == 2 * k + 1).all()


def test_what_waits_for_a_stream_that_is_held_is_held(spread: Stack) -> None:
    device = spread.device
    a, b, c = (put(device, 0 * ONES) for _ in range(3))
    program = device.capture(_around(spread), [a, b, c, put(device, ONES)], device.default_stream)
    program.run()
    device.default_stream.synchronize()
    gate = device.side_streams[0].gate()
    if gate is None:
        pytest.skip("no gate holds a stream")
    program.run()
    host = np.zeros(N, np.int32)
    event = device.download(c, host)
    device.stream().record().wait()  # another stream is not held
    early = event.done
    gate.open()
    event.wait()
    assert not early and (host == 5).all()
