"""The position of a descent, and tensors by name as one vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from math import prod
from operator import add
from typing import TypeAlias

from nnc_core.base.errors import DTypeError, NotSupportedError
from nnc_core.functions.creation import zeros
from nnc_core.functions.joining import concat
from nnc_core.functions.reduction import sum as sum_
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor

Tensors: TypeAlias = Mapping[str, Tensor]
Loss: TypeAlias = Callable[[dict[str, Tensor]], Tensor]
State: TypeAlias = dict[str, dict[str, Tensor]]
"""Tensors by slot and name; what one parameter has in a slot has its name."""


class Position:
    """Weights, gradients and state before an update; parts of a minimiser put the next state into `state`."""

    def __init__(self, weights: Tensors, gradients: Tensors, loss: Loss | None, state: State, step: Tensor) -> None:
        self.weights, self.gradients, self._loss, self.state = weights, gradients, loss, state
        self.step = step
        """The number of updates made before, in the dtype of schedules."""

    @property
    def loss(self) -> Loss:
        """The function of the weights; NotSupportedError for an update that was given gradients alone."""
        if self._loss is None:
            raise NotSupportedError("Newton's methods and line searches evaluate the function, and there are gradients "
                                    "alone", hint="minimiser.descend(loss), or update(gradients, loss)")
        return self._loss

    def moved(self, direction: Tensors, length: Tensor) -> dict[str, Tensor]:
        """The weights so far along a direction."""
        return {name: w + direction[name] * length.astype(w.dtype) for name, w in self.weights.items()}


def zeros_like_all(parameters: Mapping[str, Cell]) -> dict[str, Tensor]:
    """Zeros like each parameter, on its device."""
    return {name: zeros(p.spec.shape, dtype=p.spec.dtype, device=p.device) for name, p in parameters.items()}


def inner(a: Tensors, b: Tensors) -> Tensor:
    """The inner product over the elements of all tensors; of half precision in float32, where it does not overflow."""
    products = [sum_(_wide(a[name]) * _wide(b[name])) for name in a]
    return reduce(add, [p.astype(_widest(products)) for p in products])


def _wide(x: Tensor) -> Tensor:
    return x.astype("float32") if x.dtype.itemsize < 4 else x


def _widest(tensors: list[Tensor]) -> str:
    return "float64" if any(t.dtype.itemsize == 8 for t in tensors) else "float32"


class Flat:
    """Between tensors by name, of one dtype, and one vector."""

    def __init__(self, tensors: Mapping[str, Tensor] | Mapping[str, Cell]) -> None:
        specs = {name: x.spec for name, x in tensors.items()}
        self.shapes = {name: tuple(map(int, spec.shape)) for name, spec in specs.items()}
        dtypes = sorted({str(spec.dtype) for spec in specs.values()})
        if len(dtypes) > 1:
            raise DTypeError(f"parameters of {' and '.join(dtypes)} are no vector",
                             hint="use one dtype for all, or a method that takes each parameter alone")
        self.dtype = dtypes[0]
        self.size = sum(prod(shape) for shape in self.shapes.values())

    def vector(self, tensors: Tensors) -> Tensor:
        return concat([tensors[name].reshape((prod(shape),)) for name, shape in self.shapes.items()])

    def tensors(self, vector: Tensor) -> dict[str, Tensor]:
        found, start = {}, 0
        for name, shape in self.shapes.items():
            found[name] = vector[start : start + prod(shape)].reshape(shape)
            start += prod(shape)
        return found
