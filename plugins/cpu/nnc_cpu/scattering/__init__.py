"""Scatters as machine code, so that loops of compiled graphs write elements without Python."""

from __future__ import annotations

from nnc_cpu.scattering.backend import SequentialScatter

__all__ = ["SequentialScatter"]
