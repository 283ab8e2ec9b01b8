"""The numbers that the code of attention is given: sizes, and where the elements of its arrays lie."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence

from nnc_core.operator.attention_problem import AXES, ArrayPlace, AttentionProblem
from nnc_cpu.attention.kind import AttentionKind

SIZES = ("queries", "keys", "features", "value_features", "offset", "scale", *[f"axis{n}" for n in range(1, AXES)])
"""`scale`: the bits of a float64; the lengths of the axes of batches but for the first."""
AHEAD = ("panels",)
"""Panels of queries."""
BACK = ("group", "heads", "chunks", "chunk", "blocks", "columns")
"""Heads of queries that share keys, and heads of queries in all; `chunks` of as many keys each, which are tasks; blocks
of queries, and panels of their features."""
PARTS = "parts"
"""The sums of the cotangents of queries over each chunk of keys, in panels of features."""


def arrays_of(kind: AttentionKind) -> tuple[str, ...]:
    """The arrays, in the order of the arguments."""
    mask = ("mask",) if kind.mask else ()
    if not kind.back:
        return ("query", "key", "value", *mask, "result", "sums")
    return ("query", "key", "value", "cotangent", "sums", "shift", *mask, "of_query", "of_key", "of_value", PARTS)


def names_of(kind: AttentionKind) -> tuple[str, ...]:
    """All numbers, in order: `row` is what lies between two queries or keys, `column` between two keys of a mask,
    `group` between two heads that share keys."""
    names = [*SIZES, *(BACK if kind.back else AHEAD)]
    for name in arrays_of(kind):
        names += [f"{name}_{part}" for part in ("offset", "row", "column", "group", *[f"axis{n}" for n in range(AXES)])]
    return tuple(names)


def numbers_of(kind: AttentionKind, given: Mapping[str, int]) -> Sequence[int]:
    """The numbers in order; those that are not given are 0."""
    names = names_of(kind)
    assert set(given) <= set(names), set(given) - set(names)
    return [given.get(name, 0) for name in names]


def sizes(problem: AttentionProblem) -> dict[str, int]:
    """The numbers that both ways have."""
    bits = struct.unpack("<q", struct.pack("<d", problem.scale))[0]
    lengths = (*(1,) * (AXES - len(problem.batch)), *problem.batch)
    return {"queries": problem.queries, "keys": problem.keys, "features": problem.features,
            "value_features": problem.value_features, "offset": problem.offset, "scale": bits,
            **{f"axis{n}": lengths[n] for n in range(1, AXES)}}


def where(names: Sequence[str], places: Sequence[ArrayPlace]) -> dict[str, int]:
    """The numbers that say where arrays lie."""
    return dict([pair for name, place in zip(names, places, strict=True) for pair in _numbers(name, place)])


def _numbers(name: str, place: ArrayPlace) -> Iterator[tuple[str, int]]:
    yield from ((f"{name}_{part}", getattr(place, part)) for part in ("offset", "group", "row", "column"))
    first = AXES - len(place.batch)
    yield from ((f"{name}_axis{first + n}", step) for n, step in enumerate(place.batch))
