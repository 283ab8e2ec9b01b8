"""The Array API standard 2024.12 as a table: what a namespace and an array have to have.

Functions are named with the parameters that the standard gives them.
"""

from __future__ import annotations

CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip

_LIKE = "x, /, *, dtype=None, device=None"
_FILLED = "shape, *, dtype=None, device=None"
_REDUCED = "x, /, *, axis=None, keepdims=False"
_SUMMED = "x, /, *, axis=None, dtype=None, keepdims=False"
_SORTED = "x, /, *, axis=-1, descending=False, stable=True"
_CUMULATED = "x, /, *, axis=None, dtype=None, include_initial=False"
_FFT = "x, /, *, n=None, axis=-1, norm='backward'"
_FFTN = "x, /, *, s=None, axes=None, norm='backward'"

UNARY = (
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "bitwise_invert", "ceil", "conj", "cos", "cosh", "exp",
    "expm1", "floor", "imag", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "negative",
    "positive", "real", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "square", "sqrt", "tan", "tanh",
    "trunc",
)  # fmt: skip
BINARY = (
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign",
    "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less", "less_equal", "logaddexp",
    "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "nextafter", "not_equal", "pow",
    "remainder", "subtract",
)  # fmt: skip

FUNCTIONS: dict[str, str] = {
    # creation
    "arange": "start, /, stop=None, step=1, *, dtype=None, device=None",
    "asarray": "obj, /, *, dtype=None, device=None, copy=None", "empty": _FILLED, "empty_like": _LIKE,
    "eye": "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None", "from_dlpack": "x, /, *, device=None, copy=None",
    "full": "shape, fill_value, *, dtype=None, device=None",
    "full_like": "x, /, fill_value, *, dtype=None, device=None",
    "linspace": "start, stop, /, num, *, dtype=None, device=None, endpoint=True",
    "meshgrid": "*arrays, indexing='xy'", "ones": _FILLED, "ones_like": _LIKE, "tril": "x, /, *, k=0",
    "triu": "x, /, *, k=0", "zeros": _FILLED, "zeros_like": _LIKE,
    # data types and inspection
    "astype": "x, dtype, /, *, copy=True, device=None", "can_cast": "from_, to, /", "finfo": "type, /",
    "iinfo": "type, /", "isdtype": "dtype, kind", "result_type": "*arrays_and_dtypes", "__array_namespace_info__": "",
    # elements
    **dict.fromkeys(UNARY, "x, /"), **dict.fromkeys(BINARY, "x1, x2, /"), "clip": "x, /, min=None, max=None",
    # indices
    "take": "x, indices, /, *, axis=None", "take_along_axis": "x, indices, /, *, axis=-1",
    # linear algebra
    "matmul": "x1, x2, /", "matrix_transpose": "x, /", "tensordot": "x1, x2, /, *, axes=2",
    "vecdot": "x1, x2, /, *, axis=-1",
    # shapes
    "broadcast_arrays": "*arrays", "broadcast_to": "x, /, shape", "concat": "arrays, /, *, axis=0",
    "expand_dims": "x, /, axis", "flip": "x, /, *, axis=None", "moveaxis": "x, source, destination, /",
    "permute_dims": "x, /, axes", "repeat": "x, repeats, /, *, axis=None", "reshape": "x, /, shape, *, copy=None",
    "roll": "x, /, shift, *, axis=None", "squeeze": "x, /, axis", "stack": "arrays, /, *, axis=0",
    "tile": "x, repetitions, /", "unstack": "x, /, *, axis=0",
    # searching, sets, sorting
    "argmax": _REDUCED, "argmin": _REDUCED, "count_nonzero": _REDUCED, "nonzero": "x, /",
    "searchsorted": "x1, x2, /, *, side='left', sorter=None", "where": "condition, x1, x2, /", "unique_all": "x, /",
    "unique_counts": "x, /", "unique_inverse": "x, /", "unique_values": "x, /", "argsort": _SORTED, "sort": _SORTED,
    # statistics and utilities
    "cumulative_prod": _CUMULATED, "cumulative_sum": _CUMULATED, "max": _REDUCED, "mean": _REDUCED, "min": _REDUCED,
    "prod": _SUMMED, "std": "x, /, *, axis=None, correction=0.0, keepdims=False", "sum": _SUMMED,
    "var": "x, /, *, axis=None, correction=0.0, keepdims=False", "all": _REDUCED, "any": _REDUCED,
    "diff": "x, /, *, axis=-1, n=1, prepend=None, append=None",
    # extension linalg
    "linalg.cholesky": "x, /, *, upper=False", "linalg.cross": "x1, x2, /, *, axis=-1", "linalg.det": "x, /",
    "linalg.diagonal": "x, /, *, offset=0", "linalg.eigh": "x, /", "linalg.eigvalsh": "x, /", "linalg.inv": "x, /",
    "linalg.matmul": "x1, x2, /", "linalg.matrix_norm": "x, /, *, keepdims=False, ord='fro'",
    "linalg.matrix_power": "x, n, /", "linalg.matrix_rank": "x, /, *, rtol=None", "linalg.matrix_transpose": "x, /",
    "linalg.outer": "x1, x2, /", "linalg.pinv": "x, /, *, rtol=None", "linalg.qr": "x, /, *, mode='reduced'",
    "linalg.slogdet": "x, /", "linalg.solve": "x1, x2, /", "linalg.svd": "x, /, *, full_matrices=True",
    "linalg.svdvals": "x, /", "linalg.tensordot": "x1, x2, /, *, axes=2",
    "linalg.trace": "x, /, *, offset=0, dtype=None", "linalg.vecdot": "x1, x2, /, *, axis=-1",
    "linalg.vector_norm": "x, /, *, axis=None, keepdims=False, ord=2",
    # extension fft
    "fft.fft": _FFT, "fft.ifft": _FFT, "fft.fftn": _FFTN, "fft.ifftn": _FFTN, "fft.rfft": _FFT, "fft.irfft": _FFT,
    "fft.rfftn": _FFTN, "fft.irfftn": _FFTN, "fft.hfft": _FFT, "fft.ihfft": _FFT,
    "fft.fftfreq": "n, /, *, d=1.0, dtype=None, device=None",
    "fft.rfftfreq": "n, /, *, d=1.0, dtype=None, device=None", "fft.fftshift": "x, /, *, axes=None",
    "fft.ifftshift": "x, /, *, axes=None",
}  # fmt: skip

_OPERATORS = (
    "add", "and", "floordiv", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift", "sub", "truediv", "xor",
)  # fmt: skip
ATTRIBUTES = ("dtype", "device", "mT", "ndim", "shape", "size", "T")
METHODS = (
    *[f"__{side}{name}__" for name in _OPERATORS for side in ("", "r", "i")], "__abs__", "__array_namespace__",
    "__bool__", "__complex__", "__dlpack__", "__dlpack_device__", "__eq__", "__float__", "__ge__", "__getitem__",
    "__gt__", "__index__", "__int__", "__invert__", "__le__", "__lt__", "__ne__", "__neg__", "__pos__", "__setitem__",
    "to_device",
)  # fmt: skip
INSPECTION = ("capabilities", "default_device", "default_dtypes", "devices", "dtypes")
