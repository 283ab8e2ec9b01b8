"""Eager kernels of operators on each element that NumPy does not have, or goes through several arrays for.

Every call runs the operator's own formula (`programs.py`): the bits depend neither on the size of an array nor on how
often the operator was called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.operator import OPERATORS
from nnc_core.operator.program import Input, Program, Step
from nnc_core.type import TensorSpec
from nnc_cpu.guards import Eager
from nnc_cpu.left import LARGE, LEFT
from nnc_cpu.memory import Array
from nnc_cpu.nests import NestKernels
from nnc_cpu.programs import MOST_PROGRAMS, PROGRAM, ElementPrograms, ProgramKernel
from nnc_cpu.sampling import sampling

EXPANDED = ("logit", "lgamma", "digamma", "polygamma", "zeta", "betaln", "erf", "erfc", "erfcx", "erfinv", "ndtr",
            "log_ndtr", "dawsn", "i0", "i1", "i0e", "i1e", "gelu", "heaviside")
"""Those that NumPy does not have."""
IN_PASSES = ("silu", "mish", "softplus", "softsign", "elu", "leaky_relu", "sigmoid", "logaddexp", "logaddexp2", "hypot",
             "nextafter", "sinc", "xlogy", "xlog1py", "entr", "ldexp", "mantissa", "exponent")
"""Those for which NumPy goes through several arrays, or calls a function for each element."""


def beside_machine_code(eager: Mapping[str, Eager], kernels: Callable[[], NestKernels]) -> Mapping[str, Eager]:
    """The eager kernels of a device whose loop nests become machine code."""
    programs = ElementPrograms(kernels)
    by_formula = {name: OperatorKernel(name, programs) for name in (*EXPANDED, *IN_PASSES)}
    return {**eager, **{name: kind(eager[name], leaves) for name, (kind, leaves) in LEFT.items()}, **by_formula,
            **sampling(by_formula["lgamma"], kernels), PROGRAM: programs}


class OperatorKernel:
    """The eager kernel of one operator: its program of one step."""

    def __init__(self, name: str, programs: ElementPrograms) -> None:
        self.op, self.programs = OPERATORS[name], programs
        self.operands = len(self.op.inputs)
        self._known: dict[tuple[Any, ...], ProgramKernel] = {}

    def __call__(self, *arguments: Any) -> Any:
        """NotImplemented for Python's numbers, of which the command of a graph makes arrays, and for complex ones."""
        arrays = arguments[: self.operands]
        kind: Any = arguments[self.operands :]
        for x in arrays:
            if x.__class__ is not np.ndarray:
                return NotImplemented
            kind += x.dtype, not x.shape
        kernel = self._known.get(kind) or self._made(kind, arrays, arguments[self.operands :])
        return NotImplemented if kernel is None else kernel.run(arrays)

    def for_layouts(self, arrays: Sequence[Any], attributes: tuple[Any, ...]) -> Eager:
        """The kernel for arrays that lie as these do."""
        if any([x.__class__ is not np.ndarray or x.dtype.kind == "c" for x in arrays]):
            return self
        self(*arrays, *attributes)
        kernel = self._known[(*attributes, *[y for x in arrays for y in (x.dtype, not x.shape)])]
        if attributes:
            return lambda *arguments: kernel.run(arguments[: len(arrays)])
        return lambda *arguments: kernel.run(arguments)

    def _made(self, kind: tuple[Any, ...], arrays: Sequence[Array],
              attributes: tuple[Any, ...]) -> ProgramKernel | None:
        if any([x.dtype.kind == "c" for x in arrays]):
            return None
        if len(self._known) >= MOST_PROGRAMS:
            self._known.clear()
        are_arrays = [bool(x.shape) for x in arrays]
        specs = tuple([TensorSpec((LARGE,) if is_array or not any(are_arrays) else (), x.dtype)
                       for x, is_array in zip(arrays, are_arrays, strict=True)])
        step = Step(self.op, attributes, tuple(map(Input, range(len(specs)))), self.op.infer(*specs, *attributes))
        return self._known.setdefault(kind, self.programs.kernel(Program((step,), specs, (0,))))
