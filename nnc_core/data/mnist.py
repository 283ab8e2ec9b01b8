"""The MNIST digits of LeCun, Cortes and Burges: the full set by download, a sample without a network."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nnc_core.base.errors import DataError, Error, SampleWarning
from nnc_core.base.line import users_frame
from nnc_core.data.batches import permutation
from nnc_core.data.download import fetch_files
from nnc_core.data.idx import read_idx

MIRROR = "https://storage.googleapis.com/cvdf-datasets/mnist/"
FULL_FILES: Mapping[str, str] = {
    "train-images-idx3-ubyte.gz": "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte.gz": "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte.gz": "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte.gz": "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
_SAMPLE_FILE = "mnist_sample.npz"
_SPLIT_SEED = 1998
_CLASSES, _HELD_OUT_PER_CLASS = 10, 100

Source = Literal["auto", "sample", "full"]
Examples = tuple[NDArray[np.uint8], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Images (N, 28, 28, 1) uint8 in 0-255 and labels (N,) int64, for training and held out for the test.

    `note` says in one line which data these are, and why where it was not the caller's choice.
    """

    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test_images: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    name: str
    note: str


def load_mnist(source: Source = "auto", *, cache_directory: str | os.PathLike[str] | None = None,
               mirror: str = MIRROR, patience: float = 20.0) -> Dataset:
    """Load MNIST.

    `"full"`: 60,000 and 10,000 digits, downloaded once into `cache_directory` (default: the user's cache) and
    checked against known hashes. `"sample"`: 4,000 and 1,000 digits that come with nnc, each class in equal
    parts, always in the same order. `"auto"`: the full set if it is there or arrives within `patience`
    seconds, otherwise the sample, with a SampleWarning that says why.

    Raises DataError for a set that cannot be had, FileFormatError for damaged files and MissingPackageError
    when `"full"` is asked for without pooch.
    """
    if source == "sample":
        return _sample("as asked for")
    if source == "full":
        return _full(cache_directory, mirror, None)
    if source == "auto":
        return _full_or_sample(cache_directory, mirror, patience)
    raise DataError(f"unknown source {source!r} of MNIST", hint="'auto', 'sample' or 'full'")


def _full_or_sample(cache_directory: str | os.PathLike[str] | None, mirror: str, patience: float) -> Dataset:
    try:
        return _full(cache_directory, mirror, patience)
    except Error as error:
        dataset = _sample(f"because the full set cannot be had: {error.message}")
        warnings.warn(dataset.note, SampleWarning, stacklevel=users_frame())
        return dataset


def _full(cache_directory: str | os.PathLike[str] | None, mirror: str, patience: float | None) -> Dataset:
    paths = fetch_files(FULL_FILES, "mnist", mirror, cache_directory, patience)
    train_images, train_labels, test_images, test_labels = (read_idx(paths[name]) for name in FULL_FILES)
    note = f"MNIST: the full set, {len(train_labels):,} digits for training, {len(test_labels):,} held out"
    return _dataset((train_images, train_labels), (test_images, test_labels), "mnist", note)


def _sample(reason: str) -> Dataset:
    images, labels = _read_sample()
    train, test = _stratified_split(labels)
    note = f"MNIST: the bundled sample, {len(train):,} digits for training, {len(test):,} held out, {reason}"
    return _dataset((images[train], labels[train]), (images[test], labels[test]), "mnist-sample", note)


def _read_sample() -> Examples:
    resource = resources.files("nnc_core.data").joinpath(_SAMPLE_FILE)
    try:
        with resource.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return arrays["images"], arrays["labels"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"the bundled sample {_SAMPLE_FILE} cannot be read: {error}",
                        hint="reinstall nnc-core") from error


def _stratified_split(labels: NDArray[np.uint8]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices (train, test) in mixed order; `labels` may be sorted, each class is held out in equal part."""
    order = permutation(len(labels), seed=_SPLIT_SEED, stream=0)
    by_class = order[np.argsort(labels[order], kind="stable")].reshape(_CLASSES, -1)
    test, train = by_class[:, :_HELD_OUT_PER_CLASS].ravel(), by_class[:, _HELD_OUT_PER_CLASS:].ravel()
    return (train[permutation(len(train), seed=_SPLIT_SEED, stream=1)],
            test[permutation(len(test), seed=_SPLIT_SEED, stream=2)])


def _dataset(train: Examples, test: Examples, name: str, note: str) -> Dataset:
    for images, labels in (train, test):
        if labels.ndim != 1 or images.shape != (*labels.shape, 28, 28) or images.dtype != np.uint8:
            raise DataError(f"{name}: {images.dtype} images of shape {images.shape} with labels of shape "
                            f"{labels.shape}, expected uint8 (N, 28, 28) with (N,)")
    return Dataset(train[0][..., np.newaxis], train[1].astype(np.int64),
                   test[0][..., np.newaxis], test[1].astype(np.int64), name, note)
