"""Loop nests as OpenCL programs: rendered and built, many at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
import pyopencl as cl

from nnc_core.base.dtype import float64
from nnc_core.base.errors import DeviceFailureError, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import (
    LIBRARY_FUNCTIONS,
    OPENCL,
    OPENCL_LOOPS,
    AnyNest,
    CLikeKernel,
    expand,
    general,
    kernel_names,
    plain_writers,
    program_of,
    writers_for_groups,
    writers_for_loops,
)
from nnc_core.device import DeviceSpec
from nnc_opencl.binaries import built
from nnc_opencl.drivers import builds_loops
from nnc_opencl.failure import build_failure
from nnc_opencl.invokers import write_once

TOGETHER = 16
"""Nests of one program.  Drivers for CPUs take 45 ms for a program of one and 14 ms a nest from here on; the code of a
program stays in memory as long as any of its kernels."""

POINTER = 8
"""Bytes of an argument."""


Refusal: TypeAlias = NotSupportedError | DeviceFailureError


HANDLES = 64
"""cl.Kernel objects kept for the next binds: making one takes 10 us, setting its arguments 0.5 us."""

write_once()


class KernelHandle:
    """A cl.Kernel, which holds arguments, and the numbers among them."""

    __slots__ = ("kernel", "numbers")

    def __init__(self, kernel: cl.Kernel) -> None:
        self.kernel = kernel
        self.numbers: tuple[np.int64, ...] = ()

    def set_arguments(self, buffers: Sequence[Any], numbers: tuple[np.int64, ...]) -> None:
        """Buffers, then numbers, which PyOpenCL takes 7 us to set, each: not if they are there."""
        if numbers is not self.numbers:
            for place, number in enumerate(numbers, len(buffers)):
                self.kernel.set_arg(place, number)
            self.numbers = numbers
        for place, buffer in enumerate(buffers):
            self.kernel.set_arg(place, buffer.memory)


class Code:
    """A function of a program, and handles of it that nobody holds; `writer`: who has written it, if it is a nest's;
    `after`: the code that finishes what it leaves."""

    def __init__(self, program: cl.Program, entry: str, device: cl.Device, writer: type[CLikeKernel] = CLikeKernel,
                 after: Code | None = None) -> None:
        self.program, self.entry, self.writer, self.after = program, entry, writer, after
        first = self.handle()
        self.free = deque([first], maxlen=HANDLES)
        largest: Any = cl.kernel_work_group_info.WORK_GROUP_SIZE
        self.largest_group: int = first.kernel.get_work_group_info(largest, device)

    def handle(self) -> KernelHandle:
        """A new handle."""
        return KernelHandle(cl.Kernel(self.program, self.entry))


class FittedCode(NamedTuple):
    """Code that nests may share, and the numbers that make it one nest's: arguments behind the buffers."""

    code: Code
    numbers: tuple[np.int64, ...]


class ProgramBuilder:
    """Builds programs for one device; `grouped`: one that runs work items in groups."""

    def __init__(self, context: cl.Context, spec: DeviceSpec, grouped: bool) -> None:
        self.context, self.spec = context, spec
        [self.device] = context.devices
        self.options = _options(self.device)
        loops = not grouped and builds_loops(self.device)
        self.dialect = OPENCL_LOOPS if loops else OPENCL
        self._writers = writers_for_groups if grouped else writers_for_loops if loops else plain_writers
        self.most_arguments = self.device.max_parameter_size // POINTER
        self._codes: WeakValueDictionary[AnyNest, Code] = WeakValueDictionary()  # with its last kernel code goes

    def build(self, nests: Sequence[LoopNest]) -> list[FittedCode | Refusal]:
        """The code of each nest, built where there is none yet; NotSupportedError if the device cannot have it,
        DeviceFailureError if the driver fails at it."""
        made = [self._general(nest) for nest in nests]
        codes: dict[AnyNest, Code | Refusal | None] = {shared: self._codes.get(shared) for shared, _ in made}
        for shared in codes:
            codes[shared] = codes[shared] or self._refusal(shared)
        new = [shared for shared, known in codes.items() if known is None]
        for begin in range(0, len(new), TOGETHER):
            some = new[begin : begin + TOGETHER]
            codes |= zip(some, self._together(some), strict=True)
        for shared in new:
            if isinstance(code := codes[shared], Code):
                self._codes[shared] = code
        return [_fitted(codes[shared], numbers) for shared, numbers in made]

    def _general(self, nest: LoopNest) -> tuple[AnyNest, tuple[int, ...]]:
        """The nest whose code serves this one, and the numbers that the code takes: none where a kernel cannot have so
        many arguments."""
        made, numbers = general(nest)
        fits = len(nest.arguments) + len(numbers) <= self.most_arguments
        return (made, numbers) if fits else (nest, ())

    def _refusal(self, made: AnyNest) -> NotSupportedError | None:
        """The reason why the device cannot have a nest, as far as is known without its compiler."""
        nest = _loops(made)
        if "float64" not in self.spec.dtypes and _uses_float64(nest):
            return NotSupportedError(f"{nest.name} needs float64, which {self.spec.name} does not have",
                                     device=self.spec.id, hint="cast to float32, or use another device")
        most = self.most_arguments
        if len(nest.arguments) > most:  # some compilers crash instead of refusing it
            return NotSupportedError(
                f"{nest.name} takes {len(nest.arguments)} buffers; a kernel takes at most {most} here",
                device=self.spec.id, hint="give it fewer inputs at a time")
        return None

    def _together(self, nests: Sequence[AnyNest]) -> Iterator[Code | Refusal]:
        """The code of nests in one program; halves of them apart where that cannot be built, so that a bad one is
        found and spoils nothing."""
        written = [kernel_names(nest, place, self._writers(nest)) for place, nest in enumerate(nests)]
        try:
            kernels = {name: (expand(nest), writer) for nest, of_nest in zip(nests, written, strict=True)
                       for name, writer in of_nest.items()}
            source = program_of(kernels, self.dialect)
            program = self.program(source)
            made = [self._code(program, of_nest) for of_nest in written]
        except (NotSupportedError, cl.Error) as error:
            if len(nests) == 1:
                yield error if isinstance(error, NotSupportedError) else self._failure(
                    _loops(nests[0]).name, str(error), source)
                return
            middle = len(nests) // 2
            yield from self._together(nests[:middle])
            yield from self._together(nests[middle:])
            return
        yield from made

    def _code(self, program: cl.Program, of_nest: dict[str, type[CLikeKernel]]) -> Code:
        """The code of a nest, which may be several kernels."""
        code: Code | None = None
        for name, writer in reversed(of_nest.items()):
            code = Code(program, name, self.device, writer, code)
        assert code is not None
        return code

    def program(self, source: str) -> cl.Program:
        """A built program; cl.Error if the driver cannot."""
        return built(source, self.context, self.options)

    def library(self, name: str, source: str) -> cl.Program:
        """The program of the library code `name`; DeviceFailureError if the driver cannot build it."""
        try:
            program = self.program(source)
            found: Any = program.get_info(cl.program_info.NUM_KERNELS)
        except cl.Error as error:
            raise self._failure(name, str(error), source) from error
        if not found:
            raise self._failure(name, "there is no kernel in the program", source)
        return program

    def _failure(self, name: str, log: str, source: str) -> DeviceFailureError:
        return build_failure(name, log, source, self.spec.id)


def _fitted(code: Code | Refusal | None, numbers: tuple[int, ...]) -> FittedCode | Refusal:
    assert code is not None
    return FittedCode(code, tuple(map(np.int64, numbers))) if isinstance(code, Code) else code


def _loops(nest: AnyNest) -> LoopNest:
    return nest if isinstance(nest, LoopNest) else nest.nest


def _uses_float64(nest: LoopNest) -> bool:
    dtypes = {argument.dtype for argument in nest.arguments}
    for stage in nest.stages:
        dtypes |= {i.dtype for i in stage.instructions} | {r.dtype for r in stage.reductions}
    return float64 in dtypes


def library_functions(device: cl.Device) -> frozenset[str]:
    """Instructions whose code is the driver's: Intel's compiler turns sin and cos of a number into one call, which
    gives other last bits."""
    return LIBRARY_FUNCTIONS if _divides_exactly(device) else LIBRARY_FUNCTIONS | {"divide", "sqrt"}


def _divides_exactly(device: cl.Device) -> bool:
    return bool(device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)


def _options(device: cl.Device) -> list[str]:
    """IEEE results: nothing relaxed; without the option float32's division may be wrong by 2.5 ULP."""
    return ["-cl-fp32-correctly-rounded-divide-sqrt"] if _divides_exactly(device) else []
