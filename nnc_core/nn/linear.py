"""Layers around a matrix: Linear and Embedding."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import is_integer
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.dynamic.functions.creation import zeros
from nnc_core.dynamic.functions.indexing import take
from nnc_core.dynamic.random.generator import Generator
from nnc_core.dynamic.tensor import Tensor
from nnc_core.nn.checks import at_least_one
from nnc_core.nn.initialise import Initialiser, generator_or_default, normal, standard
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter


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
        if x.ndim == 0 or x.shape[-1] != self.in_features:
            raise ShapeError(f"the input is {x.spec}, its last dimension should be {self.in_features}",
                             operator=repr(self))
        y: Tensor = x @ self.weight.read()
        return y if self.bias is None else y + self.bias.read()

    def describe(self) -> str:
        return f"{self.in_features}, {self.out_features}" + (", bias=False" if self.bias is None else "")


class Embedding(Module):
    """Rows of a table by index: integers (...) -> (..., features).  weight (count, features), standard normal."""

    def __init__(self, count: int, features: int, *, generator: Generator | None = None, dtype: Any = None) -> None:
        at_least_one("Embedding", count=count, features=features)
        self.count, self.features = count, features
        self.weight = Parameter(normal(generator_or_default(generator), (count, features), 1.0, dtype))

    def forward(self, indices: Tensor) -> Tensor:
        if not is_integer(indices.dtype):
            raise DTypeError(f"the indices are {indices.spec}, not integers", operator=repr(self))
        return take(self.weight.read(), indices, axis=0)

    def describe(self) -> str:
        return f"{self.count}, {self.features}"
