"""Facts about the machine: its processor, its memory, and the libraries that compute."""

from __future__ import annotations

import os
import platform
from importlib import import_module
from pathlib import Path

import numpy as np

from nnc_core.base.config import config
from nnc_cpu.threads.system import default_threads, usable_cores


def processor_name() -> str:
    """The name of the processor, as far as the system tells."""
    return _entry("/proc/cpuinfo", "model name") or platform.processor() or platform.machine() or "CPU"


def vendor() -> str:
    return _entry("/proc/cpuinfo", "vendor_id") or platform.system()


def memory() -> tuple[int, int] | None:
    """(available, physical) bytes; None where the system does not tell."""
    try:
        page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
        free = os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # no such function or name, as on Windows and macOS
        return None
    reclaimable = _entry("/proc/meminfo", "MemAvailable")
    available = int(reclaimable.split()[0]) * 1024 if reclaimable else free * page
    return available, pages * page


def _entry(file: str, name: str) -> str:
    """The value of the first line `name: value`; empty if there is none."""
    try:
        lines = Path(file).read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == name), "")


def diagnosis() -> list[str]:
    """Lines for a person."""
    lines = [f"processor: {processor_name()}, {usable_cores()} cores usable",
             f"machine code: {_compiler()}",
             f"threads of machine code: {config.threads or default_threads()}",
             f"NumPy {np.__version__}, BLAS: {_blas()}"]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    limits = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    lines.append("threads of NumPy's products: " + (", ".join(limits) or "as many as the BLAS takes (no limit is set)"))
    if (known := memory()) is not None:
        lines.append(f"memory: {known[0] / 2**30:.1f} of {known[1] / 2**30:.1f} GiB available")
    return lines


def _compiler() -> str:
    try:
        llvm = import_module("llvmlite.binding")
        compiler = import_module("nnc_cpu.llvm.compiler")
    except ImportError as error:
        return f"none, loop nests are NumPy's or interpreted ({error}); pip install llvmlite"
    version = ".".join(map(str, llvm.llvm_version_info))
    return f"LLVM {version}, vectors of {compiler.host().lanes} float32"


def _blas() -> str:
    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if isinstance(config, dict) else {}
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
