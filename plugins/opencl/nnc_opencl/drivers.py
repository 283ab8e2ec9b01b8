"""The devices of all OpenCL platforms in a stable order, and what to say when there are none."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from functools import lru_cache

import pyopencl as cl

from nnc_core.base.dtype import ALL_DTYPES
from nnc_core.base.errors import PluginError
from nnc_core.device import CODEGEN, REPRODUCIBLE, DeviceSpec
from nnc_opencl import icd

NO_PLATFORM = cl.status_code.PLATFORM_NOT_FOUND_KHR
INSTALL = "`pip install nnc-opencl[intel]` (any x86-64 CPU), Debian's pocl-opencl-icd, or your GPU's driver"
POCL = "Portable Computing Language"
LEAST_LLVM = 15
"""PoCL with an older LLVM compiles some loops over vectors for minutes, and then ends the process."""
TYPES = {"gpu": cl.device_type.GPU, "accelerator": cl.device_type.ACCELERATOR, "cpu": cl.device_type.CPU}
GROUPS = "NNC_OPENCL_GROUPS"
"""The environment variable for kernels of GPUs on CPUs."""

_first_query = threading.Lock()


def list_platforms() -> list[cl.Platform]:
    """All platforms, each once, however many files name its driver; none is no error."""
    with _first_query, icd.visible_drivers():
        try:
            return list({platform.int_ptr: platform for platform in cl.get_platforms()}.values())
        except cl.Error as error:
            if error.code == NO_PLATFORM:
                return []
            raise PluginError(f"the OpenCL loader fails: {error}") from error


def list_devices() -> list[cl.Device]:
    """Usable ones first; GPUs, accelerators, CPUs; the more capable first, else in the platforms' order."""
    return sorted((d for p in list_platforms() for d in _devices_of(p)), key=_rank)


def _devices_of(platform: cl.Platform) -> list[cl.Device]:
    try:
        return [d for d in platform.get_devices() if device_type(d)]
    except cl.Error:  # a platform without devices; `diagnosis` shows it
        return []


def _rank(device: cl.Device) -> tuple[bool, int, int]:
    return not _is_usable(device), list(TYPES).index(device_type(device)), -len(features(device))


def _is_usable(device: cl.Device) -> bool:
    return bool(device.available and device.compiler_available)


def device_type(device: cl.Device) -> str:
    """gpu, accelerator or cpu; "" for devices that run no kernels of ours."""
    return next((name for name, bit in TYPES.items() if device.type & bit), "")


def runs_groups(device: cl.Device) -> bool:
    """Tell whether kernels are to be those for devices that run work items in groups; NNC_OPENCL_GROUPS=1 has them on
    CPUs too, where they are slow, to test them."""
    return device_type(device) != "cpu" or os.environ.get(GROUPS, "0") not in ("", "0")


def describe(device: cl.Device) -> str:
    platform = device.platform.name.strip()
    known_as = f"{platform} PoCL" if platform == POCL else platform
    return f"{device.name.strip()} ({known_as}, driver {device.driver_version.strip()})"


def builds_loops(device: cl.Device) -> bool:
    """Tell whether work items that go through many points in loops are built, and pay: on CPUs, as vectors."""
    if not device.type & cl.device_type.CPU:
        return False
    found = re.search(r"LLVM (\d+)", device.platform.version) if device.platform.name.strip() == POCL else None
    return found is None or int(found[1]) >= LEAST_LLVM


def stable_names(devices: Sequence[cl.Device]) -> list[str]:
    """Vendor, driver and name of each, with a number behind those that have come before."""
    names: list[str] = []
    for device in devices:
        name = "opencl:" + "/".join(map(_plain, (device.vendor, device.platform.name, device.name)))
        before = sum(known.partition("#")[0] == name for known in names)
        names.append(f"{name}#{before}" if before else name)
    return names


def _plain(text: str) -> str:
    """Words of letters and digits, "Intel(R) OpenCL" as "intel-opencl"."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\((r|tm|c)\)", "", text.lower())).strip("-")


def features(device: cl.Device) -> frozenset[str]:
    """The type of device, "codegen" (loop nests become machine code), "reproducible" (their arithmetic is rounded as it
    stands, nothing is contracted), and of fp64, fp16, subgroups and unified_memory those that it has."""
    extensions = device.extensions.split()
    having = {
        "fp64": "cl_khr_fp64" in extensions,
        "fp16": "cl_khr_fp16" in extensions,
        "subgroups": any(name in extensions for name in ("cl_khr_subgroups", "cl_intel_subgroups")),
        "unified_memory": bool(device.host_unified_memory),
    }
    return frozenset([device_type(device), CODEGEN, REPRODUCIBLE, *(name for name, has in having.items() if has)])


def spec_of(device: cl.Device, id: str) -> DeviceSpec:
    """float16 and bfloat16 need no extension: they are stored as bits and computed as float32."""
    having = features(device)
    return DeviceSpec(
        id, "opencl", device.name.strip(), device.vendor.strip(),
        driver=f"{device.platform.name.strip()} {device.driver_version.strip()}",
        memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        alignment=device.mem_base_addr_align // 8, features=having,
        dtypes=frozenset(ALL_DTYPES) if "fp64" in having else frozenset(ALL_DTYPES) - {"float64", "complex128"},
    )  # fmt: skip


@lru_cache(maxsize=1)
def _runtime_fault() -> str | None:
    """The reason why Intel's installed runtime cannot be loaded; None if it can or is not installed."""
    library = icd.intel_library()
    return icd.loading_error(library) if library else None


def require_installed_runtime() -> None:
    """PluginError if Intel's runtime is installed and broken, for then having no device is no accident."""
    fault = _runtime_fault()
    if fault is not None:
        raise PluginError(f"{icd.RUNTIME} is installed but cannot be loaded: {fault}", hint=_repair())


def _repair() -> str:
    if icd.version(icd.SUPPORT) is None:
        return f"`pip install {icd.SUPPORT}`: {icd.RUNTIME} needs it and does not say so"
    return f"`pip install --force-reinstall {icd.RUNTIME} {icd.SUPPORT}`"


def diagnosis() -> Iterator[str]:
    """Lines for a person: loader, drivers, platforms, devices, and what to install."""
    yield f"PyOpenCL {cl.VERSION_TEXT}"
    if choice := icd.user_choice():
        yield f"drivers are chosen by {choice}"
    yield from _intel_lines()
    platforms = list_platforms()
    for platform in platforms:
        yield from _platform_lines(platform)
    if not platforms:
        yield f"no OpenCL platform; install a driver: {INSTALL}"


def _intel_lines() -> Iterator[str]:
    for name in (icd.RUNTIME, icd.SUPPORT):
        yield f"{name} {icd.version(name) or 'is not installed'}"
    if (fault := _runtime_fault()) is not None:
        yield f"{icd.RUNTIME} is installed but cannot be loaded: {fault}; {_repair()}"
    elif icd.intel_library() and not icd.user_choice() and not _intel_is_listed():
        yield "PyOpenCL was asked for platforms before nnc could show it Intel's runtime: ask nnc first"


def _intel_is_listed() -> bool:
    return any("Intel" in platform.name for platform in list_platforms())


def _platform_lines(platform: cl.Platform) -> Iterator[str]:
    devices = _devices_of(platform)
    yield f"platform {platform.name.strip()}: {platform.version.strip()}" + ("" if devices else ", no device")
    for device in devices:
        spec = spec_of(device, "")
        state = "" if _is_usable(device) else ", not available or without a compiler"
        yield f"  {describe(device)}: {', '.join(sorted(spec.features))}, alignment {spec.alignment}{state}"
