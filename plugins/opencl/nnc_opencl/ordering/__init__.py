"""Sorting by kernels, and what is made of it: positions in order, and updates put together by index."""

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_opencl.ordering.argsort import OpenCLArgsort
from nnc_opencl.ordering.scatter import OpenCLScatter
from nnc_opencl.steps import StepsCompiler


def ordering(compiler: StepsCompiler) -> Mapping[str, CommandBackend]:
    """The library code of a device."""
    return {"argsort": OpenCLArgsort(compiler), "scatter": OpenCLScatter(compiler)}
