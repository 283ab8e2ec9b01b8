"""Floor 17: data sets and the order in which training sees them, as NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nnc_core.base.errors import SampleWarning
from nnc_core.base.unknown_names import answers
from nnc_core.data.batches import batches, permutation, shift_images, translate_images
from nnc_core.data.idx import read_idx
from nnc_core.data.mnist import Dataset, load_mnist
from nnc_core.data.order import DataOrder

_ADVICE = dict.fromkeys(
    ("BatchSampler", "DataLoader", "DistributedSampler", "RandomSampler", "Sampler", "SubsetRandomSampler",
     "WeightedRandomSampler"),
    "data.DataOrder(len(x), batch_size, seed=0), which gives the indices of each batch: x[chosen]",
) | dict.fromkeys(
    ("ConcatDataset", "IterableDataset", "Subset", "TensorDataset", "random_split"),
    "arrays and their rows: x[data.permutation(len(x), seed=0)[:n]]",
) | dict.fromkeys(("collate", "default_collate"), "numpy.stack of the examples, or arrays from the start")
if not TYPE_CHECKING:
    __getattr__ = answers(__name__, _ADVICE)

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
