"""A run that is watched: whose value every byte of planned memory holds.

Whatever is read of a buffer must have been written through that buffer, or through a window of it, later than through
any other that shares its memory.  That holds however pointers move, because values move with their buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from nnc_core.base.layout import Layout
from nnc_core.base.record import Call
from nnc_core.device import Buffer, Device, Launch
from nnc_core.engine import ComputationGraph

NOBODY = 0
Tags = np.ndarray[Any, np.dtype[np.int64]]


class Region(NamedTuple):
    """A part of an allocation; `owner` is the number of the buffer that it was first seen as."""

    tags: Tags
    offset: int
    owner: int


class Shadow:
    """Follows the allocations and views of one device while compiled graphs run on it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.regions: dict[int, Region] = {}
        self.kept: list[Buffer] = []
        self.running = False
        self.checked = 0
        self.complaints: list[str] = []

    def _allocating(self, allocate: Callable[..., Buffer]) -> Callable[..., Buffer]:
        def watched(nbytes: int) -> Buffer:
            return self._seen(allocate(nbytes), np.full(nbytes, NOBODY, np.int64), 0)

        return watched

    def _viewing(self, view: Callable[..., Buffer]) -> Callable[..., Buffer]:
        def watched(buffer: Buffer, offset: int, nbytes: int) -> Buffer:
            part, whole = view(buffer, offset, nbytes), self.regions.get(id(buffer))
            if whole is None:  # of an input, which was there before
                return part
            owner = whole.owner if self.running else None  # windows belong to their whole, storages to themselves
            return self._seen(part, whole.tags, whole.offset + offset, owner)

        return watched

    def _seen(self, buffer: Buffer, tags: Tags, offset: int, owner: int | None = None) -> Buffer:
        self.kept.append(buffer)
        self.regions[id(buffer)] = Region(tags, offset, len(self.kept) if owner is None else owner)
        return buffer

    def run(self, compiled: ComputationGraph, given: dict[str, Any]) -> dict[str, Any]:
        """One call on arrays of the device; host arrays out."""
        device = self.device
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, "allocate", self._allocating(device.allocate))
            patch.setattr(device, "view", self._viewing(device.view))
            return self._run(compiled, given)

    def _run(self, compiled: ComputationGraph, given: dict[str, Any]) -> dict[str, Any]:
        program = compiled._bound(given)
        plan, numbers = compiled.plan, compiled._step_of

        def around(call: Call, launch: Launch) -> None:
            command = plan.steps[numbers[program.position]].command
            buffers = [program.buffer(s) for s in call.slots]
            split = len(command.inputs)
            for buffer, layout in zip(buffers[:split], command.inputs, strict=True):
                self._read(buffer, layout, str(command))
            for buffer, layout in zip(buffers[split:], command.outputs, strict=False):
                self._elements(buffer, layout, write=True)
            for buffer in buffers[split + len(command.outputs) :]:
                self._elements(buffer, Layout.packed((buffer.nbytes,), np.dtype(np.uint8)), write=True)
            launch()

        self.running = True
        program.run_with(around)
        self.running = False
        found = {}
        for name, (slot, layout) in compiled._slots.outputs.items():
            self._read(program.buffer(slot), layout, f"output {name}")
            found[name] = compiled.executor.download(compiled.device.array(program.buffer(slot), layout))
        compiled._idle.append(program)
        return found

    def _read(self, buffer: Buffer, layout: Layout, what: str) -> None:
        region = self.regions.get(id(buffer))
        if region is not None:
            seen = self._elements(buffer, layout, write=False)
            self.checked += seen.size
            if (seen != region.owner).any():
                others = sorted({int(t) for t in seen.reshape(-1)} - {region.owner})
                self.complaints.append(f"{what}: reads buffer {region.owner}, where {others} have written")

    def _elements(self, buffer: Buffer, layout: Layout, *, write: bool) -> Tags:
        """The tag of each element's first byte, and on writing all bytes' tags set."""
        region = self.regions.get(id(buffer))
        if region is None or 0 in layout.shape:
            return np.empty(0, np.int64)
        first = (region.offset + layout.offset) * 8
        elements: Tags = np.ndarray((*layout.shape, layout.dtype.itemsize), np.int64, region.tags, first,
                                    (*[8 * s for s in layout.strides], 8))
        if write:
            elements[...] = region.owner
        return elements
