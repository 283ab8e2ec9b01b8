"""Library code for Fourier transforms: cuFFT for long rows, and for lengths that stages take too long for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from nnc_core.base.command import Command
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.steps.fourier import LARGEST, TRANSFORMS, parts_of, radices_of
from nnc_core.operator.steps.fourier_text import Way
from nnc_cuda.driver import CudaError
from nnc_cuda.failure import explained
from nnc_cuda.fourier.kernel import FourierKernel
from nnc_cuda.fourier.library import FourierLibrary
from nnc_cuda.fourier.plan import FourierSteps, steps_of

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice

LONG = 1024
"""Elements of a row from which on the library goes before the stages, each of which goes through all rows in memory; no
GPU has said from where on.  With `config.autotune` times decide."""


class CufftTransforms(CommandBackend):
    """One operator by the library, which is opened when it is first wanted; None: there is none."""

    name = "cufft"

    def __init__(self, operator: Way, device: CudaDevice, library: Callable[[], FourierLibrary | None]) -> None:
        self.operator, self.device, self.library = operator, device, library
        self.steps = lru_cache(maxsize=256)(self._steps)

    def refuse(self, command: Command) -> str | None:
        lengths = [part.points for part in parts_of(command)]
        if not prod(command.output.shape) or min(lengths) < 2:
            return "there is nothing to transform"
        if max(lengths) < LONG and max([radix for n in lengths for radix in radices_of(n)]) <= LARGEST:
            return "its rows are short"
        if self.library() is None:
            return "there is no library"
        try:
            self.steps(command)
        except CudaError as error:
            return error.text
        return None

    def _steps(self, command: Command) -> tuple[FourierSteps, int]:
        """As arrays lie, and the bytes of the workspace however they are aligned."""
        library = self.library()
        assert library is not None
        steps = steps_of(command, library, packs=False)
        most = steps.workspace
        if self.operator == "rfft":
            most = max(most, steps_of(command, library, packs=True).workspace)
        return steps, most

    def workspace(self, command: Command) -> int:
        return self.steps(command)[1]

    def prepare(self, command: Command) -> Kernel:
        library = self.library()
        assert library is not None
        with explained(f"preparing {self.operator}", self.device.spec.id):
            return FourierKernel(self.device, library, command, self.steps(command)[0])


def transforms(device: CudaDevice, library: Callable[[], FourierLibrary | None]) -> Mapping[str, CommandBackend]:
    """The backends of a device for each operator."""
    return {name: CufftTransforms(name, device, library) for name in TRANSFORMS}
