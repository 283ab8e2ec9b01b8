"""LeNet: LeCun's of 1998, and the larger one of Owl's examples."""

from __future__ import annotations

from nnc_core.nn import AvgPool2d, Conv2d, Dropout, Flatten, Linear, MaxPool2d, ReLU, Sequential, Tanh


def lenet5(classes: int = 10, channels: int = 1, *, width: int = 6, image: int = 28,
           layout: str = "NHWC") -> Sequential:
    """LeNet-5 (LeCun et al. 1998) with every map of the first pool connected to the second convolution: images
    (batch, image, image, channels) -> logits (batch, classes).

    `width` channels after the first convolution, 16 / 6 of it after the second; tanh and mean pools as then.
    """
    second = 16 * width // 6
    side = (image // 2 - 4) // 2
    return Sequential(
        Conv2d(channels, width, 5, padding=2, layout=layout), Tanh(), AvgPool2d(2, layout=layout),
        Conv2d(width, second, 5, layout=layout), Tanh(), AvgPool2d(2, layout=layout), Flatten(),
        Linear(side * side * second, 20 * width), Tanh(), Linear(20 * width, 14 * width), Tanh(),
        Linear(14 * width, classes),
    )  # fmt: skip


def owl_lenet(classes: int = 10, channels: int = 1, *, width: int = 32, hidden: int = 1024, image: int = 28,
              dropout: float = 0.1, layout: str = "NHWC") -> Sequential:
    """The network that Owl's lazy_mnist.ml trains on digits: one convolution, one pool, two dense layers."""
    return Sequential(
        Conv2d(channels, width, 5, padding="SAME", layout=layout), ReLU(), MaxPool2d(2, layout=layout),
        Dropout(dropout), Flatten(),
        Linear((image // 2) ** 2 * width, hidden), ReLU(), Linear(hidden, classes),
    )  # fmt: skip
