"""Attention by blocks, for devices that have code for it: its sizes, and where its arrays lie."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import boolean, float32, float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.operator.loops import broadcast_layout, coalesce

OPERANDS = {"scaled_dot_product_attention": 3, "attention_gradients": 6}
"""Those that are not masks."""
MOST_FEATURES = 256
"""What a task holds of each query or key is near."""
AXES = 6
"""Axes of batches and heads."""
WORTH = 1 << 15
"""Multiply-adds from which on a call pays."""
LEAST = 12
"""Queries, or keys on the way back, that are too few for the lanes of a panel."""


class ArrayPlace(NamedTuple):
    """The place of an array, in elements: its beginning, and the steps along axes of batches, between heads that share
    keys, between queries or keys, and between a mask's keys."""

    offset: int
    batch: tuple[int, ...]
    group: int
    row: int
    column: int = 1


class AttentionProblem(NamedTuple):
    """A command of attention, ahead or back."""

    back: bool
    batch: tuple[int, ...]
    """Ahead with the heads of queries, back with those of keys."""
    group: int
    """On the way back the heads of queries that share keys; ahead 1."""
    queries: int
    keys: int
    features: int
    value_features: int
    scale: float
    causal: bool
    offset: int
    layouts: tuple[Layout, ...]
    """Inputs, then outputs."""
    places: tuple[ArrayPlace, ...]
    mask: int | None
    """Its number among these."""

    @property
    def heads(self) -> int:
        return prod(self.batch) * self.group

    @property
    def multiply_adds(self) -> int:
        """The number that all products take, about."""
        seen = self.heads * self.queries * self.keys // (2 if self.causal else 1)
        return seen * (self.features + self.value_features) * (5 if self.back else 2) // 2


def attention_of(command: Command) -> AttentionProblem:
    """The problem of a command, whose arrays may lie anywhere; NotSupportedError where there is no code for it."""
    query, key, value = command.inputs[:3]
    count = OPERANDS[command.name]
    masks = command.inputs[count:]
    back = count > 3
    _check(query, key, value, masks, back)
    *lead, key_heads, keys, features = key.shape
    group = query.shape[-3] // key_heads
    shape = (*lead, query.shape[-3], query.shape[-2])
    layouts = (*command.inputs, *command.outputs)
    of_keys = (1, 2, len(layouts) - 2, len(layouts) - 1) if back else (1, 2)
    seen = [_in_groups(broadcast_layout(x, (*shape, keys)) if n >= count and n < len(command.inputs) else x,
                       len(lead), 1 if n in of_keys else group) for n, x in enumerate(layouts)]
    lengths, steps = coalesce(*_outer((*lead, key_heads, group), [s.batch for s in seen], back))
    if len(lengths) > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches and heads that lie apart")
    places = tuple([s._replace(batch=tuple(step)) for s, step in zip(seen, steps, strict=True)])
    scale, causal, offset = command.attributes
    return AttentionProblem(back, lengths, group if back else 1, query.shape[-2], keys, features, value.shape[-1],
                            scale, causal, offset, layouts, places, count if masks else None)


def _check(query: Layout, key: Layout, value: Layout, masks: Sequence[Layout], back: bool) -> None:
    """Refuse by shapes and dtypes alone: a composite is claimed before anything lies anywhere."""
    if query.dtype not in (float32, float64):
        raise NotSupportedError(f"no blocks of {query.dtype}")
    if len(masks) > 1 or any(m.dtype not in (boolean, query.dtype) for m in masks):
        raise NotSupportedError("it takes one mask, boolean or of the dtype of scores")
    if 0 in (*query.shape, *key.shape, *value.shape):
        raise NotSupportedError("there is nothing to attend to")
    if max(query.shape[-1], value.shape[-1]) > MOST_FEATURES:
        raise NotSupportedError(f"more than {MOST_FEATURES} features")
    if len(query.shape) - 1 > AXES:
        raise NotSupportedError(f"more than {AXES} axes of batches and heads")
    if (key if back else query).shape[-2] < LEAST:
        raise NotSupportedError("there are too few queries for a panel")


def _in_groups(x: Layout, lead: int, group: int) -> ArrayPlace:
    """Axes of batches with the heads as (heads of keys, heads that share keys)."""
    size = x.dtype.itemsize
    steps = [step // size for step in x.strides]
    heads = steps[lead]
    batch = (*steps[:lead], heads * group, heads if group > 1 else 0)
    rest = steps[lead + 1 :]
    return ArrayPlace(x.offset // size, batch, batch[-1], rest[0], rest[1] if len(rest) > 1 else 1)


def _outer(lengths: tuple[int, ...], steps: list[tuple[int, ...]],
           back: bool) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The axes that tasks lie along: on the way back heads that share keys are done together."""
    return (lengths[:-1], [s[:-1] for s in steps]) if back else (lengths, steps)
