"""Training holds no more after many steps than after a few: values, their histories and their arrays, in every mode."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.values import history
from nnc_core.values.value import Step, Value

MODES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "eager": nullcontext, "deferred": nnc.deferred, "forgetting": lambda: nnc.deferred(keep_graph=False)}
X = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)


def held() -> tuple[int, int, int]:
    """Values, steps, and bytes of arrays of more than a few elements."""
    gc.collect()
    values, steps, arrays = 0, 0, {}
    for o in gc.get_objects():  # without what was frozen
        values += isinstance(o, Value)
        steps += isinstance(o, Step)
        if isinstance(o, Value) and isinstance(o.array, np.ndarray) and o.array.size > 8:
            arrays[o.array.__array_interface__["data"][0]] = o.array.nbytes
    return values, steps, sum(arrays.values())


def functional() -> Iterator[nnc.Tensor]:
    x, w, b = nnc.asarray(X), nnc.zeros((32, 1)), nnc.zeros(())
    step = nnc.value_and_grad(lambda w, b: nnc.mean((nnc.tanh(x @ w) + b - 1) ** 2), (0, 1))
    while True:
        loss, (to_w, to_b) = step(w, b)
        w, b = w - 0.1 * to_w, b - 0.1 * to_b
        yield loss


def by_variables() -> Iterator[nnc.Tensor]:
    x, w = nnc.asarray(X), nnc.variable(nnc.zeros((32, 1)))
    while True:
        loss = nnc.mean((nnc.tanh(x @ w) - 1) ** 2)
        loss.backward()
        with nnc.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        yield loss.detach()


def by_pulling() -> Iterator[nnc.Tensor]:
    x, w = nnc.asarray(X), nnc.zeros((32, 1))
    while True:
        loss, pull = nnc.vjp(lambda w: nnc.mean((nnc.tanh(x @ w) - 1) ** 2), w)
        w = w - 0.1 * pull(nnc.ones(()))[0]
        yield loss


def network(kind: Any, eager: bool) -> Iterator[nnc.Tensor]:
    nnc.manual_seed(0)
    net = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm(16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1))
    loss = nn.value_and_grad(net, lambda x: nnc.mean((net(x) - 1) ** 2))
    step, x = optim.make_step(loss, kind(net.named_parameters(), 0.01), eager=eager), nnc.asarray(X)
    while True:
        yield step(x)


LOOPS: dict[str, Callable[[], Iterator[nnc.Tensor]]] = {
    "functional": functional, "variables": by_variables, "pulling": by_pulling,
    "SGD": lambda: network(optim.SGD, True), "AdamW": lambda: network(optim.AdamW, True),
    "compiled SGD": lambda: network(optim.SGD, False), "compiled Adam": lambda: network(optim.Adam, False)}


@contextmanager
def nothing_from_before() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", LOOPS)
def test_training_is_flat(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "LONGEST_HISTORY", 2)
    with MODES[mode](), nothing_from_before():
        steps = LOOPS[name]()
        seen = [held() if 20 <= i < 32 or i >= 88 else (0, 0, 0) for i in range(100) if next(steps).item() >= 0]
    # step counts and keys that nobody looks at wait for up to 256 steps; they are a number each
    waiting = 70 * 12 if mode != "eager" and ("SGD" in name or "Adam" in name) else 0
    early, late = seen[20:32], seen[88:]
    for k, slack in enumerate((waiting, waiting, 0)):
        assert max(s[k] for s in late) <= max(s[k] for s in early) + slack, (name, mode, seen[::10])
