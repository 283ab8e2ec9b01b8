"""What the benchmark of the zoo says about a network."""

from __future__ import annotations

from typing import Any

import pytest

import nnc_core as nnc
from benchmarks import fusion
from benchmarks.networks import CASES, PARTS, WATCHED, main, measured, prepared
from nnc_core import use_device


@pytest.mark.parametrize("name", ["LeNet", "LSTM"])
def test_every_part_of_compiling_is_timed(name: str) -> None:
    before = [getattr(owner, attribute) for owner, attribute, _ in WATCHED]
    compiled = measured(CASES[name], training=True, repeats=1)
    assert [getattr(owner, attribute) for owner, attribute, _ in WATCHED] == before
    assert set(compiled.seconds) == set(PARTS)
    assert min(compiled.seconds.values()) > 0
    assert compiled.plan.commands > 10


def test_what_a_part_calls_of_another_is_not_counted_twice() -> None:
    from benchmarks.networks import Stopwatch

    watch = Stopwatch()
    assert watch.turn_to("plan") == "trace"
    assert watch.turn_to("allocate") == "plan"
    before = dict(watch.seconds)
    while watch.seconds["allocate"] == 0.0:
        watch.turn_to(watch.turn_to("plan"))
    assert watch.seconds["optimise"] == before["optimise"] == 0.0


def test_plans_take_no_memory() -> None:
    with use_device("null:0"):
        plan = prepared(CASES["VGG-16"], training=False)().memory_plan
    assert plan.peak == plan.bound <= 32 * 224 * 224 * 64 * 4 * 2, "two images of the first convolutions"


def test_the_table(capsys: Any) -> None:
    main(["LeNet"])
    said = capsys.readouterr().out
    assert "LeNet x100" in said
    assert "schedule" in said
    main(["--profile", "LeNet"])
    assert "tottime" in capsys.readouterr().out


# ---- fused and apart
def test_a_fused_step_does_the_same_work_and_moves_less(capsys: Any) -> None:
    fusion.main(["LeNet"])
    said = capsys.readouterr().out
    assert "LeNet x100" in said and "fused" in said
    apart, fused = fusion.rows("LeNet", CASES["LeNet"])
    assert fused[1] == apart[1], "the same graph"
    assert int(fused[2]) < int(apart[2]) / 2 and float(fused[3]) < float(apart[3]) / 2
    assert float(fused[4]) <= float(apart[4]) and float(fused[5]) >= float(apart[5])


def test_work_in_loops_counts_in_each_round() -> None:
    with use_device("null:0"):
        f = nnc.jit(lambda x: nnc.exp(nnc.scan(lambda c, row: (c * row, nnc.sin(c)), nnc.zeros(8), x)[1]))
        items = f.lower(nnc.zeros((7, 8))).program.plan.items
    found = {step.group.label: rounds for step, rounds in fusion.commands(items)}
    assert found["fused(take multiply)"] == 7 and found["sin"] == 7 and found["exp"] == 1
    assert fusion.work(items).flops > 7 * 8 * 20
