"""Our operators said in ONNX, a file for each family."""

from __future__ import annotations

from nnc_core.io.onnx.writing.operators import (
    attention,
    control,
    creation,
    elementwise,
    functions,
    indexing,
    linear,
    movement,
    normalisation,
    ordering,
    palettes,
    recurrent,
    reduction,
    regions,
    resampling,
    scattering,
    selection,
    windows,
)

__all__ = [
    "attention", "control", "creation", "elementwise", "functions", "indexing", "linear", "movement", "normalisation",
    "ordering", "palettes", "recurrent", "reduction", "regions", "resampling", "scattering", "selection", "windows",
]  # fmt: skip
