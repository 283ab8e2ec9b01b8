"""Code that is ready to run, and the library code that may offer it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from nnc_core.base.command import Command
from nnc_core.base.tiling import Tiling
from nnc_core.device.buffer import Buffer
from nnc_core.device.stream import Stream

Launch: TypeAlias = Callable[[], object]


class Kernel(ABC):
    """A command compiled for one device; it may be bound to many sets of buffers and used by many threads."""

    @abstractmethod
    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        """Set the arguments (inputs, outputs, workspace) once; each call of the result enqueues the kernel.

        The launch keeps its buffers alive.  One launch is used by one thread at a time.
        """

    def launch(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> None:
        """Enqueue the kernel once: for eager code, whose buffers are others each time."""
        self.bind(buffers, stream)()


class CommandBackend(ABC):
    """Library code for one operator, such as a BLAS call; loop nests need none."""

    name: str
    fallback: bool = False
    """True for code that is there for want of better: the operator's loop nest goes before it, and composites are
    taken apart rather than run by it."""
    programs: Sequence[Any] = ()
    """Of library code for fused commands: the patterns (`operator.program.Pattern`) that it has loops for."""
    fuses: bool = False
    """True for library code that may run more than its own operator at once.  Fused commands are offered to it then,
    with the operator as the step `library` of their program, and others before and behind: `refuse` is asked as they
    grow, and the largest that it does not refuse is taken.  Under `config.deterministic` each step is to be rounded as
    it would be alone."""
    packs: bool = False
    """True for code that can pack what it reads while it reads it: what it `wants` is packed before only where that is
    constant, once for all calls."""
    several: bool = False
    """True for such code that can give several results: those that nothing reads but the user, or a state of his, are
    offered beside the last."""

    @abstractmethod
    def refuse(self, command: Command) -> str | None:
        """The reason why it cannot run this command; None if it can.

        Inputs and outputs may lie anywhere in their buffers, with gaps: what cannot be read or written there is
        refused.  An output that only packed arrays are taken for is then copied to its part of a larger array.
        """

    @abstractmethod
    def prepare(self, command: Command) -> Kernel:
        """The kernel for a command that was not refused."""

    def wants(self, command: Command) -> Mapping[int, Tiling]:
        """The inputs of a command, which was not refused, that it would rather read in another order of elements.

        They are packed by commands of their own, once for all who want the same; constants when the graph is compiled.
        The command that reads them is a fused one, which unpacks each of them and runs the operator: `refuse` and
        `prepare` are asked with it, and the buffer that it gets is the packed one.
        """
        return {}

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        """The result by other operators that suit this code better, equal but for roundings; None to leave it as it is.

        Asked when a graph is laid out; `inputs` are nodes, F is their namespace, `F.stays(x)` tells whether what is
        made of x alone is made once for many runs, or rounds of a loop, `F.constant_of(array)` is the node of a host
        array.  A command that runs by itself is not asked about, so that under `config.deterministic` the bits are to
        be those of the operator.
        """
        return None

    def workspace(self, command: Command) -> int:
        """Bytes of scratch memory that `bind` expects as one more buffer; 0 for none."""
        return 0

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        """The inputs, of those that the operator offers, that may share the output's memory, layouts being equal."""
        return ()

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        """The same for one of the outputs: where there are several, no input unless this says so."""
        return self.inplace(command, offered) if len(command.outputs) == 1 else ()
