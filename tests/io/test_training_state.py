"""A run that is saved goes on bit for bit, and a file that does not fit changes nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import FileFormatError, OperandError, ShapeError, StateError
from nnc_core.data import DataOrder
from nnc_core.io import MissingFileError, load_arrays, save_arrays
from nnc_core.io.training_header import KEY
from nnc_core.io.training_state import load_training_state, save_training_state
from nnc_core.optim import clipping
from nnc_core.optim.owl import learning_rate
from nnc_core.random.generator import default_generator
from nnc_core.stacks import stack_for
from tests.io.edits import edits
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
    with pytest.raises(StateError, match=r"is that of Adam, the minimiser is SGD"):
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
    with pytest.raises(StateError, match=r"learning_rate was a number and is a function(.|\n)*set after loading"):
        load_training_state(path, model, scheduled)
    save_training_state(path, model, scheduled)
    other = optim.SGD(model.named_parameters(), lambda step: step, momentum=0.5)
    load_training_state(path, model, other)
    assert callable(other.learning_rate)


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


KINDS: dict[str, Any] = {
    "Adam": lambda p: optim.Adam(p, 0.1), "AdamW": lambda p: optim.AdamW(p, 0.1, weight_decay=0.0),
    "NAdam": lambda p: optim.NAdam(p, 0.1), "Adagrad": lambda p: optim.Adagrad(p, 0.1),
    "RMSprop": lambda p: optim.RMSprop(p, 0.1), "Lion": lambda p: optim.Lion(p, 0.1),
    "Accumulated": lambda p: optim.Accumulated(optim.Adam(p, 0.1), 2),
    "Accumulated AdamW": lambda p: optim.Accumulated(optim.AdamW(p, 0.1), 2),
    "Combined": lambda p: optim.Combined(optim.Adam(p, 0.1)),
    "Combined AdamW": lambda p: optim.Combined(optim.AdamW(p)),
    "clipped": lambda p: optim.Adam(p, 0.1, clipping=clipping.GlobalNorm(1.0)),
    "clipped further": lambda p: optim.Adam(p, 0.1, clipping=clipping.GlobalNorm(0.5)),
    "skipping": lambda p: optim.Adam(p, 0.1, nonfinite="skip"),
    "some decay": lambda p: optim.Adam(p, 0.1, decays=lambda name, cell: False),
    "scheduled": lambda p: optim.Adam(p, optim.schedules.Exponential(0.1, 0.9)),
    "scheduled otherwise": lambda p: optim.Adam(p, optim.schedules.Exponential(0.1, 0.8)),
    "Descent": lambda p: optim.owl.Descent(p, learning_rate.Adagrad(0.1)),
    "Descent by RMSprop": lambda p: optim.owl.Descent(p, learning_rate.RMSprop(0.1)),
    "groups": lambda p: optim.Adam([optim.Group({"weight": p["weight"]}, learning_rate=0.5),
                                    optim.Group({"bias": p["bias"]})], 0.1),
    "other groups": lambda p: optim.Adam([optim.Group({"bias": p["bias"]}, learning_rate=0.5),
                                          optim.Group({"weight": p["weight"]})], 0.1),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_goes_into_the_minimiser_that_it_is_of_and_no_other(kind: str, tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", nn.Linear(2, 2)
    save_training_state(path, model, KINDS[kind](model.named_parameters()))
    load_training_state(path, model, KINDS[kind](model.named_parameters()))
    for other in KINDS.keys() - {kind}:
        minimiser = KINDS[other](model.named_parameters())
        numbers = minimiser.numbers()
        with pytest.raises(StateError, match=r"(?s)that of .*(the minimiser is|other settings: .* was .* and is )"):
            load_training_state(path, model, minimiser)
        assert minimiser.numbers() == numbers


def test_numpys_numbers_and_pythons_are_the_same_setting(tmp_path: Path) -> None:
    path, model = tmp_path / "run.safetensors", nn.Linear(2, 2)
    save_training_state(path, model, optim.SGD(model.named_parameters(), np.float32(0.5)))  # type: ignore[arg-type]
    other = optim.SGD(model.named_parameters(), 0.1, clipping=None)
    load_training_state(path, model, other)
    assert other.learning_rate == 0.5


def test_descriptions_that_cannot_be_are_one_clear_error(tmp_path: Path) -> None:
    stack_for("cpu:0").engine.decider._used.clear()  # else each of some thousand commands of other tests is edited
    path, model = tmp_path / "run.safetensors", nn.Linear(2, 2)
    minimiser, order = optim.SGD(model.named_parameters(), 0.1, momentum=0.5), DataOrder(10, 3, seed=1)
    progress = optim.Progress(minimiser, 2, batch=1, losses=[1.0])
    for place in (order, progress):
        save_training_state(path, model, minimiser, metadata={"note": "mine"}, progress=place)
        arrays, metadata = load_arrays(path)
        before = {**model.state_dict(), **minimiser.state_dict()}, minimiser.numbers(), place.state_dict()
        refused = 0
        for what, edited in edits(json.loads(metadata[KEY])):
            if place is progress and "progress" not in what:
                continue
            save_arrays(path, arrays, {"note": "mine", KEY: json.dumps(edited)})
            try:
                load_training_state(path, model, minimiser, progress=place, exact=False)
            except (FileFormatError, StateError) as error:
                refused += 1
                assert "load_training_state: " in str(error), what
                now = {**model.state_dict(), **minimiser.state_dict()}, minimiser.numbers(), place.state_dict()
                now[2].pop("seconds", None), before[2].pop("seconds", None)
                assert now[1:] == before[1:], what
            else:  # another learning rate, another place
                minimiser.take_numbers(before[1])
                place.load_state_dict({"seconds": 0.0, **before[2]} if place is progress else before[2])
        assert refused > 50
    for text in ("", "{", "null", "[" * 9999):
        save_arrays(path, arrays, {KEY: text})
        with pytest.raises(FileFormatError, match="description of the run"):
            load_training_state(path, model, minimiser)
    save_arrays(path, arrays)
    with pytest.raises(FileFormatError, match="no description of a run"):
        load_training_state(path, model, minimiser)
