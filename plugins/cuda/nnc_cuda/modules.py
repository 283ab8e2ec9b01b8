"""Loop nests as modules of CUDA: rendered and compiled, many at a time, and kept on disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from nnc_core.base.disk_cache import disk_cache, key_of
from nnc_core.base.errors import DeviceFailureError, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import AnyNest, CLikeKernel, expand, general, kernel_names, program_of
from nnc_cuda.dialect import CUDA
from nnc_cuda.driver import CompileError, CudaCompiler, CudaError, Driver
from nnc_cuda.failure import explained
from nnc_cuda.vectors import writers_of

CACHE = "cuda"
"""The name of the cache on disk."""
TOGETHER = 16
"""Nests of one module: NVRTC takes some 100 ms for a module of one, and 20 to 35 ms a nest from there on."""
MOST_ARGUMENTS = 4096 // 8
"""Arguments of eight bytes that a kernel takes on every device."""

Refusal: TypeAlias = NotSupportedError | DeviceFailureError


class Module:
    """Loaded code, which goes with the last kernel that uses it."""

    def __init__(self, driver: Driver, code: bytes) -> None:
        self.driver, self.handle = driver, 0
        self.handle = driver.load(code)

    def __del__(self) -> None:
        if self.handle:
            with suppress(CudaError):
                self.driver.unload(self.handle)


class ModuleFunction:
    """A function in a module; `writer`: who has written it, of a nest's; `after`: the one that finishes what it
    leaves."""

    __slots__ = ("__weakref__", "after", "handle", "module", "writer")

    def __init__(self, module: Module, name: str, writer: type[CLikeKernel] | None = None,
                 after: ModuleFunction | None = None) -> None:
        self.module, self.handle = module, module.driver.function(module.handle, name)
        self.writer, self.after = writer, after


class FittedFunction(NamedTuple):
    """A function that nests may share, and the numbers that make it one nest's: arguments behind the buffers."""

    function: ModuleFunction
    numbers: tuple[int, ...]


class ModuleBuilder:
    """Builds modules for one device."""

    def __init__(self, driver: Driver, compiler: CudaCompiler, id: str) -> None:
        self.driver, self.compiler, self.id = driver, compiler, id
        self._codes: WeakValueDictionary[AnyNest, ModuleFunction] = WeakValueDictionary()  # code goes with its kernels
        self._lock = threading.Lock()

    def build(self, nests: Sequence[LoopNest]) -> list[FittedFunction | Refusal]:
        """The code of each nest, built where there is none yet; NotSupportedError if the device cannot have it,
        DeviceFailureError if the compiler fails at it."""
        made = [_general(nest) for nest in nests]
        with self._lock:
            codes: dict[AnyNest, ModuleFunction | Refusal | None] = {
                shared: self._codes.get(shared) or self._refusal(shared) for shared, _ in made}
            new = [shared for shared, known in codes.items() if known is None]
            for begin in range(0, len(new), TOGETHER):
                some = new[begin : begin + TOGETHER]
                codes |= zip(some, self._together(some), strict=True)
            for shared in new:
                if isinstance(code := codes[shared], ModuleFunction):
                    self._codes[shared] = code
        return [_fitted(codes[shared], numbers) for shared, numbers in made]

    def _refusal(self, made: AnyNest) -> NotSupportedError | None:
        nest = _loops(made)
        if len(nest.arguments) <= MOST_ARGUMENTS:
            return None
        return NotSupportedError(
            f"{nest.name} takes {len(nest.arguments)} buffers; a kernel takes at most {MOST_ARGUMENTS} here",
            device=self.id, hint="give it fewer inputs at a time")

    def _together(self, nests: Sequence[AnyNest]) -> Iterator[ModuleFunction | Refusal]:
        """The code of nests in one module; halves of them apart where that cannot be built, so that a bad one is found
        and spoils nothing."""
        written = [kernel_names(nest, place, writers_of(nest)) for place, nest in enumerate(nests)]
        try:
            kernels = {name: (expand(nest), writer) for nest, of_nest in zip(nests, written, strict=True)
                       for name, writer in of_nest.items()}
            module = self.module(program_of(kernels, CUDA))
        except (NotSupportedError, CompileError) as error:
            if len(nests) == 1:
                yield error if isinstance(error, NotSupportedError) else self._failure(nests[0], error)
                return
            middle = len(nests) // 2
            yield from self._together(nests[:middle])
            yield from self._together(nests[middle:])
            return
        for of_nest in written:
            with explained("looking a kernel up", self.id):
                yield _function(module, of_nest)

    def module(self, source: str) -> Module:
        """The loaded code of a program: compiled once, and taken from the disk from then on."""
        kept, key = disk_cache(CACHE), key_of(self.compiler.identity.encode(), source.encode())
        code = kept.read(key) if kept else None
        if code is not None:
            with suppress(CudaError):  # of another device or driver, by a key that says too little
                return Module(self.driver, code)
        code = self.compiler.compile(source)
        with explained("loading a module", self.id):
            module = Module(self.driver, code)
        if kept:
            kept.write(key, code)
        return module

    def _failure(self, nest: AnyNest, error: CompileError) -> DeviceFailureError:
        message = f"NVRTC cannot compile the kernel of {_loops(nest).name}: {last_words(str(error))}"
        return DeviceFailureError(message, device=self.id, hint="`nnc devices` examines the driver")


def last_words(log: str) -> str:
    """The line of a log that says most: its first error, else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), (lines or ["no log"])[-1])


def _general(nest: LoopNest) -> tuple[AnyNest, tuple[int, ...]]:
    """The nest whose code serves this one, and the numbers that the code takes: none where these are too many."""
    made, numbers = general(nest)
    return (made, numbers) if len(nest.arguments) + len(numbers) <= MOST_ARGUMENTS else (nest, ())


def _function(module: Module, of_nest: dict[str, type[CLikeKernel]]) -> ModuleFunction:
    """The first of a nest's kernels."""
    function: ModuleFunction | None = None
    for name, writer in reversed(of_nest.items()):
        function = ModuleFunction(module, name, writer, function)
    assert function is not None
    return function


def _fitted(code: ModuleFunction | Refusal | None, numbers: tuple[int, ...]) -> FittedFunction | Refusal:
    assert code is not None
    return FittedFunction(code, numbers) if isinstance(code, ModuleFunction) else code


def _loops(nest: AnyNest) -> LoopNest:
    return nest if isinstance(nest, LoopNest) else nest.nest
