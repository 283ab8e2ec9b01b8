"""Looking into compiled graphs: plan, explanation, profile, pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

HOST = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def compiled(device: str) -> Any:
    x = nnc.asarray(HOST)
    with nnc.deferred():
        y = x
        for _ in range(6):
            y = nnc.tanh(y @ nnc.asarray(np.eye(4, dtype=np.float32) * 0.5)) * 2
        z = nnc.sum(y, axis=0)
    return nnc.export({"x": x}, {"z": z}, capture="constant", name="net").compile(device)


def test_the_memory_plan_adds_up(compiled: Any) -> None:
    plan = compiled.memory_plan
    assert 0 < plan.bound <= plan.peak < plan.total and plan.ratio == pytest.approx(plan.peak / plan.bound)
    assert plan.commands >= 5 and plan.planner and plan.planner in str(plan) and "ratio" in str(plan)


def test_the_memory_plan_is_drawn(compiled: Any, tmp_path: Path) -> None:
    picture = compiled.memory_plan.draw(tmp_path / "plan.svg")
    assert picture.read_text("utf-8").count("<") > 20


def test_explain_names_every_command_with_code_memory_and_line(compiled: Any, device: str) -> None:
    text = compiled.explain()
    assert text.splitlines()[0].startswith(f"{compiled.memory_plan.commands} commands on {device}")
    assert len(text.splitlines()) == compiled.memory_plan.commands + 1
    assert text.count("matmul") == 6 and "arena" in text and "test_inspection.py" in text and "output" in text


def test_a_profile_times_every_command(compiled: Any, device: str, tmp_path: Path) -> None:
    profile = compiled.profile(3, x=HOST)
    assert profile.device == device and len(profile.timings) == compiled.memory_plan.commands
    assert profile.seconds == pytest.approx(sum(t.seconds for t in profile.timings)) and profile.seconds > 0
    assert "matmul" in str(profile) and "test_inspection.py" in str(profile)
    events = json.loads(profile.save_trace(tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    assert len(events) == len(profile.timings) and all(e["dur"] >= 0 for e in events)


def test_a_profile_changes_no_result(compiled: Any) -> None:
    before = compiled(x=HOST)["z"].numpy()
    compiled.profile(2, x=HOST + 1)
    np.testing.assert_array_equal(compiled(x=HOST)["z"].numpy(), before)


def test_profiling_a_function_leaves_its_cells_alone(device: str) -> None:
    w = nnc.Cell(nnc.ones(3))

    @nnc.jit
    def f(x: Any) -> None:
        w.write(w.read() + x)

    f(nnc.ones(3))
    f.profile(nnc.ones(3), repeats=3)
    assert w.read().tolist() == [2, 2, 2]


def test_step_by_step_gives_the_same(compiled: Any) -> None:
    wanted = compiled(x=HOST)["z"].numpy()
    with nnc.config.using(eager=True):
        np.testing.assert_array_equal(compiled(x=HOST)["z"].numpy(), wanted)


def test_the_line_of_a_tensor(device: str) -> None:
    x = nnc.asarray([1.0])
    with nnc.deferred():
        y = nnc.tanh(x)
    assert y.line.startswith("test_inspection.py:") and "test_the_line_of_a_tensor" in y.line


def test_a_device_is_printed_as_it_is_named(device: str) -> None:
    x = nnc.asarray(HOST, device=device)
    assert f"{x.device}" == str(x.device) == x.device.id == device
