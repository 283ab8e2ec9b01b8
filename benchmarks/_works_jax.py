"""The works in JAX, compiled, with state that is given up at each step."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks._works import (
    CHAIN,
    CHAIN_SIZE,
    LENET_BATCH,
    LSTM_BATCH,
    LSTM_LENGTH,
    LSTM_SIZE,
    MLP_BATCH,
    RATE,
    ROWS,
    Kept,
)

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
lax = jax.lax

Step = Callable[[], object]
Forward = Callable[[Any, Any, Any], Any]
"""(parameters, inputs, key) -> logits."""


def make(work: str, variant: str) -> Step | None:
    name, _, size = work.rpartition(" ")
    if size in ROWS:
        return waited(jax.jit(ELEMENTWISE[name]), *[uniform(*ROWS[size]) + 0.1 for _ in range(4)])
    if work == "chain of 200":
        return waited(jax.jit(chained), uniform(CHAIN_SIZE))
    if work == "call with 10 arguments":
        return waited(jax.jit(lambda *xs: sum(xs[1:], xs[0])), *[uniform(8) for _ in range(10)])
    if work not in NETWORKS:
        return None
    forward, parameters, shape = NETWORKS[work]
    return training(forward, {k: uniform(*s) * 0.1 for k, s in parameters.items()}, uniform(*shape))


def uniform(*shape: int) -> Any:
    return jnp.asarray(np.random.default_rng(len(shape)).random(shape, dtype=np.float32))


def waited(f: Callable[..., Any], *arguments: Any) -> Step:
    return Kept(lambda *xs: jax.block_until_ready(f(*xs)), *arguments)


def training(forward: Forward, parameters: Any, x: Any) -> Step:
    y = jnp.asarray(np.random.default_rng(0).integers(0, 10, len(x)))

    def loss_of(p: Any, key: Any) -> Any:
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(forward(p, x, key)), y[:, None], 1))

    @partial(jax.jit, donate_argnums=0)
    def update(state: Any, key: Any) -> Any:
        p, squares = state
        loss, g = jax.value_and_grad(loss_of)(p, key)
        squares = {k: squares[k] + g[k] ** 2 for k in p}
        return ({k: p[k] - RATE * g[k] / (jnp.sqrt(squares[k]) + 1e-10) for k in p}, squares), loss

    kept = [(parameters, {k: jnp.zeros_like(v) for k, v in parameters.items()}), jax.random.key(0)]

    def step() -> float:
        kept[1], key = jax.random.split(kept[1])
        kept[0], loss = update(kept[0], key)
        return float(loss)

    return step


def lenet(p: Any, x: Any, key: Any) -> Any:
    h = jax.nn.relu(lax.conv_general_dilated(x, p["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                    + p["conv bias"])
    h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    h = jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0.0).reshape(len(x), -1)
    return jax.nn.relu(h @ p["fc1"] + p["fc1 bias"]) @ p["fc2"] + p["fc2 bias"]


def mlp(p: Any, x: Any, key: Any) -> Any:
    for k in (1, 2):
        x = jax.nn.relu(x @ p[f"w{k}"] + p[f"b{k}"])
    return x @ p["w3"] + p["b3"]


def lstm(p: Any, x: Any, key: Any) -> Any:
    def cell(state: Any, xt: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(xt @ p["w"] + h @ p["u"] + p["b"], 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zero = jnp.zeros((len(x), LSTM_SIZE))
    (h, _), _ = lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1))
    return h @ p["head"] + p["head bias"]


def chained(x: Any) -> Any:
    y = x
    for k in range(CHAIN // 2):
        y = (y + x) * (0.5 if k % 2 else 0.51)
    return y


def layer_norm(a: Any, *_: Any) -> Any:
    centred = a - jnp.mean(a, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def adam(w: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - 0.001 * m / (jnp.sqrt(v) + 1e-8), m, v


ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "tanh(a*b+c)*d": lambda a, b, c, d: jnp.tanh(a * b + c) * d,
    "gelu": lambda a, *_: jax.nn.gelu(a, approximate=False),
    "softmax": lambda a, *_: jax.nn.softmax(a, axis=-1),
    "layer norm": layer_norm,
    "adam": adam,
}
Shapes = dict[str, tuple[int, ...]]
NETWORKS: dict[str, tuple[Forward, Shapes, tuple[int, ...]]] = {
    "lenet training": (lenet, {"conv": (5, 5, 1, 32), "conv bias": (32,), "fc1": (6272, 1024), "fc1 bias": (1024,),
                               "fc2": (1024, 10), "fc2 bias": (10,)}, (LENET_BATCH, 28, 28, 1)),
    "mlp training": (mlp, {"w1": (784, 1024), "b1": (1024,), "w2": (1024, 1024), "b2": (1024,), "w3": (1024, 10),
                           "b3": (10,)}, (MLP_BATCH, 784)),
    "lstm training": (lstm, {"w": (LSTM_SIZE, 4 * LSTM_SIZE), "u": (LSTM_SIZE, 4 * LSTM_SIZE), "b": (4 * LSTM_SIZE,),
                             "head": (LSTM_SIZE, 10), "head bias": (10,)}, (LSTM_BATCH, LSTM_LENGTH, LSTM_SIZE)),
}
