"""How many cases passed on which device in which mode: the table that a run prints at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

FAMILIES = {
    "test_c_cases": "C cases", "test_h_cases": "H cases", "test_h_calls": "H cases",
    "test_defects": "defects",
    "test_defects_of_graphs": "defects", "test_defects_of_nnc_and_owl": "defects",
    "test_nnc_control_flow": "NNC control flow", "test_nnc_branches": "NNC control flow",
}  # fmt: skip
_CASE = re.compile(r"test_([ch]\d\d)_")
_PROPERTY = "semantics"

Place = tuple[str, str, str]
"""Family, device and mode."""


def mark(item: pytest.Item) -> None:
    """Write on a test which case it is of, and where that runs."""
    family = FAMILIES.get(item.path.stem)
    if family is None or not isinstance(item, pytest.Function):
        return
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    numbered = _CASE.match(item.originalname)
    case = numbered[1] if numbered else item.originalname
    count(item, family, parameters.get("device", ""), parameters.get("mode", ""), case)


def count(item: pytest.Item, family: str, device: str, mode: str, case: str) -> None:
    """Count a test as (part of) a case, in a row of the table and a column."""
    item.user_properties.append((_PROPERTY, (family, device, mode, case)))


class Table:
    """Outcomes by place and case: a case that is several tests has passed if all of them have."""

    def __init__(self) -> None:
        self._passed: dict[Place, dict[str, bool]] = {}

    def note(self, report: pytest.TestReport) -> None:
        """Count a test's call, or what kept it from being called."""
        written = dict(report.user_properties).get(_PROPERTY)
        if written is not None and (report.when == "call" or not report.passed):
            *place, case = written
            cases = self._passed.setdefault((place[0], place[1], place[2]), {})
            cases[case] = cases.get(case, True) and report.passed

    def lines(self) -> Iterator[str]:
        """A row for each family and device, a column for each mode: how many of how many cases passed."""
        for family in dict.fromkeys([*FAMILIES.values(), *sorted(p[0] for p in self._passed)]):
            places = [p for p in self._passed if p[0] == family]
            for device in sorted({p[1] for p in places}):
                counts = [self._count(p) for p in sorted(places) if p[1] == device]
                yield f"{family:18} {device or 'any device':10} {', '.join(counts)}"

    def _count(self, place: Place) -> str:
        cases = self._passed[place].values()
        return f"{place[2] or 'in one way'} {sum(cases)}/{len(cases)}"
