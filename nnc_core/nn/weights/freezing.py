"""The choice of parameters that are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from nnc_core.base.errors import OperandError
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.weights.frozen import note_frozen


def trained(parameters: Mapping[str, Parameter], on: bool = True) -> dict[str, Parameter]:
    """Those that are trained, or those that are not."""
    note_frozen()
    return {name: p for name, p in parameters.items() if p.frozen != on}


def chosen(parameters: Mapping[str, Parameter], patterns: Sequence[str]) -> list[Parameter]:
    """Those whose names match one of the patterns, all without any; OperandError for a pattern that matches none."""
    if not patterns:
        return list(parameters.values())
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in parameters):
            raise OperandError(f"no parameter's name matches {pattern!r}",
                               hint=f"there are {', '.join(parameters) or 'none'}")
    return [p for name, p in parameters.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]
