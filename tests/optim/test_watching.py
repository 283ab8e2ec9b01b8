"""What happens around the steps of a run: validation, stopping, checkpoints in files, and a bar to watch."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, DataError, NotSupportedError, StateError
from nnc_core.io import TrainingFile
from nnc_core.optim import clipping
from nnc_core.optim.owl import Params, batch, checkpoint, gradient, learning_rate, loss, momentum, stopping
from nnc_core.optim.runs.progress import UNREAD
from tests.support import to_the_bit

COMPILED = pytest.mark.parametrize("compiled", [False, True])
QUIET = Params(epochs=3, batch=batch.Mini(4), loss=loss.Quadratic(), learning_rate=learning_rate.Adam(0.02),
               momentum=momentum.Standard(0.3), verbosity=False)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 3).astype(np.float32)


def network(seed: int = 0) -> nn.Sequential:
    g = nnc.Generator(seed)
    return nn.Sequential(nn.Linear(3, 4, generator=g), nn.BatchNorm(4), nn.ReLU(), nn.Dropout(0.2, nnc.Generator(seed)),
                         nn.Linear(4, 1, generator=g))


class KilledError(Exception):
    pass


# ---- checkpoints that are files
@COMPILED
def test_a_killed_run_goes_on_bit_for_bit(tmp_path: Any, compiled: bool) -> None:
    """Weights, running statistics, random keys, minimiser, losses and the place in the data."""
    params = replace(QUIET, epochs=4, batch=batch.Sample(4), compiled=compiled, stopping=stopping.Early(50, 20))
    whole = network()
    wanted = optim.train(whole, params, X, Y, validation=(X, Y))

    def run(kill_at: int | None) -> tuple[optim.Progress, nn.Module]:
        model = network()
        file = TrainingFile(tmp_path / "run.safetensors", model)

        def save(now: optim.Progress) -> None:
            file.save(now)
            if now.batch == kill_at:
                raise KilledError

        with_file = replace(params, checkpoint=checkpoint.EveryBatches(2, save))
        return optim.train(model, with_file, X, Y, state=file.resume(params), validation=(X, Y)), model

    for kill_at in (2, 6):
        with pytest.raises(KilledError):
            run(kill_at)
    progress, model = run(None)
    assert progress.batch == wanted.batch == 12
    assert progress.losses == wanted.losses
    assert progress.validation_losses == wanted.validation_losses
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(x, whole.state_dict()[name], err_msg=name)


def test_a_file_that_is_not_there_is_a_new_run(tmp_path: Any) -> None:
    file = TrainingFile(tmp_path / "none", network())
    assert file.resume(QUIET) is None
    assert repr(file).startswith("TrainingFile(")
    with pytest.raises(NotSupportedError, match="does not know the minimiser"):
        file.save(optim.Progress(None))


def test_the_progress_of_something_else_is_refused(tmp_path: Any) -> None:
    with pytest.raises(StateError, match="epoch, order is no progress of a run"):
        optim.Progress(None).load_state_dict({"epoch": 1, "order": 2})
    model = network()
    file = TrainingFile(tmp_path / "run", model)
    optim.train(model, replace(QUIET, checkpoint=checkpoint.EveryEpochs(1, file.save)), X, Y)
    with pytest.raises(StateError, match=r"gradient was GD.. and is FletcherReeves"):
        file.resume(replace(QUIET, learning_rate=learning_rate.Const(), momentum=momentum.Nesterov(),
                            gradient=gradient.FletcherReeves()))


# ---- validation
@COMPILED
def test_validation_is_evaluation(compiled: bool) -> None:
    """Without dropout, by running statistics, which stay; parts that are set to evaluation stay so as well."""
    model = network()
    model[1].eval()
    seen = []
    found: list[float] = []

    def look(now: optim.Progress) -> None:
        seen.append([m.training for m in model])
        if now.batch % 3 == 0:
            found.append(optim.evaluate(model, loss.Quadratic(), X, Y, batch_size=5))

    progress = optim.train(model, replace(QUIET, compiled=compiled), X, Y, validation=(X, Y), report=look)
    np.testing.assert_allclose(progress.validation_losses, found, rtol=1e-5)
    assert seen == [[True, False, True, True, True]] * 9
    np.testing.assert_array_equal(model.state_dict()["1.running_mean"], np.zeros(4))


def test_validation_may_be_a_function() -> None:
    model = network()
    progress = optim.train(model, QUIET, X, Y, validation=lambda: optim.evaluate(model, loss.Quadratic(), X, Y))
    assert len(progress.validation_losses) == 3
    wanted = optim.evaluate(model, loss.Quadratic(), X, Y)
    assert progress.validation_losses[-1] == pytest.approx(wanted)


# ---- one's own loop
def batches(epoch: int) -> Iterator[tuple[Any, Any]]:
    order = np.random.default_rng(epoch).permutation(12)
    return ((X[order[i : i + 4]], Y[order[i : i + 4]]) for i in range(0, 12, 4))


def make_step(model: nn.Module) -> tuple[Any, optim.Minimiser]:
    minimiser = optim.AdamW(model.named_parameters(), 0.05)
    both = nn.value_and_grad(model, lambda x, y: nnc.mean((model(x) - y) ** 2))
    return optim.make_step(both, minimiser), minimiser


def test_fit_validates_stops_and_reports() -> None:
    """The validation data want the opposite: their loss has its least soon."""
    model = network()
    step, _ = make_step(model)
    said: list[str] = []
    progress = optim.fit(step, batches, 50, validate=lambda: optim.evaluate(model, loss.Quadratic(), X, -Y - 20),
                         stopping=stopping.Early(None, 3), report=lambda now: said.append(str(now)))
    assert progress.reason == "the validation loss has not fallen for 3 epochs"
    assert progress.batch == len(progress.losses) == len(progress.validation_losses) == len(said) < 50
    assert f"E: {progress.batch}.0/50" in said[-1]
    with pytest.raises(DataError, match="overfitting shows on validation data"):
        optim.fit(step, batches, 2, stopping=stopping.Early())


def test_fit_goes_on_from_a_file(tmp_path: Any) -> None:
    whole = network()
    step, _ = make_step(whole)
    wanted = optim.fit(step, batches, 4)

    model = network()
    step, minimiser = make_step(model)
    keep = checkpoint.EveryEpochs(
        1, lambda now: nnc.io.save_training_state(tmp_path / "run", model, minimiser, progress=now))
    optim.fit(step, batches, 2, checkpoint=keep)

    again = network(5)
    step, minimiser = make_step(again)
    progress = optim.Progress(None)
    nnc.io.load_training_state(tmp_path / "run", again, minimiser, progress=progress)
    assert optim.fit(step, batches, 4, state=progress).losses == wanted.losses
    for name, x in again.state_dict().items():
        np.testing.assert_array_equal(x, whole.state_dict()[name], err_msg=name)


# ---- progress
def test_losses_are_read_when_somebody_asks() -> None:
    progress = optim.Progress(None, 2)
    progress.begin(600)
    for i in range(600):
        progress.note(nnc.full((), float(i)))
        assert len(progress._unread) < UNREAD
    progress.note(7.0)
    assert progress.losses == [*map(float, range(600)), 7.0]
    assert not progress.goes_on
    assert (progress.epoch, "L: 7.000000[▼]" in str(progress)) == (300.5, True)
    assert "L: nan[-]" in str(optim.Progress(None))


def test_seconds_are_those_of_the_whole_run() -> None:
    progress = optim.Progress(None)
    progress.load_state_dict({**progress.state_dict(), "seconds": 1000.0})
    assert 1000 <= progress.seconds < 2000


@pytest.mark.parametrize("terminal", [False, True])
def test_a_bar_shows_how_a_run_goes(terminal: bool) -> None:
    console = pytest.importorskip("rich.console")
    out = io.StringIO()
    with optim.ProgressBar(console.Console(file=out, force_terminal=terminal, width=100)) as bar:
        progress = optim.train(network(), QUIET, X, Y, report=bar)
        bar._bar.refresh()
    assert (f"loss {progress.losses[-1]:.4f}" in out.getvalue()) == terminal
    assert ("9/9" in out.getvalue()) == terminal


# ---- other minimisers
@to_the_bit
def test_params_with_another_minimiser() -> None:
    params = replace(QUIET, learning_rate=learning_rate.Const(), momentum=None,
                     make_minimiser=lambda ps: optim.LAMB(ps, 0.02, clipping=clipping.GlobalNorm(1.0)))
    found = []
    for compiled in (False, True):
        model = network()
        found.append((optim.train(model, replace(params, compiled=compiled), X, Y).losses, model.state_dict()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    for name, x in found[0][1].items():
        np.testing.assert_allclose(x, found[1][1][name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("given, words", [
    ({"momentum": momentum.Standard()}, "momentum would have no effect beside make_minimiser"),
    ({"learning_rate": 0.1, "clipping": clipping.Norm()}, "learning_rate, clipping would have no effect"),
    ({"gradient": gradient.DaiYuan()}, "gradient would"), ({"nonfinite": "skip"}, "nonfinite would"),
])
def test_settings_that_another_minimiser_would_not_hear_of(given: dict[str, Any], words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        Params(make_minimiser=lambda ps: optim.SGD(ps, 0.1), **given)
