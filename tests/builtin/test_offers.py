"""The built-in devices are offered like a plugin's."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pluggy

import nnc_core.builtin
from nnc_core.builtin import FLAVOURS, NullDevice, StrictDevice
from nnc_core.device import Registry
from nnc_plugins import API, hookspecs

ROOT = Path(__file__).resolve().parents[2]


def hooks():
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    manager.register(nnc_core.builtin)
    manager.check_pending()
    return manager.hook


def test_what_is_offered() -> None:
    (offers,) = [list(found) for found in hooks().nnc_devices(options={})]
    assert [offer.id for offer in offers] == [
        "strict:0", "strict-nofloat64:0", "strict-noviews:0", "strict-align128:0", "strict-small:0",
        "strict-async:0", "strict-poison:0", "null:0",
    ]  # fmt: skip
    assert all(offer.describe for offer in offers)


def test_each_offer_opens_a_device_of_its_id() -> None:
    registry = Registry()
    (offers,) = hooks().nnc_devices(options={})
    for offer in offers:
        registry.add(offer.id, offer.open)
    for id in registry.ids:
        device = registry.get(id)
        assert device.spec.id == id
        assert device.spec.kind == id.partition(":")[0].partition("-")[0]
        assert isinstance(device, NullDevice if id == "null:0" else StrictDevice)
        device.close()


def test_information_and_diagnosis() -> None:
    (info,) = hooks().nnc_plugin_info()
    assert info["name"] == "builtin"
    assert info["api"] <= API
    (lines,) = hooks().nnc_diagnose(options={})
    assert "NumPy" in next(iter(lines))


def test_flavours_differ_from_the_plain_one() -> None:
    assert FLAVOURS[0].id == "strict:0"
    plain = FLAVOURS[0].spec()
    for flavour in FLAVOURS[1:]:
        spec = flavour.spec()
        limits = (spec.dtypes, spec.features, spec.alignment, spec.memory, spec.max_allocation)
        same = limits == (plain.dtypes, plain.features, plain.alignment, plain.memory, plain.max_allocation)
        assert same == (flavour.queues or flavour.poisons), flavour.id


def test_the_entry_point_is_announced() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["nnc.plugins.v1"]["builtin"] == "nnc_core.builtin"
