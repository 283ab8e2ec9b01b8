"""Layers around a matrix: Linear and Embedding."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError
from nnc_core.functions.creation import zeros
from nnc_core.functions.embeddings import embedding
from nnc_core.nn.initialise import Initialiser, generator_or_default, standard, standard_normal
from nnc_core.nn.layers.checks import at_least_one, misfit
from nnc_core.nn.layers.settings import settings
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter
from nnc_core.random.generator import Generator
from nnc_core.values.tensor import Tensor

__all__ = ["Embedding", "Linear"]


class Linear(Module):
    """x @ weight + bias: (..., in_features) -> (..., out_features).

    weight (in_features, out_features), by default Owl's Standard; bias (out_features,), zero at first.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, *, init: Initialiser = standard,
                 generator: Generator | None = None, dtype: Any = None) -> None:
        at_least_one("Linear", in_features=in_features, out_features=out_features)
        self.in_features, self.out_features = in_features, out_features
        shape = (in_features, out_features)
        self.weight = Parameter(init(generator_or_default(generator), shape, in_features, out_features, dtype))
        self.bias = Parameter(zeros(out_features, dtype=dtype)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)"""
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise misfit(self, x, f"its last dimension should be {self.in_features}")
        y: Tensor = x @ self.weight.read()
        return y if self.bias is None else y + self.bias.read()

    def describe(self) -> str:
        return settings(self, "in_features", "out_features", "bias")


class Embedding(Module):
    """Rows of a table by index: integers (...) -> (..., features).

    weight (count, features), by default standard normal.  The row `padding_index` is zero at first and has no gradient
    from here.
    """

    def __init__(self, count: int, features: int, padding_index: int | None = None, *,
                 init: Initialiser = standard_normal, generator: Generator | None = None, dtype: Any = None) -> None:
        at_least_one("Embedding", count=count, features=features)
        if padding_index is not None and not -count <= padding_index < count:
            raise AttributeValueError(f"padding_index {padding_index} is none of {count} rows", operator="Embedding")
        self.count, self.features, self.padding_index = count, features, padding_index
        rows = init(generator_or_default(generator), (count, features), count, features, dtype)
        if padding_index is not None:
            rows = rows.at[padding_index].set(0.0)
        self.weight = Parameter(rows)

    def forward(self, indices: Tensor) -> Tensor:
        """integers (...) -> (..., features)"""
        if not is_integer(indices.dtype):
            raise DTypeError(f"the indices are {indices.spec}, not integers", operator=repr(self),
                             hint="cast with astype")
        return embedding(self.weight.read(), indices, padding_index=self.padding_index)

    def describe(self) -> str:
        return settings(self, "count", "features", "padding_index")
