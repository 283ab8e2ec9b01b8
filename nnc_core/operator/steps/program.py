"""Programs of several kernels that run one after another, and what a device is asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from nnc_core.codegen import Dialect
from nnc_core.device import Buffer, Kernel


class EntryLaunch(NamedTuple):
    """A launch: the kernel, the work items and their groups, and the numbers that come with it."""

    entry: str
    items: int
    group: int
    size: int = 0
    step: int = 0


class ProgramSource(Protocol):
    """Anything hashable that writes a program."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the numbers that its kernels are given behind the buffers, in order."""
        ...

    def text(self, dialect: Dialect, grouped: bool) -> str:
        """`grouped`: for devices that run work items in groups, as GPUs do."""
        ...

    def __hash__(self) -> int: ...


class StepsPart(NamedTuple):
    """Launches of one program on the same arrays."""

    source: ProgramSource
    steps: Sequence[EntryLaunch]
    numbers: Sequence[int]
    buffers: Sequence[int] | None = None
    """Which of the command's buffers the kernels are given, in order; None: all."""
    constants: Sequence[Buffer] = ()
    """More of them."""

    def given(self, buffers: Sequence[Buffer]) -> list[Buffer]:
        """All buffers that the kernels are given, of those of the command."""
        return [*(buffers if self.buffers is None else [buffers[n] for n in self.buffers]), *self.constants]


class StepsCompiler(Protocol):
    """Builds such programs for one device, each once."""

    grouped: bool
    """The device runs work items in groups."""
    cores: int
    """Of a device that does not."""

    @property
    def dtypes(self) -> frozenset[str]:
        """Names of the dtypes of the device."""
        ...

    def kernel(self, name: str, parts: Sequence[StepsPart]) -> Kernel:
        """The kernel that runs all parts, one after another."""
        ...

    def constants(self, values: np.ndarray[Any, Any]) -> Buffer:
        """Memory of the device with these values, which stay as they are."""
        ...
