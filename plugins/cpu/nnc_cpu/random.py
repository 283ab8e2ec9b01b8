"""Philox4x32-10, the stream that `nnc_core.operator.philox` defines, in pieces that stay in the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache, partial
from math import pi, prod
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_core.operator.philox import IN_ORDER, encipher, round_keys
from nnc_cpu.memory import Array
from nnc_cpu.routine import Make, Routine, attributes_of, prepared, scratch

CHUNK = 8192  # blocks of four words
_UPPER_FIRST = (1, 0, 3, 2) if sys.byteorder == "little" else (0, 1, 2, 3)


Use = Callable[[int, Array], None]
"""Takes the index of the first word and some words, which it may overwrite."""


FEW, AHEAD = 64, 256
"""Words of a draw that are made together with those of the next draws, and of how many draws."""
_latest: tuple[int, int] = (-1, -1)
"""Seed and number of the latest small draw."""


def _few_words(seed: int, draw: int, count: int) -> Array | None:
    """The words of a small draw that follows another one of its seed, in order; None for one that does not: what is
    made ahead is for those who go on drawing."""
    return _page(seed, draw // AHEAD, _blocks(count))[draw % AHEAD, :count] if _follows(seed, draw) else None


def first_words(seed: int, draw: int, count: int) -> Array | None:
    """The first words of a draw, made with those of the next draws; not to be written to.  None for many, and for a
    draw that follows none."""
    return _few_words(seed, draw, count) if 0 < count <= FEW else None


def _follows(seed: int, draw: int) -> bool:
    """Tell whether a small draw follows another one of its seed."""
    global _latest
    before, _latest = _latest, (seed, draw)
    return before[0] == seed and before[1] < draw <= before[1] + AHEAD


def _blocks(words: int) -> int:
    """Blocks of four words that are made for each of several draws: a power of two, so that there are few pages."""
    return 1 << (-(-words // 4) - 1).bit_length()


_BLOCKS = [0, *map(_blocks, range(1, FEW + 1))]


@lru_cache(maxsize=16)
def _page(seed: int, number: int, blocks: int) -> Array:
    """uint32 (draws, words): the first words of each of AHEAD draws."""
    words = np.empty((AHEAD * blocks, 4), np.uint32)
    first = np.uint64(number * AHEAD)
    lanes = np.empty((3, 2, len(words)), np.uint64)
    draws = np.repeat(np.arange(AHEAD, dtype=np.uint64) + first, blocks)
    encipher(round_keys(seed), draws, np.tile(np.arange(blocks, dtype=np.uint64), AHEAD), lanes, words, IN_ORDER)
    return words.reshape(AHEAD, 4 * blocks)


def _generate(key: Array, count: int, lanes: Array, words: Array, order: tuple[int, ...], use: Use) -> None:
    """Call `use` with `count` words in all, CHUNK blocks at a time; `words` (CHUNK, 4) is scratch."""
    seed, draw = key.tolist()
    if 0 < count <= FEW and (few := _few_words(seed, draw, count)) is not None:
        flat = words.reshape(-1)[:count]
        flat[:] = few if order is IN_ORDER else few.reshape(-1, 2)[:, ::-1].reshape(-1)
        use(0, flat)
        return
    keys = round_keys(seed)
    for first in range(0, -(-count // 4), CHUNK):
        blocks = words[: min(CHUNK, -(-count // 4) - first)]
        numbers = np.arange(first, first + len(blocks), dtype=np.uint64)
        encipher(keys, draw, numbers, lanes, blocks, order)
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
    return _from_words(out.size * (2 if wide else 1), _UPPER_FIRST if wide else IN_ORDER, _copy_words)


def _bernoulli(command: Command) -> Routine:
    probability = attributes_of(command)[1]
    threshold = round(probability * 2**32)
    if threshold >= 2**32:
        return Routine(lambda key, out: partial(out.fill, True))

    def use(out: Array, first: int, words: Array) -> None:
        np.less(words, np.uint32(threshold), out=out[first : first + len(words)])

    return _from_words(command.output.size, IN_ORDER, use)


_KEPT: dict[DType, int] = {dt.float64: 53, dt.float32: 24, dt.float16: 11, dt.bfloat16: 8}
_SHIFTS = {d: np.uint64(64 - kept) if d == dt.float64 else np.uint32(32 - kept) for d, kept in _KEPT.items()}
_SCALES = {d: d.type(2.0**-kept) for d, kept in _KEPT.items()}


def _uniform(command: Command) -> Routine:
    dtype, wide = command.output.dtype, command.output.dtype == dt.float64
    source = np.dtype(np.uint64 if wide else np.uint32)
    shift, scale = _SHIFTS[dtype], _SCALES[dtype]

    def use(out: Array, first: int, words: Array) -> None:
        bits = words.view(source)
        target = out[first * 4 // source.itemsize :][: len(bits)]
        np.right_shift(bits, shift, out=bits)
        np.copyto(target, bits, casting="unsafe")
        np.multiply(target, scale, out=target)

    return _from_words(command.output.size * (2 if wide else 1), _UPPER_FIRST if wide else IN_ORDER, use)


def _open_uniform(command: Command) -> Routine:
    dtype, wide = command.output.dtype, command.output.dtype == dt.float64
    source = np.dtype(np.uint64 if wide else np.uint32)
    shift, half, scale = _OPEN[dtype]

    def use(out: Array, first: int, words: Array) -> None:
        bits = words.view(source)
        target = out[first * 4 // source.itemsize :][: len(bits)]
        np.right_shift(bits, shift, out=bits)
        np.copyto(target, bits, casting="unsafe")
        np.add(target, half, out=target)
        np.multiply(target, scale, out=target)

    return _from_words(command.output.size * (2 if wide else 1), _UPPER_FIRST if wide else IN_ORDER, use)


_OPEN: dict[DType, tuple[Any, Any, Any]] = {
    dt.float32: (np.uint32(32 - 23), np.float32(0.5), np.float32(2.0**-23)),
    dt.float64: (np.uint64(64 - 52), np.float64(0.5), np.float64(2.0**-52)),
}
"""The bits that open intervals leave out, and what their others are moved and scaled by."""


# ---- eager
def _small_draw(key: Array, words: int) -> Array | None:
    """The words of a draw of few, not to be written to; None for many, and for a draw that follows none."""
    if not 0 < words <= FEW:
        return None
    seed, draw = key.tolist()
    return _few_words(seed, draw, words)


def _wide(words: Array) -> Array:
    """uint64: pairs of words, the upper half first."""
    return words.reshape(-1, 2)[:, _UPPER_FIRST[:2]].reshape(-1).view(np.uint64)


def _by_routine(name: str, attributes: tuple[Any, ...], key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    out = np.empty(shape, dtype)
    routine = routine_of(name, Command(name, attributes, (_KEY,), (Layout.packed(shape, dtype),)))
    routine.bind(key, out, *[np.empty(s.shape, s.dtype) for s in routine.scratch])()
    return out


def random_bits(key: Array, shape: tuple[int, ...], dtype: DType) -> Array:
    wide = dtype == dt.uint64
    words = _small_draw(key, prod(shape) * (2 if wide else 1))
    if words is None:
        return _by_routine("random_bits", (shape, dtype), key, shape, dtype)
    return (_wide(words) if wide else words.copy()).reshape(shape)


def bernoulli(key: Array, shape: tuple[int, ...], probability: float) -> Array:
    threshold = round(probability * 2**32)
    words = _small_draw(key, prod(shape)) if threshold < 2**32 else None
    if words is None:
        return _by_routine("bernoulli", (shape, probability), key, shape, dt.boolean)
    return (words < np.uint32(threshold)).reshape(shape)


def uniform(key: Array, shape: tuple[int, ...], dtype: DType) -> Any:
    """The numbers that the routine gives; of a few words without its preparations."""
    wide = dtype == dt.float64
    words = _small_draw(key, prod(shape) * (2 if wide else 1))
    if words is None:
        return _by_routine("uniform", (shape, dtype), key, shape, dtype)
    out = ((_wide(words) if wide else words) >> _SHIFTS[dtype]).astype(dtype)
    return np.multiply(out, _SCALES[dtype], out=out).reshape(shape)


def open_uniform(key: Array, shape: tuple[int, ...], dtype: DType) -> Any:
    wide = dtype == dt.float64
    words = _small_draw(key, prod(shape) * (2 if wide else 1))
    if words is None:
        return _by_routine("open_uniform", (shape, dtype), key, shape, dtype)
    return _opened(_wide(words) if wide else words, dtype).reshape(shape)


def _opened(bits: Array, dtype: DType) -> Array:
    shift, half, scale = _OPEN[dtype]
    out: Array = (bits >> shift).astype(dtype)
    np.add(out, half, out=out)
    np.multiply(out, scale, out=out)
    return out


def normal(key: Array, shape: tuple[int, ...], dtype: DType) -> Any:
    """Box and Muller's transform as the operator has it, without a value for each of its steps."""
    wide = dtype if dtype == dt.float64 else dt.float32
    pairs = uniform(key, (prod(shape), 2), wide)
    out = np.empty(len(pairs), wide)
    for begin in range(0, len(pairs), PIECE):
        part = pairs[begin : begin + PIECE]
        _transform(part[:, 0], part[:, 1], out[begin : begin + PIECE])
    out = out.reshape(shape)
    return out if wide == dtype else out.astype(dtype)


def many_normals(blocks: Callable[[int, int, Array], Array], key: Array, shape: tuple[int, ...], dtype: DType) -> Any:
    """The same numbers by the words (n, 4) that `blocks` makes of a seed, a draw and the numbers of n blocks: it takes
    no memory but that of the numbers, and what is computed on the way stays in the cache."""
    wide, size = dtype if dtype == dt.float64 else dt.float32, prod(shape)
    each = 1 if wide == dt.float64 else 2
    seed, draw = key.tolist()
    out, room = np.empty((-(-size // each), each), wide), np.empty(PIECE, wide)
    for begin in range(0, len(out), PIECE):
        part = out[begin : begin + PIECE]
        words = blocks(seed, draw, np.arange(begin, begin + len(part), dtype=np.uint64)).T
        bits = words if each == 2 else [high.astype(np.uint64) << np.uint64(32) | low
                                        for high, low in (words[:2], words[2:])]
        uniforms = [(b >> _SHIFTS[wide]).astype(wide) * _SCALES[wide] for b in bits]
        for k in range(each):
            found = room[: len(part)]
            _transform(uniforms[2 * k], uniforms[2 * k + 1], found)
            part[:, k] = found
    drawn = out.reshape(-1)[:size].reshape(shape)
    return drawn if wide == dtype else drawn.astype(dtype)


def _transform(first: Array, second: Array, out: Array) -> None:
    np.subtract(1.0, first, out=out)
    np.log(out, out=out)
    np.multiply(out, -2.0, out=out)
    np.sqrt(out, out=out)
    angle = np.multiply(second, 2 * pi)
    np.cos(angle, out=angle)
    np.multiply(out, angle, out=out)


def words64(key: Array, count: int) -> Array:
    """uint64: the words of a draw."""
    return random_bits(key, (count,), dt.uint64)


def following(name: str) -> Callable[..., Any]:
    """A draw of a few numbers and the key of the next one, from a page on which the draws that follow are finished;
    NotImplemented for a draw that follows none."""
    words = 2 if name == "normal" else 1

    def draw(key: Array, shape: tuple[int, ...], dtype: DType) -> Any:
        count = shape[0] if len(shape) == 1 else prod(shape)
        if not 0 < count * words <= FEW or dtype is not dt.float32:
            return NotImplemented
        seed, number = key.tolist()
        if not _follows(seed, number):
            return NotImplemented
        page = _numbers(name, seed, number // AHEAD, _BLOCKS[count * words])
        drawn = page[number % AHEAD, :count].copy()
        after = key.copy()
        after[1] = number + 1 & _ALL_ONES
        return after, drawn if len(shape) == 1 else drawn.reshape(shape)

    return draw


def _exponential(u: Array) -> Array:
    return np.negative(np.log(u))


def _gumbel(u: Array) -> Array:
    return np.negative(np.log(_exponential(u)))


def _laplace(u: Array) -> Array:
    centred = np.subtract(np.multiply(u, np.float32(2)), np.float32(1))
    return np.multiply(np.sign(centred), np.negative(np.log1p(np.negative(np.abs(centred)))))


_OF_OPEN: dict[str, Callable[[Array], Array]] = {"exponential": _exponential, "gumbel": _gumbel, "laplace": _laplace}
"""Functions of uniform numbers that are neither 0 nor 1, as `Generator` makes them of operators."""


@lru_cache(maxsize=16)
def _numbers(name: str, seed: int, number: int, blocks: int) -> Array:
    """float32 (draws, numbers): the first numbers of each of AHEAD draws."""
    if name in _OF_OPEN:
        return _OF_OPEN[name](_opened(_page(seed, number, blocks), dt.float32))
    out = (_page(seed, number, blocks) >> _SHIFTS[dt.float32]).astype(np.float32)
    np.multiply(out, _SCALES[dt.float32], out=out)
    if name == "uniform":
        return out
    pairs = out.reshape(-1, 2)
    normal = np.empty(len(pairs), np.float32)
    _transform(pairs[:, 0], pairs[:, 1], normal)
    return normal.reshape(AHEAD, -1)


@lru_cache(maxsize=1024)
def routine_of(name: str, command: Command) -> Routine:
    """Kept by command: it holds no arrays."""
    return MAKERS[name](command)


def next_key(key: Array) -> Array:
    """The seed, and the number of the next draw."""
    after = key.copy()
    after[1] = key.item(1) + 1 & _ALL_ONES
    return after


def scaled_words(words: Array, span: int) -> Array:
    """floor(word * span / 2**64) of words of 64 bits, in two halves, piece by piece; span is at most 2**32."""
    if words.size <= FEW_SCALED:
        return np.array([word * span >> 64 for word in words.ravel().tolist()], np.uint64).reshape(words.shape)
    out, flat = np.empty(words.shape, np.uint64), words.reshape(-1)
    scaled, half, times = out.reshape(-1), np.uint64(32), np.uint64(span)
    low = np.empty(min(PIECE, len(flat)), np.uint64)
    for begin in range(0, len(flat), PIECE):
        word, high = flat[begin : begin + PIECE], scaled[begin : begin + PIECE]
        carried = low[: len(word)]
        np.bitwise_and(word, np.uint64(2**32 - 1), out=carried)
        np.multiply(carried, times, out=carried)
        np.right_shift(carried, half, out=carried)
        np.right_shift(word, half, out=high)
        np.multiply(high, times, out=high)
        np.add(high, carried, out=high)
        np.right_shift(high, half, out=high)
    return out


PIECE = 1 << 14
FEW_SCALED = 16
"""Words that Python scales more quickly than NumPy does."""
_ALL_ONES = (1 << 64) - 1
_KEY = Layout.packed((2,), dt.uint64)
MAKERS: dict[str, Make] = {
    "random_bits": prepared(_random_bits), "bernoulli": prepared(_bernoulli), "uniform": prepared(_uniform),
    "open_uniform": prepared(_open_uniform),
}  # fmt: skip
