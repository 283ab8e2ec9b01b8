"""The state of CUDA here, and what is missing, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, util

from nnc_core.base.errors import PluginError

INSTALL = "`pip install nnc-cuda[cuda12x]`, or `nnc-cuda[cuda13x]` for drivers of CUDA 13"


def diagnosis() -> Iterator[str]:
    """Lines that name CuPy, the driver and NVRTC, or what to install."""
    yield from _cupy_lines()
    yield from _nvrtc_lines()


def _cupy_lines() -> Iterator[str]:
    if util.find_spec("cupy_backends") is None:
        yield f"CuPy is not installed: {INSTALL}"
        return
    from nnc_cuda.cupy_driver import device_count, driver_version

    yield f"CuPy {_cupy_version()}"
    version = driver_version()
    if not version:
        yield "there is no NVIDIA driver: install the one of your GPU"
        return
    yield "the driver knows CUDA {}.{}".format(*divmod(version // 10, 100))
    try:
        yield f"{device_count()} devices"
    except PluginError as error:
        yield str(error)


def _cupy_version() -> str:
    found = [d for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy") for d in metadata.distributions(name=name)]
    return f"{found[0].version} ({found[0].name})" if found else "of a source tree"


def _nvrtc_lines() -> Iterator[str]:
    from nnc_cuda import nvrtc

    try:
        yield "NVRTC {}.{}".format(*nvrtc.version())
    except PluginError as error:
        yield str(error)
