"""The axis that a kernel computes several points of at once, chosen by what its accesses cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from nnc_core.base.dtype import is_float
from nnc_core.base.loopnest import PARTS, Access, Instruction, LoopNest, Reduction, Stage, Subscript
from nnc_core.codegen.ranges import always_valid, axis_lengths
from nnc_cpu.partial_sums import in_parts

IN_ANY_ORDER = frozenset({"sum", "product", "maximum", "minimum", "all", "any", "argmax", "argmin"})
"""Reductions that lanes may share: see `in_parts`."""
IN_EVERY_ORDER = frozenset({"all", "any", "argmax", "argmin"})
"""Those whose result no order changes, whatever the dtype.  An extreme zero of floats may have either sign."""
CHAINS = 4
"""Vectors that are folded apart where the order is free; half as many of 64 bits, for which processors would no longer
see what is read next."""
NARROW = 8
"""Points of an axis that are too few for tiles, and one more."""
SHORT, FEWEST = 12, 4
"""Instructions that may be written several times, and twice as often."""
ABREAST = 24
"""Instructions that are computed for several vectors of columns: a norm's, but no exponential, which would be computed
again at each stage."""
GATHERED, SCATTERED = 5, 12
"""The cost of a lane of a load and of a store across the lanes, where a nest does nothing but go through its points."""
TURNED = 3
"""The cost of an access through a tile; one along the lanes costs 1."""
ROWS = 4
"""Rows to fold side by side: each instruction of a fold waits for the one before in its row."""
NEAR = 1 << 14
"""Bytes of such rows, which each stage should find near the processor."""


def choose(nest: LoopNest, lanes: int) -> int | None:
    """The outer axis that lanes lie along; None where an inner axis of each stage that allows it is cheaper."""
    outer = [axis for axis, length in enumerate(nest.axes) if length != 1 and _may_vary(nest, axis)]
    return min([None, *outer], key=lambda axis: _cost(nest, axis, lanes))


def vector_axis(nest: LoopNest, stage: Stage) -> int | None:
    """The inner axis of a stage that lanes can lie along, if outer axes are gone through point by point."""
    last = len(nest.axes) + len(stage.axes) - 1
    lengths = axis_lengths(nest, stage)
    if not stage.axes or stage.running or lengths[last] == 1:
        return None
    aligned = all(n == 1 for n in stage.axes[:-1]) or stage.axes[-1] % PARTS == 0
    shared = all(r.kind in IN_ANY_ORDER or (r.kind == "dot" and in_parts(r, stage, nest)) for r in stage.reductions)
    return last if aligned and shared and _stores_apart(stage, last) else None


def _stores_apart(stage: Stage, axis: int) -> bool:
    """True if no two points along an axis touch the same element that one of them writes."""
    loaded = {i.access.argument for i in stage.instructions if i.operation == "load" and i.access}
    stores = [i.access for i in stage.instructions if i.operation == "store" and i.access]
    return all(_step(access, axis) and access.argument not in loaded for access in stores) and len(
        {access.argument for access in stores}) == len(stores)


def _may_vary(nest: LoopNest, axis: int) -> bool:
    """True if stores go to other elements from point to point along an outer axis."""
    return all(_step(i.access, axis) != 0 for stage in nest.stages for i in stage.instructions
               if i.operation == "store" and i.access is not None)


def _step(access: Access, axis: int) -> int | None:
    """Elements from one point along an axis to the next; None where that differs, 0 where it is the same element."""
    total = 0
    for subscript in access.subscripts:
        coefficient = dict(subscript.coefficients).get(axis, 0)
        if subscript.gather is not None or (coefficient and subscript.divisor != 1):
            return None
        total += subscript.stride * coefficient
    return total


def _cost(nest: LoopNest, axis: int | None, lanes: int) -> float:
    """About how many instructions `lanes` outer points take."""
    return sum([_stage_cost(nest, stage, vector_axis(nest, stage) if axis is None else axis, lanes)
                for stage in nest.stages])


def _stage_cost(nest: LoopNest, stage: Stage, axis: int | None, lanes: int) -> float:
    points = prod(stage.axes)
    count = len(stage.instructions) + len(stage.reductions)
    only = len(nest.stages) == 1 and not stage.axes
    if axis is None:
        return float(lanes * points * count * (SCATTERED if only else 1))
    length = axis_lengths(nest, stage)[axis]
    filled = -(-length // lanes) * lanes / max(length, 1)
    tile = tile_axis(nest, axis) if axis < len(nest.axes) else None
    turned = [] if tile is None or length < lanes else crossing(nest, axis, tile)  # parts of tiles are read one by one
    stored = {i.access for i in stage.instructions if i.operation == "store"}
    across = {False: lanes * (GATHERED if only else 1), True: lanes * (SCATTERED if only else 1)}
    costs = [TURNED if a in turned else _access_cost(a, axis, lanes, across[a in stored]) for a in _accesses(stage)]
    return points * (sum(costs) + count) * filled


def _access_cost(access: Access, axis: int, lanes: int, across: int) -> int:
    step = _step(access, axis)
    return 1 if step in (-1, 0, 1) else lanes if step == 2 else across


def _accesses(stage: Stage) -> Iterator[Access]:
    return (i.access for i in stage.instructions if i.access is not None and i.operation != "valid")


def vectors_abreast(nest: LoopNest, axis: int) -> int:
    """The number of vectors of points on an outer axis to take together: where rows are folded into columns, more
    should be read of a row than one vector."""
    count = sum([len(stage.instructions) + len(stage.reductions) for stage in nest.stages])
    folds = any(prod(stage.axes) > 1 and stage.reductions for stage in nest.stages)
    rows = all(_step(access, axis) in (0, 1) for stage in nest.stages for access in _accesses(stage))
    if not folds or not rows or count > ABREAST:
        return 1
    return 8 if count <= FEWEST else 4


def rows_abreast(nest: LoopNest) -> tuple[int, int]:
    """(axis, count): the outer axis to take several points of together where each folds a row, and how many."""
    axis = max([n for n, length in enumerate(nest.axes) if length != 1], default=0)
    folded = [stage for stage in nest.stages if stage.reductions and vector_axis(nest, stage) is not None]
    long = [len(stage.instructions) + len(stage.reductions) > SHORT for stage in nest.stages]
    free = [all(map(_is_free, stage.reductions)) for stage in folded]
    if not nest.axes or not folded or any(long) or any(free) or any([stage.running for stage in nest.stages]):
        return axis, 1
    size = max([prod(stage.axes) for stage in nest.stages]) * max([a.dtype.itemsize for a in nest.arguments])
    return axis, max(1, min(ROWS, NEAR // size, nest.axes[axis]))


def chains(nest: LoopNest, stage: Stage, vectors: int) -> int:
    """The number of vectors along a stage's own axis to fold apart, of so many: each instruction of a fold waits for
    the one before."""
    if not stage.reductions or vectors < CHAINS or not all(map(_is_free, stage.reductions)):
        return 1
    if len(stage.instructions) + len(stage.reductions) > SHORT:
        return 1
    wide = any(nest.arguments[access.argument].dtype.itemsize > 4 for access in _accesses(stage))
    return CHAINS // 2 if wide else CHAINS


def _is_free(reduction: Reduction) -> bool:
    """True if every order gives the same bits."""
    return reduction.kind in IN_EVERY_ORDER or (reduction.kind in IN_ANY_ORDER and not is_float(reduction.dtype))


def tile_axis(nest: LoopNest, axis: int) -> int | None:
    """The outer axis along which lies what is loaded across `axis`; None where that is nothing, or not worth it."""
    if len(nest.stages) != 1 or nest.stages[0].axes or nest.stages[0].running:
        return None
    others = [other for other, length in enumerate(nest.axes) if other != axis and length >= NARROW]
    best = max(others, key=lambda other: len(crossing(nest, axis, other)), default=None)
    return best if best is not None and crossing(nest, axis, best) else None


def crossing(nest: LoopNest, axis: int, other: int) -> list[Access]:
    """The accesses that load across an axis and lie along another one."""
    [stage] = nest.stages
    loads = dict.fromkeys([i.access for i in stage.body if i.operation == "load" and i.access is not None])
    return [access for access in loads if _step(access, axis) not in (-1, 0, 1, None) and _step(access, other) == 1
            and all(_is_plain(s, nest.axes) for s in access.subscripts)]


def _is_plain(subscript: Subscript, lengths: Sequence[int]) -> bool:
    return subscript.divisor == 1 and subscript.gather is None and always_valid(subscript, lengths)


def varying(nest: LoopNest, axis: int | None) -> set[int]:
    """The values that may differ along an outer axis."""
    found: set[int] = set()
    number = 0
    for stage in nest.stages:
        running = number + len(stage.body)
        parts = ((number, stage.body), (running + len(stage.reductions), stage.running))
        for _ in (0, 1):  # running instructions see the reductions
            for first, part in parts:
                for n, instruction in enumerate(part, first):
                    if axis is not None and _differs(instruction, axis, found):
                        found.add(n)
            found.update([n for n, r in enumerate(stage.reductions, running) if not found.isdisjoint(r.operands)])
        number += stage.values
    return found


def _differs(instruction: Instruction, axis: int, varying: set[int]) -> bool:
    if instruction.axis == axis or not varying.isdisjoint(instruction.operands):
        return True
    access = instruction.access
    return access is not None and any(
        dict(s.coefficients).get(axis) or (s.gather is not None and s.gather in varying) for s in access.subscripts)
