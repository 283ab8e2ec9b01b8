"""Loop nests with as few passes as their values allow: stages over equal axes that do not wait for each other are one,
and what is computed twice in a stage, or twice for each outer point, is computed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nnc_core.base.loopnest import Instruction, LoopNest, Reduction, Stage

Symbol = int
"""A value while stages are moved about; numbers are given at the end."""


def with_merged_stages(nest: LoopNest) -> LoopNest:
    """The same values at each point, folded in the same order.  For nests that read nothing which they write."""
    if sum([bool(stage.axes) for stage in nest.stages]) < 2:
        return nest
    return _Merging(nest).nest()


@dataclass
class _Part:
    """A stage of the new nest: a pass over inner axes, or what stands between two of them (`axes` is None)."""

    axes: tuple[int, ...] | None = None
    body: list[tuple[Symbol, Instruction]] = field(default_factory=list)
    folds: list[tuple[Symbol, Reduction]] = field(default_factory=list)
    running: list[tuple[Symbol, Instruction]] = field(default_factory=list)
    known: dict[Instruction | Reduction, Symbol] = field(default_factory=dict)


class _Merging:
    """Puts the stages of a nest, one after another, into parts: passes have odd places, what is between even ones."""

    def __init__(self, old: LoopNest) -> None:
        self.old = old
        self.parts = [_Part()]
        self.symbols = 0
        self.value: dict[int, Symbol] = {}
        """By the number in the old nest."""
        self.ready: dict[Symbol, int] = {}
        """The first part between passes in which a value can be read; those of a pass's points have none."""
        first = 0
        for stage in old.stages:
            if stage.axes or stage.reductions or stage.running:
                self.put_pass(stage, first)
            else:
                for number, instruction in enumerate(stage.body, first):
                    self.put_between(number, instruction)
            first += stage.values

    # ---- taking stages in
    def put_between(self, number: int, instruction: Instruction) -> None:
        """An instruction that is run once for each outer point: as early as it can be, stores as late."""
        moved = _renumbered(instruction, self.value.__getitem__)
        place = max([self.ready[x] for x in _read(moved)], default=0)
        if moved.operation == "store":
            place = len(self.parts) - 1
        symbol = self.value[number] = self.kept(self.parts[place], moved)
        self.ready[symbol] = place

    def put_pass(self, stage: Stage, first: int) -> None:
        own = range(first, first + stage.values)
        read = {x for i in stage.instructions for x in _read(i)}
        outside = read.union(*[fold.operands for fold in stage.reductions]).difference(own)
        after = max([self.ready[self.value[x]] for x in outside], default=0)
        place = self.place_for(stage, after + 1)
        part = self.parts[place]
        once = all(n == 1 for n in stage.axes)  # then axes are as good as none, and all values are visible behind it
        for number, instruction in enumerate(stage.body, first):
            symbol = self.value[number] = self.kept(part, _renumbered(instruction, self.value.__getitem__))
            if once:
                self.ready[symbol] = place + 1
        for number, fold in enumerate(stage.reductions, first + len(stage.body)):
            moved = fold._replace(value=self.value[fold.value],
                                  factor=None if fold.factor is None else self.value[fold.factor])
            if moved not in part.known:
                part.known[moved] = self.new()
                part.folds.append((part.known[moved], moved))
            symbol = self.value[number] = part.known[moved]
            self.ready[symbol] = place + 1
        for number, instruction in enumerate(stage.running, first + len(stage.body) + len(stage.reductions)):
            symbol = self.value[number] = self.new()
            part.running.append((symbol, _renumbered(instruction, self.value.__getitem__)))
            if once:
                self.ready[symbol] = place + 1

    def place_for(self, stage: Stage, earliest: int) -> int:
        """The pass that takes a stage in, or a new one.  Stores stay behind what is read in other passes, so that
        memory can be taken over."""
        stores = any(i.operation == "store" for i in stage.body)
        if not stage.running:
            for place in range(len(self.parts) - 2 if stores else earliest, len(self.parts), 2):
                part = self.parts[place]
                if place >= earliest and part.axes == stage.axes and not part.running:
                    return place
        self.parts += [_Part(stage.axes), _Part()]
        return len(self.parts) - 2

    def kept(self, part: _Part, instruction: Instruction) -> Symbol:
        """The value of an instruction in a part: the one that is there, if an equal one is."""
        if instruction in part.known:
            return part.known[instruction]
        symbol = self.new()
        part.body.append((symbol, instruction))
        if instruction.operation != "store":
            part.known[instruction] = symbol
        return symbol

    def new(self) -> Symbol:
        self.symbols += 1
        return self.symbols - 1

    # ---- giving numbers
    def nest(self) -> LoopNest:
        number: dict[Symbol, int] = {}
        stages: list[Stage] = []
        for part in self.parts:
            for symbol, _ in (*part.body, *part.folds, *part.running):
                number[symbol] = len(number)
            if part.body or part.folds or part.running:
                folds = [f._replace(value=number[f.value], factor=None if f.factor is None else number[f.factor])
                         for _, f in part.folds]
                body, running = ([_renumbered(i, number.__getitem__) for _, i in run]
                                 for run in (part.body, part.running))
                stages.append(Stage(part.axes or (), tuple(body), tuple(folds), tuple(running)))
        return replace(self.old, stages=tuple(stages))


def _read(instruction: Instruction) -> Sequence[int]:
    """The values that an instruction reads."""
    gathers = [] if instruction.access is None else [
        s.gather for s in instruction.access.subscripts if s.gather is not None]
    return [*instruction.operands, *gathers]


def _renumbered(instruction: Instruction, new: Callable[[int], int]) -> Instruction:
    access = instruction.access
    if access is not None and any(s.gather is not None for s in access.subscripts):
        subscripts = [s if s.gather is None else s._replace(gather=new(s.gather)) for s in access.subscripts]
        access = access._replace(subscripts=tuple(subscripts))
    return instruction._replace(operands=tuple(map(new, instruction.operands)), access=access)
