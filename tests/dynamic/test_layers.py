"""Any layer of the stack can be replaced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core.device import Device
from nnc_core.engine import Engine
from nnc_core.functions.creation import asarray
from nnc_core.graph import SymbolicGraph
from nnc_core.optimiser import Optimiser, Rewrite
from nnc_core.shape import Shape
from nnc_core.stacks import stack_for
from nnc_core.symbol import Node
from nnc_core.type import Type
from nnc_core.values.modes import _stack


class NoOptimiser(Optimiser):
    """Leaves every graph as it was written."""

    def rewrites(self) -> Iterable[Rewrite]:
        return ()


class CountingEngine(Engine):
    compiled = 0

    def compile(self, graph: SymbolicGraph, **options: Any) -> Any:
        CountingEngine.compiled += 1
        return super().compile(graph, **options)


class HalfOnly(Type):
    """A policy: nothing but half floats."""

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.dtypes = frozenset(d for d in self.dtypes if d.name == "float16")


class WatchedShape(Shape):
    """Notes which operators are inferred."""

    seen: Sequence[str] = ()

    def infer(self, op: Any, inputs: Any, attributes: Any) -> Any:
        WatchedShape.seen = [*WatchedShape.seen, op.name]
        return super().infer(op, inputs, attributes)


def strict() -> Device:
    return stack_for("strict:0").device


def wasteful(stack: nnc.Stack) -> tuple[SymbolicGraph, Node]:
    """x + 0, negated twice."""
    F = stack.operator.open()
    x = F.placeholder("x", nnc.asarray([1.0, 2.0]).spec)
    return SymbolicGraph({"x": x}, {"y": F.negative(F.negative(F.add(x, 0.0)))}), x


def test_without_an_optimiser_the_graph_stays_as_it_is_and_gives_the_same() -> None:
    plain, bare = nnc.make_stack(strict()), nnc.make_stack(strict(), Optimiser=NoOptimiser)
    results, sizes = [], []
    for stack in (plain, bare):
        graph, _ = wasteful(stack)
        run = stack.engine.compile(graph)
        executor = stack.engine.executor
        found = run.run({"x": executor.upload(np.array([1, -2], np.float32))})
        results.append(executor.download(found["y"]).tolist())
        sizes.append(len(run.graph.nodes))
    assert results == [[1, -2], [1, -2]] and sizes[0] < sizes[1] == 5


def test_an_engine_of_ones_own_is_used_by_jit() -> None:
    stack = nnc.make_stack(strict(), Engine=CountingEngine)
    token = _stack.set(stack)
    try:
        x = asarray([1.0, 2.0])
        assert x._value.stack is stack
        before = CountingEngine.compiled
        assert nnc.jit(lambda x: x * 2)(x).tolist() == [2, 4]
        assert CountingEngine.compiled == before + 1
    finally:
        _stack.reset(token)


def test_a_type_layer_decides_what_is_admitted() -> None:
    stack = nnc.make_stack(strict(), Type=HalfOnly)
    token = _stack.set(stack)
    try:
        assert (asarray([1.0], dtype="float16") * 2).tolist() == [2.0]
        try:
            asarray([1.0])
        except TypeError as error:
            assert "float32" in str(error)
        else:
            raise AssertionError("float32 was admitted")
    finally:
        _stack.reset(token)


def test_a_shape_layer_sees_every_operator() -> None:
    stack = nnc.make_stack(strict(), Shape=WatchedShape)
    token = _stack.set(stack)
    try:
        WatchedShape.seen = []
        x = asarray([1.0, 2.0])
        with nnc.deferred():
            nnc.tanh(x) + x
        assert WatchedShape.seen == ["tanh", "add"]
    finally:
        _stack.reset(token)


def test_graphs_belong_to_no_stack() -> None:
    graph, _ = wasteful(nnc.make_stack(strict(), Optimiser=NoOptimiser))
    found = graph.compile("strict-align128:0")(x=np.array([3, 4], np.float32))
    assert found["y"].tolist() == [3, 4] and found["y"].device.id == "strict-align128:0"
