"""Rules of elementwise operators: broadcasting, and the dtype of the result."""

from __future__ import annotations

from nnc_core.base import dtype as dt
from nnc_core.base.dtype import DType
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.type import Dim, DimLike, Dims, TensorSpec, is_data_dependent
from nnc_core.type.promotion import kind_rank


def broadcast(*shapes: Dims) -> Dims:
    """The common shape (NumPy's rule); named dimensions are equal only to themselves and to 1."""
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    ndim = max(map(len, shapes))
    out: list[DimLike] = []
    for position in range(-ndim, 0):
        dim: DimLike = 1
        for shape in shapes:
            if -position > len(shape) or shape[position] == 1:
                continue
            if dim != 1 and dim != shape[position]:
                raise ShapeError(f"shapes {' and '.join(map(show, shapes))} do not broadcast together",
                                 hint=_counted(dim, shape[position]) or "reshape one of them, or broadcast with "
                                                                        "expand_dims")
            dim = shape[position]
        out.append(dim)
    return tuple(out)


def _counted(*dims: DimLike) -> str:
    """Advice about a size that depends on data; empty if there is none."""
    names = [n for d in dims if isinstance(d, Dim) for n in d.names if is_data_dependent(n)]
    return f"{names[0]} is counted when it runs: length=, size= or a mask keep sizes" if names else ""


def show(shape: Dims) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def same_dtype(*specs: TensorSpec) -> DType:
    dtype = specs[0].dtype
    for spec in specs:
        if spec.dtype != dtype:
            raise DTypeError(f"dtypes {dtype} and {spec.dtype} differ", hint="cast one of them with astype")
    return dtype


def arithmetic(*xs: TensorSpec) -> TensorSpec:
    """Numbers in, the same dtype out."""
    out = same(*xs)
    if kind_rank(out.dtype) == 0:
        raise DTypeError("needs numbers, not booleans", hint="cast with astype, or use logical_* operators")
    return out


def same(*xs: TensorSpec) -> TensorSpec:
    """Any one dtype in, the same out."""
    a = xs[0]
    if len(xs) == 1:
        return a
    if len(xs) == 2:  # the usual cases first: this runs for every recorded operation
        b = xs[1]
        if a.dtype is b.dtype:
            if a.shape == b.shape or not b.shape:
                return a
            if not a.shape:
                return b
    dtype = same_dtype(*xs)
    shape = broadcast(*[x.shape for x in xs])
    for x in xs:
        if x.shape == shape:
            return x
    return TensorSpec(shape, dtype)


def floating(*xs: TensorSpec) -> TensorSpec:
    """Real floats in, floats out."""
    out = same(*xs)
    if not dt.is_float(out.dtype):
        hint = "take real(x), imag(x) or abs(x)" if dt.is_complex(out.dtype) else "cast with astype"
        raise DTypeError(f"needs floating-point numbers, not {out.dtype}", hint=hint)
    return out


def inexact(*xs: TensorSpec) -> TensorSpec:
    """Real or complex floats in, the same out."""
    out = same(*xs)
    if not dt.is_inexact(out.dtype):
        raise DTypeError(f"needs floating-point numbers, not {out.dtype}", hint="cast with astype")
    return out


def real_arithmetic(*xs: TensorSpec) -> TensorSpec:
    """Numbers that are ordered in, the same dtype out."""
    return ordered(arithmetic(*xs))


def ordering(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """Comparison of what is ordered."""
    return TensorSpec(ordered(same(a, b)).shape, dt.boolean)


def ordered(out: TensorSpec) -> TensorSpec:
    """The spec itself; DTypeError for complex numbers."""
    if dt.is_complex(out.dtype):
        raise DTypeError(f"{out.dtype} has no order", hint="compare abs(x), or real(x) and imag(x)")
    return out


def magnitude(x: TensorSpec) -> TensorSpec:
    """Numbers in, real numbers out."""
    return TensorSpec(x.shape, dt.real_of(arithmetic(x).dtype)) if dt.is_complex(x.dtype) else arithmetic(x)


def part(x: TensorSpec) -> TensorSpec:
    """Complex numbers in, real ones out."""
    if not dt.is_complex(x.dtype):
        raise DTypeError(f"needs complex numbers, not {x.dtype}")
    return TensorSpec(x.shape, dt.real_of(x.dtype))


def conjugate(x: TensorSpec) -> TensorSpec:
    """Complex numbers in, the same out."""
    part(x)
    return x


def from_parts(real: TensorSpec, imag: TensorSpec) -> TensorSpec:
    """float32 or float64 in, complex numbers out."""
    out = floating(real, imag)
    if out.dtype not in (dt.float32, dt.float64):
        raise DTypeError(f"there are no complex numbers of {out.dtype}", hint="cast with astype to float32")
    return TensorSpec(out.shape, dt.complex_of(out.dtype))


def comparison(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    out = same(a, b)
    return TensorSpec(out.shape, dt.boolean)


def logical(*xs: TensorSpec) -> TensorSpec:
    """Booleans in, booleans out."""
    out = same(*xs)
    if out.dtype != dt.boolean:
        raise DTypeError(f"needs booleans, not {out.dtype}", hint="compare with 0, or cast with astype")
    return out


def bitwise(*xs: TensorSpec) -> TensorSpec:
    """Integers or booleans in, the same out."""
    out = same(*xs)
    if dt.is_inexact(out.dtype):
        raise DTypeError(f"needs integers or booleans, not {out.dtype}")
    return out


def where(condition: TensorSpec, a: TensorSpec, b: TensorSpec) -> TensorSpec:
    if condition.dtype != dt.boolean:
        raise DTypeError(f"the condition is {condition.dtype}, not boolean", hint="compare it with 0")
    dtype = same_dtype(a, b)
    return TensorSpec(broadcast(condition.shape, a.shape, b.shape), dtype)


def cast(x: TensorSpec, dtype: DType) -> TensorSpec:
    if dt.is_complex(x.dtype) and not dt.is_complex(dtype) and dtype != dt.boolean:
        raise DTypeError(f"{x.dtype} does not become {dtype}", hint="take real(x), imag(x) or abs(x) first")
    return TensorSpec(x.shape, dtype)
