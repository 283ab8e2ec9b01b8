"""Library code for products and convolutions, with what follows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.products.arrange import PROBLEMS, arranged, operator_of, read_where_written
from nnc_core.operator.products.by_parts import complex_work, product_by_parts
from nnc_core.operator.products.convolution import Sliding
from nnc_core.operator.products.instead import is_with_channels_first, with_channels_last
from nnc_core.operator.products.problem import MatrixProduct
from nnc_opencl.products.plan import by_channels
from nnc_opencl.products.source import uses_float64

if TYPE_CHECKING:
    from nnc_opencl.products.kernel import TiledCompiler

WORTH = 1 << 13
"""Multiply-adds from which on packing pays."""
FEW = 4
"""Columns that are too few for vectors."""


class OpenCLProducts(CommandBackend):
    """Products of one operator."""

    name = "tiles"
    fuses = True
    several = True

    def __init__(self, operator: str, compiler: TiledCompiler) -> None:
        self.operator, self.compiler = operator, compiler

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            plan = self.compiler.plan(worth_while(command))
        except NotSupportedError as error:
            return error.message
        if uses_float64(plan.kind) and "float64" not in self.compiler.builder.spec.dtypes:
            return "the device has no float64"
        most = self.compiler.builder.most_arguments
        return None if len(command.inputs) + len(command.outputs) < most else "there are too many arguments"

    def prepare(self, command: Command) -> Kernel:
        return self.compiler.kernel(worth_while(command))

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        return read_where_written(command, output)


class OpenCLMatrices(OpenCLProducts):
    """Products of matrices: complex ones by their parts, where the operator's own bits are not promised."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        *_, rows, columns = command.output.shape
        if config.deterministic or min(rows, columns) < FEW or complex_work(command) < WORTH:
            return None
        return product_by_parts(F, inputs, command)


class OpenCLConvolutions(OpenCLProducts):
    """Convolutions, or gradients of them: with channels last, where tiles read what lies side by side."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        groups = Sliding(*command.attributes[-5:]).groups
        if not is_with_channels_first(command) or (groups > 1 and not self._has_kernel_for_each(command, groups)):
            return None
        return with_channels_last(F, inputs, command)

    def _has_kernel_for_each(self, command: Command, groups: int) -> bool:
        """Tell whether each channel, which is the first axis, has a kernel of its own that there is code for."""
        kernel = command.output if command.name == "conv_kernel_gradient" else command.inputs[1]
        return not self.compiler.grouped and kernel.shape[:2] == (groups, 1)


@lru_cache(maxsize=1024)
def worth_while(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it, or where loop nests are as quick."""
    problem = arranged(command)
    if problem.work < WORTH:
        raise NotSupportedError("it is too small to pay")
    if problem.columns < FEW and not by_channels(problem):
        raise NotSupportedError("it would mostly multiply lanes that are not there")
    return problem


def products(compiler: TiledCompiler) -> Mapping[str, CommandBackend]:
    """The library code of a device."""
    return {name: (OpenCLMatrices if name == "matmul" else OpenCLConvolutions)(name, compiler) for name in PROBLEMS}
