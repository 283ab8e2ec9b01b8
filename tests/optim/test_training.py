"""The training step and the loop: the same bits in every mode, and it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import DataError
from tests.nn.network import MODES, digits, make_training, small_lenet


def trained(mode: str, steps: int = 3) -> list[bytes]:
    model = small_lenet()
    minimiser = optim.Adagrad(model.named_parameters(), 0.05)
    step = make_training(model, minimiser, mode)
    losses = [step(*digits(seed=k)) for k in range(steps)]
    state = {**model.state_dict(), **minimiser.state_dict()}
    return [*[x.numpy().tobytes() for x in losses], *[state[name].tobytes() for name in sorted(state)]]


def test_eager_deferred_and_compiled_training_agree_bit_for_bit() -> None:
    with nnc.config.using(deterministic=True):
        found = {mode: trained(mode) for mode in MODES}
    assert found["eager"] == found["deferred"]
    assert found["eager"] == found["compiled"]


def test_the_compiled_step_is_traced_once_and_keeps_dropout_and_the_count_live() -> None:
    model = small_lenet(rate=0.5)
    minimiser = optim.SGD(model.named_parameters(), 0.0)
    step = optim.make_step(nn.value_and_grad(model, lambda x, y: nnc.cross_entropy(model(x), y)), minimiser)
    batch = digits()
    losses = {step(*batch).item() for _ in range(4)}
    assert len(losses) == 4
    assert minimiser.step.read().item() == 4
    assert step.traces == 1


def test_a_regression_is_learnt(rng: np.random.Generator) -> None:
    x = rng.normal(size=(64, 3)).astype(np.float32)
    y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3
    model = nn.Linear(3, 1, generator=nnc.Generator(0))
    minimiser = optim.SGD(model.named_parameters(), 0.1, 0.5)
    step = optim.make_step(nn.value_and_grad(model, lambda x, y: ((model(x) - y) ** 2).mean()), minimiser)
    seen: list[tuple[int, float]] = []
    progress = optim.fit(step, lambda epoch: [(x[k : k + 16], y[k : k + 16]) for k in range(0, 64, 16)], 20,
                         report=lambda now: seen.append((now.batch, now.losses[-1])))
    assert seen == list(enumerate(progress.losses, 1))
    assert progress.losses[-1] < 1e-6
    np.testing.assert_allclose(model.state_dict()["weight"], [[1.0], [-2.0], [0.5]], atol=1e-3)
    np.testing.assert_allclose(model.state_dict()["bias"], [3.0], atol=1e-3)


def test_an_epoch_gives_the_mean_loss_and_a_run_may_start_later() -> None:
    def step(x: Any) -> Any:
        return x.sum()

    assert optim.run_epoch(step, [(np.ones(2, np.float32),), (nnc.full(2, 3.0),)]) == 4.0
    asked: list[int] = []

    def batches(epoch: int) -> list[Any]:
        asked.append(epoch)
        return [(nnc.ones(1),)]

    progress = optim.fit(step, batches, 5, state=optim.Progress(None, batch=3))
    assert progress.losses == [1.0, 1.0]
    assert asked == [3, 4]
    assert optim.fit(step, batches, 6, state=progress).losses == [1.0, 1.0, 1.0]


def test_an_epoch_whose_loss_is_no_number_says_so() -> None:
    with pytest.warns(optim.NonfiniteWarning, match="the mean loss of an epoch of 2 batches is nan"):
        assert np.isnan(optim.run_epoch(lambda x: x, [(nnc.ones(()),), (nnc.full((), np.nan),)]))


def test_an_epoch_without_batches_is_an_error() -> None:
    with pytest.raises(DataError, match="an epoch without batches"):
        optim.run_epoch(lambda: None, iter(()))


def test_an_eager_step_is_plain_python() -> None:
    model = nn.Linear(1, 1)
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    calls = []

    def loss_fn(x: nnc.Tensor) -> nnc.Tensor:
        calls.append(x.is_symbol)
        return model(x).sum()

    step = optim.make_step(nn.value_and_grad(model, loss_fn), minimiser, eager=True)
    step(nnc.ones((1, 1)))
    step(nnc.ones((1, 1)))
    assert calls == [False, False]
