"""Networks to save, with arrays that are not their first ones."""

from __future__ import annotations

from typing import Any

import nnc_core as nnc
from nnc_core import nn
from nnc_core.nn import initialise


@nn.register
class Residual(nn.Module):
    """Everything that a constructor may be given."""

    def __init__(self, inner: nn.Module, table: Any, *more: nn.Module, scale: float = 1.0, sizes: Any = (),
                 activation: Any = nnc.tanh, dtype: Any = None, generator: Any = None, named: Any = None) -> None:
        self.inner, self.more, self.scale, self.sizes = inner, more, scale, tuple(sizes)
        self.table, self.activation, self.named = nn.Parameter(table), activation, named or {}
        self.drop = nn.Dropout(0.5, generator)
        self.out = nn.Linear(3, 3, dtype=dtype, init=lambda *args: initialise.he_normal(*args))

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        y = self.activation(self.inner(x)) * self.scale + self.table.read()
        for layer in self.more:
            y = layer(y)
        return self.drop(y) + self.out(x) + sum(self.named.get("shifts", []), 0.0)


@nn.register("tests.double")
def double(x: nnc.Tensor) -> nnc.Tensor:
    return x * 2


def functional() -> nn.Network:
    image, extra = nn.Input((8, 8, 1), name="image"), nn.Input((2,))
    shared = nn.Linear(4, 4)
    y = nn.BatchNorm(3)(nn.Conv2d(1, 3, 3, padding="SAME")(image))
    y = nn.Linear(3, 4)(nn.GlobalAvgPool2d()(nn.Function("relu")(y))) + nn.Linear(2, 4)(extra)
    sequence, (h, _) = nn.LSTM(8, 3, bidirectional=True)(nn.Reshape((8, 8))(image))
    return nn.Network([image, extra], {"a": shared(shared(y)) * 2.5, "h": h, "all": sequence})


def residual() -> Residual:
    return Residual(nn.Linear(3, 3), nnc.ones(3), nn.ReLU(), nn.Lambda(double), scale=float("inf"), sizes=[1, 2.5, "a"],
                    activation=nnc.sigmoid, dtype="float32", generator=nnc.Generator(3), named={"shifts": [1, 2]})
