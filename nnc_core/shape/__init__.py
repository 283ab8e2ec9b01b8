"""Floor 3: shape inference; reusable rules, and the layer that applies them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from nnc_core.base.dtype import is_storage
from nnc_core.base.errors import Error, ShapeError
from nnc_core.type import Attributes, Dim, Op, TensorSpec, TupleSpec, Type, not_computed

__all__ = ["Shape", "Specs", "show_operands"]

Specs: TypeAlias = "dict[tuple[Op, tuple[TensorSpec, ...], Attributes], TensorSpec]"
MOST_DIMENSIONS = 64
"""NumPy's limit, which everything meets that goes by way of the host."""


class Shape:
    """Layer 3: the spec of an operator's result, within what the device admits."""

    def __init__(self, type: Type) -> None:
        self.type = type

    def infer(self, op: Op, inputs: tuple[TensorSpec, ...], attributes: Attributes) -> TensorSpec:
        """Errors name the operator and its inputs."""
        try:
            if not op.storage:
                _check_computes(inputs)
            spec = op.infer(*inputs, *attributes)
            if len(spec.shape) > MOST_DIMENSIONS:
                raise ShapeError(f"the result has {len(spec.shape)} dimensions, of which arrays have at most "
                                 f"{MOST_DIMENSIONS}", hint="reshape it: dimensions beside each other can be one")
            parts = spec.parts if isinstance(spec, TupleSpec) else (spec,)
            for part in parts:
                for d in part.shape:
                    if d.__class__ is not int and not isinstance(d, Dim | int | np.integer):
                        raise ShapeError(f"a dimension of the result would be {d!r}, a {type(d).__name__}",
                                         hint="sizes are integers, or named by nnc.Dim")
            for x in inputs:
                if spec.dtype is x.dtype:
                    return spec
            for part in parts:
                self.type.admit(part.dtype)
            if not op.storage:
                _check_computes(parts)
            return spec
        except Error as error:
            error.locate(operator=op.name, operands=show_operands(op, inputs, attributes))
            raise
        except (TypeError, ValueError) as error:
            raise ShapeError(f"attributes do not fit: {error}", operator=op.name,
                             operands=show_operands(op, inputs, attributes)) from error

    def once(self, known: Specs, op: Op, inputs: tuple[TensorSpec, ...], attributes: Attributes) -> TensorSpec:
        """The spec, inferred once for each kind of operands: `known` is what has been, where all sizes are numbers.
        What dimensions with names are asked meanwhile is watched, and so asked each time."""
        kind = (op, inputs, attributes)
        try:
            spec = known.get(kind)
        except TypeError:  # attributes that cannot be compared
            return self.infer(op, inputs, attributes)
        if spec is None:
            spec = self.infer(op, inputs, attributes)
            if spec.static and all([x.static for x in inputs]):
                known[kind] = spec
        return spec


_OF_LIBRARIES = 256
"""Numbers of dtypes from here on are not NumPy's own: ml_dtypes' are among them."""


def _check_computes(specs: Sequence[TensorSpec]) -> None:
    """DTypeError for what is only stored."""
    for x in specs:
        if x.dtype.num >= _OF_LIBRARIES and is_storage(x.dtype):
            raise not_computed(x.dtype)


def show_operands(op: Op, inputs: Sequence[TensorSpec], attributes: Attributes) -> str:
    """The inputs and attributes of an operator, for errors."""
    named = [f"{name}={value}" for name, value in zip(op.attributes, attributes, strict=False)]
    return ", ".join([*map(repr, inputs), *named])
