"""The domain ai.onnx.preview.training: gradients, and steps of minimisers on any number of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.algodiff.gradients import grad
from nnc_core.base.errors import AttributeValueError
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.graph import OnnxGraph
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.values.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"


@operator("Gradient", domain=DOMAIN)
def gradient(*given: Tensor, xs: tuple[str, ...], y: str, zs: tuple[str, ...] = (),
             body: OnnxGraph | None = None, call: NodeCall) -> tuple[Tensor, ...]:
    """Gradients of the sum of `y` by the first of the given values, which stand in place of `xs` and `zs` in the part
    of the model that leads to y, the `body`."""
    assert body is not None  # parsing has put it there
    part = body
    if len(given) != len(xs) + len(zs):
        raise AttributeValueError(f"{len(given)} inputs for the {len(xs) + len(zs)} names of xs and zs")

    def total(*variables: Tensor) -> Tensor:
        return nnc.sum(call.tensor(call.graph(part, *variables, *given[len(xs):])[0]))

    return tuple(grad(total, tuple(range(len(xs))))(*given[:len(xs)]))


def _for_each(arrays: Sequence[Tensor], states: int, step: Callable[..., tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """The step for each weight with its gradient and states, which come as lists one behind the other."""
    count = len(arrays) // (2 + states)
    rows = [arrays[i * count:(i + 1) * count] for i in range(2 + states)]
    results = [step(*parts) for parts in zip(*rows, strict=True)]
    return tuple(x for column in zip(*results, strict=True) for x in column)


@operator("Adagrad", domain=DOMAIN)
def adagrad(rate: Tensor, count: Tensor, *arrays: Tensor, decay_factor: float = 0.0, epsilon: float = 0.0,
            norm_coefficient: float = 0.0) -> tuple[Tensor, ...]:
    current = nnc.divide(rate, nnc.add(nnc.multiply(nnc.astype(count, rate.dtype), decay_factor), 1.0))

    def step(x: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = nnc.add(g, nnc.multiply(x, norm_coefficient))
        h = nnc.add(h, nnc.square(g))
        return nnc.subtract(x, nnc.divide(nnc.multiply(g, current), nnc.add(nnc.sqrt(h), epsilon))), h

    return _for_each(arrays, 1, step)


@operator("Adam", domain=DOMAIN)
def adam(rate: Tensor, count: Tensor, *arrays: Tensor, alpha: float = 0.9, beta: float = 0.999, epsilon: float = 0.0,
         norm_coefficient: float = 0.0, norm_coefficient_post: float = 0.0) -> tuple[Tensor, ...]:
    """From the second step on corrected for moments that begin with zeros."""
    steps = nnc.astype(count, rate.dtype)
    corrected = nnc.divide(nnc.sqrt(nnc.subtract(1.0, nnc.pow(_scalar(beta, rate), steps))),
                           nnc.subtract(1.0, nnc.pow(_scalar(alpha, rate), steps)))
    current = nnc.where(nnc.greater(count, 0), nnc.multiply(rate, corrected), rate)

    def step(x: Tensor, g: Tensor, v: Tensor, h: Tensor) -> tuple[Tensor, ...]:
        g = nnc.add(g, nnc.multiply(x, norm_coefficient))
        v = nnc.add(nnc.multiply(v, alpha), nnc.multiply(g, 1 - alpha))
        h = nnc.add(nnc.multiply(h, beta), nnc.multiply(nnc.square(g), 1 - beta))
        x = nnc.subtract(x, nnc.divide(nnc.multiply(v, current), nnc.add(nnc.sqrt(h), epsilon)))
        return nnc.multiply(x, 1 - norm_coefficient_post), v, h

    return _for_each(arrays, 2, step)


def _scalar(number: float, beside: Tensor) -> Tensor:
    return nnc.asarray(np.asarray(number, beside.dtype), device=beside.device)


@operator("Momentum", domain=DOMAIN)
def momentum(rate: Tensor, count: Tensor, *arrays: Tensor, alpha: float, beta: float, mode: str,
             norm_coefficient: float) -> tuple[Tensor, ...]:
    if mode not in ("standard", "nesterov"):
        raise AttributeValueError(f"mode {mode!r} is neither standard nor nesterov")
    share: Any = nnc.where(nnc.greater(count, 0), _scalar(beta, rate), _scalar(1.0, rate))

    def step(x: Tensor, g: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        g = nnc.add(g, nnc.multiply(x, norm_coefficient))
        v = nnc.add(nnc.multiply(v, alpha), nnc.multiply(g, share))
        moved = nnc.add(g, nnc.multiply(v, alpha)) if mode == "nesterov" else v
        return nnc.subtract(x, nnc.multiply(moved, rate)), v

    return _for_each(arrays, 1, step)
