"""Devices and modes for the semantics tests."""

from __future__ import annotations

from collections.abc import Generator
from zlib import crc32

import pytest

from tests.devices import device, parametrise
from tests.semantics.modes import MODES
from tests.semantics.table import mark

__all__ = ["device"]

def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrise(metafunc)
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("mode", getattr(metafunc.module, "MODES", MODES))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Collector) -> Generator[None, object, object]:
    """Each test knows its row in the table; scatter runs on the host where a device has none, and says so."""
    made = yield
    for item in made if isinstance(made, list) else ():
        mark(item)
        item.add_marker(pytest.mark.filterwarnings("ignore:scatter has no kernel"))
        if item.get_closest_marker("any_mode") and not _is_sampled(item, collector.config.option.hypothesis_seed):
            item.add_marker(pytest.mark.slow)
    return made


def _is_sampled(item: pytest.Item, seed: str) -> bool:
    """All modes on the CPU; on each other device one, which the run's seed draws for each test."""
    chosen = item.callspec.params  # type: ignore[attr-defined]
    if chosen["device"] == "cpu:0":
        return True
    drawn = crc32(f"{seed} {item.nodeid.replace(chosen['mode'], '')}".encode())
    modes = getattr(item.module, "MODES", MODES)  # type: ignore[attr-defined]
    return bool(modes[drawn % len(modes)] == chosen["mode"])
