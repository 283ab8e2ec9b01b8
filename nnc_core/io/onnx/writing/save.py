"""ONNX models and files of graphs and networks."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from nnc_core.base.atomic import open_atomically, write_atomically
from nnc_core.base.errors import OperandError
from nnc_core.graph import SymbolicGraph
from nnc_core.io.onnx.writing.external import ExternalData
from nnc_core.io.onnx.writing.model import model_of
from nnc_core.io.onnx.writing.module_graph import Given, graph_of_module
from nnc_core.io.onnx.writing.proto import Fill, inline, model_proto, package
from nnc_core.io.onnx.writing.records import WrittenModel
from nnc_core.nn.module import Module
from nnc_core.recording.unshaped_graph import SPECIALISE, UnshapedGraph
from nnc_core.symbol import without_collector
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.modes import current_stack
from nnc_core.values.tensor import Tensor

if TYPE_CHECKING:
    from onnx import ModelProto

_LARGEST = 2**31 - 2**24
"""Bytes of arrays that are put into the file itself; protocol buffers end at 2 GiB."""


@located
def to_onnx(what: SymbolicGraph | Module, *, inputs: Given = (),
            parameters: Mapping[str, Any] | None = None, buffers: Mapping[str, Any] | None = None) -> ModelProto:
    """A graph, or a network in evaluation, as an ONNX model; see `save_onnx`."""
    made: ModelProto = _to_be_written(what, inputs, parameters, buffers).proto(inline)
    return made


@located
def save_onnx(what: SymbolicGraph | Module, path: str | os.PathLike[str], *, inputs: Given = (),
              parameters: Mapping[str, Any] | None = None, buffers: Mapping[str, Any] | None = None,
              external_data: bool | None = None) -> None:
    """Write a graph, or a network in evaluation, as an ONNX file of opset 21, or 23 where it takes that.

    Of a network `inputs` are the shapes of its arguments, in order or by name: tuples with a name for each size that
    may differ from call to call, as ("batch", 28, 28, 1), specs or tensors.  Its parameters and buffers are
    initializers under their own names.  Of a graph `parameters` and `buffers`, which are not trained, are the values of
    some inputs, as tensors, arrays or cells by name: they become initializers; the others stay inputs.  What
    `load_onnx` has read is written as it was, with the weights of now, unless `inputs` are given; `what.graph()` is
    written anew.

    Images keep their channels where the graph has them, at both ends; between they lie as ONNX wants them, and kernels
    are stored so.  With `external_data` arrays are in a file beside it, of that name and ".data"; None: where they are
    too large for one file.

    Raises NotSupportedError that names all operators which ONNX does not have, random numbers, callbacks and complex
    numbers among them, and MissingPackageError without the package onnx.
    """
    model = _to_be_written(what, inputs, parameters, buffers)
    if external_data is None:
        external_data = model.nbytes > _LARGEST
    if not external_data:
        write_atomically(path, lambda file: file.write(_serialised(model.proto(inline))))
        return
    beside = Path(os.fspath(path) + ".data")
    with open_atomically(beside) as file:
        text = _serialised(model.proto(ExternalData(file, beside.name).put))
    write_atomically(path, lambda file: file.write(text))


class _ToBeWritten(NamedTuple):
    """A model whose arrays are not yet anywhere."""

    nbytes: int
    proto: Callable[[Fill], Any]


@runtime_checkable
class IsModel(Protocol):
    """A network that was read from a model, and can give it back."""

    @property
    def is_as_read(self) -> bool: ...
    def as_read(self, fill: Fill) -> Any: ...
    def cells(self) -> Mapping[str, Cell]: ...


def _to_be_written(what: SymbolicGraph | Module, inputs: Given, parameters: Mapping[str, Any] | None,
                   buffers: Mapping[str, Any] | None) -> _ToBeWritten:
    """The model that was read, with the weights of now, or one that is made of a graph or network."""
    package()
    given = parameters is not None or buffers is not None
    if isinstance(what, IsModel) and not inputs and not given and what.is_as_read:
        return _ToBeWritten(sum(cell.read().nbytes for cell in what.cells().values()), what.as_read)
    model = _of_module(what, inputs, given) if isinstance(what, Module) else (
        _of_graph(what, inputs, parameters or {}, buffers or {}))
    return _ToBeWritten(sum(x.nbytes for x in model.arrays.values()), partial(model_proto, model))


def _serialised(proto: Any) -> bytes:
    return proto.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


@without_collector()
def _of_module(what: Module, inputs: Given, given: bool) -> WrittenModel:
    if given:
        raise OperandError(f"{type(what).__name__} has parameters of its own", operator="save_onnx",
                           hint="parameters=... and buffers=... are for graphs; load_state_dict writes those of a "
                                "network")
    network = graph_of_module(what, inputs)
    return model_of(network.graph, network.values, current_stack().operator, network.buffers)


@without_collector()
def _of_graph(what: SymbolicGraph, inputs: Given, parameters: Mapping[str, Any],
              buffers: Mapping[str, Any]) -> WrittenModel:
    if not isinstance(what, SymbolicGraph):
        raise OperandError(f"{type(what).__name__} is neither a graph nor a network", operator="save_onnx",
                           hint="nnc.export gives the graph of what was recorded")
    if isinstance(what, UnshapedGraph):
        raise OperandError(f"{what.name!r} has inputs of unknown shape", operator="save_onnx",
                           hint=f"save one with shapes: {SPECIALISE}")
    if inputs:
        raise OperandError(f"the graph {what.name!r} knows the shapes of its inputs", operator="save_onnx",
                           hint="inputs=... is for networks")
    if both := parameters.keys() & buffers.keys():
        raise OperandError(f"{sorted(both)[0]!r} is given as a parameter and as a buffer", operator="save_onnx")
    values = {name: _host(x) for name, x in (*parameters.items(), *buffers.items())}
    return model_of(what, values, current_stack().operator, buffers)


def _host(x: Any) -> Any:
    x = x.read() if isinstance(x, Cell) else x
    return x.numpy() if isinstance(x, Tensor) else np.asarray(x)
