"""Matrix products by packed panels: the backend for `matmul`."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from math import prod

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_cpu.products.ending import plain_ending
from nnc_cpu.products.problem import MatrixProduct, product_problem

WORTH = 1 << 15
"""Multiply-adds from which on a call pays."""


class PackedProducts(CommandBackend):
    """Matrix products as machine code."""

    name = "packed"

    def refuse(self, command: Command) -> str | None:
        try:
            _problem(command)
        except NotSupportedError as error:
            return error.message
        return None

    def prepare(self, command: Command) -> Kernel:
        kernel: Kernel = import_module("nnc_cpu.products.kernel").compiler().kernel(_problem(command))
        return kernel


@lru_cache(maxsize=1024)
def _problem(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it."""
    if command.name != "matmul":
        raise NotSupportedError("made for matmul")
    return problem_of(command, least=WORTH)


def problem_of(command: Command, least: int = 0) -> MatrixProduct:
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
    return product_problem(a, b, (bool(ta), bool(tb)), [command.output], ending)
