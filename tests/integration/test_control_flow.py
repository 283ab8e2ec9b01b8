"""A recurrent network trained by a scan, in every mode: the losses are those of the network that Python unrolls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from tests.devices import devices

LENGTH, BATCH, HIDDEN = 6, 8, 12
Losses = list[float]


@pytest.fixture(params=devices())
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with nnc.use_device(request.param), nnc.config.using(deterministic=True):
        yield request.param


def sequences(step: int) -> tuple[nnc.Tensor, nnc.Tensor]:
    """Bits (LENGTH, BATCH, 1), and for each the exclusive or with the one before: what has to be remembered."""
    bits = np.random.default_rng(step).integers(0, 2, (LENGTH, BATCH, 1))
    before = np.concatenate([np.zeros((1, BATCH, 1), np.int64), bits[:-1]])
    return nnc.asarray((2 * bits - 1).astype(np.float32)), nnc.asarray((bits ^ before).astype(np.float32))


class Network(nn.Module):
    """h = tanh(x u + h v + b), and a logit for each step; `scan` goes over the sequence."""

    def __init__(self, scan: Callable[..., Any]) -> None:
        self.into = nn.Linear(1, HIDDEN, generator=nnc.Generator(1))
        self.on = nn.Linear(HIDDEN, HIDDEN, bias=False, generator=nnc.Generator(2))
        self.out = nn.Linear(HIDDEN, 1, generator=nnc.Generator(3))
        self.scan = scan

    def forward(self, xs: nnc.Tensor) -> nnc.Tensor:
        def step(h: nnc.Tensor, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            h = nnc.tanh(self.into(x) + self.on(h))
            return h, self.out(h)

        return self.scan(step, nnc.zeros((xs.shape[1], HIDDEN)), xs)[1]  # type: ignore[no-any-return]


def unrolled(f: Callable[..., Any], carry: Any, xs: nnc.Tensor) -> tuple[Any, nnc.Tensor]:
    """What nnc.scan means."""
    ys = []
    for k in range(int(xs.shape[0])):
        carry, y = f(carry, xs[k])
        ys.append(y)
    return carry, nnc.stack(ys)


def loss_of(model: Network, xs: nnc.Tensor, ys: nnc.Tensor) -> nnc.Tensor:
    return nnc.mean((nnc.sigmoid(model(xs)) - ys) ** 2)


# ---- the ways of training
def by_functions(model: Network, steps: int, compiled: bool = False, lazy: bool = False) -> Losses:
    minimiser = optim.Adam(model.named_parameters(), 0.02)
    step = optim.make_step(nn.value_and_grad(model, lambda *batch: loss_of(model, *batch)), minimiser,
                           eager=not compiled)
    losses = []
    for k in range(steps):
        if lazy:
            with nnc.deferred():
                loss = step(*sequences(k))
        else:
            loss = step(*sequences(k))
        losses.append(loss.item())
    if compiled:
        assert step.traces == 1
    return losses


def eagerly(model: Network, steps: int) -> Losses:
    return by_functions(model, steps)


def deferred(model: Network, steps: int) -> Losses:
    return by_functions(model, steps, lazy=True)


def compiled(model: Network, steps: int) -> Losses:
    """Forward, backward and update as one graph; the loop is run along a tape and back."""
    return by_functions(model, steps, compiled=True)


def hybridized(model: Network, steps: int) -> Losses:
    """The model is compiled, the rest is eager: its way back is compiled too."""
    model.hybridize()
    return by_functions(model, steps)


def dynamic(model: Network, steps: int) -> Losses:
    """`loss.backward()` on the tape of a hybridized model."""
    model.hybridize()
    return _backwards(model, steps)


def dynamic_eager(model: Network, steps: int) -> Losses:
    return _backwards(model, steps)


def _backwards(model: Network, steps: int) -> Losses:
    parameters = model.named_parameters()
    for p in parameters.values():
        p.requires_grad = True
    minimiser, losses = optim.Adam(parameters, 0.02), []
    for k in range(steps):
        for p in parameters.values():
            p.grad = None
        loss = loss_of(model, *sequences(k))
        loss.backward()
        gradients = {name: p.grad for name, p in parameters.items()}
        with nnc.no_grad():
            minimiser.update({name: g for name, g in gradients.items() if g is not None})
        losses.append(loss.item())
    return losses


def symbolic(model: Network, steps: int) -> Losses:
    """An exported graph of loss and gradients, called with the weights; the update is NumPy's gradient descent."""
    xs, ys = sequences(0)
    weights = {name: p.read() for name, p in model.named_parameters().items()}
    with nnc.deferred():
        loss = loss_of(model, xs, ys)
    graph = nnc.stack_for(None).graph.grad(nnc.export({"xs": xs, "ys": ys, **weights}, {"loss": loss}), "loss",
                                           list(weights))
    run, losses = graph.compile(xs.device.id), []
    for k in range(steps):
        xs, ys = sequences(k)
        found = run(xs=xs, ys=ys, **weights)
        weights = {name: nnc.asarray(w.numpy() - np.float32(0.5) * found[f"d{name}"].numpy())
                   for name, w in weights.items()}
        losses.append(found["loss"].item())
    return losses


@pytest.mark.parametrize("train", [eagerly, deferred, compiled, hybridized, dynamic, dynamic_eager])
def test_training_by_a_scan_is_training_the_unrolled_network(device: str, train: Callable[..., Losses]) -> None:
    """To the last bit on every device: the way back of a loop adds up in the order of the unrolled one."""
    wanted = eagerly(Network(unrolled), 5)
    assert train(Network(nnc.scan), 5) == wanted


def test_training_by_an_exported_graph(device: str) -> None:
    assert symbolic(Network(nnc.scan), 4) == symbolic(Network(unrolled), 4)


def test_it_learns() -> None:
    losses = compiled(Network(nnc.scan), 250)
    assert np.mean(losses[-10:]) < 0.05 < 0.2 < losses[0]
