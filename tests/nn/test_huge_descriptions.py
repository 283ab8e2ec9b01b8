"""Sizes in a module's description are held to the arrays of the file before anything is allocated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import io, nn
from nnc_core.errors import Error, ShapeError
from nnc_core.values.cell import LONGEST_PAST

HUGE = 10**13
KEY = "nnc.module"


def edited(path: Path, old: str, new: str) -> None:
    """Another text in the description of a file whose checksum is right."""
    arrays, metadata = io.load_arrays(path)
    assert old in metadata[KEY]
    text = metadata[KEY].replace(old, new)
    json.loads(text)
    io.save_arrays(path, arrays, {KEY: text})


@pytest.mark.parametrize("layer", [nn.BatchNorm(7), nn.Linear(7, 2), nn.Embedding(7, 2), nn.LayerNorm(7),
                                   nn.Sequential(nn.Linear(2, 7), nn.PReLU(7))], ids=lambda m: type(m).__name__)
def test_a_huge_size_is_an_error_of_its_shape(device: str, tmp_path: Path, layer: nn.Module) -> None:
    path = tmp_path / "m.safetensors"
    io.save_module(layer, path)
    edited(path, "7", str(HUGE))
    with pytest.raises(ShapeError, match=rf"has shape .*expected float32\[.*{HUGE}") as caught:
        io.load_module(path)
    assert str(path.name) in str(caught.value)


def test_more_elements_than_can_be_counted(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    io.save_module(nn.Linear(7, 7), path)
    edited(path, "7", str(HUGE))
    with pytest.raises(Error, match=str(HUGE)):
        io.load_module(path)


class Changing(nn.Module):
    """A module whose constructor writes to its first weights."""

    def __init__(self, n: int) -> None:
        first = nnc.ones((n, 2))
        first[0] = 0
        self.table = nn.Parameter(first)

    def forward(self, i: nnc.Tensor) -> nnc.Tensor:
        return nnc.embedding(self.table.read(), i)


def test_a_constructor_that_writes_in_place(device: str, tmp_path: Path) -> None:
    nn.register(Changing)
    path, layer = tmp_path / "m.safetensors", Changing(3)
    layer.table.write(layer.table.read() + 1)
    io.save_module(layer, path)
    np.testing.assert_array_equal(io.load_module(path).table.read().numpy(), [[1, 1], [2, 2], [2, 2]])


def test_what_is_loaded_holds_nothing_of_its_first_weights(device: str, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    io.save_module(nn.Linear(2, 2), path)
    layer = io.load_module(path)
    for i in range(3 * LONGEST_PAST):
        layer.weight.write(nnc.zeros((2, 2)) + i)
    assert len(layer.weight._past) <= LONGEST_PAST
