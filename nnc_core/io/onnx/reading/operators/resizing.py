"""Images of other sizes."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.lanes import Host, Sizes
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.values.tensor import Tensor


@operator("Resize", since=11)
def resize(x: Tensor, roi: Host | None = None, scales: Host | None = None, sizes: Sizes | None = None, *,
           antialias: int = 0, axes: tuple[int, ...] | None = None,
           coordinate_transformation_mode: str = "half_pixel", cubic_coeff_a: float = -0.75, exclude_outside: int = 0,
           extrapolation_value: float = 0.0, keep_aspect_ratio_policy: str = "stretch", mode: str = "nearest",
           nearest_mode: str = "round_prefer_floor") -> Tensor:
    along = tuple(axes) if axes is not None else tuple(range(x.ndim))
    old = [x.shape[a] for a in along]
    scale = None if scales is None or not scales.size else [float(s) for s in scales]
    size = None if sizes is None or not sizes.size else sizes.tolist()
    if size is not None and keep_aspect_ratio_policy != "stretch":
        size, scale = _kept_aspect(old, size, keep_aspect_ratio_policy)
    region = None
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        half = len(along)
        region = [(float(roi[i]), float(roi[i + half])) for i in range(half)]
    changed = [i for i, a in enumerate(along) if _changes(i, old, size, scale, region)]
    if not changed:
        return x
    return nnc.resize(
        x, None if size is None else [size[i] for i in changed], method=mode, antialias=bool(antialias),
        coefficient=cubic_coeff_a, scale=None if scale is None else [scale[i] for i in changed],
        coordinates=coordinate_transformation_mode, rounding=nearest_mode if mode == "nearest" else None,
        exclude_outside=bool(exclude_outside), region=None if region is None else [region[i] for i in changed],
        fill=extrapolation_value, axes=[along[i] for i in changed])


def _changes(i: int, old: list[Any], size: Any, scale: Any, region: Any) -> bool:
    """True unless the axis stays what it is."""
    if region is not None and region[i] != (0.0, 1.0):
        return True
    return bool(size[i] != old[i]) if scale is None else scale[i] != 1.0


def _kept_aspect(old: list[Any], size: list[int], policy: str) -> tuple[list[int], list[float]]:
    """One scale for all axes: the largest that is not larger than asked for, or the smallest that is not smaller."""
    ratios = [n / int(o) for n, o in zip(size, old, strict=True)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [floor(ratio * int(o) + 0.5) for o in old], [ratio] * len(old)


@operator("Resize", since=10)
def resize_first(x: Tensor, scales: Host, *, mode: str = "nearest") -> Tensor:
    return resize(x, None, scales, mode=mode, coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@operator("Upsample", since=9)
def upsample(x: Tensor, scales: Host, *, mode: str = "nearest") -> Tensor:
    return resize_first(x, scales, mode=mode)


@operator("Upsample", since=7)
def upsample_by_attribute(x: Tensor, *, scales: Any, mode: str = "nearest") -> Tensor:
    return upsample(x, np.asarray(scales, np.float32), mode=mode)


@operator("Upsample")
def upsample_first(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
    return upsample_by_attribute(x, scales=(1.0, 1.0, height_scale, width_scale),
                                 mode="linear" if mode == "bilinear" else mode)
