"""The devices that these tests run on: the default one, strict:0, and OpenCL's first one where it works."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import nnc_core as nnc
from tests.devices import device, devices, parametrise
from tests.tensors.late import queued

__all__ = ["device", "devices", "queued"]

pytest_generate_tests = parametrise


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scatter runs on the host where a device has none, and says so."""
    for item in items:
        if "tests/tensors" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore:scatter has no kernel"))


@pytest.fixture
def x(device: str) -> nnc.Tensor:
    """[[0, 1, 2], [3, 4, 5]]"""
    return nnc.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))


@pytest.fixture
def a_command_for_each_operator() -> Iterator[None]:
    """So that one of them can fail by itself."""
    with nnc.config.using(fusion=False):
        yield
