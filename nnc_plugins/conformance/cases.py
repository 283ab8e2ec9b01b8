"""The table of cases: every operator with inputs and attributes, the ordinary ones and the awkward ones.

Empty arrays, scalars, broadcasts, NaN and infinities, ties,
ends of integers' ranges, sizes that no tile divides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.operator import OPERATORS
from nnc_core.type import Op
from nnc_plugins.conformance.case import Case
from nnc_plugins.conformance.tables import (
    complex_numbers,
    creation,
    cumulative,
    elementwise,
    fft,
    functions,
    indexing,
    integer_products,
    linalg,
    movement,
    neural,
    numbers,
    ordering,
    palettes,
    random,
    reduction,
    regions,
    resampling,
    selection,
    window,
)

__all__ = ["CASES", "Case", "Example", "admitted_dtypes", "examples"]

CASES: dict[str, list[Case]] = {
    **elementwise.CASES, **functions.CASES, **numbers.CASES, **reduction.CASES, **movement.CASES, **window.CASES,
    **creation.CASES, **resampling.CASES, **regions.CASES, **selection.CASES, **linalg.CASES, **fft.CASES,
    **cumulative.CASES, **ordering.CASES, **indexing.CASES, **neural.CASES, **random.CASES,
    **palettes.CASES, **integer_products.CASES,
}  # fmt: skip
"""Cases by operator name."""
for _name, _cases in complex_numbers.CASES.items():
    CASES[_name] = CASES.get(_name, []) + _cases


class Example(NamedTuple):
    """A case of an operator for one dtype."""

    op: Op
    case: Case
    dtype: DType

    def __str__(self) -> str:
        return f"{self.op.name}, {self.case.label}, {self.dtype}"


def examples(*names: str) -> Iterator[Example]:
    """Every case for every dtype, of the operators named or of all."""
    for name in names or CASES:
        for case in CASES[name]:
            for dtype in case.dtypes:
                yield Example(OPERATORS[name], case, dtype)


def admitted_dtypes(name: str) -> frozenset[DType]:
    """The dtypes that an operator takes, going by its cases."""
    return frozenset(dtype for case in CASES[name] for dtype in case.dtypes)
