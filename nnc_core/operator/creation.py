"""Operators without inputs, the leaves of graphs, and transfers between devices."""

from __future__ import annotations

from typing import Any, Generic

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.loops import open_nest
from nnc_core.shape.movement import check_shape
from nnc_core.symbol import Number, number_of
from nnc_core.type import DimLike, Dims, Op, TensorSpec

PLACEHOLDER = Op("placeholder", (), ("name", "spec", "uid"), lambda name, spec, uid: spec,
                 storage=True, doc="An input of a graph, or of a body.")
CONSTANT = Op("constant", (), ("literal", "spec"), lambda literal, spec: spec, storage=True,
              doc="An array known beforehand.")


def _filled_nest(command: Command) -> LoopNest:
    (_, number) = command.attributes
    assert isinstance(number, Number)
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    nest.store(0, nest.constant(number.value.item(), number.dtype), *at)
    return nest.build()


def _arange_spec(start: Any, step: Any, size: DimLike, dtype: DType) -> TensorSpec:
    if isinstance(size, int) and size < 0:
        raise AttributeValueError(f"size {size} is negative")
    if dtype == dt.boolean:
        raise DTypeError("needs numbers, not booleans", hint="compare a range of integers")
    return TensorSpec((size,), dtype)


def _arange(start: Number, step: Number, size: int, dtype: DType) -> Any:
    """start + k * step, not repeated addition; halves in float32."""
    wide = dt.accumulator(dtype)
    k = np.arange(size, dtype=np.int64).astype(wide)
    return (start.value + k * step.value).astype(dtype) if size else k.astype(dtype)


def _arange_nest(command: Command) -> LoopNest:
    start, step, _, dtype = command.attributes
    assert isinstance(start, Number) and isinstance(step, Number) and isinstance(dtype, np.dtype)
    wide = dt.accumulator(dtype)
    nest = open_nest(command)
    (k,) = nest.outer(*command.output.shape)
    first, by = (nest.constant(x.value.item(), wide) for x in (start, step))
    nest.store(0, first + nest.position(k).cast(wide) * by, k)
    return nest.build()


class Creation(Base[V], Generic[V]):
    @op(infer=lambda shape, number: TensorSpec(check_shape(shape), number.dtype),
        reference=lambda shape, number: np.full(shape, number.value), nest=_filled_nest, exact=True, storage=True,
        differentiable=False)
    def filled(self, *, shape: Dims, number: Number) -> V:
        """One number everywhere."""
        ...

    @op(infer=_arange_spec, reference=_arange, nest=_arange_nest, exact=True, differentiable=False)
    def progression(self, *, start: Number, step: Number, size: DimLike, dtype: DType) -> V:
        """start + k * step, for k below size; start and step are of the accumulating dtype."""
        ...

    def full(self, *, shape: Dims, value: Any, dtype: DType) -> V:
        return self.filled(shape=shape, number=number_of(value, dtype))

    def arange(self, *, size: DimLike, dtype: DType, start: Any = 0, step: Any = 1) -> V:
        wide = dt.accumulator(dtype)
        return self.progression(start=number_of(start, wide), step=number_of(step, wide), size=size, dtype=dtype)

    def full_like(self, x: V, value: Any) -> V:
        return self.filled(shape=x.shape, number=number_of(value, x.dtype))

    def zeros_like(self, x: V) -> V:
        return self.full_like(x, 0)


class Transfer(Base[V], Generic[V]):
    @op(infer=lambda x, source, target: x, reference=lambda x, source, target: x, exact=True, storage=True,
        linear="jointly",
        view=lambda x, source, target: x,
        vjp=lambda F, g, y, x, source, target: (F.transfer(g, source=target, target=source),))
    def transfer(self, x: V, *, source: str, target: str) -> V:
        """The value on another device, named by id; in an exported graph a place, "" for the device compiled for."""
        ...
