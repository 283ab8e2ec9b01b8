"""Kernels of products: code that products of one kind share, and the numbers of one of them."""

from __future__ import annotations

from functools import cache
from math import prod

from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.kinds import CodeByKind, FunctionCode, FunctionKernel
from nnc_cpu.llvm.compiler import HostCompiler, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.products.dots import dots_of
from nnc_cpu.products.functions import render
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.plan import ProductPlan, Tile, plan_of
from nnc_cpu.threads.pool import wanted_threads
from nnc_cpu.threads.tasks import WORTH

__all__ = ["ProductCompiler", "compiler", "host"]

_NAME = "product"
MULTIPLY_ADD, BYTE = 0.02e-9, 0.05e-9
"""Seconds of one multiplication and addition, and of reading a byte of B from memory."""


class ProductCompiler:
    """Compiles products for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)

    @property
    def vector(self) -> int:
        """Bytes of a vector."""
        return 4 * self.target.lanes

    def kernel(self, problem: MatrixProduct, tile: Tile | None = None, exact: bool = True) -> FunctionKernel:
        """The kernel of a problem; `tile`: one to be used; exact: every bit is to be that of sums in order."""
        plan = self.plan(problem, tile, exact)
        return FunctionKernel(self.codes[plan.kind], plan.numbers, plan.tasks, seconds_of(problem))

    def plan(self, problem: MatrixProduct, tile: Tile | None = None, exact: bool = True) -> ProductPlan:
        """The plan of a problem for this host and the threads that there are now."""
        threads = max(1, min(wanted_threads(), int(seconds_of(problem) / WORTH)))
        return plan_of(problem, self.vector, tile, threads, dots_of(problem, self.target, exact))

    def _made(self, kind: Kind) -> FunctionCode:
        code = self.objects.of_kind(("product", kind), lambda: self.text(kind))
        return FunctionCode(self.machine.load([code], [_NAME]), _NAME)

    def text(self, kind: Kind) -> str:
        """The module of a kind of products."""
        declared: dict[str, None] = {}
        text = render(_NAME, kind, self.target.halves, declared)
        return "\n".join([*declared, *definitions(declared), text])


def seconds_of(problem: MatrixProduct) -> float:
    """About what one thread takes: to multiply, or to read B where there are few rows."""
    size = 0 if problem.parts else prod(problem.batch) * problem.steps * problem.columns * problem.dtype.itemsize
    return max(problem.work * MULTIPLY_ADD, size * BYTE)


@cache
def compiler() -> ProductCompiler:
    """The compiler for this machine."""
    return ProductCompiler(host(), kept=True)
