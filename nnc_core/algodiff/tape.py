"""The tape: what a backward pass goes back over, and what it is apart from its arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from nnc_core.base.config import config
from nnc_core.stacks import Stack
from nnc_core.symbol import bodies_of, postorder
from nnc_core.type import TensorSpec, TupleSpec, is_static
from nnc_core.values.joint_steps import JointStep
from nnc_core.values.value import Value


class TapeStructure:
    """A key, hashed once: it is long and asked for several times."""

    __slots__ = ("_hash", "parts")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self.parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TapeStructure) and self._hash == other._hash and self.parts == other.parts


def history(roots: Sequence[Value], given: frozenset[int] = frozenset()) -> list[Value]:
    """The values with a gradient that these were computed from, inputs first, and the constants beside them.  It ends
    at those `given`, by their identities; of what one program has computed it has the operands, and the results that
    somebody holds."""
    order: list[Value] = []
    seen: set[Value] = set()
    pending: list[Value | None] = [*roots]
    pending.reverse()
    path: list[Value] = []
    while pending:
        v = pending.pop()
        if v is None:
            order.append(path.pop())
            continue
        if v in seen:
            continue
        seen.add(v)
        step = v.step
        if step is None or not v.tracked or id(v) in given:
            order.append(v)
            continue
        inputs = v.inputs if step.__class__ is not JointStep else _of_call(step, pending)
        pending.append(None)
        path.append(v)
        pending += [x for x in inputs[::-1] if x not in seen]
    return order


def _of_call(step: Any, pending: list[Value | None]) -> tuple[Value, ...]:
    """The operands of a call, whose other results are asked for as well: they may lie inside."""
    results = step.call.results
    if len(results) > 1:
        others = [held() for held in results]
        pending += [x for x in others if x is not None and x.tracked and x.step is not step]
    operands: tuple[Value, ...] = step.call.inputs
    return operands


def every_step(roots: Sequence[Value], given: frozenset[int] = frozenset()) -> list[Value]:
    """The same with each operator of what one program has computed."""
    return postorder(roots, given, leaf=_is_constant)


def _is_constant(v: Value) -> bool:
    return not v.tracked


def variables(order: Sequence[Value]) -> list[Value]:
    """The leaves that `backward` gives gradients to."""
    return [v for v in order if v.tracked and v.step is None]


class Tape(NamedTuple):
    """A history, where a sweep over it begins and what it is to find."""

    order: list[Value]
    roots: Sequence[Value]
    seeds: Sequence[Value | None]
    """Cotangents of the roots; None for ones."""
    wrt: Sequence[Value]
    given: frozenset[int] = frozenset()
    """Identities of values that the history begins with, although each has a step of its own."""

    def begins_with(self, v: Value) -> bool:
        """True of what no step on the tape gives."""
        return v.step is None or not v.tracked or id(v) in self.given

    @property
    def stack(self) -> Stack:
        return self.roots[0].stack


def structure(tape: Tape) -> TapeStructure | None:
    """A key that tapes share if they are swept in the same way: operators, attributes, wiring, the specs of the leaves.

    None for tapes that must be swept step by step: they hold steps whose derivative is Python code or that have such
    in their bodies, shapes that are not known, or values of several devices.
    """
    number: dict[int, int] = {}
    first: dict[int, int] = {}
    parts: list[Any] = []
    stack = tape.stack
    for v in tape.order:
        number[id(v)] = len(number)
        step = v.step
        if v.stack is not stack or (v.array is None and not _is_sized(v.spec)):
            return None
        if step is None or tape.begins_with(v):
            parts.append(v.spec)
        elif step.__class__ is JointStep:
            call, node = step.call, step.node
            begun = first.setdefault(id(call), number[id(v)])
            parts.append((call.program, node, begun, tuple([number[id(x)] for x in call.inputs])))
        elif _is_python(step):
            return None
        else:
            parts.append((step.op, tuple([number[id(x)] for x in step.inputs]), step.attributes))
    ends = tuple([(number[id(y)], g is None) for y, g in zip(tape.roots, tape.seeds, strict=True)])
    found = tuple([number.get(id(x), -1) for x in tape.wrt])
    settings = stack.engine.decider.version, config.deterministic, config.fusion
    try:
        return TapeStructure((stack, *settings, ends, found, tuple(parts)))
    except TypeError:  # an attribute that has no hash
        return None


def _is_sized(spec: TensorSpec) -> bool:
    return all(map(_is_sized, spec.parts)) if isinstance(spec, TupleSpec) else is_static(spec.shape)


def _is_python(node: Any) -> bool:
    """True if a step, or a node, calls Python code: a host function, or a rule of the user's, maybe in its bodies."""
    if not node.op.bodies:
        return bool(node.op.host) or node.op.name == "custom"
    pending = [body for _, body in bodies_of(node)]
    while pending:
        for inner in pending.pop().nodes:
            if inner.op.host or inner.op.name == "custom":
                return True
            pending += [body for _, body in bodies_of(inner)]
    return False
