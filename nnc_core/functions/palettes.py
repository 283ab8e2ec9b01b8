"""Arrays kept as codes of a few bits and palettes of numbers: made on the host, read on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, is_float
from nnc_core.base.errors import DTypeError, NonfiniteError
from nnc_core.base.packed import packed
from nnc_core.functions.palette_fit import fit
from nnc_core.shape.palettes import block_count, check_bits, check_block
from nnc_core.stacks import Stack
from nnc_core.type import admit_numpy
from nnc_core.values.arguments import ArrayLike, as_value, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.tensor import Tensor

__all__ = ["Palettised", "depalettise", "palettise"]


@dataclass(frozen=True)
class Palettised:
    """An array as codes (bytes,) uint8 and a palette (blocks, 2**bits): what `palettise` gives."""

    codes: Tensor
    palette: Tensor
    bits: int
    block_size: int
    """Elements in row-major order that share a row of the palette; the last block may be short."""
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of codes and palette together."""
        return self.codes.spec.nbytes + self.palette.spec.nbytes

    def depalettise(self) -> Tensor:
        """The array in the palette's dtype."""
        return depalettise(self.codes, self.palette, bits=self.bits, shape=self.shape, block_size=self.block_size)


@names_itself
def depalettise(codes: ArrayLike, palette: ArrayLike, /, *, bits: int, shape: tuple[int, ...] | int,
                block_size: int | None = None) -> Tensor:
    """The array of that shape whose elements, in row-major order, are palette[i // block_size, code i].

    `codes` (bytes,) uint8 holds a number of `bits` bits, 4 to 8, for each element, one behind the other, in each byte
    the lowest bits first; `palette` (blocks, 2**bits) has a row for each block, by default one for all.  Linear in the
    palette, which may have a gradient.
    """
    c, p = as_values(codes, palette)
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    block = _whole(wanted) if block_size is None else block_size
    return Tensor(F.depalettise(c, p, bits=bits, shape=wanted, block=block))


def _whole(shape: tuple[int, ...]) -> int:
    return max(int(np.prod(shape, dtype=np.int64)), 1)


@names_itself
def palettise(x: ArrayLike, /, bits: int = 8, block_size: int | None = None, dtype: Any = None) -> Palettised:
    """Real floating-point numbers as codes of `bits` bits, 4 to 8, and palettes, made on the host.

    Each `block_size` elements in row-major order, by default all, have a palette of 2**bits numbers of their own, of
    `dtype`, by default that of x: the means of a clustering in one dimension, which is always the same for the same
    numbers.  A block of at most 2**bits different numbers is kept exactly (0.0 for -0.0) in a dtype that has them.  The
    results are where x is.

    Raises DTypeError unless x and the palette are real floating-point, NonfiniteError for NaN and infinities,
    and AttributeValueError, also for numbers beyond the range of `dtype`.
    """
    check_bits(bits)
    v = as_value(x)
    held = v.dtype if dtype is None else admit_numpy(dtype)
    for what, kind in (("x", v.dtype), ("the palette", held)):
        if not is_float(kind):
            raise DTypeError(f"{what} is {kind}, not real floating-point", hint="cast it with astype")
    host = Tensor(v).numpy()
    block = _whole(host.shape) if block_size is None else block_size
    check_block(block)
    _check_finite(host)
    codes, palette = _fitted(host.reshape(-1), bits, block, held)
    return Palettised(_tensor(packed(codes, bits), v.stack), _tensor(palette, v.stack), bits, block, host.shape)


def _check_finite(host: Any) -> None:
    wrong = np.argwhere(~np.isfinite(host))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        raise NonfiniteError(f"x{list(place)} is {host[place]}, one of {len(wrong)} numbers that are not finite: a "
                             "mean of such is none", hint="replace them, for example with nnc.nan_to_num")


def _fitted(flat: Any, bits: int, block: int, dtype: DType) -> tuple[Any, Any]:
    """uint8 codes, one for each element, and the palette."""
    codes = np.empty(flat.shape, np.uint8)
    palette = np.empty((block_count(len(flat), block), 2**bits), dtype)
    for row, start in zip(palette, range(0, len(flat), block), strict=True):
        row[:], codes[start : start + block] = fit(flat[start : start + block], 2**bits, dtype)
    return codes, palette


def _tensor(host: Any, stack: Stack) -> Tensor:
    return Tensor(host_value(host, stack=stack))
