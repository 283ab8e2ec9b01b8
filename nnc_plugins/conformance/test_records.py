"""Every kind of record, captured by the device, with kernels of the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nnc_core.base.dtype import int32
from nnc_core.base.record import Await, Call, JumpIf, LoopEnd, Record, RotatePointer, Signal, SubList
from nnc_core.composition import Stack
from nnc_core.device import Buffer, Launch, Program
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.running import get, kernel, put

SCALAR, ROW = TensorSpec((), int32), TensorSpec((33,), int32)
N, LIMIT, ONE, FLAG, TOTAL, SUM = range(6)


class Machine:
    """Counters in slots: n, limit, one, flag, total, and scratch for sums."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.device = stack, stack.device
        self.add, self.less = kernel(stack, "add", SCALAR, SCALAR), kernel(stack, "less", SCALAR, SCALAR)
        self.copy = kernel(stack, "copy", SCALAR)
        numbers = [np.array(k, np.int32) for k in (0, 5, 1)]
        self.buffers: list[Buffer] = [*(put(self.device, k) for k in numbers), put(self.device, np.array(False)),
                                      put(self.device, np.array(0, np.int32)), put(self.device, np.array(0, np.int32))]

    def increase(self, target: int, by: int) -> list[Record]:
        """target += by, by way of the scratch slot."""
        return [Call(self.add, (target, by, SUM), "add"), Call(self.copy, (SUM, target), "copy")]

    def compare(self) -> Call:
        return Call(self.less, (N, LIMIT, FLAG), "less")

    def capture(self, records: Sequence[Record]) -> Program:
        streams = [self.device.default_stream, self.device.stream()]
        return self.device.capture(records, self.buffers, streams)

    def run(self, records: Sequence[Record]) -> None:
        self.capture(records).run()

    def read(self, slot: int) -> int:
        return int(get(self.device, self.buffers[slot], np.empty((), np.int32)))


@pytest.fixture
def machine(stack: Stack) -> Machine:
    return Machine(stack)


def test_calls_run_in_order(machine: Machine) -> None:
    machine.run([*machine.increase(TOTAL, LIMIT), *machine.increase(TOTAL, ONE), *machine.increase(TOTAL, TOTAL)])
    assert machine.read(TOTAL) == 12


def test_jump_back_while_true(machine: Machine) -> None:
    body = [*machine.increase(N, ONE), *machine.increase(TOTAL, N), machine.compare()]
    machine.run([*body, JumpIf(FLAG, True, 0)])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 1 + 2 + 3 + 4 + 5)


def test_jump_over_when_false(machine: Machine) -> None:
    """The flag is false at first: the addition in between is left out."""
    machine.run([JumpIf(FLAG, False, 3), *machine.increase(TOTAL, LIMIT), *machine.increase(TOTAL, ONE)])
    assert machine.read(TOTAL) == 1


def test_a_jump_that_is_not_taken_goes_on(machine: Machine) -> None:
    machine.run([JumpIf(FLAG, True, 3), *machine.increase(TOTAL, LIMIT), *machine.increase(TOTAL, ONE)])
    assert machine.read(TOTAL) == 6


def test_loop_end_goes_back(machine: Machine) -> None:
    """while n < limit: n += 1"""
    machine.run([machine.compare(), JumpIf(FLAG, False, 5), *machine.increase(N, ONE), LoopEnd(0),
                 *machine.increase(TOTAL, N)])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 5)


def test_a_loop_may_run_no_time(machine: Machine) -> None:
    machine.device.upload(np.array(9, np.int32), machine.buffers[N]).wait()
    machine.run([machine.compare(), JumpIf(FLAG, False, 5), *machine.increase(N, ONE), LoopEnd(0)])
    assert machine.read(N) == 9


def test_rotate_pointer_shifts_buffers(machine: Machine) -> None:
    """Fibonacci: c = a + b, then a, b, c = b, c, a.  The first slot named receives the last one's buffer."""
    device = machine.device
    a, b, c = len(machine.buffers), len(machine.buffers) + 1, len(machine.buffers) + 2
    numbers = [put(device, np.array(k, np.int32)) for k in (0, 1, -1)]
    machine.buffers += numbers
    step = [Call(machine.add, (a, b, c), "add"), RotatePointer((c, b, a)), *machine.increase(N, ONE), machine.compare()]
    machine.run([*step, JumpIf(FLAG, True, 0)])
    values = [int(get(device, buffer, np.empty((), np.int32))) for buffer in numbers]
    assert values == [8, 3, 5], "after 0, 1 come 1 (third buffer), 2 (first), 3, 5 and 8"


def test_a_sub_list_has_jump_targets_of_its_own(machine: Machine) -> None:
    """Two loops, one inside a sub-list, each with target 0."""
    inner = SubList((*machine.increase(N, ONE), machine.compare(), JumpIf(FLAG, True, 0)))
    machine.run([*machine.increase(TOTAL, ONE), inner, *machine.increase(TOTAL, N)])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 6)


def test_nested_sub_lists(machine: Machine) -> None:
    inner = SubList(tuple(machine.increase(TOTAL, ONE)))
    middle = SubList((inner, inner, *machine.increase(N, ONE), machine.compare(), JumpIf(FLAG, True, 0)))
    machine.run([middle, inner])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 11)


def test_signal_and_await_order_two_streams(stack: Stack) -> None:
    """b = a + a on one stream, c = b + a on the other; and back."""
    device, add, host = stack.device, kernel(stack, "add", ROW, ROW), np.arange(33, dtype=np.int32)
    buffers = [put(device, host), *(device.allocate(ROW.nbytes) for _ in range(3))]
    streams = [device.stream(), device.stream()]
    records: list[Record] = [
        Call(add, (0, 0, 1), "add", 0), Signal(0, 0), Await(0, 1), Call(add, (1, 0, 2), "add", 1), Signal(1, 1),
        Await(1, 0), Call(add, (2, 0, 3), "add", 0),
    ]  # fmt: skip
    program = device.capture(records, buffers, streams)
    for _ in range(5):
        device.fill(buffers[3], b"\x00").wait()
        program.run()
        for stream in streams:
            stream.synchronize()
        assert (get(device, buffers[3], host) == 4 * host).all()


def test_slots_are_bound_anew_for_each_run(machine: Machine) -> None:
    device = machine.device
    program = machine.capture([Call(machine.add, (TOTAL, ONE, SUM), "add")])
    for k in (10, 20, 30):
        target = device.allocate(4)
        program.bind(TOTAL, put(device, np.array(k, np.int32)))
        program.bind(SUM, target)
        program.run()
        assert int(get(device, target, np.empty((), np.int32))) == k + 1


def test_empty_slots_are_filled_before_the_run(machine: Machine) -> None:
    program = machine.device.capture([Call(machine.add, (0, 1, 2), "add")], [None, None, None],
                                     [machine.device.default_stream])
    target = machine.device.allocate(4)
    for slot, buffer in enumerate((machine.buffers[LIMIT], machine.buffers[ONE], target)):
        program.bind(slot, buffer)
    program.run()
    assert int(get(machine.device, target, np.empty((), np.int32))) == 6


def test_calls_can_be_launched_one_at_a_time(machine: Machine) -> None:
    """What debugging does: it sees each call, in order, and launches it, or not."""
    program, seen = machine.capture([*machine.increase(TOTAL, LIMIT), Call(machine.add, (ONE, ONE, N), "twice")]), []

    def around(call: Call, launch: Launch) -> None:
        seen.append(call.label)
        if call.label != "copy":
            launch()

    program.run_with(around)
    assert seen == ["add", "copy", "twice"]
    assert (machine.read(SUM), machine.read(TOTAL), machine.read(N)) == (5, 0, 2)
