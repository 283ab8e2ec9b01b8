"""Finding drivers: what the loader is shown, the order of devices, drivers absent, broken or useless."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyopencl as cl
import pytest

import nnc_opencl
from nnc_core.base.cache_folder import VARIABLE
from nnc_core.base.errors import DeviceFailureError, PluginError
from nnc_core.codegen import Dialect, program_of
from nnc_core.device.names import named
from nnc_opencl import drivers, icd, programs
from nnc_opencl.device import OpenCLDevice, open_device
from nnc_opencl.failure import FAILURES, failure_of_code, status_name
from nnc_plugins import API


def test_importing_the_plugin_imports_no_driver() -> None:
    code = "import nnc_opencl, sys; sys.exit('pyopencl' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_plugin_info() -> None:
    info = nnc_opencl.nnc_plugin_info()
    assert info["name"] == "opencl"
    assert info["api"] <= API


def test_offers_are_numbered_and_build_nothing(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cl, "Context", None)
    offers = list(nnc_opencl.nnc_devices())
    assert [offer.id for offer in offers] == [f"opencl:{place}" for place in range(len(offers))]
    assert any(device.spec.name in offer.describe for offer in offers)


def test_listing_again_gives_the_same_devices(device: OpenCLDevice) -> None:
    assert drivers.list_devices() == drivers.list_devices()


def test_spec(device: OpenCLDevice) -> None:
    spec = device.spec
    assert spec.kind == "opencl"
    assert spec.alignment >= 1
    assert spec.max_allocation is not None
    assert 0 < spec.max_allocation <= (spec.memory or 0)
    assert ("float64" in spec.dtypes) == ("fp64" in spec.features)
    assert {"float16", "bfloat16"} <= spec.dtypes


def fake(name: str, kind: int, extensions: str = "", available: bool = True) -> Any:
    platform = SimpleNamespace(name="Test", version="OpenCL 3.0")
    return SimpleNamespace(
        name=name, type=kind, extensions=extensions, available=available, compiler_available=True,
        host_unified_memory=False, platform=platform, driver_version="1", vendor="v", global_mem_size=1000,
        max_mem_alloc_size=500, mem_base_addr_align=1024,
    )  # fmt: skip


def platform_of(*devices: Any) -> Any:
    return SimpleNamespace(name="Test", version="OpenCL 3.0", get_devices=lambda: list(devices))


def test_the_order_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = cl.device_type
    first = platform_of(fake("broken gpu", kinds.GPU, available=False), fake("plain cpu", kinds.CPU),
                        fake("custom", kinds.CUSTOM))  # fmt: skip
    second = platform_of(fake("able cpu", kinds.CPU, "cl_khr_fp64 cl_khr_fp16"),
                         fake("accelerator", kinds.ACCELERATOR), fake("gpu", kinds.GPU))  # fmt: skip
    monkeypatch.setattr(drivers, "list_platforms", lambda: [first, second])
    names = [device.name for device in drivers.list_devices()]
    assert names == ["gpu", "accelerator", "able cpu", "plain cpu", "broken gpu"]


def test_a_platform_without_devices_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoDeviceError(cl.Error):
        pass

    def refuse() -> list[Any]:
        raise NoDeviceError("DEVICE_NOT_FOUND")

    empty = SimpleNamespace(name="Empty", version="OpenCL 1.2", get_devices=refuse)
    platforms = [empty, platform_of(fake("gpu", cl.device_type.GPU))]
    monkeypatch.setattr(drivers, "list_platforms", lambda: platforms)
    assert [device.name for device in drivers.list_devices()] == ["gpu"]
    assert any("Empty" in line and "no device" in line for line in drivers.diagnosis())


def from_vendor(vendor: str, platform: str, version: str, name: str, kind: int = cl.device_type.CPU) -> Any:
    device = fake(name, kind)
    device.vendor, device.platform = vendor, SimpleNamespace(name=platform, version=version)
    return device


INTEL = ("Intel(R) Corporation", "Intel(R) OpenCL", "OpenCL 3.0 LINUX")
POCL = ("AuthenticAMD", drivers.POCL, "OpenCL 3.0 PoCL 3.0-rc2  Linux, Release, LLVM 14.0.6, SLEEF")


def test_devices_of_two_vendors_have_names_that_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever comes first, a word of the vendor, or of what a driver is known as, finds it."""
    both = [from_vendor(*INTEL, "AMD EPYC"), from_vendor(*POCL, "pthread-AMD EPYC"), from_vendor(*POCL, "other")]
    for order in (both, both[::-1]):
        monkeypatch.setattr(drivers, "list_platforms", lambda order=order: [platform_of(device) for device in order])
        offers = {offer.id: (*offer.uid.split("/"), offer.describe) for offer in nnc_opencl.nnc_devices()}
        assert list(offers) == ["opencl:0", "opencl:1", "opencl:2"]
        found = {word: offers[named(f"opencl:{word}", offers) or ""][2] for word in ("intel", "pthread", "other")}
        assert found == {"intel": "amd-epyc", "pthread": "pthread-amd-epyc", "other": "other"}
        assert offers[named("opencl:pocl", offers) or ""][1] == "portable-computing-language"


def test_a_platform_that_is_listed_twice_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    platforms = [SimpleNamespace(name=name, int_ptr=number) for name, number in (("a", 1), ("b", 2), ("a", 1))]
    monkeypatch.setattr(cl, "get_platforms", lambda: platforms)
    assert [platform.name for platform in drivers.list_platforms()] == ["a", "b"]


@pytest.mark.parametrize(("device", "builds"), [
    (from_vendor(*INTEL, "cpu"), True), (from_vendor(*INTEL, "gpu", cl.device_type.GPU), False),
    (from_vendor(*POCL, "cpu"), False), (from_vendor("AMD", drivers.POCL, "PoCL 5.0 LLVM 16.0.6", "cpu"), True),
])  # fmt: skip
def test_who_builds_loops_over_vectors(device: Any, builds: bool) -> None:
    assert drivers.builds_loops(device) == builds


def test_a_driver_that_builds_and_has_no_kernel_is_an_error_of_ours(
        device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL after a crash of its compiler: the program that it keeps on disk is empty."""
    monkeypatch.setattr(programs, "program_of", lambda *_: "__kernel void another() {}")
    with pytest.raises(DeviceFailureError, match="cannot build the kernel of self_test"):
        open_device(device._device, "opencl:7")


def test_a_device_without_double_precision() -> None:
    spec = drivers.spec_of(fake("gpu", cl.device_type.GPU, "cl_khr_subgroups"), "opencl:3")
    assert "float64" not in spec.dtypes
    assert spec.features == {"gpu", "codegen", "reproducible", "subgroups"}
    assert (spec.id, spec.alignment) == ("opencl:3", 128)


def test_no_platform_is_no_device_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "list_platforms", list)
    monkeypatch.setattr(drivers, "_runtime_fault", lambda: None)
    assert list(nnc_opencl.nnc_devices()) == []
    assert any("no OpenCL platform; install a driver" in line for line in nnc_opencl.nnc_diagnose())


def test_a_runtime_that_cannot_be_loaded_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """intel-opencl-rt does not declare that it needs intel-cmplr-lib-rt."""
    versions = {icd.RUNTIME: "2026.1", icd.SUPPORT: None}
    monkeypatch.setattr(icd, "version", versions.get)
    monkeypatch.setattr(drivers, "list_platforms", list)
    monkeypatch.setattr(drivers, "_runtime_fault", lambda: "libimf.so: cannot open shared object file")
    with pytest.raises(PluginError, match=r"(?s)libimf\.so.*pip install intel-cmplr-lib-rt"):
        nnc_opencl.nnc_devices()
    lines = list(nnc_opencl.nnc_diagnose())
    assert "intel-cmplr-lib-rt is not installed" in lines
    assert any("libimf.so" in line and "pip install intel-cmplr-lib-rt" in line for line in lines)
    versions[icd.SUPPORT] = "2026.1"
    with pytest.raises(PluginError, match="force-reinstall"):
        nnc_opencl.nnc_devices()


def test_why_a_library_cannot_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "libbroken.so").write_bytes(b"no library")
    assert "libbroken.so" in (icd.loading_error(tmp_path / "libbroken.so") or "")


def test_diagnosis_names_the_device(device: OpenCLDevice) -> None:
    assert any(device.spec.name in line and "alignment" in line for line in nnc_opencl.nnc_diagnose())


def test_a_driver_that_lists_and_cannot_build(
        device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Opening it is one error that says which driver, why, where the source is, and what to do; the next opening
    works."""
    with monkeypatch.context() as patch:
        patch.setattr(programs, "program_of", lambda *_: "__kernel void kernel_self_test() { wrong; }")
        patch.setenv(VARIABLE, str(tmp_path))
        with pytest.raises(DeviceFailureError) as caught:
            open_device(device._device, "opencl:7")
    text = str(caught.value)
    [kept] = (tmp_path / FAILURES).iterdir()
    assert str(kept) in text
    source, _, log = kept.read_text(encoding="utf-8").partition("/*")
    assert source.strip() == "__kernel void kernel_self_test() { wrong; }" and "error" in log
    for part in (device.spec.name, device._device.platform.name.strip(), device._device.driver_version.strip(),
                 "error", "opencl:7", "pip install nnc-opencl[intel]"):  # fmt: skip
        assert part in text
    open_device(device._device, "opencl:7").close()


def test_a_driver_that_computes_wrongly(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def render_wrongly(kernels: Mapping[str, Any], dialect: Dialect) -> str:
        return program_of(kernels, dialect).replace("v0 + v0", "v0 * v0")

    monkeypatch.setattr(programs, "program_of", render_wrongly)
    with pytest.raises(DeviceFailureError, match="cannot use it: a kernel that doubles numbers is wrong"):
        open_device(device._device, "opencl:7")


def test_a_driver_without_a_context(device: OpenCLDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    context = device._context

    def refuse(devices: object) -> None:
        cl.Buffer(context, cl.mem_flags.READ_WRITE, 0)  # an error of the driver's own

    monkeypatch.setattr(cl, "Context", refuse)
    with pytest.raises(DeviceFailureError, match="cannot use it: making a context failed"):
        open_device(device._device, "opencl:7")


def test_statuses() -> None:
    assert status_name(-5) == "OUT_OF_RESOURCES (-5)"
    assert status_name(-12345) == "status (-12345)"
    assert "INVALID_KERNEL_ARGS" in str(failure_of_code("launching x", -52, "opencl:0"))


def test_registered_drivers_leave_out_what_is_not_there(tmp_path: Path) -> None:
    library = tmp_path / "libdriver.so"
    library.write_text("")
    for name, content in {"a.icd": f"{library}\n", "b.icd": "/placeholder/libintelocl.so\n", "c.icd": "libpocl.so",
                          "d.icd": "\n", "e.txt": "libother.so"}.items():  # fmt: skip
        (tmp_path / name).write_text(content)
    found = icd.registered_drivers([tmp_path / "absent", tmp_path])
    assert found == {"a.icd": str(library), "c.icd": "libpocl.so"}


@pytest.fixture
def wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Intel's library as if pip had installed it, no choice of the user's, and one driver of the system."""
    library = tmp_path / icd.LIBRARY
    (tmp_path / "system").mkdir()
    (tmp_path / "system" / "pocl.icd").write_text("libpocl.so.2\n")
    monkeypatch.setattr(icd, "intel_library", lambda: library)
    monkeypatch.setattr(icd, "vendor_directories", lambda: [tmp_path / "system"])
    monkeypatch.setattr(icd.sys, "platform", "linux")
    for name in icd.CHOICES:
        monkeypatch.delenv(name, raising=False)
    return library


def test_the_loader_sees_the_wheel_beside_the_system(wheel: Path) -> None:
    with icd.visible_drivers():
        folder = Path(os.environ[icd.VARIABLE])
        seen = {file.name: file.read_text().strip() for file in folder.glob("*.icd")}
    assert seen == {"pocl.icd": "libpocl.so.2", "nnc-intel.icd": str(wheel)}
    assert icd.VARIABLE not in os.environ
    assert not folder.exists()


@pytest.mark.parametrize("name", icd.CHOICES)
def test_the_choice_of_the_user_stands(wheel: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "/my/drivers")
    before = dict(os.environ)
    with icd.visible_drivers():
        assert dict(os.environ) == before
    assert dict(os.environ) == before
    assert icd.user_choice() == f"{name}=/my/drivers"


def test_without_the_wheel_nothing_is_changed(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icd, "intel_library", lambda: None)
    with icd.visible_drivers():
        assert icd.VARIABLE not in os.environ


def test_where_the_wheel_keeps_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / icd.LIBRARY
    file = SimpleNamespace(name=icd.LIBRARY, locate=lambda: tmp_path / "sub" / ".." / icd.LIBRARY)
    (tmp_path / "sub").mkdir()
    monkeypatch.setattr(icd.metadata, "files", lambda name: [SimpleNamespace(name="README"), file])
    assert icd.intel_library() is None  # listed, but deleted
    library.write_text("")
    assert icd.intel_library() == library.resolve()


def test_a_distribution_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(icd.metadata, "files", absent)
    monkeypatch.setattr(icd.metadata, "version", absent)
    assert icd.intel_library() is None
    assert icd.version(icd.RUNTIME) is None
