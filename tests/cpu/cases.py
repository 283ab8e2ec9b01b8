"""The conformance kit's cases, as arrays ready for a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.operator import OPERATORS
from nnc_plugins.conformance.cases import CASES

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """Inputs, and attributes in the order of the operator's declaration."""

    arrays: tuple[Array, ...]
    attributes: tuple[Any, ...] = ()


def admitted(name: str, dtype: DType) -> list[Case]:
    """The cases of an operator for a dtype; none if it does not take it."""
    rng, op = np.random.default_rng(0), OPERATORS[name]
    return [Case(tuple(np.asarray(x) for x in case.inputs(rng, dtype)), case.attribute_values(op, dtype))
            for case in CASES[name] if dtype in case.dtypes]
