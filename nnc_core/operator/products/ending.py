"""The end of a product: what is made of finished sums, and stored."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Access, Instruction

PRODUCT = 0
"""The argument of an ending that is the product itself."""


class Ending(NamedTuple):
    """The end of each element of a product: scalar instructions as in a loop nest, whose loads and stores touch the
    element at hand.  Argument 0 is the product, in the dtype of its sums; operands follow, then outputs."""

    body: tuple[Instruction, ...]
    operands: tuple[Operand, ...]
    outputs: tuple[DType, ...]

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
