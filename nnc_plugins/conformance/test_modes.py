"""Modes change when nodes run, not what they give: the same bits under `config.deterministic`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_plugins.conformance.case import Array

STEPS = 3
Parameters = dict[str, Any]


def network(p: Parameters, x: Any) -> nnc.Tensor:
    """Convolution, pool and two dense layers: logits."""
    y = nnc.max_pool2d(nnc.relu(nnc.conv2d(x, p["kernel"], padding="SAME") + p["shift"]), 2)
    y = nnc.tanh(y.reshape(y.shape[0], -1) @ p["hidden"])
    return nnc.matmul(y, p["out"])


def loss(p: Parameters, x: Any, labels: Any) -> nnc.Tensor:
    return nnc.cross_entropy(network(p, x), labels)


def step(p: Parameters, x: Any, labels: Any) -> tuple[nnc.Tensor, Parameters]:
    """One step of gradient descent with momentum-free rate 0.1."""
    value, grads = nnc.value_and_grad(loss)(p, x, labels)
    return value, {k: p[k] - 0.1 * grads[k] for k in p}


def _parameters(rng: np.random.Generator) -> dict[str, Array]:
    shapes = {"kernel": (3, 3, 1, 4), "shift": (4,), "hidden": (36, 8), "out": (8, 5)}
    return {k: (rng.uniform(-1, 1, shape) * 0.5).astype(np.float32) for k, shape in shapes.items()}


def _trained(run: Callable[..., Any], rng: np.random.Generator) -> list[Array]:
    p: Parameters = {k: nnc.asarray(x) for k, x in _parameters(rng).items()}
    seen = []
    for _ in range(STEPS):
        x = nnc.asarray(rng.uniform(0, 1, (4, 6, 6, 1)).astype(np.float32))
        value, p = run(p, x, nnc.asarray(rng.integers(0, 5, 4)))
        seen += [value.numpy(), *(p[k].numpy() for k in sorted(p))]
    return seen


def _deferred(*args: Any) -> Any:
    with nnc.deferred():
        value, p = step(*args)
    assert value.is_deferred
    return value, p


def _exported(p: Parameters, x: Any, labels: Any) -> Any:
    with nnc.deferred():
        value, new = step(p, x, labels)
    graph = nnc.export({**p, "x": x, "labels": labels}, {"value": value, **{f"new_{k}": t for k, t in new.items()}})
    results: dict[str, Any] = graph.compile(p["out"].device.id)(**p, x=x, labels=labels)
    return results["value"], {k: results[f"new_{k}"] for k in p}


@pytest.mark.parametrize(("mode", "run"), [("deferred", _deferred), ("jit", nnc.jit(step)), ("export", _exported)],
                         ids=["deferred", "jit", "export"])
def test_training_gives_the_same_bits(on_device: str, rng: np.random.Generator, mode: str, run: Any) -> None:
    seed = rng.integers(2**32)
    with nnc.config.using(deterministic=True):
        wanted = _trained(step, np.random.default_rng(seed))
        found = _trained(run, np.random.default_rng(seed))
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        assert a.tobytes() == b.tobytes(), f"{mode}: value {k} of {len(wanted)} differs by {np.abs(a - b).max()}"
    assert np.isfinite(wanted[0]) and wanted[0] != wanted[len(wanted) // STEPS], "the parameters have changed"


def test_random_numbers_are_the_same_in_every_mode(on_device: str) -> None:
    def draw(generator: nnc.Generator) -> nnc.Tensor:
        return generator.normal((4, 3)) + generator.uniform((3,)) * generator.bernoulli(0.5, (4, 3))

    def three(run: Callable[[nnc.Generator], nnc.Tensor]) -> list[Array]:
        generator = nnc.Generator(7, device=on_device)
        return [run(generator).numpy() for _ in range(3)]

    def deferred(generator: nnc.Generator) -> nnc.Tensor:
        with nnc.deferred():
            return draw(generator)

    with nnc.config.using(deterministic=True):
        wanted = three(draw)
        for other in (three(deferred), three(nnc.jit(draw))):
            assert all(a.tobytes() == b.tobytes() for a, b in zip(other, wanted, strict=True))
    assert not np.array_equal(wanted[0], wanted[1]), "each draw is new"


def test_the_same_bits_as_on_strict(on_device: str) -> None:
    """Integers and uniforms are the same on every device."""
    here, there = (nnc.Generator(3, device=device) for device in (on_device, "strict:0"))
    assert (here.bits((100,)).numpy() == there.bits((100,)).numpy()).all()
    assert (here.uniform((100,)).numpy() == there.uniform((100,)).numpy()).all()
