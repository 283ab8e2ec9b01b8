"""The null device: takes everything, counts it and computes nothing, for plans of any size."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from nnc_core.base.command import Command
from nnc_core.base.errors import AttributeValueError, DeviceError
from nnc_core.base.loopnest import LoopNest
from nnc_core.builtin.ledger import Ledger
from nnc_core.device import (
    CODEGEN,
    DONE,
    NO_VALUES,
    REPRODUCIBLE,
    Buffer,
    CommandBackend,
    Device,
    DeviceSpec,
    Event,
    HostArray,
    Kernel,
    Launch,
    Stream,
)


class NullBuffer:
    """A size without memory; a view keeps what it is part of alive."""

    __slots__ = ("__weakref__", "nbytes", "whole")

    def __init__(self, nbytes: int, whole: NullBuffer | None = None) -> None:
        self.nbytes, self.whole = nbytes, whole


class NullDevice(Device):
    """`live_bytes`, `peak_bytes`, `launches` and `transfers` count what is asked; downloads give zeros."""

    def __init__(self, id: str = "null:0") -> None:
        self.spec = DeviceSpec(id, "null", "plans and counts, computes nothing", vendor="nnc",
                               features=frozenset({NO_VALUES, CODEGEN, REPRODUCIBLE}))
        self.ledger = Ledger(id)
        self.launches = 0
        self.transfers = 0
        self._backends = (NullBackend(self),)

    @property
    def live_bytes(self) -> int:
        return self.ledger.live

    @property
    def peak_bytes(self) -> int:
        return self.ledger.peak

    pool_limit = 0

    def reserve(self, nbytes: int) -> NullBuffer:
        self.ledger.take(nbytes)
        buffer = NullBuffer(nbytes)
        weakref.finalize(buffer, self.ledger.give_back, nbytes).atexit = False
        return buffer

    def view(self, buffer: Buffer, offset: int, nbytes: int) -> NullBuffer:
        whole = self.own(buffer)
        if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes or offset % self.spec.alignment:
            message = f"a view of {nbytes} bytes at {offset} does not lie within {whole.nbytes} bytes"
            raise AttributeValueError(f"{message}, aligned to {self.spec.alignment}", device=self.spec.id)
        return NullBuffer(nbytes, whole)

    def upload(self, array: HostArray, buffer: Buffer, stream: Stream | None = None) -> Event:
        self._count_transfer(array.nbytes, buffer)
        return DONE

    def download(self, buffer: Buffer, array: HostArray, stream: Stream | None = None) -> Event:
        self._count_transfer(array.nbytes, buffer)
        array.fill(0)
        return DONE

    def copy(self, source: Buffer, target: Buffer, stream: Stream | None = None) -> Event:
        self._count_transfer(min(self.own(source).nbytes, target.nbytes), target)
        return DONE

    def fill(self, buffer: Buffer, pattern: bytes, stream: Stream | None = None) -> Event:
        self.own(buffer)
        return DONE

    def compile(self, nest: LoopNest) -> Kernel:
        return NullKernel(self)

    def backends(self, name: str) -> Sequence[CommandBackend]:
        """One that runs any command of any operator, where there is no loop nest."""
        return self._backends

    def own(self, buffer: Buffer) -> NullBuffer:
        """DeviceError for buffers of other devices."""
        if not isinstance(buffer, NullBuffer):
            raise DeviceError(f"{buffer!r} is no buffer of this device", device=self.spec.id)
        return buffer

    def _count_transfer(self, nbytes: int, buffer: Buffer) -> None:
        if nbytes > self.own(buffer).nbytes:
            raise AttributeValueError(f"{nbytes} bytes do not fit in a buffer of {buffer.nbytes}",
                                      device=self.spec.id)
        self.transfers += 1


class NullKernel(Kernel):
    """Its launches count themselves."""

    def __init__(self, device: NullDevice) -> None:
        self.device = device

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        kept = [self.device.own(buffer) for buffer in buffers]

        def launch(kept: Sequence[NullBuffer] = tuple(kept)) -> None:  # a launch keeps its buffers alive
            self.device.launches += 1

        return launch


class NullBackend(CommandBackend):
    """For what has no loop nest: refuses nothing and consents to every reuse of memory."""

    name = "null"
    fallback = True

    def __init__(self, device: NullDevice) -> None:
        self.device = device

    def refuse(self, command: Command) -> str | None:
        return None

    def prepare(self, command: Command) -> Kernel:
        return NullKernel(self.device)

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        return offered
