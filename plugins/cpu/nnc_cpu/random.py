"""Philox4x32-10, the stream that `nnc_core.operator.philox` defines, in pieces that stay in the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_core.operator.philox import MULTIPLIERS, ROUNDS, WEYL
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, prepared, scratch

CHUNK = 8192  # blocks of four words
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_MULTIPLIERS = np.array([[MULTIPLIERS[1]], [MULTIPLIERS[0]]], np.uint64)
_IN_ORDER, _UPPER_FIRST = (0, 1, 2, 3), (1, 0, 3, 2) if sys.byteorder == "little" else (0, 1, 2, 3)


def _round_keys(seed: int) -> list[Array]:
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    return [np.array([[(k0 + i * WEYL[0]) & 0xFFFFFFFF], [(k1 + i * WEYL[1]) & 0xFFFFFFFF]], np.uint64)
            for i in range(ROUNDS)]


def _cipher(round_keys: list[Array], draw: int, first: int, lanes: Array, out: Array, order: tuple[int, ...]) -> None:
    """Fill out (blocks, 4) from block `first` on; word k of a block goes to column order[k].

    `lanes` is scratch: words 0 and 2, words 1 and 3, and products, of each block."""
    even, odd, product = lanes[:, :, : len(out)]
    swapped = even[::-1]
    odd[0] = np.arange(first, first + len(out), dtype=np.uint64)
    np.bitwise_and(odd[0], _LOW, out=even[0])
    np.right_shift(odd[0], _HALF, out=odd[0])
    even[1], odd[1] = draw & 0xFFFFFFFF, draw >> 32
    for key in round_keys:
        np.multiply(swapped, _MULTIPLIERS, out=product)
        np.right_shift(product, _HALF, out=even)
        np.bitwise_xor(even, odd, out=even)
        np.bitwise_xor(even, key, out=even)
        np.bitwise_and(product, _LOW, out=odd)
    for column, word in zip(order, (even[0], odd[0], even[1], odd[1]), strict=True):
        out[:, column] = word


Use = Callable[[int, Array], None]
"""Takes the index of the first word and some words, which it may overwrite."""


def _generate(key: Array, count: int, lanes: Array, words: Array, order: tuple[int, ...], use: Use) -> None:
    """Call `use` with `count` words in all, CHUNK blocks at a time; `words` (CHUNK, 4) is scratch."""
    seed, draw = (int(k) for k in key)
    round_keys = _round_keys(seed)
    for first in range(0, -(-count // 4), CHUNK):
        blocks = words[: min(CHUNK, -(-count // 4) - first)]
        _cipher(round_keys, draw, first, lanes, blocks, order)
        use(4 * first, blocks.reshape(-1)[: count - 4 * first])


def _scratch(size: int) -> tuple[Layout, Layout]:
    blocks = min(CHUNK, -(-size // 4))
    return scratch((3, 2, blocks), dt.uint64), scratch((blocks, 4), dt.uint32)


def _from_words(words: int, order: tuple[int, ...], use: Callable[[Array, int, Array], None]) -> Routine:
    """`use` also takes the flat output."""

    def bind(key: Array, out: Array, lanes: Array, buffer: Array) -> Launch:
        return partial(_generate, key, words, lanes, buffer, order, partial(use, out.reshape(-1)))

    return Routine(bind, _scratch(words))


def _copy_words(out: Array, first: int, words: Array) -> None:
    out.view(np.uint32)[first : first + len(words)] = words


def _random_bits(command: Command) -> Routine:
    out = command.output
    wide = out.dtype == dt.uint64
    return _from_words(out.size * (2 if wide else 1), _UPPER_FIRST if wide else _IN_ORDER, _copy_words)


def _bernoulli(command: Command) -> Routine:
    probability = attributes_of(command)[1]
    threshold = round(probability * 2**32)
    if threshold >= 2**32:
        return Routine(lambda key, out: partial(out.fill, True))

    def use(out: Array, first: int, words: Array) -> None:
        np.less(words, np.uint32(threshold), out=out[first : first + len(words)])

    return _from_words(command.output.size, _IN_ORDER, use)


_KEPT: dict[DType, int] = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}


def _uniform(command: Command) -> Routine:
    dtype, wide = command.output.dtype, command.output.dtype == dt.float64
    source = np.dtype(np.uint64 if wide else np.uint32)
    shift, scale = source.type(8 * source.itemsize - _KEPT[dtype]), dtype.type(2.0 ** -_KEPT[dtype])

    def use(out: Array, first: int, words: Array) -> None:
        bits = words.view(source)
        target = out[first * 4 // source.itemsize :][: len(bits)]
        np.right_shift(bits, shift, out=bits)
        np.copyto(target, bits, casting="unsafe")
        np.multiply(target, scale, out=target)

    return _from_words(command.output.size * (2 if wide else 1), _UPPER_FIRST if wide else _IN_ORDER, use)


def _open_uniform(command: Command) -> Routine:
    dtype, wide = command.output.dtype, command.output.dtype == dt.float64
    source = np.dtype(np.uint64 if wide else np.uint32)
    kept = 52 if wide else 23
    shift, half, scale = source.type(8 * source.itemsize - kept), dtype.type(0.5), dtype.type(2.0**-kept)

    def use(out: Array, first: int, words: Array) -> None:
        bits = words.view(source)
        target = out[first * 4 // source.itemsize :][: len(bits)]
        np.right_shift(bits, shift, out=bits)
        np.copyto(target, bits, casting="unsafe")
        np.add(target, half, out=target)
        np.multiply(target, scale, out=target)

    return _from_words(command.output.size * (2 if wide else 1), _UPPER_FIRST if wide else _IN_ORDER, use)


MAKERS: dict[str, Make] = {
    "random_bits": prepared(_random_bits), "bernoulli": prepared(_bernoulli), "uniform": prepared(_uniform),
    "open_uniform": prepared(_open_uniform),
}  # fmt: skip
