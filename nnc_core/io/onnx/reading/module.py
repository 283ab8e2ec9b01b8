"""A model of ONNX as a module."""

from __future__ import annotations

import os
import warnings
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import onnx

from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import FallbackWarning, FileFormatError, ModelWarning
from nnc_core.functions.casts import astype
from nnc_core.functions.creation import stack_given
from nnc_core.functions.movement import permute_dims
from nnc_core.graph import SymbolicGraph
from nnc_core.io.onnx.names import ONNX_MODULE
from nnc_core.io.onnx.reading.constants import ModelConstants
from nnc_core.io.onnx.reading.file import parsed, read_model
from nnc_core.io.onnx.reading.fixed import Fixed
from nnc_core.io.onnx.reading.graph import OnnxGraph, OnnxNode, ValueInfo
from nnc_core.io.onnx.reading.inputs import admitted, dimensions_of, fits, matched, spec_of, text_of
from nnc_core.io.onnx.reading.lanes import Host, Lane, is_host, to_tensor
from nnc_core.io.onnx.reading.metadata import ExportedState, exported_state
from nnc_core.io.onnx.reading.parse import Parser
from nnc_core.io.onnx.reading.run import Run
from nnc_core.io.onnx.reading.skeleton import Fill, declares, fill_weights, without_weights
from nnc_core.io.onnx.reading.statics import static_names, statistics
from nnc_core.nn import Module, Parameter, register
from nnc_core.nn.construction import Construction
from nnc_core.recording.export import export
from nnc_core.symbol import users_frame
from nnc_core.symbols.symbolic import var_arr
from nnc_core.type import TensorSpec
from nnc_core.values.cell import Cell
from nnc_core.values.from_host import kept_value
from nnc_core.values.modes import deferred
from nnc_core.values.tensor import Tensor

NOTHING: Mapping[str, Any] = MappingProxyType({})


def read_module(source: str | os.PathLike[str] | bytes, device: Any = None) -> OnnxModule:
    """The module of a model file, or of the bytes of one."""
    message, name, folder = read_model(source)
    return OnnxModule(message, name, folder, device)


@register(ONNX_MODULE)
class OnnxModule(Module):
    """Runs a model: called with its inputs in their order or by name, it gives its output, or a tuple of several.

    `input_names`, `output_names`: of the model.  `static_names`: inputs that say sizes or settings; compiled code is
    made for their values and kept by them.
    """

    def __init__(self, model: onnx.ModelProto | Host, name: str = "the model", folder: str = "", device: Any = None,
                 held: Mapping[str, TensorSpec] = NOTHING) -> None:
        """`held` are initialisers that the message, which may be given as its bytes, does not have: zeros until they
        are loaded, as from a module's file."""
        message = model if isinstance(model, onnx.ModelProto) else parsed(model.tobytes(), name)
        state = exported_state(message)
        graph = _parsed(message, folder, held, state)
        self._model_name = name
        self._is_exported = state.parameters is not None  # by nnc, whose loops carry no sizes
        self._device = device
        self._static = static_names(graph)
        self._cells = _hold(self, graph, self._static, state, device)
        self._stored = {name: axes for name in self._cells if (axes := state.stored_axes(name)) is not None}
        self._declared = tuple(x for x in graph.inputs if x.name not in graph.initialisers)
        self._defaults = tuple(x for x in graph.inputs if x.name in graph.initialisers)
        # Arrays are the cells' alone from now on: training, and other devices, leave no second copy behind.
        self._restore(graph)
        self._skeleton = without_weights(message, folder, self._cells)
        vars(self)["_construction"] = Construction((), {})  # which has the message

    def _restore(self, graph: OnnxGraph) -> None:
        """Set what copies make anew of the parsed model."""
        self._graph = _without(graph, self._cells)
        self._constants = ModelConstants(self._graph)

    def constructor_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The model without the weights, which are the module's state."""
        return (self._skeleton, self._model_name), {"held": self._held}

    @property
    def _held(self) -> dict[str, TensorSpec]:
        return {name: vars(self)[own].spec for name, own in self._cells.items()}

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles parse the model again."""
        return {k: v for k, v in super().__getstate__().items() if k not in ("_graph", "_constants")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        message = parsed(self._skeleton.tobytes(), self._model_name)
        graph = _parsed(message, "", self._held, exported_state(message))
        self._restore(graph)

    @property
    def input_names(self) -> tuple[str, ...]:
        return tuple(x.name for x in self._declared)

    @property
    def output_names(self) -> tuple[str, ...]:
        return self._graph.result_names

    @property
    def inputs(self) -> tuple[ValueInfo, ...]:
        """Declarations of the inputs."""
        return self._declared

    @property
    def input_specs(self) -> dict[str, TensorSpec]:
        """Specs of the inputs that are tensors; dimensions without a number are named as in `dimension_names`."""
        return {x.name: spec_of(x, NOTHING) for x in self._declared if x.name not in self._static}

    @property
    def outputs(self) -> tuple[ValueInfo, ...]:
        """Declarations of the outputs."""
        return self._graph.outputs

    @property
    def steps(self) -> tuple[OnnxNode, ...]:
        """The nodes in the order in which they run, without those of sub-graphs."""
        return self._graph.steps

    @property
    def dimension_names(self) -> tuple[str, ...]:
        """Names of the dimensions of inputs that have no number, in their order."""
        names = (n for x in self._declared for n in dimensions_of(x) if isinstance(n, str))
        return tuple(dict.fromkeys(names))

    @property
    def default_names(self) -> tuple[str, ...]:
        """Initialisers that the model declares as inputs too: a call may give others by name."""
        return tuple(x.name for x in self._defaults)

    @property
    def static_names(self) -> tuple[str, ...]:
        return tuple(x.name for x in self._declared if x.name in self._static)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model's output for its inputs, those with a default by name only; a tuple where there are several."""
        inputs, instead = self._admitted(args, kwargs)
        return super().__call__(*inputs, **instead)

    def _admitted(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Inputs in their order and what stands for initialisers, as `forward` takes them."""
        instead = {name: kwargs[name] for name in self.default_names if name in kwargs}
        named = {name: value for name, value in kwargs.items() if name not in instead}
        given = matched(self._declared, args, named, self._model_name)
        device = self._place((*given, *instead.values()))

        def take(x: ValueInfo, value: Any) -> Any:
            return admitted(x, value, x.name in self._static, device)

        return [*map(take, self._declared, given)], {
            x.name: take(x, instead[x.name]) for x in self._defaults if x.name in instead}

    def hybridize(self, active: bool = True, **options: Any) -> Self:
        """Compile calls from now on, as `Module.hybridize`; a model that gives texts stays as it is, with a
        FallbackWarning, since no compiled code can give them."""
        texts = [x.name for x in self.outputs if x.dtype is not None and x.dtype.kind == "O"]
        if not (texts and active):
            return super().hybridize(active, **options)
        warnings.warn(f"{self._model_name} gives texts ({', '.join(texts)}), which compiled code cannot: it runs node "
                      "by node", FallbackWarning, stacklevel=users_frame())
        return self

    def forward(self, *inputs: Any, **instead: Any) -> Any:
        """Run the graph on inputs that `__call__` has admitted, and others in place of initialisers."""
        found = self._computed(self._state(), inputs, instead)
        return found[0] if len(found) == 1 else found

    def _state(self) -> dict[str, Tensor]:
        """Parameters and buffers by the names that they have as cells."""
        return {own: vars(self)[own].read() for own in self._cells.values()}

    def _computed(self, state: Mapping[str, Tensor], inputs: Sequence[Any],
                  instead: Mapping[str, Any] = NOTHING) -> tuple[Any, ...]:
        """The outputs for these parameters and buffers, as `_state` gives them."""
        run = Run(self._place(inputs), self._model_name, self._constants, keeps_loops=self._is_exported)
        weights = {name: state[own] for name, own in self._cells.items()}
        weights |= {name: permute_dims(weights[name], axes) for name, axes in self._stored.items()}
        values = {x.name: _unpacked(value) for x, value in zip(self._declared, inputs, strict=True)}
        values |= {name: _unpacked(value) for name, value in instead.items()}
        graph = self._graph
        results = map(run.counted.before, run.graph(graph, [values.get(x.name) for x in graph.inputs], weights=weights))
        return tuple(_result(run, value, declared) for value, declared in zip(results, graph.outputs, strict=True))

    def _place(self, inputs: Any) -> Any:
        """The device of the first tensor among inputs and weights."""
        tensors = (x for x in inputs if isinstance(x, Tensor))
        cell = next((vars(self)[own] for own in self._cells.values()), None)
        first = next(tensors, None)
        if first is not None:
            return first.device
        return self._device if cell is None else cell.read().device

    def graph(self, *, frozen: bool = False, sizes: Mapping[str, int] = NOTHING, **known: Any) -> SymbolicGraph:
        """The model as a SymbolicGraph: inputs, and unless `frozen` parameters and buffers too, under their names.

        Dimensions that the model names stay named, so that one graph serves all their sizes, but for those that `sizes`
        gives a number; those without a name are called by their input and axis, as "x_0".  `known` gives the values
        of inputs that say sizes (`static_names`).
        """
        device = self._place(())
        inputs = {x.name: _symbol(x, sizes, device) for x in self._declared if x.name not in known}
        weights = {} if frozen else {
            own: var_arr(own, vars(self)[own].spec.shape, vars(self)[own].spec.dtype, device)
            for own in self._cells.values()}
        found = self._computed(self._state() if frozen else weights, *self._admitted((), {**inputs, **known}))
        outputs = {name: _recorded(y) for name, y in zip(self.output_names, found, strict=True)}
        return export({**inputs, **weights}, outputs, capture="constant", on_unused="ignore",
                      name=self._graph.name)

    @property
    def is_as_read(self) -> bool:
        """True while the weights are of the dtypes and shapes that the model declares."""
        return declares(parsed(self._skeleton.tobytes(), self._model_name), self._stored_weights())

    def as_read(self, fill: Fill) -> onnx.ModelProto:
        """The model as it was read but for the elements of its weights, which are those of now and go by `fill`."""
        message = parsed(self._skeleton.tobytes(), self._model_name)
        fill_weights(message, self._stored_weights(), fill)
        return message

    def _stored_weights(self) -> dict[str, Host]:
        weights = {name: vars(self)[own].read().numpy() for name, own in self._cells.items()}
        return weights | {name: np.transpose(weights[name], axes) for name, axes in self._stored.items()}

    def describe(self) -> str:
        return f"{self._model_name!r}, {len(self._graph.steps)} nodes"


def _parsed(message: onnx.ModelProto, folder: str, held: Mapping[str, TensorSpec],
            state: ExportedState) -> OnnxGraph:
    """The graph of a model, whose operators are all there; `held` are initialisers that it does not have."""
    parser = Parser(message, folder)
    graph = parser.graph(message.graph, {n: _zeros(s, state.stored_axes(n)) for n, s in held.items()})
    parser.check()
    return graph


def _without(graph: OnnxGraph, names: Container[str]) -> OnnxGraph:
    """The graph without initialisers that are given at each call."""
    return replace(graph, initialisers={n: x for n, x in graph.initialisers.items() if n not in names})


def _zeros(spec: TensorSpec, axes: tuple[int, ...] | None) -> Host:
    """Zeros in place of an array of ours, as the model has it."""
    zeros = np.broadcast_to(np.zeros((), spec.dtype), spec.static_shape)
    return zeros if axes is None else np.transpose(zeros, axes)


def _hold(module: Module, graph: OnnxGraph, static: frozenset[str], state: ExportedState,
          device: Any) -> dict[str, str]:
    """Make cells of the initialisers that are no constants; gives the attribute of each."""
    kept, stack = statistics(graph), stack_given(device)
    cells: dict[str, str] = {}
    for name, array in graph.initialisers.items():
        if name in static or array.ndim == 0 or array.dtype == object:
            continue
        if state.parameters is not None and name not in state.parameters:
            continue
        trained = is_inexact(array.dtype) and name not in kept and name not in state.buffers
        own = name if not hasattr(module, name) else f"{name}_"
        tensor = Tensor(kept_value(state.ours(name, array), stack))
        vars(module)[own] = Parameter(tensor, own) if trained else Cell(tensor, own)
        cells[name] = own
    return cells


def _symbol(declared: ValueInfo, sizes: Mapping[str, int], device: Any) -> Tensor:
    spec = spec_of(declared, sizes)
    return var_arr(declared.name, spec.shape, spec.dtype, device)


def _recorded(output: Any) -> Any:
    """The output with a history: what no input has a part in, as sizes that are known, is a copy of a constant."""
    if not isinstance(output, Tensor) or output.is_symbol:
        return output
    with deferred():
        return astype(output, output.dtype, copy=True)


def _unpacked(value: Any) -> Lane:
    if isinstance(value, list):
        return [_unpacked(x) for x in value]
    return value.array() if isinstance(value, Fixed) else value


def _result(run: Run, value: Lane, declared: ValueInfo) -> Any:
    if isinstance(value, list):
        return [_result(run, x, ValueInfo(declared.name, None, None, "")) for x in value]
    if value is None or (is_host(value) and value.dtype == object and all(isinstance(x, str) for x in value.flat)):
        return value
    tensor = to_tensor(value, run.device)  # never one that is kept, which callers might change
    if declared.dtype is not None and is_host(value) and value.dtype == object:  # sizes have no dtype of their own
        tensor = astype(tensor, declared.dtype)
    if declared.dtype is not None and tensor.dtype != declared.dtype:
        raise FileFormatError(f"the output {declared.name!r} of {run.model} is declared as {declared.dtype}, but its "
                              f"nodes compute {tensor.dtype}")
    if not fits(declared, tensor.shape):
        warnings.warn(f"the output {declared.name!r} of {run.model} is declared as {text_of(declared.shape)}, but is "
                      f"{text_of(tensor.shape)}", ModelWarning, stacklevel=users_frame())
    return tensor
