"""What the cases of the eager benchmark share: calls, operands, formulas that NumPy has no function for."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import nnc_core as nnc

LARGE = 1_000_000


class Case(NamedTuple):
    """One call, ours and NumPy's."""

    name: str
    ours: Callable[[], object]
    numpy: Callable[[], object]


class Operands:
    """Arrays of a size, or matrices of about as many elements: NumPy's, and the tensors of the same elements."""

    def __init__(self, size: int) -> None:
        rng = np.random.default_rng(1)
        self.size, rows, self.side = size, 2 if size < 100 else 1000, math.isqrt(size)
        self.a, self.b = (rng.standard_normal(size, np.float32) for _ in range(2))
        self.i = rng.integers(0, size, size)
        self.m, self.square = self.a.reshape(rows, -1), self.a[: self.side**2].reshape(self.side, -1)
        self.g, self.bits = self.i.astype(np.int32), self.a > 0
        self.small, self.far, self.ordered = self.g % 64, self.a * 100, np.sort(self.a)
        self.a64, self.half, self.i8 = self.a.astype(np.float64), self.a.astype(np.float16), self.small.astype(np.int8)
        self.bf, self.positive = self.a.astype(ml_dtypes.bfloat16), np.abs(self.a) + 0.5
        self.v1, self.v2, self.kernel = self.a[: self.side], self.b[: self.side], self.a[:5]
        self.rng, self.drawn = rng, nnc.Generator(1)
        self.order, self.names = np.argsort(self.m, 1), np.arange(min(self.m.shape))
        self.packed = np.packbits(self.bits)
        self.unit, self.above = np.tanh(self.a) * np.float32(0.99), self.positive + 1
        self.share, self.m1 = self.unit * np.float32(0.5) + np.float32(0.5), self.a.reshape(1, -1)
        self.cube, self.table = self.a.reshape(2, 2, -1), self.a[: size // 2 * 2].reshape(-1, 2)
        self.parity = self.small % 2
        self.spectrum, self.spectra = np.fft.rfft(self.a), np.fft.rfft2(self.m)
        order = min(self.side, 128)
        self.matrix = self.square[:order, :order] + order * np.eye(order, dtype=np.float32)
        self.definite, self.row = self.matrix @ self.matrix.T, self.a[:order].copy()

    def __getattr__(self, name: str) -> nnc.Tensor:
        """The tensor `t_a` of the array `a`."""
        if not name.startswith("t_"):
            raise AttributeError(name)
        tensor = nnc.asarray(getattr(self, name[2:]))
        setattr(self, name, tensor)
        return tensor


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(a: Any) -> Any:
    moved = a - a.max(-1, keepdims=True)
    return moved - np.log(np.exp(moved).sum(-1, keepdims=True))


def logsumexp(a: Any) -> Any:
    top = a.max()
    return np.log(np.exp(a - top).sum()) + top


def layer_norm(a: Any) -> Any:
    centred = a - a.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


ERF = np.vectorize(math.erf, otypes=[np.float32])
LGAMMA = np.vectorize(math.lgamma, otypes=[np.float32])


def gelu(a: Any) -> Any:
    return 0.5 * a * (1 + np.tanh(np.float32(0.7978846) * (a + np.float32(0.044715) * a * a * a)))


def cast_ours(t: nnc.Tensor, target: str) -> Callable[[], object]:
    return lambda: t.astype(target)


def cast_numpy(host: Any, target: str) -> Callable[[], object]:
    dtype = ml_dtypes.bfloat16 if target == "bfloat16" else target

    def cast() -> object:
        with np.errstate(all="ignore"):
            return host.astype(dtype)

    return cast
