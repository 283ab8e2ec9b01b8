"""Short ways to run single things on the device under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer, Device, Kernel
from nnc_core.engine import ComputationGraph
from nnc_core.engine.candidates import NestBackend
from nnc_core.engine.pinned_backends import HOST
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT, OPERATORS
from nnc_core.stacks import Stack
from nnc_core.symbol import Node, postorder
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec
from nnc_core.values.modes import use_device
from nnc_core.values.running import run_now
from nnc_core.values.value import Value
from nnc_plugins.conformance.case import Array


def compiles_slowly(device: Device) -> bool:
    """Tell whether each kernel has to go through a compiler: not where loop nests are interpreted or code is ready."""
    return device.spec.kind != "strict" and not device.backends("add")


def spec_of(array: Array) -> TensorSpec:
    return TensorSpec(array.shape, array.dtype)


def put(device: Device, array: Array) -> Buffer:
    """A buffer that holds the array."""
    buffer = device.allocate(max(array.nbytes, 1))
    device.upload(np.ascontiguousarray(array), buffer).wait()
    return buffer


def get(device: Device, buffer: Buffer, like: Array) -> Array:
    """The start of a buffer, as an array like another."""
    host = np.empty(like.shape, like.dtype)
    device.download(buffer, host).wait()
    return host


ROOM = 8
"""The most arrays, as large as the largest of a case, that are needed at once: by views and intermediate results."""


def has_room(device: Device, arrays: Iterable[Array | TensorSpec]) -> bool:
    """Tell whether a device that limits what it allocates at once can be asked for a case with these arrays."""
    limit = device.spec.max_allocation
    return limit is None or ROOM * max([x.nbytes for x in arrays], default=0) <= limit


def eager(stack: Stack, op: Op, inputs: Sequence[Array], attributes: Attributes) -> Any:
    """One operator, run now, on host arrays: its result, or a tuple of its results."""
    upload = stack.engine.executor.upload
    values = [Value(upload(x), stack) for x in inputs]
    return downloaded(stack, applied(stack, op, values, attributes))


def viewed(stack: Stack, array: Array) -> Value:
    """The array on the device, as every other element of one that has its axes in reverse."""
    turned = array.T
    around = np.ones([2 * n + 1 for n in turned.shape], array.dtype)
    around[tuple([slice(1, None, 2)] * array.ndim)] = turned
    whole = Value(stack.engine.executor.upload(around), stack)
    if not array.ndim:
        return whole
    start, step, axes = (1,) * array.ndim, (2,) * array.ndim, tuple(reversed(range(array.ndim)))
    inside = applied(stack, OPERATORS["slice"], [whole], (start, around.shape, step))
    return applied(stack, OPERATORS["permute"], [inside], (axes,))


def applied(stack: Stack, op: Op, values: Sequence[Value], attributes: Attributes) -> Value:
    """One operator on values of the device."""
    with use_device(stack.device):
        spec = stack.shape.infer(op, tuple(v.spec for v in values), attributes)
        return Value(run_now(op, values, attributes, spec, stack), stack, spec)


def downloaded(stack: Stack, value: Value) -> Any:
    """A host array, or a tuple of them."""
    download = stack.engine.executor.download
    return tuple(map(download, value.array)) if isinstance(value.array, tuple) else download(value.array)


def one_operator_graph(stack: Stack, op: Op, inputs: Sequence[Array], attributes: Attributes) -> SymbolicGraph:
    """A graph with inputs x0, x1, ... and the output y, or y0, y1, ... of an operator that has several results."""
    F = stack.operator.open()
    placeholders = {f"x{i}": F.placeholder(f"x{i}", spec_of(x)) for i, x in enumerate(inputs)}
    y = F.apply(op, tuple(placeholders.values()), attributes)
    outputs = {f"y{i}": part for i, part in enumerate(F.picks(y))} if isinstance(y.spec, TupleSpec) else {"y": y}
    return SymbolicGraph(placeholders, outputs, (), op.name)


def called(graph: ComputationGraph, given: Mapping[str, Array]) -> dict[str, Array]:
    """A compiled graph on host arrays."""
    executor = graph.executor
    results = graph.run({k: executor.upload(x) for k, x in given.items()})
    return {k: executor.download(x) for k, x in results.items()}


def one_by_one(stack: Stack, graph: SymbolicGraph, given: Mapping[str, Array]) -> dict[str, Array]:
    """Every node of a graph by the eager kernels, in memory of its own."""
    upload = stack.engine.executor.upload
    known: dict[Node, Value] = {node: Value(upload(given[name]), stack) for name, node in graph.inputs.items()}
    for node in postorder(graph.outputs.values(), {id(n) for n in known}):
        if node.op is CONSTANT:
            literal: Any = node.attributes[0]
            known[node] = Value(upload(literal.array), stack)
        elif node not in known:
            known[node] = applied(stack, node.op, [known[x] for x in node.inputs], node.attributes)
    return {name: downloaded(stack, known[node]) for name, node in graph.outputs.items()}


def command_of(stack: Stack, op: Op, layouts: Sequence[Layout], attributes: Attributes) -> Command:
    """Command of an operator on arrays that lie so."""
    out = stack.shape.infer(op, tuple(TensorSpec(x.shape, x.dtype) for x in layouts), attributes)
    outs = out.parts if isinstance(out, TupleSpec) else (out,)
    return Command(op.name, attributes, tuple(layouts), tuple(x.layout() for x in outs))


def host_fallback(stack: Stack, op: Op, inputs: Sequence[Array], attributes: Attributes) -> str | None:
    """The device's reasons for running an operator on the host that has a loop nest for such operands; None if it does
    not."""
    command = command_of(stack, op, [spec_of(x).layout() for x in inputs], attributes)
    decision = stack.engine.decider.decide(op, command)
    if op.host or decision.backend != HOST or NestBackend(op, stack.device).refuse(command) is not None:
        return None
    return "; ".join(decision.refusals) or "none given"


def kernel(stack: Stack, name: str, *inputs: TensorSpec, attributes: Attributes = ()) -> Kernel:
    """A compiled kernel that needs no workspace: buffers of the inputs, then of the output."""
    op = OPERATORS[name]
    out = stack.shape.infer(op, inputs, attributes)
    command = Command(name, attributes, tuple(x.layout() for x in inputs), (out.layout(),))
    kernel, workspace = stack.engine.builder.prepare(op, command)
    assert workspace == 0, f"{kernel} wants scratch memory for {command}"
    return kernel
