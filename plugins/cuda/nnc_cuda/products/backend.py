"""Library code for products and convolutions, with what follows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.products.arrange import INTEGER_PROBLEMS, PROBLEMS, arranged, operator_of, read_where_written
from nnc_core.operator.products.convolution import Sliding
from nnc_core.operator.products.instead import is_with_channels_first, with_channels_last
from nnc_core.operator.products.problem import MatrixProduct
from nnc_cuda.blas import Blas
from nnc_cuda.modules import MOST_ARGUMENTS
from nnc_cuda.products.library import LibraryProducts
from nnc_cuda.products.plan import BlockPlan, plan_of

if TYPE_CHECKING:
    from nnc_cuda.products.kernel import BlockProductCompiler

WORTH = 1 << 13
"""Multiply-adds from which on tiles pay."""
FEW = 4
"""Columns that are too few for tiles."""


class CudaProducts(CommandBackend):
    """Products of one operator."""

    name = "tiles"
    fuses = True
    several = True

    def __init__(self, operator: str, compiler: BlockProductCompiler) -> None:
        self.operator, self.compiler = operator, compiler

    def refuse(self, command: Command) -> str | None:
        if operator_of(command) != self.operator:
            return f"it is made for {self.operator}"
        try:
            plan = planned(command)
        except NotSupportedError as error:
            return error.message
        arguments = len(command.inputs) + len(command.outputs) + 1 + len(plan.kind.numbers)
        return None if arguments <= MOST_ARGUMENTS else "there are too many arguments"

    def prepare(self, command: Command) -> Kernel:
        return self.compiler.kernel(worth_while(command))

    def workspace(self, command: Command) -> int:
        plan = planned(command)
        return plan.partial * plan.kind.wide.itemsize

    def inplace_of(self, command: Command, output: int, offered: tuple[int, ...]) -> tuple[int, ...]:
        return read_where_written(command, output)


class CudaConvolutions(CudaProducts):
    """Convolutions, or gradients of them: with channels last, where tiles read what lies side by side."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        groups = Sliding(*command.attributes[-5:]).groups
        if groups > 1 or not is_with_channels_first(command):
            return None
        return with_channels_last(F, inputs, command)


@lru_cache(maxsize=1024)
def worth_while(command: Command) -> MatrixProduct:
    """The problem of a command; NotSupportedError where there is no code for it, or where loop nests are as quick."""
    problem = arranged(command)
    if problem.work < WORTH:
        raise NotSupportedError("it is too small to pay")
    if problem.columns < FEW:
        raise NotSupportedError("it would mostly multiply columns that are not there")
    return problem


@lru_cache(maxsize=1024)
def planned(command: Command) -> BlockPlan:
    """The plan of such a problem."""
    return plan_of(worth_while(command))


def products(compiler: BlockProductCompiler, blas: Callable[[], Blas | None]) -> Mapping[str, Sequence[CommandBackend]]:
    """The backends of a device for each operator, in order of preference."""
    found: dict[str, Sequence[CommandBackend]] = {
        name: (LibraryProducts(name, blas, compiler.default),
               (CudaProducts if name == "matmul" else CudaConvolutions)(name, compiler)) for name in PROBLEMS}
    return found | {name: (LibraryProducts(name, blas, compiler.default),) for name in INTEGER_PROBLEMS}
