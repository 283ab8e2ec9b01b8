"""Devices by other names than their ids."""

from __future__ import annotations

import pytest

import nnc_core as nnc
from nnc_core.base.errors import DeviceError
from nnc_core.builtin import StrictDevice
from nnc_core.device import Registry

POCL = ("opencl:genuineintel", "portable-computing-language", "cpu-haswell-intel-xeon", "cpu-haswell-Intel(R) Xeon")
INTEL = ("opencl:intel-corporation", "intel-opencl", "amd-epyc", "AMD EPYC (Intel(R) OpenCL, driver 2026.22)")


@pytest.fixture
def registry() -> Registry:
    made = Registry()
    devices = {"opencl:0": POCL, "opencl:1": INTEL, "opencl:2": INTEL, "gpu:0": ("gpu:intel",), "x:0": ()}
    for id, texts in devices.items():
        made.add(id, StrictDevice, texts=texts)
    return made


@pytest.mark.parametrize(("name", "id"), [
    ("opencl:1", "opencl:1"), ("opencl", "opencl:0"), ("x", "x:0"), ("y", None), ("opencl:7", None),
    ("opencl:2026", None), ("OpenCL:2", "opencl:2"),
    ("opencl:intel", "opencl:1"), ("OpenCL:Intel", "opencl:1"), ("gpu:intel", "gpu:0"), ("opencl:epyc", "opencl:1"),
    ("opencl:haswell", "opencl:0"), ("opencl:portable", "opencl:0"), ("opencl:Intel(R) Xeon", "opencl:0"),
    ("opencl:intel-corporation/intel-opencl", "opencl:1"), ("opencl:asw", None), ("opencl:", "opencl:0"),
    ("x:intel", None),
])
def test_a_device_is_found_by_id_kind_or_word(registry: Registry, name: str, id: str | None) -> None:
    """The earlier part wins: PoCL on Intel's processor is not Intel's driver."""
    assert registry.find(name) == id


@pytest.mark.parametrize(("wrong", "meant"), [
    ("opencl:intle", "'opencl:intel'"), ("opncl:0", "'opencl:0'"), ("gup:0", "'gpu:0'"),
])  # fmt: skip
def test_an_unknown_name_is_answered_with_similar_ones(registry: Registry, wrong: str, meant: str) -> None:
    with pytest.raises(DeviceError, match=f"no device '{wrong}'; there are: opencl:0") as caught:
        registry.get(wrong)
    assert "did you mean" in str(caught.value) and meant in str(caught.value)


def test_tensors_are_made_on_a_device_with_a_word() -> None:
    assert nnc.ones(2, device="strict:checks").device.id == "strict:0"
    assert nnc.ones(2).to("strict:checks").device.id == "strict:0"
    with nnc.use_device("strict:numpy"):
        assert nnc.ones(2).device.id == "strict:0"


def test_devices_for_tests_are_named_last() -> None:
    registry = Registry()
    for id in ("strict:0", "cpu:0", "null:0", "opencl:0"):
        registry.add(id, StrictDevice, testing=id.split(":")[0] in ("strict", "null"))
    with pytest.raises(DeviceError, match="there are: cpu:0, opencl:0, strict:0, null:0"):
        registry.get("tpu:0")
