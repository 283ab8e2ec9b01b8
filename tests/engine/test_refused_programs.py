"""Fused commands that a driver refuses to build: taken apart, so that no more than need be goes to the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.errors import Error, FallbackWarning, NonfiniteError, NotSupportedError, OutOfRangeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import Kernel
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import Stack, make_stack
from nnc_core.symbol import postorder
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.running import called
from tests.engine.conftest import call, floats, graph
from tests.engine.fused_pairs import grown
from tests.engine.test_fusion import MANY, commands, compiled, weights_after

Judgement = Callable[[LoopNest], bool]
ROWS = np.linspace(-2, 2, 12, dtype=np.float32).reshape(4, 3)


class Refusing(StrictDevice):
    """A device whose driver refuses some nests, and that counts what it is asked for."""

    def __init__(self, refuses: Judgement) -> None:
        super().__init__(Flavour("refusing"))
        self.refuses = refuses
        self.asked: list[LoopNest] = []

    def compile(self, nest: LoopNest) -> Kernel:
        self.asked.append(nest)
        if self.refuses(nest):
            raise NotSupportedError(f"the driver does not build {nest.name}")
        return super().compile(nest)


def operations(nest: LoopNest) -> list[str]:
    return [i.operation for stage in nest.stages for i in stage.instructions]


def fused(nest: LoopNest) -> bool:
    return nest.name == "fused"


def computes(*names: str) -> Judgement:
    """Refuse what computes one of these functions; operators are named like them."""
    return lambda nest: any(name in operations(nest) for name in names)


def longer_than(count: int) -> Judgement:
    return lambda nest: fused(nest) and len(operations(nest)) > count


def with_arguments_beyond(count: int) -> Judgement:
    return lambda nest: fused(nest) and len(nest.arguments) > count


def stack_that(refuses: Judgement) -> Stack:
    return make_stack(Refusing(refuses))


def backends(run: Any) -> dict[str, str]:
    return {step.group.label: step.decision.backend for step in run.plan.steps}


def chain(stack: Stack) -> SymbolicGraph:
    F = stack.operator.open()
    x, row = floats(F, "x", 4, 3), floats(F, "row", 3)
    return graph({"x": x, "row": row}, {"y": F.cos(F.sin(F.tanh(F.exp(F.add(x, row)))))})


def same_as_apart(made: SymbolicGraph, stack: Stack, **arrays: Any) -> None:
    results = [call(compiled(stack, made, fusion=fusion), **arrays) for fusion in (True, False)]
    for name in results[0]:
        assert results[0][name].tobytes() == results[1][name].tobytes(), name


# ---- what is left together
def test_a_device_that_refuses_all_that_is_fused_runs_each_operator_by_itself() -> None:
    stack = stack_that(fused)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        run = compiled(stack, chain(stack))
    assert backends(run) == dict.fromkeys(["add", "exp", "tanh", "sin", "cos"], "loop nest")
    same_as_apart(chain(stack), stack, x=ROWS, row=ROWS[0])


def test_only_what_is_refused_alone_goes_to_the_host() -> None:
    stack = stack_that(computes("tanh"))
    with pytest.warns(FallbackWarning, match="^tanh has no kernel .*the driver does not build tanh.*the host") as told:
        run = compiled(stack, chain(stack))
    assert len(told) == 1
    assert backends(run) == {"fused(add exp)": "loop nest", "tanh": "host", "fused(sin cos)": "loop nest"}
    wanted = np.cos(np.sin(np.tanh(np.exp(ROWS + ROWS[0]))))
    np.testing.assert_allclose(call(run, x=ROWS, row=ROWS[0])["y"], wanted, rtol=1e-6)


def test_what_is_too_long_is_halved_until_it_is_short_enough() -> None:
    stack = stack_that(longer_than(6))
    run = compiled(stack, chain(stack))
    assert set(backends(run).values()) == {"loop nest"}
    assert 1 < len(commands(run)) < 5 and any("fused" in label for label in commands(run))
    same_as_apart(chain(stack), stack, x=ROWS, row=ROWS[0])


def test_one_of_several_fused_commands_is_refused_and_the_others_stay() -> None:
    stack = stack_that(computes("tanh"))
    F = stack.operator.open()
    x = floats(F, "x", 4, 3)
    a, b = F.sort(F.exp(F.sin(x)), axis=0), F.tanh(F.cos(x))
    made = graph({"x": x}, {"a": F.cos(F.sin(a)), "b": b})
    with pytest.warns(FallbackWarning, match="tanh"):
        run = compiled(stack, made)
    labels = commands(run)
    assert {"fused(sin exp)", "tanh", "cos"} <= set(labels) and any(label.endswith(" sin cos)") for label in labels)
    built = [nest.name for nest in stack.device.asked]
    assert built.count("fused") == 3, "those that were built were not built again"


def test_what_was_refused_once_is_not_tried_again() -> None:
    stack = stack_that(longer_than(6))
    first = compiled(stack, chain(stack))
    asked = len(stack.device.asked)
    second = compiled(stack, chain(stack))
    assert commands(second) == commands(first) and len(stack.device.asked) == asked


def test_several_results_of_a_command_that_is_refused() -> None:
    """Outputs on the way are given by the halves."""
    for refuses in (fused, longer_than(6), with_arguments_beyond(4), computes("sin")):
        stack = stack_that(refuses)
        F = stack.operator.open()
        w, g, m, v = (floats(F, name, 4, 3) for name in "wgmv")
        moment = F.add(F.multiply(m, 0.9), F.sin(g))
        square = F.add(F.multiply(v, 0.9), F.multiply(g, g))
        new = F.subtract(w, F.divide(moment, F.add(F.sqrt(square), 1e-8)))
        inputs, outputs = {"w": w, "g": g, "m": m, "v": v}, {"w2": new, "m2": moment, "v2": square}
        made = SymbolicGraph(inputs, outputs, (("w2", "w"), ("m2", "m"), ("v2", "v")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            same_as_apart(made, stack, w=ROWS, g=ROWS * 2, m=ROWS + 1, v=ROWS * ROWS)


def test_rows_in_stages_are_taken_apart() -> None:
    for refuses in (fused, longer_than(8), computes("exp")):
        stack = stack_that(refuses)
        F = stack.operator.open()
        x = floats(F, "x", 4, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            same_as_apart(graph({"x": x}, {"y": F.softmax(F.multiply(x, 2.0), axis=1)}), stack, x=ROWS)


def test_programs_of_library_code_that_is_refused_are_left_alone() -> None:
    """On a device without a compiler fused commands have library code alone."""
    from nnc_cpu.device import CpuDevice  # a plugin, installed for the tests

    device = CpuDevice(machine_code=False)
    (library,) = device.backends("fused")

    class Absent(type(library)):  # type: ignore[misc]
        def prepare(self, command: Any) -> Kernel:
            raise NotSupportedError("not today")

    absent = Absent("fused")
    own = device.backends
    device.backends = lambda name: (absent,) if name == "fused" else own(name)  # type: ignore[method-assign]
    stack = make_stack(device)
    F = stack.operator.open()
    x, y, z = (floats(F, name, 4, 3) for name in "xyz")
    run = compiled(stack, graph({"x": x, "y": y, "z": z}, {"r": F.add(F.multiply(x, y), z)}))
    assert commands(run) == ["multiply", "add"]
    np.testing.assert_array_equal(call(run, x=ROWS, y=ROWS, z=ROWS)["r"], ROWS * ROWS + ROWS)


# ---- loops, branches, training
@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("refuses", [fused, longer_than(10), computes("tanh"), computes("multiply")],
                         ids=["all", "long", "tanh", "multiply"])
def test_training_through_loops_and_branches_is_right(refuses: Judgement) -> None:
    stack = stack_that(refuses)
    apart = weights_after(3, fusion=False, device=stack)
    for one, other in zip(weights_after(3, fusion=True, device=stack), apart, strict=True):
        assert one.tobytes() == other.tobytes()


def test_a_fused_command_in_a_loop_is_taken_apart() -> None:
    stack = stack_that(computes("tanh"))

    def f(x: nnc.Tensor) -> Any:
        return nnc.while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, nnc.tanh(nnc.sin(v) * 2.0 + 1.0)), (0, x))[1]

    with nnc.use_device(stack), pytest.warns(FallbackWarning, match="tanh"):
        run = nnc.jit(f).lower(nnc.asarray(ROWS)).program
    inside = {step.group.label: step.decision.backend for step in run.plan.steps if step.depth}
    assert inside["tanh"] == "host" and inside["fused(sin multiply add)"] == "loop nest"


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@MANY
@given(seed=st.integers(0, 2**32))
def test_random_graphs_on_a_capricious_driver(seed: int) -> None:
    """It refuses by the structure of what it is given, and always ends."""
    found = grown(seed)
    outputs = {f"y{i}": y for i, y in enumerate(found.outputs)}
    if not outputs:
        return
    read = set(postorder(outputs.values()))
    inputs = {f"x{i}": p for i, p in enumerate(found.placeholders) if p in read}
    given_arrays = {name: found.values[p] for name, p in inputs.items()}
    stack = stack_that(lambda nest: fused(nest) and (len(operations(nest)) * 7 + len(nest.arguments) + seed) % 3 == 0)
    results: list[Any] = []
    for fusion in (True, False):
        with config.using(fusion=fusion, deterministic=True):
            try:
                results.append(called(stack.engine.compile(SymbolicGraph(inputs, outputs)), given_arrays))
            except Error as error:
                results.append(error)
    one, other = results
    if isinstance(one, Error) or isinstance(other, Error):
        assert type(one) is type(other)
        return
    for name in one:
        assert same_bits(one[name], other[name]).all(), name


# ---- what looks at commands, and what comes after
def test_modes_that_look_at_values_name_operators_that_were_taken_apart() -> None:
    stack = stack_that(longer_than(4))
    with nnc.use_device(stack), nnc.config.using(check_nan="nonfinite", check_indices=True):
        f = nnc.jit(lambda x: nnc.log(nnc.cos(x) * 0.0 - 1.0) + 1.0)
        with pytest.raises(NonfiniteError) as caught:
            f(nnc.asarray(ROWS))
        assert caught.value.operator == "log"
        g = nnc.jit(lambda x, i: nnc.exp(nnc.take(nnc.sin(x), i, axis=0)) * 2.0)
        with pytest.raises(OutOfRangeError) as missed:
            g(nnc.asarray(ROWS), nnc.asarray([0, 9]))
        assert missed.value.operator == "take"
        np.testing.assert_allclose(g(nnc.asarray(ROWS), nnc.asarray([1])).numpy(), np.exp(np.sin(ROWS[1:2])) * 2,
                                   rtol=1e-6)


def test_the_device_is_of_use_afterwards() -> None:
    stack = stack_that(fused)
    with nnc.use_device(stack):
        f = nnc.jit(lambda x: nnc.tanh(nnc.sin(x) + 1.0))
        for _ in range(3):
            np.testing.assert_allclose(f(nnc.asarray(ROWS)).numpy(), np.tanh(np.sin(ROWS) + 1), rtol=1e-6)
        stack.device.refuses = lambda nest: False
        other = nnc.jit(lambda x: nnc.tanh(nnc.exp(x)))
        other(nnc.asarray(ROWS))
        (label,) = [step.group.label for step in other.lower(nnc.asarray(ROWS)).program.plan.steps]
        assert label == "fused(exp tanh)"


def test_new_library_code_is_asked_for_what_was_refused() -> None:
    stack = stack_that(fused)
    compiled(stack, chain(stack))
    assert stack.engine.decider.refused_programs
    stack.device.added = {**stack.device.added}
    stack.engine.decider.look_for_more()
    assert not stack.engine.decider.refused_programs
    assert "fused" not in " ".join(commands(compiled(stack, chain(stack))))
