"""Library code for attention and its gradients, by blocks: no memory grows with the product of queries and keys."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.operator.attention_problem import OPERANDS, WORTH, AttentionProblem, attention_of
from nnc_cpu.memory import ALIGNMENT, array_in
from nnc_cpu.routine import converting, in_order

if TYPE_CHECKING:
    from nnc_cpu.attention.kernel import AttentionCompiler


class ReadyAttention(NamedTuple):
    """A command with inputs that its code can go along."""

    problem: AttentionProblem
    copied: tuple[int, ...]
    """Inputs that are copied to scratch memory first, since their rows are not contiguous."""

    @property
    def scratch(self) -> int:
        """Bytes that the code itself wants, before the copies."""
        return _compiler().plan(self.problem).workspace


class BlockedAttention(CommandBackend):
    """Attention, or its gradients, as machine code."""

    name = "blocks"

    def __init__(self, operator: str) -> None:
        self.operator = operator

    def refuse(self, command: Command) -> str | None:
        if command.name != self.operator:
            return f"it is made for {self.operator}"
        try:
            problem = arranged(command).problem
        except NotSupportedError as error:
            return error.message
        return "it is too small to pay" if problem.multiply_adds < WORTH else None

    def workspace(self, command: Command) -> int:
        return _ends(arranged(command))[-1]

    def prepare(self, command: Command) -> Kernel:
        found = arranged(command)
        kernel = _compiler().kernel(found.problem)
        return CopyingKernel(kernel, command, found) if found.copied else kernel


class CopyingKernel(Kernel):
    """A kernel behind copies of some of its inputs."""

    def __init__(self, kernel: Kernel, command: Command, found: ReadyAttention) -> None:
        self.kernel, self.command, self.found = kernel, command, found

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        *given, workspace = buffers
        begins = _ends(self.found)
        copies: list[Launch] = []
        for number, begin in zip(self.found.copied, begins, strict=False):
            packed = self.found.problem.layouts[number]
            room = workspace[begin : begin + packed.nbytes]  # type: ignore[index]
            source = array_in(given[number], self.command.inputs[number])  # type: ignore[arg-type]
            copies.append(converting(source, array_in(room, packed)))
            given[number] = room
        inner = self.kernel.bind([*given, *([workspace[: self.found.scratch]] if self.found.scratch else [])])  # type: ignore[index]
        return in_order([*copies, inner])


def _ends(found: ReadyAttention) -> list[int]:
    """Places in scratch memory: the beginning of each copy, and the end."""
    sizes = [found.problem.layouts[number].nbytes for number in found.copied]
    return [*accumulate(map(_aligned, sizes), initial=_aligned(found.scratch))]


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def _compiler() -> AttentionCompiler:
    """Loaded late: LLVM takes a tenth of a second."""
    made: AttentionCompiler = import_module("nnc_cpu.attention.kernel").compiler()
    return made


@lru_cache(maxsize=256)
def arranged(command: Command) -> ReadyAttention:
    """A command arranged for its code; NotSupportedError where there is none."""
    operands = OPERANDS[command.name]
    copied = tuple([n for n, x in enumerate(command.inputs[:operands]) if _has_rows(n) and not along_rows(x)])
    if not all(map(along_rows, command.outputs)):
        raise NotSupportedError("rows of a result are not contiguous")
    inputs = [Layout.packed(x.shape, x.dtype) if n in copied else x for n, x in enumerate(command.inputs)]
    return ReadyAttention(attention_of(command._replace(inputs=tuple(inputs))), copied)


def along_rows(layout: Layout) -> bool:
    """True if the elements of each row lie side by side."""
    return not layout.shape or layout.shape[-1] == 1 or layout.strides[-1] == layout.dtype.itemsize


def _has_rows(number: int) -> bool:
    """True for what is read row by row; sums and shifts are read number by number."""
    return number < 4
