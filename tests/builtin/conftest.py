"""Fixtures of this folder."""

from __future__ import annotations

import pytest

from tests.builtin.strict_devices import BY_NAME, opened


@pytest.fixture(params=BY_NAME)
def device(request):
    device = opened(request.param)
    yield device
    device.close()


@pytest.fixture
def plain():
    return opened("plain")
