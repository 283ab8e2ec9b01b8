"""Inputs packed for library code that wants them so: by whom, how often, where, and that the values are right."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.engine import ComputationGraph
from nnc_core.engine.layout import LayingOut
from nnc_core.operator import Nodes
from nnc_core.operator.cost import cost_of
from nnc_core.stacks import Stack, stack_for
from nnc_core.symbol import Literal, Node
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats
from tests.engine.panels import AROUND, PANELS, Panels, compiled, stack_with
from tests.engine.test_fusion import commands
from tests.support import near, numbers

GIVEN = {"a": numbers(5, 3), "b": numbers(3, 6, seed=1), "c": numbers(6, 3, seed=2),
         "d": numbers(2, 5, seed=3)}
PRODUCT = "fused(unpack matmul)"


def panels(**options: Any) -> Panels:
    """Products whose right operand is wanted in panels."""
    return Panels("matmul", wants={1: PANELS}, **options)


def operands(F: Nodes) -> dict[str, Node]:
    return {name: floats(F, name, *array.shape) for name, array in GIVEN.items()}


def results(run: ComputationGraph) -> list[np.ndarray]:  # type: ignore[type-arg]
    found = call(run, **{name: GIVEN[name] for name in run.graph.inputs})
    return [found[name] for name in sorted(found)]


def constant(F: Nodes, array: np.ndarray) -> Node:  # type: ignore[type-arg]
    return F.constant(Literal(array), TensorSpec(array.shape, float32))


def test_an_input_is_packed_by_a_command_of_its_own() -> None:
    lib = panels(fuses=False)
    stack = stack_with(lib)
    F = stack.operator.open()
    given = operands(F)
    run = compiled(stack, given, F.matmul(given["a"], given["b"]))
    assert commands(run) == ["pack", PRODUCT]
    np.testing.assert_allclose(results(run)[0], GIVEN["a"] @ GIVEN["b"], rtol=1e-6)
    assert lib.ran == ["unpack matmul"]
    assert f"fused(unpack matmul)(float32[5, 3], float32[2, 3, 4]) -> float32[5, 6]  [{lib.name}; " in run.explain()


def test_the_graph_is_not_looked_at_where_nobody_wants_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LayingOut, "__init__", None)
    stack = stack_for("strict:0")
    F = stack.operator.open()
    given = operands(F)
    assert commands(compiled(stack, given, F.matmul(given["a"], given["b"]))) == ["matmul"]


def test_what_reads_packed_arrays_costs_what_its_operators_do() -> None:
    stack = stack_with(panels())
    F = stack.operator.open()
    given = operands(F)
    run = compiled(stack, given, F.relu(F.matmul(given["a"], given["b"])))
    costs = [cost_of(step.decision.op, step.command) for step in run.plan.steps]
    assert commands(run) == ["pack", "fused(unpack matmul relu)"]
    assert [cost.flops for cost in costs] == [0, 2 * 5 * 6 * 3 + 5 * 6]
    assert [cost.bytes for cost in costs] == [4 * (3 * 6 + 24), 4 * (5 * 3 + 24 + 5 * 6)]


def test_two_that_want_the_same_share_it() -> None:
    stack = stack_with(panels())
    F = stack.operator.open()
    given = operands(F)
    run = compiled(stack, given, F.matmul(given["a"], given["b"]), F.matmul(F.exp(given["a"]), given["b"]))
    assert sorted(commands(run)) == ["exp", PRODUCT, PRODUCT, "pack"]
    one, two = results(run)
    np.testing.assert_allclose(one, GIVEN["a"] @ GIVEN["b"], rtol=1e-6)
    np.testing.assert_allclose(two, np.exp(GIVEN["a"]) @ GIVEN["b"], rtol=1e-6)


def test_constants_are_packed_when_the_graph_is_compiled_and_given_up() -> None:
    lib = panels()
    stack = stack_with(lib)
    F = stack.operator.open()
    a, weights = floats(F, "a", 5, 3), GIVEN["b"].copy()
    kept = weakref.ref(weights)
    y = F.relu(F.matmul(a, constant(F, weights)))
    run = compiled(stack, {"a": a}, y)
    assert commands(run) == ["fused(unpack matmul relu)"]
    np.testing.assert_allclose(results(run)[0], np.maximum(GIVEN["a"] @ GIVEN["b"], 0), rtol=1e-6)
    del y, weights, a, F
    lib.offered.clear()
    gc.collect()  # nodes and their table refer to each other
    assert [b.nbytes for b in run._constants.values()] == [2 * 3 * 4 * 4]
    assert kept() is None, "the program holds what it does not read"


def test_a_constant_that_is_to_spare_is_unpacked_again_for_who_reads_it_later() -> None:
    stack = stack_with(panels())
    F = stack.operator.open()
    a, weights = floats(F, "a", 5, 3), GIVEN["b"].copy()
    kept, spare, shared = weakref.ref(weights), constant(F, weights), constant(F, GIVEN["c"].reshape(3, 6))
    for w in (spare, shared):
        w.attributes[0].spare = True
    run = compiled(stack, {"a": a}, F.matmul(a, spare), F.matmul(a, shared), F.exp(shared))
    del weights
    assert kept() is None
    assert np.array_equal(spare.attributes[0].array, GIVEN["b"])
    assert shared.attributes[0].spare, "another reads it as it is"
    np.testing.assert_allclose(results(run)[0], GIVEN["a"] @ GIVEN["b"], rtol=1e-6)


def test_constants_on_the_device_and_views_of_constants() -> None:
    stack = stack_with(panels())
    F = stack.operator.open()
    a, there = floats(F, "a", 5, 3), stack.engine.executor.upload(GIVEN["c"])
    w = F.constant(Literal(there, "cpu:0"), TensorSpec((6, 3), float32))
    run = compiled(stack, {"a": a}, F.matmul(a, F.permute(w, axes=(1, 0))))
    assert commands(run) == [PRODUCT]
    np.testing.assert_allclose(results(run)[0], GIVEN["a"] @ GIVEN["c"].T, rtol=1e-6)


def test_frozen_weights_that_are_read_in_both_ways_are_there_in_both() -> None:
    stack = stack_with(panels())
    F = stack.operator.open()
    a, w = floats(F, "a", 5, 3), constant(F, GIVEN["b"])
    run = compiled(stack, {"a": a}, F.matmul(a, w), F.exp(w))
    assert sorted(commands(run)) == ["exp", PRODUCT]
    np.testing.assert_allclose(results(run)[1], np.exp(GIVEN["b"]), rtol=1e-6)


def test_conversions_between_those_that_work_on_the_same_order_cancel() -> None:
    """A product gives panels, a function reads and gives panels, the next product reads them: nothing is converted but
    what comes from outside."""
    plain = frozenset({"unpack", "pack"})
    product, between = panels(known=plain), Panels("exp", wants={0: PANELS}, known=plain)
    stack = stack_with(product, between)
    F = stack.operator.open()
    given = operands(F)
    y = F.matmul(given["d"], F.exp(F.matmul(given["a"], given["b"])))
    run = compiled(stack, given, y)
    assert commands(run) == ["pack", "fused(unpack matmul pack)", "fused(unpack exp pack)", PRODUCT]
    np.testing.assert_allclose(results(run)[0], GIVEN["d"] @ np.exp(GIVEN["a"] @ GIVEN["b"]), rtol=1e-5)
    apart = compiled(stack_with(), given, y)
    np.testing.assert_allclose(results(apart)[0], results(run)[0], rtol=1e-5)


def test_what_the_driver_refuses_to_read_packed_is_read_as_it_is() -> None:
    lib = panels(builds=lambda program: False)
    stack = stack_with(lib)
    F = stack.operator.open()
    given = operands(F)
    run = compiled(stack, given, F.matmul(given["a"], given["b"]))
    assert commands(run) == ["matmul"] and f"[{lib.name}; " in run.explain()
    np.testing.assert_allclose(results(run)[0], GIVEN["a"] @ GIVEN["b"], rtol=1e-6)


def test_loops_read_what_was_packed_before_their_rounds() -> None:
    lib = panels(known=AROUND | {"tanh"})
    w = numbers(3, 3, seed=4)
    with nnc.use_device(stack_with(lib)), config.using(deterministic=True):
        @nnc.jit
        def powers(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
            return nnc.scan(lambda v, _: (nnc.tanh(v @ w), None), x, length=4)[0]

        x, inside = nnc.asarray(GIVEN["a"]), nnc.asarray(w)
        found = powers(x, inside).numpy()
        lines = powers.explain(x, inside).splitlines()
    assert lib.ran == ["unpack matmul tanh"] * 4
    (packing,) = [i for i, line in enumerate(lines) if " pack(" in line]
    assert packing < next(i for i, line in enumerate(lines) if "4 times" in line)
    wanted = GIVEN["a"]
    for _ in range(4):
        wanted = np.tanh(wanted @ w)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_constants_that_loops_read_are_packed_when_the_graph_is_compiled() -> None:
    lib = panels(known=AROUND | {"tanh"})
    w = numbers(3, 3, seed=4)
    with nnc.use_device(stack_with(lib)), config.using(deterministic=True):
        x = nnc.var_arr("x", shape=(5, 3))
        y = nnc.scan(lambda v, _: (nnc.tanh(v @ nnc.asarray(w)), None), x, length=4)[0]
        run = nnc.export({"x": x}, {"y": y}, capture="constant").compile()
        run(x=GIVEN["a"])
    assert lib.ran == ["unpack matmul tanh"] * 4
    assert " pack(" not in run.explain()


@pytest.mark.parametrize("codegen", [False, True], ids=["library", "nests"])
def test_gradients(codegen: bool) -> None:
    """Of a network whose weights are inputs: packed at each call, once for each product that wants them so."""
    lib = panels()
    x, labels = numbers(6, 3), np.arange(6) % 2
    given = [numbers(3, 5, seed=1), numbers(5, seed=2), numbers(5, 2, seed=3)]

    def loss(w: list[nnc.Tensor]) -> nnc.Tensor:
        h = nnc.relu(nnc.asarray(x) @ w[0] + w[1])
        return nnc.mean(nnc.cross_entropy(h @ w[2], nnc.asarray(labels)))

    def found(stack: Stack) -> list[np.ndarray]:  # type: ignore[type-arg]
        with nnc.use_device(stack):
            value, grads = nnc.jit(nnc.value_and_grad(loss))([nnc.asarray(w) for w in given])
            return [value.numpy(), *[g.numpy() for g in grads]]

    near(found(stack_with(lib, codegen=codegen)), found(stack_for("cpu:0")))
    assert any(ran.startswith("unpack matmul") for ran in lib.ran)


def test_library_code_that_comes_later_is_asked_then() -> None:
    stack = stack_with()
    F = stack.operator.open()
    given = operands(F)
    assert commands(compiled(stack, given, F.matmul(given["a"], given["b"]))) == ["matmul"]
    stack.device.take("matmul", panels())
    assert commands(compiled(stack, given, F.matmul(given["a"], given["b"]))) == ["pack", PRODUCT]
