"""Building what was decided: the code of a whole graph at once, each kernel once while anything uses it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import Error, FallbackWarning, NotSupportedError
from nnc_core.base.line import users_frame
from nnc_core.base.loopnest import LoopNest
from nnc_core.device import Device, Kernel
from nnc_core.engine.candidates import NestBackend
from nnc_core.engine.decide import Decider, Decision
from nnc_core.engine.pinned_backends import HOST
from nnc_core.operator.host import CALLBACK
from nnc_core.symbol import Line, show_line
from nnc_core.type import Op

EAGER_KERNELS = 512
"""Kernels of eager commands that a device keeps; the oldest go first.  Those of graphs live as long as the graphs."""

Key: TypeAlias = tuple[Op, Command, str]
Built: TypeAlias = "Kernel | NotSupportedError"


class Wanted(NamedTuple):
    """A decision whose code is wanted, and the line of the user that it is for."""

    decision: Decision
    line: Line | None = None


class Prepared(NamedTuple):
    """A kernel with the scratch memory that it takes."""

    kernel: Kernel
    workspace: int


class KernelBuilder:
    """Builds for one device."""

    def __init__(self, device: Device, decider: Decider) -> None:
        self.device, self.decider = device, decider
        self.announced: set[str] = set()
        """Operators that have been said to run on the host."""
        self._kernels: WeakValueDictionary[Key, Kernel] = WeakValueDictionary()
        self._of_nests: WeakValueDictionary[LoopNest, Kernel] = WeakValueDictionary()
        """Different commands may have equal nests."""
        self._eager: LRU[tuple[Op, Command, bool], Prepared] = LRU(EAGER_KERNELS)
        """By operator, command, and whether every bit is promised."""
        self._version = decider.version

    def prepare(self, op: Op, command: Command) -> Prepared:
        """The kernel of one command, kept for eager code."""
        self.decider.look_for_more()
        if self._version != self.decider.version:
            self._version = self.decider.version
            self._eager.clear()
        key = (op, command, config.deterministic)
        found = self._eager.get(key)
        if found is None:
            found = self._prepared(op, command)
            if op is not CALLBACK:  # which is used once, and would keep its function alive
                self._eager.put(key, found)
        return found

    def _prepared(self, op: Op, command: Command) -> Prepared:
        kernels: dict[Key, Kernel] = {}
        while True:
            decision = self.decider.decide(op, command).required(self.device)
            if self.build([Wanted(decision)], kernels):
                return Prepared(kernels[decision.key], decision.workspace)

    def build(self, wanted: Iterable[Wanted], kernels: dict[Key, Kernel]) -> bool:
        """Add the kernels of some decisions to `kernels`.

        False if the device refuses to build some of them: these are struck from the candidates of their commands,
        which are to be decided anew.  Any other error is raised, and names operator, operands, device and line.
        """
        asked = {key: want for want in wanted if (key := want.decision.key) not in kernels}
        known: dict[Key, Built] = {key: kept for key in asked if (kept := self._kernels.get(key)) is not None}
        missing = {key: want for key, want in asked.items() if key not in known}
        nests = {key: want for key, want in missing.items() if isinstance(want.decision.candidate, NestBackend)}
        made = {key: self._attempt(want) for key, want in missing.items() if key not in nests} | self._from_nests(nests)
        for key, kernel in (known | made).items():
            decision = asked[key].decision
            if isinstance(kernel, NotSupportedError):
                self.decider.strike(decision, kernel.message)
                continue
            if decision.backend == HOST:
                self._announce(asked[key])
            self._kernels[key] = kernels[key] = kernel
            self.decider.use(decision)
        self.decider.forget_nests()
        return kernels.keys() >= asked.keys()

    def _announce(self, want: Wanted) -> None:
        """Say once for each operator that it runs on the host, and why, unless it does by nature; or raise that, as
        `config.fallback` has it."""
        op, refusals = want.decision.op, "; ".join(want.decision.refusals)
        if op.host or config.fallback == "host":
            return
        missing = f"{op.name} has no kernel on {self.device.spec.id}" + (f" ({refusals})" if refusals else "")
        if config.fallback == "error":
            line = None if want.line is None else show_line(want.line)
            raise NotSupportedError(missing, operands=str(want.decision.command), device=self.device.spec.id, line=line,
                                    hint='another device, or config.fallback = "warn", which runs it on the host')
        if op.name not in self.announced:
            self.announced.add(op.name)
            warnings.warn(f"{missing}: it runs on the host, with transfers", FallbackWarning, stacklevel=users_frame())

    def _attempt(self, want: Wanted) -> Built:
        """One kernel, or the error with which it was refused."""
        decision, line = want
        assert decision.candidate is not None
        try:
            return decision.candidate.prepare(decision.command)
        except NotSupportedError as error:
            return error
        except Error as error:
            error.locate(operator=decision.op.name, operands=str(decision.command), device=self.device.spec.id,
                         line=None if line is None else show_line(line))
            raise

    def _from_nests(self, wanted: dict[Key, Wanted]) -> dict[Key, Built]:
        """The kernels of loop nests, those that are not there yet compiled together."""
        nests = {key: _nest_of(want.decision) for key, want in wanted.items()}
        found: dict[LoopNest, Built] = {
            nest: kept for nest in set(nests.values()) if (kept := self._of_nests.get(nest)) is not None}
        missing = {nest: wanted[key] for key, nest in nests.items() if nest not in found}
        for nest, kernel in zip(missing, self._compiled(list(missing), list(missing.values())), strict=True):
            found[nest] = kernel
            if not isinstance(kernel, NotSupportedError):
                self._of_nests[nest] = kernel
        return {key: found[nest] for key, nest in nests.items()}

    def _compiled(self, nests: Sequence[LoopNest], wanted: Sequence[Wanted]) -> Sequence[Built]:
        """Compile all nests together; if that fails, one by one, to find the one at fault."""
        try:
            return self.device.compile_all(nests)
        except Error:
            for want in wanted:
                self._attempt(want)
            raise


def _nest_of(decision: Decision) -> LoopNest:
    assert isinstance(decision.candidate, NestBackend)
    return decision.candidate.nest(decision.command)
