"""Linear algebra called by address, so that compiled programs need no Python for it."""

from __future__ import annotations

from nnc_cpu.matrices.backend import matrices

__all__ = ["matrices"]
