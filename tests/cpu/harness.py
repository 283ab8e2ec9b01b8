"""Ways to run one operator: by the reference, by the eager kernel, and by a bound kernel in given memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.symbol import Number
from nnc_core.type import Op, TensorSpec
from nnc_cpu.device import CpuDevice

Array = np.ndarray[Any, Any]
GARBAGE = 0xC5


class References(Namespace[Any]):
    """The operators over NumPy arrays, each by its reference."""

    def _apply(self, op: Op, inputs: Any, attributes: Any) -> Any:
        if op.promote:
            inputs = self._operands(op, inputs)
        if op.reference is None:
            assert op.decompose is not None
            return op.decompose(self, *inputs, *attributes)
        return op.reference(*inputs, *attributes)

    def _number(self, value: Any, dtype: Any, like: Any) -> Any:
        return np.asarray(Number(value, dtype).value)

    def _is_value(self, x: Any) -> bool:
        return isinstance(x, (np.ndarray, np.generic))


def spec_of(name: str, arrays: Sequence[Array], attributes: Sequence[Any]) -> TensorSpec:
    return OPERATORS[name].infer(*[TensorSpec(x.shape, x.dtype) for x in arrays], *attributes)


def by_reference(name: str, arrays: Sequence[Array], attributes: Sequence[Any]) -> Array:
    op = OPERATORS[name]
    with np.errstate(all="ignore"):
        if op.reference is not None:
            return np.asarray(op.reference(*arrays, *attributes))
        assert op.decompose is not None
        return np.asarray(op.decompose(References(), *arrays, *attributes))


def by_kernel(device: CpuDevice, name: str, arrays: Sequence[Array], attributes: Sequence[Any],
              out: Callable[[Layout], Layout] = lambda packed: packed, onto: int | None = None) -> Array:
    """Bind to memory full of garbage, then upload the inputs with their strides, then launch.

    `out` chooses the output's layout; `onto` is an input whose memory the output takes over."""
    shapes = tuple(device.layout_of(x) for x in arrays)
    target = out(spec_of(name, arrays, attributes).layout())
    command = Command(name, tuple(attributes), shapes, (target,))
    (backend,) = device.backends(name)
    assert backend.refuse(command) is None
    buffers = [garbage(device, x.extent) for x in shapes]
    buffers.append(garbage(device, target.extent) if onto is None else buffers[onto])
    size = backend.workspace(command)
    launch = backend.prepare(command).bind([*buffers, *([garbage(device, size)] if size else [])])
    for array, layout, buffer in zip(arrays, shapes, buffers, strict=False):
        put(device.array(buffer, layout), array)
    launch()
    return np.array(device.array(buffers[-1], target))


def garbage(device: CpuDevice, nbytes: int) -> Any:
    buffer = device.allocate(nbytes)
    device.fill(buffer, bytes([GARBAGE]))
    return buffer


def put(target: Array, values: Array) -> None:
    """Where strides are 0, the same value is written again and again."""
    target[...] = values


def bits(x: Any) -> bytes:
    return np.ascontiguousarray(x).tobytes()
