"""What is decided about commands, in which order code is asked, and how it is built."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.errors import DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import CommandBackend, Kernel
from nnc_core.device.host import HostKernel
from nnc_core.engine import candidates
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack, make_stack


class Library(CommandBackend):
    """Library code on NumPy, that refuses as it is told, or fails when it is to be built."""

    def __init__(self, device: Any, name: str, refusal: str | None = None, fallback: bool = False,
                 fails: Exception | None = None) -> None:
        self.device, self.name, self.refusal, self.fallback, self.fails = device, name, refusal, fallback, fails
        self.prepared: list[Command] = []

    def refuse(self, command: Command) -> str | None:
        return self.refusal

    def prepare(self, command: Command) -> Kernel:
        self.prepared.append(command)
        if self.fails is not None:
            raise self.fails
        return HostKernel(self.device, OPERATORS[command.name].reference or (lambda x, axis: x), command)


class Machine(StrictDevice):
    """A device with library code for some operators, that counts what it compiles and may refuse it."""

    def __init__(self, refused: Sequence[str] = (), failing: Sequence[str] = ()) -> None:
        super().__init__(Flavour("deciding"))
        self.library: dict[str, list[Library]] = {}
        self.refused, self.failing = set(refused), set(failing)
        self.compiled: list[str] = []

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return self.library.get(name, ())

    def compile(self, nest: LoopNest) -> Kernel:
        self.compiled.append(nest.name)
        if nest.name in self.refused:
            raise NotSupportedError(f"the driver does not build {nest.name}")
        if nest.name in self.failing:
            raise DeviceFailureError("the driver is broken")
        return super().compile(nest)


def backends_of(run: Any) -> dict[str, str]:
    return {step.group.op.name: step.decision.backend for step in run.plan.steps}


def lowered(stack: Stack, f: Any, *shapes: tuple[int, ...]) -> Any:
    with nnc.use_device(stack):
        return nnc.jit(f).lower(*[nnc.asarray(np.ones(shape, np.float32)) for shape in shapes]).program


# ---- the order in which code is asked
@pytest.mark.parametrize(("library", "wanted"), [
    ([], "loop nest"),
    ([("fast", None, False)], "fast"),
    ([("fast", "no licence", False)], "loop nest"),
    ([("fast", "no licence", False), ("faster", None, False)], "faster"),
    ([("slow", None, True)], "loop nest"),
    ([("slow", None, True), ("fast", None, False)], "fast"),
])
def test_library_code_goes_first_and_what_is_for_want_of_better_last(library: list[Any], wanted: str) -> None:
    machine = Machine()
    machine.library["tanh"] = [Library(machine, *options) for options in library]
    run = lowered(make_stack(machine), nnc.tanh, (3,))
    assert backends_of(run) == {"tanh": wanted}


def test_refusals_are_told_with_their_reasons() -> None:
    machine = Machine()
    machine.library["tanh"] = [Library(machine, "fast", "no licence")]
    assert "refused by fast: no licence" in lowered(make_stack(machine), nnc.tanh, (3,)).explain()


def test_code_for_want_of_better_does_not_take_composites_whole() -> None:
    machine = Machine()
    stack = make_stack(machine)
    machine.library["softmax"] = [Library(machine, "slow", fallback=True)]
    assert "softmax" not in backends_of(lowered(stack, nnc.softmax, (2, 3)))
    machine.library["softmax"] = [Library(machine, "fast")]
    assert backends_of(lowered(make_stack(machine), nnc.softmax, (2, 3))) == {"softmax": "fast"}


def test_code_for_want_of_better_goes_before_the_host() -> None:
    machine = Machine(refused=["tanh"])
    machine.library["tanh"] = [Library(machine, "slow", fallback=True)]
    run = lowered(make_stack(machine), nnc.tanh, (3,))
    assert backends_of(run) == {"tanh": "slow"}
    assert "loop nest: the driver does not build tanh" in run.explain()


# ---- building
def test_nothing_is_compiled_while_planning() -> None:
    """Each nest once, whatever orders and places were looked at."""
    machine = Machine()

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.concat([nnc.exp(x), nnc.sin(nnc.cos(x)), nnc.exp(x + 1.0)])

    run = lowered(make_stack(machine), f, (4,))
    kernels = {id(record.kernel) for record in run.records}
    assert len(machine.compiled) == len(kernels)


def test_what_the_driver_refuses_is_decided_again_and_the_rest_stays() -> None:
    machine = Machine(refused=["tanh"])
    stack = make_stack(machine)
    with pytest.warns(FallbackWarning, match="tanh has no kernel .*the driver does not build tanh.*runs on the host"):
        run = lowered(stack, lambda x: nnc.exp(nnc.tanh(x)), (3,))
    assert backends_of(run) == {"tanh": "host", "exp": "loop nest"}
    assert machine.compiled == ["tanh", "exp"]
    lowered(stack, lambda x: nnc.tanh(x) + 1.0, (3,))
    assert machine.compiled.count("tanh") == 1, "what was refused once is not tried again"
    with nnc.use_device(stack):
        np.testing.assert_allclose(nnc.tanh(nnc.ones(3)).numpy(), np.tanh(np.ones(3)), rtol=1e-6)


def test_a_part_of_a_larger_array_whose_nest_is_refused_is_copied_there() -> None:
    """The host writes whole buffers only: refused where it was planned, the result is computed apart."""
    machine = Machine(refused=["tanh"])
    stack = make_stack(machine)
    with pytest.warns(FallbackWarning, match="tanh has no kernel"):
        run = lowered(stack, lambda x: nnc.concat([nnc.tanh(x), nnc.exp(x)]), (3,))
    x = np.linspace(-1, 1, 3, dtype=np.float32)
    executor = stack.engine.executor
    (y,) = [executor.download(a) for a in run.run({k: executor.upload(x) for k in run.graph.inputs}).values()]
    np.testing.assert_allclose(y, np.concatenate([np.tanh(x), np.exp(x)]), rtol=1e-6)


def test_errors_of_building_come_when_a_graph_is_compiled_and_name_the_line() -> None:
    with pytest.raises(DeviceFailureError) as caught:
        lowered(make_stack(Machine(failing=["tanh"])), lambda x: nnc.exp(nnc.tanh(x)), (3,))
    text = str(caught.value)
    assert "the driver is broken" in text and "tanh" in text and "float32[3]" in text
    assert "strict-deciding:0" in text and "test_decide.py" in text


def test_library_code_that_cannot_be_built_gives_way() -> None:
    machine = Machine()
    machine.library["tanh"] = [Library(machine, "fast", fails=NotSupportedError("too new"))]
    run = lowered(make_stack(machine), nnc.tanh, (3,))
    assert backends_of(run) == {"tanh": "loop nest"} and "fast: too new" in run.explain()


def test_no_code_at_all_is_an_error_that_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = make_stack(Machine(refused=["tanh"]))
    monkeypatch.setattr("nnc_core.engine.candidates.HostBackend.refuse", lambda self, command: "there is no host")
    with pytest.raises(NotSupportedError) as caught:
        lowered(stack, nnc.tanh, (3,))
    text = str(caught.value)
    assert "no code for tanh(float32[3])" in text and "test_decide.py" in text
    assert "the driver does not build tanh" in text and "there is no host" in text


def test_loop_nests_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[list[str]] = []
    machine = Machine()
    compile_all = machine.compile_all
    monkeypatch.setattr(machine, "compile_all", lambda nests: together.append([n.name for n in nests])
                        or compile_all(nests))
    lowered(make_stack(machine), lambda x: nnc.exp(nnc.tanh(x)), (3,))
    assert together == [["tanh", "exp"]]


# ---- kernels live as long as programs
def test_graphs_share_kernels_while_any_of_them_lives() -> None:
    machine = Machine()
    stack = make_stack(machine)
    first = lowered(stack, nnc.tanh, (3,))
    second = lowered(stack, nnc.tanh, (3,))
    assert machine.compiled == ["tanh"]
    kernel = weakref.ref(first.records[0].kernel)
    assert second.records[0].kernel is kernel()
    del first
    gc.collect()
    assert kernel() is not None
    del second
    gc.collect()
    assert kernel() is None
    lowered(stack, nnc.tanh, (3,))
    assert machine.compiled == ["tanh", "tanh"]


def test_decisions_that_are_remembered_keep_no_nests() -> None:
    stack = make_stack(Machine())
    run = lowered(stack, lambda x: nnc.exp(nnc.tanh(x)), (3,))
    assert all(step.decision.candidate._last is None for step in run.plan.steps)


def test_candidates_that_were_looked_at_and_not_taken_keep_no_nests_either() -> None:
    stack = make_stack(Machine())
    with nnc.config.using(fusion=True):
        lowered(stack, lambda x: nnc.exp(nnc.tanh(x[1:])) * 2.0, (3,))
    decisions = stack.engine.decider._decisions.values()
    assert len(decisions) > 3
    assert all(getattr(decision.candidate, "_last", None) is None for decision in decisions)


def test_the_nest_of_a_fused_command_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Command] = []
    write = candidates.loop_nest
    monkeypatch.setattr(candidates, "loop_nest", lambda op, command: written.append(command) or write(op, command))
    with nnc.config.using(fusion=True):
        run = lowered(make_stack(Machine()), lambda x: nnc.exp(nnc.tanh(x)) * 2.0, (3,))
    assert [step.group.label for step in run.plan.steps] == ["fused(tanh exp multiply)"]
    assert [command.name for command in written].count("fused") == 1


def test_commands_with_equal_nests_share_a_kernel() -> None:
    machine = Machine()
    lowered(make_stack(machine), lambda x, y: (nnc.tanh(x), nnc.tanh(y)), (2, 3), (6,))
    assert machine.compiled == ["tanh"]


def test_eager_code_keeps_its_kernels() -> None:
    machine = Machine()
    with nnc.use_device(make_stack(machine)):
        for _ in range(3):
            nnc.tanh(nnc.ones(3))
    assert machine.compiled.count("tanh") == 1
