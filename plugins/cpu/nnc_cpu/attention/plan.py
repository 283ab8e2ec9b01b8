"""Plans of attention: the kind that suits the sizes, the numbers that its code is given, and the tasks."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from nnc_core.operator.attention_problem import ArrayPlace, AttentionProblem
from nnc_cpu.attention.kind import BLOCK, AttentionKind, mask_kind, panel_vectors, tile_rows
from nnc_cpu.attention.numbers import arrays_of, numbers_of, sizes, where

TASKS, CHUNK = 16, 192
"""Tasks that the way back should have, if each gets as many keys; and a multiple of all panels, in keys."""


class AttentionPlan(NamedTuple):
    """The code of attention, what it is given, the tasks of each of its functions, and bytes of scratch memory."""

    kind: AttentionKind
    numbers: tuple[int, ...]
    tasks: tuple[int, ...]
    workspace: int


def plan_of(problem: AttentionProblem, vector: int) -> AttentionPlan:
    """The plan for a host whose vectors have so many bytes."""
    dtype = problem.layouts[0].dtype
    lanes = vector // dtype.itemsize
    vectors = panel_vectors(problem.keys if problem.back else problem.queries, lanes, vector)
    rows = tile_rows(vectors, vector)
    kind = AttentionKind(problem.back, dtype, lanes, vectors, min(rows, problem.features) if problem.back else rows,
                         min(rows, problem.value_features), mask_kind(problem), problem.causal)
    return _back(problem, kind) if problem.back else _ahead(problem, kind)


def _ahead(problem: AttentionProblem, kind: AttentionKind) -> AttentionPlan:
    panels = _parts(problem.queries, kind.width)
    numbers = sizes(problem) | where(arrays_of(kind), problem.places) | {"panels": panels}
    return AttentionPlan(kind, tuple(numbers_of(kind, numbers)), (panels * problem.heads,), 0)


def _back(problem: AttentionProblem, kind: AttentionKind) -> AttentionPlan:
    batch = prod(problem.batch)
    chunk = _parts(_parts(problem.keys, _parts(TASKS, batch)), CHUNK) * CHUNK
    chunks = _parts(problem.keys, chunk)
    blocks, columns = _parts(problem.queries, BLOCK), _parts(problem.features, kind.width)
    parts = ArrayPlace(0, (), 0, 0)
    numbers = sizes(problem) | where(arrays_of(kind), (*problem.places, parts)) | {
        "group": problem.group, "heads": problem.heads, "chunks": chunks, "chunk": chunk, "blocks": blocks,
        "columns": columns}
    size = chunks * problem.heads * blocks * columns * BLOCK * kind.width * kind.dtype.itemsize
    return AttentionPlan(kind, tuple(numbers_of(kind, numbers)), (batch * chunks, problem.heads * blocks), size)


def _parts(whole: int, part: int) -> int:
    return -(-whole // part)
