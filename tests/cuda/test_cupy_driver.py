"""The driver through CuPy's calls, which a stand-in has that knows of two devices and the one that is current."""

from __future__ import annotations

import pytest

from tests.plugins.fixtures.distributions import run_with

CUPY = '''
import sys, types
class CUDARuntimeError(Exception):
    def __init__(self, status, text="refused"):
        super().__init__(text)
        self.status = status
class CUDADriverError(CUDARuntimeError): pass
contexts, log, retained = [0], [], []
def malloc(nbytes):
    log.append(("malloc", contexts[-1]))
    if nbytes > 99:
        raise CUDARuntimeError(2, "out of memory")
    return 4096
def captured(stream):
    log.append("end capture")
    return 7
runtime = types.SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError, getDevice=lambda: contexts[-1], malloc=malloc, memoryTypeDevice=2,
    streamBeginCapture=lambda *_: log.append("begin capture"), streamEndCapture=captured,
    graphDestroy=lambda graph: log.append(("destroy", graph)), eventQuery=lambda event: event,
    deviceCanAccessPeer=lambda a, b: True)
api = types.ModuleType("cupy_backends.cuda.api")
api.runtime, api.driver = runtime, types.SimpleNamespace(CUDADriverError=CUDADriverError)
sys.modules |= {"cupy_backends": types.ModuleType("cupy_backends"),
                "cupy_backends.cuda": types.ModuleType("cupy_backends.cuda"), "cupy_backends.cuda.api": api}
from nnc_cuda import libcuda
def retain(context, number):
    retained.append(number.value)
    context._obj.value = 100 + number.value
    return 0
def push(context):
    contexts.append(context.value - 100)
    return 0
def pop(context):
    contexts.pop()
    return 0
found = types.SimpleNamespace(cuDevicePrimaryCtxRetain=retain, cuCtxPushCurrent_v2=push, cuCtxPopCurrent_v2=pop)
libcuda.library = lambda: found
from nnc_cuda.cupy_driver import CuPyDriver
from nnc_cuda.driver import CudaError
first, second = CuPyDriver(0), CuPyDriver(1)
'''


@pytest.mark.parametrize(("code", "expected"), [
    ("first.allocate(1); print(log, contexts, retained)", "[('malloc', 0)] [0] []"),
    ("second.allocate(1); second.allocate(2); print(log, contexts, retained)",
     "[('malloc', 1), ('malloc', 1)] [0] [1]"),
    ("with second.current():\n    second.allocate(1)\n    first.allocate(1)\nprint(log, contexts)",
     "[('malloc', 1), ('malloc', 0)] [0]"),
    ("for one in (first, second):\n    try: one.allocate(100)\n    except CudaError as e: print(e.code, e, contexts)",
     "2 out of memory [0]\n2 out of memory [0]"),
    ("for one in (first, second):\n    try: one.is_done(700)\n    except CudaError as e: print(e.code, contexts)",
     "700 [0]\n700 [0]")], ids=["the current one", "another", "in turn", "errors", "statuses"])
def test_calls_leave_the_thread_s_device_as_it_was(code: str, expected: str) -> None:
    """Other libraries go by it, and the collector frees our memory in the midst of their work."""
    assert run_with([], CUPY + code).strip() == expected


def test_a_capture_that_fails_ends_and_says_why() -> None:
    code = ("def step(): raise CUDARuntimeError(901, 'no work of this kind is captured')\n"
            "try: first.capture(5, [step])\nexcept CudaError as e: print(e)\nprint(log)")
    assert run_with([], CUPY + code).splitlines() == [
        "no work of this kind is captured", "['begin capture', 'end capture', ('destroy', 7)]"]
