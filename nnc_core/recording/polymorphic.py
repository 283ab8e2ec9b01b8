"""Exports with named dimensions: what was recorded for one size is inferred again for any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nnc_core.base.errors import Error, ShapeError, UnconnectedError
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import CONSTANT, Nodes
from nnc_core.recording.sizes import baked, numbered
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from nnc_core.type import Attributes, Dim, DimLike, Dims, TensorSpec, is_static, names_of
from nnc_core.values.value import Value

NamedDims = Mapping[str, Sequence["str | DimLike | None"]]

HINT = 'name another dimension, or record on nnc.var_arr(name, (nnc.Dim("batch"), 3)), where sizes stay names'


def renamed(inputs: Mapping[str, Value], named_dims: NamedDims) -> dict[str, TensorSpec]:
    """The specs of inputs with their named dimensions."""
    unknown = [k for k in named_dims if k not in inputs]
    if unknown:
        raise UnconnectedError(f"named_dims speaks of {', '.join(map(repr, unknown))}, which is no input",
                               hint=f"inputs: {', '.join(inputs)}")
    for k, v in inputs.items():
        if named_dims and not is_static(v.shape):
            raise ShapeError(f"input {k!r} {v.spec} has named dimensions already", hint="leave named_dims out")
    specs = {k: TensorSpec(_dims(k, inputs[k].spec, entries), inputs[k].dtype) for k, entries in named_dims.items()}
    dims = [d for spec in specs.values() for d in spec.shape]
    hidden = names_of(tuple(dims)) - {str(d) for d in dims}
    if hidden:
        raise ShapeError(f"dimension {min(hidden)!r} of named_dims has no axis of its own that tells its size",
                         hint=f"name an axis {min(hidden)!r}")
    return specs


def _dims(name: str, spec: TensorSpec, entries: Iterable[str | DimLike | None]) -> Dims:
    listed = tuple(entries) if isinstance(entries, (tuple, list)) else ()
    if len(listed) != spec.ndim or not isinstance(entries, (tuple, list)):
        raise ShapeError(f"named_dims of {name!r} are {entries!r}, the input is {spec}",
                         hint="one entry for each axis: a name, or None for the recorded size")
    return tuple([_dim(name, spec, e, d) for e, d in zip(listed, spec.shape, strict=True)])


def _dim(name: str, spec: TensorSpec, entry: Any, recorded: DimLike) -> DimLike:
    if entry is None or entry == recorded:
        return recorded
    if isinstance(entry, (str, Dim)) and entry:
        return Dim(entry) if isinstance(entry, str) else entry
    raise ShapeError(f"named_dims of {name!r} have {entry!r} where the input {spec} has {recorded}",
                     hint="a name, a nnc.Dim, or None for the recorded size")


def resized(F: Nodes, v: Value, inputs: tuple[Node, ...], attributes: Attributes, sizes: Mapping[str, int]) -> Node:
    """The node of a step on inputs with named dimensions; ShapeError if it holds a size that was recorded."""
    held = baked(v.op, attributes, [x.spec for x in v.inputs], [x.spec for x in inputs])
    if held:
        raise ShapeError(f"{held} was recorded for {', '.join(str(x.spec) for x in v.inputs)} and may hold "
                         f"a size of the named dimensions {listed(sizes)}")
    if not inputs and v.op is not CONSTANT and any(d in sizes.values() for d in v.spec.shape):  # as in `zeros_like(x)`
        raise ShapeError(f"{v.spec} may have a size of the named dimensions {listed(sizes)}: record on a size that "
                         "occurs nowhere else to tell")
    node = F.apply(v.op, inputs, attributes)
    if numbered(node.spec, sizes) != v.spec:
        raise ShapeError(f"the result is {node.spec} for named dimensions and was {v.spec} when recorded")
    return node


def listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{k}={n}" for k, n in sizes.items())


def try_other_sizes(graph: SymbolicGraph, stack: Stack, sizes: Mapping[str, int]) -> None:
    """Infer all specs once more, with numbers: rules may let pass what they can only check for numbers."""
    for more in (0, 1):
        tried = {k: n + more for k, n in sizes.items()}
        try:
            stack.graph.specialise(graph, tried)
        except Error as error:
            raise ShapeError(f"the graph was recorded for {listed(sizes)} and cannot be used for {listed(tried)}: "
                             f"{error.message}", operator=error.operator, operands=error.operands, line=error.line,
                             hint=HINT) from error
