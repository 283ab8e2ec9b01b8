"""`make bench` runs every benchmark without arguments."""

from __future__ import annotations

import importlib
import inspect

import pytest

from benchmarks.__main__ import names, summary


@pytest.mark.parametrize("name", names())
def test_every_benchmark_can_be_run_without_arguments_and_says_what_it_measures(name: str) -> None:
    inspect.signature(importlib.import_module(f"benchmarks.{name}").main).bind()
    assert summary(name).endswith(".")
