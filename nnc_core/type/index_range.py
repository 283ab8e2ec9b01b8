"""The indices that an operator takes: where they lie among its operands, and which of them there are."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import OutOfRangeError

NO_INDEX = -(1 << 62)
"""An index that means nothing and is no mistake: an ignored label, a place outside on purpose."""


class IndexRange(NamedTuple):
    """Operand number `operand` holds indices, low <= index < high."""

    operand: int
    low: int
    high: int
    said: str
    """The error's message, with {} for the index."""
    optional: bool = False
    """NO_INDEX is taken as well."""

    def check(self, indices: Any, operator: str | None = None) -> None:
        """OutOfRangeError, which names the first index that is outside."""
        if indices.size == 0 or (indices.max() < self.high and self._from_low(indices)):
            return
        host = np.asarray(indices)
        wrong = host[(host >= self.high) | np.less(host, self.low)]
        wrong = wrong[np.not_equal(wrong, NO_INDEX)] if self.optional else wrong
        if wrong.size:
            raise OutOfRangeError(self.message(wrong.flat[0]), operator=operator, hint=self.hint)

    def message(self, index: Any) -> str:
        """The text of the error of an index that is outside."""
        return self.said.format(index)

    @property
    def hint(self) -> str:
        return f"{self.low} <= index < {self.high}"

    def _from_low(self, indices: Any) -> bool:
        return indices.dtype.kind == "u" or bool(indices.min() >= self.low)


def along(operand: int, length: int) -> IndexRange:
    """Indices of an axis; negative ones count from the end."""
    return IndexRange(operand, -length, length, f"index {{}} is out of range for an axis of length {length}")


def of_classes(operand: int, classes: int, noun: str = "label") -> IndexRange:
    """Numbers of classes, none of which is negative."""
    return IndexRange(operand, 0, classes, f"{noun} {{}} is none of {classes} classes", optional=True)
