"""Kernels of products: code that products of one kind share, and the numbers of one of them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from weakref import WeakValueDictionary

from nnc_core.base.errors import DeviceFailureError
from nnc_core.device import Buffer, Launch, Stream
from nnc_core.operator.products.problem import MatrixProduct
from nnc_cuda.driver import CompileError
from nnc_cuda.failure import explained
from nnc_cuda.kernel import THREADS as PLAIN_THREADS
from nnc_cuda.kernel import CapturableKernel, CudaLaunch, LaunchStep
from nnc_cuda.modules import ModuleBuilder, ModuleFunction, last_words
from nnc_cuda.products.kind import THREADS, ProductKind
from nnc_cuda.products.plan import BlockPlan, plan_of
from nnc_cuda.products.source import PIECES, TILES
from nnc_cuda.products.tiles import product_source
from nnc_cuda.stream import CudaStream


class BlockProduct(CapturableKernel):
    """A product: one launch for each of its parts, and one more where steps are split."""

    name = "a product"

    def __init__(self, code: ModuleFunction, plan: BlockPlan, default: CudaStream) -> None:
        self.default, self.steps = default, list[LaunchStep]()
        for part in plan.parts:
            self.steps.append(LaunchStep(code, part.blocks, THREADS, part.numbers))
            if code.after is not None:
                blocks = -(-part.elements // PLAIN_THREADS)
                self.steps.append(LaunchStep(code.after, blocks, PLAIN_THREADS, part.numbers))

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """Inputs, outputs, and the memory for pieces where there are some."""
        return CudaLaunch(self.name, self.steps, buffers, self.queue(stream))


class BlockProductCompiler:
    """Compiles products for one device; code lives as long as any kernel that uses it."""

    def __init__(self, builder: ModuleBuilder, default: CudaStream) -> None:
        self.builder, self.default = builder, default
        self._codes: WeakValueDictionary[ProductKind, ModuleFunction] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, problem: MatrixProduct, tile: tuple[int, int] | None = None,
               pieces: int | None = None) -> BlockProduct:
        """The kernel of a problem; `tile`, `pieces`: those to be used."""
        plan = plan_of(problem, tile, pieces)
        return BlockProduct(self.code(plan.kind), plan, self.default)

    def code(self, kind: ProductKind) -> ModuleFunction:
        """The code of a kind, compiled once."""
        with self._lock:
            found = self._codes.get(kind)
            if found is None:
                found = self._codes[kind] = self._built(kind)
        return found

    def _built(self, kind: ProductKind) -> ModuleFunction:
        try:
            module = self.builder.module(product_source(kind))
        except CompileError as error:
            message = f"NVRTC cannot compile the kernel of a product: {last_words(str(error))}"
            hint = "`nnc devices` examines the driver"
            raise DeviceFailureError(message, device=self.builder.id, hint=hint) from error
        with explained("looking a kernel up", self.builder.id):
            after = ModuleFunction(module, PIECES) if kind.split else None
            return ModuleFunction(module, TILES, after=after)
