"""Sorting rows on a device: the programs, built once, and the launches that one sorting takes."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol
from weakref import WeakValueDictionary

import numpy as np
import pyopencl as cl

from nnc_core.base.dtype import DType
from nnc_core.base.errors import DeviceFailureError
from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_opencl.failure import last_words
from nnc_opencl.kernel import Numbers, OpenCLLaunch, all_of, lend
from nnc_opencl.ordering.source import BLOCK, GROUP
from nnc_opencl.programs import Code, ProgramBuilder
from nnc_opencl.stream import OpenCLStream

PLACE = 4
"""Bytes of a place in a row."""
SHARES = 4
"""Work items of each core, at most, of those that sort whole rows."""


class EntryLaunch(NamedTuple):
    """A launch: the kernel, the work items and their groups, and the numbers that come with it."""

    entry: str
    items: int
    group: int
    size: int = 0
    step: int = 0


class ProgramSource(Protocol):
    """Anything hashable that writes a program."""

    def text(self, grouped: bool) -> str: ...
    def __hash__(self) -> int: ...


class Sorting(NamedTuple):
    """Rows of so many keys of a dtype."""

    rows: int
    length: int
    key: DType

    @property
    def wide(self) -> int:
        """The length of rows of a bitonic network."""
        return 1 << max(self.length - 1, 1).bit_length()

    @property
    def pairs(self) -> int:
        """All its pairs: whole blocks."""
        return -(-self.rows * self.wide // BLOCK) * BLOCK

    def items(self, cores: int) -> int:
        """Work items that sort whole rows."""
        return min(self.rows, SHARES * cores)

    def workspace(self, grouped: bool, cores: int) -> int:
        """Bytes of keys and their places."""
        size = self.key.itemsize + PLACE
        return size * self.pairs if grouped else 2 * size * self.items(cores) * self.length

    def steps(self, grouped: bool, cores: int) -> Iterator[EntryLaunch]:
        """The launches, in order."""
        if not grouped:
            yield EntryLaunch("sort_rows", self.items(cores), 1)
            return
        blocks = self.pairs // BLOCK * GROUP
        yield EntryLaunch("fill", self.pairs, GROUP)
        yield EntryLaunch("near", blocks, GROUP, min(BLOCK, self.wide), 1)
        size = 2 * BLOCK
        while size <= self.wide:
            step = size // 2
            while step >= BLOCK:
                yield EntryLaunch("far", rounded(self.pairs // 2), GROUP, size, step)
                step //= 2
            yield EntryLaunch("near", blocks, GROUP, size, size // 2)
            size *= 2
        yield EntryLaunch("finish", rounded(self.rows * self.length), GROUP)


def rounded(items: int) -> int:
    """Whole groups of work items."""
    return -(-items // GROUP) * GROUP


class StepsKernel(Kernel):
    """Kernels of one program that run one after another on the same arguments."""

    def __init__(self, name: str, codes: dict[str, Code], steps: Sequence[EntryLaunch], numbers: Numbers,
                 default: OpenCLStream) -> None:
        self.name, self.codes, self.steps, self.numbers, self.default = name, codes, steps, numbers, default

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        queue = self.default if stream is None else stream
        assert isinstance(queue, OpenCLStream), f"{stream!r} is no stream of an OpenCL device"
        given: list[Any] = [*buffers, self.numbers]
        return all_of([self._launch(step, given, queue) for step in self.steps])

    def _launch(self, step: EntryLaunch, given: Sequence[Buffer], queue: OpenCLStream) -> OpenCLLaunch:
        code = self.codes[step.entry]
        handle = lend(code, given, (np.int64(step.size), np.int64(step.step)), self.name, self.default.id)
        return OpenCLLaunch(self.name, handle, code.free, (step.items, step.group), given, queue)


class StepsCompiler:
    """Builds programs of several kernels for one device; a program lives as long as any kernel that uses it."""

    def __init__(self, builder: ProgramBuilder, default: OpenCLStream, grouped: bool) -> None:
        self.builder, self.default, self.grouped = builder, default, grouped
        self.cores: int = builder.device.max_compute_units
        self._programs: WeakValueDictionary[Hashable, cl.Program] = WeakValueDictionary()
        self._lock = Lock()

    def kernel(self, name: str, source: ProgramSource, steps: Sequence[EntryLaunch],
               numbers: Sequence[int]) -> StepsKernel:
        """The kernel that takes these steps of a program, with numbers that all of them read."""
        program = self.program(name, source)
        codes = {entry: Code(program, entry, self.builder.device) for entry in {step.entry for step in steps}}
        return StepsKernel(name, codes, steps, Numbers(self.builder.context, numbers, 0), self.default)

    def program(self, name: str, source: ProgramSource) -> cl.Program:
        """A program, built once."""
        with self._lock:
            found = self._programs.get(source)
            if found is None:
                found = self._programs[source] = self._built(name, source)
        return found

    def _built(self, name: str, source: ProgramSource) -> cl.Program:
        try:
            return self.builder.program(source.text(self.grouped))
        except cl.Error as error:
            message = f"the driver cannot build the kernels of {name}: {last_words(str(error))}"
            hint = "`nnc devices` examines the driver"
            raise DeviceFailureError(message, device=self.default.id, hint=hint) from error
