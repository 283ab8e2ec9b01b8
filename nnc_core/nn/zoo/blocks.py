"""Blocks that several networks are built of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nnc_core.functions.joining import concat
from nnc_core.nn import BatchNorm, Conv2d, Module, ReLU, Sequential
from nnc_core.nn.initialise import Initialiser, he_normal
from nnc_core.values.tensor import Tensor

Pair: TypeAlias = int | tuple[int, int]
Activation: TypeAlias = Callable[[], Module]


def channel_axis(layout: str) -> int:
    """The axis of the channels of images."""
    return layout.index("C")


def norm(channels: int, layout: str, epsilon: float = 1e-5) -> BatchNorm:
    """Batch normalisation of images."""
    return BatchNorm(channels, axis=channel_axis(layout), epsilon=epsilon)


def same(kernel_size: Pair) -> tuple[tuple[int, int], tuple[int, int]]:
    """The padding on both sides with which a window of odd size and stride 1 keeps the size of an image."""
    height, width = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    return (height // 2, height // 2), (width // 2, width // 2)


class ConvNorm(Sequential):
    """Convolution without bias, batch normalisation, activation; padded on both sides alike unless told otherwise."""

    def __init__(self, inputs: int, outputs: int, kernel_size: Pair, strides: Pair = 1, padding: int | None = None, *,
                 groups: int = 1, activation: Activation | None = ReLU, epsilon: float = 1e-5, layout: str = "NHWC",
                 init: Initialiser = he_normal) -> None:
        padded = same(kernel_size) if padding is None else padding
        super().__init__(Conv2d(inputs, outputs, kernel_size, strides, padded, groups=groups, bias=False, layout=layout,
                                init=init), norm(outputs, layout, epsilon))
        if activation is not None:
            self.append(activation())


def scaled(channels: int, width: float) -> int:
    """Channels of a network that is `width` times as wide, at least one."""
    return max(1, round(channels * width))


class SideBySide(Module):
    """Several modules applied to one image, their channels one after another."""

    def __init__(self, *branches: Module, layout: str = "NHWC") -> None:
        self.branches, self.axis = branches, channel_axis(layout)

    def forward(self, x: Tensor) -> Tensor:
        return concat([branch(x) for branch in self.branches], axis=self.axis)
