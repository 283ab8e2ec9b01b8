"""Each of the eight layers of the stack can be replaced, and is asked in eager, deferred and compiled code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin import StrictDevice
from nnc_core.device import Device, Kernel
from nnc_core.engine import Engine, Executor
from nnc_core.graph import Graph, SymbolicGraph
from nnc_core.operator import OPERATORS, Operator
from nnc_core.optimiser import Optimiser, Rewrite
from nnc_core.shape import Shape
from nnc_core.symbol import Node, Symbol
from nnc_core.type import Type
from tests.integration.modes import (
    MODES,
    Mode,
    Muted,
    compiled_modes,
    deferred,
    eager,
    every_mode,
    exported,
    floats,
    graph_of,
    jitted,
    repeat,
    strict,
)


# ---- device
class CountingDevice(StrictDevice):
    """Counts the loop nests that it compiles."""

    compiled = 0

    def compile(self, nest: LoopNest) -> Kernel:
        self.compiled += 1
        return super().compile(nest)


@every_mode
def test_a_device_compiles_what_runs_on_it(mode: Mode) -> None:
    device = CountingDevice()
    x = floats(nnc.make_stack(device), 1.0, 2.0)
    before = device.compiled
    assert mode(lambda x: nnc.maximum(x * 2, 3), x).tolist() == [3, 4]
    assert device.compiled > before


# ---- type
class HalvesOnly(Type):
    """A policy: nothing but half floats."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.dtypes = frozenset(d for d in self.dtypes if d.name == "float16")


@every_mode
def test_a_type_layer_decides_what_is_admitted(mode: Mode) -> None:
    x = floats(nnc.make_stack(strict(), Type=HalvesOnly), 1.0, 2.0, dtype="float16")
    assert mode(lambda x: x * 2, x).tolist() == [2, 4]
    with pytest.raises(DTypeError, match="device has no float32"):
        mode(lambda x: nnc.astype(x, "float32"), x)


def test_a_type_layer_admits_graphs_that_were_made_elsewhere() -> None:
    x = floats(nnc.stack_for("strict:0"), 1.0, 2.0)
    graph = graph_of(lambda x: nnc.astype(nnc.astype(x, "float64") * 2, "float32"), x)
    with pytest.raises(DTypeError, match=r"(?s)cast: device has no float64.*test_layers.py"):
        graph.compile("strict-nofloat64:0")
    loop = graph_of(lambda x: nnc.cond(nnc.sum(x) > 0, lambda x: nnc.astype(nnc.astype(x, "float64"), "float32"),
                                       lambda x: x, x), x)
    with pytest.raises(DTypeError, match="device has no float64"):
        loop.compile("strict-nofloat64:0")


# ---- shape
class EvenOnly(Shape):
    """A policy: no array of odd length; notes which operators are inferred."""

    def __init__(self, type: Type) -> None:
        super().__init__(type)
        self.seen: list[str] = []

    def infer(self, op: Any, inputs: Any, attributes: Any) -> Any:
        self.seen.append(op.name)
        spec = super().infer(op, inputs, attributes)
        if any(isinstance(n, int) and n % 2 for n in spec.shape):
            raise ShapeError(f"{spec} is odd", operator=op.name)
        return spec


@every_mode
def test_a_shape_layer_is_asked_of_every_operator(mode: Mode) -> None:
    stack = nnc.make_stack(strict(), Shape=EvenOnly)
    x = floats(stack, 1.0, 2.0)
    assert mode(lambda x: nnc.tanh(x) + x, x).shape == (2,)
    assert {"tanh", "add"} <= set(stack.shape.seen)  # type: ignore[attr-defined]
    with pytest.raises(ShapeError, match=r"slice: float32\[1\] is odd"):
        mode(lambda x: x[:1], x)


# ---- symbol
class WatchedSymbol(Symbol):
    """Notes which nodes are made."""

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.made: list[str] = []

    def node(self, table: Any, op: Any, inputs: Any, attributes: Any) -> Node:
        self.made.append(op.name)
        return super().node(table, op, inputs, attributes)


@compiled_modes
def test_a_symbol_layer_makes_the_nodes_of_graphs(mode: Mode) -> None:
    stack = nnc.make_stack(strict(), Symbol=WatchedSymbol)
    mode(lambda x: nnc.softmax(x), floats(stack, 1.0, 2.0))
    assert {"softmax", "max", "exp"} <= set(stack.symbol.made)  # type: ignore[attr-defined]


def test_a_symbol_layer_makes_the_bodies_of_control_flow_that_is_recorded() -> None:
    stack = nnc.make_stack(strict(), Symbol=WatchedSymbol)
    x = floats(stack, 1.0, 2.0)
    assert deferred(lambda x: repeat(lambda x: nnc.abs(x) * 2, 3, x), x).tolist() == [8, 16]
    assert {"abs", "multiply"} <= set(stack.symbol.made)  # type: ignore[attr-defined]


# ---- optimiser
class NoOptimiser(Optimiser):
    """Leaves every graph as it was written."""

    def rewrites(self) -> Iterable[Rewrite]:
        return ()


class SizedEngine(Engine):
    """Keeps the sizes of what it compiles."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.sizes: list[int] = []

    def compile(self, graph: SymbolicGraph, **options: Any) -> Any:
        made = super().compile(graph, **options)
        self.sizes.append(len(made.graph.nodes))
        return made


def wasteful(x: Any) -> Any:
    return nnc.negative(nnc.negative(x + 0.0))


@compiled_modes
def test_without_an_optimiser_graphs_stay_as_they_are_and_give_the_same(mode: Mode) -> None:
    plain = nnc.make_stack(strict(), Engine=SizedEngine)
    bare = nnc.make_stack(strict(), Optimiser=NoOptimiser, Engine=SizedEngine)
    assert all(mode(wasteful, floats(stack, 1.0, -2.0)).tolist() == [1, -2] for stack in (plain, bare))
    assert plain.engine.sizes < bare.engine.sizes == [5]  # type: ignore[attr-defined]


def test_loops_that_are_recorded_are_optimised_by_the_layer() -> None:
    asked = []

    class Asked(Optimiser):
        def run(self, outputs: Sequence[Node]) -> list[Node]:
            asked.append(len(outputs))
            return super().run(outputs)

    x = floats(nnc.make_stack(strict(), Optimiser=Asked), 1.0, -2.0)
    assert deferred(lambda x: repeat(wasteful, 3, x), x).tolist() == [1, -2]
    assert asked


# ---- graph
class DoubledGradients(Graph):
    def reverse(self, *arguments: Any) -> list[Any]:
        F = arguments[0]
        return [None if g is None else F.add(g, g) for g in super().reverse(*arguments)]

    def forward(self, *arguments: Any) -> list[Any]:
        F = arguments[0]
        return [None if t is None else F.add(t, t) for t in super().forward(*arguments)]


def cubes(x: Any) -> Any:
    return nnc.sum(x * x * x)


@every_mode
@pytest.mark.parametrize("derivative", [
    nnc.grad(cubes), lambda x: nnc.value_and_grad(cubes)(x)[1], lambda x: nnc.vjp(cubes, x)[1](nnc.ones(()))[0],
    lambda x: nnc.jacobian(cubes)(x), lambda x: nnc.jvp(lambda x: x * x * x, (x,), (nnc.ones_like(x),))[1],
], ids=["grad", "value_and_grad", "vjp", "jacobian", "jvp"])
def test_a_graph_layer_gives_every_gradient(mode: Mode, derivative: Callable[[Any], Any]) -> None:
    stack = nnc.make_stack(strict(), Graph=DoubledGradients)
    with nnc.use_device(stack):
        assert mode(derivative, floats(stack, 1.0, 2.0)).tolist() == [6, 24]


def test_a_graph_layer_gives_the_gradients_of_tapes_and_of_graphs() -> None:
    stack = nnc.make_stack(strict(), Graph=DoubledGradients)
    x = floats(stack, 1.0, 2.0)
    graph = stack.graph.grad(graph_of(cubes, x), "y", ["x"])
    assert graph.compile(stack)(x=x)["dx"].tolist() == [6, 24]
    x = nnc.variable(x)
    for _ in range(4):  # from the third time on compiled
        x.grad = None
        cubes(x).backward()
        assert x.grad is not None and x.grad.tolist() == [6, 24]


@every_mode
def test_a_graph_layer_runs_functions_on_many_examples(mode: Mode) -> None:
    sizes = []

    class Watched(Graph):
        def batch(self, F: Any, body: Any, values: Any, batched: Any, size: Any) -> list[Any]:
            sizes.append(size)
            return super().batch(F, body, values, batched, size)

    x = floats(nnc.make_stack(strict(), Graph=Watched), 1.0, 2.0)
    assert mode(nnc.vmap(lambda x: x * 2), x).tolist() == [2, 4] and sizes == [2]


# ---- engine
class CountingExecutor(Executor):
    runs = 0

    def run(self, *arguments: Any) -> Any:
        self.runs += 1
        return super().run(*arguments)


class CountingEngine(Engine):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.compiled = 0
        self.executor = CountingExecutor(self.device, self.builder, self.control.run)

    def compile(self, graph: SymbolicGraph, **options: Any) -> Any:
        self.compiled += 1
        return super().compile(graph, **options)


@pytest.mark.parametrize(("mode", "runs", "compiled"), [
    (eager, 1, 0), (deferred, 1, 0), (jitted, 0, 1), (exported, 0, 1),
], ids=[mode.__name__ for mode in MODES])
def test_an_engine_runs_operators_and_compiles_graphs(mode: Mode, runs: int, compiled: int) -> None:
    x = floats(nnc.make_stack(strict(), Engine=CountingEngine), 1.0, 2.0)
    engine = x._value.stack.engine
    assert mode(nnc.tanh, x).shape == (2,)
    assert (engine.executor.runs, engine.compiled) == (runs, compiled)  # type: ignore[attr-defined]


# ---- all
def test_every_operator_that_may_be_replaced_can_be() -> None:
    """A layer that replaces each operator, by a rule that is never asked, is taken."""

    def never(self: Any, F: Any, *inputs: Any, **attributes: Any) -> Any:
        raise AssertionError

    names = set(OPERATORS) - {"copy", "filled", "transfer"}
    layer = type("Everything", (Operator,), dict.fromkeys(names, never))
    assert {op.name for op in nnc.make_stack(strict(), Operator=layer).operator.replaced} == names


def test_graphs_belong_to_no_stack() -> None:
    graph = graph_of(wasteful, floats(nnc.make_stack(strict(), Optimiser=NoOptimiser), 1.0, 2.0))
    found = graph.compile("strict-align128:0")(x=np.array([3, 4], np.float32))
    assert found["y"].tolist() == [3, 4] and found["y"].device.id == "strict-align128:0"


def test_what_is_made_like_something_is_on_its_stack() -> None:
    stack = nnc.make_stack(strict(), Operator=Muted)
    x = floats(stack, 1.0, 2.0)
    assert nnc.ones_like(x)._value.stack is stack
    with nnc.use_device(stack):
        made = [nnc.zeros(3, device=x.device), nnc.asarray(x, device=x.device), nnc.asarray([1], device="strict:0"),
                nnc.nn.Linear(2, 3)(x)]
    assert all(t._value.stack is stack for t in made)
