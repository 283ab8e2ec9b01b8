"""Gradients of layers, by their weights and by their inputs, against finite differences; and Owl's symbols."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from tests.semantics.feedforward import FEEDFORWARD

F64 = nnc.float64
SMOOTH: dict[str, tuple[Callable[[nnc.Generator], nn.Module], tuple[int, ...]]] = {
    "Conv1d": (lambda g: nn.Conv1d(4, 6, 3, 2, 1, groups=2, generator=g, dtype=F64), (2, 7, 4)),
    "Conv3d": (lambda g: nn.Conv3d(2, 3, 2, layout="NCDHW", generator=g, dtype=F64), (1, 2, 3, 4, 3)),
    "ConvTranspose2d": (lambda g: nn.ConvTranspose2d(4, 2, 3, 2, 1, 1, groups=2, generator=g, dtype=F64), (2, 3, 3, 4)),
    "BatchNorm": (lambda g: nn.BatchNorm(3, momentum=1.0, dtype=F64), (5, 2, 3)),
    "BatchNorm, evaluation": (lambda g: nn.BatchNorm(3, dtype=F64).eval(), (5, 2, 3)),
    "LayerNorm": (lambda g: nn.LayerNorm((4, 3), dtype=F64), (2, 4, 3)),
    "GroupNorm": (lambda g: nn.GroupNorm(2, 4, 1, dtype=F64), (2, 4, 3)),
    "InstanceNorm": (lambda g: nn.InstanceNorm(3, dtype=F64), (2, 4, 3)),
    "RMSNorm": (lambda g: nn.RMSNorm(3, dtype=F64), (2, 4, 3)),
    "LocalResponseNorm": (lambda g: nn.LocalResponseNorm(3, 0.5), (2, 3, 5)),
    "MaxPool3d": (lambda g: nn.MaxPool3d(2, 1), (1, 3, 3, 2, 2)),
    "AvgPool1d": (lambda g: nn.AvgPool1d(3, 2, 1, ceil_mode=True), (2, 6, 3)),
    "AdaptiveAvgPool2d": (lambda g: nn.AdaptiveAvgPool2d(2), (1, 5, 3, 2)),
    "AdaptiveMaxPool2d": (lambda g: nn.AdaptiveMaxPool2d(2), (1, 5, 3, 2)),
    "GlobalMaxPool2d": (lambda g: nn.GlobalMaxPool2d(), (2, 3, 3, 2)),
    "LPPool2d": (lambda g: nn.LPPool2d(2, 3.0), (1, 4, 4, 2)),
    "PReLU": (lambda g: nn.PReLU(3, dtype=F64), (4, 3)),
    "GELU": (lambda g: nn.GELU(), (4, 3)),
    "SwiGLU": (lambda g: nn.SwiGLU(), (4, 6)),
    "Padding2d": (lambda g: nn.Padding2d(1, "reflect"), (1, 3, 4, 2)),
    "UpSampling2d": (lambda g: nn.UpSampling2d(1.5, "linear"), (1, 4, 4, 2)),
    "DepthToSpace": (lambda g: nn.DepthToSpace(2), (1, 2, 3, 4)),
    "ReduceNorm": (lambda g: nn.ReduceNorm(1), (4, 3)),
    "ComplexMultiply": (lambda g: nn.Lambda(lambda x: nn.ComplexMultiply()(x, x)), (4, 6)),
    "Dot": (lambda g: nn.Lambda(lambda x: nn.Dot(transpose_second=True)(x, x)), (2, 4, 3)),
}


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
@pytest.mark.parametrize("name", SMOOTH)
def test_against_finite_differences(name: str, rng: np.random.Generator) -> None:
    make, shape = SMOOTH[name]
    layer, x = make(nnc.Generator(1)), nnc.asarray(rng.normal(size=shape))
    weights = nnc.asarray(rng.normal(size=layer(x).shape))

    def loss(x: nnc.Tensor) -> nnc.Tensor:
        return (layer(x) * weights).sum()

    def differences(write: Callable[[Any], None], first: nnc.Tensor, direction: Any) -> float:
        found = []
        for sign in (1, -1):
            write(first + nnc.asarray(direction * 1e-6 * sign))
            found.append(loss(place[0]).item())
        write(first)
        return (found[0] - found[1]) / 2e-6

    place, direction = [x], rng.normal(size=shape)
    expected = differences(lambda v: place.__setitem__(0, v), x, direction)
    np.testing.assert_allclose((nnc.grad(loss)(x).numpy() * direction).sum(), expected, rtol=1e-5, atol=1e-7)
    if layer.parameters():
        _, gradients = nn.value_and_grad(layer, loss)(x)
        for key, p in layer.named_parameters().items():
            direction = rng.normal(size=p.spec.shape)
            expected = differences(p.write, p.read(), direction)
            along = (gradients[key].numpy() * direction).sum()
            np.testing.assert_allclose(along, expected, rtol=1e-5, atol=1e-7, err_msg=key)


@pytest.mark.filterwarnings("ignore:scatter has no kernel")
@pytest.mark.parametrize("name", FEEDFORWARD)
def test_assigned_symbols_go_through_every_layer(name: str) -> None:
    """Owl's way, in evaluation: what is evaluated is what eager gives."""
    make, args = FEEDFORWARD[name]
    layer = make().eval()
    wanted = [y for y in as_many(layer(*map(tensor, args)))]
    symbols = [nnc.var_arr(f"x{i}", a.shape, a.dtype) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    found = as_many(layer(*symbols))
    for symbol, a in zip(symbols, args, strict=True):
        if isinstance(a, np.ndarray):
            nnc.assign(symbol, a)
    nnc.eval_arr(found)
    for y, expected in zip(found, wanted, strict=True):
        np.testing.assert_allclose(nnc.unpack_arr(y), expected.numpy(), rtol=1e-5, atol=1e-6)


def tensor(a: Any) -> Any:
    return nnc.asarray(a) if isinstance(a, np.ndarray) else a


def as_many(y: Any) -> list[nnc.Tensor]:
    return list(y) if isinstance(y, tuple) else [y]
