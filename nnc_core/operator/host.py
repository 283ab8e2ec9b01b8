"""Functions of the host as nodes: Python called with NumPy arrays in the middle of a graph.

A program that has one cannot be captured as a whole: the device is waited for, its results are fetched, the function is
called, what it returns is uploaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol

from nnc_core.base.command import Command
from nnc_core.base.errors import GradientError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import Base, V
from nnc_core.operator.loops import open_nest
from nnc_core.type import Op, TensorSpec, TupleSpec

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


class HostFunction(Protocol):
    """A function that a node calls.  One for each node, compared by identity: two calls are never taken for one."""

    def __call__(self, arrays: Sequence[Any], outputs: Sequence[Layout]) -> tuple[Any, ...]:
        """Arrays of the layouts' shapes and dtypes."""

    def pull(self, F: Any, g: Any, spec: TensorSpec, inputs: Sequence[Any]) -> Sequence[Any]:
        """The cotangents of the inputs; GradientError if it has none."""


def _callback_spec(*arguments: Any) -> TensorSpec:
    *_, _, spec = arguments
    return spec  # type: ignore[no-any-return]


def _call(*arguments: Any) -> Any:
    *arrays, function, spec = arguments
    parts = spec.parts if isinstance(spec, TupleSpec) else (spec,)
    results = function(arrays, [part.layout() for part in parts])
    return results if isinstance(spec, TupleSpec) else results[0]


def _pull(F: Namespace[V], g: V, y: V, *arguments: Any) -> Sequence[Any]:
    *inputs, function, _ = arguments
    return function.pull(F, g, y.spec, inputs)  # type: ignore[no-any-return]


def _push(F: Namespace[V], tangents: Any, y: V, *arguments: Any) -> V:
    raise GradientError(f"{arguments[-2]} has no derivative in forward mode", operator="callback",
                        hint="differentiate in reverse mode, or stop_gradient its operands")


def _first_nest(command: Command) -> LoopNest:
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    nest.store(0, nest.load(0, *at), *at)
    return nest.build()


CALLBACK = Op("callback", ("*operands",), ("function", "spec"), _callback_spec, _call,
              "What a function of the host returns.", vjp=_pull, jvp=_push, host=True, storage=True)
AFTER = Op("after", ("x", "*tokens"), (), lambda x, *tokens: x, lambda x, *tokens: x,
           "x, computed after the other operands: how what has effects is kept.", nest=_first_nest,
           view=lambda layout: layout, exact=True, control_dependency=True, storage=True,
           vjp=lambda F, g, y, x, *tokens: (g, *[None] * len(tokens)), jvp=lambda F, t, y, *inputs: t[0])


class Hosted(Base[V], Generic[V]):
    """Their operators are not among OPERATORS: a callback holds a function, and no kernel can be held to it."""

    def callback(self, operands: Sequence[V], *, function: HostFunction, spec: TensorSpec) -> V:
        """The result of a function of the host: an array, or with a TupleSpec several."""
        return self.apply(CALLBACK, tuple(operands), (function, spec))

    def after(self, x: V, tokens: Sequence[V]) -> V:
        """x, computed after the tokens: control dependencies, whose values nobody reads."""
        return self.apply(AFTER, (x, *tokens), ())
