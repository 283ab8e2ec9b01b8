"""Choosing the code for a command: a backend of the device, else the operator's loop nest, else the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.errors import FallbackWarning, NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Buffer, Device, Kernel, Launch, Stream
from nnc_core.operator.loops import elementwise_nest
from nnc_core.type import Op

CACHED = 8192
"""Prepared commands that a device keeps; the oldest go first."""


class Choice(NamedTuple):
    """A kernel and why it was chosen."""

    kernel: Kernel
    backend: str
    workspace: int
    inplace: tuple[int, ...]
    refusals: tuple[str, ...]


class Lowering:
    """Prepares commands for one device, each once."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._choices: dict[tuple[Op, Command], Choice] = {}
        self._announced: set[str] = set()

    def choose(self, op: Op, command: Command) -> Choice:
        """The first that can: the choice depends on the command alone, so eager and compiled run the same code."""
        key = (op, command)
        choice = self._choices.get(key)
        if choice is None:
            choice = self._prepare(op, command)
            if len(self._choices) >= CACHED:
                self._choices.pop(next(iter(self._choices)), None)
            self._choices[key] = choice
        return choice

    def claims(self, op: Op, command: Command) -> bool:
        """Whether a backend takes a composite whole."""
        return any(b.refuse(command) is None for b in self.device.backends(op.name))

    def _prepare(self, op: Op, command: Command) -> Choice:
        refusals: list[str] = []
        for backend in self.device.backends(op.name):
            reason = backend.refuse(command)
            if reason is None:
                inplace = backend.inplace(command, op.inplace)
                kernel, workspace = backend.prepare(command), backend.workspace(command)
                return Choice(kernel, backend.name, workspace, inplace, tuple(refusals))
            refusals.append(f"{backend.name}: {reason}")
        nest = loop_nest(op, command)
        if nest is not None:
            try:
                kernel = self.device.compile(nest)
                return Choice(kernel, "loop nest", 0, _inplace_of_nest(op, command), tuple(refusals))
            except NotSupportedError as error:
                refusals.append(f"loop nest: {error.message}")
        return self._on_host(op, command, refusals)

    def _on_host(self, op: Op, command: Command, refusals: list[str]) -> Choice:
        if op.reference is None:
            raise NotSupportedError(f"no code for {command}", operator=op.name, device=self.device.spec.id,
                                    hint="; ".join(refusals) or "install a plugin that has it")
        if op.name not in self._announced:
            self._announced.add(op.name)
            why = f" ({'; '.join(refusals)})" if refusals else ""
            warnings.warn(f"{op.name} has no kernel on {self.device.spec.id}{why}: it runs on the host, with transfers",
                          FallbackWarning, stacklevel=2)
        return Choice(HostKernel(self.device, op.reference, command), "host", 0, (), tuple(refusals))


def loop_nest(op: Op, command: Command) -> LoopNest | None:
    """The operator's loop nest for these layouts; None if it has none."""
    if op.nest is not None:
        return op.nest(command)
    return elementwise_nest(op.scalar, command) if op.scalar is not None else None


def _inplace_of_nest(op: Op, command: Command) -> tuple[int, ...]:
    """A nest reads each element just before it writes the same one, if the layouts are the same."""
    return tuple(i for i in op.inplace if i < len(command.inputs) and command.inputs[i] == command.output)


class HostKernel(Kernel):
    """Runs a NumPy reference between a download and an upload."""

    def __init__(self, device: Device, reference: Callable[..., Any], command: Command) -> None:
        self.device, self.reference, self.command = device, reference, command

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        *sources, target = buffers

        def launch() -> None:
            arrays = [self._download(b, layout, stream) for b, layout in zip(sources, self.command.inputs, strict=True)]
            with np.errstate(all="ignore"):
                result = self.reference(*arrays, *self.command.attributes)
            out = self.command.output
            host = np.ascontiguousarray(np.asarray(result, out.dtype).reshape(out.shape))
            self.device.upload(host, target, stream).wait()

        return launch

    def _download(self, buffer: Buffer, layout: Layout, stream: Stream | None) -> Any:
        return download(self.device, buffer, layout, stream)


def download(device: Device, buffer: Buffer, layout: Layout, stream: Stream | None = None) -> Any:
    """A host array of what lies in a buffer; strided layouts are gathered on the host."""
    host = np.empty(max(layout.extent, 1), np.uint8)
    device.download(buffer, host[: layout.extent], stream).wait()
    array: Any = np.ndarray(layout.shape, layout.dtype, host, layout.offset, layout.strides)
    return np.ascontiguousarray(array).reshape(layout.shape)
