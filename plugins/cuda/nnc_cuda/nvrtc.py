"""NVRTC, NVIDIA's compiler of CUDA C as a library: it needs no GPU.

Called through ctypes, since it must work where CuPy is not installed; `cuda.pathfinder` knows where NVIDIA's wheels,
CUDA's installer and conda put it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from nnc_core.base.errors import PluginError
from nnc_cuda.driver import CompileError

OPTIONS = ("--fmad=false", "--std=c++17")
"""Arithmetic is rounded as it stands, nothing is contracted."""
INSTALL = "`pip install nnc-cuda[cuda12x]` or `nnc-cuda[cuda13x]`, whichever the driver is for"


@cache
def library() -> Any:
    """NVRTC, loaded; PluginError if there is none."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # the extras bring it, not the plugin

        return ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
    except (ImportError, RuntimeError, OSError) as error:
        raise PluginError(f"NVRTC, the compiler of CUDA C, cannot be loaded: {error}", hint=INSTALL) from error


def version() -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check("nvrtcVersion", library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return major.value, minor.value


def capabilities() -> list[tuple[int, int]]:
    """The compute capabilities that it makes machine code for, ascending."""
    count = ctypes.c_int()
    _check("nvrtcGetNumSupportedArchs", library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    numbers = (ctypes.c_int * count.value)()
    _check("nvrtcGetSupportedArchs", library().nvrtcGetSupportedArchs(numbers))
    return sorted(divmod(number, 10) for number in numbers)


def target(capability: tuple[int, int]) -> str:
    """The architecture to compile for: machine code of a device, or what its driver makes that of if it is newer than
    this NVRTC."""
    known = capabilities()
    if capability in known:
        return "sm_{}{}".format(*capability)
    older = [one for one in known if one <= capability]
    if not older:
        raise PluginError(f"NVRTC {version()} makes no code for compute capability {capability}", hint=INSTALL)
    return "compute_{}{}".format(*older[-1])


class NVRTC:
    """Makes code for one compute capability."""

    def __init__(self, capability: tuple[int, int], options: Sequence[str] = OPTIONS) -> None:
        self.target = target(capability)
        self.options = (f"--gpu-architecture={self.target}", *options)
        self.identity = "\n".join(["NVRTC {}.{}".format(*version()), *self.options])

    def compile(self, source: str) -> bytes:
        nvrtc, program = library(), ctypes.c_void_p()
        made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"nnc.cu", 0, None, None)
        _check("nvrtcCreateProgram", made)
        try:
            words = (ctypes.c_char_p * len(self.options))(*[option.encode() for option in self.options])
            status = nvrtc.nvrtcCompileProgram(program, len(words), words)
            if status:
                raise CompileError(_text(program, "ProgramLog").decode(errors="replace") or _meaning(status))
            return _text(program, "CUBIN" if self.target.startswith("sm_") else "PTX")
        finally:
            nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> bytes:
    """One of the results of a program."""
    size = ctypes.c_size_t()
    _check(f"nvrtcGet{what}Size", getattr(library(), f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(f"nvrtcGet{what}", getattr(library(), f"nvrtcGet{what}")(program, buffer))
    return buffer.raw.rstrip(b"\0") if what == "ProgramLog" else buffer.raw


def _check(call: str, status: int) -> None:
    if status:
        raise PluginError(f"{call} fails: {_meaning(status)}", hint=INSTALL)


def _meaning(status: int) -> str:
    text = library().nvrtcGetErrorString
    text.restype = ctypes.c_char_p
    return (text(status) or b"unknown").decode()
