"""Devices and modes for the semantics tests."""

from __future__ import annotations

import pytest

from tests.devices import device, parametrise
from tests.semantics.modes import MODES
from tests.semantics.table import mark

__all__ = ["device"]

def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrise(metafunc)
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", getattr(metafunc.module, "MODES", MODES))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each test knows its row in the table; scatter runs on the host where a device has none, and says so."""
    for item in items:
        if "tests/semantics" in item.nodeid:
            mark(item)
            item.add_marker(pytest.mark.filterwarnings("ignore:scatter has no kernel"))
