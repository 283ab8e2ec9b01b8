"""Every kind of record, captured by the device, with kernels of the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base.dtype import int32
from nnc_core.base.errors import OutOfRangeError
from nnc_core.base.record import (
    Call,
    Jump,
    JumpIf,
    Rebind,
    Record,
    Repeat,
    RotatePointer,
    Switch,
    TapePush,
    TapeRead,
    TapeReset,
    TapeReverse,
    Window,
)
from nnc_core.device import NO_VIEWS, Buffer, BufferTape, Launch, Program
from nnc_core.stacks import Stack
from nnc_core.type import TensorSpec
from nnc_plugins.conformance.running import get, kernel, put

SCALAR = TensorSpec((), int32)
N, LIMIT, ONE, FLAG, TOTAL, SUM = range(6)


class Machine:
    """Counters in slots: n, limit, one, flag, total, and scratch for sums."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.device = stack, stack.device
        self.add, self.less = kernel(stack, "add", SCALAR, SCALAR), kernel(stack, "less", SCALAR, SCALAR)
        self.copy = kernel(stack, "copy", SCALAR)
        numbers = [np.array(k, np.int32) for k in (0, 5, 1)]
        self.buffers: list[Any] = [*(put(self.device, k) for k in numbers), put(self.device, np.array(False)),
                                      put(self.device, np.array(0, np.int32)), put(self.device, np.array(0, np.int32))]

    def increase(self, target: int, by: int) -> list[Record]:
        """target += by, by way of the scratch slot."""
        return [Call(self.add, (target, by, SUM), "add"), Call(self.copy, (SUM, target), "copy")]

    def append(self, value: int) -> list[Record]:
        """total = 2 total + value: tells in which order values came."""
        return [*self.increase(TOTAL, TOTAL), *self.increase(TOTAL, value)]

    def slot(self, content: Any) -> int:
        """One more slot."""
        self.buffers.append(content)
        return len(self.buffers) - 1

    def number(self, value: int, dtype: str = "int32") -> int:
        """One more slot with a number in it."""
        return self.slot(put(self.device, np.array(value, dtype)))

    def compare(self) -> Call:
        return Call(self.less, (N, LIMIT, FLAG), "less")

    def capture(self, records: Sequence[Record]) -> Program:
        return self.device.capture(records, self.buffers, self.device.default_stream)

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
    machine.run([machine.compare(), JumpIf(FLAG, False, 5), *machine.increase(N, ONE), Jump(0),
                 *machine.increase(TOTAL, N)])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 5)


def test_a_loop_may_run_no_time(machine: Machine) -> None:
    machine.device.upload(np.array(9, np.int32), machine.buffers[N]).wait()
    machine.run([machine.compare(), JumpIf(FLAG, False, 5), *machine.increase(N, ONE), Jump(0)])
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
                                     machine.device.default_stream)
    target = machine.device.allocate(4)
    for slot, buffer in enumerate((machine.buffers[LIMIT], machine.buffers[ONE], target)):
        program.bind(slot, buffer)
    program.run()
    assert int(get(machine.device, target, np.empty((), np.int32))) == 6


def test_calls_can_be_launched_one_at_a_time(machine: Machine) -> None:
    """Run as debugging does, which sees each call, in order, and launches it, or not."""
    program, seen = machine.capture([*machine.increase(TOTAL, LIMIT), Call(machine.add, (ONE, ONE, N), "twice")]), []

    def around(call: Call, launch: Launch) -> None:
        seen.append(call.label)
        if call.label != "copy":
            launch()

    program.run_with(around)
    assert seen == ["add", "copy", "twice"]
    assert (machine.read(SUM), machine.read(TOTAL), machine.read(N)) == (5, 0, 2)


def _switch(machine: Machine, index: int, dtype: str, otherwise: int) -> list[Record]:
    """total += 1, 10 or 100, the last in other cases if they have a place."""
    ten, hundred = machine.number(10), machine.number(100)
    return [Switch(index, dtype, (1, 4), otherwise), *machine.increase(TOTAL, ONE), Jump(9),
            *machine.increase(TOTAL, ten), Jump(9), *machine.increase(TOTAL, hundred)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_switch_goes_on_at_the_chosen_target(machine: Machine, dtype: str) -> None:
    index = machine.number(0, dtype)
    program = machine.capture(_switch(machine, index, dtype, 7))
    total = 0
    for number, step in ((0, 1), (1, 10), (2, 100), (0, 1), (100, 100), (1, 10)):
        program.bind(index, put(machine.device, np.array(number, dtype)))
        program.run()
        total += step
        assert machine.read(TOTAL) == total


def test_a_negative_number_chooses_nothing(machine: Machine) -> None:
    machine.run(_switch(machine, machine.number(-1), "int32", 7))
    assert machine.read(TOTAL) == 100


def test_a_switch_may_skip_everything(machine: Machine) -> None:
    machine.run(_switch(machine, machine.number(2), "int32", 9))
    assert machine.read(TOTAL) == 0


@pytest.mark.parametrize("number", [-1, 2])
def test_a_switch_without_a_place_for_other_numbers_is_an_error(machine: Machine, number: int) -> None:
    """It says which number and where, nothing has run, and the program works afterwards."""
    index = machine.number(number)
    records = _switch(machine, index, "int32", -1)
    records[0] = Switch(index, "int32", (1, 4), -1, "model.py:7")
    program = machine.capture(records)
    with pytest.raises(OutOfRangeError, match=f"no branch {number} among 2") as caught:
        program.run()
    assert caught.value.line == "model.py:7" and machine.read(TOTAL) == 0
    program.bind(index, put(machine.device, np.array(1, np.int32)))
    program.run()
    assert machine.read(TOTAL) == 10


def test_switch_reads_what_was_computed_before_it(machine: Machine) -> None:
    """n = 1 when it is reached."""
    machine.run([*machine.increase(N, ONE), Switch(N, "int32", (5, 3), -1), *machine.increase(TOTAL, LIMIT),
                 *machine.increase(TOTAL, ONE)])
    assert machine.read(TOTAL) == 6


@pytest.mark.parametrize("count", [0, 1, 7])
def test_repeat_runs_its_records_so_often(machine: Machine, count: int) -> None:
    machine.run([Repeat(tuple(machine.increase(TOTAL, LIMIT)), count), *machine.increase(TOTAL, ONE)])
    assert machine.read(TOTAL) == 5 * count + 1


def test_repeats_in_repeats_with_jumps_of_their_own(machine: Machine) -> None:
    """3 times: total += 1; 4 times: skip one increase, total += 5."""
    inner = Repeat((machine.compare(), JumpIf(FLAG, True, 4), *machine.increase(TOTAL, ONE),
                    *machine.increase(TOTAL, LIMIT)), 4)
    machine.run([Repeat((*machine.increase(TOTAL, ONE), inner), 3)])
    assert machine.read(TOTAL) == 3 * (1 + 4 * 5)


def test_a_repeat_stays_within_a_jump(machine: Machine) -> None:
    """while n < 5: n += 1, three times total += n"""
    machine.run([machine.compare(), JumpIf(FLAG, False, 6), *machine.increase(N, ONE),
                 Repeat(tuple(machine.increase(TOTAL, N)), 3), Jump(0)])
    assert (machine.read(N), machine.read(TOTAL)) == (5, 45)


def test_point_gives_a_slot_another_buffer(machine: Machine) -> None:
    """It is no copy: what is written through one slot is read through the other, and the old buffer is as it was."""
    device = machine.device
    old = put(device, np.array(7, np.int32))
    slot = machine.slot(old)
    machine.run([Rebind(slot, TOTAL), *machine.increase(slot, LIMIT), *machine.increase(TOTAL, ONE)])
    assert machine.read(TOTAL) == 6
    assert int(get(device, old, np.empty((), np.int32))) == 7


def test_point_follows_a_slot_that_moves(machine: Machine) -> None:
    """The slot keeps what it was given when the source takes something else."""
    a, b, seen = machine.number(1), machine.number(2), machine.slot(None)
    machine.run([Rebind(seen, a), RotatePointer((a, b)), *machine.append(seen), *machine.append(a), Rebind(seen, a),
                 *machine.append(seen)])
    assert machine.read(TOTAL) == (1 * 2 + 2) * 2 + 2


def _strip(machine: Machine, values: Sequence[int]) -> tuple[int, int]:
    """A slot with numbers at the beginnings of aligned parts, and how far they are apart."""
    if NO_VIEWS in machine.device.spec.features:
        pytest.skip("the device has no views of buffers, and says so")
    step = max(machine.device.spec.alignment, 4)
    host = np.full((len(values), step // 4), -1, np.int32)
    host[:, 0] = values
    return machine.slot(put(machine.device, host)), step


@pytest.mark.parametrize("reverse", [False, True])
def test_window_moves_with_the_rounds(machine: Machine, reverse: bool) -> None:
    values = (3, 0, 2, 1)
    whole, step = _strip(machine, values)
    row = machine.slot(None)
    window = Window(row, whole, 3 * step if reverse else 0, -step if reverse else step, 4)
    machine.run([Repeat((window, *machine.append(row)), 4)])
    total = 0
    for v in values[::-1] if reverse else values:
        total = 2 * total + v
    assert machine.read(TOTAL) == total


def test_window_counts_the_innermost_repeat(machine: Machine) -> None:
    """Outside of any Repeat it lies where it begins; after one, and in the next, it begins anew."""
    whole, step = _strip(machine, (1, 2, 3))
    row = machine.slot(None)
    each = (Window(row, whole, 0, step, 4), *machine.append(row))
    machine.run([Window(row, whole, 2 * step, step, 4), *machine.append(row), Repeat((Repeat(each, 3),), 2)])
    total = 0
    for v in (3, 1, 2, 3, 1, 2, 3):
        total = 2 * total + v
    assert machine.read(TOTAL) == total


def test_results_are_written_through_windows(machine: Machine) -> None:
    whole, step = _strip(machine, (0, 0, 0))
    row = machine.slot(None)
    store = Call(machine.copy, (N, row), "copy")
    machine.run([Repeat((*machine.increase(N, LIMIT), Window(row, whole, 0, step, 4), store), 3)])
    host = get(machine.device, machine.buffers[whole], np.empty((3, step // 4), np.int32))
    assert host[:, 0].tolist() == [5, 10, 15]
    assert (host[:, 1:] == -1).all(), "nothing else was written"


def _taped(machine: Machine, tape: int, row: int, *after: Record) -> list[Record]:
    """while n < limit: n += 1, n on the tape; then what comes after."""
    return [TapeReset(tape), machine.compare(), JumpIf(FLAG, False, 8), *machine.increase(N, ONE),
            Call(machine.copy, (N, row), "copy"), TapePush(tape, row, 4), Jump(1), *after]


def _tape(machine: Machine) -> tuple[int, int, int]:
    """Slots of a tape, of what is pushed, and of what is pulled."""
    return machine.slot(BufferTape()), machine.slot(machine.device.allocate(4)), machine.slot(None)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_tape_is_gone_over_in_either_direction(machine: Machine, reverse: bool, turned: bool) -> None:
    tape, row, seen = _tape(machine)
    turn = (TapeReverse(tape),) * turned
    read = Repeat((TapeRead(seen, tape, reverse), *machine.append(seen)), 0, tape)
    machine.run(_taped(machine, tape, row, *turn, read))
    total = 0
    for v in (5, 4, 3, 2, 1) if reverse != turned else (1, 2, 3, 4, 5):
        total = 2 * total + v
    assert machine.read(TOTAL) == total


def test_an_empty_tape_is_gone_over_no_time(machine: Machine) -> None:
    tape, row, seen = _tape(machine)
    machine.device.upload(np.array(9, np.int32), machine.buffers[N]).wait()
    over = Repeat((TapeRead(seen, tape, False), *machine.append(seen)), 0, tape)
    machine.run(_taped(machine, tape, row, TapeReverse(tape), over))
    assert machine.read(TOTAL) == 0


def test_a_tape_is_read_again_and_by_several(machine: Machine) -> None:
    """Pulling takes nothing off."""
    tape, row, seen = _tape(machine)
    over = Repeat((TapeRead(seen, tape, False), *machine.append(seen)), 0, tape)
    machine.run(_taped(machine, tape, row, over, over, Repeat((over,), 2)))
    total = 0
    for v in (1, 2, 3, 4, 5) * 4:
        total = (2 * total + v) % 2**32
    assert machine.read(TOTAL) % 2**32 == total


def test_a_cleared_tape_uses_its_buffers_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three runs of five, three and six rounds: five buffers, none, and one more."""
    device = machine.device
    tape, row, seen = _tape(machine)
    over = Repeat((TapeRead(seen, tape, False), *machine.append(seen)), 0, tape)
    program, sizes = machine.capture(_taped(machine, tape, row, over)), []
    allocate = device.allocate

    def counted(nbytes: int) -> Buffer:
        sizes.append(nbytes)
        return allocate(nbytes)

    monkeypatch.setattr(device, "allocate", counted)
    for limit, needed in ((5, 5), (3, 0), (6, 1)):
        for slot, value in ((N, 0), (TOTAL, 0), (LIMIT, limit)):
            device.upload(np.array(value, np.int32), machine.buffers[slot]).wait()
        sizes.clear()
        program.run()
        assert sizes == [4] * needed
        total = 0
        for v in range(1, limit + 1):
            total = 2 * total + v
        assert machine.read(TOTAL) == total


def test_calls_inside_repeats_and_branches_can_be_watched(machine: Machine) -> None:
    """Each as often as it runs."""
    program, seen = machine.capture([Repeat((Switch(N, "int32", (1, 3), 3), *machine.increase(N, ONE),
                                             Call(machine.add, (TOTAL, ONE, SUM), "twice")), 3)]), []

    def around(call: Call, launch: Launch) -> None:
        seen.append(call.label)
        launch()

    program.run_with(around)
    assert seen == ["add", "copy", "twice", "twice", "twice"] and machine.read(N) == 1
