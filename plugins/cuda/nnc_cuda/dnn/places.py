"""Alignments of addresses, and copies to where they are right."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base.loopnest import LoopNest

ALIGNED = 16
"""Bytes that the library's quick engines want addresses to be a multiple of."""
WORKSPACE_ALIGNED = 256


def alignment_of(address: int) -> int:
    """The power of two that an address is a multiple of, at most that which matters."""
    return min(address & -address, ALIGNED) if address else ALIGNED


def aligned(nbytes: int) -> int:
    """Bytes of workspace, rounded up to where the next array may begin."""
    return -(-nbytes // WORKSPACE_ALIGNED) * WORKSPACE_ALIGNED


class CopyNest(NamedTuple):
    """A nest that copies from one place to another, of the command's buffers or of its workspace."""

    nest: LoopNest
    source: int
    target: int
