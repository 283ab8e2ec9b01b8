"""Groups of parameters by their names."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from nnc_core.base.errors import OperandError
from nnc_core.optim.minimisers.groups import Group
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell


@located
def groups_by_name(parameters: Mapping[str, Cell], options: Mapping[str, Mapping[str, Any]]) -> list[Group]:
    """Groups for a minimiser from patterns of names: {"*.bias": {"weight_decay": 0.0}, "head.*": {...}}.

    Each parameter goes to the first pattern that it matches (`*` stands for any text, `?` for a letter, `[ab]` for one
    of them), those that match none to a group without options.  OperandError for a pattern to which none goes.
    """
    found: dict[str, dict[str, Cell]] = {pattern: {} for pattern in options}
    rest: dict[str, Cell] = {}
    for name, p in parameters.items():
        pattern = next((pattern for pattern in options if fnmatchcase(name, pattern)), None)
        (rest if pattern is None else found[pattern])[name] = p
    for pattern, members in found.items():
        if not members:
            raise OperandError(f"no parameter is left for the pattern {pattern!r}",
                               hint=f"parameters are {', '.join(parameters) or 'none'}; the first match counts")
    groups = [Group(members, **options[pattern]) for pattern, members in found.items()]
    return [*groups, Group(rest)] if rest else groups
