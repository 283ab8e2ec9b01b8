"""Deciding by which code each command runs; nothing is built here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

from nnc_core.base.cache import LRU
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CODEGEN, CommandBackend, Device
from nnc_core.engine.candidates import HostBackend, NestBackend, candidates
from nnc_core.engine.library import Abilities
from nnc_core.engine.measured_times import NO_TIMES, MeasuredTimes, tunes
from nnc_core.engine.pinned_backends import EXPANDED, HOST, NEST, PinnedBackends, command_key
from nnc_core.operator.fused import FUSED, command_of
from nnc_core.operator.host import CALLBACK
from nnc_core.operator.program import Program
from nnc_core.symbol import Line, Node, show_line
from nnc_core.type import Op

DECISIONS = 1 << 13
"""Decisions that a device remembers; the oldest go first."""


class Decision(NamedTuple):
    """The code that runs a command, and what follows for its memory; none of it is built."""

    op: Op
    command: Command
    candidate: CommandBackend | None
    """None if all that there is has refused."""
    workspace: int
    consents: tuple[tuple[int, ...], ...]
    """For each output the inputs that may share its memory."""
    refusals: tuple[str, ...]
    """What would have been preferred, with the reasons of each."""
    seconds: tuple[tuple[str, float], ...] = ()
    """What the code took where it was measured, by name, if that has decided."""

    @property
    def backend(self) -> str:
        """The name of the code; empty if there is none."""
        return "" if self.candidate is None else self.candidate.name

    @property
    def key(self) -> tuple[Op, Command, str]:
        """Equal for decisions that have the same code."""
        return self.op, self.command, self.backend

    @property
    def inplace(self) -> tuple[int, ...]:
        """The inputs that may share the memory of the only output; none where there are several."""
        return self.consents[0] if len(self.consents) == 1 else ()

    @property
    def on_host(self) -> bool:
        """True if the device itself does not run the command."""
        return self.backend in (HOST, "")

    def required(self, device: Device, line: Line | None = None) -> Decision:
        """The decision; NotSupportedError if there is no code, naming the line."""
        if self.candidate is None:
            raise NotSupportedError(f"no code for {self.command}", operator=self.op.name, device=device.spec.id,
                                    line=None if line is None else show_line(line),
                                    hint="; ".join(self.refusals) or "install a plugin that has it")
        return self


def packed_command(node: Node) -> Command:
    """A node with one result as a command by itself, on packed arrays."""
    inputs = tuple([x.spec.layout() for x in node.inputs])
    return Command(node.op.name, node.attributes, inputs, (node.spec.layout(),))


def anchor_of(op: Op, command: Command) -> tuple[Op, Command] | None:
    """The step of a fused command whose library code is to run it, as a command by itself; None where there is none."""
    if op is not FUSED:
        return None
    program: Program = command.attributes[0]
    number = program.library
    return None if number is None else (program.steps[number].op, program.command_of(number))


class Decider:
    """Decides for one device.  What is decided depends on the command, on whether every bit is promised
    (`config.deterministic`), and on what the driver has refused to build before, so that eager and compiled run the
    same code."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.pins = PinnedBackends(device.spec.id)
        self.version = 0
        """Counts how often pinned or added backends have made earlier decisions void: what was compiled then is out of
        date."""
        self.times = MeasuredTimes(device.spec)
        self._decisions: LRU[tuple[Op, Command, bool, bool], Decision] = LRU(DECISIONS)
        """By operator, command, whether every bit is promised, and whether measured times decide."""
        self._used: LRU[tuple[Op, Command], str] = LRU(DECISIONS)
        self._written: list[NestBackend] = []
        """Those that hold the nest that they were asked about."""
        self._struck: dict[tuple[Op, Command], dict[str, str]] = {}
        """For commands that could not be built: the code, by name, and why."""
        self.refused_programs: set[Program] = set()
        """Those of fused commands that the device has no code of its own for: their operators are grouped otherwise."""
        self._added = device.added
        self._abilities: Abilities | None = None

    @property
    def abilities(self) -> Abilities:
        """The operators whose library code joins others, or wants inputs in another order."""
        self.look_for_more()
        if self._abilities is None:
            self._abilities = Abilities.of(self.device)
        return self._abilities

    def decide(self, op: Op, command: Command) -> Decision:
        """The first candidate that does not refuse; that which is pinned goes first (see `PinnedBackends`)."""
        self.look_for_more()
        key = (op, command, config.deterministic, tunes())
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._first_willing(op, command)
            if op is not CALLBACK:  # which is used once, and would keep its function alive
                self._decisions.put(key, decision)
        return decision

    def is_generated(self, node: Node) -> bool:
        """Tell whether a node by itself would run by its loop nest."""
        return self.decide(node.op, packed_command(node)).backend == NEST

    def own_program(self, program: Program) -> Program | None:
        """The program, if the device has code of its own for it as far as that is known before any is built.

        Equal programs come as one object, so that their commands are told equal by identity.
        """
        if program in self.refused_programs:
            return None
        decision = self.decide(FUSED, command_of(program))
        return None if decision.on_host else decision.command.attributes[0]

    def generate(self, nodes: Iterable[Node]) -> None:
        """Remember that these run by their loop nests, in one command: a resumed run is to join them too."""
        for node in nodes:
            if node.op.source is None:
                self._used.put((node.op, packed_command(node)), NEST)

    def claims(self, op: Op, command: Command) -> bool:
        """Tell whether library code takes a composite whole; what is there for want of better does not, as the parts
        may have loop nests, unless it is pinned."""
        pinned = self.pins.of(command)
        whole = False
        if pinned != EXPANDED and self.device.all_backends(op.name):
            backend = self.decide(op, command).candidate
            whole = (backend is not None and backend.name not in (NEST, HOST)
                     and (backend.name == pinned or not backend.fallback))
        if not whole:
            if pinned not in (None, EXPANDED):
                self.pins.broken(command, "no backend takes it whole")
            self._used.put((op, command), EXPANDED)
        return whole

    def candidates(self, op: Op, command: Command) -> list[CommandBackend]:
        """All code for a command in the order in which it is asked, the quickest of what was measured first."""
        anchor = anchor_of(op, command)
        found = candidates(op, self.device) if anchor is None else self._of_anchor(*anchor)
        times = self._times_of(op, command)
        found = sorted(found, key=lambda candidate: times.get(candidate.name, inf)) if times else found
        pinned = self.pins.of(command)
        return found if pinned is None else sorted(found, key=lambda candidate: candidate.name != pinned)

    def _of_anchor(self, op: Op, command: Command) -> list[CommandBackend]:
        """The code of a fused command that is made for the library code of one step: what runs that by itself; the
        host, so that the others are known to need code of their own."""
        own = self.decide(op, command).candidate
        library = [own] if own is not None and own.name not in (NEST, HOST) else []
        return [*library, HostBackend(FUSED, self.device)]

    def _first_willing(self, op: Op, command: Command) -> Decision:
        struck, refusals = self._struck.get((op, command), {}), list[str]()
        pinned = self.pins.of(command)
        for candidate in self.candidates(op, command):
            if pinned is not None and candidate.name != pinned:
                self.pins.broken(command, "; ".join(refusals) or "there is no such backend")
                pinned = None
                refusals.clear()
            reason = struck.get(candidate.name) or candidate.refuse(command)
            if reason is None:
                if isinstance(candidate, NestBackend):
                    self._written.append(candidate)
                consents = [candidate.inplace_of(command, k, op.inplace) for k in range(len(command.outputs))]
                return Decision(op, command, candidate, candidate.workspace(command), tuple(consents), tuple(refusals),
                                tuple(self._times_of(op, command).items()))
            refusals.append(f"{candidate.name}: {reason}")
        return Decision(op, command, None, 0, ((),) * len(command.outputs), tuple(refusals))

    # ---- what was measured
    def _times_of(self, op: Op, command: Command) -> Mapping[str, float]:
        return self.times.of(command) if tunes() and op is not CALLBACK else NO_TIMES

    def willing(self, op: Op, command: Command) -> list[CommandBackend]:
        """All code that takes a command."""
        struck = self._struck.get((op, command), {})
        found = [x for x in self.candidates(op, command) if x.name not in struck and x.refuse(command) is None]
        self._written += [x for x in found if isinstance(x, NestBackend)]
        return found

    def learn(self, decision: Decision, seconds: Mapping[str, float]) -> None:
        """Remember what the code for a command took; it decides from now on."""
        self.times.put(decision.command, seconds)
        self._decisions.pop((decision.op, decision.command, False, True))

    # ---- what became of decisions
    def use(self, decision: Decision) -> None:
        """Remember that the code was built: `decisions` tells it."""
        if decision.op is not CALLBACK:
            self._used.put((decision.op, decision.command), decision.backend)
            anchor = anchor_of(decision.op, decision.command)
            if anchor is not None:  # a resumed run is to begin with the same
                self._used.put(anchor, decision.backend)

    def strike(self, decision: Decision, reason: str) -> None:
        """The code cannot be built for this command: from now on the next candidate is taken."""
        key = (decision.op, decision.command)
        self._struck.setdefault(key, {})[decision.backend] = reason
        for exact, tuned in ((False, False), (False, True), (True, False)):
            self._decisions.pop((*key, exact, tuned))
        if decision.op is FUSED:
            self.keeps_together([self.decide(*key)])

    def forget_nests(self) -> None:
        """Let go of the loop nests of all decisions, when what was wanted of them is built: decisions are remembered
        for longer."""
        while self._written:
            self._written.pop().forget()

    def keeps_together(self, decisions: Iterable[Decision]) -> bool:
        """True unless there are fused commands among these that the device has no code of its own for.  Their programs
        are remembered: their operators are to be grouped otherwise, so that no more than need be goes to the host."""
        other = (HOST, "") if CODEGEN in self.device.spec.features else (HOST, "", NEST)
        apart = {decision.command.attributes[0] for decision in decisions
                 if decision.op is FUSED and decision.backend in other}
        self.refused_programs |= apart
        return not apart

    def decisions(self) -> dict[str, str]:
        """The backend of each command that was built here, by a text that is the same in every process."""
        return {command_key(command): name for (_, command), name in self._used.items()}

    def pin(self, wanted: Mapping[str, str], strict: bool, warned: bool = False) -> None:
        """Take these backends from now on; see `PinnedBackends`.  Whatever was decided otherwise is decided anew."""
        self.pins = PinnedBackends(self.device.spec.id, wanted, strict, warned)
        self._decisions.clear()
        void = [key for key, name in self._used.items() if wanted.get(command_key(key[1]), name) != name]
        for key in void:
            self._used.pop(key)
        self.version += bool(void)

    def obstacles(self, wanted: Mapping[str, str]) -> list[str]:
        """Reasons why commands cannot run by these backends, as far as is known before they are built."""
        pairs = sorted({(key.split("(")[0], name) for key, name in wanted.items()})
        return [f"{operator} has no backend {name!r} any more" for operator, name in pairs
                if name not in (NEST, HOST, EXPANDED, *self._names_of(operator))]

    def _names_of(self, operator: str) -> list[str]:
        names = [operator] if operator != FUSED.name else [operator, *self.abilities.fusing, *self.abilities.wanting]
        return [backend.name for name in names for backend in self.device.all_backends(name)]

    def look_for_more(self) -> None:
        """Decide anew where the device has been given more library code since."""
        if self.device.added is not self._added:
            self._added = self.device.added
            self.version += 1
            self._decisions.clear()
            self._used.clear()
            self.refused_programs.clear()
            self._abilities = None
