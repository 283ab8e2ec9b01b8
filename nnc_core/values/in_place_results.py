"""Results of in-place operators: what may take the place of a tensor, and in which dtype."""

from __future__ import annotations

from nnc_core.base.dtype import UNSIGNED, DType
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.symbol import show_line, user_line
from nnc_core.type import TensorSpec
from nnc_core.type.promotion import kind_rank
from nnc_core.values.dispatch import F
from nnc_core.values.value import Value


def same_kind(source: DType, target: DType) -> bool:
    """True if an in-place operator may cast: within a kind of numbers or to a wider one, as NumPy's rule "same_kind"
    has it, so that no fraction, sign or imaginary part is dropped."""
    unsigned = kind_rank(source) == 1 and target in UNSIGNED and source not in UNSIGNED
    return kind_rank(source) <= kind_rank(target) and not unsigned


def in_place_result(new: Value, old: Value | TensorSpec) -> Value:
    """The value that takes the place of an old one: cast to its dtype if both are of the same kind."""
    if new.shape != old.shape:
        spec = old.spec if isinstance(old, Value) else old
        raise ShapeError(f"the result is {new.spec}, which cannot take the place of {spec}",
                         line=show_line(user_line()), hint="write x = x + y instead of x += y")
    if new.dtype == old.dtype:
        return new
    if not same_kind(new.dtype, old.dtype):
        raise DTypeError(f"the result is {new.spec}, which cannot be cast in place to {old.dtype}: numbers of another "
                         "kind", line=show_line(user_line()), hint="write x = x + y instead of x += y, or cast y")
    return F.cast(new, dtype=old.dtype)
