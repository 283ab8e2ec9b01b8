"""A run of the tests can be repeated: what Hypothesis draws depends on the seed alone, and tests come in one order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
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


TESTS = Path(__file__).parents[1]


def test_no_parameters_come_in_the_order_of_a_set() -> None:
    """It is another one in each process, so that processes that share the tests refuse them."""
    assert not [f"{path.relative_to(TESTS)}:{line}" for path in sorted(TESTS.rglob("test_*.py"))
                for line in parametrized_by_sets(ast.parse(path.read_text("utf-8")))]


def test_sets_are_seen() -> None:
    seen = "@pytest.mark.parametrize('a', {1, 2})\n", "@mark.parametrize('a', set(X) - {3})\n"
    for decorator in seen:
        assert [*parametrized_by_sets(ast.parse(f"{decorator}def test() -> None: ..."))] == [1]
    assert not [*parametrized_by_sets(ast.parse("@parametrize('a', sorted({1, 2}))\ndef test() -> None: ..."))]


def parametrized_by_sets(tree: ast.Module) -> Iterator[int]:
    """Lines of parameters that are a set."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("parametrize"):
            yield from (value.lineno for value in call.args[1:] if is_set(value))


def is_set(value: ast.expr) -> bool:
    if isinstance(value, ast.BinOp):
        return is_set(value.left) or is_set(value.right)
    made = isinstance(value, ast.Call) and ast.unparse(value.func) in ("set", "frozenset")
    return made or isinstance(value, (ast.Set, ast.SetComp))
