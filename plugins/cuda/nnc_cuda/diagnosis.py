"""The state of CUDA here, and what is missing, for a person."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, util

from nnc_core.base.errors import PluginError
from nnc_cuda.vendor import load

INSTALL = "`pip install nnc-cuda[cuda12x]`, or `nnc-cuda[cuda13x]` for drivers of CUDA 13"


LIBRARIES = ((("cublasLt",), "products run as nnc's own tiles"),
             (("cusolver", "cublas"), "linear algebra runs on the host"),
             (("cufft",), "all Fourier transforms run by stages"),
             (("cudnn",), "convolutions run as nnc's own tiles, attention as products"))
"""NVIDIA's libraries, and what becomes of their work without them."""


def diagnosis() -> Iterator[str]:
    """One line that says what is missing where there can be no device; else versions, and what is missing beside."""
    missing = _missing()
    if missing:
        yield missing
        return
    from nnc_cuda.cupy_driver import device_count, driver_version

    yield f"CuPy {_cupy_version()}"
    yield "the driver knows CUDA {}.{}".format(*divmod(driver_version() // 10, 100))
    try:
        yield f"{device_count()} devices"
    except PluginError as error:
        yield str(error)
    yield from _nvrtc_lines()
    yield from _library_lines()


def _missing() -> str:
    """The reason that there is no device; "" if all that it needs is there."""
    if util.find_spec("cupy_backends") is None:
        return f"CuPy is not installed: {INSTALL}"
    from nnc_cuda.cupy_driver import driver_version

    return "" if driver_version() else "there is no NVIDIA driver: install the one of your GPU"


def _cupy_version() -> str:
    found = [d for name in ("cupy-cuda12x", "cupy-cuda13x", "cupy") for d in metadata.distributions(name=name)]
    return f"{found[0].version} ({found[0].name})" if found else "of a source tree"


def _nvrtc_lines() -> Iterator[str]:
    from nnc_cuda import nvrtc

    try:
        yield "NVRTC {}.{}".format(*nvrtc.version())
    except PluginError as error:
        yield str(error)


def _library_lines() -> Iterator[str]:
    for names, without in LIBRARIES:
        try:
            for name in names:
                load(name)
        except PluginError as error:
            yield f"{without}: {error.message.splitlines()[0]}"
        else:
            yield f"{' and '.join(names)}: there"
