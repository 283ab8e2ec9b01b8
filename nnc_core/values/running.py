"""One operator whose inputs are there, computed now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.engine.execute import Way
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack, moved
from nnc_core.type import Attributes, Op, TensorSpec
from nnc_core.values import debug, memo
from nnc_core.values.data_dependent import count_on_host
from nnc_core.values.modes import computing, use_device
from nnc_core.values.namespace import F
from nnc_core.values.value import Value

_TRANSFER = OPERATORS["transfer"]


def run_now(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    """The array of an operator whose inputs are there."""
    if not CLOSED_BY:
        return _run(op, values, attributes, spec, stack)
    watched = debug.watch(op, values, attributes, stack)
    array = memo.recalled(op, values, attributes, stack, lambda: _run(op, values, attributes, spec, stack))
    if watched is not None:
        debug.check(watched, stack, array)
    return array


def _run(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Any:
    executor = stack.engine.executor
    arrays = [v.array for v in values]
    if op.data_dependent:
        return executor.upload(count_on_host(op, [executor.download(a) for a in arrays], attributes))
    body = body_of(op, values, attributes, spec, stack)
    if body is not None:
        with computing():
            return body(arrays)
    if op is _TRANSFER:
        return moved(arrays[0], values[0].stack, stack)
    return executor.run(op, arrays, attributes, spec)


def body_of(op: Op, values: Sequence[Value], attributes: Attributes, spec: TensorSpec, stack: Stack) -> Way | None:
    """The way of a composite that the device does not take whole."""
    decompose = op.decompose
    if decompose is None or takes_whole(op, [v.array for v in values], attributes, spec, stack):
        return None

    def run(arrays: Sequence[Any]) -> Any:
        with use_device(stack):
            return decompose(F, *[Value(array, stack) for array in arrays], *attributes).array

    return run


def takes_whole(op: Op, arrays: Sequence[Any], attributes: Attributes, spec: TensorSpec, stack: Stack) -> bool:
    """Tell whether the device has a kernel for a composite of these arrays."""
    return stack.engine.executor.claims(op, arrays, attributes, spec)
