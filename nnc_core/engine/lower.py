"""Choosing the code for a command: a backend of the device, else the operator's loop nest, else the host."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.errors import FallbackWarning, NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Buffer, Device, Kernel, Launch, Stream
from nnc_core.engine.pinned_backends import EXPANDED, HOST, NEST, PinnedBackends, command_key
from nnc_core.operator.host import CALLBACK
from nnc_core.operator.loops import elementwise_nest
from nnc_core.type import Op

CACHED = 1024
"""Prepared commands that a device keeps, each with its kernel; the oldest go first."""


class KernelChoice(NamedTuple):
    """A kernel and why it was chosen."""

    kernel: Kernel
    backend: str
    workspace: int
    inplace: tuple[int, ...]
    refusals: tuple[str, ...]


class Expected(NamedTuple):
    """The expected choice, before any code is prepared."""

    backend: str
    workspace: int
    inplace: tuple[int, ...]


class Lowering:
    """Prepares commands for one device, each once."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._choices: LRU[tuple[Op, Command], KernelChoice] = LRU(CACHED)
        self._expanded: LRU[tuple[Op, Command], bool] = LRU(CACHED)
        self._announced: set[str] = set()
        self.pins = PinnedBackends(device.spec.id)
        self._added = device.added
        self.version = 0
        """Counts how often pinned backends have made earlier choices void: what was compiled then is out of date."""

    def choose(self, op: Op, command: Command) -> KernelChoice:
        """The first that can: the choice depends on the command alone, so eager and compiled run the same code.

        A backend that was pinned for the command goes first (see `PinnedBackends`).
        """
        self._look_for_more()
        key = (op, command)
        choice = self._choices.get(key)
        if choice is None:
            choice = self._prepare(op, command)
            if op is not CALLBACK:  # which is used once, and would keep its function alive
                self._choices.put(key, choice)
        return choice

    def expect(self, op: Op, command: Command) -> Expected:
        """The answer that `choose` will give, as far as it is known without building code, which may be refused."""
        self._look_for_more()
        choice = self._choices.get((op, command))
        if choice is not None:
            return Expected(choice.backend, choice.workspace, choice.inplace)
        pinned = self.pins.of(command)
        willing = [b for b in self.device.all_backends(op.name) if b.refuse(command) is None]
        backend = next((b for b in willing if b.name == pinned), willing[0] if willing else None)
        if backend is not None and pinned not in (NEST, HOST):
            return Expected(backend.name, backend.workspace(command), backend.inplace(command, op.inplace))
        if pinned != HOST and (op.nest is not None or op.scalar is not None):
            return Expected(NEST, 0, _inplace_of_nest(op, command))
        return Expected(HOST, 0, ())

    def claims(self, op: Op, command: Command) -> bool:
        """Tell whether a backend takes a composite whole."""
        self._look_for_more()
        key = (op, command)
        expanded = self._expanded.get(key)
        if expanded is None:
            pinned = self.pins.of(command)
            expanded = pinned == EXPANDED or all(b.refuse(command) for b in self.device.all_backends(op.name))
            if expanded and pinned not in (None, EXPANDED):
                self.pins.broken(command, "no backend takes it whole")
            self._expanded.put(key, expanded)
        return not expanded

    def _look_for_more(self) -> None:
        """Forget earlier choices where the device has been given more library code since."""
        if self.device.added is not self._added:
            self._added = self.device.added
            self.version += 1
            self._choices.clear()
            self._expanded.clear()

    def decisions(self) -> dict[str, str]:
        """The backend of each command that was prepared here, by a text that is the same in every process."""
        found = {command_key(command): choice.backend for (_, command), choice in self._choices.items()}
        return found | {command_key(command): EXPANDED for (_, command), expanded in self._expanded.items() if expanded}

    def pin(self, wanted: Mapping[str, str], strict: bool, told: bool = False) -> None:
        """Take these backends from now on; see `PinnedBackends`.  Whatever was prepared otherwise is prepared anew."""
        self.pins = PinnedBackends(self.device.spec.id, wanted, strict, told)
        void = {key for key, name in self.decisions().items() if wanted.get(key, name) != name}
        if void:
            self.version += 1
            caches: tuple[LRU[tuple[Op, Command], Any], ...] = (self._choices, self._expanded)
            for cache in caches:
                for key in [k for k, _ in cache.items() if command_key(k[1]) in void]:
                    cache.pop(key)

    def obstacles(self, wanted: Mapping[str, str]) -> list[str]:
        """Reasons why commands cannot run by these backends, as far as is known before they are prepared."""
        pairs = sorted({(key.split("(")[0], name) for key, name in wanted.items()})
        return [f"{operator} has no backend {name!r} any more" for operator, name in pairs
                if name not in (NEST, HOST, EXPANDED, *[b.name for b in self.device.all_backends(operator)])]

    def _prepare(self, op: Op, command: Command) -> KernelChoice:
        refusals: list[str] = []
        pinned = self.pins.of(command)
        if pinned is not None:
            choice = self._by(pinned, op, command, refusals)
            if choice is not None:
                return choice
            self.pins.broken(command, "; ".join(refusals) or "there is no such backend")
            refusals.clear()
        names = [b.name for b in self.device.all_backends(op.name)]
        for name in (*names, NEST):
            choice = self._by(name, op, command, refusals)
            if choice is not None:
                return choice
        return self._on_host(op, command, refusals)

    def _by(self, name: str, op: Op, command: Command, refusals: list[str]) -> KernelChoice | None:
        """The command as that backend runs it; None, and a reason among the refusals, if it does not."""
        if name == HOST:
            return self._on_host(op, command, refusals)
        if name == NEST:
            return self._by_nest(op, command, refusals)
        backend = next((b for b in self.device.all_backends(op.name) if b.name == name), None)
        if backend is None:
            return None
        reason = backend.refuse(command)
        if reason is not None:
            refusals.append(f"{name}: {reason}")
            return None
        inplace = backend.inplace(command, op.inplace)
        return KernelChoice(backend.prepare(command), name, backend.workspace(command), inplace, tuple(refusals))

    def _by_nest(self, op: Op, command: Command, refusals: list[str]) -> KernelChoice | None:
        try:
            nest = loop_nest(op, command)
            if nest is None:
                return None
            return KernelChoice(self.device.compile(nest), NEST, 0, _inplace_of_nest(op, command), tuple(refusals))
        except NotSupportedError as error:
            refusals.append(f"{NEST}: {error.message}")
            return None

    def _on_host(self, op: Op, command: Command, refusals: list[str]) -> KernelChoice:
        if op.reference is None:
            raise NotSupportedError(f"no code for {command}", operator=op.name, device=self.device.spec.id,
                                    hint="; ".join(refusals) or "install a plugin that has it")
        if any(x.offset or not x.contiguous for x in command.outputs):
            raise NotSupportedError(f"the host uploads whole buffers, not parts of them, as {command} needs",
                                    operator=op.name, device=self.device.spec.id, hint="; ".join(refusals) or None)
        if not op.host and op.name not in self._announced:
            self._announced.add(op.name)
            why = f" ({'; '.join(refusals)})" if refusals else ""
            warnings.warn(f"{op.name} has no kernel on {self.device.spec.id}{why}: it runs on the host, with transfers",
                          FallbackWarning, stacklevel=2)
        return KernelChoice(HostKernel(self.device, op.reference, command), HOST, 0, (), tuple(refusals))


def loop_nest(op: Op, command: Command) -> LoopNest | None:
    """The operator's loop nest for these layouts; None if it has none, NotSupportedError for what nests lack."""
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
        inputs, outputs = self.command.inputs, self.command.outputs
        sources, targets = buffers[: len(inputs)], buffers[len(inputs) :]

        def launch() -> None:
            arrays = [self._download(b, layout, stream) for b, layout in zip(sources, inputs, strict=True)]
            with np.errstate(all="ignore"):
                result = self.reference(*arrays, *self.command.attributes)
            results = result if isinstance(result, tuple) else (result,)
            for x, target, out in zip(results, targets, outputs, strict=True):
                host = np.ascontiguousarray(np.asarray(x, out.dtype).reshape(out.shape))
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
