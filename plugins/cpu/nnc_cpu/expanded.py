"""Eager kernels of functions of elements that NumPy does not have, as machine code.

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
from nnc_cpu.sampling import sampling

if TYPE_CHECKING:
    from nnc_core.base.dtype import DType
    from nnc_cpu.llvm.kernel import NestKernel

EXPANDED = ("logit", "lgamma", "digamma", "polygamma", "zeta", "betaln", "erf", "erfc", "erfcx", "erfinv", "ndtr",
            "log_ndtr", "dawsn", "i0", "i1", "i0e", "i1e", "gelu", "heaviside")
"""Operators on each element that NumPy does not have, or that are several calls of its."""
ONLY: Mapping[str, tuple[Any, ...]] = {"gelu": ("none",)}
"""Attributes with which NumPy and machine code give the same bits, where it is not with all."""


def beside_machine_code(eager: Mapping[str, Eager], kernels: Callable[[], NestKernels]) -> Mapping[str, Eager]:
    """The eager kernels of a device whose loop nests become machine code."""
    expanded = {name: ExpandedFunction(name, eager[name], kernels) for name in EXPANDED}
    return {**eager, **{name: kind(eager[name], leaves) for name, (kind, leaves) in LEFT.items()}, **expanded,
            **sampling(expanded["lgamma"], kernels)}


class ExpandedFunction:
    """A function of each element of arrays of one shape and dtype, of any size below LARGE."""

    def __init__(self, name: str, by_numpy: Eager, kernels: Callable[[], NestKernels]) -> None:
        self.name, self.by_numpy, self.kernels = name, by_numpy, kernels
        self.operands = len(OPERATORS[name].inputs)
        self._tiered: dict[tuple[Any, ...], TieredKernel] = {}

    def __call__(self, x: Any, *more: Any) -> Any:
        if getattr(x, "size", 0) >= LARGE:
            return NotImplemented
        arrays, attributes = (x, *more[: self.operands - 1]), more[self.operands - 1 :]
        if not _alike(arrays) or attributes != ONLY.get(self.name, attributes):
            return self.by_numpy(*arrays, *attributes)
        key = (x.dtype, attributes)
        tiered = self._tiered.get(key) or self._made(*key)
        machine: NestKernel | None = tiered.ready()  # type: ignore[assignment]
        if machine is not None:
            return _run(machine, arrays)
        begin = perf_counter()
        out = self.by_numpy(*arrays, *attributes)
        tiered.together.spent += perf_counter() - begin
        return out

    def _made(self, dtype: DType, attributes: tuple[Any, ...]) -> TieredKernel:
        """The kernel of large arrays: its code takes arrays of every size."""
        layout = Layout.packed((LARGE,), dtype)
        command = Command(self.name, attributes, (layout,) * self.operands, (layout,))
        [made] = self.kernels().of([elementwise_nest(OPERATORS[self.name].scalar, command)])
        return self._tiered.setdefault((dtype, attributes), made)


def _alike(arrays: tuple[Any, ...]) -> bool:
    """Tell whether these are packed arrays of one shape."""
    shape = getattr(arrays[0], "shape", None)
    return all([x.__class__ is np.ndarray and x.shape == shape and x.flags.c_contiguous for x in arrays])


def _run(machine: NestKernel, arrays: tuple[np.ndarray[Any, Any], ...]) -> np.ndarray[Any, Any]:
    """The code of a kernel of one axis on arrays of another size."""
    first = arrays[0]
    out = np.empty(first.shape, first.dtype)
    numbers = (ctypes.c_int64 * (len(arrays) + 2))(*[0] * (len(arrays) + 1), first.size)
    tasks = machine.code.shape.tasks((first.size,))
    machine.code.function(arguments_of((*arrays, out)), ctypes.addressof(numbers), 0, tasks)
    return out
