"""Sizes that depend on data, in what was recorded: resolved when the operator that counts has run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from nnc_core.base.errors import ExecutionError, NotSupportedError
from nnc_core.operator import Nodes
from nnc_core.optimiser import rebuild_body
from nnc_core.symbol import Body, Node, postorder
from nnc_core.type import (
    Attributes,
    Dim,
    Dims,
    HoldsSpec,
    Op,
    SymbolicSize,
    TensorSpec,
    TupleSpec,
    any_data_dependent,
    is_data_dependent,
    is_static,
    map_dims,
    resolved,
    symbolic_size,
)
from nnc_core.values.modes import current_trace, lazy
from nnc_core.values.value import Step, Value, is_snapshot

if TYPE_CHECKING:
    from nnc_core.stacks import Stack

_ANY = Dim("n")
_names: WeakValueDictionary[_Key, SymbolicSize] = WeakValueDictionary()
"""By what is counted, and how the counted value came about: see `_origin`."""
_DEPTH = 4
_GROUPS = frozenset(("unique_index", "unique_counts"))


class DataDependentError(NotSupportedError):
    """A graph with sizes that depend on data cannot be compiled."""


class _Key(tuple[Any, ...]):
    """Hashed here: a dimension takes whoever hashes it outside of this package for a user who wants its number."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple(self))


def size_for(x: Value, op: Op) -> Dim:
    """The size of what an operator counts in x: one name however often it is asked for, so that two readings by the
    same mask, or by one that was computed in the same way, are known to be equally long.  What runs now needs none."""
    if x.trace is None and not lazy.get():
        return _ANY
    trace = current_trace.get()
    if trace is not None:
        trace.size_counted()
    leaves: list[Value] = []
    key = _Key((_origin(x, _DEPTH, leaves), "groups" if op.name in _GROUPS else op.name))
    name = _names.get(key)
    if name is None:
        name = _names[key] = symbolic_size((op, x, leaves))
    return Dim(name)


def _origin(x: Value, depth: int, leaves: list[Value]) -> Any:
    """Equal for values that are equal because the same was computed from the same.  It holds ids of the leaves, which
    live as long as the name that is found by it."""
    step = x.step
    if depth == 0 or step is None or is_snapshot(x) or step.op.bodies or (step.op.host and not step.op.data_dependent):
        leaves.append(x)
        return id(x)
    return step.op, tuple([_origin(v, depth - 1, leaves) for v in x.inputs]), step.attributes


# ---- numbers for names
def mapped(value: Any, change: Callable[[Dim], Any], stack: Stack) -> Any:
    """An attribute with its dimensions changed, also in the bodies of control flow."""
    def make(F: Nodes, op: Op, inputs: tuple[Node, ...], attributes: Attributes) -> Node:
        return F.apply(op, inputs, mapped(attributes, change, stack))

    def within(other: Any) -> Any:
        return rebuild_body(other, stack.operator.open(), make) if isinstance(other, Body) else other

    return map_dims(value, change, within)


def with_resolved_sizes(attributes: Attributes, stack: Stack) -> Any:
    """Attributes with numbers for the sizes that have been resolved."""
    return mapped(attributes, resolved, stack)


def names_in(value: Any) -> Iterator[str]:
    """The names of the dimensions in an attribute or a spec."""
    if isinstance(value, Dim):
        yield from value.names
    elif isinstance(value, tuple):
        for v in value:
            yield from names_in(v)
    elif isinstance(value, TupleSpec):
        yield from names_in(value.parts)
    elif isinstance(value, TensorSpec):
        yield from names_in(value.shape)
    elif isinstance(value, HoldsSpec):
        yield from names_in(value.spec)
    elif isinstance(value, Body):
        for node in (*value.inputs, *value.nodes):
            yield from names_in((node.spec, node.attributes))


def unresolved_counts(attributes: Attributes) -> list[Value]:
    """Values that resolve the sizes in some attributes that are not resolved yet."""
    names = [n for n in names_in(attributes) if isinstance(n, SymbolicSize) and n.size is None and n.source is not None]
    return [_count(n) for n in names]


def has_resolved(attributes: Attributes) -> bool:
    """True if a size in some attributes has been resolved and not been put in yet."""
    if not any_data_dependent():
        return False
    return any(isinstance(n, SymbolicSize) and n.size is not None for n in names_in(attributes))


def _count(name: SymbolicSize) -> Value:
    op, x, _ = name.source
    size = Dim(name)
    spec = op.infer(x.spec, size)
    return Value(None, x.stack, spec, Step(op, (x,), (size,), x.line), trace=x.trace)


def has_data_dependent(shape: Dims) -> bool:
    """True if a size in it depends on data and has not been put in yet."""
    return not is_static(shape) and any(is_data_dependent(n) for d in shape if isinstance(d, Dim) for n in d.names)


def counted_in_symbol(shape: Dims) -> bool:
    """True if a size in it counts elements of a symbol, which are there only while the symbol is evaluated."""
    names = [n for d in shape if isinstance(d, Dim) for n in d.names if isinstance(n, SymbolicSize)]
    return any(n.size is None and n.source is not None and n.source[1].trace is not None for n in names)


def refresh(v: Value) -> bool:
    """Put resolved sizes into the spec of a value that is not computed yet; True if all are resolved then."""
    if v.array is None and v.trace is None and has_data_dependent(v.spec.shape):
        v._spec = TensorSpec(tuple(map(resolved, v.spec.shape)), v.dtype)
    return not has_data_dependent(v.spec.shape)


# ---- counting
def count_on_host(op: Op, arrays: Sequence[Any], attributes: Attributes) -> Any:
    """The result of an operator that counts, by its reference."""
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(op.reference(*arrays, *attributes))


def size_attribute(op: Op, attributes: Attributes) -> Any:
    """The attribute of an operator that counts for what it knows of its count."""
    return attributes[op.attributes.index("size")]


def resolve(op: Op, attributes: Attributes, count: int) -> None:
    """Give a size its number: the operator has counted."""
    size = size_attribute(op, attributes)
    for name in size.names if isinstance(size, Dim) else ():
        if isinstance(name, SymbolicSize):
            if name.size not in (None, count):
                raise ExecutionError(f"{count} elements were found where there had been {name.size}")
            name.resolve(count)


def waits_for_sizes(op: Op, spec: TensorSpec, values: Sequence[Value]) -> bool:
    """True if there are dimensions that are names: the sizes of a symbol, which an evaluation has numbers for."""
    if not op.data_dependent and _has_names(spec):
        return True
    late = [v for v in values if v.array is None]
    return bool(late) and any(_has_names(v.spec) for v in postorder(late, leaf=lambda v: v.array is not None)
                              if v.array is None)


def _has_names(spec: TensorSpec) -> bool:
    """Tell whether there are sizes that only a symbol has numbers for: named ones, or counted in what is made of it."""
    return (isinstance(spec, TensorSpec) and not is_static(spec.shape)
            and (not has_data_dependent(spec.shape) or counted_in_symbol(spec.shape)))
