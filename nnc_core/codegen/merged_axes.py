"""Loop nests over as few axes as they allow: neighbours that every access, and every position that is computed, steps
through as one are one axis, and axes of length one are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from typing import NamedTuple

from nnc_core.base.dtype import int64
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Stage, Subscript


class _Steps(NamedTuple):
    """A way through axes: elements from step to step of each, and the subscripts that are more than steps."""

    offset: int
    steps: Mapping[int, int]
    others: tuple[Subscript, ...] = ()


def with_merged_axes(nest: LoopNest) -> LoopNest:
    """The same points in the same order, with the same values at each."""
    positions = _positions(nest)
    seen = [*chain.from_iterable(positions), *_accesses([i for stage in nest.stages for i in stage.instructions])]
    outer = _groups(range(len(nest.axes)), nest.axes, seen, [i for stage in nest.stages for i in stage.running])
    stages = [_stage(nest, stage, outer, found) for stage, found in zip(nest.stages, positions, strict=True)]
    return replace(nest, axes=_lengths(outer, nest.axes), stages=tuple(stages))


def _stage(nest: LoopNest, stage: Stage, outer: Sequence[Sequence[int]], positions: Sequence[_Steps]) -> Stage:
    lengths = (*nest.axes, *stage.axes)
    seen = [*positions, *_accesses(stage.instructions)]
    inner = _groups(range(len(nest.axes), len(lengths)), lengths, seen, stage.running)
    new = {group[-1]: number for number, group in enumerate([*outer, *inner])}
    body, running = ([_renumbered(i, new) for i in part] for part in (stage.body, stage.running))
    return Stage(_lengths(inner, lengths), tuple(body), stage.reductions, tuple(running))


def _positions(nest: LoopNest) -> list[list[_Steps]]:
    """The positions that the body of each stage computes: sums of multiples of axes that something else reads."""
    sums, readers, number = list[dict[int, Mapping[int, int]]](), set[int](), 0
    for stage in nest.stages:
        sums.append(_sums(stage.body, number))
        inner = set(sums[-1])
        readers.update(*[i.operands for n, i in enumerate(stage.body, number) if n not in inner])
        readers.update(*[i.operands for i in stage.running], *[r.operands for r in stage.reductions])
        readers.update([s.gather for i in stage.instructions if i.access for s in i.access.subscripts
                        if s.gather is not None])
        number += stage.values
    return [[_Steps(0, steps) for n, steps in found.items() if n in readers] for found in sums]


def _sums(body: Sequence[Instruction], first: int) -> dict[int, Mapping[int, int]]:
    """Steps through axes of values that are sums of multiples of axes, by number."""
    found: dict[int, Mapping[int, int]] = {}
    for number, (operation, dtype, operands, _, axis, _) in enumerate(body, first):
        terms = [found[n] for n in operands if n in found]
        if dtype != int64 or len(terms) < len(operands):
            continue
        if operation == "constant":
            found[number] = {}
        elif operation == "axis" and axis is not None:
            found[number] = {axis: 1}
        elif operation == "add":
            found[number] = {a: sum([steps.get(a, 0) for steps in terms]) for a in set().union(*terms)}
        elif operation == "multiply" and (factor := body[operands[1] - first]).operation == "constant":
            found[number] = {a: step * int(factor.literal or 0) for a, step in terms[0].items()}
    return found


def _lengths(groups: Sequence[Sequence[int]], lengths: Sequence[int]) -> tuple[int, ...]:
    return tuple([prod([lengths[axis] for axis in group]) for group in groups])


def _groups(axes: Iterable[int], lengths: Sequence[int], seen: Sequence[_Steps],
            running: Sequence[Instruction]) -> list[list[int]]:
    """Axes that become one, slowest first, each with those that take part in more than steps left alone."""
    alone = {i.axis for i in running if i.axis is not None}
    alone.update([axis for access in seen for s in access.others for axis, _ in s.coefficients])
    groups: list[list[int]] = []
    for axis in axes:
        if lengths[axis] == 1 and axis not in alone:
            continue
        if groups and _as_one(groups[-1][-1], axis, lengths, seen, alone):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _as_one(slow: int, fast: int, lengths: Sequence[int], seen: Sequence[_Steps],
            alone: Collection[int]) -> bool:
    return slow not in alone and fast not in alone and all(
        x.steps.get(slow, 0) == x.steps.get(fast, 0) * lengths[fast] for x in seen)


def _accesses(instructions: Iterable[Instruction]) -> list[_Steps]:
    return [_taken_apart(i.access) for i in instructions if i.access is not None]


def _taken_apart(access: Access) -> _Steps:
    offset, steps, others = access.offset, dict[int, int](), []
    for s in access.subscripts:
        if s.checked or s.divisor != 1:
            others.append(s)
            continue
        offset += s.stride * s.offset
        for axis, coefficient in s.coefficients:
            steps[axis] = steps.get(axis, 0) + s.stride * coefficient
        if s.gather is not None:
            others.append(s._replace(offset=0, coefficients=()))
    return _Steps(offset, steps, tuple(others))


def _renumbered(instruction: Instruction, new: Mapping[int, int]) -> Instruction:
    """An instruction over the new axes, of which each old one is the last part, or nothing."""
    if instruction.axis is not None:
        there = instruction.axis in new  # a position has the slower parts of an axis in what its last one is times
        return instruction._replace(axis=new[instruction.axis]) if there else Instruction("constant", int64, literal=0)
    if instruction.access is None:
        return instruction
    access = _taken_apart(instruction.access)
    steps = tuple(sorted([(new[axis], step) for axis, step in access.steps.items() if axis in new and step]))
    others = [s._replace(coefficients=tuple([(new[a], c) for a, c in s.coefficients])) for s in access.others]
    subscripts = ((Subscript(0, steps, 1),) if steps else ()) + tuple(others)
    return instruction._replace(access=Access(instruction.access.argument, access.offset, subscripts))
