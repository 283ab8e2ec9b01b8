"""Matrix products by packed panels: the backend for `matmul`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_cpu.products.ending import plain_ending
from nnc_cpu.products.problem import MatrixProduct, product_problem

WORTH = 1 << 15
"""Multiply-adds from which on a call pays."""


class ArrangedProduct(NamedTuple):
    """A problem, and the arrays of a command that it has, by their number."""

    problem: MatrixProduct
    order: Sequence[int]


class PackedProducts(CommandBackend):
    """Matrix products as machine code."""

    name = "packed"

    def refuse(self, command: Command) -> str | None:
        try:
            _arranged(command)
        except NotSupportedError as error:
            return error.message
        return None

    def prepare(self, command: Command) -> Kernel:
        problem, order = _arranged(command)
        kernel: Kernel = import_module("nnc_cpu.products.kernel").compiler().kernel(problem, order)
        return kernel


@lru_cache(maxsize=1024)
def _arranged(command: Command) -> ArrangedProduct:
    """The problem of a command; NotSupportedError where there is no code for it."""
    if command.name != "matmul":
        raise NotSupportedError("made for matmul")
    return arranged(command, least=WORTH)


def arranged(command: Command, least: int = 0) -> ArrangedProduct:
    """The problem of a product of at least so many multiply-adds."""
    if find_spec("llvmlite") is None:
        raise NotSupportedError("there is no LLVM")
    a, b = command.inputs
    if a.dtype not in (float32, float64):
        raise NotSupportedError(f"no products of {a.dtype}")
    ta, tb = command.attributes
    steps = a.shape[-2 if ta else -1]
    if prod(command.output.shape) * steps < max(least, 1):
        raise NotSupportedError("it is too small to pay")
    ending = plain_ending(a.dtype, command.output.dtype)
    return ArrangedProduct(product_problem(a, b, (bool(ta), bool(tb)), [command.output], ending), (0, 1, 2))
