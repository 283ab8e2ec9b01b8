"""NVIDIA's libraries, loaded by ctypes: they come with the plugin's extras, with CuPy's requirements or with CUDA."""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from nnc_core.base.errors import FallbackWarning, PluginError
from nnc_core.base.line import users_frame
from nnc_cuda.blas import Blas
from nnc_cuda.dnn.interface import Dnn
from nnc_cuda.driver import CudaError, Driver
from nnc_cuda.fourier.library import FourierLibrary
from nnc_cuda.matrices.lapack import Lapack

INSTALL = "`pip install nnc-cuda[cuda12x]` or `nnc-cuda[cuda13x]`, whichever the driver is for"

T = TypeVar("T")


@cache
def load(name: str) -> Any:
    """A library by NVIDIA's name for it, such as cublasLt; PluginError if there is none."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib  # the extras bring it, not the plugin

        return ctypes.CDLL(load_nvidia_dynamic_lib(name).abs_path)
    except (ImportError, RuntimeError, OSError) as error:
        raise PluginError(f"{name} cannot be loaded: {error}", hint=INSTALL) from error


def opened(what: str, make: Callable[[], T]) -> T | None:
    """The object that opens a library; None where there is none, which is said once: `what` goes without it then."""
    try:
        return make()
    except (PluginError, CudaError) as error:
        warnings.warn(f"{what} without NVIDIA's library: {error}", FallbackWarning, stacklevel=users_frame())
        return None


class VendorLibraries(NamedTuple):
    """Functions that open the libraries of a device, which give None where there is none."""

    blas: Callable[[Driver], Blas | None] = lambda driver: None
    lapack: Callable[[Driver], Lapack | None] = lambda driver: None
    fourier: Callable[[Driver], FourierLibrary | None] = lambda driver: None
    dnn: Callable[[Driver], Dnn | None] = lambda driver: None


NO_LIBRARIES = VendorLibraries()


class OpenedLibraries:
    """Those of one device, each opened when it is first asked for."""

    def __init__(self, driver: Driver, libraries: VendorLibraries) -> None:
        self._driver, self._libraries, self._lock = driver, libraries, Lock()
        self._found: dict[str, Any] = {}

    def _opened(self, name: str) -> Any:
        with self._lock:
            if name not in self._found:
                self._found[name] = getattr(self._libraries, name)(self._driver)
            return self._found[name]

    def blas(self) -> Blas | None:
        return self._opened("blas")  # type: ignore[no-any-return]

    def lapack(self) -> Lapack | None:
        return self._opened("lapack")  # type: ignore[no-any-return]

    def fourier(self) -> FourierLibrary | None:
        return self._opened("fourier")  # type: ignore[no-any-return]

    def dnn(self) -> Dnn | None:
        return self._opened("dnn")  # type: ignore[no-any-return]
