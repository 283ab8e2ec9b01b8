"""The devices that these tests run on: the default one, strict:0, and OpenCL's first one where it works."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.composition import stack_for


@lru_cache(maxsize=1)
def devices() -> tuple[str, ...]:
    candidates = dict.fromkeys((stack_for(None).device.spec.id, "strict:0", "opencl:0"))
    return tuple(id for id in candidates if _works(id))


def _works(id: str) -> bool:
    try:
        return (nnc.ones(3, device=id) + 1).tolist() == [2, 2, 2]
    except nnc.Error:
        return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", devices(), indirect=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Scatter runs on the host where a device has none, and says so."""
    for item in items:
        if "tests/dynamic" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore:scatter has no kernel"))


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each device in turn, as the default one; kernels are fixed, so that modes can be compared bit for bit."""
    id: str = request.param
    with nnc.use_device(id), nnc.config.using(deterministic=True):
        yield id


@pytest.fixture
def x(device: str) -> nnc.Tensor:
    """[[0, 1, 2], [3, 4, 5]]"""
    return nnc.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
