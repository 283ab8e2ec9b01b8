"""cuDNN itself, where its wheel is installed, without a GPU.

It takes a description of a device in place of one, and for the driver a library that has nothing behind the names of
its functions.  So heuristics answer, and plans are made, as they are on such a device; nothing runs."""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
import sys
from ctypes import c_char
from functools import cache
from pathlib import Path
from typing import Any

from nnc_core.base.errors import PluginError
from nnc_cuda.dnn.cudnn import PLAN_WORKSPACE, Target, made_plan
from nnc_cuda.dnn.descriptors import DESCRIPTOR, INT64, Descriptor, ElementKind
from nnc_cuda.dnn.graphs import operations_of
from nnc_cuda.dnn.interface import Problem
from nnc_cuda.driver import CudaError
from nnc_cuda.vendor import load
from tests.cuda.cudnn_problems import PROBLEMS, WRONG

DEVICE, DEVICE_JSON, CHARACTER = 38, 2702, ElementKind(24, c_char)
"""CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR."""
HEURISTICS_DEVICE, PLAN_DEVICE = 204, 407
"""CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP."""
A100 = {"deviceVer": 800, "multiProcessorCount": 108, "maxSharedMemoryPerBlockOptin": 166912}
H100 = {"deviceVer": 900, "multiProcessorCount": 132, "maxSharedMemoryPerBlockOptin": 232448}
COMMON: dict[str, Any] = {
    "driverVer": 12090, "cudaDeviceId": 0, "maxGridSize": [2**31 - 1, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536, "smCountOrigin": 0, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
    "oversizedSharedMemoryPerBlock": 0, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1, "totalGlobalMem": 80 << 30, "smClockRateKHz": 1500000, "memClockRateKHz": 2000000,
    "memoryBusWidth": 5120, "l2CacheSize": 40 << 20, "deviceName": "described"}
ANSWERS = {
    "cuDriverGetVersion": "(int *version) { *version = 12090; return 0; }",
    **dict.fromkeys(["cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuModuleLoadData",
                     "cuModuleGetFunction"], "(void **made) { *made = (void *)8; return 0; }"),
    **dict.fromkeys(["cuKernelSetAttribute", "cuFuncSetAttribute", "cuLibraryUnload", "cuModuleUnload"],
                    "(void) { return 0; }")}
"""What the driver's functions do that answer anything but CUDA_ERROR_NO_DEVICE."""


def libraries() -> list[Path]:
    """cuDNN's own and those that it opens by name, loaded.  PluginError if one is missing."""
    for name in ("cublasLt", "nvrtc"):
        load(name)
    from cuda.pathfinder import load_nvidia_dynamic_lib

    return sorted(Path(load_nvidia_dynamic_lib("cudnn").abs_path or "").parent.glob("libcudnn*.so.9"))


def stand_in_driver(names: set[str], folder: Path) -> None:
    """Load a libcuda that has no device, and whose modules are empty.  PluginError without a C compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise PluginError("there is no C compiler")
    source, made = folder / "cuda.c", folder / "libcuda.so.1"
    answers = dict.fromkeys(names, "(void) { return 100; }") | ANSWERS
    source.write_text("".join([f"int {name}{answer}\n" for name, answer in sorted(answers.items())]))
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", made, source], check=True)
    ctypes.CDLL(str(made))


def driver_functions(files: list[Path]) -> set[str]:
    """What looks like the name of a function of the driver in these files."""
    pattern = re.compile(rb"(?<![A-Za-z0-9_])cu[A-Z][a-z]+[A-Z][A-Za-z0-9_]*(?![A-Za-z0-9_])|cuInit")
    return {name.decode() for file in files for name in pattern.findall(file.read_bytes())}


@cache
def opened(folder: Path) -> Any:
    """The library."""
    files = [one for one in libraries() if any([part in one.name for part in ("graph", "runtime", "tensor_ir")])]
    stand_in_driver(driver_functions(files), folder)
    return load("cudnn")


def target(functions: Any, facts: dict[str, Any]) -> Target:
    """A described device."""
    text = json.dumps(COMMON | facts).encode() + b"\0"
    device = Descriptor(functions, DEVICE)
    device.set(DEVICE_JSON, CHARACTER, *text)
    device.done()
    return Target((), [(HEURISTICS_DEVICE, DESCRIPTOR, (device,))], [(PLAN_DEVICE, DESCRIPTOR, (device,))])


def refused(functions: Any, problem: Problem) -> bool:
    """Tell whether the operations of a problem cannot be described."""
    try:
        operations_of(functions, problem)
    except CudaError:
        return True
    return False


def main(folder: str) -> None:
    """Print, as JSON, the bytes of workspace of the plan of each problem for each device, null where there is none, and
    which of the wrong problems are refused."""
    functions = opened(Path(folder))
    found: dict[str, Any] = {"refused": [name for name, problem in WRONG.items() if refused(functions, problem)]}
    for device, facts in (("A100", A100), ("H100", H100)):
        described = target(functions, facts)
        for name, problem in PROBLEMS.items():
            plan = made_plan(functions, described, problem)
            found[f"{name} on {device}"] = None if plan is None else plan.values(PLAN_WORKSPACE, INT64, 1)[0]
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
