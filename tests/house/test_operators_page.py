"""docs/operators.md is what the declarations give, and says something about each of them."""

from __future__ import annotations

from difflib import unified_diff

import pytest

from nnc_core.operator import OPERATORS
from tests.house.operators_page import PAGE, derivatives, families, lowering, page, parents


@pytest.fixture(scope="module")
def made() -> str:
    return page()


def test_the_page_is_what_the_declarations_give(made: str) -> None:
    kept = PAGE.read_text("utf-8") if PAGE.exists() else ""
    changed = list(unified_diff(kept.splitlines(), made.splitlines(), "docs/operators.md", "made", n=0, lineterm=""))
    assert not changed, "\n".join([*changed[:20], "python -m tests.house.operators_page writes it anew"])


def test_each_operator_has_one_row(made: str) -> None:
    listed = [method.op.name for _, methods in families() for method in methods]
    assert sorted(listed) == sorted(OPERATORS)
    assert [name for name in listed if made.count(f"\n| `{name}(") < 1] == []


def test_every_operator_has_derivatives_and_lowers() -> None:
    """But for what would have to differentiate a draw, or forms that are not unique; there an error says so."""
    refused = {name for name, op in OPERATORS.items() if derivatives(op) == "none"}
    assert refused == {"hessenberg", "random_gamma", "schur"}
    assert {lowering(op) for op in OPERATORS.values()} >= {"expression", "nest", "composite", "host"}


def test_parents_names_are_found() -> None:
    assert "`Conv2d`" in parents()["conv"]["Owl"] and "`Conv2dBackwardInput`" in parents()["conv_input_gradient"]["Owl"]
    assert "`EWEXP`" in parents()["exp"]["NNC"]
