"""Owl's convolutions, pools and upsampling, and the operators that are their gradients.

Images are (batch, columns, rows, depths, channels), kernels (columns, rows, depths, in, out).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnc_core as nnc
from tests.house.rows import Array, Row
from tests.tensors.sliding import correlated, pooled, spread

_RNG = np.random.default_rng(7)
SIZE, WINDOW, STRIDES, RATE = (5, 4, 3), (3, 2, 2), (2, 1, 2), (2, 2, 1)
NOTHING = ((0, 0), (0, 0), (0, 0))
Function = Callable[..., Any]


def _image(rank: int, channels: int) -> Array:
    return _RNG.uniform(-1, 1, (2, *SIZE[:rank], channels))


def _kernel(rank: int) -> Array:
    """Of two channels into three."""
    return _RNG.uniform(-1, 1, (*WINDOW[:rank], 2, 3))


def same_padding(size: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """So that there are ceil(size / stride) windows; an odd one goes to the end."""
    total = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(size, window, strides, strict=True)]
    return [(t // 2, t - t // 2) for t in total]


def transpose_of(f: Callable[[Array], Array], shape: tuple[int, ...], g: Array) -> Array:
    """The transpose of a linear function of arrays of this shape, applied to g: by unit arrays."""
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([np.sum(f(unit) * g) for unit in units]).reshape(shape)


def pulled(f: Function, place: int) -> Function:
    """(cotangent, *arguments) -> the gradient by one of the arguments of f."""
    return lambda g, *xs: nnc.vjp(f, *xs)[1](g)[place]


# ---- convolutions
def _convolutions(rank: int) -> dict[str, Row]:
    strides, nothing, ones = STRIDES[:rank], NOTHING[:rank], (1,) * rank
    same = same_padding(SIZE[:rank], WINDOW[:rank], strides)
    conv, transposed = getattr(nnc, f"conv{rank}d"), getattr(nnc, f"conv_transpose{rank}d")

    def plain(x: Any, k: Any) -> Any:
        return conv(x, k, strides=strides, padding="SAME")

    def dilated(x: Any, k: Any) -> Any:
        return conv(x, k, dilation=RATE[:rank])

    def back(x: Any, k: Any) -> Any:
        return transposed(x, nnc.swapaxes(k, -1, -2), strides=strides)

    wide = [(k - 1) * r + 1 for k, r in zip(WINDOW[:rank], RATE[:rank], strict=True)]
    enough = np.pad(_image(rank, 2), ((0, 0), *((0, max(0, w - n)) for w, n in zip(wide, SIZE, strict=False)), (0, 0)))
    turned = "Owl's kernel is (window, in, out) of the transposed convolution, ours that of the convolution"
    image, kernel = _image(rank, 2), _kernel(rank)
    return {
        **_with_gradients(f"Conv{rank}d", f"conv{rank}d", plain, image, kernel,
                          lambda x, k: correlated(x, k, strides, same, ones)),
        **_with_gradients(f"DilatedConv{rank}d", f"conv{rank}d", dilated, enough, kernel,
                          lambda x, k: correlated(x, k, ones, nothing, RATE[:rank]), "folds into Conv: dilation"),
        **_with_gradients(f"TransposeConv{rank}d", f"conv_transpose{rank}d", back, image, kernel,
                          lambda x, k: spread(x, np.swapaxes(k, -1, -2), strides, nothing, ones, (0,) * rank), turned),
    }


def _with_gradients(name: str, ours: str, f: Function, x: Array, k: Array, wanted: Function,
                    note: str = "") -> dict[str, Row]:
    g = _RNG.uniform(-1, 1, wanted(x, k).shape)
    also = f"gradient of {name}"
    return {
        name: Row(ours, f, wanted, (x, k), note),
        f"{name}BackwardInput": Row(f"vjp, {ours}", pulled(f, 0), lambda g, x, k: transpose_of(
            lambda unit: wanted(unit, k), x.shape, g), (g, x, k), also),
        f"{name}BackwardKernel": Row(f"vjp, {ours}", pulled(f, 1), lambda g, x, k: transpose_of(
            lambda unit: wanted(x, unit), k.shape, g), (g, x, k), also),
    }  # fmt: skip


# ---- pools
def _pools(rank: int) -> dict[str, Row]:
    window, strides, ones = WINDOW[:rank], STRIDES[:rank], (1,) * rank
    same, image = same_padding(SIZE[:rank], window, strides), _image(rank, 2)
    rows: dict[str, Row] = {}
    for name in ("max", "avg"):
        pool = getattr(nnc, f"{name}_pool{rank}d")

        def run(x: Any, pool: Function = pool) -> Any:
            return pool(x, window, strides=strides, padding="SAME")

        def wanted(x: Array, name: str = name) -> Array:
            total, also = pooled(name, x, window, strides, same, ones)
            return np.asarray(total if name == "max" else total / also)

        def pushed(g: Array, x: Array, name: str = name, wanted: Function = wanted) -> Array:
            if name == "avg":
                return transpose_of(wanted, x.shape, g)
            return _put(g, pooled("max", x, window, strides, same, ones)[1], x)

        owl = f"{name.capitalize()}Pool{rank}d"
        g = _RNG.uniform(-1, 1, wanted(image).shape)
        note = "padding is not counted" if name == "avg" else ""
        rows[owl] = Row(f"{name}_pool{rank}d", run, wanted, (image,), note)
        rows[f"{owl}Backward"] = Row(f"vjp, {name}_pool{rank}d", pulled(run, 0), pushed, (g, image),
                                     f"gradient of {owl}")
    return rows


def _put(g: Array, places: Array, x: Array) -> Array:
    """Each number added where its maximum was."""
    out = np.zeros((len(x), int(np.prod(x.shape[1:-1])), x.shape[-1]))
    for at in np.ndindex(g.shape):
        out[at[0], places[at], at[-1]] += g[at]
    return out.reshape(x.shape)


# ---- upsampling
def _upsampled(x: Array) -> Array:
    return np.asarray(x.repeat(2, axis=1).repeat(3, axis=2))


def _upsample(x: Any) -> Any:
    return nnc.upsample(x, (2, 3))


_SMALL = _image(2, 2)
ROWS: dict[str, Row] = {
    **{name: row for rank in (1, 2, 3) for name, row in (_convolutions(rank) | _pools(rank)).items()},
    "UpSampling2d": Row("upsample", _upsample, _upsampled, (_SMALL,), "the nearest pixel"),
    "UpSampling2dBackward": Row("vjp, upsample", pulled(_upsample, 0), lambda g, x: transpose_of(
        _upsampled, x.shape, g), (_RNG.uniform(-1, 1, (2, 10, 12, 2)), _SMALL), "gradient of UpSampling2d"),
}  # fmt: skip
