"""Calls of the driver itself that CuPy does not have, through ctypes: it is there wherever a GPU can be used."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import cache
from typing import Any

from nnc_cuda.driver import CudaError

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
AT_LEAST = 0
"""CU_STREAM_WAIT_VALUE_GEQ."""


@cache
def library() -> Any:
    """The driver, loaded; None where there is none."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def wait_for_word(stream: int, address: int) -> bool:
    """Let what is enqueued later on a stream begin when a word of 32 bits at an address is 1; False where the driver is
    too old for that."""
    call = getattr(library(), "cuStreamWaitValue32_v2", None)
    if call is None:
        return False
    check("cuStreamWaitValue32", call(ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(1),
                                      ctypes.c_uint(AT_LEAST)))
    return True


def primary_context(number: int) -> int:
    """The context that the runtime library has for a device, which from now on stays until the process ends."""
    context = c_void_p()
    check("cuDevicePrimaryCtxRetain", library().cuDevicePrimaryCtxRetain(byref(context), c_int(number)))
    return int(context.value or 0)


@contextmanager
def within(context: int) -> Iterator[None]:
    """Let this thread's calls mean a context's device, and afterwards whatever they meant before."""
    check("cuCtxPushCurrent", library().cuCtxPushCurrent_v2(c_void_p(context)))
    try:
        yield
    finally:
        check("cuCtxPopCurrent", library().cuCtxPopCurrent_v2(byref(c_void_p())))


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2, the beginning of which is the first version."""

    _fields_ = [("function", c_void_p), ("blocks", c_uint * 3), ("threads", c_uint * 3), ("shared", c_uint),
                ("arguments", c_void_p), ("extra", c_void_p), ("kernel", c_void_p), ("context", c_void_p)]


def last_node(stream: int) -> int:
    """The node that was captured last on a stream, after which the next one comes; 0 where the driver is too old to
    tell (before CUDA 11.3), and where several come before the next."""
    call = getattr(library(), "cuStreamGetCaptureInfo_v2", None)
    if call is None:
        return 0
    state, number, graph = c_int(), c_uint64(), c_void_p()
    nodes, count = ctypes.POINTER(c_void_p)(), c_size_t()
    check("cuStreamGetCaptureInfo", call(c_void_p(stream), byref(state), byref(number), byref(graph), byref(nodes),
                                         byref(count)))
    return int(nodes[0] or 0) if count.value == 1 else 0


def set_arguments(graph: int, node: int, function: int, blocks: int, threads: int, arguments: int) -> None:
    """Give a kernel of a graph that is ready to be launched the arguments at an array of addresses."""
    driver, ones = library(), (1, 1)
    call = getattr(driver, "cuGraphExecKernelNodeSetParams_v2", None) or driver.cuGraphExecKernelNodeSetParams
    made = KernelNode(function, (blocks, *ones), (threads, *ones), 0, arguments)
    check("cuGraphExecKernelNodeSetParams", call(c_void_p(graph), c_void_p(node), byref(made)))


def check(call: str, status: int) -> None:
    """Raise what a call says if that is not success."""
    if status:
        text = ctypes.c_char_p()
        library().cuGetErrorString(status, ctypes.byref(text))
        raise CudaError(status, f"{call}: {(text.value or b'unknown error').decode()}")
