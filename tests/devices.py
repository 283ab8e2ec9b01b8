"""The devices that tests of several folders run on: the default one, strict:0, and OpenCL where it works."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import pytest

import nnc_core as nnc
from nnc_core.stacks import stack_for


@lru_cache(maxsize=1)
def devices() -> tuple[str, ...]:
    """Ids, the quickest device first."""
    candidates = dict.fromkeys((stack_for(None).device.spec.id, "strict:0", "opencl:0"))
    return tuple(id for id in candidates if _works(id))


def _works(id: str) -> bool:
    try:
        return (nnc.ones(3, device=id) + 1).tolist() == [2, 2, 2]
    except nnc.Error:
        return False


def another(device: str) -> str:
    """Some other device than this one."""
    return next(id for id in ("strict:0", *devices(), "strict:1") if id != device)


def parametrise(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `device` runs on each: call this from `pytest_generate_tests`."""
    if "device" in metafunc.fixturenames:
        metafunc.parametrize("device", devices(), indirect=True)


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each device in turn, as the default one; kernels are fixed, so that modes can be compared bit for bit."""
    id: str = request.param
    with nnc.use_device(id), nnc.config.using(deterministic=True):
        yield id
