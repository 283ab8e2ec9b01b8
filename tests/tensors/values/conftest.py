"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nnc_core as nnc
from tests.devices import devices
from tests.tensors.values.sharing import shares_memory


@pytest.fixture
def sharing() -> Iterator[str]:
    """A device that computes in the host's memory, as the default one."""
    found = [id for id in devices() if shares_memory(id)]
    if not found:
        pytest.skip("no device here computes in the host's memory")
    with nnc.use_device(found[0]), nnc.config.using(deterministic=True):
        yield found[0]
