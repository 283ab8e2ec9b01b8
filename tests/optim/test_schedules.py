"""Schedules against loops in Python, eager and live within one compiled step."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, exp, pi
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError
from nnc_core.optim import schedules as s

COUNT = 26


def restarts(t: int) -> float:
    length, start = 3, 0
    while t >= start + length:
        start, length = start + length, 2 * length
    return 0.01 + 0.99 * (1 + cos(pi * (t - start) / length)) / 2


def one_cycle(t: int) -> float:
    first, top, end = 0.04, 0.3 * 20 - 1, 19
    if t <= top:
        return 1.0 + (first - 1.0) * (1 + cos(pi * t / top)) / 2
    share = min(1.0, (t - top) / (end - top))
    return first / 1e4 + (1.0 - first / 1e4) * (1 + cos(pi * share)) / 2


CASES: dict[str, tuple[Any, Callable[[int], float]]] = {
    "constant": (s.Constant(0.3), lambda t: 0.3),
    "exponential": (s.Exponential(0.5, 0.9), lambda t: 0.5 * 0.9**t),
    "exponential-decay": (s.ExponentialDecay(0.5, 0.1), lambda t: 0.5 * exp(-0.1 * t)),
    "inverse-time": (s.InverseTime(0.5, 0.1), lambda t: 0.5 / (1 + 0.1 * t)),
    "linear": (s.Linear(0.1, 0.9, 8), lambda t: 0.1 + 0.8 * min(t / 8, 1)),
    "polynomial": (s.Polynomial(0.5, 10, 2.0, 0.1), lambda t: 0.1 + 0.4 * (1 - min(t / 10, 1)) ** 2),
    "step": (s.Step(0.5, 4, 0.5), lambda t: 0.5 * 0.5 ** (t // 4)),
    "multi-step": (s.MultiStep(0.5, [3, 7, 20], 0.1), lambda t: 0.5 * 0.1 ** sum(t >= m for m in (3, 7, 20))),
    "listed": (s.Listed([0.1, 0.2, 0.4]), lambda t: [0.1, 0.2, 0.4][t % 3]),
    "listed-once": (s.Listed([0.1, 0.2, 0.4], repeat=False), lambda t: [0.1, 0.2, 0.4][min(t, 2)]),
    "cosine": (s.Cosine(0.5, 12, 0.1), lambda t: 0.1 + 0.4 * (1 + cos(pi * min(t / 12, 1))) / 2),
    "restarts": (s.CosineRestarts(1.0, 5), lambda t: (1 + cos(pi * (t % 5) / 5)) / 2),
    "longer-restarts": (s.CosineRestarts(1.0, 3, 2, 0.01), restarts),
    "one-cycle": (s.OneCycle(1.0, 20), one_cycle),
    "warm-up": (s.WarmUp(0.4, 5), lambda t: 0.4 * min((t + 1) / 5, 1)),
    "warm-up-of-cosine": (s.WarmUp(s.Cosine(0.4, 20), 5, 0.5),
                          lambda t: 0.2 * (1 + cos(pi * min(t / 20, 1))) * (0.5 + 0.5 * min((t + 1) / 5, 1))),
    "sequence": (s.Sequence([0.5, s.Exponential(1.0, 0.5), 0.1], [4, 9]),
                 lambda t: 0.5 if t < 4 else 0.5 ** (t - 4) if t < 9 else 0.1),
    "chain": (s.Chain([s.Linear(1.0, 0.5, 10), s.Exponential(0.4, 0.9)]),
              lambda t: (1 - 0.5 * min(t / 10, 1)) * 0.4 * 0.9**t),
    "scaled": (s.Scaled(0.5, lambda t: 1 / (1 + t) ** 0.5), lambda t: 0.5 / (1 + t) ** 0.5),
}


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    schedule, expected = CASES[case]
    found = [float(schedule(nnc.asarray(np.float64(t)))) for t in range(COUNT)]
    np.testing.assert_allclose(found, [expected(t) for t in range(COUNT)], rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dtype, rtol", [("float32", 1e-5), ("float64", 1e-12)])
@pytest.mark.parametrize("case", CASES)
def test_live_in_compiled_training(case: str, dtype: str, rtol: float) -> None:
    """The parameter falls by the rate at each step, in one trace."""
    schedule, expected = CASES[case]
    p = nn.Parameter(nnc.zeros(1, dtype=dtype))
    minimiser = optim.SGD([p], schedule)
    update = nnc.jit(lambda g: minimiser.update({"0": g}))
    seen = [0.0]
    for _ in range(COUNT):
        update(nnc.ones(1, dtype=dtype))
        seen.append(p.read().item())
    sums = np.cumsum([expected(t) for t in range(COUNT)])
    np.testing.assert_allclose(-np.array(seen[1:]), sums, rtol=rtol)
    assert update.traces == 1


@pytest.mark.parametrize("t", [0, 7, 100, 2**20 - 1, 2**20, 2**20 + 1])
def test_restarts_fall_on_their_updates_far_out(t: int) -> None:
    schedule = s.CosineRestarts(1.0, 1, 2)
    length = 2 ** ((t + 1).bit_length() - 1)
    expected = (1 + cos(pi * (t - (length - 1)) / length)) / 2
    np.testing.assert_allclose(float(schedule(nnc.asarray(np.float32(t)))), expected, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_reduce_on_plateau(compiled: bool) -> None:
    schedule = s.ReduceOnPlateau(1.0, 0.5, patience=1, cooldown=1, least=0.2)
    p = nn.Parameter(nnc.zeros(1))
    minimiser = optim.SGD([p], schedule)

    def step(loss: nnc.Tensor) -> None:
        schedule.observe(loss)
        minimiser.update({"0": nnc.ones(1)})

    run = nnc.jit(step) if compiled else step
    losses = [3.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0, float("nan"), 1.0, 1.0, 1.0, 1.0]
    # 2.0 at 2 and 3 reduces; 4 cools down; 5 and 6 reduce; 7 is better; nan at 8 cools; 9 and 10 reduce to the least
    rates = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2]
    seen = [0.0]
    for loss in losses:
        run(nnc.asarray(loss))
        seen.append(p.read().item())
    np.testing.assert_allclose(-np.diff(seen), rates, rtol=1e-5)
    if compiled:
        assert run.traces == 1  # type: ignore[attr-defined]


def test_a_plateau_of_what_should_grow() -> None:
    schedule = s.ReduceOnPlateau(1.0, 0.1, patience=0, threshold=0.1, mode="max")
    for measure in (-10.0, -9.5, -8.0, -7.9):  # -9.5 and -7.9 are no improvements by a tenth
        schedule.observe(measure)
    np.testing.assert_allclose(float(schedule(nnc.asarray(0.0))), 0.01, rtol=1e-6)


def test_state_of_a_schedule_is_saved_with_its_minimiser() -> None:
    def made() -> tuple[s.ReduceOnPlateau, optim.Minimiser]:
        schedule = s.ReduceOnPlateau(1.0, 0.5, patience=0)
        return schedule, optim.SGD([nn.Parameter(nnc.zeros(1))], s.WarmUp(schedule, 1))

    (schedule, minimiser), (other, second) = made(), made()
    for loss in (1.0, 2.0):
        schedule.observe(loss)
    second.load_state_dict(minimiser.state_dict())
    assert float(other(nnc.asarray(0.0))) == 0.5
    assert {name for name in minimiser.cells() if name.startswith("schedule.")} == {
        f"schedule.0.{name}" for name in ("best", "failures", "cooling", "reductions")}


def test_equal_schedules_are_not_traced_again() -> None:
    p = nn.Parameter(nnc.zeros(1))
    minimiser = optim.SGD([p], s.Cosine(0.1, 10))
    update = nnc.jit(lambda g: minimiser.update({"0": g}))
    update(nnc.ones(1))
    minimiser.learning_rate = s.Cosine(0.1, 10)
    update(nnc.ones(1))
    assert update.traces == 1
    minimiser.learning_rate = s.Cosine(0.2, 10)
    update(nnc.ones(1))
    assert update.traces == 2


@pytest.mark.parametrize("make, words", [
    (lambda: s.Exponential(0.1, 0), "Exponential: factor is 0, expected a number above 0"),
    (lambda: s.Step(0.1, 0), "every is 0, expected a whole number of at least 1"),
    (lambda: s.MultiStep(0.1, [3, 2]), "should increase"),
    (lambda: s.MultiStep(0.1, [0.5]), "milestone 0 is 0.5"),
    (lambda: s.Listed([]), "the list is empty"),
    (lambda: s.Listed([0.1, -1]), "rate 1 is -1"),
    (lambda: s.Cosine(0.1, 1.5), "steps is 1.5"),
    (lambda: s.OneCycle(0.1, 3), "leaves none to rise or fall in"),
    (lambda: s.WarmUp("0.1", 3), "rate is '0.1', expected a number of at least 0, or a schedule"),
    (lambda: s.Sequence([0.1, 0.2], [3, 4]), "2 schedules with 2 milestones"),
    (lambda: s.Chain([]), "no schedules"),
    (lambda: s.Scaled(0.1, 3), "expected a function of the step"),
    (lambda: s.ReduceOnPlateau(0.1, 1.5), "factor is 1.5"),
    (lambda: s.ReduceOnPlateau(0.1, 0.0), "would stop all training"),
    (lambda: s.ReduceOnPlateau(0.1, mode="best"), "expected 'min' or 'max'"),
])
def test_wrong_schedules_are_refused(make: Any, words: str) -> None:
    with pytest.raises(AttributeValueError, match=words):
        make()


def test_a_schedule_gives_one_number() -> None:
    minimiser = optim.SGD([nn.Parameter(nnc.zeros(1))], lambda t: nnc.ones(2) * t)
    with pytest.raises(nnc.Error, match=r"the schedule gives float32\[2\], expected one number"):
        minimiser.update({"0": nnc.ones(1)})
