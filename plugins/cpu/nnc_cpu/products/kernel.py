"""Kernels of products: code that products of one kind share, and the numbers of one of them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.products.driver import render
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.plan import ProductPlan, Tile, plan_of
from nnc_cpu.products.problem import MatrixProduct

__all__ = ["ProductCompiler", "ProductKernel", "compiler", "host"]

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_NAME = "product"


class ProductCode:
    """The function of a kind of products; its module lives as long as anything uses it."""

    def __init__(self, module: LoadedModule) -> None:
        self.module = module
        self.function = _SIGNATURE(module.addresses[_NAME])


class ProductKernel(Kernel):
    """A product as machine code."""

    def __init__(self, code: ProductCode, plan: ProductPlan, order: Sequence[int]) -> None:
        self.code, self.order, self.tasks = code, order, plan.tasks
        self.numbers = (ctypes.c_int64 * len(plan.numbers))(*plan.numbers)

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        kept: list[Any] = [buffers[n] for n in self.order]
        table = (ctypes.c_void_p * len(kept))(*[buffer.__array_interface__["data"][0] for buffer in kept])
        table.kept = kept, self  # type: ignore[attr-defined]
        return partial(self.code.function, table, self.numbers, 0, self.tasks)


class ProductCompiler:
    """Compiles products for one host."""

    def __init__(self, target: TargetHost) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self._codes: WeakValueDictionary[Kind, ProductCode] = WeakValueDictionary()
        self._lock = Lock()

    @property
    def vector(self) -> int:
        """Bytes of a vector."""
        return 4 * self.target.lanes

    def kernel(self, problem: MatrixProduct, order: Sequence[int], tile: Tile | None = None) -> ProductKernel:
        """The kernel of a problem, whose arrays are those of a command in this order; `tile`: one to be used."""
        plan = plan_of(problem, self.vector, tile)
        return ProductKernel(self.code(plan.kind), plan, order)

    def code(self, kind: Kind) -> ProductCode:
        """The code of a kind, compiled once."""
        with self._lock:
            found = self._codes.get(kind)
            if found is None:
                found = self._codes[kind] = ProductCode(self._loaded(kind))
        return found

    def _loaded(self, kind: Kind) -> LoadedModule:
        declared: dict[str, None] = {}
        text = render(_NAME, kind, self.target.halves, declared)
        return self.machine.load("\n".join([*declared, *definitions(declared), text]), {_NAME: None})


@cache
def compiler() -> ProductCompiler:
    """The compiler for this machine."""
    return ProductCompiler(host())
