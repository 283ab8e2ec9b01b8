"""Loop nests say themselves which inputs they may overwrite; each that does is run in place, point by point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import Instruction, LoopNest
from nnc_core.codegen.interpret import interpret
from nnc_core.engine.candidates import loop_nest
from nnc_core.engine.in_place_nest import inputs_read_where_written
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import open_nest
from nnc_core.stacks import stack_for
from nnc_core.type import TupleSpec, is_static
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.running import spec_of
from tests.sizes import WHOLE

SMALL = 48
"""Elements of the operands together: points run one at a time."""
FEW = 6 if WHOLE else 3
"""Cases of an operator, of each dtype."""
NAMES = sorted(name for name, op in OPERATORS.items() if (op.nest or op.scalar) and name in CASES)
Bytes = np.ndarray[Any, Any]


def commands(name: str) -> Iterator[tuple[Command, tuple[np.ndarray[Any, Any], ...]]]:
    """The cases of an operator with one result, packed, and with the result laid out as an operand in gaps."""
    op, shape = OPERATORS[name], stack_for("strict:0").shape
    taken: Counter[Any] = Counter()
    for case in CASES[name]:
        for dtype in {case.dtypes[0], *[d for d in case.dtypes if d in (dt.float32, dt.complex64)]}:
            inputs = case.inputs(np.random.default_rng(5), dtype)
            taken[dtype] += 0 < sum(x.size for x in inputs) <= SMALL
            if not 0 < sum(x.size for x in inputs) <= SMALL or taken[dtype] > FEW:
                continue
            attributes = case.attribute_values(op, dtype)
            spec = shape.infer(op, tuple(map(spec_of, inputs)), attributes)
            if isinstance(spec, TupleSpec) or not is_static(spec.shape) or spec.layout().size > SMALL:
                continue
            for lies in (Layout.packed, with_gaps):
                layouts = tuple([lies(x.shape, x.dtype) for x in inputs])
                yield Command(name, attributes, layouts, (lies(spec.shape, spec.dtype),)), inputs


def with_gaps(shape: tuple[int, ...], dtype: Any) -> Layout:
    """Columns first, with an element between any two."""
    strides, step = [], 2 * dtype.itemsize
    for length in shape:
        strides.append(step)
        step *= max(length, 1)
    return Layout(shape, dtype, dtype.itemsize, tuple(strides))


def consents(name: str) -> Iterator[tuple[Command, LoopNest, tuple[np.ndarray[Any, Any], ...], tuple[int, ...]]]:
    for command, inputs in commands(name):
        try:
            nest = loop_nest(OPERATORS[name], command)
        except NotSupportedError:
            continue
        yield command, nest, inputs, inputs_read_where_written(nest, command)


def stored(x: np.ndarray[Any, Any], layout: Layout) -> Bytes:
    buffer = np.zeros(max(layout.extent, 1), np.uint8)
    np.ndarray(layout.shape, layout.dtype, buffer, layout.offset, layout.strides)[...] = x
    return buffer


def run(nest: LoopNest, buffers: list[Bytes], order: np.ndarray[Any, Any]) -> None:
    """One outer point after another."""
    for point in order:
        interpret(at(nest, [int(p) for p in np.unravel_index(point, nest.axes)] if nest.axes else []), buffers)


def at(nest: LoopNest, point: list[int]) -> LoopNest:
    """The nest at one of its outer points."""

    def placed(instruction: Instruction) -> Instruction:
        if instruction.axis is not None and instruction.axis < len(point):
            return Instruction("constant", instruction.dtype, literal=point[instruction.axis])
        if instruction.access is None:
            return instruction
        subscripts = tuple([s._replace(offset=s.offset + sum(k * point[a] for a, k in s.coefficients if a < len(point)))
                            for s in instruction.access.subscripts])
        return instruction._replace(access=instruction.access._replace(subscripts=subscripts))

    stages = [replace(stage, body=tuple(map(placed, stage.body)), running=tuple(map(placed, stage.running)))
              for stage in nest.stages]
    return replace(nest, axes=(1,) * len(point), stages=tuple(stages))


def result(nest: LoopNest, command: Command, inputs: tuple[np.ndarray[Any, Any], ...], onto: int | None,
           order: np.ndarray[Any, Any]) -> bytes:
    """The result's bytes, computed apart or in the memory of an input."""
    buffers = [stored(x, layout) for x, layout in zip(inputs, command.inputs, strict=True)]
    out = command.output
    target = np.zeros(max(out.extent, 1), np.uint8) if onto is None else buffers[onto]
    run(nest, [*buffers, target], order)
    return np.ndarray(out.shape, out.dtype, target, out.offset, out.strides).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_nest_in_place_gives_what_it_gives_apart(name: str) -> None:
    draw = np.random.default_rng(0)
    for command, nest, inputs, consent in consents(name):
        wanted = result(nest, command, inputs, None, np.arange(nest.points))
        for i in consent:
            for order in (np.arange(nest.points)[::-1], draw.permutation(nest.points)):
                assert result(nest, command, inputs, i, order) == wanted, f"{command} in place of operand {i}"


@pytest.mark.parametrize("name", [name for name in NAMES if OPERATORS[name].inplace])
def test_what_operators_offer_their_nests_consent_to(name: str) -> None:
    for command, _, _, consent in consents(name):
        alike = {i for i in OPERATORS[name].inplace
                 if i < len(command.inputs) and command.inputs[i] == command.output and command.output.size}
        assert alike <= set(consent), command


@pytest.mark.parametrize(("name", "attributes", "operands"), [("flip", ((1,),), 1), ("matmul", (False, False), 2)])
def test_what_reads_elsewhere_does_not(name: str, attributes: tuple[Any, ...], operands: int) -> None:
    square = Layout.packed((3, 3), dt.float32)
    command = Command(name, attributes, (square,) * operands, (square,))
    assert inputs_read_where_written(loop_nest(OPERATORS[name], command), command) == ()


# ---- nests written for the purpose
def command_of(*shapes: tuple[int, ...], out: tuple[int, ...]) -> Command:
    return Command("test", (), tuple([Layout.packed(s, dt.float32) for s in shapes]), (Layout.packed(out, dt.float32),))


def test_a_row_that_is_read_twice_before_it_is_written() -> None:
    """Softmax without its exponentials: all of a row is read in stages before the one that stores."""
    command = command_of((3, 4), out=(3, 4))
    nest = open_nest(command)
    (i,) = nest.outer(3)
    with nest.stage(4) as (k,):
        total = nest.fold("sum", nest.load(0, i, k))
    with nest.stage(4) as (k,):
        nest.store(0, nest.load(0, i, k) / total, i, k)
    assert inputs_read_where_written(nest.build(), command) == (0,)


def test_a_row_that_is_read_after_it_is_written() -> None:
    command = command_of((3, 4), out=(3, 4))
    nest = open_nest(command)
    (i,) = nest.outer(3)
    with nest.stage(4) as (k,):
        nest.store(0, nest.load(0, i, k) * 2.0, i, k)
    with nest.stage(4) as (k,):
        nest.fold("sum", nest.load(0, i, k))
    assert inputs_read_where_written(nest.build(), command) == ()


def test_an_element_read_again_at_the_next_inner_point() -> None:
    """Each inner point stores what the next one reads."""
    command = command_of((3,), out=(3,))
    nest = open_nest(command)
    (i,) = nest.outer(3)
    with nest.stage(4):
        nest.store(0, nest.load(0, i) + 1.0, i)
    assert inputs_read_where_written(nest.build(), command) == ()


def test_points_that_store_the_same_element() -> None:
    command = command_of((3,), out=(3,))
    nest = open_nest(command)
    i, _ = nest.outer(3, 2)
    nest.store(0, nest.load(0, i) + 1.0, i)
    assert inputs_read_where_written(nest.build(), command) == ()


def test_an_element_of_another_point() -> None:
    command = command_of((4,), out=(4,))
    nest = open_nest(command)
    (i,) = nest.outer(4)
    nest.store(0, nest.load(0, i) + nest.load(0, (i + 1).guarded()), i)
    assert inputs_read_where_written(nest.build(), command) == ()


def test_another_layout_of_the_same_elements() -> None:
    packed = Layout.packed((3, 3), dt.float32)
    turned = Layout((3, 3), dt.float32, 0, packed.strides[::-1])
    command = Command("negative", (), (turned,), (packed,))
    assert inputs_read_where_written(loop_nest(OPERATORS["negative"], command), command) == ()
    command = Command("negative", (), (turned,), (turned,))
    assert inputs_read_where_written(loop_nest(OPERATORS["negative"], command), command) == (0,)
