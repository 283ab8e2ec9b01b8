"""What is sampled: there are such tests, and about as many run as the table says."""

from __future__ import annotations

from zlib import crc32

import pytest

from tests.house.test_readme import ROOT
from tests.sampling import SAMPLED, is_left_out

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
        assert run == [name for name in names if crc32(f"{seed} {name}".encode()) % 16 == 0]


def test_what_no_line_names_runs() -> None:
    assert not is_left_out(0, "tests/tensors/values/test_values.py::test_x[cpu:0]")
    assert not is_left_out(0, "tests/base/test_layout.py::test_x[opencl:0]")
