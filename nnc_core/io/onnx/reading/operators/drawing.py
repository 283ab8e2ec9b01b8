"""Random numbers.  They are nnc's: no two runtimes draw the same ones.

A `seed` that a model gives is not used: it would give every call the same numbers, where a model is called to draw
new ones; `nnc.manual_seed` makes a run repeatable.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import is_float
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.io.onnx.reading.types import FLOAT, INT32, dtype_of
from nnc_core.random.generator import default_generator
from nnc_core.values.tensor import Tensor


def _placed(drawn: Tensor, dtype: Any, call: NodeCall) -> Tensor:
    return nnc.asarray(nnc.astype(drawn, dtype), device=call.device)


def _like(x: Any, dtype: int | None) -> Any:
    return dtype_of(dtype) if dtype else x.dtype if is_float(x.dtype) else np.dtype(np.float32)


@operator("RandomUniform")
def random_uniform(*, shape: tuple[int, ...], dtype: int = FLOAT, high: float = 1.0, low: float = 0.0,
                   seed: float | None = None, call: NodeCall) -> Tensor:
    return _placed(default_generator().uniform(shape, low, high), dtype_of(dtype), call)


@operator("RandomUniformLike")
def random_uniform_like(x: Any, *, dtype: int | None = None, high: float = 1.0, low: float = 0.0,
                        seed: float | None = None, call: NodeCall) -> Tensor:
    return _placed(default_generator().uniform(x.shape, low, high), _like(x, dtype), call)


@operator("RandomNormal")
def random_normal(*, shape: tuple[int, ...], dtype: int = FLOAT, mean: float = 0.0, scale: float = 1.0,
                  seed: float | None = None, call: NodeCall) -> Tensor:
    return _placed(default_generator().normal(shape, mean, scale), dtype_of(dtype), call)


@operator("RandomNormalLike")
def random_normal_like(x: Any, *, dtype: int | None = None, mean: float = 0.0, scale: float = 1.0,
                       seed: float | None = None, call: NodeCall) -> Tensor:
    return _placed(default_generator().normal(x.shape, mean, scale), _like(x, dtype), call)


@operator("Bernoulli", since=15)
def bernoulli(x: Tensor, *, dtype: int | None = None, seed: float | None = None, call: NodeCall) -> Tensor:
    """1 with the probability that x says."""
    drawn = nnc.asarray(default_generator().uniform(x.shape), device=call.device)
    return nnc.astype(nnc.less(drawn, nnc.astype(x, np.float32)), dtype_of(dtype) if dtype else x.dtype)


@operator("Multinomial")
def multinomial(x: Tensor, *, dtype: int = INT32, sample_size: int = 1, seed: float | None = None,
                call: NodeCall) -> Tensor:
    """Class numbers drawn by unnormalised logarithms of probabilities, `sample_size` for each row."""
    drawn = default_generator().categorical(nnc.expand_dims(x, 1), (x.shape[0], sample_size))
    return _placed(drawn, dtype_of(dtype), call)
