"""Calls of the driver itself that CuPy does not have, through ctypes: it is there wherever a GPU can be used."""

from __future__ import annotations

import ctypes
import sys
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


def check(call: str, status: int) -> None:
    """Raise what a call says if that is not success."""
    if status:
        text = ctypes.c_char_p()
        library().cuGetErrorString(status, ctypes.byref(text))
        raise CudaError(status, f"{call}: {(text.value or b'unknown error').decode()}")
