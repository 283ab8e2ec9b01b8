"""The driver of CUDA through CuPy's low-level calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cupy_backends.cuda.api import driver, runtime

from nnc_core.base.errors import PluginError
from nnc_cuda import libcuda
from nnc_cuda.driver import CapturedSteps, CudaError, DeviceFacts, Driver

ANY_WAY = 4
"""cudaMemcpyDefault: addresses say where they are."""
NON_BLOCKING = 1
"""Of streams: they do not wait for CUDA's own default stream, nor it for them."""
UNTIMED = 2
"""Of events: cudaEventDisableTiming."""
NOT_READY = 600
THIS_THREAD = 1
"""cudaStreamCaptureModeThreadLocal: what other threads do meanwhile does not matter to a capture."""
NO_DEVICE, OLD_DRIVER = 100, 35
OF_CUDA = 2
"""kDLCUDA: DLPack's name for memory of GPUs."""
PORTABLE = 1
"""cudaHostAllocPortable: pinned for all devices."""
REACHED = 704
"""cudaErrorPeerAccessAlreadyEnabled."""


def device_count() -> int:
    """Devices that the driver has; 0 where there is none, PluginError where it is too old or broken."""
    try:
        return int(runtime.getDeviceCount())
    except runtime.CUDARuntimeError as error:
        if error.status == NO_DEVICE or (error.status == OLD_DRIVER and not driver_version()):
            return 0
        raise PluginError(f"the driver of CUDA cannot be used: {error}",
                          hint="install a driver for this CUDA, or the other wheel of CuPy") from error


def driver_version() -> int:
    """1000 * major + 10 * minor of the newest CUDA that the driver knows; 0 where there is none."""
    try:
        return int(runtime.driverGetVersion())
    except runtime.CUDARuntimeError:
        return 0


ERRORS = (runtime.CUDARuntimeError, driver.CUDADriverError)


def _error(error: Any) -> CudaError:
    return CudaError(int(error.status), str(error))


def _called(call: Callable[..., Any]) -> Callable[..., Any]:
    """A method on the device's own context, its errors those of `Driver`."""

    def method(self: CuPyDriver, *arguments: Any) -> Any:
        try:
            if runtime.getDevice() == self.number:  # without the cost of more
                return call(self, *arguments)
        except ERRORS as error:
            raise _error(error) from error
        with self.current():
            return call(self, *arguments)

    method.__name__, method.__doc__ = call.__name__, call.__doc__
    return method


class CuPyDriver:
    """One device.  Threads have a current one, which other libraries go by: each call makes this one current, and
    leaves the thread as it was, in whose midst the collector may have called."""

    kin = "CUDA"

    def __init__(self, number: int) -> None:
        self.number, self._context = number, 0
        self.exchange = (OF_CUDA, number)
        self._captured: dict[int, int] = {}
        """Graphs as they were captured, by those that are launched."""

    @_called
    def facts(self) -> DeviceFacts:
        found = runtime.getDeviceProperties(self.number)
        name = found["name"].decode() if isinstance(found["name"], bytes) else str(found["name"])
        return DeviceFacts(name, int(found["totalGlobalMem"]), (int(found["major"]), int(found["minor"])),
                           int(found["multiProcessorCount"]), "{}.{}".format(*divmod(driver_version() // 10, 100)),
                           str(runtime.deviceGetPCIBusId(self.number)))

    @contextmanager
    def current(self) -> Iterator[None]:
        try:
            if runtime.getDevice() == self.number:
                yield
                return
            self._context = self._context or libcuda.primary_context(self.number)
            with libcuda.within(self._context):
                yield
        except ERRORS as error:
            raise _error(error) from error

    @_called
    def free_memory(self) -> tuple[int, int]:
        free, total = runtime.memGetInfo()
        return int(free), int(total)

    @_called
    def allocate(self, nbytes: int) -> int:
        return int(runtime.malloc(nbytes))

    @_called
    def free(self, address: int) -> None:
        runtime.free(address)

    @_called
    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        runtime.memcpyAsync(target, source, nbytes, ANY_WAY, stream)

    @_called
    def reach(self, other: Driver) -> None:
        assert isinstance(other, CuPyDriver)
        if other.number == self.number or not runtime.deviceCanAccessPeer(self.number, other.number):
            return
        try:
            runtime.deviceEnablePeerAccess(other.number)
        except runtime.CUDARuntimeError as error:
            if error.status != REACHED:
                raise

    @_called
    def holds(self, address: int) -> bool:
        found = runtime.pointerGetAttributes(address)
        return bool(found.type == runtime.memoryTypeDevice and found.device == self.number)

    @_called
    def pin(self, nbytes: int) -> int:
        return int(runtime.hostAlloc(nbytes, PORTABLE))

    @_called
    def unpin(self, address: int) -> None:
        runtime.freeHost(address)

    @_called
    def fill(self, address: int, byte: int, nbytes: int, stream: int) -> None:
        runtime.memsetAsync(address, byte, nbytes, stream)

    @_called
    def new_stream(self) -> int:
        return int(runtime.streamCreateWithFlags(NON_BLOCKING))

    @_called
    def end_stream(self, stream: int) -> None:
        runtime.streamDestroy(stream)

    @_called
    def synchronize(self, stream: int) -> None:
        runtime.streamSynchronize(stream)

    @_called
    def new_event(self, timed: bool) -> int:
        return int(runtime.eventCreateWithFlags(0 if timed else UNTIMED))

    @_called
    def end_event(self, event: int) -> None:
        runtime.eventDestroy(event)

    @_called
    def record(self, event: int, stream: int) -> None:
        runtime.eventRecord(event, stream)

    @_called
    def order(self, stream: int, event: int) -> None:
        runtime.streamWaitEvent(stream, event)

    @_called
    def hold_back(self, stream: int, address: int) -> bool:
        return libcuda.wait_for_word(stream, address)

    @_called
    def call(self, stream: int, function: Callable[[], object]) -> None:
        runtime.launchHostFunc(stream, lambda _: function(), 0)

    @_called
    def is_done(self, event: int) -> bool:
        status = int(runtime.eventQuery(event))
        if status not in (0, NOT_READY):
            raise CudaError(status, f"status {status}")
        return not status

    @_called
    def wait(self, event: int) -> None:
        runtime.eventSynchronize(event)

    @_called
    def seconds(self, earlier: int, later: int) -> float:
        return float(runtime.eventElapsedTime(earlier, later)) * 1e-3

    @_called
    def load(self, code: bytes) -> int:
        return int(driver.moduleLoadData(code))

    @_called
    def unload(self, module: int) -> None:
        driver.moduleUnload(module)

    @_called
    def function(self, module: int, name: str) -> int:
        return int(driver.moduleGetFunction(module, name))

    @_called
    def launch(self, function: int, blocks: int, threads: int, stream: int, arguments: int) -> None:
        driver.launchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, 0)

    @_called
    def capture(self, stream: int, steps: Sequence[Callable[[], object]]) -> CapturedSteps:
        nodes = list[int]()
        runtime.streamBeginCapture(stream, THIS_THREAD)
        try:
            for step in steps:
                step()
                nodes.append(libcuda.last_node(stream))
        except BaseException:  # the first error says more than that of a capture which it has ended
            with suppress(runtime.CUDARuntimeError):
                runtime.graphDestroy(runtime.streamEndCapture(stream))
            raise
        graph = int(runtime.streamEndCapture(stream))
        try:
            launched = int(runtime.graphInstantiate(graph))
        except BaseException:
            runtime.graphDestroy(graph)
            raise
        self._captured[launched] = graph  # whose nodes are named when arguments change
        return CapturedSteps(launched, nodes)

    @_called
    def rebind(self, graph: int, node: int, function: int, blocks: int, threads: int, arguments: int) -> None:
        libcuda.set_arguments(graph, node, function, blocks, threads, arguments)

    @_called
    def launch_graph(self, graph: int, stream: int) -> None:
        runtime.graphLaunch(graph, stream)

    @_called
    def end_graph(self, graph: int) -> None:
        runtime.graphExecDestroy(graph)
        runtime.graphDestroy(self._captured.pop(graph))
