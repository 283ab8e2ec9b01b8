"""Compiling does once what is the same for many nodes: programs are written, and specs inferred, by kinds."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import float32
from nnc_core.base.loopnest import LoopNest
from nnc_core.engine.allocation.gaps import find_gap
from nnc_core.engine.fusion.writing import Programs, ProgramWriter
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.fused import command_of
from nnc_core.operator.inlining import fused_nest
from nnc_core.operator.program import Program
from nnc_core.shape import Shape
from nnc_core.stacks import Stack
from nnc_core.symbol import Node
from nnc_core.type import TensorSpec
from tests.engine.conftest import floats
from tests.integration.modes import strict

REPEATS = 5


# ---- programs
def chain(F: Nodes, name: str) -> list[Node]:
    a = F.add(floats(F, f"x of {name}", 4, 3), floats(F, f"row of {name}", 3))
    b = F.multiply(a, 2.0)
    return [a, b, F.maximum(b, a)]


def written(programs: Programs, *nodes: Node) -> Program:
    return ProgramWriter(programs, nodes).program([nodes[-1]])


def test_programs_of_nodes_alike_are_one_object(stack: Stack, F: Nodes) -> None:
    programs = Programs(stack.engine.decider)
    assert len({id(written(programs, *chain(F, str(i)))) for i in range(REPEATS)}) == 1


def test_programs_that_differ_in_one_thing_are_several(stack: Stack, F: Nodes) -> None:
    programs = Programs(stack.engine.decider)
    x, y, row = floats(F, "x", 4, 3), floats(F, "y", 4, 3), floats(F, "row", 3)
    nodes = [F.subtract(x, y), F.subtract(y, y), F.subtract(x, row), F.subtract(row, x), F.subtract(x, 2.0),
             F.subtract(x, 0.0), F.subtract(x, -0.0), F.add(x, y)]
    assert len({written(programs, node) for node in nodes}) == len(nodes)
    whole = chain(F, "chain")
    assert len({ProgramWriter(programs, whole).program([node]) for node in whole}) == len(whole)


def test_nests_that_are_alike_have_one_hash(stack: Stack, F: Nodes) -> None:
    one, other = [nest_of(written(Programs(stack.engine.decider), *chain(F, name))) for name in ("one", "other")]
    assert one is not other
    assert one == other
    assert hash(one) == hash(other) != hash(replace(one, name="another"))


def nest_of(program: Program) -> LoopNest:
    return fused_nest(command_of(program), program)


# ---- specs
class Counting(Shape):
    """Notes which operators are inferred."""

    def __init__(self, type: Any) -> None:
        super().__init__(type)
        self.seen: list[str] = []

    def infer(self, op: Any, inputs: Any, attributes: Any) -> TensorSpec:
        self.seen.append(op.name)
        return super().infer(op, inputs, attributes)


def test_specs_of_layers_alike_are_inferred_once_for_each_graph() -> None:
    def layers(count: int) -> int:
        stack = nnc.make_stack(strict(), Shape=Counting)

        def f(x: nnc.Tensor) -> nnc.Tensor:
            for _ in range(count):
                x = nnc.tanh(x) * x
            return x

        nnc.jit(f)(nnc.ones((4, 3), device=stack))
        seen: list[str] = stack.shape.seen  # type: ignore[attr-defined]
        return seen.count("tanh")

    assert 0 < layers(REPEATS) == layers(2 * REPEATS)


def test_sizes_with_names_are_asked_each_time(F: Nodes) -> None:
    known: Any = {}
    shape, tanh = F.symbol.shape, OPERATORS["tanh"]
    named, plain = (TensorSpec((n, 3), float32) for n in (nnc.Dim("n"), 4))
    assert shape.once(known, tanh, (named,), ()) == named
    assert not known
    assert shape.once(known, tanh, (plain,), ()) is shape.once(known, tanh, (plain,), ())


# ---- the arena
def gap(placed: list[tuple[int, int]], size: int, segment: int | None, tightest: bool) -> int:
    """As it is defined: the first gap that holds so many bytes, or the tightest; above all if there is none."""
    def start_from(top: int) -> int:
        room = 0 if segment is None else -top % segment
        return top + room if room < size else top

    top, found = 0, list[tuple[int, int]]()
    for low, high in placed:
        spare = low - start_from(top) - size
        if spare >= 0:
            found.append((spare, start_from(top)))
        top = max(top, high)
    if not found:
        return start_from(top)
    return min(found)[1] if tightest else found[0][1]


@pytest.mark.parametrize("segment", [None, 64, 1 << 20])
@pytest.mark.parametrize("tightest", [False, True])
def test_gaps_are_found_as_they_are_defined(segment: int | None, tightest: bool) -> None:
    random = Random(0)
    for _ in range(500):
        lows = sorted(random.choices(range(300), k=random.randrange(8)))
        placed = [(low, low + random.randrange(1, 40)) for low in lows]
        size = random.randrange(1, 30)
        columns = [np.array(column, np.int64) for column in ([x for x, _ in placed], [x for _, x in placed])]
        assert find_gap(columns[0], columns[1], size, segment, tightest) == gap(placed, size, segment, tightest)
