"""The kit's comparisons see what they are to see, and no more."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.operator import OPERATORS
from nnc_plugins.conformance.agreement import assert_agree

Z = np.array([1.5 + 2.25j, -3.0 + 0.0j], np.complex64)
NEXT = np.array([np.nextafter(np.float32(1.5), np.float32(2)) + 2.25j, -3.0 + 0.0j], np.complex64)


@pytest.mark.parametrize("name", ["permute", "negative", "add", "concat"])
def test_complex_numbers_that_are_moved_or_added_keep_every_bit(name: str) -> None:
    assert_agree(OPERATORS[name], Z, Z.copy())
    for wrong in (NEXT, np.conj(Z)):
        with pytest.raises(AssertionError, match=f"{name}.* elements differ"):
            assert_agree(OPERATORS[name], wrong, Z)


def test_products_of_complex_numbers_may_be_rounded_otherwise() -> None:
    assert 0 < assert_agree(OPERATORS["multiply"], NEXT, Z) < 1
    with pytest.raises(AssertionError, match="2 of 2 elements differ"):
        assert_agree(OPERATORS["multiply"], Z * np.complex64(1.001), Z)


def test_components_of_complex_vectors_are_as_near_as_the_largest_allows() -> None:
    """As those of real vectors: what LAPACK gives differs by as much for small components as for large ones."""
    op, wanted = OPERATORS["eigh"], (np.ones(1, np.float32), np.array([[1], [1e-3j]], np.complex64))
    apart = np.array([[0], [1e-6]], np.complex64)
    assert_agree(op, (wanted[0], wanted[1] + apart), wanted)
    with pytest.raises(AssertionError, match="1 of 2 elements differ"):
        assert_agree(op, (wanted[0], wanted[1] + 300 * apart), wanted)
