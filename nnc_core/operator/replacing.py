"""An operator layer of a user's own: methods that bear the names of operators take their places.

A replacement is written over the namespace F, as derivatives are, so that one serves values and nodes alike.  It is
asked where an operator is applied: graphs on its stack hold what it gives instead.  Composites that come to a
replaced operator are made of their parts, so that no kernel of a device computes past the replacement.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias

from nnc_core.base.errors import ReplacementCycleError, ReplacementError
from nnc_core.operator.declare import OPERATORS
from nnc_core.symbol import Node, bodies_in, postorder
from nnc_core.type import Op, TensorSpec, is_static

Replacement: TypeAlias = Callable[..., Any]
"""(F, *inputs, attributes by name) -> the result."""
FIXED = frozenset({"copy", "filled", "transfer"})
"""Operators that nnc applies itself, below every namespace."""

_running: ContextVar[frozenset[tuple[int, Op]]] = ContextVar("nnc_replacing", default=frozenset())


def replacements(layer: Any, base: type) -> dict[Op, Replacement]:
    """The methods of a layer that are named like operators; public ones that its base class lacks must be so."""
    found: dict[Op, Replacement] = {}
    for name in dir(type(layer)):
        if name.startswith("_") or hasattr(base, name) or not inspect.isroutine(getattr(type(layer), name)):
            continue
        op = OPERATORS.get(name.rstrip("_"))
        where = f"{type(layer).__name__}.{name}"
        if op is None:
            near = difflib.get_close_matches(name, OPERATORS, 1)
            raise ReplacementError(f"{where} replaces no operator: none is called {name!r}", operator="make_stack",
                                   hint=f"perhaps {near[0]}" if near else "name a helper with a leading underscore")
        if op.name in FIXED:
            raise ReplacementError(f"{where}: {op.name} is applied below namespaces and cannot be replaced",
                                   operator="make_stack", hint=f"fixed are {', '.join(sorted(FIXED))}")
        found[op] = _checked(getattr(layer, name), op, where)
    return found


def _checked(rule: Replacement, op: Op, where: str) -> Replacement:
    inputs = [name for name in op.inputs if not name.startswith("*")]
    try:
        inspect.signature(rule).bind("F", *inputs, **dict.fromkeys(op.attributes))
    except TypeError as error:
        signature = ", ".join(["self", "F", *op.inputs, *["*"] * bool(op.attributes and not op.variadic),
                               *op.attributes])
        raise ReplacementError(f"{where} does not take what {op.name} is given: {error}", operator="make_stack",
                               hint=f"def {op.name}({signature})") from None
    return rule


def replaced(rule: Replacement, layer: Any, F: Any, op: Op, inputs: Sequence[Any], attributes: tuple[Any, ...],
             spec: TensorSpec) -> Any:
    """The result of a replacement, held to the spec that the operator has."""
    where = f"{type(layer).__name__}.{op.name}"
    key, running = (id(layer), op), _running.get()
    if key in running:
        raise ReplacementCycleError(f"{where} is made of {op.name} itself", operator=op.name,
                                    hint="compute it from operators that do not come back to it")
    token = _running.set(running | {key})
    try:
        found = rule(F, *inputs, **dict(zip(op.attributes, attributes, strict=True)))
    finally:
        _running.reset(token)
    if not F.is_value(found):
        raise ReplacementError(f"{where} gives {type(found).__name__}, not a value of the namespace", operator=op.name,
                               hint="build the result with the operators of F")
    if not _agree(found.spec, spec):
        raise ReplacementError(f"{where} gives {found.spec} where {op.name} gives {spec}", operator=op.name,
                               hint="a replacement keeps shape and dtype: F.cast, F.broadcast_to")
    return found


def _agree(found: TensorSpec, spec: TensorSpec) -> bool:
    if is_static(found.shape) and is_static(spec.shape):
        return found == spec
    return found.dtype == spec.dtype and found.ndim == spec.ndim


def comes_to(made: Node, replaced: Mapping[Op, Replacement], reaches: Callable[[Node], bool]) -> bool:
    """Tell whether a graph holds a replaced operator, also inside of bodies and of composites that it `reaches`."""
    pending = [made]
    while pending:
        for node in postorder([pending.pop()]):
            if node.op in replaced or reaches(node):
                return True
            pending += [y for body in bodies_in(node.attributes) for y in body.outputs]
    return False
