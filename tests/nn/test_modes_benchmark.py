"""The benchmark of modes: every mode evaluates the same network, and the table has all that it promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks import modes
from benchmarks._modes import MODES, Evaluation
from benchmarks._modes_networks import WORKS, Inference, Work, inference
from nnc_core.nn import zoo


def test_a_training_step_is_the_same_in_every_mode() -> None:
    def three_steps(mode: Callable[[list[Work]], Evaluation]) -> list[float]:
        run, _ = mode([WORKS["LeNet"]()])
        return [float(run()[0].item()) for _ in range(3)]

    losses = [three_steps(mode) for mode in MODES.values()]
    assert losses[0][0] != losses[0][1], "it learns"
    np.testing.assert_allclose(losses, [losses[0]] * len(MODES), rtol=1e-4)


def test_an_inference_is_the_same_in_every_mode_and_compiled_gives_the_network_up() -> None:
    def small() -> Inference:
        return inference(lambda classes: zoo.resnet18(classes, width=8), 5, 32)

    held = {name: [small()] for name in MODES}
    found = {name: mode(held[name]) for name, mode in MODES.items()}
    expected, *others = [run()[0].numpy() for run, _ in found.values()]
    for other in others:
        np.testing.assert_allclose(other, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert not held["compiled"]
    known = found["compiled"].counts
    assert known["optimised"][0] < known["written"][0] and known["planned"] > 0


def test_the_table_of_the_smallest_network(capsys: Any) -> None:
    modes.table(["LeNet"], rounds=1)
    said = capsys.readouterr().out
    for word in ("eager", "deferred", "compiled", "LeNet", "planned", "optimised"):
        assert word in said


def test_a_network_that_there_is_not() -> None:
    with pytest.raises(SystemExit, match="no network LeNot; there are LeNet, "):
        modes.main(["LeNot"])
