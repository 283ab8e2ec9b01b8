"""A resumed run takes the code that the first one chose: backends pinned by a checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError, ResumeWarning
from nnc_core.builtin.flavours import Flavour
from nnc_core.builtin.strict import StrictDevice
from nnc_core.device import CommandBackend, Kernel
from nnc_core.device.host import HostKernel
from nnc_core.io import load_training_state, save_training_state
from nnc_core.random.generator import default_generator
from nnc_core.stacks import stack_for

pytest.importorskip("safetensors.numpy")


class Tanh(CommandBackend):
    """Tanh with an error of its own, so that its results tell it from others."""

    def __init__(self, device: Any, name: str, error: float, refusal: str | None = None) -> None:
        self.device, self.name, self.error, self.refusal = device, name, np.float32(error), refusal

    def refuse(self, command: Command) -> str | None:
        return self.refusal

    def prepare(self, command: Command) -> Kernel:
        return HostKernel(self.device, lambda x: np.tanh(x) * (1 + self.error), command)


class Machine(StrictDevice):
    """A device whose plugins are given as (name, error[, refusal])."""

    def __init__(self, *plugins: Any) -> None:
        super().__init__(Flavour("machine"))
        self.offered = [Tanh(self, *plugin) for plugin in plugins]

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return self.offered if name == "tanh" else ()


class Run:
    def __init__(self, *plugins: Any, compiled: bool = True) -> None:
        with nnc.use_device(stack_for(Machine(*plugins))):
            self.model = nn.Linear(3, 2, generator=nnc.Generator(0))
            self.minimiser = optim.SGD(self.model.named_parameters(), 0.1, momentum=0.5)
            both = nn.value_and_grad(self.model, lambda x: nnc.sum(nnc.tanh(self.model(x))))
            self.step = optim.make_step(both, self.minimiser, eager=not compiled)
            self.x = nnc.asarray(np.linspace(-1, 2, 12, dtype=np.float32).reshape(4, 3))

    def train(self, steps: int) -> list[float]:
        return [self.step(self.x).item() for _ in range(steps)]


OLD, NEW = ("old", 1e-3), ("new", -1e-3)


@pytest.fixture(params=[True, False], ids=["compiled", "eager"])
def compiled(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def saved(tmp_path: Path, compiled: bool) -> tuple[Path, list[float]]:
    """A checkpoint of a machine with the old plugin alone, and how that run went on."""
    run, path = Run(OLD, compiled=compiled), tmp_path / "run.safetensors"
    run.train(2)
    save_training_state(path, run.model, run.minimiser)
    return path, run.train(3)


def resumed(path: Path, run: Run, **options: Any) -> list[float]:
    load_training_state(path, run.model, run.minimiser, **options)
    return run.train(3)


def test_a_plugin_that_was_added_changes_nothing(saved: tuple[Path, list[float]], compiled: bool) -> None:
    path, losses = saved
    assert resumed(path, Run(NEW, OLD, compiled=compiled), exact=True) == losses
    assert resumed(path, Run(NEW, OLD, compiled=compiled)) == losses
    assert resumed(path, Run(NEW, OLD, compiled=compiled), exact=False) != losses  # the choice does matter


def test_a_plugin_for_what_had_a_loop_nest_changes_nothing(tmp_path: Path, compiled: bool) -> None:
    run, path = Run(compiled=compiled), tmp_path / "run.safetensors"
    run.train(1)
    save_training_state(path, run.model, run.minimiser)
    assert resumed(path, Run(NEW, compiled=compiled), exact=True) == run.train(3)


def test_a_plugin_that_is_gone_is_one_warning(saved: tuple[Path, list[float]], compiled: bool) -> None:
    path, losses = saved
    run = Run(NEW, compiled=compiled)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert resumed(path, run) != losses
    assert [w.category for w in told] == [ResumeWarning]
    assert "tanh has no backend 'old' any more; the run goes on, not bit for bit" in str(told[0].message)


def test_a_plugin_that_is_gone_is_an_error_where_the_run_shall_be_exact(saved: tuple[Path, list[float]]) -> None:
    path, _ = saved
    run = Run(NEW)
    before = run.model.state_dict()
    with pytest.raises(NotSupportedError, match="tanh has no backend 'old' any more") as caught:
        load_training_state(path, run.model, run.minimiser, exact=True)
    assert "exact=False" in str(caught.value)
    with nnc.config.using(deterministic=True), pytest.raises(NotSupportedError, match="bit for bit"):
        load_training_state(path, run.model, run.minimiser)
    assert all(np.array_equal(x, run.model.state_dict()[name]) for name, x in before.items())


def test_a_plugin_that_refuses_now(saved: tuple[Path, list[float]], compiled: bool) -> None:
    path, losses = saved
    refusing = ("old", 1e-3, "licence expired")
    with pytest.raises(NotSupportedError, match=r"(?s)ran by 'old' .* cannot now: old: licence expired.*exact=False"):
        resumed(path, Run(refusing, NEW, compiled=compiled), exact=True)
    with pytest.warns(ResumeWarning, match="licence expired; the run goes on by other code"):
        assert resumed(path, Run(refusing, NEW, compiled=compiled)) != losses
    resumed(path, Run(refusing, NEW, compiled=compiled), exact=False)


def test_what_is_compiled_already_is_compiled_anew(saved: tuple[Path, list[float]], compiled: bool) -> None:
    path, losses = saved
    run = Run(NEW, OLD, compiled=compiled)
    run.train(1)
    assert resumed(path, run, exact=True) == losses


def test_what_is_compiled_alike_stays(saved: tuple[Path, list[float]], compiled: bool) -> None:
    path, losses = saved
    run = Run(OLD, compiled=compiled)
    run.train(1)
    assert resumed(path, run, exact=True) == losses
    assert not compiled or run.step.traces == 1


def test_where_the_default_generator_is_does_not_matter(tmp_path: Path, compiled: bool) -> None:
    run, path, key = Run(OLD, compiled=compiled), tmp_path / "run.safetensors", default_generator().key
    home = key.stack
    key.move("strict-poison:0")
    try:
        save_training_state(path, run.model, run.minimiser)
        key.move("strict:0")
        load_training_state(path, run.model, run.minimiser, exact=True)
        run.model.to("strict-poison:0")
        with pytest.warns(ResumeWarning, match="it was on strict-machine:0, it is now on strict-poison:0"):
            load_training_state(path, run.model, run.minimiser)
    finally:
        key.move(home)


def test_another_device(saved: tuple[Path, list[float]]) -> None:
    path, _ = saved
    with nnc.use_device("strict:0"):
        model = nn.Linear(3, 2)
        minimiser = optim.SGD(model.named_parameters(), 0.1, momentum=0.5)
    with pytest.warns(ResumeWarning, match="it was on .*strict-machine:0.* it is now on strict:0"):
        load_training_state(path, model, minimiser)
    load_training_state(path, model, minimiser, exact=False)
