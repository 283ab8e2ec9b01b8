"""All operators on NumPy arrays, by their references and decompositions: what results are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.operator import Namespace
from nnc_core.operator.control import LOOP, PICK
from nnc_core.stacks import stack_for
from nnc_core.type import Attributes, Op, Specified, TensorSpec, TupleSpec
from nnc_plugins.conformance.case import Array
from nnc_plugins.conformance.host_loops import looped


class HostValue(Specified):
    """A NumPy array, or a tuple of them, that tells its spec."""

    def __init__(self, array: Any) -> None:
        self.array: Any = tuple(map(np.asarray, array)) if isinstance(array, tuple) else np.asarray(array)
        self.spec = _spec_of(self.array)


def _spec_of(array: Any) -> TensorSpec:
    return TupleSpec(tuple(map(_spec_of, array))) if isinstance(array, tuple) else TensorSpec(array.shape, array.dtype)


class Host(Namespace[HostValue]):
    """The reference of everything."""

    def apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> HostValue:
        values = self.operands(op, inputs)
        if op is PICK:
            return HostValue(values[0].array[attributes[0]])
        if op is LOOP:
            return HostValue(looped(self, values, attributes))
        if op.decompose is not None:
            return op.decompose(self, *values, *attributes)  # type: ignore[no-any-return]
        assert op.reference is not None, op.name
        with np.errstate(all="ignore"):
            return HostValue(op.reference(*(x.array for x in values), *attributes))

    def number(self, value: Any, dtype: DType, like: HostValue | None) -> HostValue:
        return HostValue(np.asarray(value).astype(dtype))

    def is_value(self, x: Any) -> bool:
        return isinstance(x, HostValue)

    def for_bodies(self, like: HostValue) -> Any:
        return stack_for("strict:0").operator.open()


HOST = Host()


def expected(op: Op, inputs: tuple[Array, ...], attributes: Attributes) -> Any:
    """The result of the operator for these arrays: an array, or a tuple of several."""
    return HOST.apply(op, tuple(HostValue(x) for x in inputs), attributes).array
