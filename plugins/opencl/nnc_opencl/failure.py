"""Errors of the driver as errors of the house."""

from __future__ import annotations

from hashlib import sha256

import pyopencl as cl

from nnc_core.base.cache_folder import cache_folder
from nnc_core.base.errors import DeviceFailureError, DeviceLostError, DeviceMemoryError, Error

OUT_OF_MEMORY = (cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE, cl.status_code.OUT_OF_HOST_MEMORY)
"""Drivers may allocate lazily: then a transfer or a launch reports these."""

FAILURES = "opencl-failures"
"""The folder, in that of the caches, of programs that could not be built."""

LOST = (cl.status_code.DEVICE_NOT_AVAILABLE, cl.status_code.INVALID_CONTEXT, cl.status_code.INVALID_COMMAND_QUEUE)
"""Reports on a device that was good when it was opened: it has gone, or its context died of a kernel."""


def failure(action: str, error: cl.Error, device: str) -> Error:
    """The meaning of `error`, raised while doing `action`."""
    return failure_of_code(action, error.code, device, str(error))


def failure_of_code(action: str, code: int, device: str, detail: str = "") -> Error:
    """The meaning of a negative status of OpenCL."""
    text = f"{action} failed: {detail or status_name(code)}"
    if code in OUT_OF_MEMORY:
        return DeviceMemoryError(text, device=device, hint="free buffers, or use smaller batches")
    if code in LOST:
        return DeviceLostError(text, device=device, hint=f"nnc.reopen({device!r}); what lay in its memory is lost")
    return DeviceFailureError(text, device=device, hint="`nnc devices` examines the driver")


def status_name(code: int) -> str:
    """OpenCL's word for a status; drivers have statuses of their own as well."""
    words = (name for name in dir(cl.status_code) if getattr(cl.status_code, name) == code)
    return f"{next(words, 'status')} ({code})"


def last_words(log: str) -> str:
    """The line of a build log that says most: its last error, else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith("(")]
    errors = [line for line in lines if "error:" in line.lower()]
    return (errors or lines or ["no log"])[-1]


def build_failure(name: str, log: str, source: str, device: str) -> DeviceFailureError:
    """The error for a driver that does not build the kernel of `name`; it names the file where its source is kept."""
    kept = kept_source(source, log)
    where = f" (its source, with the driver's words: {kept})" if kept else ""
    return DeviceFailureError(f"the driver cannot build the kernel of {name}: {last_words(log)}{where}",
                              device=device, hint="`nnc devices` examines the driver")


def kept_source(source: str, log: str) -> str:
    """The name of a file with a program that a driver does not build, for its author; "" where none can be written."""
    folder, words = cache_folder() / FAILURES, log.replace("*/", "* /")
    file = folder / f"{sha256(source.encode()).hexdigest()[:16]}.cl"
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        file.write_text(f"{source}\n/*\n{words}\n*/\n", encoding="utf-8")
    except OSError:
        return ""
    return str(file)
