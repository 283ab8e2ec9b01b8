"""The problem of a command: that of a product by itself, or of a fused command around one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.dtype import FLOATS
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator.fused import FUSED
from nnc_core.operator.products.convolution import conv_problem, input_gradient_problem, kernel_gradient_problem
from nnc_core.operator.products.ending import plain_ending
from nnc_core.operator.products.joined import Factor, JoinedProduct, joined_product
from nnc_core.operator.products.matmul import matmul_problem
from nnc_core.operator.products.pooled import POOLS, pooled_product
from nnc_core.operator.products.problem import MatrixProduct, sum_dtype
from nnc_core.operator.program import Program

Arrange: TypeAlias = Callable[[JoinedProduct], MatrixProduct]
PROBLEMS: dict[str, Arrange] = {
    "matmul": matmul_problem, "conv": conv_problem, "conv_input_gradient": input_gradient_problem,
    "conv_kernel_gradient": kernel_gradient_problem}  # fmt: skip
"""Operators that are products."""
INTEGER_PROBLEMS: dict[str, Arrange] = {"matmul_integer": matmul_problem, "conv_integer": conv_problem}
"""Those of integers of 8 bits, which are added as int32."""
_ALL = PROBLEMS | INTEGER_PROBLEMS


def arranged(command: Command, pools: bool = False) -> MatrixProduct:
    """The problem of a command; NotSupportedError where it is none of products.  `pools`: results may be pooled."""
    joined = joined_of(command)
    a, b = joined.factors
    operator = operator_of(command)
    if joined.pool is not None and not (pools and operator == "conv"):
        raise NotSupportedError(f"no {operator} is pooled as it is computed")
    if a.layout.dtype not in FLOATS and operator not in INTEGER_PROBLEMS:
        raise NotSupportedError(f"no products of {a.layout.dtype}")
    if 0 in (*a.layout.shape, *b.layout.shape, *joined.others[-1].shape):
        raise NotSupportedError("there is nothing to multiply")
    return _ALL[operator](joined)._replace(b_dtype=b.layout.dtype)


def operator_of(command: Command) -> str:
    """The operator whose code runs a command."""
    if command.name != FUSED.name:
        return command.name
    program: Program = command.attributes[0]
    return program.library_operator


def read_where_written(command: Command, output: int) -> tuple[int, ...]:
    """Operands of a command's ending that are read just where an output is written: it may lie in their memory."""
    joined, out = joined_of(command), command.outputs[output]
    factors = [factor.place for factor in joined.factors]
    return tuple([place for place in joined.places[: len(joined.ending.operands)]
                  if place not in factors and command.inputs[place] == out])


def joined_of(command: Command) -> JoinedProduct:
    """The product of a command and what follows it."""
    if command.name == FUSED.name:
        program: Program = command.attributes[0]
        is_pooled = any(step.op.name in POOLS for step in program.steps)
        return (pooled_product if is_pooled else joined_product)(command, program)
    a, b = (Factor(x, n) for n, x in enumerate(command.inputs))
    ending = plain_ending(sum_dtype(a.layout.dtype), command.output.dtype)
    return JoinedProduct(command.attributes, (a, b), command.outputs, (2,), ending, command.output.shape)
