"""What is sampled: there are such tests, and about as many run as the table says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from zlib import crc32

import pytest

from tests.house.test_readme import ROOT
from tests.sampling import SAMPLED, is_left_out
from tests.selection import Selection

FILES = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("test_*.py")}


@pytest.mark.parametrize(("place", "kind", "one_of"), SAMPLED)
def test_what_is_sampled_is_there(place: str, kind: str, one_of: int) -> None:
    there = [path for name, path in FILES.items() if name.startswith(place)]
    assert there
    assert not kind.startswith("test_") or any(kind.partition("[")[0] in path.read_text("utf-8") for path in there)


def test_as_many_run_as_the_table_says() -> None:
    names = [f"tests/tensors/values/test_values.py::test_{number}[opencl:0]" for number in range(4000)]
    for seed in (0, 7):
        run = [name for name in names if not is_left_out(seed, name)]
        assert 150 < len(run) < 350
        assert run == [name for name in names if crc32(f"{seed} {name}".encode()) % 24 == 0]


def test_what_no_line_names_runs() -> None:
    assert not is_left_out(0, "tests/tensors/values/test_values.py::test_x[cpu:0]")
    assert not is_left_out(0, "tests/base/test_layout.py::test_x[opencl:0]")
    assert not any(is_left_out(seed, "tests/cpu/attention/test_modes.py::test_one_of_its_kind") for seed in range(9))


def _run(expression: str, *asked: str) -> Selection:
    return Selection(cast("pytest.Config", SimpleNamespace(option=SimpleNamespace(markexpr=expression), args=asked)), 0)


def _made(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """Three tests, as pytest makes them of a function; the second is slow."""
    names = [f"test_{number}" for number in range(3)]
    made = [pytest.Function.from_parent(request.node.parent, name=name, callobj=lambda: None) for name in names]
    made[1].add_marker("slow")
    return [*made]


def test_what_is_left_out_is_let_go_and_counted(request: pytest.FixtureRequest) -> None:
    run = _run("not slow", "tests")
    assert [item.name for item in run.of(_made(request))] == ["test_0", "test_2"]
    assert run.left_out == 1


@pytest.mark.parametrize("run", [_run("", "tests"), _run("slow", "tests"), _run("not slow", "tests/x.py::test_1")])
def test_where_slow_tests_run_or_names_are_given_pytest_decides(request: pytest.FixtureRequest, run: Selection) -> None:
    assert [item.name for item in run.of(_made(request))] == ["test_0", "test_1", "test_2"]
    assert run.left_out == 0


def test_processes_that_run_tests_say_how_many() -> None:
    there, here = _run("not slow", "tests"), _run("not slow", "tests")
    there.left_out = 7
    worker = SimpleNamespace(workeroutput={})
    there.tell(cast("pytest.Config", worker))
    here.hear(worker)
    here.hear(SimpleNamespace())  # a process that died
    assert here.left_out == 7


def test_no_test_of_this_run_is_slow(request: pytest.FixtureRequest) -> None:
    if request.config.option.markexpr == "not slow":
        assert not [item.nodeid for item in request.session.items if item.get_closest_marker("slow")]
