"""Library code for convolutions and attention by cuDNN."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from nnc_cuda.dnn.attention import PlacedAttention, placed_attention
from nnc_cuda.dnn.convolution import SLIDES_OVER, kernel_tiling, placed
from nnc_cuda.dnn.kernel import CudnnKernel, Placed, plans_of
from nnc_cuda.dnn.library import Dnn

if TYPE_CHECKING:
    from nnc_cuda.device import CudaDevice

HALVES = (float16, bfloat16)
ATTENTION = "scaled_dot_product_attention"


class CudnnConvolutions(CommandBackend):
    """One of the three operators by the library, which is opened when it is first wanted; None: there is none."""

    name = "cudnn"
    fuses = True
    packs = True

    def __init__(self, operator: str, device: CudaDevice, dnn: Callable[[], Dnn | None]) -> None:
        self.operator, self.device, self.dnn = operator, device, dnn

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            problem = placed(command).problem
        except NotSupportedError as error:
            return error.message
        if config.deterministic and command.name == FUSED.name:
            return "its steps would not be rounded one by one"
        dnn = self.dnn()
        if dnn is None:
            return "cuDNN is not installed"
        return None if dnn.plan(problem) else "the library has no engine for it"

    def prepare(self, command: Command) -> Kernel:
        dnn = self.dnn()
        assert dnn is not None
        return CudnnKernel(self.device, dnn, placed(command), "a convolution of cuDNN")

    def workspace(self, command: Command) -> int:
        dnn = self.dnn()
        assert dnn is not None
        return workspace_of(dnn, placed(command))

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
        if not is_with_channels_first(command) or self.dnn() is None:
            return None
        return with_channels_last(F, inputs, command)


class CudnnAttention(CommandBackend):
    """Attention of halves by the library."""

    name = "cudnn"

    def __init__(self, device: CudaDevice, dnn: Callable[[], Dnn | None]) -> None:
        self.device, self.dnn = device, dnn

    def refuse(self, command: Command) -> str | None:
        if command.name != ATTENTION:
            return f"it is made for {ATTENTION}"
        try:
            placed_attention(command)
        except NotSupportedError as error:
            return error.message
        dnn = self.dnn()
        if dnn is None:
            return "cuDNN is not installed"
        return None if dnn.plan(self._placed(command, dnn).problem) else "the library has no engine for it"

    def _placed(self, command: Command, dnn: Dnn) -> PlacedAttention:
        """As arrays lie, or packed where there is no engine for that: by then the composite is claimed."""
        found = placed_attention(command)
        return found if dnn.plan(found.problem) else placed_attention(command, packs=True)

    def prepare(self, command: Command) -> Kernel:
        dnn = self.dnn()
        assert dnn is not None
        return CudnnKernel(self.device, dnn, self._placed(command, dnn), "attention of cuDNN")

    def workspace(self, command: Command) -> int:
        dnn = self.dnn()
        assert dnn is not None
        return workspace_of(dnn, self._placed(command, dnn))


def workspace_of(dnn: Dnn, placed: Placed) -> int:
    """The bytes of arrays that are packed, and those that plans want behind them."""
    return placed.packed + plans_of(dnn, placed.problem).workspace


def convolutions(device: CudaDevice, dnn: Callable[[], Dnn | None]) -> Mapping[str, CommandBackend]:
    """The backends of a device for each of these operators."""
    return {name: CudnnConvolutions(name, device, dnn) for name in SLIDES_OVER}
