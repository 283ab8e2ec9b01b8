"""Programs of OpenCL: built from source once, and made of their binaries from then on, which are kept on disk.

PyOpenCL's own cache on disk is not used: it misses for some drivers, and does not know of the processor behind a CPU.
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyopencl as cl

from nnc_core.base.disk_cache import disk_cache, key_of

CACHE = "opencl"
"""The name of the cache on disk."""


def built(source: str, context: cl.Context, options: Sequence[str]) -> cl.Program:
    """A program for the one device of a context; cl.Error if the driver cannot build it."""
    [device] = context.devices
    kept, key = disk_cache(CACHE), key_of(identity(device).encode(), " ".join(options).encode(), source.encode())
    binary = kept.read(key) if kept else None
    found = None if binary is None else of_binary(binary, context, options)
    if found is not None:
        return found
    program = of_source(source, context, options)
    binaries: Any = program.get_info(cl.program_info.BINARIES)
    if kept and binaries[0]:
        kept.write(key, binaries[0])
    return small(program, binaries[0], context, options)


def identity(device: cl.Device) -> str:
    """All that decides which binaries a device runs."""
    names = (device.platform.name, device.platform.version, device.name, device.vendor, device.driver_version,
             device.extensions, str(device.address_bits))
    return "\n".join(names) + (processor() if device.type & cl.device_type.CPU else "")


@cache
def processor() -> str:
    """The instructions of this machine's processor: names of CPUs in clouds say little."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def of_source(source: str, context: cl.Context, options: Sequence[str]) -> cl.Program:
    _hush_remarks()
    return cl.Program(context, source).build(list(options), cache_dir=False)  # type: ignore[no-any-return, arg-type]


class OfBinary(cl.Program):
    """PyOpenCL asks a program for its source whenever it makes a kernel, and where there is none for a kernel of that
    name, which takes six times as long as making the kernel."""

    _source = ""


def of_binary(binary: bytes, context: cl.Context, options: Sequence[str]) -> cl.Program | None:
    """The program; None if the driver does not take it."""
    _hush_remarks()
    try:
        return OfBinary(context, context.devices, [binary]).build(list(options))  # type: ignore[no-any-return]
    except cl.Error:
        return None


def small(program: cl.Program, binary: bytes, context: cl.Context, options: Sequence[str]) -> cl.Program:
    """Made again of its binary: with a program built from source, drivers for CPUs keep what their compiler knew."""
    [device] = context.devices
    if not device.type & cl.device_type.CPU:
        return program
    return of_binary(binary, context, options) or program


def _hush_remarks() -> None:
    """Intel's driver reports success in words, and PyOpenCL warns; PYOPENCL_COMPILER_OUTPUT=1 shows them."""
    if not warnings.filters or warnings.filters[0][2] is not cl.CompilerWarning:
        warnings.filterwarnings("ignore", "Non-empty compiler output", cl.CompilerWarning)
