"""All operators on NumPy arrays, by their references and decompositions: what results are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.operator import OPERATORS, Namespace
from nnc_core.type import Attributes, Op, TensorSpec


class HostValue:
    """A NumPy array that tells its spec."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.spec = TensorSpec(self.array.shape, self.array.dtype)

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    ndim = property(lambda self: self.array.ndim)


class Host(Namespace[HostValue]):
    """Checks on its way that each operator's rule predicts what its reference gives."""

    def _apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> HostValue:
        xs = self._operands(op, inputs)
        if op.decompose is not None:
            return op.decompose(self, *xs, *attributes)
        with np.errstate(all="ignore"):
            value = HostValue(op.reference(*(x.array for x in xs), *attributes))
        assert value.spec == op.infer(*(x.spec for x in xs), *attributes), op.name
        return value

    def _number(self, value: Any, dtype: Any, like: Any) -> HostValue:
        return HostValue(np.asarray(value).astype(dtype))

    def _is_value(self, x: Any) -> bool:
        return isinstance(x, HostValue)


HOST = Host()


def call(op: Op, *arguments: Any) -> np.ndarray[Any, Any]:
    """The result of an operator on arrays, then attributes in order: by its reference, or its decomposition."""
    split = len(arguments) - len(op.attributes)
    inputs = tuple(HostValue(x) if isinstance(x, np.ndarray) else x for x in arguments[:split])
    return HOST._apply(op, inputs, tuple(arguments[split:])).array


def host(name: str, *inputs: Any, **attributes: Any) -> np.ndarray[Any, Any]:
    """The same by name, with attributes by keyword."""
    op = OPERATORS[name]
    return call(op, *inputs, *(attributes[a] for a in op.attributes))
