"""Any scalar instruction on NumPy arrays, for the interpreter: by a function of NumPy, or else by its expansion."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, is_float
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_core.codegen.numpy_expansions import evaluate
from nnc_core.codegen.numpy_scalars import cast, known_rule, rule

Values = np.ndarray[Any, Any]


def compute(operation: str, dtype: DType, operands: list[Values]) -> Values:
    """One instruction of OPERATIONS on whole arrays that broadcast; the result has `dtype`."""
    if operation == "cast":
        return cast(operands[0], dtype)
    if operation == "bitcast":
        return np.ascontiguousarray(operands[0]).view(dtype)
    if operation == "select":
        return np.where(operands[0], operands[1], operands[2])
    source = operands[0].dtype
    if operation == "power":
        return _power(dtype, *[operand.astype(accumulator(source), copy=False) for operand in operands])
    if operation in EXPANSIONS and is_float(source) and known_rule(operation, source) is None:
        return evaluate(operation, *operands).astype(dtype, copy=False)
    result = rule(operation, source)(*(operand.astype(accumulator(source), copy=False) for operand in operands))
    return result.astype(dtype, copy=False)


def _power(dtype: DType, base: Values, exponent: Values) -> Values:
    """Each element by its own exponent: NumPy takes roots and squares by other functions where one number serves for
    all, and the bits of an element would depend on how many are computed at a time."""
    bases, exponents = np.broadcast_arrays(base, exponent)
    apart = np.stack([exponents.ravel(), exponents.ravel()], -1)
    result = rule("power", base.dtype)(np.stack([bases.ravel(), bases.ravel()], -1), apart)[:, 0]
    return result.reshape(bases.shape).astype(dtype, copy=False)
