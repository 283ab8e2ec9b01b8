"""`make bench` runs every benchmark without arguments."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import pytest

from benchmarks.__main__ import names, summary
from benchmarks._plots import draw_ratios
from benchmarks._works import Work
from benchmarks.peers import most_flops, most_moved, of_the_limit


@pytest.mark.parametrize("name", names())
def test_every_benchmark_can_be_run_without_arguments_and_says_what_it_measures(name: str) -> None:
    inspect.signature(importlib.import_module(f"benchmarks.{name}").main).bind()
    assert summary(name).endswith(".")


def test_ratios_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "new" / "ratios.svg"
    draw_ratios({"a work": {"nnc": 1.0, "a peer": 2.5}, "another": {"nnc": 1.0}}, path)
    assert path.read_text().count("<use") > 3


def test_shares_are_of_what_bounds_a_work() -> None:
    assert of_the_limit(Work("calls"), 1e-5) == ""
    assert of_the_limit(Work("products", flops=most_flops() / 2), 1.0) == "50%"
    assert of_the_limit(Work("rows", moved=2**20), 2**20 / most_moved(2**20)) == "100% of a copy"
