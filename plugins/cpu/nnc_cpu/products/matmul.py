"""Matrix products by packed panels: the backend for `matmul`."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Program
from nnc_cpu.products.ending import plain_ending
from nnc_cpu.products.joined import Factor, JoinedProduct, joined_product
from nnc_cpu.products.problem import MatrixProduct, product_problem

if TYPE_CHECKING:
    from nnc_cpu.products.kernel import ProductCompiler

WORTH = 1 << 15
"""Multiply-adds from which on a call pays."""
OPERATOR = "matmul"


class PackedProducts(CommandBackend):
    """Matrix products as machine code, with what follows them."""

    name = "packed"
    fuses = True

    def refuse(self, command: Command) -> str | None:
        try:
            _worth_while(command)
        except NotSupportedError as error:
            return error.message
        return None

    def prepare(self, command: Command) -> Kernel:
        return _compiler().kernel(_worth_while(command))

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        """Operands of the ending that are read just where the output is written."""
        joined = joined_of(command)
        factors = [factor.place for factor in joined.factors]
        out = command.outputs[output]
        return tuple([place for place in joined.places[: len(joined.ending.operands)]
                      if place not in factors and command.inputs[place] == out])


def _compiler() -> ProductCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    found: ProductCompiler = import_module("nnc_cpu.products.kernel").compiler()
    return found


@lru_cache(maxsize=1024)
def _worth_while(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it, or where other code is as quick."""
    problem = problem_of(command)
    if prod(problem.batch) * problem.rows * problem.columns * problem.steps < WORTH:
        raise NotSupportedError("it is too small to pay")
    if problem.columns == 1 or (problem.rows == 1 and problem.b.column != 1):
        raise NotSupportedError("libraries add such products in an order that is quicker")
    return problem


def problem_of(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it."""
    joined = joined_of(command)
    a, b = joined.factors
    if a.layout.dtype not in (float32, float64):
        raise NotSupportedError(f"no products of {a.layout.dtype}")
    if 0 in (*a.layout.shape, *b.layout.shape):
        raise NotSupportedError("there is nothing to multiply")
    ta, tb = map(bool, joined.attributes)
    order = (a.place, b.place, *joined.places)
    return product_problem(a.layout, b.layout, (ta, tb), joined.others, joined.ending, order)


def joined_of(command: Command) -> JoinedProduct:
    """The product of a command and what follows it."""
    if command.name == FUSED.name:
        program: Program = command.attributes[0]
        if program.library is None or program.steps[program.library].op.name != OPERATOR:
            raise NotSupportedError(f"it is made for {OPERATOR}")
        return joined_product(command, program)
    if command.name != OPERATOR:
        raise NotSupportedError(f"it is made for {OPERATOR}")
    a, b = (Factor(x, n) for n, x in enumerate(command.inputs))
    ending = plain_ending(a.layout.dtype, command.output.dtype)
    return JoinedProduct(command.attributes, (a, b), command.outputs, (2,), ending)
