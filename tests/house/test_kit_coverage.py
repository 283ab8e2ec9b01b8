"""The conformance kit's cases cover what declarations say that they should; its bounds are units in the last place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from nnc_core.base.dtype import DTYPES
from nnc_core.operator import OPERATORS
from nnc_plugins.conformance import agreement, coverage
from nnc_plugins.conformance.coverage import CATEGORIES, COVERS, EXEMPT, RULES, Row, rows
from nnc_plugins.conformance.test_operators import ELSEWHERE, drawn_dtypes, one_to_view

KIT = Path(coverage.__file__).parent
QUOTIENTS = {"_close", "test_equals_finite_differences"}
"""Functions that compare with difference quotients, whose error is no matter of roundings."""


def test_every_operator_is_in_the_table() -> None:
    assert [row.name for row in rows()] == sorted(OPERATORS)
    assert set(COVERS) == set(RULES) == set(CATEGORIES) and set(EXEMPT) <= set(CATEGORIES)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_every_category_that_applies_has_a_case(row: Row) -> None:
    assert row.holes == [], f"{row.name} has no case for {', '.join(row.holes)}"
    assert row.dtypes and row.ulps


def test_exemptions_are_needed() -> None:
    """Each names an operator that is there, which the category would apply to and which has no case for it."""
    for category, reasons in EXEMPT.items():
        names = [name for exempt in reasons.values() for name in exempt]
        assert len(names) == len(set(names)), category
        found = {row.name: row.found[category] for row in rows()}
        assert [name for name in names if found.get(name) != "-"] == [], category
        for name in names:
            seen = coverage.seen(OPERATORS[name])
            assert RULES[category](OPERATORS[name], seen), f"{category} does not apply to {name} in any case"


@pytest.mark.parametrize("seed", [0, 1])
def test_what_can_be_a_view_is_read_as_one(seed: int) -> None:
    """By a test of the kit, for a dtype and a case that the seed draws; transfers have a file of their own."""
    found = {row.name for row in rows() if row.found["views"] != "-"} - ELSEWHERE
    assert [name for name in sorted(found) if one_to_view(name, seed, DTYPES) is None] == []
    assert one_to_view("exp", seed, ("float16",)) is not None and one_to_view("exp", seed, ("int8",)) is None
    assert one_to_view("filled", seed, DTYPES) is None


def test_a_sample_of_dtypes_has_float32_and_others_that_the_seed_draws() -> None:
    every = list(DTYPES.values())
    some = [drawn_dtypes("add", every, seed, 3) for seed in range(30)]
    assert {len(s) for s in some} == {1 + -(-(len(every) - 1) // 3)} and all(DTYPES["float32"] in s for s in some)
    assert set().union(*some) == set(every) == drawn_dtypes("add", every, 0, 1)
    assert drawn_dtypes("logical_not", [DTYPES["bool"]], 0, 3) == {DTYPES["bool"]}


def test_most_of_the_table_is_covered() -> None:
    """Rules that let everything off would be seen."""
    shares = {c: sum(row.found[c] not in ("", "-") for row in rows()) / len(rows()) for c in CATEGORIES}
    assert shares["empty"] > 0.99 and shares["views"] > 0.95 and shares["large"] > 0.8
    assert min(shares["scalar"], shares["gradient"]) > 0.5 and shares["NaN Inf"] > 0.7 and shares["broadcast"] > 0.15


def test_a_hole_is_seen() -> None:
    op = OPERATORS["maximum"]
    some = [s for s in coverage.seen(op) if not COVERS["NaN Inf"](s)]
    assert coverage.row_of(op, some).holes == ["NaN Inf"]
    assert "HOLE" in "\n".join(coverage.table([coverage.row_of(op, some)], {}))


def test_the_table_says_what_was_measured() -> None:
    (line,) = [line for line in coverage.lines({"exp": 0.25, "add": 0.0}) if line.startswith("exp ")]
    assert line.endswith("25%") and " HOLE " not in line


# ---- bounds
def _comparisons(path: Path) -> Iterator[tuple[str, str]]:
    """(function, what it compares floats with)"""
    for function in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute | ast.Name):
                    name = node.attr if isinstance(node, ast.Attribute) else node.id
                    if name in ("assert_allclose", "allclose", "isclose", "approx", "assert_almost_equal"):
                        yield function.name, name


def test_bounds_are_units_in_the_last_place() -> None:
    loose = {(path.name, function) for path in KIT.rglob("*.py") for function, _ in _comparisons(path)}
    assert {function for _, function in loose} <= QUOTIENTS, loose


def test_every_operator_has_a_bound() -> None:
    named = {*agreement.ROUNDINGS, *agreement.CONDITIONED, *agreement.EITHER_ZERO, *agreement.CROSSING}
    assert named <= OPERATORS.keys()
    assert max(agreement.ROUNDINGS.values()) <= agreement.SUM_ROUNDINGS
