"""Attention of commands as problems of the library, and what is copied before and behind it."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import bfloat16, float16
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout, packed_strides
from nnc_cuda.dnn.interface import Attention, AttentionGradients, TensorPlace
from nnc_cuda.dnn.places import ALIGNED, CopyNest, aligned
from nnc_cuda.matrices.nests import copied
from nnc_cuda.products.library import PlacedArray

HALVES = (float16, bfloat16)
WORTH = 1 << 18
"""Multiply-adds from which on a call of the library pays."""
WORD, MOST_FEATURES = 8, 128
"""The features of a query are a multiple of the former; the latter is what all GPUs that have the code for it take."""
BACK, SUMS = "attention_gradients_from_result", 4
"""The operator of gradients; the number of the sums among the arrays of either."""
INPUTS = {"scaled_dot_product_attention": 3, BACK: 6}
"""Those that are not masks."""
MOST = 1 << 31
"""Elements of an array: the library counts with 32 bits."""


class PlacedAttention(NamedTuple):
    """A problem for the library.  Arrays that it cannot read, or write, where they lie are packed in the workspace."""

    problem: Attention | AttentionGradients
    spots: tuple[PlacedArray, ...]
    """Of the problem's arrays."""
    before: tuple[CopyNest, ...]
    behind: tuple[CopyNest, ...]
    packed: int
    """Bytes of the workspace that are packed arrays."""


@lru_cache(maxsize=256)
def placed_attention(command: Command, packs: bool = False, ordered: bool = True) -> PlacedAttention:
    """The problem of a command, whose arrays may lie anywhere; NotSupportedError where the library takes none like it.
    `packs`: all arrays are packed.  `ordered`: sums of gradients are taken in one order.

    What is refused is so by shapes and dtypes alone: graphs decide about composites before anything lies anywhere.
    """
    _refuse_others(command)
    scale, causal, offset = command.attributes
    writer = AttentionPlacer(command, packs)
    places = map(writer.place, range(len(writer.arrays)))
    hides = causal and not _sees_all(command, offset)
    problem = (AttentionGradients._make((*places, scale, hides, ordered)) if command.name == BACK else
               Attention._make((*places, scale, hides)))
    return PlacedAttention(problem, tuple(writer.spots), tuple(writer.before), tuple(writer.behind), writer.packed)


def _sees_all(command: Command, offset: int) -> bool:
    """Tell whether the first query sees the last key."""
    return bool(offset >= command.inputs[1].shape[-2] - 1)


def _refuse_others(command: Command) -> None:
    query, key, value = command.inputs[:3]
    _, causal, offset = command.attributes
    if len(command.inputs) > INPUTS[command.name]:
        raise NotSupportedError("the library takes no masks here")
    if query.dtype not in HALVES or not query.dtype == key.dtype == value.dtype:
        raise NotSupportedError(f"the library has no attention of {query.dtype}")
    if 0 in (*query.shape, *key.shape, *value.shape):
        raise NotSupportedError("there is nothing to attend to")
    features = (query.shape[-1], value.shape[-1])
    if max(features) > MOST_FEATURES or any([n % WORD for n in features]):
        raise NotSupportedError(f"features are no multiple of {WORD}, or more than {MOST_FEATURES}")
    if max([x.size for x in (*command.inputs, *command.outputs)]) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    if causal and offset and not _sees_all(command, offset):
        raise NotSupportedError("the library has diagonals that begin at the first key alone")
    if prod(query.shape[:-1]) * key.shape[-2] * sum(features) < WORTH:  # of the way ahead: both ways are taken, or none
        raise NotSupportedError("it is too small to pay")


class AttentionPlacer:
    """Places the arrays of one command: its inputs and results."""

    def __init__(self, command: Command, packs: bool) -> None:
        self.arrays, self.packs = (*command.inputs, *command.outputs), packs
        self.results = range(len(command.inputs), len(self.arrays))
        self.spots, self.before, self.behind = list[PlacedArray](), list[CopyNest](), list[CopyNest]()
        self.packed = 0

    def place(self, number: int) -> TensorPlace:
        """The place of an array, packed in the workspace where the library wants it elsewhere than it lies."""
        x, workspace = self.arrays[number], len(self.arrays)
        found = _sums(x) if number == SUMS else None if self.packs else _rows(x)
        if found is not None:
            self.spots.append(PlacedArray(number, x.offset))
            return found
        own = Layout.packed(x.shape, x.dtype, self.packed)
        if number in self.results:
            self.behind.append(CopyNest(copied(own, x), workspace, number))
        else:
            self.before.append(CopyNest(copied(x, own), number, workspace))
        self.spots.append(PlacedArray(workspace, self.packed))
        self.packed += aligned(own.nbytes)
        there = _sums(own) if number == SUMS else _rows(own)
        assert there is not None
        return there


def _sums(x: Layout) -> TensorPlace | None:
    """Those of queries, (..., heads, rows); None unless they are packed."""
    *outer, heads, rows = x.shape
    if not x.contiguous:
        return None
    return TensorPlace(x.dtype, (prod(outer), heads, rows, 1), (heads * rows, rows, 1, 1), x.dtype.itemsize)


def _rows(x: Layout) -> TensorPlace | None:
    """An array (..., heads, rows, features) whose outer axes are one; None where the library wants it elsewhere:
    features side by side, all else at whole words."""
    *outer, heads, rows, features = x.shape
    axes = [(n, step) for n, step in zip(outer, x.strides, strict=False) if n > 1]
    if any([step != inner * n for (_, step), (n, inner) in pairwise(axes)]):
        return None
    lengths = (prod(outer), heads, rows, features)
    natural = packed_strides(lengths, x.dtype.itemsize)
    given = (axes[-1][1] if axes else natural[0], *x.strides[-3:])
    strides = [step if n > 1 else one for n, step, one in zip(lengths, given, natural, strict=True)]
    if strides[-1] != x.dtype.itemsize or any([n <= 0 or n % ALIGNED for n in (*strides[:-1], x.offset or ALIGNED)]):
        return None
    return TensorPlace(x.dtype, lengths, tuple([step // x.dtype.itemsize for step in strides]), ALIGNED)
