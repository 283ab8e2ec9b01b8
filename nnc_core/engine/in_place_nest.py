"""Loop nests that may work in place: inputs that are read just where the result is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.loopnest import Access, LoopNest, Stage


class _Address(NamedTuple):
    """An address as offset + sum(step * axis)."""

    offset: int
    steps: tuple[tuple[int, int], ...]
    """(axis, step), axes ascending, no zero steps."""


class _Use(NamedTuple):
    """A load or a store: its stage, its place among the instructions of that stage, and its address."""

    stage: int
    place: int
    address: _Address | None
    """None for what is no sum of steps: divided and gathered subscripts."""


def inputs_read_where_written(nest: LoopNest, command: Command, output: int = 0) -> tuple[int, ...]:
    """The inputs that may lie in the memory of an output: those laid out like it of which each point reads the
    elements that it writes itself, before it writes them.

    It suffices that one stage stores, at addresses that differ from point to point, and that every load has the
    address of a store and comes before the first of them.
    """
    alike = [i for i, layout in enumerate(command.inputs) if layout == command.outputs[output]]
    if not alike:
        return ()
    stores = list(_uses(nest, "store", len(command.inputs) + output))
    if not stores:
        return ()
    written = {use.address for use in stores}
    if None in written or len({use.stage for use in stores}) != 1 or not _apart(nest, stores):
        return ()
    first = min(use[:2] for use in stores)
    return tuple([i for i in alike
                  if all(use.address in written and use[:2] < first for use in _uses(nest, "load", i))])


def _uses(nest: LoopNest, operation: str, argument: int) -> Iterable[_Use]:
    for number, stage in enumerate(nest.stages):
        for place, instruction in enumerate(stage.instructions):
            access = instruction.access
            if instruction.operation == operation and access is not None and access.argument == argument:
                yield _Use(number, place, _address(access))


def _address(access: Access) -> _Address | None:
    offset, steps = access.offset, dict[int, int]()
    for subscript in access.subscripts:
        if subscript.divisor != 1 or subscript.gather is not None:
            return None
        offset += subscript.stride * subscript.offset
        for axis, coefficient in subscript.coefficients:
            steps[axis] = steps.get(axis, 0) + subscript.stride * coefficient
    return _Address(offset, tuple(sorted((axis, step) for axis, step in steps.items() if step)))


def _apart(nest: LoopNest, stores: list[_Use]) -> bool:
    """Tell whether no two points of the nest, and of the stage that stores, can store the same element: each step is
    longer than all that the shorter ones reach."""
    addresses = [use.address for use in stores if use.address is not None]
    if len({address.steps for address in addresses}) != 1:
        return False
    offsets = [address.offset for address in addresses]
    reach, steps = max(offsets) - min(offsets), dict(addresses[0].steps)
    lengths = _lengths(nest, nest.stages[stores[0].stage])
    for step, length in sorted((abs(steps.get(axis, 0)), length) for axis, length in lengths.items() if length > 1):
        if step <= reach:
            return False
        reach += step * (length - 1)
    return True


def _lengths(nest: LoopNest, storing: Stage) -> dict[int, int]:
    """The length of each axis of the points that store.  Earlier stages may have more of an inner axis."""
    lengths = dict(enumerate(nest.axes))
    outer = len(lengths)
    for k in range(len(storing.axes)):
        lengths[outer + k] = max([stage.axes[k] for stage in nest.stages if k < len(stage.axes)])
    return lengths
