from __future__ import annotations

import pytest

from tests.nn.network import device

__all__ = ["device"]


@pytest.fixture(autouse=True)
def _on_device(device: str) -> None:
    """Every test here runs on the chosen device."""
