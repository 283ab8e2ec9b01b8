"""Small modules for the cases: optional arguments, shapes that Python reads or the data decide, running statistics."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import nnc_core as nnc
from nnc_core import nn


def generator(seed: int = 0) -> nnc.Generator:
    return nnc.Generator(seed)


class Sum(nn.Module):
    """What several modules make of one input, added up."""

    def __init__(self, *branches: nn.Module) -> None:
        self.branches = branches

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        first, *rest = [branch(x) for branch in self.branches]
        for y in rest:
            first = first + y
        return first


class Concatenate(nn.Module):
    """What several modules make of one input, side by side."""

    def __init__(self, *branches: nn.Module, axis: int = -1) -> None:
        self.branches, self.axis = branches, axis

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return nnc.concat([branch(x) for branch in self.branches], axis=self.axis)


class Identity(nn.Module):
    """x itself."""

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return x


class Weighted(nn.Module):
    """A layer, a weight of its own, and a look at the shape of x."""

    def __init__(self, seed: int = 0) -> None:
        self.dense = nn.Linear(10, 10, generator=generator(seed))
        self.weight = nn.Parameter(nnc.linspace(-1.0, 1.0, 10))

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        assert x.shape[1] == 10
        return self.dense(x) + self.weight.read() * x.shape[0]


def announced(kind: type[nn.Module]) -> type[nn.Module]:
    """A class decorator that puts a function around `forward`."""

    class Announced(kind):
        @functools.wraps(kind.forward)
        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return super().forward(*args, **kwargs) * 1.0

    Announced.__name__ = Announced.__qualname__ = kind.__name__
    return Announced


@announced
class Decorated(Weighted):
    """Traced as it is written, decorator included."""


class OptionalBias(nn.Module):
    """a + b, a or b, whichever are given; at least one."""

    def forward(self, a: nnc.Tensor | None, b: nnc.Tensor | None = None) -> nnc.Tensor:
        if a is None and b is None:
            raise ValueError("neither a nor b is given")
        if a is None or b is None:
            return (a if b is None else b) * 2.0
        return a + b


class PassesNone(nn.Module):
    """Its arguments, None or not, through two modules."""

    def __init__(self) -> None:
        self.inner = OptionalBias()
        self.dense = nn.Linear(3, 2, generator=generator())

    def forward(self, a: nnc.Tensor | None, b: nnc.Tensor | None = None) -> tuple[nnc.Tensor, None]:
        return self.dense(self.inner(a, b)), None


class Scaled(nn.Module):
    """x times a Python number or the sum of a list of such: arguments that are no tensors."""

    def forward(self, x: nnc.Tensor, by: float | list[float]) -> nnc.Tensor:
        return x * (sum(by) if isinstance(by, list) else by)


class FlatCount(nn.Module):
    """Python reads the shape twice: for a reshape and for a range."""

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        rows, columns = x.shape
        flat = nnc.reshape(x, (rows * columns,))
        return flat + nnc.arange(rows * columns, dtype=nnc.float32)


class Factor(nn.Module):
    """x times a Python attribute, plus an array that is held as a plain attribute."""

    def __init__(self, factor: float, offset: nnc.Tensor | None = None) -> None:
        self.factor, self.offset = factor, offset

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        y = x * self.factor
        return y if self.offset is None else y + self.offset


class Selected(nn.Module):
    """A boolean index and the positions of what is not zero: both results have shapes that the data decide."""

    def __init__(self) -> None:
        self.dense = nn.Linear(3, 3, generator=generator(5))

    def forward(self, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        y = self.dense(x)
        return y[x > 0], nnc.nonzero(nnc.reshape(x, (-1,)))[0]


class MaskedSum(nn.Module):
    """Static parts around a dynamic one: a layer, the rows that a mask chooses, their sum, a layer."""

    def __init__(self) -> None:
        self.first, self.last = nn.Linear(3, 4, generator=generator(6)), nn.Linear(4, 2, generator=generator(7))

    def forward(self, x: nnc.Tensor, mask: nnc.Tensor) -> nnc.Tensor:
        return self.last(nnc.sum(self.first(x)[mask], axis=0))


class RunningNorm(nn.Module):
    """Batch normalisation: batch statistics in training, which also move the running ones; those in evaluation."""

    def __init__(self, features: int, momentum: float = 0.25) -> None:
        self.momentum = momentum
        self.scale, self.shift = nn.Parameter(nnc.ones(features)), nn.Parameter(nnc.zeros(features))
        self.mean, self.variance = nnc.Cell(nnc.zeros(features)), nnc.Cell(nnc.ones(features))

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        mean, variance = self._batch(x) if self.training else (self.mean.read(), self.variance.read())
        normed = (x - mean) / nnc.sqrt(variance + 1e-5)
        return normed * self.scale.read() + self.shift.read()

    def _batch(self, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        axes = tuple(range(x.ndim - 1))
        mean = nnc.mean(x, axis=axes)
        variance = nnc.mean((x - mean) ** 2, axis=axes)
        self._move(self.mean, mean)
        self._move(self.variance, variance)
        return mean, variance

    def _move(self, cell: nnc.Cell, now: nnc.Tensor) -> None:
        cell.write(cell.read() * (1 - self.momentum) + now.detach() * self.momentum)


class LabelsToo(nn.Module):
    """The scores of some labels, and the labels: an integer input that is an output as well."""

    def __init__(self) -> None:
        self.table = nn.Embedding(5, 3, generator=generator(8))

    def forward(self, labels: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        return self.table(labels) * 2.0, labels


class Viewed(nn.Module):
    """Views of the input (reshape, slice ...), then a layer, then views of what it gives."""

    def __init__(self, before: Callable[[nnc.Tensor], nnc.Tensor], layer: nn.Module,
                 after: Callable[[nnc.Tensor], nnc.Tensor] = lambda y: y) -> None:
        self.before, self.layer, self.after = before, layer, after

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return self.after(self.layer(self.before(x)))


class UnrolledLSTM(nn.Module):
    """An LSTM cell run along the first axis of x, in Python."""

    def __init__(self) -> None:
        self.cell = nn.LSTMCell(3, 4, generator=generator(9))

    def forward(self, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        state = self.cell.initial_state(int(x.shape[1]))
        for t in range(int(x.shape[0])):
            state = self.cell(x[t], state)
        return state


def small_net(seed: int = 0) -> nn.Sequential:
    """Two layers with weights and something between them."""
    g = generator(seed)
    return nn.Sequential(nn.Linear(3, 4, generator=g), nn.Tanh(), nn.Linear(4, 2, generator=g))
