"""Devices for tests are listed on request, and used when they are named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nnc_core as nnc
from nnc_core import builtin, stacks
from nnc_core.device import Registry
from nnc_plugins import DeviceOffer, Manager, hookimpl
from tests.builtin.strict_devices import called


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process with the builtin plugin and one that offers a device of users."""
    manager = Manager(only=())
    monkeypatch.setattr(stacks, "_manager", manager)
    monkeypatch.setattr(stacks, "registry", Registry())
    monkeypatch.setattr(stacks, "_stacks", {})
    monkeypatch.setattr(stacks, "_default_id", "")
    manager.register(builtin, "builtin")

    class Opened:
        @staticmethod
        @hookimpl
        def nnc_devices() -> list[DeviceOffer]:
            return [DeviceOffer("cpu:0", called("cpu:0"))]

    nnc.register_plugin(Opened, "opened")
    yield


def test_a_users_devices_are_listed() -> None:
    assert [d.id for d in nnc.devices()] == ["cpu:0"]
    assert not [id for id in stacks._stacks if id.startswith("null")], "what is not listed is not opened"


def test_all_are_listed_on_request_the_default_first() -> None:
    ids = [d.id for d in nnc.devices(all=True)]
    assert ids[0] == "cpu:0" and {"strict:0", "strict-async:0", "null:0"} < set(ids)


def test_a_device_for_tests_is_used_where_it_is_named_and_listed_where_it_is_the_default() -> None:
    assert nnc.ones(2, device="strict:0").device.id == "strict:0"
    with nnc.config.using(default_device="strict:0"):
        assert [d.id for d in nnc.devices()] == ["strict:0", "cpu:0"]
