"""Loop nests on the host: machine code where LLVM is installed, core's interpreter where it is not."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TypeAlias

from nnc_core.base.errors import FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen.interpret import interpret
from nnc_core.device import Buffer, Kernel, Launch, Stream

Compiler: TypeAlias = Callable[[Sequence[LoopNest]], "list[Kernel | NotSupportedError]"]
"""Kernels of nests, in order; for one that is refused the error itself."""


class InterpretedKernel(Kernel):
    """A loop nest, run by core's interpreter: right, and slow."""

    def __init__(self, nest: LoopNest) -> None:
        self.nest = nest

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        return partial(interpret, self.nest, list(buffers))  # type: ignore[arg-type]


def interpreted(nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
    """Kernels of the interpreter."""
    return [InterpretedKernel(nest) for nest in nests]


def make_compiler() -> Compiler:
    """LLVM's; without it the interpreter, which is said.  LLVM takes a tenth of a second to load: not before it is
    needed."""
    try:
        llvm = import_module("nnc_cpu.llvm.kernel")
    except ImportError as error:
        warnings.warn(f"loop nests of cpu:0 are interpreted, which is slow: LLVM cannot be loaded ({error}); "
                      "`pip install llvmlite`", FallbackWarning, stacklevel=2)
        return interpreted
    found: Compiler = llvm.NestCompiler(llvm.host()).kernels
    return found
