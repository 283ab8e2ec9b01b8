"""Distributions that are sampled by rejection or by counting, with Philox and lgamma in machine code.

The bits are those of `nnc_core.operator.sampling_reference`, which samples: machine code makes the same words, and the
same logarithms.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.operator import sampling as reference
from nnc_core.operator.loops import open_nest
from nnc_core.operator.philox import block_words, philox_words
from nnc_cpu.addresses import arguments_of
from nnc_cpu.guards import Eager, guarded
from nnc_cpu.left import LARGE
from nnc_cpu.memory import Array
from nnc_cpu.positions import argsort
from nnc_cpu.random import FEW, first_words, many_normals, normal, words64
from nnc_cpu.sampled_ahead import SampledAhead, by_rows, together

if TYPE_CHECKING:
    from nnc_core.base.loopnest import LoopNest
    from nnc_cpu.llvm.kernel import NestKernel
    from nnc_cpu.nests import NestKernels, TieredKernel

MANY = 1 << 12
"""Blocks from which on machine code is worth its compiling."""


def sampling(lgamma: Eager, kernels: Callable[[], NestKernels]) -> Mapping[str, Eager]:
    """Eager kernels of distributions by the names of their operators; `lgamma` is that of arrays."""
    tools = reference.Tools(_Blocks(kernels), partial(_lgamma, lgamma), _stream)
    return {
        "normal": guarded(partial(_normal, tools)),
        "random_gamma": SampledAhead(reference.gamma, 1, tools, together),
        "random_poisson": SampledAhead(reference.poisson, 1, tools, together),
        "random_binomial": SampledAhead(reference.binomial, 2, tools, together),
        "random_multinomial": SampledAhead(reference.multinomial, 2, tools, by_rows),
        "distinct_integers": lambda key, size, below: reference.distinct_integers(key, size, below, tools),
        "permutation": lambda key, size: argsort(_words64(tools, key, size), 0, False),
        "random_choice": lambda key, w, size, replace: reference.weighted_choice(key, w, size, replace, tools),
    }


def _normal(tools: reference.Tools, key: Array, shape: tuple[int, ...], dtype: dt.DType) -> Array:
    if math.prod(shape) < LARGE:
        return normal(key, shape, dtype)  # type: ignore[no-any-return]
    return many_normals(tools.blocks, key, shape, dtype)  # type: ignore[no-any-return]


def _are_first(numbers: Array) -> bool:
    """Tell whether these are the first few blocks; numbers rise."""
    return 0 < len(numbers) <= FEW // 4 and int(numbers[-1]) == len(numbers) - 1


def _stream(key: Array, count: int) -> Array:
    seed, draw = key.tolist()
    few = first_words(seed, draw, count)
    return philox_words(key, count) if few is None else few


def _words64(tools: reference.Tools, key: Array, count: int) -> Array:
    """uint64: the words of a draw, two of each block, the upper half of each first."""
    if count < MANY:
        return words64(key, count)
    seed, draw = key.tolist()
    words = tools.blocks(seed, draw, np.arange(-(-count // 2), dtype=np.uint64))
    out = np.empty((len(words), 2), np.uint64)
    for k in (0, 1):
        np.left_shift(words[:, 2 * k], np.uint64(32), out=out[:, k])
        out[:, k] |= words[:, 2 * k + 1]
    return out.reshape(-1)[:count]


def _lgamma(kernel: Eager, x: Array) -> Array:
    found = kernel(x)
    return reference.TOOLS.lgamma(x) if found is NotImplemented else found


class _Blocks:
    """The words of numbered Philox blocks."""

    def __init__(self, kernels: Callable[[], NestKernels]) -> None:
        self.kernels = kernels

    def __call__(self, seed: int, draw: int, numbers: Array) -> Array:
        if _are_first(numbers) and (few := first_words(seed, draw, 4 * len(numbers))) is not None:
            return few.reshape(-1, 4)
        machine: NestKernel | None = None
        if len(numbers) >= MANY or self._kernel.machine is not None:
            machine = self._kernel.ready()  # type: ignore[assignment]
        if machine is None:
            return reference.TOOLS.blocks(seed, draw, numbers)
        words = np.empty((4, len(numbers)), np.uint32)
        counted = (ctypes.c_int64 * 7)(0, 0, 0, 0, 0, 0, len(numbers))
        machine.code.function(arguments_of((np.array([seed, draw], np.uint64), numbers, *words)),
                              ctypes.addressof(counted), 0, machine.code.shape.tasks((len(numbers),)))
        return words.T

    @cached_property
    def _kernel(self) -> TieredKernel:
        [made] = self.kernels().of([_nest()])
        made.at_once = True
        return made


def _nest() -> LoopNest:
    """A vector of uint32 for each of the four words of the blocks that a vector of uint64 numbers."""
    numbers, words = Layout.packed((LARGE,), dt.uint64), Layout.packed((LARGE,), dt.uint32)
    nest = open_nest(Command("philox", (), (Layout.packed((2,), dt.uint64), numbers), (words,) * 4))
    [i] = nest.outer(LARGE)
    for k, word in enumerate(block_words(nest, nest.load(0, 0), nest.load(0, 1), nest.load(1, i))):
        nest.store(k, word, i)
    return nest.build()
