"""Values: what tensors point at.  A value never changes; tensors may be pointed at another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nnc_core.device import Array
from nnc_core.symbol import Line
from nnc_core.type import Attributes, Op, Specified, TensorSpec

if TYPE_CHECKING:
    from nnc_core.composition import Stack


class Step:
    """How a value came about: an entry of the dynamic graph, never interned, since identity matters there."""

    __slots__ = ("attributes", "inputs", "line", "op")

    def __init__(self, op: Op, inputs: tuple[Value, ...], attributes: Attributes, line: Line | None) -> None:
        self.op, self.inputs, self.attributes, self.line = op, inputs, attributes, line


class Value(Specified):
    """An array, or a step that would make it, or both (kept for a gradient or an export), or neither: a symbol.

    `tracked`: a gradient may be asked through it.  `trace`: the trace whose symbol it is or depends on.
    """

    __slots__ = ("__weakref__", "_spec", "array", "grad", "stack", "step", "trace", "tracked")

    def __init__(self, array: Array | None, stack: Stack, spec: TensorSpec | None = None, step: Step | None = None,
                 tracked: bool = False, trace: Any = None) -> None:
        self.array, self.stack, self._spec, self.step = array, stack, spec, step
        self.tracked, self.trace = tracked, trace
        self.grad: Value | None = None

    @property
    def spec(self) -> TensorSpec:
        spec = self._spec
        if spec is None:
            array: Any = self.array
            spec = self._spec = TensorSpec(tuple(array.shape), array.dtype)
        return spec

    # what sweeps and walks ask of a node
    @property
    def op(self) -> Op:
        assert self.step is not None
        return self.step.op

    @property
    def inputs(self) -> tuple[Value, ...]:
        return self.step.inputs if self.step is not None else ()

    @property
    def attributes(self) -> Attributes:
        return self.step.attributes if self.step is not None else ()

    @property
    def line(self) -> Line | None:
        return self.step.line if self.step is not None else None

    # copy, deepcopy and pickle: by way of the host, without the history
    def __reduce__(self) -> tuple[Any, ...]:
        from nnc_core.dynamic.dispatch import evaluate

        evaluate([self])
        host = self.stack.engine.executor.download(self.array)
        return _restored, (host, self.stack.device.spec.id, self.tracked and self.step is None)


def _restored(host: Any, device: str, variable: bool) -> Value:
    from nnc_core.composition import stack_for

    stack = stack_for(device)
    return Value(stack.engine.executor.upload(host), stack, None, None, variable)
