"""Feature pyramids (Lin et al. 2017) on a network whose batch normalisation does not move."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.functions.normalisation import batch_norm
from nnc_core.functions.resampling import upsample
from nnc_core.nn import BatchNorm, Conv2d, MaxPool2d, Module
from nnc_core.nn.tree import walk
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class FrozenBatchNorm(Module):
    """Batch normalisation whose moments, scale and bias are buffers, in training too."""

    def __init__(self, norm: BatchNorm) -> None:
        self.axis, self.epsilon = norm.axis, norm.epsilon
        self.scale, self.bias = _buffer(norm.scale), _buffer(norm.bias)
        self.running_mean, self.running_variance = norm.running_mean, norm.running_variance

    def forward(self, x: Tensor) -> Tensor:
        scale, bias = (None if cell is None else cell.read() for cell in (self.scale, self.bias))
        return batch_norm(x, self.running_mean.read(), self.running_variance.read(), scale, bias, axis=self.axis,
                          epsilon=self.epsilon)


def _buffer(cell: Cell | None) -> Cell | None:
    return None if cell is None else Cell(cell.read(), cell.name)


def freeze_batch_norm(module: Module) -> None:
    """Put a FrozenBatchNorm in the place of every BatchNorm that is an attribute inside; names stay."""
    for place in list(walk(module)):
        for name, part in list(vars(place.module).items()):
            if isinstance(part, BatchNorm):
                setattr(place.module, name, FrozenBatchNorm(part))


class FeaturePyramid(Module):
    """Feature maps, each half as large as the one before -> as many with `outputs` channels, and one more, smaller."""

    def __init__(self, inputs: Sequence[int], outputs: int, layout: str = "NHWC") -> None:
        self.inner = tuple([Conv2d(n, outputs, 1, layout=layout) for n in inputs])
        self.outer = tuple([Conv2d(outputs, outputs, 3, padding=1, layout=layout) for _ in inputs])
        self.smaller, self.layout = MaxPool2d(1, 2, layout=layout), layout

    def forward(self, features: Sequence[Tensor]) -> list[Tensor]:
        levels: list[Tensor] = []
        above: Tensor | None = None
        for x, inner, outer in zip(reversed(features), reversed(self.inner), reversed(self.outer), strict=True):
            x = inner(x)
            above = x if above is None else x + upsample(above, 2, layout=self.layout)
            levels.append(outer(above))
        levels.reverse()
        return [*levels, self.smaller(levels[-1])]
