"""`nnc demo` on few digits: what it prints and leaves, in both ways of running; and, slowly, what it promises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from nnc_core.cli import lenet, training
from nnc_core.cli.lenet import LeNet
from nnc_core.cli.training import Epoch
from nnc_core.cli.watching import Bar
from nnc_core.data import load_mnist
from nnc_core.io import load_arrays
from nnc_core.io.training_state import load_training_state
from tests.cli.conftest import Run
from tests.devices import devices

LAST_LINE = re.compile(r"accuracy: (\d{1,3}\.\d) %")


def accuracy_said(output: str) -> float:
    """By the last line, which has exactly that form."""
    found = LAST_LINE.fullmatch(output.splitlines()[-1])
    assert found, output
    return float(found[1])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network of a twelfth of the weights, and no pictures, which are most of the time."""
    monkeypatch.setattr(lenet, "HIDDEN", 64)
    monkeypatch.setattr(import_module("nnc_core.cli.demo"), "_draw", lambda *arguments: None)


def test_one_epoch(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("demo", "--epochs", 1, "--limit", 200, "--out", out)
    assert result.exit_code == 0
    assert 0 <= accuracy_said(result.output) <= 100
    assert re.search(r"\nepoch 1/1  loss \d+\.\d{4}  accuracy \d+\.\d %  \d+\.\d s\n", result.output)
    assert re.search(r"\d+/\d+ -> \d+/\d+ \(Owl", result.output)
    assert re.search(r"peak .* bound .* sum ", result.output)
    assert sorted(file.name for file in out.iterdir()) == [
        "curve.svg", "lenet-memory.svg", "lenet.safetensors", "lenet.svg"]
    assert all("<svg" in file.read_text() for file in out.glob("*.svg"))


@pytest.mark.usefixtures("small")
def test_the_checkpoint_is_the_trained_network(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--epochs", 1, "--limit", 200, "--out", tmp_path)
    trained, digits = LeNet(seed=5), load_mnist("sample")
    metadata = load_training_state(tmp_path / "lenet.safetensors", trained.module, trained.minimiser)
    assert metadata == {"network": "lenet", "epoch": "1"}
    found = trained.accuracy(digits.test_images[:200], digits.test_labels[:200])
    assert f"{100 * found:.1f}" == f"{accuracy_said(result.output):.1f}"


@pytest.mark.usefixtures("small")
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(run: Run, tmp_path: Path) -> None:
    weights = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        run("demo", "--epochs", 1, "--limit", 100, "--seed", seed, "--out", tmp_path / name)
        weights.append(load_arrays(tmp_path / name / "lenet.safetensors")[0]["module/1.kernel"])
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_eager(run: Run, tmp_path: Path) -> None:
    result = run("demo", "--epochs", 1, "--limit", 100, "--eager", "--out", tmp_path)
    assert result.exit_code == 0
    accuracy_said(result.output)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["curve.svg", "lenet.safetensors"]


@pytest.mark.usefixtures("small")
def test_an_interrupted_run_leaves_its_last_checkpoint(run: Run, tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> Iterator[Epoch]:
        yield Epoch(1, 2.0, 0.1, 1.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "train", interrupted)
    result = run("demo", "--limit", 100, "--out", tmp_path)
    assert result.exit_code == 130
    assert result.output.endswith("lenet.safetensors is of epoch 1\n")
    assert load_arrays(tmp_path / "lenet.safetensors")[1]["epoch"] == "1"


@pytest.mark.usefixtures("small")
def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(run: Run, tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("demo", "--limit", 300, "--epochs", 2, "--out")
    whole = run(*options, tmp_path / "whole")
    with monkeypatch.context() as patch:
        steps = iter(range(6))

        def step(bar: Bar, loss: float | None) -> None:
            if next(steps) == 4:  # the second of the second epoch: its checkpoint is not written
                raise KeyboardInterrupt

        patch.setattr(Bar, "step", step)
        broken = run(*options, tmp_path / "broken", "--checkpoint", 1)
    assert broken.exit_code == 130
    assert broken.output.endswith("lenet.safetensors is of epoch 1 and step 1 of the next\n")
    resumed = run(*options, tmp_path / "broken", "--resume")
    assert re.search(r"resumed .*lenet.safetensors: epoch 2, step 1\n", resumed.output)
    assert accuracy_said(resumed.output) == accuracy_said(whole.output)
    a, b = (load_arrays(tmp_path / name / "lenet.safetensors")[0] for name in ("whole", "broken"))
    assert {name: x.tobytes() for name, x in a.items()} == {name: x.tobytes() for name, x in b.items()}
    lines = [re.sub(r"  [\d.]+ s$", "", line) for line in whole.output.splitlines() if line.startswith("epoch 2")]
    assert lines
    assert lines[0] in resumed.output  # the mean loss counts the steps before the interruption


@pytest.mark.usefixtures("small")
def test_resuming_what_is_not_there_or_was_started_otherwise(run: Run, tmp_path: Path) -> None:
    first = run("demo", "--limit", 100, "--epochs", 1, "--out", tmp_path, "--resume")
    assert "lenet.safetensors: starting from the beginning" in first.output
    other = run("demo", "--limit", 100, "--epochs", 1, "--seed", 1, "--out", tmp_path, "--resume")
    assert other.exit_code == 1
    assert "started with other options: seed 0 instead of 1" in other.output
    again = run("demo", "--limit", 100, "--epochs", 1, "--out", tmp_path, "--resume")  # there is nothing left to do
    assert accuracy_said(again.output) == accuracy_said(first.output)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_promise(run: Run, tmp_path: Path, seed: int) -> None:
    result = run("demo", "--seed", seed, "--out", tmp_path)
    assert accuracy_said(result.output) >= 97.0


@pytest.mark.skipif("opencl:0" not in devices(), reason="no OpenCL device works")
def test_another_device_is_used_to_the_end(run: Run, tmp_path: Path) -> None:
    output = run("demo", "--device", "opencl", "--epochs", 1, "--limit", 100, "--out", tmp_path).output
    assert "device: opencl:0" in output
    accuracy_said(output)
    assert {"lenet.svg", "curve.svg", "lenet.safetensors"} <= {file.name for file in tmp_path.iterdir()}
