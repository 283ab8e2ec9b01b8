"""A network in evaluation as a graph whose inputs are its own and, by their names, its parameters and buffers."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.onnx.writing.records import Array
from nnc_core.nn.inference import as_spec, stack_beneath
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.operator import Nodes
from nnc_core.recording.export import constant, to_nodes
from nnc_core.symbol import Node, without_collector
from nnc_core.type import TensorSpec
from nnc_core.values.modes import evaluating, no_grad, tracing
from nnc_core.values.state import save_state
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import Trace
from nnc_core.values.tree import flatten, leaf_names
from nnc_core.values.value import Value

Given = Mapping[str, Any] | Sequence[Any]
"""Specs, shapes or tensors: by the names of the network's arguments, or in their order."""


@runtime_checkable
class NamesItsEnds(Protocol):
    """A network that knows its inputs and outputs, as one that was read from a model does."""

    @property
    def input_names(self) -> Sequence[str]: ...
    @property
    def input_specs(self) -> Mapping[str, TensorSpec]: ...
    @property
    def output_names(self) -> Sequence[str]: ...


class NetworkInEvaluation(NamedTuple):
    """A graph with the values of some inputs."""

    graph: SymbolicGraph
    values: dict[str, Array]
    buffers: list[str]
    """Names of the values that are not trained."""


@without_collector()
def graph_of_module(module: Module, given: Given) -> NetworkInEvaluation:
    """The graph, and the values of the inputs that are parameters and buffers."""
    if not given and isinstance(module, NamesItsEnds):
        given = module.input_specs
    specs = _named(module, given)
    stack, trace = stack_beneath(module), Trace(type(module).__name__)
    symbols = {name: Value(None, stack, spec, None, False, trace) for name, spec in specs.items()}
    trace.symbols.extend(symbols.values())
    try:
        with tracing(trace), evaluating(), no_grad():
            result = module(**{name: Tensor(v) for name, v in symbols.items()}) if isinstance(given, Mapping) else (
                module(*[Tensor(v) for v in symbols.values()]))
    finally:
        trace.ended = True
    _check(module, trace)
    leaves, structure = flatten(result)
    labels = module.output_names if isinstance(module, NamesItsEnds) else leaf_names(structure, "output")
    outputs = {name: x._value for name, x in zip(labels, leaves, strict=True) if isinstance(x, Tensor)}
    names = {cell: name for name, cell in module.cells().items()}
    cells = {names.get(cell, cell.name): cell for cell in trace.cells}
    if both := cells.keys() & symbols.keys():
        raise OperandError(f"{sorted(both)[0]!r} is an input of {type(module).__name__} and one of its parameters",
                           hint="give inputs as a mapping, by other names")
    F = stack.operator.open()
    places = {name: F.placeholder(name, v.spec) for name, v in symbols.items()}
    state = {name: F.placeholder(name, cell.spec) for name, cell in cells.items()}
    cuts = {id(symbols[name]): node for name, node in places.items()}
    cuts |= {id(trace.cells[cell]): state[name] for name, cell in cells.items()}
    nodes = to_nodes(F, list(outputs.values()), cuts, _constant)
    graph = SymbolicGraph({**places, **state}, dict(zip(outputs, nodes, strict=True)), (), type(module).__name__)
    return NetworkInEvaluation(graph, save_state(cells), [n for n, c in cells.items() if not isinstance(c, Parameter)])


def _constant(F: Nodes, v: Value) -> Node:
    if v.array is None:
        raise NotSupportedError(f"the network depends on a symbol {v.spec} that is none of its arguments")
    return constant(F, v)


def _check(module: Module, trace: Trace) -> None:
    name = type(module).__name__
    if trace.effects:
        raise NotSupportedError(f"{name} calls functions of the host", hint="export the parts without them")
    if any(now is not trace.cells[cell] for cell, now in trace.now.items()):
        raise NotSupportedError(f"{name} changes its state in evaluation, which an ONNX graph cannot",
                                hint="export the part that computes")


def _named(module: Module, given: Given) -> dict[str, TensorSpec]:
    """The specs of arguments by their names."""
    if isinstance(given, Mapping):
        return {name: as_spec(x) for name, x in given.items()}
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise OperandError(f"inputs {given!r} are no sequence", operator="save_onnx",
                           hint='one entry for each argument: inputs=[("batch", 28, 28, 1)]')
    names = _argument_names(module)
    names += [f"input.{k}" for k in range(len(names), len(given))]
    return {name: as_spec(x) for name, x in zip(names, given, strict=False)}


def _argument_names(module: Module) -> list[str]:
    if isinstance(module, NamesItsEnds):
        return list(module.input_names)
    known = inspect.signature(module.forward).parameters.values()
    return [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
