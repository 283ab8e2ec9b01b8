"""Data sets and the order in which training sees them, as NumPy arrays."""

from __future__ import annotations

from nnc_core.base.errors import SampleWarning
from nnc_core.data.batches import batches, permutation, shift_images, translate_images
from nnc_core.data.idx import read_idx
from nnc_core.data.mnist import Dataset, load_mnist
from nnc_core.data.order import DataOrder

__all__ = [
    "DataOrder",
    "Dataset",
    "SampleWarning",
    "batches",
    "load_mnist",
    "permutation",
    "read_idx",
    "shift_images",
    "translate_images",
]
