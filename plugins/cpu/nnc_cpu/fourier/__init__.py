"""Fourier transforms as machine code: passes of butterflies in lanes, along the columns and rows of matrices."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.steps.fourier import TRANSFORMS
from nnc_cpu.fourier.backend import MatrixTransforms

FOURIER: Mapping[str, CommandBackend] = {name: MatrixTransforms(name) for name in TRANSFORMS}
"""The code of each operator."""
