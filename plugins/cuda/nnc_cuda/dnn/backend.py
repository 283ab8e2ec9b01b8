"""Library code for convolutions and attention by cuDNN."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import bfloat16, float16
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.tiling import Tiling
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.fused import FUSED
from nnc_core.operator.products.arrange import operator_of
from nnc_core.operator.products.convolution import Sliding
from nnc_core.operator.products.instead import is_with_channels_first, with_channels_last
from nnc_core.shape.window import has_channels_last
from nnc_cuda.dnn.attention import BACK, INPUTS, PlacedAttention, placed_attention
from nnc_cuda.dnn.convolution import SLIDES_OVER, PlacedConvolution, kernel_tiling, placed_convolution
from nnc_cuda.dnn.cudnn import MOST_WORKSPACE
from nnc_cuda.dnn.interface import Dnn
from nnc_cuda.dnn.kernel import CudnnKernel, Placed, plans_of

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice

HALVES = (float16, bfloat16)


class CudnnBackend(CommandBackend):
    """Commands that are problems of the library, which is opened when it is first wanted; None: there is none."""

    name = "cudnn"
    kernel_name: str

    def __init__(self, operator: str, device: CudaDevice, dnn: Callable[[], Dnn | None]) -> None:
        self.operator, self.device, self._dnn = operator, device, dnn

    @property
    def dnn(self) -> Dnn:
        """The library, which is there once a command was not refused."""
        dnn = self._dnn()
        assert dnn is not None
        return dnn

    @abstractmethod
    def placed(self, command: Command) -> Placed:
        """The problem of a command that the library, if it is there, takes; NotSupportedError where it takes none like
        it."""

    def refuse(self, command: Command) -> str | None:
        if (operator_of(command) if self.fuses else command.name) != self.operator:
            return f"it is made for {self.operator}"
        try:
            problem = self.placed(command).problem
        except NotSupportedError as error:
            return error.message
        if config.deterministic and command.name == FUSED.name:
            return "its steps would not be rounded one by one"
        dnn = self._dnn()
        if dnn is None:
            return "cuDNN is not installed"
        return None if dnn.plan(problem) else "the library has no engine for it"

    def prepare(self, command: Command) -> Kernel:
        return CudnnKernel(self.device, self.dnn, self.placed(command), self.kernel_name)

    def workspace(self, command: Command) -> int:
        """The bytes of arrays that are packed, and those that plans want behind them."""
        placed = self.placed(command)
        return placed.packed + plans_of(self.dnn, placed.problem).workspace


class CudnnConvolutions(CudnnBackend):
    """One of the three operators by the library."""

    kernel_name = "a convolution of cuDNN"
    fuses = True
    packs = True

    def placed(self, command: Command) -> PlacedConvolution:
        return placed_convolution(command)

    def wants(self, command: Command) -> Mapping[int, Tiling]:
        """A constant kernel as the library reads it."""
        kernel = SLIDES_OVER[self.operator][1]
        if not has_channels_last(command.attributes[-1]) or kernel > 1:
            return {}
        return {kernel: kernel_tiling(len(command.inputs[kernel].shape))}

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        """Tensor cores read channels last: of halves the transposed images, which neighbours may share."""
        if command.inputs[0].dtype not in HALVES or Sliding(*command.attributes[-5:]).groups > 1:
            return None
        if not is_with_channels_first(command) or self._dnn() is None:
            return None
        return with_channels_last(F, inputs, command)


class CudnnAttention(CudnnBackend):
    """Attention of halves by the library, or its gradients."""

    kernel_name = "attention of cuDNN"

    def placed(self, command: Command) -> PlacedAttention:
        """As arrays lie, or packed where there is no engine for that: by then the composite is claimed.  Sums of
        gradients are in one order where the library has the memory for it."""
        orders = self._orders(command)
        ways = [placed_attention(command, packs, ordered) for ordered in orders for packs in (False, True)]
        dnn = self._dnn()
        return ways[0] if dnn is None else next((one for one in ways if dnn.plan(one.problem)), ways[0])

    def _orders(self, command: Command) -> Sequence[bool]:
        """Tell, the preferred first, whether sums are taken in one order."""
        if command.name != BACK:
            return (True,)
        if config.deterministic:
            return (True,)
        scores = prod(command.inputs[0].shape[:-1]) * command.inputs[1].shape[-2]
        return (True, False) if scores * float16.itemsize <= MOST_WORKSPACE else (False,)


def convolutions(device: CudaDevice, dnn: Callable[[], Dnn | None]) -> Mapping[str, CommandBackend]:
    """The backends of a device for each of these operators."""
    return {name: CudnnConvolutions(name, device, dnn) for name in SLIDES_OVER}


def attentions(device: CudaDevice, dnn: Callable[[], Dnn | None]) -> Mapping[str, Sequence[CommandBackend]]:
    """The backends of a device for attention and its gradients."""
    return {name: (CudnnAttention(name, device, dnn),) for name in INPUTS}
