"""Functions that models bring along: operators of ours that ONNX says by many, as one node that readers of ours know.

Runtimes run the function's body.  It is the same for all nodes: shapes are asked for inside of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nnc_core.io.onnx.names import OWN_DOMAIN
from nnc_core.io.onnx.writing.emitter import NodeEmitter, Store
from nnc_core.io.onnx.writing.records import WrittenFunction, WrittenNode

Body = Callable[..., str]
"""(emitter, *names of inputs) -> the name of the result."""


class _Own(NamedTuple):
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    body: Body


_BODIES: dict[str, _Own] = {}


def own(name: str, inputs: tuple[str, ...], attributes: tuple[str, ...]) -> Callable[[Body], Body]:
    """Declare the body of a function; nodes of the operator `own_name(name)` call it."""

    def declare(body: Body) -> Body:
        _BODIES[own_name(name)] = _Own(inputs, attributes, body)
        return body

    return declare


def own_name(name: str) -> str:
    """The operator of nodes that call a function of ours."""
    return f"{OWN_DOMAIN}.{name}"


def functions_of(nodes: Iterable[WrittenNode]) -> list[WrittenFunction]:
    """The functions that nodes call, in their order."""
    return [_written(name) for name in dict.fromkeys(node.operator for node in nodes if node.operator in _BODIES)]


def _written(name: str) -> WrittenFunction:
    inputs, attributes, body = _BODIES[name]
    store = Store(inputs)
    b = NodeEmitter(store)
    result = body(b, *inputs)
    constants = [WrittenNode("Constant", [], [of], {"value": array}) for of, array in store.arrays.items()]
    return WrittenFunction(name, inputs, (result,), attributes, [*constants, *b.nodes])
