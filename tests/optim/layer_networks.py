"""A small network around each layer: Owl's 44 neurons and its 5 empty ones, and what there is beyond them.

A layer stands between layers with weights, so that gradients go through it; the last one gives two numbers a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.optim.owl import Params, batch, loss, momentum

ROWS = 4
Make = Callable[[nnc.Generator, str], nn.Module]
PARAMS = Params(epochs=3, batch=batch.Full(), loss=loss.Quadratic(), learning_rate=0.02,
                momentum=momentum.Standard(0.5), verbosity=False)


@dataclass(frozen=True)
class Case:
    """A layer: the shape of a row that it takes, how it is made, whether rows are numbers of words."""

    family: str
    row: tuple[int, ...]
    make: Make
    words: int = 0

    def data(self, dtype: str) -> tuple[Any, Any]:
        rng = np.random.default_rng(7)
        shape = (ROWS, *self.row)
        x = rng.integers(0, self.words, shape) if self.words else rng.uniform(-1, 1, shape).astype(dtype)
        return x, rng.uniform(-1, 1, (ROWS, 2)).astype(dtype)

    def network(self, dtype: str) -> nn.Module:
        g = nnc.Generator(1)
        front = self.make(g, dtype)
        with nnc.evaluating(), nnc.no_grad():
            features = int(np.prod(front(nnc.asarray(self.data(dtype)[0])).shape[1:]))
        return nn.Sequential(front, nn.Flatten(), nn.Linear(features, 2, generator=g, dtype=dtype))


class Merged(nn.Module):
    """Two dense layers of one input, put together by a layer of two inputs."""

    def __init__(self, merge: nn.Module, g: nnc.Generator, dtype: str, depth: int = 1) -> None:
        self.left = nn.Linear(3, 4, generator=g, dtype=dtype)
        self.right = nn.Linear(3, 4, generator=g, dtype=dtype)
        self.merge, self.depth = merge, depth

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        left, right = self.left(x), self.right(x)
        if self.depth == 3:  # products of matrices
            left, right = left.reshape((ROWS, 2, 2)), right.reshape((ROWS, 2, 2))
        return self.merge(left, right)  # type: ignore[no-any-return]


def after_dense(layer: Callable[[], nn.Module]) -> Make:
    """Rows of 3 features, then 4, then the layer."""
    return lambda g, dtype: nn.Sequential(nn.Linear(3, 4, generator=g, dtype=dtype), layer())


CONVOLUTIONS: dict[int, tuple[Any, Any]] = {1: (nn.Conv1d, nn.ConvTranspose1d), 2: (nn.Conv2d, nn.ConvTranspose2d),
                                            3: (nn.Conv3d, nn.ConvTranspose3d)}
PLACES: dict[int, tuple[int, ...]] = {1: (6,), 2: (5, 4), 3: (4, 4, 3)}


def convolution(d: int, transposed: bool = False, **options: Any) -> Case:
    kind = CONVOLUTIONS[d][transposed]
    return Case("Owl's layers", (*PLACES[d], 2), lambda g, dtype: kind(2, 3, 2, generator=g, dtype=dtype, **options))


def after_convolution(d: int, layer: Callable[[], nn.Module], family: str = "Owl's layers") -> Case:
    """Images, volumes or sequences of 2 channels, a convolution to 3, then the layer."""
    kind = CONVOLUTIONS[d][0]
    return Case(family, (*PLACES[d], 2),
                lambda g, dtype: nn.Sequential(kind(2, 3, 1, generator=g, dtype=dtype), layer()))


def merged(layer: Callable[[], nn.Module], depth: int = 1) -> Case:
    return Case("Owl's layers", (3,), lambda g, dtype: Merged(layer(), g, dtype, depth))


def sequence(kind: Any, *sizes: int, **options: Any) -> Make:
    return lambda g, dtype: kind(3, 4, *sizes, generator=g, dtype=dtype, **options)


def dense(layer: Callable[[], nn.Module], family: str = "Owl's layers") -> Case:
    return Case(family, (3,), after_dense(layer))


def of_dtype(layer: Callable[[str], nn.Module], family: str = "Owl's layers") -> Case:
    return Case(family, (3,), lambda g, dtype: nn.Sequential(nn.Linear(3, 4, generator=g, dtype=dtype), layer(dtype)))


OWL: dict[str, Case] = {
    "Input": Case("Owl's layers", (3,), lambda g, dtype: nn.Identity()),
    "Linear": Case("Owl's layers", (3,), lambda g, dtype: nn.Linear(3, 4, generator=g, dtype=dtype)),
    "LinearNoBias": Case("Owl's layers", (3,), lambda g, dtype: nn.Linear(3, 4, bias=False, generator=g, dtype=dtype)),
    "Embedding": Case("Owl's layers", (3,), lambda g, dtype: nn.Embedding(5, 4, generator=g, dtype=dtype), words=5),
    "LSTM": Case("Owl's layers", (3, 3), sequence(nn.LSTM, returns="last")),
    "GRU": Case("Owl's layers", (3, 3), sequence(nn.GRU, returns="last")),
    "Recurrent": Case("Owl's layers", (3, 3), sequence(nn.Recurrent, 2)),
    **{f"Conv{d}D": convolution(d) for d in (1, 2, 3)},
    **{f"DilatedConv{d}D": convolution(d, dilation=2) for d in (1, 2, 3)},
    **{f"TransposeConv{d}D": convolution(d, True, strides=2) for d in (1, 2, 3)},
    "FullyConnected": Case("Owl's layers", (3, 2), lambda g, dtype: nn.Sequential(
        nn.Flatten(), nn.Linear(6, 4, generator=g, dtype=dtype), nn.ReLU())),
    "MaxPool1D": after_convolution(1, lambda: nn.MaxPool1d(2)),
    "MaxPool2D": after_convolution(2, lambda: nn.MaxPool2d(2)),
    "AvgPool1D": after_convolution(1, lambda: nn.AvgPool1d(2)),
    "AvgPool2D": after_convolution(2, lambda: nn.AvgPool2d(2, padding="SAME")),
    "GlobalMaxPool1D": after_convolution(1, nn.GlobalMaxPool1d),
    "GlobalMaxPool2D": after_convolution(2, nn.GlobalMaxPool2d),
    "GlobalAvgPool1D": after_convolution(1, nn.GlobalAvgPool1d),
    "GlobalAvgPool2D": after_convolution(2, nn.GlobalAvgPool2d),
    "UpSampling2D": after_convolution(2, nn.UpSampling2d),
    "Padding2D": after_convolution(2, lambda: nn.Padding2d(1)),
    "Dropout": dense(lambda: nn.Dropout(0.3, nnc.Generator(5))),
    "Reshape": dense(lambda: nn.Reshape((2, 2))),
    "Flatten": after_convolution(2, nn.Flatten),
    "Slice": dense(lambda: nn.Slice(slice(1, 3))),
    "Lambda": dense(lambda: nn.Lambda(lambda x: x * x)),
    "LambdaArray": merged(lambda: nn.Lambda(lambda *xs: xs[0] * 2 - xs[1])),
    "Activation": dense(lambda: nn.Activation("softplus")),
    "GaussianNoise": dense(lambda: nn.GaussianNoise(0.2, nnc.Generator(5))),
    "GaussianDropout": dense(lambda: nn.GaussianDropout(0.3, nnc.Generator(5))),
    "AlphaDropout": dense(lambda: nn.AlphaDropout(0.3, nnc.Generator(5))),
    "Normalisation": of_dtype(lambda dtype: nn.BatchNorm(4, dtype=dtype)),
    "Add": merged(nn.Add), "Mul": merged(nn.Multiply), "Dot": merged(nn.Dot, 3), "Max": merged(nn.Maximum),
    "Average": merged(nn.Average), "Concatenate": merged(nn.Concatenate),
}
STUBS: dict[str, Case] = {
    "UpSampling1D": after_convolution(1, nn.UpSampling1d, "Owl's stubs"),
    "UpSampling3D": after_convolution(3, nn.UpSampling3d, "Owl's stubs"),
    "Padding1D": after_convolution(1, lambda: nn.Padding1d(1), "Owl's stubs"),
    "Padding3D": after_convolution(3, lambda: nn.Padding3d(1), "Owl's stubs"),
    "Masking": Case("Owl's stubs", (3,), lambda g, dtype: nn.Sequential(
        nn.Linear(3, 4, generator=g, dtype=dtype), nn.ReLU(), nn.Masking(0.0))),
}
ACTIVATIONS: dict[str, Case] = {
    name: dense(layer, "Owl's activations") for name, layer in {
        "Elu": nn.ELU, "Relu": nn.ReLU, "Sigmoid": nn.Sigmoid, "HardSigmoid": nn.HardSigmoid,
        "Softmax": nn.Softmax, "Softplus": nn.Softplus, "Softsign": nn.Softsign, "Tanh": nn.Tanh, "Relu6": nn.ReLU6,
        "LeakyRelu": lambda: nn.LeakyReLU(0.2), "TRelu": lambda: nn.ThresholdedReLU(0.1),
        "custom": lambda: nn.Activation(nnc.sin), "none": lambda: nn.Activation(None),
    }.items()
}  # fmt: skip
BEYOND: dict[str, Case] = {
    "SpatialDropout": after_convolution(2, lambda: nn.SpatialDropout(0.4, generator=nnc.Generator(5)), "other layers"),
    "RReLU": dense(lambda: nn.RReLU(generator=nnc.Generator(5)), "other layers"),
    "PReLU": of_dtype(lambda dtype: nn.PReLU(4, dtype=dtype), "other layers"),
    "SwiGLU": dense(nn.SwiGLU, "other layers"),
    "LayerNorm": of_dtype(lambda dtype: nn.LayerNorm(4, dtype=dtype), "other layers"),
    "RMSNorm": of_dtype(lambda dtype: nn.RMSNorm(4, dtype=dtype), "other layers"),
    "GroupNorm": of_dtype(lambda dtype: nn.GroupNorm(2, 4, dtype=dtype), "other layers"),
    "depthwise": Case("other layers", (5, 4, 2),
                      lambda g, dtype: nn.Conv2d(2, 4, 2, groups=2, generator=g, dtype=dtype)),
    "MaxPool3D": after_convolution(3, lambda: nn.MaxPool3d(2), "other layers"),
    "AdaptiveAvgPool2D": after_convolution(2, lambda: nn.AdaptiveAvgPool2d((2, 2)), "other layers"),
    "RNN": Case("other layers", (3, 3), sequence(nn.RNN, bidirectional=True, returns="last")),
    "two LSTMs with dropout": Case("other layers", (3, 3), sequence(nn.LSTM, 2, dropout=0.3, returns="last")),
    "MultiHeadAttention": Case("other layers", (3, 4), lambda g, dtype: Attending(
        nn.MultiHeadAttention(4, 2, generator=g, dtype=dtype))),
    "TransformerEncoder": Case("other layers", (3, 4), lambda g, dtype: nn.TransformerEncoderLayer(
        4, 2, hidden=6, dropout=0.2, generator=g, dtype=dtype)),
}


class Attending(nn.Module):
    """A sequence that attends to itself."""

    def __init__(self, attention: nn.MultiHeadAttention) -> None:
        self.attention = attention

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        found = self.attention(x, x, x)
        return found[0] if isinstance(found, tuple) else found


NETWORKS = OWL | {f"{name} (a stub in Owl)": case for name, case in STUBS.items()} | {
    f"activation {name}": case for name, case in ACTIVATIONS.items()} | BEYOND


def trained(case: str, dtype: str, compiled: bool) -> tuple[list[float], nn.Module]:
    """Three steps: the losses, and the network."""
    nnc.manual_seed(9)
    network = NETWORKS[case].network(dtype)
    x, y = NETWORKS[case].data(dtype)
    params = partial(Params, **{**vars(PARAMS), "compiled": compiled})()
    return optim.train(network, params, x, y).losses, network


def trained_copy(case: str) -> tuple[nn.Module, tuple[Any, ...]]:
    """After three compiled steps, and inputs."""
    return trained(case, "float32", True)[1], (NETWORKS[case].data("float32")[0],)
