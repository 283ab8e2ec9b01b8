"""Each of Owl's operators has its equal, named and run: eagerly and compiled, against NumPy or SciPy."""

from __future__ import annotations

import pytest

from tests.house.owl_names import NAMES
from tests.house.owl_operators import OWL
from tests.house.rows import check, public, run_compiled, run_eagerly

NOT_COMPILED = {"Var", "Const"}


def test_all_199_are_there_and_no_other() -> None:
    assert len(NAMES) == len(set(NAMES)) == 199
    assert set(OWL) == set(NAMES), set(OWL) ^ set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_what_it_is_here_exists(name: str) -> None:
    row = OWL[name]
    missing = [part for part in row.ours.split(", ") if public(part) is None]
    assert row.ours and not missing, f"{name} is said to be nnc.{missing}"


@pytest.mark.parametrize("name", NAMES)
def test_eagerly(name: str) -> None:
    check(OWL[name], run_eagerly(OWL[name]))


@pytest.mark.parametrize("name", [name for name in NAMES if not OWL[name].eager_only])
def test_compiled(name: str) -> None:
    check(OWL[name], run_compiled(OWL[name]))


def test_what_is_not_compiled_is_said() -> None:
    assert {name for name, row in OWL.items() if row.eager_only} == NOT_COMPILED


def test_the_check_sees_a_wrong_value() -> None:
    row = OWL["Sqrt"]
    with pytest.raises(AssertionError):
        check(row, [run_eagerly(row) * 1.0001])
    with pytest.raises(AssertionError):
        check(row, run_eagerly(row)[None])
