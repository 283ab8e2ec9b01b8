"""Kernels of products: code that products of one kind share, and the numbers of one of them."""

from __future__ import annotations

import ctypes
from functools import cache
from threading import Lock
from weakref import WeakValueDictionary

from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.products.dots import dots_of
from nnc_cpu.products.functions import render
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.plan import ProductPlan, Tile, plan_of
from nnc_cpu.threads.pool import wanted_threads
from nnc_cpu.threads.tasks import WORTH, TaskKernel, Tasks, tasks_of

__all__ = ["ProductCompiler", "ProductKernel", "compiler", "host"]

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_NAME = "product"
MULTIPLY_ADD = 0.02e-9
"""Seconds of one multiplication and addition."""


class ProductCode:
    """The function of a kind of products; its module lives as long as anything uses it."""

    def __init__(self, module: LoadedModule) -> None:
        self.module, self.address = module, module.addresses[_NAME]
        self.function = _SIGNATURE(self.address)


class ProductKernel(TaskKernel):
    """A product as machine code."""

    def __init__(self, code: ProductCode, plan: ProductPlan, seconds: float) -> None:
        self.code = code
        self.numbers = (ctypes.c_int64 * len(plan.numbers))(*plan.numbers)
        self._tasks = tasks_of(code.function, code.address, ctypes.addressof(self.numbers), plan.tasks, seconds)

    @property
    def tasks(self) -> Tasks:
        return self._tasks


class ProductCompiler:
    """Compiles products for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self._codes: WeakValueDictionary[Kind, ProductCode] = WeakValueDictionary()
        self._lock = Lock()

    @property
    def vector(self) -> int:
        """Bytes of a vector."""
        return 4 * self.target.lanes

    def kernel(self, problem: MatrixProduct, tile: Tile | None = None, exact: bool = True) -> ProductKernel:
        """The kernel of a problem; `tile`: one to be used; exact: every bit is to be that of sums in order."""
        plan = self.plan(problem, tile, exact)
        return ProductKernel(self.code(plan.kind), plan, problem.work * MULTIPLY_ADD)

    def plan(self, problem: MatrixProduct, tile: Tile | None = None, exact: bool = True) -> ProductPlan:
        """The plan of a problem for this host and the threads that there are now."""
        threads = max(1, min(wanted_threads(), int(problem.work * MULTIPLY_ADD / WORTH)))
        return plan_of(problem, self.vector, tile, threads, dots_of(problem, self.target, exact))

    def code(self, kind: Kind) -> ProductCode:
        """The code of a kind, compiled once."""
        with self._lock:
            found = self._codes.get(kind)
            if found is None:
                found = self._codes[kind] = ProductCode(self._loaded(kind))
        return found

    def _loaded(self, kind: Kind) -> LoadedModule:
        return self.machine.load([self.objects.of_kind(("product", kind), lambda: self.text(kind))], [_NAME])

    def text(self, kind: Kind) -> str:
        """The module of a kind of products."""
        declared: dict[str, None] = {}
        text = render(_NAME, kind, self.target.halves, declared)
        return "\n".join([*declared, *definitions(declared), text])


@cache
def compiler() -> ProductCompiler:
    """The compiler for this machine."""
    return ProductCompiler(host(), kept=True)
