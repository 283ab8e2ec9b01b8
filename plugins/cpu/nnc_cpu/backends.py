"""The table of kernels: for each operator how a command of it becomes a routine, and the backend that offers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.packing import PACK
from nnc_core.operator.products.instead import is_with_channels_first
from nnc_cpu import (
    convolution,
    creation,
    elementwise,
    fused,
    indexing,
    lapack,
    linear,
    movement,
    neural,
    ordering,
    pooling,
    random,
    reductions,
    scans,
)
from nnc_cpu.attention import ATTENTION
from nnc_cpu.blas import is_in_the_way, on_one_thread
from nnc_cpu.few_largest import by_searches
from nnc_cpu.fourier import FOURIER
from nnc_cpu.matrices import matrices
from nnc_cpu.memory import array_in
from nnc_cpu.products import PRODUCTS
from nnc_cpu.products.backend import is_slow_in_blas, nest_is_quicker
from nnc_cpu.reference import by_reference
from nnc_cpu.routine import Make, Routine
from nnc_cpu.scattering import SequentialScatter
from nnc_cpu.silence import quiet_launch
from nnc_cpu.sorting.backend import RowsByDigits

MAKERS: Mapping[str, Make] = {
    **{name: by_reference(op.reference) for name, op in OPERATORS.items() if op.reference is not None},
    **elementwise.MAKERS, **reductions.MAKERS, **linear.MAKERS, **movement.MAKERS, **indexing.MAKERS,
    **convolution.MAKERS, **pooling.MAKERS, **neural.MAKERS, **random.MAKERS, **creation.MAKERS,
    **scans.MAKERS, **ordering.MAKERS, **lapack.MAKERS,
}  # fmt: skip
"""Operators that users call; other commands are made by the engine alone."""
COMMANDS: Mapping[str, Make] = {**MAKERS, **fused.MAKERS, **movement.PACKING}
INPLACE: Mapping[str, Sequence[int]] = {**elementwise.INPLACE, "update_slice": (0,), "scatter": (0,)}


@lru_cache(maxsize=4096)
def routine_for(command: Command) -> Routine:
    """The routine of a command; it holds no arrays, so all threads and graphs share it."""
    return COMMANDS[command.name](command)


class NumpyKernel(Kernel):
    """A command as NumPy calls that write into its buffers."""

    def __init__(self, command: Command) -> None:
        self.layouts = (*command.inputs, *command.outputs)
        self.routine = routine_for(command)
        self.scratch = self.routine.placed

    def bind_arrays(self, arrays: Iterable[np.ndarray[Any, Any]]) -> Launch:
        """The same with arrays that lie as `layouts`, then `scratch`, say."""
        return quiet_launch(self.routine.bind(*arrays))

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        count = len(self.layouts)
        arrays = [array_in(b, x) for b, x in zip(buffers[:count], self.layouts, strict=True)]  # type: ignore[arg-type]
        workspace = buffers[count] if len(buffers) > count else np.empty(self.routine.workspace, np.uint8)
        return self.bind_arrays([*arrays, *self.routine.scratch_in(workspace)])  # type: ignore[arg-type]


class NumpyBackend(CommandBackend):
    """Runs every command of one operator."""

    name = "numpy"

    def __init__(self, operator: str, fallback: bool = False) -> None:
        self.operator, self.fallback = operator, fallback

    def refuse(self, command: Command) -> str | None:
        return None if command.name == self.operator else f"made for {self.operator}"

    def prepare(self, command: Command) -> Kernel:
        return NumpyKernel(command)

    def workspace(self, command: Command) -> int:
        return routine_for(command).workspace

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        if not offered:
            return ()
        out = command.output
        willing = INPLACE.get(self.operator, ())
        return tuple(i for i in offered
                     if i in willing and (command.inputs[i].shape, command.inputs[i].dtype) == (out.shape, out.dtype))


class LoneMatmulKernel(NumpyKernel):
    """A matrix product on one thread."""

    def bind_arrays(self, arrays: Iterable[np.ndarray[Any, Any]]) -> Launch:
        return on_one_thread(super().bind_arrays(arrays))


class MatmulBackend(NumpyBackend):
    """Leaves to loop nests what is small, as a call takes longer and loops of graphs return to Python for them, and
    integers, which it does not know.  In what it runs it keeps BLAS's threads out of the way of ours."""

    def refuse(self, command: Command) -> str | None:
        return super().refuse(command) or ("its loop nest is quicker" if is_slow_in_blas(command) else None)

    def prepare(self, command: Command) -> Kernel:
        steps = command.inputs[0].shape[-2 if command.attributes[0] else -1]
        return (LoneMatmulKernel if is_in_the_way(command.output.size * steps) else NumpyKernel)(command)


class ConvolutionBackend(NumpyBackend):
    """Leaves convolutions of each channel by itself, and of few channels, to loop nests: there is next to nothing to
    multiply by BLAS; and its threads, which go on turning for a while, would be in the way of ours.  Those that graphs
    run with channels last are left to them too, so that their bits are the same alone."""

    def refuse(self, command: Command) -> str | None:
        left = convolution.is_depthwise(command) or nest_is_quicker(command) or is_with_channels_first(command)
        return super().refuse(command) or ("its loop nest is quicker" if left else None)


class TopBackend(NumpyBackend):
    """Chooses a few elements of rows by searches instead, which fuse and need no Python."""

    def instead(self, F: Any, inputs: Sequence[Any], command: Command) -> Any:
        return by_searches(F, inputs, command)


class SortBackend(NumpyBackend):
    """Leaves few elements, of all keys together, to the loop nest that counts how many lie before each: it needs no
    Python.  `short`: rows up to this length in any case."""

    def __init__(self, operator: str, short: int = 0) -> None:
        super().__init__(operator)
        self.short = short

    def refuse(self, command: Command) -> str | None:
        return super().refuse(command) or ("counting is quicker" if self._is_counted(command) else None)

    def _is_counted(self, command: Command) -> bool:
        [x], length = command.inputs, command.output.shape[command.attributes[0]]
        return x.size * length <= MOST_COUNTED or (length <= self.short and x.dtype.itemsize >= 4)


class OrderBackend(RowsByDigits):
    """Sorts by digits what is more than a few elements."""

    def refuse(self, command: Command) -> str | None:
        return super().refuse(command) or SortBackend("argsort", SHORT).refuse(command)


class LexsortBackend(SortBackend):
    """Leaves keys that machine code sorts to it too, one after the other."""

    def refuse(self, command: Command) -> str | None:
        return super().refuse(command) or ("digits are quicker" if self._are_by_digits(command) else None)

    def _are_by_digits(self, command: Command) -> bool:
        [keys], out = command.inputs, command.output
        key = Command("argsort", (*command.attributes, False), (Layout.packed(out.shape, keys.dtype),), (out,))
        return OrderBackend().refuse(key) is None


class JoinBackend(NumpyBackend):
    """Joins many arrays: machine code has instructions for each of them, of which thousands take minutes to compile."""

    def refuse(self, command: Command) -> str | None:
        few = len(command.inputs) <= MOST_JOINED
        return super().refuse(command) or ("the loop nest of so few inputs is quicker" if few else None)


class FusedBackend(NumpyBackend):
    """Runs the programs that there are loops for."""

    programs = tuple(fused.LOOPS)

    def refuse(self, command: Command) -> str | None:
        return super().refuse(command) or (None if fused.loop_of(command) else "there is no loop for this program")

    def inplace(self, command: Command, offered: tuple[int, ...]) -> tuple[int, ...]:
        loop, out = fused.loop_of(command), command.output
        willing = () if loop is None else loop.inplace
        return tuple([i for i in willing
                      if (command.inputs[i].shape, command.inputs[i].dtype) == (out.shape, out.dtype)])


MOST_COUNTED, SHORT = 1 << 14, 64
"""Comparisons that are made sooner than Python calls NumPy, and the length of rows for which NumPy's stable sort is no
quicker."""
MOST_JOINED = 64
"""Inputs of a loop nest; compiling takes some milliseconds for each."""
BETTER_THAN_NESTS = frozenset({
    "matmul", "conv", "conv_input_gradient", "conv_kernel_gradient",  # BLAS
    "sort", "argsort", "arg_top_k", "lexsort", "earlier",  # fewer comparisons
    "region_product", "region_product_gradient", "roi_pool_index",  # what lies in a region, not all of its image
})  # fmt: skip
"""Operators whose NumPy code goes before their loop nests, and those of their parts."""


def _is_nest(operator: str) -> bool:
    """Tell whether loop nests can do what an operator does, and sooner."""
    op = PACK if operator == PACK.name else OPERATORS.get(operator)
    nested = op is not None and (op.nest is not None or op.scalar is not None or op.decompose is not None)
    return nested and operator not in BETTER_THAN_NESTS


def backends_beside(machine_code: bool) -> Mapping[str, tuple[CommandBackend, ...]]:
    """NumPy's code by operator; where loop nests become machine code they go before most of it."""
    plain: dict[str, tuple[CommandBackend, ...]] = {
        name: (NumpyBackend(name, machine_code and _is_nest(name)),) for name in COMMANDS if name != FUSED.name}
    if not machine_code:
        return {**plain, FUSED.name: (FusedBackend(FUSED.name),)}
    plain["concat"] = (JoinBackend("concat"), *plain["concat"])
    plain["matmul"] = (MatmulBackend("matmul"),)
    plain["arg_top_k"] = (TopBackend("arg_top_k"),)
    plain |= {"sort": (SortBackend("sort"),), "lexsort": (LexsortBackend("lexsort"),)}
    plain["argsort"] = (OrderBackend(), SortBackend("argsort", SHORT))
    plain["scatter"] = (SequentialScatter(), *plain["scatter"])
    plain |= {name: (backend, *plain[name]) for name, backend in matrices(NumpyKernel).items()}
    plain |= {name: (ConvolutionBackend(name), NumpyBackend(name, fallback=True)) for name in convolution.MAKERS}
    plain |= {name: (found, *plain[name]) for name, found in FOURIER.items()}
    products = {name: (*found, *plain.get(name, ())) for name, found in PRODUCTS.items()}
    attention = {name: (backend,) for name, backend in ATTENTION.items()}
    return {**plain, **products, **attention, FUSED.name: ()}
