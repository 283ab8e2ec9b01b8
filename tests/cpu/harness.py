"""Ways to run one operator: by the reference, by the eager kernel, and by a bound kernel in given memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS, Namespace
from nnc_core.symbol import Number
from nnc_core.type import Op, TensorSpec, TupleSpec
from nnc_cpu.device import CpuDevice

Array = np.ndarray[Any, Any]
GARBAGE = 0xC5


class References(Namespace[Any]):
    """The operators over NumPy arrays, each by its reference."""

    def apply(self, op: Op, inputs: Any, attributes: Any) -> Any:
        if op.promote:
            inputs = self.operands(op, inputs)
        if op.reference is None:
            assert op.decompose is not None
            return op.decompose(self, *inputs, *attributes)
        return op.reference(*inputs, *attributes)

    def number(self, value: Any, dtype: Any, like: Any) -> Any:
        return np.asarray(Number(value, dtype).value)

    def is_value(self, x: Any) -> bool:
        return isinstance(x, (np.ndarray, np.generic))


def spec_of(name: str, arrays: Sequence[Array], attributes: Sequence[Any]) -> TensorSpec:
    return OPERATORS[name].infer(*[TensorSpec(x.shape, x.dtype) for x in arrays], *attributes)


def parts_of(spec: TensorSpec) -> tuple[TensorSpec, ...]:
    """The specs of all results."""
    return spec.parts if isinstance(spec, TupleSpec) else (spec,)


def by_reference(name: str, arrays: Sequence[Array], attributes: Sequence[Any]) -> Any:
    """An array, or a tuple of results."""
    op = OPERATORS[name]
    with np.errstate(all="ignore"):
        if op.reference is not None:
            found = op.reference(*arrays, *attributes)
            return tuple(map(np.asarray, found)) if isinstance(found, tuple) else np.asarray(found)
        assert op.decompose is not None
        return np.asarray(op.decompose(References(), *arrays, *attributes))


def by_kernel(device: CpuDevice, name: str, arrays: Sequence[Array], attributes: Sequence[Any],
              out: Callable[[Layout], Layout] = lambda packed: packed, onto: int | None = None) -> Any:
    """Bind to memory full of garbage, then upload the inputs with their strides, then launch.

    `out` chooses the outputs' layouts; `onto` is an input whose memory the output takes over.  Several results are a
    tuple."""
    shapes, spec = tuple(device.layout_of(x) for x in arrays), spec_of(name, arrays, attributes)
    targets = tuple(out(part.layout()) for part in parts_of(spec))
    command = Command(name, tuple(attributes), shapes, targets)
    *_, backend = device.backends(name)
    if backend.refuse(command) is not None:  # since a loop nest is quicker, which not everybody has
        *_, backend = CpuDevice(machine_code=False).backends(name)
    assert backend.refuse(command) is None
    buffers = [garbage(device, x.extent) for x in shapes]
    buffers += [garbage(device, target.extent) if onto is None else buffers[onto] for target in targets]
    size = backend.workspace(command)
    launch = backend.prepare(command).bind([*buffers, *([garbage(device, size)] if size else [])])
    for array, layout, buffer in zip(arrays, shapes, buffers, strict=False):
        put(device.array(buffer, layout), array)
    launch()
    results = [np.array(device.array(b, target)) for b, target in zip(buffers[len(shapes) :], targets, strict=True)]
    return tuple(results) if isinstance(spec, TupleSpec) else results[0]


def garbage(device: CpuDevice, nbytes: int) -> Any:
    buffer = device.allocate(nbytes)
    device.fill(buffer, bytes([GARBAGE]))
    return buffer


def put(target: Array, values: Array) -> None:
    """Where strides are 0, the same value is written again and again."""
    target[...] = values


def bits(x: Any) -> bytes:
    if isinstance(x, tuple):
        return b"".join(map(bits, x))
    return np.ascontiguousarray(x).tobytes()
