"""Library code for linear algebra: cuSOLVER for matrices that are not small, the host for others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from nnc_core.base.command import Command
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator import OPERATORS
from nnc_cuda.driver import CudaError
from nnc_cuda.failure import explained
from nnc_cuda.matrices.calls import LETTERS
from nnc_cuda.matrices.kernel import MatrixKernel
from nnc_cuda.matrices.lapack import Lapack
from nnc_cuda.matrices.plan import PLANS
from nnc_cuda.matrices.stacks import GENERAL, count_of, in_one_call
from nnc_cuda.matrices.writing import MatrixPlan

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice

WORTH = 32
"""Rows and columns from which on a matrix is worth the calls, and whose elements a stack has to have, as far as anybody
knows without a GPU; with `config.autotune` times decide between this and the host."""
WORTH_GENERAL = 256
"""The same of eigenvalues of general matrices, half of whose work the library does on the host."""
MOST, MOST_AT_ONCE = 256, 1 << 16
"""Matrices of a stack, where each is a call, or a few; where one call takes all."""
LARGEST = 1 << 15
"""Rows or columns: the routines count elements with 32 bits."""


class CusolverMatrices(CommandBackend):
    """One operator by the library, which is opened when it is first wanted; None: there is none."""

    name = "cusolver"

    def __init__(self, operator: str, device: CudaDevice, lapack: Callable[[], Lapack | None],
                 worth: int = WORTH) -> None:
        self.operator, self.device, self.lapack, self.worth = operator, device, lapack, worth
        self.plan = lru_cache(maxsize=256)(self._plan)

    def refuse(self, command: Command) -> str | None:
        reason = refusal(command, self.worth)
        if reason is not None:
            return reason
        if self.lapack() is None:
            return "there is no library"
        try:
            self.plan(command)
        except CudaError as error:
            return error.text
        return None

    def _plan(self, command: Command) -> MatrixPlan:
        lapack = self.lapack()
        assert lapack is not None
        return PLANS[self.operator](command, lapack.scratch)

    def workspace(self, command: Command) -> int:
        return self.plan(command).workspace

    def prepare(self, command: Command) -> Kernel:
        lapack = self.lapack()
        assert lapack is not None
        with explained(f"preparing {self.operator}", self.device.spec.id):
            return MatrixKernel(self.device, lapack, command, self.plan(command), OPERATORS[self.operator].reference)


def refusal(command: Command, worth: int) -> str | None:
    """The reason why the library is not asked; None if it is."""
    a = command.inputs[0]
    *_, m, n = a.shape
    if a.dtype not in LETTERS:
        return f"the library has no {a.dtype}"
    if not prod([size for x in (*command.inputs, *command.outputs) for size in x.shape]):
        return "it is empty"
    at_once, count = in_one_call(command), count_of(command)
    if count * m * n < worth * worth if at_once else min(m, n) < worth:
        return "it is too small to pay"
    if max(m, n, *[x.shape[-1] for x in command.inputs]) > LARGEST:
        return "the library counts with 32 bits"
    if count > (MOST_AT_ONCE if at_once else MOST):
        return "there are too many matrices" if at_once else "the library takes one matrix at a time"
    if any(x.offset or not x.contiguous for x in command.outputs):
        return "what goes wrong is computed on the host, which uploads whole buffers"
    more = command.name == "svd" and command.attributes[0] and m != n
    if more or (command.name == "qr" and command.attributes[0] == "complete" and m > n):
        return "vectors beyond the rank are those that LAPACK finds"
    return None


def matrices(device: CudaDevice, lapack: Callable[[], Lapack | None]) -> Mapping[str, Sequence[CommandBackend]]:
    """The backends of a device for each operator."""
    return {name: (CusolverMatrices(name, device, lapack, WORTH_GENERAL if name in GENERAL else WORTH),)
            for name in PLANS}
