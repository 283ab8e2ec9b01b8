"""Endings of products that the vendor's library has: relu(scale x + C + bias), read off a written ending.

Its relu stands for ours only if it gives NaN for NaN (`Blas.keeps_nan`).  Its gelu is no operator of ours: it is an
approximation whose error nobody states.  What a gradient of relu or gelu needs there (a mask by bits, the argument) is
not what ours keeps (the result, the argument by name).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from nnc_core.base.dtype import DType, accumulator, is_float
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import Instruction
from nnc_core.operator.products.ending import PRODUCT, Ending


class SimpleEnding(NamedTuple):
    """relu(scale x + the sum of operands), where x is the product; relu only if it is asked for."""

    scale: float = 1.0
    operands: tuple[int, ...] = ()
    """Numbers of the ending's operands."""
    relu: bool = False

    @property
    def plain(self) -> bool:
        return self == SimpleEnding()


class OperandValue(NamedTuple):
    """An element of an operand."""

    number: int


Value: TypeAlias = SimpleEnding | OperandValue | float


def simple_ending(ending: Ending, dtype: DType) -> SimpleEnding:
    """The ending of a product of this dtype in these terms; NotSupportedError where it is something else.

    Sums may be rounded later than each step by itself would round them, and operands added in another order.
    """
    if len(ending.outputs) > 1:
        raise NotSupportedError("the library gives one result")
    values: list[Value] = []
    for instruction in ending.body:
        if instruction.operation == "store":
            found = values[instruction.operands[0]]
            if not isinstance(found, SimpleEnding):
                raise NotSupportedError("what is stored is not made of the product")
            return found
        values.append(_value(instruction, values, dtype))
    raise NotSupportedError("nothing is stored")


def _is_free(target: DType, x: Value, dtype: DType) -> bool:
    """Tell whether a cast may be left out: an operand's, and the sum's to the product's dtype or from there."""
    if not isinstance(x, SimpleEnding):
        return is_float(target)
    return target == dtype or (target == accumulator(dtype) and x.plain)


def _value(instruction: Instruction, values: list[Value], dtype: DType) -> Value:
    operands = [values[number] for number in instruction.operands]
    if instruction.operation == "load":
        assert instruction.access is not None
        argument = instruction.access.argument
        return SimpleEnding() if argument == PRODUCT else OperandValue(argument - 1)
    if instruction.operation == "constant":
        return float(instruction.literal or 0)
    if instruction.operation == "cast" and _is_free(instruction.dtype, operands[0], dtype):
        return operands[0]
    found: Value | None = None
    if len(operands) == 2:
        first, second = operands if isinstance(operands[0], SimpleEnding) else operands[::-1]
        if isinstance(first, SimpleEnding) and not first.relu:
            found = _step(instruction.operation, first, second)
    if found is None:
        raise NotSupportedError(f"the library has no {instruction.operation} like this behind a product")
    return found


def _step(operation: str, x: SimpleEnding, y: Value) -> SimpleEnding | None:
    """The ending with one more step; None if it is none."""
    if operation == "add" and isinstance(y, OperandValue) and y.number not in x.operands:
        return x._replace(operands=(*x.operands, y.number))
    if operation == "multiply" and isinstance(y, float) and not x.operands:
        return x._replace(scale=x.scale * y)
    if operation == "maximum" and y == 0.0 and isinstance(y, float):
        return x._replace(relu=True)
    return None
