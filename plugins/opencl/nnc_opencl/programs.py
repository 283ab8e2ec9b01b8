"""Loop nests as OpenCL programs: rendered and built, many at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import pyopencl as cl

from nnc_core.base.dtype import float64
from nnc_core.base.errors import DeviceFailureError, FallbackWarning, NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import OPENCL, entry_name, expand, render_program
from nnc_core.device import DeviceSpec
from nnc_opencl.failure import last_words

TOGETHER = 16
"""Nests of one program.  Drivers for CPUs take 45 ms for a program of one and 14 ms a nest from here on; the code of a
program stays in memory as long as any of its kernels."""

POINTER = 8
"""Bytes of an argument."""


Refusal: TypeAlias = NotSupportedError | DeviceFailureError


class Code(NamedTuple):
    """A nest's function in a program."""

    program: cl.Program
    entry: str


class ProgramBuilder:
    """Builds programs for one device."""

    def __init__(self, context: cl.Context, spec: DeviceSpec) -> None:
        self.context, self.spec = context, spec
        [self.device] = context.devices
        self.options = _options(self.device)

    def build(self, nests: Sequence[LoopNest]) -> list[Code | Refusal]:
        """The code of each nest; where there is none, NotSupportedError if the device cannot have it,
        DeviceFailureError if the driver fails at it."""
        built: dict[int, Code | Refusal] = {}
        for place, nest in enumerate(nests):
            refusal = self._refusal(nest)
            if refusal is not None:
                built[place] = refusal
        rest = [place for place in range(len(nests)) if place not in built]
        for begin in range(0, len(rest), TOGETHER):
            some = rest[begin : begin + TOGETHER]
            built.update(zip(some, self._together([nests[place] for place in some]), strict=True))
        return [built[place] for place in range(len(nests))]

    def _refusal(self, nest: LoopNest) -> NotSupportedError | None:
        """The reason why the device cannot have a nest, as far as is known without its compiler."""
        if "float64" not in self.spec.dtypes and _uses_float64(nest):
            return NotSupportedError(f"{nest.name} needs float64, which {self.spec.name} does not have",
                                     device=self.spec.id, hint="cast to float32, or use another device")
        most = self.device.max_parameter_size // POINTER
        if len(nest.arguments) > most:  # some compilers crash instead of refusing it
            return NotSupportedError(
                f"{nest.name} takes {len(nest.arguments)} buffers; a kernel takes at most {most} here",
                device=self.spec.id, hint="give it fewer inputs at a time")
        return None

    def _together(self, nests: Sequence[LoopNest]) -> Iterator[Code | Refusal]:
        """The code of nests in one program; halves of them apart where that cannot be built, so that a bad one is
        found and spoils nothing."""
        names = [f"{entry_name(nest)}_{place}" for place, nest in enumerate(nests)]
        try:
            source = render_program({n: expand(nest) for n, nest in zip(names, nests, strict=True)}, OPENCL)
            program = self._program(source)
        except (NotSupportedError, cl.Error) as error:
            if len(nests) == 1:
                yield error if isinstance(error, NotSupportedError) else self._failure(nests[0], error)
                return
            middle = len(nests) // 2
            yield from self._together(nests[:middle])
            yield from self._together(nests[middle:])
            return
        yield from (Code(program, name) for name in names)

    def _failure(self, nest: LoopNest, error: cl.Error) -> DeviceFailureError:
        message = f"the driver cannot build the kernel of {nest.name}: {last_words(str(error))}"
        return DeviceFailureError(message, device=self.spec.id, hint="`nnc devices` examines the driver")

    def _program(self, source: str) -> cl.Program:
        return _small(_build_source(source, self.context, self.options), self.context, self.options)


def _uses_float64(nest: LoopNest) -> bool:
    dtypes = {argument.dtype for argument in nest.arguments}
    for stage in nest.stages:
        dtypes |= {i.dtype for i in stage.instructions} | {r.dtype for r in stage.reductions}
    return float64 in dtypes


def _options(device: cl.Device) -> list[str]:
    """IEEE results: nothing relaxed; without the option float32's division may be wrong by 2.5 ULP."""
    rounded = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    return ["-cl-fp32-correctly-rounded-divide-sqrt"] if rounded else []


def _build_source(source: str, context: cl.Context, options: list[str]) -> cl.Program:
    """Built through PyOpenCL's cache on disk, or without where that cannot be written or read."""
    _hush_remarks()
    try:
        return cl.Program(context, source).build(options)  # type: ignore[no-any-return]
    except (KeyError, OSError) as error:  # KeyError: PyOpenCL asks for a variable that says how to fail
        cause = error.__context__ or error
        message = f"PyOpenCL's cache on disk fails, building without: {cause}"
        warnings.warn(message, FallbackWarning, stacklevel=2)
        program = cl.Program(context, source)
        return program.build(options, cache_dir=False)  # type: ignore[no-any-return, arg-type]


def _small(program: cl.Program, context: cl.Context, options: list[str]) -> cl.Program:
    """Made again of its binary: with a program built from source, drivers for CPUs keep what their compiler knew."""
    [device] = context.devices
    if not device.type & cl.device_type.CPU or not program.get_info(cl.program_info.SOURCE):
        return program
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    try:
        return cl.Program(context, [device], binaries).build(options)  # type: ignore[no-any-return]
    except cl.Error:
        return program


def _hush_remarks() -> None:
    """Intel's driver reports success in words, and PyOpenCL warns; PYOPENCL_COMPILER_OUTPUT=1 shows them."""
    if not warnings.filters or warnings.filters[0][2] is not cl.CompilerWarning:
        warnings.filterwarnings("ignore", "Non-empty compiler output", cl.CompilerWarning)
