"""Attention of commands as problems of the library, and the nests before and behind it."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, bfloat16, float16, float32
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout, packed_strides
from nnc_cuda.dnn.attention_masks import DTYPES, bias_of, bias_shape, results_settled, sums_settled
from nnc_cuda.dnn.interface import Attention, AttentionGradients, TensorPlace
from nnc_cuda.dnn.places import ALIGNED, aligned
from nnc_cuda.kernel import NestStep
from nnc_cuda.matrices.nests import copied
from nnc_cuda.products.library import PlacedArray

HALVES = (float16, bfloat16)
WORTH = 1 << 18
"""Multiply-adds from which on a call of the library pays."""
WORD, MOST_FEATURES = 8, 128
"""The features of a query are a multiple of the former; the latter is what all GPUs that have the code for it take."""
BACK, SUMS_BACK = "attention_gradients_from_result", 4
"""The operator of gradients; the number of the sums among its inputs."""
INPUTS = {"scaled_dot_product_attention": 3, BACK: 6}
"""Those that are not masks."""
MOST = 1 << 31
"""Elements of an array: the library counts with 32 bits."""


class PlacedAttention(NamedTuple):
    """A problem for the library.  Arrays that it cannot read, or write, where they lie are packed in the workspace."""

    problem: Attention | AttentionGradients
    spots: tuple[PlacedArray, ...]
    """Of the problem's arrays."""
    before: tuple[NestStep, ...]
    behind: tuple[NestStep, ...]
    packed: int
    """Bytes of the workspace that are packed arrays, and the numbers of a mask."""


@lru_cache(maxsize=256)
def placed_attention(command: Command, packs: bool = False, ordered: bool = True) -> PlacedAttention:
    """The problem of a command, whose arrays may lie anywhere; NotSupportedError where the library takes none like it.
    `packs`: all arrays are packed.  `ordered`: sums of gradients are taken in one order.

    What is refused is so by shapes and dtypes alone: graphs decide about composites before anything lies anywhere.
    """
    _refuse_others(command)
    scale, causal, offset = command.attributes
    writer, hides = AttentionPlacer(command, packs), causal and not _sees_all(command, offset)
    places = [writer.place(n) for n in range(len(writer.arrays)) if n not in writer.masks]
    elsewhere = offset if hides and offset else None  # the library's own diagonal begins at the first key
    bias = writer.bias(elsewhere) if writer.masks or elsewhere else None
    if bias is not None and prod(bias.shape) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    hides = hides and not elsewhere
    problem = (AttentionGradients._make((*places, scale, hides, ordered, bias)) if command.name == BACK else
               Attention._make((*places, scale, hides, bias)))
    return PlacedAttention(problem, tuple(writer.spots), tuple(writer.before), tuple(writer.behind), writer.packed)


def _sees_all(command: Command, offset: int) -> bool:
    """Tell whether the first query sees the last key."""
    return bool(offset >= command.inputs[1].shape[-2] - 1)


def _refuse_others(command: Command) -> None:
    query, key, value = command.inputs[:3]
    masks = command.inputs[INPUTS[command.name] :]
    if len(masks) > 1 or any([mask.dtype not in DTYPES for mask in masks]):
        raise NotSupportedError("the library takes one mask, boolean or float")
    if query.dtype not in HALVES or not query.dtype == key.dtype == value.dtype:
        raise NotSupportedError(f"the library has no attention of {query.dtype}")
    if 0 in (*query.shape, *key.shape, *value.shape):
        raise NotSupportedError("there is nothing to attend to")
    features = (query.shape[-1], value.shape[-1])
    if max(features) > MOST_FEATURES or any([n % WORD for n in features]):
        raise NotSupportedError(f"features are no multiple of {WORD}, or more than {MOST_FEATURES}")
    if max([x.size for x in (*command.inputs, *command.outputs)]) >= MOST:
        raise NotSupportedError("the library counts with 32 bits")
    if prod(query.shape[:-1]) * key.shape[-2] * sum(features) < WORTH:  # of the way ahead: both ways are taken, or none
        raise NotSupportedError("it is too small to pay")


class AttentionPlacer:
    """Places the arrays of one command: its inputs and results."""

    def __init__(self, command: Command, packs: bool) -> None:
        self.arrays, self.packs = (*command.inputs, *command.outputs), packs
        self.masks = range(INPUTS[command.name], len(command.inputs))
        self.results = range(len(command.inputs), len(self.arrays))
        self.ahead = command.name != BACK
        self.sums = len(command.inputs) + 1 if self.ahead else SUMS_BACK
        self.spots, self.before, self.behind = list[PlacedArray](), list[NestStep](), list[NestStep]()
        self.packed = 0

    def place(self, number: int) -> TensorPlace:
        """The place of an array, packed in the workspace where the library wants it elsewhere than it lies."""
        x, workspace = self.arrays[number], len(self.arrays)
        found = _sums(x) if number == self.sums else None if self.packs else _rows(x)
        if found is not None:
            self.spots.append(PlacedArray(number, x.offset))
            return found
        own = self._room(x.shape, x.dtype)
        if number in self.results:
            self.behind.append(NestStep(copied(own, x), (workspace, number)))
        else:
            self.before.append(NestStep(copied(x, own), (number, workspace)))
        there = _sums(own) if number == self.sums else _rows(own)
        assert there is not None
        return there

    def _room(self, shape: tuple[int, ...], dtype: DType) -> Layout:
        """Room in the workspace for the next of the problem's arrays."""
        own = Layout.packed(shape, dtype, self.packed)
        self.spots.append(PlacedArray(len(self.arrays), self.packed))
        self.packed += aligned(own.nbytes)
        return own

    def bias(self, diagonal: int | None) -> TensorPlace:
        """The place of the numbers of a mask and a diagonal, which is placed last; ahead, queries that see nothing give
        zeros."""
        query, key, workspace = self.arrays[0], self.arrays[1], len(self.arrays)
        mask = self.arrays[self.masks[0]] if self.masks else None
        own = self._room(bias_shape(mask, (*query.shape[:-1], key.shape[-2]), diagonal is not None), float32)
        self.before.append(NestStep(bias_of(mask, diagonal, own), (*self.masks, workspace)))
        if self.ahead:
            result, sums = self.results
            settled = results_settled(self.arrays[sums], self.arrays[result])
            self.behind += [NestStep(settled, (sums, result, result)),
                            NestStep(sums_settled(self.arrays[sums]), (sums, sums))]
        *outer, heads, rows, keys = own.shape
        return TensorPlace(float32, (prod(outer), heads, rows, keys), (heads * rows * keys, rows * keys, keys, 1),
                           ALIGNED)


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
