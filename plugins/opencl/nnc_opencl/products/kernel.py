"""Kernels of products: code that products of one kind share, and the numbers of one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_core.operator.products.problem import MatrixProduct
from nnc_opencl.kernel import Numbers, OpenCLLaunch, all_of, lend
from nnc_opencl.products.each import each_source
from nnc_opencl.products.groups import GROUP, group_source
from nnc_opencl.products.kind import SumTile, TiledKind
from nnc_opencl.products.plan import TiledPlan, plan_of
from nnc_opencl.products.source import NAME
from nnc_opencl.products.tiles import tile_source
from nnc_opencl.programs import Code, ProgramBuilder
from nnc_opencl.stream import OpenCLStream


class TiledKernel(Kernel):
    """A product: one launch for each of its parts."""

    def __init__(self, code: Code, parts: Sequence[Numbers], group: int, default: OpenCLStream) -> None:
        self.code, self.parts, self.group, self.default = code, parts, group, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        launches = [self._launch(buffers, part, queue) for part in self.parts]
        return all_of(launches)

    def _launch(self, buffers: Sequence[Any], part: Numbers, queue: OpenCLStream) -> OpenCLLaunch:
        given = [*buffers, part]
        handle = lend(self.code, given, (), NAME, self.default.id)
        return OpenCLLaunch(NAME, handle, self.code.free, (part.items, self.group), given, queue)


class TiledCompiler:
    """Compiles products for one device; code lives as long as any kernel that uses it."""

    def __init__(self, builder: ProgramBuilder, default: OpenCLStream, grouped: bool) -> None:
        self.builder, self.default, self.grouped = builder, default, grouped
        self._codes: WeakValueDictionary[TiledKind, Code] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, problem: MatrixProduct, tile: SumTile | None = None) -> TiledKernel:
        """The kernel of a problem; `tile`: one to be used."""
        plan = self.plan(problem, tile)
        group = GROUP if self.grouped else 1
        code = self.code(plan.kind)
        parts = [Numbers(self.builder.context, numbers, tasks * group) for numbers, tasks in plan.parts if tasks]
        return TiledKernel(code, parts, group, self.default)

    def plan(self, problem: MatrixProduct, tile: SumTile | None = None) -> TiledPlan:
        return plan_of(problem, self.grouped, self.builder.device.max_compute_units, tile)

    def code(self, kind: TiledKind) -> Code:
        """The code of a kind, compiled once."""
        with self._lock:
            found = self._codes.get(kind)
            if found is None:
                found = self._codes[kind] = self._built(kind)
        return found

    def _built(self, kind: TiledKind) -> Code:
        write: Callable[[TiledKind], str] = group_source if self.grouped else tile_source
        if kind.left in ("each", "taps"):
            write = each_source
        return Code(self.builder.library("a product", write(kind)), NAME, self.builder.device)
