"""Functions that NumPy or SciPy has under the same name, called with the same arguments: a row for each name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands

Call = tuple[str, tuple[Any, ...], dict[str, Any]]
"""The name of a function, its operands, by the names of arrays of `Operands` or as they are, and its settings."""

UNARY = {
    "a": "angle asinh atan cbrt ceil conj cos cosh deg2rad exp2 expm1 i0 imag iscomplex isneginf isposinf isreal "
         "logical_not negative positive rad2deg real sinh spacing tan trunc argmin min nanargmax nanargmin nancumprod "
         "nancumsum nanmin nanprod nanstd cumulative_sum cumulative_prod ediff1d flatnonzero gradient iscomplexobj "
         "isrealobj trim_zeros unwrap unique unique_all atleast_1d atleast_2d atleast_3d ravel sort_complex "
         "ones_like empty_like histogram_bin_edges",
    "positive": "log log10 log1p log2 reciprocal sqrt",
    "unit": "acos asin atanh",
    "above": "acosh",
    "i": "bitwise_invert bitwise_not invert",
    "m": "corrcoef matrix_transpose argwhere unstack",
    "square": "diagonal tril_indices_from triu_indices_from diag_indices_from",
    "v1": "diagflat vander",
}
"""Names of unary functions by the array that they are called with."""
BINARY = {
    ("a", "b"): "array_equiv atan2 copysign divide equal fmax fmin greater greater_equal hypot inner less less_equal "
                "logaddexp2 logical_and logical_or logical_xor maximum minimum multiply not_equal subtract vecdot "
                "add divmod",
    ("positive", "b"): "float_power pow",
    ("i", "i"): "bitwise_or bitwise_xor gcd lcm",
    ("g", "small"): "bitwise_left_shift bitwise_right_shift left_shift right_shift setxor1d",
    ("square", "square"): "matmul",
    ("square", "v1"): "matvec",
    ("v1", "square"): "vecmat",
    ("bits", "a"): "extract",
    ("kernel", "kernel"): "polyadd polydiv polymul polysub",
}
"""Names of binary ones by both arrays."""
SPECIAL = {
    ("positive",): "digamma exprel gamma gammaln gammasgn entr",
    ("a",): "cosm1 dawsn erfc erfcx exp10 expit i0e i1 i1e log_ndtr ndtr",
    ("unit",): "erfinv",
    ("share",): "logit",
    ("positive", "above"): "beta betaln rel_entr poch xlog1py xlogy",
    ("above", "positive"): "binom zeta comb perm",
    ("positive", "share"): "boxcox boxcox1p inv_boxcox inv_boxcox1p",
    (1, "positive"): "polygamma",
    ("small",): "factorial",
}
"""Names of SciPy's special functions by their operands."""
SETTINGS: list[Call] = [
    ("array_split", ("a", 3), {}),
    *[(name, (["a", "b"],), {}) for name in ("vstack", "hstack", "dstack", "column_stack")],
    ("apply_over_axes", (np.sum, "m", 0), {}), ("bartlett", (8,), {}), ("blackman", (8,), {}), ("hamming", (8,), {}),
    ("hanning", (8,), {}), ("kaiser", (8, 5.0), {}), ("block", ([["square", "square"]],), {}),
    ("broadcast_arrays", ("a", "m1"), {}), ("broadcast_shapes", ((3, 1), (4,)), {}),
    ("broadcast_to", ("v1", (4, "side")), {}), ("can_cast", ("int32", "float64"), {}),
    ("choose", ("parity", ["a", "b"]), {}), ("dsplit", ("cube", 2), {}), ("hsplit", ("m", 2), {}),
    ("vsplit", ("m", 2), {}), ("empty", ("size",), {}), ("full_like", ("a", 2.0), {}), ("full", ("size", 2.0), {}),
    ("ones", ("size",), {}), ("zeros_like", ("a",), {}), ("expand_dims", ("a", 0), {}), ("squeeze", ("m1", 0), {}),
    ("select", (["bits"], ["a"]), {}), ("geomspace", (1.0, 10.0, "size"), {}), ("logspace", (0.0, 1.0, "size"), {}),
    ("histogramdd", ("table",), {}), ("identity", ("side",), {}), ("indices", (("side", "side"),), {}),
    ("diag_indices", ("side",), {}), ("ix_", ("names", "names"), {}), ("mask_indices", (20, np.triu), {}),
    ("moveaxis", ("m", 0, 1), {}), ("permute_dims", ("m", (1, 0)), {}), ("swapaxes", ("m", 0, 1), {}),
    ("nanpercentile", ("a", 30), {}), ("poly", ("kernel",), {}), ("polyder", ("kernel",), {}),
    ("polyint", ("kernel",), {}), ("polyfit", ("a", "b", 2), {}),
    ("ravel_multi_index", (("small", "small"), (64, 64)), {}), ("unravel_index", ("i", ("side", "size")), {}),
    ("reshape", ("a", (2, -1)), {}), ("result_type", ("a", "i"), {}), ("roots", ("kernel",), {}),
    ("tri", ("side",), {}), ("tril_indices", ("side",), {}), ("triu_indices", ("side",), {}), ("fmod", ("i", 7), {}),
    ("concat", (["a", "b"],), {}), ("finfo", ("float32",), {}), ("iinfo", ("int32",), {}),
    ("isdtype", (np.dtype("int32"), "integral"), {}), ("astype", ("a", "int32"), {}),
]  # fmt: skip
LINALG: list[Call] = [
    *[(name, ("matrix",), {}) for name in ("cond", "det", "inv", "lu", "matrix_norm", "matrix_rank", "norm", "pinv",
                                           "qr", "slogdet", "svd", "svdvals", "trace", "diagonal", "matrix_transpose",
                                           "eig", "eigvals", "expm", "schur", "polar")],
    ("hessenberg", ("matrix",), {"calc_q": True}),
    *[(name, ("definite",), {}) for name in ("cholesky", "eigh", "eigvalsh")],
    *[(name, ("row",), {}) for name in ("circulant", "companion", "hankel", "toeplitz")],
    *[(name, ("definite", "matrix"), {}) for name in ("solve", "solve_triangular", "matmul", "block_diag",
                                                      "solve_continuous_lyapunov", "vecdot")],
    ("lstsq", ("matrix", "row"), {"rcond": None}), ("matrix_power", ("matrix", 3), {}), ("outer", ("v1", "v2"), {}),
    ("multi_dot", (["matrix", "matrix", "matrix"],), {}), ("tensordot", ("matrix", "matrix"), {"axes": 1}),
    ("tensorinv", ("matrix",), {"ind": 1}), ("tensorsolve", ("matrix", "row"), {}),
]  # fmt: skip
FFT: list[Call] = [
    *[(name, ("a",), {}) for name in ("ifft", "rfft", "ihfft", "fftshift", "ifftshift")],
    *[(name, ("m",), {}) for name in ("fft2", "fftn", "ifft2", "ifftn", "rfft2", "rfftn")],
    *[(name, ("spectrum",), {}) for name in ("irfft", "hfft")],
    *[(name, ("spectra",), {}) for name in ("irfft2", "irfftn")],
    *[(name, ("size",), {}) for name in ("fftfreq", "rfftfreq")],
]  # fmt: skip


THEIRS = frozenset(("rcond", "calc_q"))
"""Settings by which NumPy or SciPy does what our function always does."""


def _given(of: Operands, operand: Any, prefix: str) -> Any:
    """A name of an array as the array (`prefix` "") or as the tensor ("t_"); anything else as it is."""
    if isinstance(operand, (list, tuple)):
        return operand.__class__([_given(of, o, prefix) for o in operand])
    if not isinstance(operand, str) or operand not in vars(of):
        return operand
    kept = vars(of)[operand]
    return getattr(of, prefix + operand) if isinstance(kept, np.ndarray) else kept


def _case(of: Operands, call: Call, ours: Any, theirs: ModuleType) -> Case:
    name, operands, settings = call
    sides: list[Callable[[], object]] = [
        partial(getattr(module, name), *[_ours(_given(of, o, prefix), module) for o in operands],
                **{k: v for k, v in settings.items() if k not in THEIRS or prefix == ""})
        for module, prefix in ((ours, "t_"), (theirs, ""))]
    return Case(name, *sides)


def _ours(operand: Any, module: Any) -> Any:
    """Functions that are handed over are those of the module itself."""
    return getattr(module, operand.__name__) if callable(operand) and hasattr(operand, "__name__") else operand


def _calls(names: dict[Any, str]) -> list[Call]:
    return [(name, operands if isinstance(operands, tuple) else (operands,), {})
            for operands, listed in names.items() for name in listed.split()]


def _quiet(case: Case) -> Case:
    def numpy() -> object:
        with np.errstate(all="ignore"):
            return case.numpy()

    return case._replace(numpy=numpy)


def by_name(of: Operands) -> list[Case]:
    """Rows of NumPy's functions, and of SciPy's where it is installed."""
    cases = [_case(of, call, nnc, np) for call in (*_calls(UNARY), *_calls(BINARY), *SETTINGS) if hasattr(np, call[0])]
    cases += [_case(of, call, nnc.fft, np.fft)._replace(name=f"fft.{call[0]}") for call in FFT]
    try:
        special, linalg = import_module("scipy.special"), import_module("scipy.linalg")
    except ImportError:
        special, linalg = None, np.linalg
    cases += [_case(of, call, nnc, special) for call in _calls(SPECIAL) if special is not None]
    for call in LINALG:
        source = np.linalg if hasattr(np.linalg, call[0]) else linalg
        if hasattr(source, call[0]) and hasattr(nnc.linalg, call[0]):
            cases.append(_case(of, call, nnc.linalg, source)._replace(name=f"linalg.{call[0]}"))
    return [_quiet(case) for case in cases]
