"""Padding with axes merged, so that a loop nest has few long axes: its lanes then fill, and its indices are short."""

from __future__ import annotations

from math import prod

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout


def with_merged_axes(command: Command) -> Command:
    """The same padding of the same arrays, in which an axis that stays as it is belongs to the axis before, where the
    elements of both lie in the order of one."""
    low, high, interior, value = command.attributes
    layouts = (*command.inputs, *command.outputs)
    groups: list[list[int]] = []
    for axis in range(len(low)):
        stays = low[axis] == high[axis] == interior[axis] == 0
        if groups and stays and interior[groups[-1][0]] == 0 and all(_follows(x, axis) for x in layouts):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    first = command.inputs[0]
    ends = [tuple([n[group[0]] * _length(first, group[1:]) for group in groups]) for n in (low, high, interior)]
    merged = tuple([_merged(x, groups) for x in layouts])
    return Command(command.name, (*ends, value), merged[:1], merged[1:])


def _follows(x: Layout, axis: int) -> bool:
    """Tell whether an axis and the one before it can be gone through as one."""
    return x.strides[axis - 1] == x.shape[axis] * x.strides[axis]


def _length(x: Layout, axes: list[int]) -> int:
    return prod([x.shape[axis] for axis in axes])


def _merged(x: Layout, groups: list[list[int]]) -> Layout:
    shape = tuple([_length(x, group) for group in groups])
    return Layout(shape, x.dtype, x.offset, tuple([x.strides[group[-1]] for group in groups]))
