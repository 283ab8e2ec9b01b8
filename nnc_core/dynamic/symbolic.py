"""Owl's way: symbols are assigned, graphs evaluated again only where an assignment made them invalid (book 6.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from nnc_core.base.errors import Error, GraphError, ShapeError, UnassignedError
from nnc_core.composition import stack_for
from nnc_core.device import Array
from nnc_core.dynamic.creation import asarray
from nnc_core.dynamic.dispatch import run_now
from nnc_core.dynamic.export import export
from nnc_core.dynamic.modes import computing, current_stack
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.value import Value
from nnc_core.graph import SymbolicGraph
from nnc_core.symbol import postorder, show_line
from nnc_core.type import DimLike, TensorSpec, admit_numpy, default_float


class _Symbols:
    """The trace that assigned symbols belong to: it never ends.  Keeps what has been evaluated, as long as it lives."""

    ended = False

    def __init__(self) -> None:
        self.clock = 0
        self.names: WeakKeyDictionary[Value, str] = WeakKeyDictionary()
        self.known: WeakKeyDictionary[Value, tuple[int, Array]] = WeakKeyDictionary()
        self.evaluations = 0
        """How many operators have been run: what incremental evaluation saves can be seen."""

    def assign(self, v: Value, array: Array) -> None:
        self.clock += 1
        self.known[v] = (self.clock, array)

    def evaluate(self, outputs: Sequence[Value]) -> None:
        """Run what has no value, or one older than a value that it was computed from."""
        for v in postorder(outputs):
            if v.trace is None:
                continue
            if v.step is None:
                if v not in self.known:
                    raise UnassignedError(f"the symbol {self.names.get(v, '?')!r} {v.spec} has no value",
                                          hint="nnc.assign(symbol, value) before eval")
                continue
            stamps = [self.known[x][0] for x in v.inputs if x.trace is not None]
            newest = max(stamps, default=0)
            if v in self.known and self.known[v][0] >= newest:
                continue
            self.known[v] = (max(newest, 1), self._compute(v))

    def _compute(self, v: Value) -> Array:
        self.evaluations += 1
        inputs = [Value(self._array(x), x.stack) for x in v.inputs]
        specs = tuple(x.spec for x in inputs)
        try:
            with computing():
                spec = v.stack.shape.infer(v.op, specs, v.attributes)
                return run_now(v.op, inputs, v.attributes, spec, v.stack)
        except Error as error:
            raise error.locate(operator=v.op.name, line=show_line(v.line))  # noqa: B904

    def _array(self, x: Value) -> Array:
        if x.trace is not None:
            return self.known[x][1]
        return Tensor(x).realize()._value.array


SYMBOLS = _Symbols()


def var_arr(name: str, shape: Sequence[DimLike] = (), dtype: Any = None, device: Any = None) -> Tensor:
    """A placeholder for an array: operations on it build a graph."""
    stack = current_stack() if device is None else stack_for(device)
    spec = TensorSpec(tuple(shape), stack.type.admit(default_float() if dtype is None else admit_numpy(dtype)))
    value = Value(None, stack, spec, None, False, SYMBOLS)
    SYMBOLS.names[value] = name
    return Tensor(value)


def var_elt(name: str, dtype: Any = None, device: Any = None) -> Tensor:
    """A placeholder for a number."""
    return var_arr(name, (), dtype, device)


def const_arr(x: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """An array as a constant of graphs."""
    return asarray(x, dtype=dtype, device=device)


def const_elt(x: float, dtype: Any = None, device: Any = None) -> Tensor:
    """A number as a constant of graphs."""
    return asarray(x, dtype=default_float() if dtype is None else dtype, device=device)


def _symbol(t: Tensor) -> Value:
    v = t._value
    if v.trace is not SYMBOLS or v.step is not None:
        raise GraphError(f"{t!r} is no placeholder", line=show_line(v.line),
                         hint="assign what nnc.var_arr or nnc.var_elt gave")
    return v


def assign(symbol: Tensor, x: Any) -> None:
    """Give a placeholder a value: a copy, cast to its dtype.  Whatever depends on it is evaluated anew when asked for.

    Another shape than the declared one is allowed as long as the operations in between take it.
    """
    v = _symbol(symbol)
    if v.ndim != np.ndim(x.numpy() if isinstance(x, Tensor) else x):
        raise ShapeError(f"symbol {SYMBOLS.names[v]!r} {v.spec} cannot take a value of {np.ndim(x)} dimensions")
    given = asarray(x, dtype=v.dtype, device=v.stack.device.spec.id)
    SYMBOLS.assign(v, given.realize()._value.array)


def eval_arr(outputs: Sequence[Tensor]) -> None:
    """Evaluate arrays, as far as they are not valid already."""
    SYMBOLS.evaluate([t._value for t in outputs])


eval_elt = eval_arr


def unpack_arr(t: Tensor) -> np.ndarray[Any, Any]:
    """The evaluated value on the host."""
    v = t._value
    if v.trace is None:
        return t.numpy()
    if v not in SYMBOLS.known:
        raise UnassignedError(f"{v.spec} has not been evaluated", line=show_line(v.line),
                              hint="nnc.eval_arr([...]) first")
    host: np.ndarray[Any, Any] = v.stack.engine.executor.download(SYMBOLS.known[v][1])
    return host


def unpack_elt(t: Tensor) -> float | int | bool:
    """The evaluated number."""
    return unpack_arr(t).item()  # type: ignore[no-any-return]


class AssignedGraph:
    """A graph between symbols with Owl's calls: `eval_graph` evaluates its outputs from what was assigned."""

    def __init__(self, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor], name: str) -> None:
        self.inputs, self.outputs = dict(inputs), dict(outputs)
        self.symbolic: SymbolicGraph = export(inputs, outputs, capture="constant", name=name)

    def __str__(self) -> str:
        return str(self.symbolic)


def make_graph(inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str = "graph") -> AssignedGraph:
    """The graph from placeholders to outputs; inputs keep their names, outputs are called out0, out1, ..."""
    named = {SYMBOLS.names[_symbol(t)]: t for t in inputs}
    if len(named) < len(inputs):
        given = ", ".join(SYMBOLS.names[t._value] for t in inputs)
        raise GraphError(f"the inputs of {name!r} need different names, not {given}")
    return AssignedGraph(named, {f"out{i}": t for i, t in enumerate(outputs)}, name)


def eval_graph(graph: AssignedGraph) -> None:
    """Evaluate all outputs of a graph, as far as they are not valid already."""
    eval_arr(list(graph.outputs.values()))


def is_assigned(symbol: Tensor) -> bool:
    return _symbol(symbol) in SYMBOLS.known


