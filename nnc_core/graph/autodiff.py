"""Differentiation, once, for every kind of value: the nodes of a graph and the steps of a tape alike.

Both sweeps call the operators' rules with a namespace over the same kind of value, so what they make can be
differentiated again, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from nnc_core.base.dtype import is_complex, is_inexact
from nnc_core.base.errors import GradientError
from nnc_core.operator import Namespace
from nnc_core.operator.control import PICK, add_rows, is_tape
from nnc_core.symbol import show_line
from nnc_core.type import Op, TensorSpec, TupleSpec


class BodyRules(NamedTuple):
    """Derivatives of an operator that holds bodies; both rules need the sweeps of this file for the bodies."""

    reverse: Callable[..., Sequence[Any]]
    """(F, cotangents of the results, y, ids of live values) -> the cotangents of the inputs."""
    forward: Callable[..., Sequence[Any]]
    """(F, tangents of the inputs, y) -> the tangents of the results."""


BODY_RULES: dict[Op, BodyRules] = {}
"""Rules by operator, filled by nnc_core.graph: those for control flow call the sweeps of this file."""


def reverse(
    F: Namespace[Any], order: Sequence[Any], seeds: Mapping[int, Any], wrt: Sequence[Any],
    hooks: Mapping[int, Callable[[Any], Any]] | None = None,
) -> list[Any]:
    """The cotangents of `wrt`, None where nothing depends on it.

    `order` has inputs before users; `seeds` gives the cotangents of some values by id.  A value of `wrt` is a
    leaf of the sweep unless another one lies behind it.  `hooks`, by id of a value, change its cotangent when it is
    complete.
    """
    live, through = _flow(order, wrt)
    cotangents: dict[int, Any] = dict(seeds)
    for value in reversed(order):
        g = cotangents.get(id(value))
        if hooks and g is not None and id(value) in hooks:
            g = cotangents[id(value)] = hooks[id(value)](g)
        if g is None or id(value) not in through:
            continue
        F.at_line_of(value)
        if value.op is PICK:
            (whole,), (index,) = value.inputs, value.attributes
            parts = cotangents.setdefault(id(whole), [None] * len(whole.spec.parts))
            parts[index] = g if parts[index] is None else _sum_of_two(F, parts[index], g)
            continue
        for x, gx in zip(value.inputs, _cotangents(F, g, value, live), strict=True):
            if gx is not None and id(x) in live:
                gx = gx() if callable(gx) else gx
                known = cotangents.get(id(x))
                cotangents[id(x)] = gx if known is None else _sum_of_two(F, known, gx)
    return [cotangents.get(id(w)) for w in wrt]


def _sum_of_two(F: Namespace[Any], a: Any, b: Any) -> Any:
    """The sum of two cotangents; rows that were stacked while a condition held have a length that no kernel knows, and
    are added one by one."""
    return add_rows(F, a, b) if is_tape(a.spec) else F.add(a, b)


def depending(order: Sequence[Any], sources: Sequence[Any]) -> set[int]:
    """Ids of the values that depend differentiably on the sources."""
    return _flow(order, sources)[0]


def _flow(order: Sequence[Any], sources: Sequence[Any]) -> tuple[set[int], set[int]]:
    """Ids of the values that depend differentiably on the sources, and of those among them that do by their inputs."""
    live, through = {id(s) for s in sources}, set[int]()
    for value in order:
        if _passes_on(value) and not live.isdisjoint(map(id, value.inputs)):
            through.add(id(value))
            live.add(id(value))
    return live, through


def _passes_on(value: Any) -> bool:
    """True if a derivative goes through its operator to its inputs."""
    return value.tracked and bool(value.inputs) and value.op.differentiable and _has_float(value.spec)


def _has_float(spec: TensorSpec) -> bool:
    return any(map(_has_float, spec.parts)) if isinstance(spec, TupleSpec) else is_inexact(spec.dtype)


def _cotangents(F: Namespace[Any], g: Any, y: Any, live: set[int]) -> Sequence[Any]:
    op = y.op
    if op in BODY_RULES:
        return BODY_RULES[op].reverse(F, g, y, live)
    if op.partials:
        return [_scaled(F, g, op.partials[i if len(op.partials) > 1 else 0], y, x) if id(x) in live else None
                for i, x in enumerate(y.inputs)]
    if isinstance(op.vjp, tuple):
        return [rule(F, g, y, *y.inputs, *y.attributes) if rule is not None and id(x) in live else None
                for rule, x in zip(op.vjp, y.inputs, strict=True)]
    if op.vjp is not None:
        return op.vjp(F, g, y, *y.inputs, *y.attributes)  # type: ignore[no-any-return]
    raise _no_rule(y, "reverse")


def _scaled(F: Namespace[Any], g: Any, partial: Any, y: Any, x: Any) -> Any:
    """g times a partial derivative, with the broadcast to y undone."""
    product = _times(F, g, partial, y, F.conjugate)
    return None if product is None else F.sum_to(product, x.shape)


def _times(F: Namespace[Any], direction: Any, partial: Any, y: Any, turned: Callable[[Any], Any] | None = None) -> Any:
    """Along a derivative or, going back, along its conjugate (`operator/complex.py`)."""
    if partial is None or isinstance(partial, int):
        return None if partial is None else direction if partial == 1 else F.negative(direction)
    derivative = partial(F, y, *y.inputs, *y.attributes)
    if turned is not None and is_complex(y.dtype) and not isinstance(derivative, (int, float)):
        derivative = turned(derivative)
    return F.multiply(direction, derivative)


def _no_rule(y: Any, mode: str) -> GradientError:
    return GradientError(f"no rule to differentiate it in {mode} mode", operator=y.op.name,
                         line=show_line(y.line), hint="nnc.stop_gradient makes it a constant")


def forward(
    F: Namespace[Any], order: Sequence[Any], tangents: Mapping[int, Any], outputs: Sequence[Any]
) -> list[Any]:
    """The tangents of `outputs`, None where they depend on nothing that has a tangent."""
    known: dict[int, Any] = dict(tangents)
    for value in order:
        if id(value) in known or not _passes_on(value):
            continue
        given: list[Any] = [known.get(id(x)) for x in value.inputs]
        if any(t is not None for t in given):
            F.at_line_of(value)
            known[id(value)] = given[0][value.attributes[0]] if value.op is PICK else _tangent(F, given, value)
    return [known.get(id(y)) for y in outputs]


def _tangent(F: Namespace[Any], given: Sequence[Any], y: Any) -> Any:
    op = y.op
    if op in BODY_RULES:
        return BODY_RULES[op].forward(F, given, y)
    if op.partials:
        terms = [_times(F, t, p, y) for t, p in zip(given, op.partials, strict=True) if t is not None]
        return _sum(F, [t for t in terms if t is not None], y)
    if isinstance(y.spec, TupleSpec) and op.jvp is not None:
        return op.jvp(F, given, y, *y.inputs, *y.attributes)
    if op.jvp is not None:
        return _sum(F, [op.jvp(F, given, y, *y.inputs, *y.attributes)], y)
    if op.linear == "jointly":
        full = [F.zeros_like(x) if t is None else t for t, x in zip(given, y.inputs, strict=True)]
        return F.apply(op, tuple(full), y.attributes)
    if op.linear == "each":
        return _sum(F, [F.apply(op, (*y.inputs[:i], t, *y.inputs[i + 1 :]), y.attributes)
                        for i, t in enumerate(given) if t is not None], y)
    raise _no_rule(y, "forward")


def _sum(F: Namespace[Any], terms: Sequence[Any], y: Any) -> Any:
    """Terms may be narrower than y: an operand's tangent has the operand's shape."""
    total = None
    for term in terms:
        total = term if total is None else F.add(total, term)
    if total is None or total.shape == y.shape:
        return total
    return F.broadcast_to(total, shape=y.shape)
