"""Functions traced once for each signature, compiled, and called from then on without Python inside."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from nnc_core.base.config import config
from nnc_core.base.errors import OperandError, SymbolValueError
from nnc_core.dynamic.cell import Cell, Trace
from nnc_core.dynamic.compiled import CompiledGraph, compile_graph
from nnc_core.dynamic.dispatch import evaluate
from nnc_core.dynamic.export import constant, to_nodes
from nnc_core.dynamic.modes import current_stack, current_trace, gradients, lazy, sweeps
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.tree import Structure, flatten, unflatten
from nnc_core.dynamic.value import Value
from nnc_core.engine import LostStateError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.symbol import Node, without_collector

KEPT = 8
"""Compilations of one signature that are kept, for when a value that was read from outside changes back."""


class Compilation(NamedTuple):
    """A function compiled for one signature, and what a call must bring and take away."""

    run: CompiledGraph
    cells: tuple[tuple[str, Cell, bool], ...]  # input name, cell, whether its memory is taken over
    outside: tuple[tuple[str, Tensor], ...]
    writes: tuple[tuple[str, Cell], ...]
    guards: tuple[tuple[Callable[[], Any], Any], ...]
    outputs: tuple[str, ...]
    structure: Structure
    leaves: tuple[Any, ...]  # results that are no tensors, None for those that are


class Jitted:
    """`f` compiled per signature: the structure of the arguments, shapes, dtypes and devices of tensors, the values
    of everything else."""

    def __init__(self, f: Callable[..., Any]) -> None:
        functools.update_wrapper(self, f)
        self.f = f
        self._compiled: dict[Hashable, list[Compilation]] = {}
        self.traces = 0

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        tensors = [x._value for x in leaves if isinstance(x, Tensor)]
        if _inline(tensors):
            return self.f(*args, **kwargs)
        evaluate(tensors)
        found = self._find(leaves, tensors, structure)
        if gradients.get() and any(t._value.tracked for _, t in found.outside):
            return self.f(*args, **kwargs)  # it reads a variable from outside, whose gradient may be asked
        return _call(found, tensors)

    def _find(self, leaves: Sequence[Any], tensors: Sequence[Value], structure: Structure) -> Compilation:
        key = _signature(leaves, structure)
        known = self._compiled.setdefault(key, [])
        for compilation in known:
            if _still_valid(compilation):
                return compilation
        known.append(self._compile(leaves, tensors, structure))
        del known[:-KEPT]
        return known[-1]

    @without_collector()
    def _compile(self, leaves: Sequence[Any], tensors: Sequence[Value], structure: Structure) -> Compilation:
        self.traces += 1
        trace = Trace()
        symbols = [trace.symbol(v) for v in tensors]
        rest = iter([Tensor(v) for v in symbols])
        args, kwargs = unflatten(structure, iter([next(rest) if isinstance(x, Tensor) else x for x in leaves]))
        try:
            with _tracing(trace):
                result = self.f(*args, **kwargs)
            return _finish(trace, symbols, result, getattr(self.f, "__name__", "function"))
        finally:
            trace.ended = True

    def lower(self, *args: Any, **kwargs: Any) -> CompiledGraph:
        """The compiled graph for these arguments: `.explain()`, `.memory_plan`, `.graph`."""
        leaves, structure = flatten((args, kwargs))
        tensors = [x._value for x in leaves if isinstance(x, Tensor)]
        evaluate(tensors)
        return self._find(leaves, tensors, structure).run

    def profile(self, *args: Any, repeats: int = 5, **kwargs: Any) -> Any:
        """Time each command of the compiled graph on these arguments; cells keep their values."""
        leaves, structure = flatten((args, kwargs))
        tensors = [x._value for x in leaves if isinstance(x, Tensor)]
        evaluate(tensors)
        found = self._find(leaves, tensors, structure)
        return found.run.profile_arrays(_given(found, tensors, take=False), repeats)


@contextmanager
def _tracing(trace: Trace) -> Iterator[None]:
    """Operations are recorded, cells and outside tensors noted."""
    tokens = current_trace.set(trace), lazy.set(True)
    try:
        yield
    finally:
        current_trace.reset(tokens[0])
        lazy.reset(tokens[1])


def jit(f: Callable[..., Any]) -> Jitted:
    """Compile a function of tensors: traced at the first call with each signature.

    Tensors and cells that it reads from outside are read again at each call; cells that it writes are updated in
    place.  Inside another trace, or where a gradient is recorded, the function runs as it is written.
    """
    return Jitted(f)


def _inline(tensors: Sequence[Value]) -> bool:
    if lazy.get() or current_trace.get() is not None or (sweeps.get() > 0 and gradients.get()):
        return True
    return any(v.trace is not None or (v.tracked and gradients.get()) for v in tensors)


def _signature(leaves: Sequence[Any], structure: Structure) -> Hashable:
    parts: list[Hashable] = [structure, config.deterministic]
    for x in leaves:
        if isinstance(x, Tensor):
            parts.append((x._value.stack, x._value.spec))
        else:
            try:
                hash(x)
            except TypeError:
                raise OperandError(f"argument of type {type(x).__name__} is neither a tensor nor hashable",
                                   hint="pass arrays as tensors: nnc.asarray(...)") from None
            # By its bits: 0.0 and -0.0 are equal, a NaN is not even equal to itself.
            parts.append((type(x), x.hex() if isinstance(x, float) else x))
    return tuple(parts)


def _still_valid(c: Compilation) -> bool:
    """Everything that the trace read from outside is as it was, or has only changed its elements."""
    run = c.run
    held = [(k, t._value) for k, t in c.outside] + [(k, cell._value) for k, cell, _ in c.cells]
    return (all(v.spec == run.graph.inputs[k].spec and v.stack is run.stack for k, v in held)
            and all(read() == value for read, value in c.guards))


def _finish(trace: Trace, symbols: Sequence[Value], result: Any, name: str) -> Compilation:
    """The graph of what was traced, compiled."""
    leaves, structure = flatten(result)
    outputs = {f"out{i}": x._value for i, x in enumerate(leaves) if isinstance(x, Tensor)}
    written = [c for c in trace.now if trace.now[c] is not trace.cells[c]]
    writes = {f"new{i}": trace.now[c] for i, c in enumerate(written)}
    stack = next((v.stack for v in [*outputs.values(), *writes.values(), *symbols]), None) or current_stack()
    G = stack.operator.open()
    inputs: dict[str, Node] = {}
    cuts: dict[int, Node] = {}
    named = [(f"arg{i}", v) for i, v in enumerate(symbols)]
    named += [(f"cell{i}", v) for i, v in enumerate(trace.cells.values())]
    for k, v in named:
        inputs[k] = cuts[id(v)] = G.placeholder(k, v.spec)
    captured: dict[str, Tensor] = {}

    def outside(H: Nodes, v: Value) -> Node:
        if v.array is None:
            raise SymbolValueError(f"{name} depends on a symbol {v.spec} that is none of its arguments",
                                   hint="pass it as an argument, or a tensor that has a value")
        tensor = trace.seen.get(id(v))
        if tensor is None:
            return constant(H, v)
        k = f"outside{len(captured)}"
        captured[k] = tensor
        inputs[k] = H.placeholder(k, v.spec)
        return inputs[k]

    nodes = to_nodes(G, [*outputs.values(), *writes.values()], cuts, outside)
    names = {cell: f"cell{i}" for i, cell in enumerate(trace.cells)}
    pairs = tuple((f"new{i}", names[cell]) for i, cell in enumerate(written))
    graph = SymbolicGraph(inputs, dict(zip([*outputs, *writes], nodes, strict=True)), pairs, name)
    run = compile_graph(graph, stack)
    return Compilation(run, tuple((k, cell, k in run.donated) for cell, k in names.items()), tuple(captured.items()),
                       tuple(zip(writes, written, strict=True)), tuple(trace.guards), tuple(outputs), structure,
                       tuple(None if isinstance(x, Tensor) else x for x in leaves))


def _given(c: Compilation, tensors: Sequence[Value], take: bool) -> dict[str, Any]:
    given = {f"arg{i}": v.array for i, v in enumerate(tensors)}
    for k, tensor in c.outside:
        if tensor._value.array is None:
            evaluate([tensor._value])
        given[k] = tensor._value.array
    for k, cell, taken in c.cells:
        given[k] = cell.take() if taken and take else cell.lend().array
    return given


def _call(c: Compilation, tensors: Sequence[Value]) -> Any:
    stack = c.run.stack
    try:
        arrays = c.run.run(_given(c, tensors, take=True))
    except LostStateError as error:
        for k, cell, _ in c.cells:
            if k in error.lost and not cell._shared:
                cell.lose(f"a call of {c.run.graph.name!r} failed")
        raise
    for k, cell in c.writes:
        cell.put(Value(arrays[k], stack))
    made = iter([Tensor(Value(arrays[k], stack)) for k in c.outputs])
    return unflatten(c.structure, iter([next(made) if x is None else x for x in c.leaves]))
