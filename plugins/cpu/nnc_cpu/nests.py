"""Loop nests on the host: interpreted until machine code pays, and for good where LLVM is not installed."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from math import prod
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from nnc_core.base.config import config
from nnc_core.base.dtype import is_float
from nnc_core.base.errors import FallbackWarning, NotSupportedError
from nnc_core.base.line import users_frame
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS, is_expanded
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_cpu.notes import clear, look, words_at
from nnc_cpu.partial_sums import in_parts

if TYPE_CHECKING:
    from nnc_cpu.threads.tasks import TaskKernel


class Compiler(Protocol):
    """Makes machine code of nests."""

    def kernels(self, nests: Sequence[LoopNest]) -> Sequence[Kernel | NotSupportedError | None]:
        """A kernel of each, in order; for one that is refused the error itself, None where there is no compiler."""

    def kept(self, nests: Sequence[LoopNest]) -> list[bool]:
        """Tell of each whether its code has been made, by this process or one before."""


PATIENCE = 0.008
"""Seconds that interpreting may take for each kernel before it is compiled: about what compiling takes."""
LOADING, LOADING_LLVM = 0.0005, 0.05
"""Seconds that it takes to find and to load the code of a kernel that is on disk, and LLVM itself."""
AT_ONCE = 1 << 19
"""Scalar instructions of one run that are compiled before they are run at all."""


class TieredKernel(Kernel):
    """A loop nest, interpreted or as machine code, with the same bits."""

    def __init__(self, nest: LoopNest, together: Together) -> None:
        self.nest, self.together = nest, together
        self.machine: Kernel | None = None
        """Its machine code, once it is there."""
        self.agrees = _agrees(nest)
        self.at_once = _work(nest) > AT_ONCE or not self.agrees
        self.notes = nest.notes
        self._expanded: LoopNest | None = None

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        machine = self.machine or self.ready()
        return machine.bind(buffers) if machine is not None else _TieredLaunch(self, buffers)

    def launch(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> None:
        machine = self.machine or self.ready()
        if machine is not None:
            machine.launch(buffers)
        else:
            self.interpret(buffers)

    def ready(self) -> Kernel | None:
        """Its machine code, compiled or loaded now if that pays."""
        if self.machine is None:
            if self.together.pays(self):
                self.together.compile()
            elif self.together.may_be_kept():
                self.together.load()
        return self.machine

    def interpret(self, buffers: Sequence[Buffer]) -> None:
        """Run it without machine code."""
        if self._expanded is None:
            self._expanded = expand(self.nest, EXPANSIONS)
        words = words_at(buffers[-1].ctypes.data) if self.notes else None  # type: ignore[attr-defined]
        begin = perf_counter()
        if words is not None:
            clear(words)
        interpret(self._expanded, list(buffers), in_parts=in_parts)  # type: ignore[arg-type]
        self.together.spent += perf_counter() - begin
        if words is not None:
            look(words)


def machine_of(kernel: Any) -> TaskKernel | None:
    """The machine code of a kernel, if it is some, has some by now, or gets it now since that pays."""
    ready: Callable[[], TaskKernel | None] | None = getattr(kernel, "ready", None)
    return None if ready is None else ready()


def _work(nest: LoopNest) -> int:
    """The number of scalar instructions that a run takes."""
    return nest.points * sum([prod(stage.axes) * len(stage.instructions) for stage in nest.stages])


def _agrees(nest: LoopNest) -> bool:
    """Tell whether the interpreter gives the bits of machine code: NumPy has powers of float64 and logarithms of its
    own."""
    return not any([i.operation == "power" and is_float(i.dtype) and not is_expanded("power", i.dtype)
                    for stage in nest.stages for i in stage.instructions]
                   + [r.kind == "logsumexp" for stage in nest.stages for r in stage.reductions])


class _TieredLaunch:
    """A launch that goes over to machine code when there is some."""

    __slots__ = ("bound", "buffers", "kernel")

    def __init__(self, kernel: TieredKernel, buffers: Sequence[Buffer]) -> None:
        self.kernel, self.buffers = kernel, tuple(buffers)
        self.bound: Launch | None = None

    def __call__(self) -> None:
        if self.bound is None:
            machine = self.kernel.ready()
            if machine is None:
                self.kernel.interpret(self.buffers)
                return
            self.bound = machine.bind(self.buffers)
        self.bound()


class Together:
    """Kernels that were asked for at once are compiled at once, when interpreting them has cost what that will; before,
    those whose code is on disk are loaded at once, when it has cost what that will."""

    def __init__(self, source: NestKernels | None) -> None:
        self.source = source
        self.spent = 0.0
        """Seconds that interpreting has taken."""
        self._looked = False
        self._kernels: list[ref[TieredKernel]] = []
        self._lock = Lock()

    def follow(self, kernel: TieredKernel) -> TieredKernel:
        """Compile a kernel with the others, for as long as somebody has it."""
        self._kernels.append(ref(kernel))
        return kernel

    def pays(self, kernel: TieredKernel) -> bool:
        """Tell whether it is time to compile."""
        if self.source is None:
            return False
        return kernel.at_once or self.spent > PATIENCE * len(self._kernels) or config.compile_at_once

    def may_be_kept(self) -> bool:
        """Tell whether it is time to look for code that is on disk, which is done once."""
        if self._looked or self.source is None:
            return False
        more = LOADING_LLVM if sys.modules.get("llvmlite") is None else 0.0
        return self.spent > LOADING * len(self._kernels) + more

    def compile(self) -> None:
        """Make the machine code of all kernels that are still in use.  One that LLVM refuses stays interpreted."""
        with self._lock:
            self._compile(self._left())

    def load(self) -> None:
        """Load the machine code that is there already."""
        self._looked = True
        with self._lock:
            left = self._left()
            if self.source is not None and left:
                is_kept = self.source.compiler.kept([kernel.nest for kernel in left])
                self._compile([kernel for kernel, kept in zip(left, is_kept, strict=True) if kept])

    def _left(self) -> list[TieredKernel]:
        return [kernel for found in self._kernels if (kernel := found()) is not None and kernel.machine is None]

    def _compile(self, kernels: Sequence[TieredKernel]) -> None:
        if self.source is None or not kernels:
            return
        made = self.source.compiler.kernels([kernel.nest for kernel in kernels])
        for kernel, machine in zip(kernels, made, strict=True):
            if isinstance(machine, Kernel):
                kernel.machine = machine
                continue
            kernel.together = Together(None)
            if machine is not None:
                warnings.warn(f"a loop nest of {kernel.nest.name} is interpreted on cpu:0, which is slow: "
                              f"{machine.message}", FallbackWarning, stacklevel=users_frame())


class NestKernels:
    """Makes the kernels of loop nests; LLVM, a tenth of a second to load, comes when one pays."""

    def of(self, nests: Sequence[LoopNest]) -> list[TieredKernel]:
        """A kernel of each."""
        together = Together(self)
        return [together.follow(TieredKernel(nest, together)) for nest in nests]

    @cached_property
    def compiler(self) -> Compiler:
        """Maker of machine code."""
        return make_compiler()


def has_llvm() -> bool:
    """Tell whether LLVM is installed, without loading it."""
    return find_spec("llvmlite") is not None


def make_compiler() -> Compiler:
    """LLVM's; without it none, which is said."""
    try:
        llvm = import_module("nnc_cpu.llvm.kernel")
    except ImportError as error:
        warnings.warn(f"loop nests of cpu:0 are interpreted, which is slow: LLVM cannot be loaded ({error}); "
                      "`pip install llvmlite`", FallbackWarning, stacklevel=users_frame())
        return NoCompiler()
    found: Compiler = llvm.NestCompiler(llvm.host(), kept=True)
    return found


class NoCompiler:
    """The compiler where there is none."""

    def kernels(self, nests: Sequence[LoopNest]) -> Sequence[None]:
        return [None] * len(nests)

    def kept(self, nests: Sequence[LoopNest]) -> list[bool]:
        return [False] * len(nests)
