"""Runs graphs: values by name, one step after another, in whatever mode the caller is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from nnc_core.base.errors import Error, FileFormatError, SymbolicDimensionError
from nnc_core.functions.casts import astype
from nnc_core.io.onnx.reading.constants import ModelConstants
from nnc_core.io.onnx.reading.counted import CountedSizes
from nnc_core.io.onnx.reading.graph import OnnxGraph, OnnxNode
from nnc_core.io.onnx.reading.lanes import Lane, as_element, element_of, has_dims, is_host, sizes, to_host, to_tensor
from nnc_core.values.modes import current_trace
from nnc_core.values.tensor import Tensor

PYTHON_ERRORS = (TypeError, ValueError, IndexError, KeyError, AttributeError, ArithmeticError, AssertionError)
"""What operators raise for inputs that contradict each other, where no operator of nnc has said it before."""


NOTHING: Mapping[str, Tensor] = MappingProxyType({})


class Scope:
    """Names of a graph and, behind them, those of the graphs around it."""

    def __init__(self, values: dict[str, Lane], outer: Scope | None = None) -> None:
        self.values, self.outer = values, outer

    def __getitem__(self, name: str) -> Lane:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        raise FileFormatError(f"nothing in the model makes {name!r}")

    def get(self, name: str) -> Lane:
        """The value of an output, which may be one that a function's body makes for some inputs only."""
        try:
            return self[name]
        except FileFormatError:
            return None


@dataclass(eq=False)
class Run:
    """One call of a model: what its steps have in common."""

    device: Any
    model: str  # its name, for errors
    constants: ModelConstants
    keeps_loops: bool = False  # in traces, whatever is known of their rounds
    counted: CountedSizes = field(default_factory=CountedSizes)

    def tensor(self, value: Lane) -> Tensor:
        """The value on the device; that of a constant is made once, unless a trace is to see it."""
        if not is_host(value) or current_trace.get() is not None:
            return to_tensor(value, self.device)
        return self.constants.tensor(value, self.device)

    def graph(self, graph: OnnxGraph, inputs: Sequence[Lane], outer: Scope | None = None,
              weights: Mapping[str, Tensor] = NOTHING) -> list[Lane]:
        """The values of a graph's outputs for those of its inputs, in their order; `weights` are read instead of
        initialisers of their names."""
        values: dict[str, Lane] = {**graph.initialisers, **weights}
        values.update((x.name, value) for x, value in zip(graph.inputs, inputs, strict=False)
                      if value is not None or x.name not in values)
        scope = Scope(values, outer)
        for step, over in zip(graph.steps, graph.ends, strict=True):
            self._step(step, scope)
            if graph.dtypes:
                _check_dtypes(step, scope, graph.dtypes, self.model)
            for name in over:
                values.pop(name, None)
        return [scope.get(name) for name in graph.result_names]

    def _step(self, step: OnnxNode, scope: Scope) -> None:
        try:
            results = self._results(step, scope)
        except Error as error:
            error.line = f"{step.where} of {self.model}" + (f", in {error.line}" if error.line else "")
            raise
        except PYTHON_ERRORS as error:
            raise FileFormatError(f"inputs or attributes that do not fit: {type(error).__name__}: {error}",
                                  operator=step.operator.name, line=f"{step.where} of {self.model}") from error
        scope.values.update((name, value) for name, value in zip(step.outputs, results, strict=False) if name)

    def _results(self, step: OnnxNode, scope: Scope) -> Sequence[Lane]:
        operator = step.operator
        given = [scope[name] if name else None for name in step.inputs]
        if operator.on_host is not None and _all_host(given):
            found = _computed(operator.on_host, given, step.attributes)
            if found is not NotImplemented:
                return _as_tuple(_normal(found, _common_dtype(given)))
        inputs = [self._in_lane(operator.lane(i), value) for i, value in enumerate(given)]
        options: Mapping[str, Any] = step.attributes
        if operator.takes_call:
            options = {**options, "call": NodeCall(self, step, scope)}
        return _as_tuple(operator.function(*inputs, **options))

    def _in_lane(self, lane: str, value: Lane) -> Lane:
        if value is None or lane in ("Any", "Known") or isinstance(value, list):
            return value
        if lane == "Sizes":
            return self.counted.of(value)
        if lane == "Numbers":
            return self.counted.numbers(value)
        return to_host(value) if lane == "Host" else self.tensor(value)


@dataclass(frozen=True, eq=False)
class NodeCall:
    """A step while it is computed, for operators that ask about it."""

    run: Run
    step: OnnxNode
    scope: Scope

    @property
    def device(self) -> Any:
        return self.run.device

    def wants(self, position: int) -> bool:
        """Tell whether anybody reads the output of this number."""
        return position < len(self.step.outputs) and bool(self.step.outputs[position])

    @property
    def outputs(self) -> int:
        """The number of outputs of the step."""
        return len(self.step.outputs)

    def tensor(self, value: Lane) -> Tensor:
        """The value on the device of this call."""
        return self.run.tensor(value)

    def number(self, value: Any) -> Tensor:
        """An integer or dimension, or a scalar tensor of integers, as a scalar tensor of int64."""
        return astype(value, np.int64) if isinstance(value, Tensor) else self.tensor(sizes([value]).reshape(()))

    def length(self, number: Tensor) -> Any:
        """A size that is the element of a tensor: a number, or a dimension that is counted when the graph runs."""
        return self.run.counted.of(number).item()

    def graph(self, graph: OnnxGraph, *inputs: Lane, around: Mapping[str, Lane] = NOTHING) -> list[Lane]:
        """Run a sub-graph, which sees the names around the step, some of them with other values."""
        return self.run.graph(graph, inputs, Scope(dict(around), self.scope) if around else self.scope)

    def body(self, graph: OnnxGraph, *inputs: Lane) -> list[Lane]:
        """Run the body of a function, which sees its inputs alone."""
        return self.run.graph(graph, inputs)


def _check_dtypes(step: OnnxNode, scope: Scope, declared: Mapping[str, Any], model: str) -> None:
    """Raise FileFormatError for a result of another dtype than the model declares."""
    for name in step.outputs:
        dtype, value = declared.get(name), scope.values.get(name)
        if dtype is None or not isinstance(value, (Tensor, np.ndarray)) or dtype == element_of(value):
            continue
        if value.dtype.kind != "O" or has_dims(value):
            raise FileFormatError(f"{name!r} is declared as {dtype}, but it is {element_of(value)}",
                                  operator=step.operator.name, line=f"{step.where} of {model}")


def _all_host(given: Sequence[Lane]) -> bool:
    there = [value for value in given if value is not None]
    return bool(there) and all(is_host(value) for value in there)


def _computed(on_host: Callable[..., Any], given: Sequence[Lane], attributes: Mapping[str, Any]) -> Any:
    """The results on the host; NotImplemented where they have sizes that nobody knows yet."""
    try:
        with np.errstate(all="ignore"):  # as tensors compute
            return on_host(*given, **attributes)
    except SymbolicDimensionError:
        return NotImplemented


def _as_tuple(results: Any) -> Sequence[Lane]:
    return results if isinstance(results, tuple) else (results,)


def _common_dtype(given: Sequence[Lane]) -> np.dtype[Any]:
    """The dtype of what sizes are computed of: that of the first input that is no condition."""
    dtypes = [element_of(value) for value in given if value is not None]
    return next((dtype for dtype in dtypes if dtype.kind != "b"), dtypes[0])


def _normal(results: Any, dtype: np.dtype[Any]) -> Any:
    """NumPy's results, scalars and named tuples among them, as arrays; those of sizes are of a dtype."""
    if isinstance(results, tuple):
        return tuple(_normal(x, dtype) for x in results)
    return as_element(np.asarray(results), dtype)
