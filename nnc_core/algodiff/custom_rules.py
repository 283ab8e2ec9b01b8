"""The attribute of a step `custom`: the user's rule, and how to call it on values, or on the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from nnc_core.base.dtype import is_inexact
from nnc_core.base.errors import GradientError
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.recording.export import constant, to_nodes
from nnc_core.stacks import stack_for
from nnc_core.symbol import Node, postorder
from nnc_core.type import HoldsSpec, TupleSpec
from nnc_core.values.cell import Trace
from nnc_core.values.dispatch import F as VALUES
from nnc_core.values.modes import current_stack, gradients, no_grad, tracing, use_device
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, leaf_count, unflatten
from nnc_core.values.value import Step, Value

_IDENTITY = OPERATORS["identity"]
Leaves = tuple[Any, ...]


class _Same:
    """Something that cannot be compared, compared by identity."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.it is self.it

    def __hash__(self) -> int:
        return id(self.it)


def frozen(leaves: Sequence[Any]) -> Leaves:
    """The leaves that are no tensors, made hashable; None for tensors."""
    return tuple([None if isinstance(x, Tensor) else (type(x), x) if _is_plain(x) else _Same(x) for x in leaves])


def _is_plain(x: Any) -> bool:
    return isinstance(x, (int, str, bytes, type))


def _thawed(structure: Structure, leaves: Leaves, tensors: Iterator[Any]) -> Any:
    return unflatten(structure, iter([next(tensors) if x is None else x.it if isinstance(x, _Same) else x[1]
                                      for x in leaves]))


@dataclass(frozen=True)
class Rule(HoldsSpec):
    """The user's function, and what a call's arguments and results look like."""

    f: Callable[..., Any]
    structure: Structure
    leaves: Leaves
    spec: TupleSpec
    results: Structure

    def with_spec(self, spec: TupleSpec) -> Self:
        return replace(self, spec=spec)

    @property
    def arguments(self) -> int:
        """Number of operands that are arguments; the others are residuals."""
        return sum(x is None for x in self.leaves)

    def cotangents(self, F: Any, gs: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """For each operand, None for zeros."""
        like = operands[0]
        complete = [_zeros(F, like, s) if g is None else g for g, s in zip(gs, self.spec.parts, strict=True)]
        found = _called(F, self.reverse, [*complete, *operands])
        return [*found, *[None] * (len(operands) - self.arguments)]

    def tangents(self, F: Any, ts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """For each result."""
        args = operands[: self.arguments]
        complete = [F.zeros_like(x) if t is None else t for t, x in zip(ts[: self.arguments], args, strict=True)]
        return _called(F, self.forward, [*complete, *args])

    def reverse(self, given: Sequence[Value]) -> list[Value | None]:
        """From cotangents of the results, then operands."""
        raise NotImplementedError

    def forward(self, given: Sequence[Value]) -> list[Value | None]:
        """From tangents of the arguments, then the arguments."""
        raise NotImplementedError

    def _args(self, of: Sequence[Value]) -> Any:
        return _thawed(self.structure, self.leaves, iter([Tensor(v) for v in of]))

    def __repr__(self) -> str:
        return getattr(self.f, "__name__", "rule")


@dataclass(frozen=True, repr=False)
class Reverse(Rule):
    """The rule of a `custom_vjp`."""

    residual_structure: Structure
    residuals: Leaves

    def reverse(self, given: Sequence[Value]) -> list[Value | None]:
        n = len(self.spec.parts)
        args, kept = given[n : n + self.arguments], given[n + self.arguments :]
        residuals = _thawed(self.residual_structure, self.residuals, iter([Tensor(v) for v in kept]))
        found = self.f(residuals, unflatten(self.results, iter([Tensor(v) for v in given[:n]])))
        return self._for_each_argument(found, args)

    def _for_each_argument(self, found: Any, args: Sequence[Value]) -> list[Value | None]:
        """The cotangents of the tensors among the arguments, checked."""
        parts = self.structure.parts
        if not isinstance(found, tuple) or len(found) != len(parts):
            said = f"{len(found)} values" if isinstance(found, tuple) else type(found).__name__
            raise GradientError(f"{self!r} gives {said}, not a tuple of {len(parts)} cotangents",
                                hint="one for each argument of the function; None for zeros")
        places = iter(zip(self.leaves, _flattened(found, parts, repr(self)), strict=True))
        cotangents = [g for leaf, g in places if leaf is None]
        return [_checked(repr(self), g, x) for g, x in zip(cotangents, args, strict=True)]

    def forward(self, given: Sequence[Value]) -> list[Value | None]:
        raise GradientError(f"the function with the rule {self!r} has no forward derivative",
                            hint="nnc.custom_jvp gives both derivatives by one rule")


@dataclass(frozen=True, repr=False)
class Forward(Rule):
    """The rule of a `custom_jvp`."""

    def forward(self, given: Sequence[Value]) -> list[Value | None]:
        n = self.arguments
        outcome = self.f(self._args(given[n:]), self._args(given[:n]))
        if not isinstance(outcome, tuple) or len(outcome) != 2:
            raise GradientError(f"{self!r} gives {type(outcome).__name__}, not (result, tangent)")
        tangents, structure = flatten(outcome[1])
        if structure != self.results:
            raise GradientError(f"the tangent that {self!r} gives is not structured as the result is")
        checked = []
        for t, s in zip(tangents, self.spec.parts, strict=True):
            if not isinstance(t, Tensor) or t.spec != s:
                said = t.spec if isinstance(t, Tensor) else type(t).__name__
                raise GradientError(f"{self!r} gives the tangent {said} of a result {s}")
            checked.append(value_of(t))
        return list(checked)

    def reverse(self, given: Sequence[Value]) -> list[Value | None]:
        """The tangent is linear in the tangents, so its gradient by them, taken anywhere, is its transpose."""
        n = len(self.spec.parts)
        gs, args = given[:n], given[n:]
        with use_device(args[0].stack):
            zeros = [VALUES.zeros_like(x) for x in args]
            leaves = [Value(z.array, z.stack, z._spec, Step(_IDENTITY, (z,), (), None), True, z.trace) for z in zeros]
            recording = gradients.set(True)
            try:
                tangents = self.forward([*leaves, *args])
            finally:
                gradients.reset(recording)
            order = postorder([t for t in tangents if t is not None], {id(v) for v in (*leaves, *args)},
                              leaf=lambda v: not v.tracked)
            seeds: dict[int, Value] = {}
            for t, g in zip(tangents, gs, strict=True):
                if t is not None and is_inexact(t.dtype):
                    seeds[id(t)] = VALUES.add(seeds[id(t)], g) if id(t) in seeds else g
            return args[0].stack.graph.reverse(VALUES, order, seeds, leaves)


def _flattened(found: tuple[Any, ...], parts: Sequence[Structure], rule: str) -> list[Any]:
    """The leaves of each argument's cotangent; None stands for zeros everywhere."""
    out: list[Any] = []
    for i, (g, part) in enumerate(zip(found, parts, strict=True)):
        count = leaf_count(part)
        if g is None:
            out += [None] * count
            continue
        leaves = _leaves(g, part)
        if leaves is None:
            raise GradientError(f"the cotangent {i} that {rule} gives is not structured as argument {i} is")
        out += leaves
    return out


def _leaves(g: Any, part: Structure) -> list[Any] | None:
    leaves, structure = flatten(g)
    return leaves if structure == part else None


def _checked(rule: str, g: Any, x: Value) -> Value | None:
    if g is None or not is_inexact(x.dtype):
        return None
    if not isinstance(g, Tensor) or g.spec != x.spec:
        said = g.spec if isinstance(g, Tensor) else type(g).__name__
        raise GradientError(f"{rule} gives the cotangent {said} for an argument {x.spec}")
    return value_of(g)


def _zeros(F: Any, like: Any, spec: Any) -> Any:
    if isinstance(like, Value):
        with use_device(like.stack):
            return F.full(shape=spec.shape, value=0, dtype=spec.dtype)
    return F.full(shape=spec.shape, value=0, dtype=spec.dtype)


def _called(F: Any, rule: Callable[[Sequence[Value]], list[Value | None]], given: Sequence[Any]) -> list[Any]:
    """A rule is written for tensors: in a graph of nodes it is traced, and its steps become nodes."""
    if not isinstance(F, Nodes):
        with use_device(given[-1].stack):
            return rule(given)
    trace, stack = Trace(), current_stack()
    if stack.operator is not F.operator:
        stack = stack_for(F.symbol.shape.type.device)
    symbols = [Value(None, stack, x.spec, None, False, trace) for x in given]
    try:
        with tracing(trace), no_grad():
            found = rule(symbols)
    finally:
        trace.ended = True
    if trace.cells:
        raise GradientError("a rule for a derivative inside a graph reads a cell",
                            hint="pass what it holds as an argument")
    wanted = [v for v in found if v is not None]
    cuts: dict[int, Node] = {id(v): x for v, x in zip(symbols, given, strict=True)}
    nodes = iter(to_nodes(F, wanted, cuts, constant))
    return [None if v is None else next(nodes) for v in found]
