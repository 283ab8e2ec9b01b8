"""Loop nests over as few axes as their accesses allow: neighbours that every access steps through as one are one axis,
and axes of length one are none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from nnc_core.base.loopnest import Access, Instruction, LoopNest, Stage, Subscript


class _Steps(NamedTuple):
    """An access taken apart: elements from step to step of each axis, and the subscripts that are more than steps."""

    argument: int
    offset: int
    steps: Mapping[int, int]
    others: tuple[Subscript, ...]


def with_merged_axes(nest: LoopNest) -> LoopNest:
    """The same points in the same order, with the same values at each."""
    everything = [i for stage in nest.stages for i in stage.instructions]
    outer = _groups(range(len(nest.axes)), nest.axes, everything)
    axes = _lengths(outer, nest.axes)
    return replace(nest, axes=axes, stages=tuple([_stage(nest, stage, outer) for stage in nest.stages]))


def _stage(nest: LoopNest, stage: Stage, outer: Sequence[Sequence[int]]) -> Stage:
    lengths = (*nest.axes, *stage.axes)
    inner = _groups(range(len(nest.axes), len(lengths)), lengths, stage.instructions)
    new = {group[-1]: number for number, group in enumerate([*outer, *inner])}
    body, running = ([_renumbered(i, new) for i in part] for part in (stage.body, stage.running))
    return Stage(_lengths(inner, lengths), tuple(body), stage.reductions, tuple(running))


def _lengths(groups: Sequence[Sequence[int]], lengths: Sequence[int]) -> tuple[int, ...]:
    return tuple([prod([lengths[axis] for axis in group]) for group in groups])


def _groups(axes: Iterable[int], lengths: Sequence[int], instructions: Sequence[Instruction]) -> list[list[int]]:
    """Axes that become one, slowest first, each with those that take part in more than steps left alone."""
    taken = [_taken_apart(i.access) for i in instructions if i.access is not None]
    alone = {i.axis for i in instructions if i.axis is not None}
    alone.update([axis for access in taken for s in access.others for axis, _ in s.coefficients])
    groups: list[list[int]] = []
    for axis in axes:
        if lengths[axis] == 1 and axis not in alone:
            continue
        if groups and _as_one(groups[-1][-1], axis, lengths, taken, alone):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _as_one(slow: int, fast: int, lengths: Sequence[int], taken: Sequence[_Steps],
            alone: Collection[int | None]) -> bool:
    return slow not in alone and fast not in alone and all(
        access.steps.get(slow, 0) == access.steps.get(fast, 0) * lengths[fast] for access in taken)


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
    return _Steps(access.argument, offset, steps, tuple(others))


def _renumbered(instruction: Instruction, new: Mapping[int, int]) -> Instruction:
    if instruction.axis is not None:
        return instruction._replace(axis=new[instruction.axis])
    if instruction.access is None:
        return instruction
    access = _taken_apart(instruction.access)
    steps = tuple(sorted([(new[axis], step) for axis, step in access.steps.items() if axis in new and step]))
    others = [s._replace(coefficients=tuple([(new[a], c) for a, c in s.coefficients])) for s in access.others]
    subscripts = ((Subscript(0, steps, 1),) if steps else ()) + tuple(others)
    return instruction._replace(access=Access(access.argument, access.offset, subscripts))
