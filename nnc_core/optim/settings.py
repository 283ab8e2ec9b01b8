"""Rules for the settings of minimisers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple

from nnc_core.base.errors import AttributeValueError
from nnc_core.base.fields import is_number
from nnc_core.type import plain


class Check(NamedTuple):
    """A test of a value, what is said to be expected, and a hint."""

    holds: Callable[[Any], bool]
    expected: str
    hint: str | None = None


Settings = Mapping[str, Check]
"""Attributes that compiled code depends on, with what they may be."""


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


NON_NEGATIVE = Check(lambda x: is_number(x) and x >= 0, "a number of at least 0")
POSITIVE = Check(lambda x: is_number(x) and x > 0, "a number above 0")
FINITE = Check(lambda x: is_number(x) and isfinite(x), "a finite number")
FRACTION = Check(lambda x: is_number(x) and 0 <= x < 1, "a number of at least 0 and below 1")
SHARE = Check(lambda x: is_number(x) and 0 <= x <= 1, "a number from 0 to 1")
COUNT = Check(_is_count, "a whole number of at least 1")
WHOLE = Check(lambda x: x == 0 or _is_count(x), "a whole number of at least 0")
COUNT_OR_NONE = Check(lambda x: x is None or _is_count(x), "a whole number of at least 1, or None")
FLAG = Check(lambda x: isinstance(x, bool), "True or False")
FUNCTION_OR_NONE = Check(lambda x: x is None or callable(x), "a function, or None")
RATE = Check(lambda x: (is_number(x) and x >= 0) or (callable(x) and not isinstance(x, type)),
             "a number of at least 0, or a schedule", "a learning rate that changes is a function of the step")


def one_of(*choices: str) -> Check:
    return Check(lambda x: x in choices, " or ".join(map(repr, choices)))


def instance_of(*kinds: type, what: str) -> Check:
    return Check(lambda x: isinstance(x, kinds), what)


def check(owner: str, name: str, value: Any, rule: Check) -> None:
    """AttributeValueError for a value that the rule does not hold for."""
    if not rule.holds(plain(value)):
        raise AttributeValueError(f"{name} is {value!r}, expected {rule.expected}", operator=owner, hint=rule.hint)


def check_all(owner: Any, **rules: Check) -> None:
    """Check attributes of an object, for dataclasses; NumPy's numbers become Python's."""
    for name, rule in rules.items():
        value = plain(getattr(owner, name))
        check(type(owner).__name__, name, value, rule)
        object.__setattr__(owner, name, value)
