"""The end of a product: what is made of finished sums, and stored."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Access, Instruction, Stage

PRODUCT = 0
"""The argument of an ending that is the product itself."""


class Ending(NamedTuple):
    """The end of each element of a product: scalar instructions as in a loop nest, whose loads and stores touch the
    element at hand.  Argument 0 is the product, in the dtype of its sums; operands follow, then outputs."""

    body: tuple[Instruction, ...]
    operands: tuple[Operand, ...]
    outputs: tuple[DType, ...]
    pool: Stage | None = None
    """What is folded over each window of rows that follow each other, by the instructions for one of them; the body is
    that of a window then, in which argument 0 at offset n is fold number n."""

    @property
    def height(self) -> int:
        """The rows of the product that a row of the results is made of."""
        return 1 if self.pool is None else prod(self.pool.axes)

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of operands, then of outputs."""
        return [*[operand.dtype for operand in self.operands], *self.outputs]


class Operand(NamedTuple):
    """An array that an ending reads."""

    dtype: DType
    along: bool
    """It has an element for each column; if not, one for all."""


def plain_ending(wide: DType, output: DType) -> Ending:
    """The product, cast to the dtype of its output."""
    body = [Instruction("load", wide, access=Access(PRODUCT, 0, ()))]
    if wide != output:
        body.append(Instruction("cast", output, (0,)))
    body.append(Instruction("store", output, (len(body) - 1,), access=Access(PRODUCT + 1, 0, ())))
    return Ending(tuple(body), (), (output,))
