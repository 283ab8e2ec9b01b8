"""Kinds of attention: all that their source depends on; everything else is a number that the kernels are given."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.dtype import DType
from nnc_core.operator.attention_problem import AXES, AttentionProblem

AHEAD = ("query", "key", "value", "mask", "result", "sums")
BACK = ("query", "key", "value", "cotangent", "sums", "shift", "mask", "of_query", "of_key", "of_value")
VECTOR = 64
"""Bytes of a vector: drivers for CPUs divide those that are too wide."""


class BlockedKind(NamedTuple):
    """Attention that shares its source, ahead or back."""

    back: bool
    dtype: DType
    features: int
    value_features: int
    scale: float
    causal: bool
    mask: DType | None
    steps: tuple[tuple[int, int], ...]
    """Elements from row to row, and from feature to feature, of query, key, value and cotangent."""
    grouped: bool
    """Items of a group share its work, rather than one computing in vectors."""
    width: int
    """Queries, or keys, of a panel."""

    @property
    def lanes(self) -> int:
        return 1 if self.grouped else min(VECTOR // self.dtype.itemsize, self.width)

    @property
    def items(self) -> int:
        """Work items of a group."""
        return 256 if self.grouped else 1

    @property
    def block(self) -> int:
        """Rows of scores."""
        return 32 if self.grouped else 96

    @property
    def matrices(self) -> dict[str, int]:
        """Arrays that tiles read, and the number of features of each."""
        lengths = {"query": self.features, "key": self.features, "value": self.value_features,
                   "cotangent": self.value_features}
        return {name: lengths[name] for name in self.arrays if name in lengths}

    @property
    def arrays(self) -> list[str]:
        """The arrays, in the order of the arguments."""
        return [name for name in (BACK if self.back else AHEAD) if name != "mask" or self.mask is not None]

    @property
    def numbers(self) -> list[str]:
        """Names of the numbers that the kernels are given."""
        names = ["queries", "keys", "offset", "group", *[f"axis{n}" for n in range(1, AXES)]]
        for name in self.arrays:
            names += [f"{name}_{part}" for part in ("offset", "row", "column", "group")]
            names += [f"{name}_axis{n}" for n in range(AXES)]
        return names

    @property
    def local_memory(self) -> int:
        """Bytes that a group has of local memory, at most."""
        blocks = (2 if self.back else 1) + (self.mask is not None)
        rows = 2 * (self.features + self.value_features) if self.back else self.features + self.value_features
        return (rows + blocks * self.block + 3) * self.width * self.dtype.itemsize


def kind_of(problem: AttentionProblem, grouped: bool, local_memory: int) -> BlockedKind | None:
    """The kind of a problem, with the widest panels that fit local memory; None if none fit."""
    dtype, mask = problem.layouts[0].dtype, problem.mask
    steps = tuple([(place.row, place.column) for place in problem.places[: 4 if problem.back else 3]])
    kind = BlockedKind(
        problem.back, dtype, problem.features, problem.value_features, problem.scale, problem.causal,
        None if mask is None else problem.layouts[mask].dtype, steps, grouped, 128 // dtype.itemsize)
    while kind.local_memory > local_memory and kind.width > 4:
        kind = kind._replace(width=kind.width // 2)
    return kind if kind.local_memory <= local_memory else None


def numbers_of(kind: BlockedKind, problem: AttentionProblem) -> list[int]:
    """The numbers of a problem, in order."""
    first = AXES - len(problem.batch)
    found = {"queries": problem.queries, "keys": problem.keys, "offset": problem.offset, "group": problem.group}
    found |= {f"axis{first + n}": length for n, length in enumerate(problem.batch)}
    for name, place in zip(kind.arrays, problem.places, strict=True):
        found |= {f"{name}_offset": place.offset, f"{name}_row": place.row, f"{name}_column": place.column,
                  f"{name}_group": place.group}
        found |= {f"{name}_axis{first + n}": step for n, step in enumerate(place.batch)}
    return [found.get(name, 1 if name in LENGTHS else 0) for name in kind.numbers]


LENGTHS = frozenset([f"axis{n}" for n in range(AXES)])
