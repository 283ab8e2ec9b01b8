"""A run that is saved goes on bit for bit, and a file that does not fit changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import FileFormatError, OperandError, ShapeError, StateError
from nnc_core.data import DataOrder
from nnc_core.dynamic.random.generator import default_generator
from nnc_core.io import MissingFileError
from nnc_core.io.training_state import load_training_state, save_training_state
from tests.nn.network import chosen_device, digits, make_training, small_lenet

pytest.importorskip("safetensors.numpy")


@pytest.fixture(autouse=True)
def _on_device() -> Iterator[None]:
    with nnc.use_device(chosen_device()):
        yield


class Run:
    """A training run with noise from a generator of its own."""

    def __init__(self, mode: str, seed: int) -> None:
        self.model, self.noise = small_lenet(seed), nnc.Generator(seed)
        self.minimiser = optim.Adam(self.model.named_parameters(), 0.01)
        self.step, self.generators = make_training(self.model, self.minimiser, mode), {"noise": self.noise}

    def train(self, first: int, last: int) -> list[bytes]:
        losses = []
        for k in range(first, last):
            x, y = digits(4, seed=k)
            losses.append(self.step(x + self.noise.normal(x.shape), y).numpy().tobytes())
        return losses

    def state(self) -> dict[str, bytes]:
        arrays = {**self.model.state_dict(), **self.minimiser.state_dict(), "noise": self.noise.key.read().numpy()}
        return {name: a.tobytes() for name, a in arrays.items()}


@pytest.mark.parametrize("mode", ["eager", "compiled"])
def test_a_resumed_run_goes_on_bit_for_bit(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    with nnc.config.using(deterministic=True):
        run = Run(mode, 0)
        run.train(0, 2)
        save_training_state(path, run.model, run.minimiser, run.generators, {"epoch": "2"})
        losses, state = run.train(2, 4), run.state()
        for other in (Run(mode, 7), run):  # a fresh one, and the old one turned back after its code was compiled
            assert load_training_state(path, other.model, other.minimiser, other.generators) == {"epoch": "2"}
            assert other.train(2, 4) == losses
            assert other.state() == state


def test_a_file_that_does_not_fit_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.safetensors"
    run = Run("eager", 0)
    save_training_state(path, run.model, run.minimiser)
    other = Run("eager", 1)
    before = other.state()
    with pytest.raises(StateError, match=r"run.safetensors' does not fit: missing random/noise"):
        load_training_state(path, other.model, other.minimiser, other.generators)
    with pytest.raises(StateError, match=r"unexpected minimiser/correction\.first"):
        load_training_state(path, other.model, optim.SGD(other.model.named_parameters(), 0.1))
    wider = nn.Linear(3, 4)
    save_training_state(path, nn.Linear(3, 5), optim.SGD(wider.named_parameters(), 0.1))
    with pytest.raises(ShapeError, match=r"'module/weight' has shape \(3, 5\)"):
        load_training_state(path, wider, optim.SGD(wider.named_parameters(), 0.1))
    assert other.state() == before


def test_missing_and_damaged_files(tmp_path: Path) -> None:
    run = Run("eager", 0)
    before = run.state()
    path = tmp_path / "run.safetensors"
    with pytest.raises(MissingFileError, match="there is no checkpoint"):
        load_training_state(path, run.model, run.minimiser)
    save_training_state(path, run.model, run.minimiser)
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(FileFormatError, match="not a whole checkpoint"):
        load_training_state(path, run.model, run.minimiser)
    assert run.state() == before


def test_saving_does_not_disturb_a_compiled_run(tmp_path: Path) -> None:
    def losses(save: bool) -> Any:
        run = Run("compiled", 0)
        found = run.train(0, 1)
        if save:
            save_training_state(tmp_path / "run.safetensors", run.model, run.minimiser, run.generators)
        return found + run.train(1, 3)

    with nnc.config.using(deterministic=True):
        assert losses(True) == losses(False)


def test_metadata_is_text(tmp_path: Path) -> None:
    model = nn.Linear(1, 1)
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    save_training_state(tmp_path / "a.safetensors", model, minimiser, metadata={"note": "größer"})
    model.weight.write(nnc.zeros((1, 1)))
    assert load_training_state(tmp_path / "a.safetensors", model, minimiser) == {"note": "größer"}
    assert np.any(model.state_dict()["weight"] != 0)


def test_the_default_generator_is_part_of_the_run(tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", nn.Linear(1, 1)
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    generator = nnc.manual_seed(11)
    generator.bits(3)
    save_training_state(path, model, minimiser)
    drawn = generator.bits(5).tolist()
    nnc.manual_seed(12).bits(7)
    load_training_state(path, model, minimiser)
    assert default_generator().bits(5).tolist() == drawn


def test_settings_that_are_numbers_are_part_of_the_run(tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", nn.Linear(1, 1)
    minimiser = optim.SGD(model.named_parameters(), 0.1, momentum=0.5)
    minimiser.learning_rate = 0.025
    save_training_state(path, model, minimiser)
    other = optim.SGD(model.named_parameters(), 0.1, momentum=0.5)
    load_training_state(path, model, other)
    assert (other.learning_rate, other.momentum, other.nesterov) == (0.025, 0.5, False)

    def schedule(step: nnc.Tensor) -> nnc.Tensor:
        return step * 0.0

    scheduled = optim.SGD(model.named_parameters(), schedule, momentum=0.5)
    load_training_state(path, model, scheduled)
    assert scheduled.learning_rate is schedule


def test_the_place_in_the_data_is_part_of_the_run(tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", nn.Linear(1, 1)
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    order = DataOrder(10, 3, seed=1)
    whole = [next(iter(order)).tolist() for _ in range(2)]
    save_training_state(path, model, minimiser, progress=order)
    rest = [b.tolist() for b in order]
    assert len({i for batch in whole + rest for i in batch}) == 9
    other = DataOrder(10, 3, seed=1)
    load_training_state(path, model, minimiser, progress=other)
    assert (other.epoch, other.position) == (0, 2)
    assert [b.tolist() for b in other] == rest
    for wrong in (DataOrder(11, 3, seed=1), DataOrder(10, 3, seed=2)):
        with pytest.raises(StateError, match="the order of examples is another one"):
            load_training_state(path, model, minimiser, progress=wrong)
        assert (wrong.epoch, wrong.position) == (0, 0)
    with pytest.raises(StateError, match="does not fit"):  # the state of other parts: the place stays what it was
        new = DataOrder(10, 3, seed=1)
        load_training_state(path, model, minimiser, {"noise": nnc.Generator(0)}, progress=new)
    assert new.position == 0
    save_training_state(path, model, minimiser)
    with pytest.raises(StateError, match="has no place in the data"):
        load_training_state(path, model, minimiser, progress=other)


def test_what_has_no_state_is_named(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    with pytest.raises(OperandError, match=r"save_training_state: module is int, which has no state(.|\n)*nn.Module"):
        save_training_state(tmp_path / "run", 5, minimiser)  # type: ignore[arg-type]
    with pytest.raises(OperandError, match=r"save_training_state: minimiser is float(.|\n)*optim.Minimiser"):
        save_training_state(tmp_path / "run", model, 0.1)  # type: ignore[arg-type]
    with pytest.raises(MissingFileError, match="load_training_state: there is no"):
        load_training_state(tmp_path / "run", model, minimiser)
