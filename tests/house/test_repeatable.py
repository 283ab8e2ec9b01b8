"""A run of the tests can be repeated: what Hypothesis draws depends on the seed alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st


def test_draws_do_not_depend_on_the_modules_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loaded_between.py").write_text(f"NUMBERS = {[*range(100_000, 101_000)]}\n")
    before = drawn()
    monkeypatch.syspath_prepend(tmp_path)
    __import__("loaded_between")
    assert drawn() == before


def test_the_seed_is_read_where_hypothesis_finds_that_it_runs_in_ci() -> None:
    assert not settings().derandomize


def drawn() -> list[int]:
    found = []

    @seed(1)
    @settings(max_examples=200)
    @given(st.integers(0, 10**6))
    def draw(number: int) -> None:
        found.append(number)

    draw()
    return found
