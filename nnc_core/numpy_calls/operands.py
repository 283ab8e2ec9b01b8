"""Operands of NumPy's functions: which are ours, and what NumPy makes of them where it computes itself."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from nnc_core.base.errors import OperandError
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dim
from nnc_core.values.reading import ReadAsTensor
from nnc_core.values.tensor import Tensor

OURS = (Tensor, ReadAsTensor)
ADVICE = "np.asarray(x) hands NumPy the elements, nnc.callback in compiled code too; or a function of nnc's"


def is_ours(x: Any) -> TypeGuard[Tensor | ReadAsTensor]:
    """True for a tensor, and for state that stands for one."""
    return isinstance(x, OURS)


def is_known(x: Any) -> bool:
    """True for what our functions take as an operand; others may have protocols of their own."""
    return isinstance(x, (*OURS, np.ndarray, np.generic, bool, int, float, complex, list, tuple, Dim))


def on_host(x: Any) -> Any:
    """Tensors as arrays of NumPy's, also in lists, tuples and dicts; anything else as it is."""
    if is_ours(x):
        return np.asarray(x)
    if type(x) in (list, tuple):
        return type(x)(map(on_host, x))
    return {k: on_host(v) for k, v in x.items()} if type(x) is dict else x


def refusal(name: str, why: str = "does not take tensors", hint: str = ADVICE) -> OperandError:
    """The error for a function of NumPy's arrays that nobody can answer."""
    return OperandError(f"the function {name} of NumPy's arrays {why}", line=show_line(user_line()), hint=hint)


def not_written(name: str) -> OperandError:
    """The error for a tensor that NumPy is to write into."""
    return refusal(name, "cannot write into a tensor", "x[...] = the result, or an array of NumPy's for out=")
