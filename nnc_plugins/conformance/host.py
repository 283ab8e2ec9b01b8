"""All operators on NumPy arrays, by their references and decompositions: what results are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.operator import Namespace
from nnc_core.type import Attributes, Op, Specified, TensorSpec
from nnc_plugins.conformance.case import Array


class HostValue(Specified):
    """A NumPy array that tells its spec."""

    def __init__(self, array: Any) -> None:
        self.array: Array = np.asarray(array)
        self.spec = TensorSpec(self.array.shape, self.array.dtype)



class Host(Namespace[HostValue]):
    """The reference of everything."""

    def _apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> HostValue:
        values = self._operands(op, inputs)
        if op.decompose is not None:
            return op.decompose(self, *values, *attributes)  # type: ignore[no-any-return]
        assert op.reference is not None, op.name
        with np.errstate(all="ignore"):
            return HostValue(op.reference(*(x.array for x in values), *attributes))

    def _number(self, value: Any, dtype: DType, like: HostValue | None) -> HostValue:
        return HostValue(np.asarray(value).astype(dtype))

    def _is_value(self, x: Any) -> bool:
        return isinstance(x, HostValue)


HOST = Host()


def expected(op: Op, inputs: tuple[Array, ...], attributes: Attributes) -> Array:
    """What the operator gives for these arrays."""
    return HOST._apply(op, tuple(HostValue(x) for x in inputs), attributes).array
