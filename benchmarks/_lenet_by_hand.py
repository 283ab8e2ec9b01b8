"""The LeNet training step written in NumPy by hand: im2col, one product a layer, gradients worked out on paper."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
RATE, EPSILON, KEPT = np.float32(0.005), np.float32(1e-10), np.float32(0.9)


def weights(rng: np.random.Generator) -> dict[str, Array]:
    def normal(*shape: int) -> Array:
        return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)

    return {"conv": normal(25, 32), "conv bias": np.zeros(32, np.float32),
            "fc1": normal(6272, 1024), "fc1 bias": np.zeros(1024, np.float32),
            "fc2": normal(1024, 10), "fc2 bias": np.zeros(10, np.float32)}


class ByHand:
    """Weights and Adagrad's squares; `step` trains on one batch."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.w = weights(self.rng)
        self.squares = {k: np.zeros_like(v) for k, v in self.w.items()}

    def step(self, images: Array, labels: Array) -> float:
        n = len(images)
        scaled = np.pad(images[..., 0].astype(np.float32) / np.float32(256), ((0, 0), (2, 2), (2, 2)))
        columns = np.lib.stride_tricks.sliding_window_view(scaled, (5, 5), (1, 2)).reshape(n * 784, 25)
        z = columns @ self.w["conv"] + self.w["conv bias"]
        blocks = self._blocks(np.maximum(z, 0), n)
        winner = blocks.argmax(-1)[..., None]
        pooled = np.take_along_axis(blocks, winner, -1)[..., 0]
        mask = (self.rng.random(pooled.shape, dtype=np.float32) < KEPT) / KEPT
        dropped = (pooled * mask).reshape(n, 6272)
        hidden = np.maximum(dropped @ self.w["fc1"] + self.w["fc1 bias"], 0)
        loss, g = self._loss(hidden @ self.w["fc2"] + self.w["fc2 bias"], labels)
        grads = {"fc2": hidden.T @ g, "fc2 bias": g.sum(0)}
        g = (g @ self.w["fc2"].T) * (hidden > 0)
        grads |= {"fc1": dropped.T @ g, "fc1 bias": g.sum(0)}
        g = ((g @ self.w["fc1"].T).reshape(pooled.shape) * mask).astype(np.float32)
        spread = np.zeros_like(blocks)
        np.put_along_axis(spread, winner, g[..., None], -1)
        g = spread.reshape(n, 14, 14, 32, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(n * 784, 32) * (z > 0)
        self._update(grads | {"conv": columns.T @ g, "conv bias": g.sum(0)})
        return loss

    @staticmethod
    def _blocks(a: Array, n: int) -> Array:
        """(n, 14, 14, 32, 4): the four elements of each pooling window last."""
        return a.reshape(n, 14, 2, 14, 2, 32).transpose(0, 1, 3, 5, 2, 4).reshape(n, 14, 14, 32, 4)

    @staticmethod
    def _loss(logits: Array, labels: Array) -> tuple[float, Array]:
        shifted = logits - logits.max(1, keepdims=True)
        logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
        p, rows = np.exp(logarithms), np.arange(len(labels))
        loss = float(-logarithms[rows, labels].mean())
        p[rows, labels] -= 1
        return loss, p / np.float32(len(labels))

    def _update(self, grads: dict[str, Array]) -> None:
        for k, w in self.w.items():
            self.squares[k] += grads[k] * grads[k]
            w -= RATE * grads[k] / (np.sqrt(self.squares[k]) + EPSILON)
