"""Discrete Fourier transforms by stages, each of which takes one factor of the length (Stockham 1966)."""

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_opencl.fourier.backend import TRANSFORMS, OpenCLFourier
from nnc_opencl.steps import StepsCompiler


def fourier(compiler: StepsCompiler) -> Mapping[str, CommandBackend]:
    """The library code of a device."""
    return {name: OpenCLFourier(name, compiler) for name in TRANSFORMS}
