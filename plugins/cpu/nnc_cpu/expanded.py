"""Eager kernels of functions that NumPy does not have, as machine code.

Small arrays go through NumPy until that has cost what machine code does.  Both run the same instructions and give the
same bits, so that it cannot be seen which of them runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import elementwise_nest
from nnc_cpu.addresses import arguments_of
from nnc_cpu.guards import Eager
from nnc_cpu.left import LARGE, LEFT
from nnc_cpu.nests import NestKernels, TieredKernel

if TYPE_CHECKING:
    from nnc_core.base.dtype import DType
    from nnc_cpu.llvm.kernel import NestKernel

EXPANDED: Mapping[str, tuple[Any, ...]] = {
    **dict.fromkeys(("logit", "lgamma", "digamma", "erf", "erfc", "erfcx", "erfinv", "ndtr", "log_ndtr", "dawsn", "i0",
                     "i1", "i0e", "i1e"), ()), "gelu": ("none",)}
"""Operators that are functions of one array which NumPy does not have, with these attributes."""


def beside_machine_code(eager: Mapping[str, Eager], kernels: Callable[[], NestKernels]) -> Mapping[str, Eager]:
    """The eager kernels of a device whose loop nests become machine code."""
    return {**eager, **{name: kind(eager[name], leaves) for name, (kind, leaves) in LEFT.items()},
            **{name: ExpandedFunction(name, eager[name], kernels) for name in EXPANDED}}


class ExpandedFunction:
    """A function of each element of one array, of any size below LARGE."""

    def __init__(self, name: str, by_numpy: Eager, kernels: Callable[[], NestKernels]) -> None:
        self.name, self.by_numpy, self.kernels = name, by_numpy, kernels
        self.attributes = EXPANDED[name]
        self._tiered: dict[DType, TieredKernel] = {}

    def __call__(self, x: Any, *attributes: Any) -> Any:
        if getattr(x, "size", 0) >= LARGE:
            return NotImplemented
        if x.__class__ is not np.ndarray or attributes != self.attributes or not x.flags.c_contiguous:
            return self.by_numpy(x, *attributes)
        tiered = self._tiered.get(x.dtype) or self._made(x.dtype)
        machine: NestKernel | None = tiered.ready()  # type: ignore[assignment]
        if machine is not None:
            return _run(machine, x)
        begin = perf_counter()
        out = self.by_numpy(x, *attributes)
        tiered.together.spent += perf_counter() - begin
        return out

    def _made(self, dtype: DType) -> TieredKernel:
        """The kernel of a large array: its code takes arrays of every size."""
        layout = Layout.packed((LARGE,), dtype)
        nest = elementwise_nest(OPERATORS[self.name].scalar, Command(self.name, self.attributes, (layout,), (layout,)))
        [made] = self.kernels().of([nest])
        return self._tiered.setdefault(dtype, made)


def _run(machine: NestKernel, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The code of a kernel of one axis on an array of another size."""
    out = np.empty(x.shape, x.dtype)
    numbers = (ctypes.c_int64 * 3)(0, 0, x.size)
    machine.code.function(arguments_of((x, out)), ctypes.addressof(numbers), 0, machine.code.shape.tasks((x.size,)))
    return out
