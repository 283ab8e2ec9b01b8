"""Alignments of addresses."""

from __future__ import annotations

ALIGNED = 16
"""Bytes that the library's quick engines want addresses to be a multiple of."""
WORKSPACE_ALIGNED = 256


def alignment_of(address: int) -> int:
    """The power of two that an address is a multiple of, at most that which matters."""
    return min(address & -address, ALIGNED) if address else ALIGNED


def aligned(nbytes: int) -> int:
    """Bytes of workspace, rounded up to where the next array may begin."""
    return -(-nbytes // WORKSPACE_ALIGNED) * WORKSPACE_ALIGNED
