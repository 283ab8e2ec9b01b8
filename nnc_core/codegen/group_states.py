"""States of reductions: the results for some points, and how two become one, for lanes, chunks and blocks alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from nnc_core.base.dtype import is_float
from nnc_core.base.loopnest import Instruction, LoopNest, Reduction, Stage
from nnc_core.codegen.clike import FOLDS, CLikeKernel
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.dialect import Warp
from nnc_core.codegen.general import AnyNest
from nnc_core.codegen.numpy_reductions import identity

GROUP = 256
"""Work items of a group."""
LEAST = 32
"""Inner points from which on lanes fold together."""
FEW = 16
"""Outer points that leave a device idle, if each folds its products by itself."""
CHUNK = 1 << 14
"""Points that are folded by themselves where there are more."""
POSITIONS = ("argmax", "argmin")

Numbered: TypeAlias = Sequence[tuple[int, Reduction]]


def lanes_of(stage: Stage) -> int:
    """The lanes that fold a stage."""
    lanes, count = LEAST, prod(stage.axes)
    while lanes < min(count, GROUP):
        lanes *= 2
    return lanes


def widest(nest: AnyNest) -> int:
    """The lanes of each outer point."""
    loops = nest if isinstance(nest, LoopNest) else nest.nest
    return max([lanes_of(stage) for stage in loops.stages if stage.axes])


def is_shared(reduction: Reduction, stage: Stage, nest: LoopNest) -> bool:
    """Tell whether lanes fold a reduction together.  It depends on nothing that fusion changes."""
    if stage.running or prod(stage.axes) < LEAST or reduction.kind == "recurrence":
        return False
    return reduction.kind != "dot" or nest.points < FEW


def is_scanned(stage: Stage) -> bool:
    """Tell whether lanes scan a stage together.  Products of floats are left in order: those of later points may
    overflow where all of them together do not."""
    if not stage.running or prod(stage.axes) < LEAST or any(i.operation == "store" for i in stage.body):
        return False
    return all(r.kind not in (*POSITIONS, "recurrence", "dot") and not (r.kind == "product" and is_float(r.dtype))
               for r in stage.reductions)


class StateWriter(CLikeKernel):
    """Writes the states of reductions, in variables of each item and in arrays that a group shares."""

    first_lane = first_item = ""
    """The condition of a point's first lane, and the number of its item."""

    def __init__(self, name: str, nest: AnyNest, helpers: Helpers) -> None:
        super().__init__(name, nest, helpers)
        self.rooms: dict[str, str] = {}
        """Types of the arrays that a group shares, by name."""
        self.touched = ""
        """What may have been done to memory since the items of a group have met: "load" or "store"."""
        self.left_out: Sequence[Reduction] = ()
        """Reductions that are folded in another loop."""
        self.storing = True

    def meet(self) -> None:
        """Let all items come here before any goes on."""
        self.line(self.dialect.barrier)
        self.touched = ""

    def meet_before(self, operation: str) -> None:
        """Let stores wait for what other items load before, and loads for what they store."""
        if self.touched not in ("", operation) or (self.touched == "store" == operation):
            self.meet()
        self.touched = operation

    def numbered(self, stage: Stage) -> Numbered:
        """Reductions of the stage at hand, with the numbers of their values."""
        return list(enumerate(stage.reductions, self.written + len(stage.body)))

    def axes_of(self, stage: Stage) -> range:
        return range(len(self.nest.axes), len(self.nest.axes) + len(stage.axes))

    def inner_place(self, stage: Stage, flat: str) -> None:
        """Declare the place on inner axes of a point that is counted through them."""
        long = [axis for axis, length in zip(self.axes_of(stage), stage.axes, strict=True) if length > 1]
        if len(long) > 1:
            self.line(f"{self.index} inner = {flat};")
        for axis in reversed(self.axes_of(stage)):
            length = self.number(stage.axes[axis - len(self.nest.axes)])
            if axis not in long:
                self.line(f"const {self.index} x{axis} = 0;")
            elif axis == long[0]:
                self.line(f"const {self.index} x{axis} = {flat if len(long) == 1 else 'inner'};")
            else:
                self.line(f"const {self.index} x{axis} = inner % {length}; inner /= {length};")

    # ---- what is left out of a loop in order
    def start_reduction(self, number: int, reduction: Reduction) -> None:
        if reduction not in self.left_out:
            super().start_reduction(number, reduction)

    def fold(self, number: int, reduction: Reduction) -> None:
        if reduction not in self.left_out:
            super().fold(number, reduction)

    def instruction(self, instruction: Instruction, lengths: Sequence[int]) -> None:
        if instruction.operation == "store" and not self.storing:
            self.written += 1
        else:
            super().instruction(instruction, lengths)

    # ---- states
    def types(self, reduction: Reduction) -> list[str]:
        """The types of what a state is made of: a value, or a place and the best."""
        if reduction.kind in POSITIONS:
            return [self.dialect.types["int64"], self.scalars.held(self.dtypes[reduction.value])]
        return [self.scalars.held(reduction.dtype)]

    def names(self, number: int, reduction: Reduction, suffix: str = "") -> list[str]:
        """Variables of a state; the first is what later stages read."""
        return [f"v{number}{end}{suffix}" for end in (("", "_best") if reduction.kind in POSITIONS else ("",))]

    def nothing(self, reduction: Reduction) -> list[str]:
        """The state of no points."""
        if reduction.kind in POSITIONS:
            return ["-1", "0"]
        return [self.scalars.literal(identity(reduction.kind, reduction.dtype), reduction.dtype)]

    def declare_state(self, number: int, reduction: Reduction, suffix: str = "") -> None:
        """Declare the state of no points."""
        names = self.names(number, reduction, suffix)
        for name, type, value in zip(names, self.types(reduction), self.nothing(reduction), strict=True):
            self.line(f"{type} {name} = {value};")

    def set_state(self, number: int, reduction: Reduction, suffix: str = "") -> None:
        """Let a state be another one, or that of no points."""
        names = self.names(number, reduction)
        values = self.names(number, reduction, suffix) if suffix else self.nothing(reduction)
        self.let(names, values)

    def merge(self, reduction: Reduction, mine: Sequence[str], other: Sequence[str]) -> None:
        """Fold another state into mine: of equals the first stays."""
        if reduction.kind not in POSITIONS:
            self.line(f"{mine[0]} = {self.together(reduction, mine[0], other[0])};")
            return
        earlier = f"(!({self.better(reduction, other[1], mine[1])}) && {other[0]} < {mine[0]})"
        better = f"{mine[0]} < 0 || {self.better(reduction, mine[1], other[1])} || {earlier}"
        self.line(f"if ({other[0]} >= 0 && ({better})) {{ {mine[1]} = {other[1]}; {mine[0]} = {other[0]}; }}")

    def together(self, reduction: Reduction, a: str, b: str) -> str:
        """Two folded values as one."""
        if reduction.kind == "logsumexp":
            return f"{self.log_add_exp(reduction.dtype)}({a}, {b})"
        operation = "add" if reduction.kind == "dot" else FOLDS[reduction.kind]
        return self.scalars.expression(operation, reduction.dtype, (a, b), reduction.dtype)

    def take(self, number: int, reduction: Reduction, mine: Sequence[str], place: str) -> None:
        """Fold the value of the point at hand into mine."""
        if reduction.kind in POSITIONS:
            self.merge(reduction, mine, [f"({self.dialect.types['int64']}){place}", f"v{reduction.value}"])
        elif reduction.kind == "dot":
            terms = [self.scalars.cast(f"v{term}", self.dtypes[term], reduction.dtype) for term in reduction.operands]
            folded = self.scalars.expression("fma", reduction.dtype, (*terms, mine[0]), reduction.dtype)
            self.line(f"{mine[0]} = {folded};")
        else:
            self.line(f"const {self.scalars.held(reduction.dtype)} v{number}_next = {self.term(reduction)};")
            self.merge(reduction, mine, [f"v{number}_next"])

    # ---- between items
    def room(self, type: str, which: int = 0) -> str:
        """An array of the group with a place for each item."""
        stored = self.dialect.types["bool"] if type == "bool" else type
        name = f"room{which}_{stored.replace(' ', '_')}"
        self.rooms[name] = stored
        return name

    def tree(self, number: int, reduction: Reduction, lanes: int, apart: int = 1) -> None:
        """Fold the states of so many lanes, whose items are so far apart, and give the result to all."""
        warp = self.dialect.warp
        if warp is None or apart > 1:
            self.tree_in_rooms(number, reduction, lanes // 2, 1, apart)
            self.give_first(number, reduction)
            return
        if lanes > warp.items:
            self.tree_in_rooms(number, reduction, lanes // 2, warp.items)
        self.tree_in_warps(number, reduction, warp)
        if widest(self.nest) == lanes == warp.items:
            self.let(self.names(number, reduction), [warp.first.format(value=v) for v in self.names(number, reduction)])
            self.line(warp.barrier)
            return
        rooms, names = self.rooms_of(reduction), self.names(number, reduction)
        self.open(f"if ({self.first_lane})")
        self.let([f"{room}[item]" for room in rooms], names)
        self.close()
        self.meet()
        self.give_first(number, reduction)

    def tree_in_rooms(self, number: int, reduction: Reduction, most: int, least: int, apart: int = 1) -> None:
        """Fold lanes by steps of `most` to `least`, through what the group shares."""
        names, rooms = self.names(number, reduction), self.rooms_of(reduction)
        mine = [f"{room}[item]" for room in rooms]
        self.let(mine, names)
        self.meet()
        self.open(f"for (int step = {most}; step >= {least}; step /= 2)")
        self.open(f"if ({'lane' if apart == 1 else 'down'} < step)")
        far = f"item + step * {apart}" if apart > 1 else "item + step"
        self.merge(reduction, names, [f"{room}[{far}]" for room in rooms])
        self.let(mine, names)
        self.close()
        self.meet()
        self.close()

    def tree_in_warps(self, number: int, reduction: Reduction, warp: Warp) -> None:
        """Fold the first lanes, as many as a warp has: whoever is among the others takes part in the exchange alone."""
        names = self.names(number, reduction)
        far = [f"{name}_far" for name in names]
        self.open(f"{self.dialect.unrolled_loop}for (int step = {warp.items // 2}; step; step /= 2)")
        for type, name, other in zip(self.types(reduction), names, far, strict=True):
            self.line(f"const {type} {other} = {warp.down.format(value=name, distance='step')};")
        self.open("if (lane < step)")
        self.merge(reduction, names, far)
        self.close()
        self.close()

    def give_first(self, number: int, reduction: Reduction) -> None:
        """Let all items have what the first lane has left."""
        rooms = self.rooms_of(reduction)
        self.let(self.names(number, reduction), [f"{room}[{self.first_item}]" for room in rooms])
        self.meet()

    def rooms_of(self, reduction: Reduction) -> list[str]:
        """The arrays that hold the states of a group's items."""
        return [self.room(type, which) for which, type in enumerate(self.types(reduction))]

    def let(self, names: Sequence[str], values: Sequence[str]) -> None:
        """Assign values to variables."""
        self.line(" ".join([f"{name} = {value};" for name, value in zip(names, values, strict=True)]))
