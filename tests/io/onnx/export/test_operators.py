"""Each operator by itself: valid, and with our values, by onnx' evaluator and by ONNX Runtime where it is installed.

A few cases of the kit's run for each operator, drawn with the seed that is printed; the rest are slow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from zlib import crc32

import ml_dtypes
import numpy as np
import pytest

from nnc_core.base.dtype import DType
from nnc_core.base.errors import NotSupportedError
from nnc_core.io import to_onnx
from nnc_core.io.onnx.writing.dtypes import ELEMENT_TYPES
from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.case import Case
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.host import expected
from nnc_plugins.conformance.running import one_operator_graph
from tests.conftest import SEED
from tests.io.onnx.export.evaluating import HAS_RUNTIME, NoKernelError, by_reference, by_runtime, check

SAMPLE = 3
LARGEST = 2**17
"""Elements of operands, of which other software takes too long for more."""

REFUSED = frozenset((
    "bernoulli", "betaln", "bitcast", "care", "cholesky", "cofactor", "complex", "conj", "copysign", "dare", "dawsn",
    "digamma", "distinct_integers", "eig", "eigh", "eigvals", "eigvalsh", "erfc", "erfcx", "erfinv", "exponent",
    "fft", "fold", "gcd", "hessenberg", "i0", "i0e", "i1", "i1e", "imag", "inv", "irfft", "lcm", "ldexp", "lgamma",
    "log_ndtr", "lstsq", "lu", "mantissa", "matrix_rank", "max_pool_index", "ndtr", "nextafter", "normal",
    "open_uniform", "permutation", "pinv", "polygamma", "pool_put", "pool_take", "qr", "random_binomial",
    "random_bits", "random_choice", "random_gamma", "random_multinomial", "random_poisson", "real",
    "region_product_gradient", "repeat_index", "rfft", "roi_pool", "roi_pool_index", "schur", "signbit", "slogdet",
    "solve", "solve_triangular", "spread", "stein", "sum_pool_gradient", "svd", "svdvals", "sylvester", "uniform",
    "zeta",
))  # fmt: skip
"""Operators that ONNX does not have, and cannot say in a few."""
PARTLY = {
    "conv_kernel_gradient": "in groups", "scatter": "slices at indices of rows' own",
    "cast": "to complex numbers and storage dtypes",
    "max_pool": "64 bits", "max_pool_place": "integers", "sum_pool": "integers", "nms_order": "float64",
}  # fmt: skip
"""Operators of which some cases are refused."""

ENDLESS = "infinity times zero"
OTHERS = {
    "avg_pool": "the sum of an infinity and its opposite", "max_pool": "NaN", "roi_align": ENDLESS, "mish": ENDLESS,
    "silu": ENDLESS, "softsign": ENDLESS, "scaled_dot_product_attention": "rows of infinities",
}  # fmt: skip
"""Operators that give something else for numbers that are not finite."""
NOT_FINITE = ("specials", "extremes", "NaN")
TAILS = frozenset(("gelu",))
"""Operators of which ONNX computes small results as differences of larger numbers."""
REFERENCE_ERRS = {
    ("conv_input_gradient", "no images"): "no images", ("conv_input_gradient", "group"): "groups",
    ("conv_input_gradient", "depthwise"): "groups", ("erf", "float64"): "erf is of float32",
    ("gelu", "float64"): "erf is of float32", ("gru", "backwards, of several"): "no scan backwards",
    ("lstm", "backwards, of several"): "no scan backwards", ("rnn", "backwards, of several"): "no scan backwards",
    ("gru", "length 0"): "nothing to stack", ("lstm", "length 0"): "nothing to stack",
    ("rnn", "length 0"): "nothing to stack", ("rnn", "relu"): "no Relu", ("lexsort", "large"): "many elements",
    ("log_softmax", "far apart"): "underflow", ("log_softmax", "float16"): "underflow",
    ("logsumexp", "far apart"): "underflow",
    ("max_pool", "int8"): "NaN as an integer", ("max_pool_place", ""): "places within the window",
    ("softsign", "scalar"): "shape ()", ("standardise", "float16"): "moments of float16",
    ("unique_counts", "NaN"): "NaN is NaN", ("unique_index", "NaN"): "NaN is NaN",
    ("unique_inverse", "NaN"): "NaN is NaN",
}  # fmt: skip
"""Cases that onnx' evaluator gets wrong or does not do, which are only checked: what is in their names, and why."""
WRITTEN = sorted(CASES.keys() - REFUSED - {"transfer"})


def drawn(name: str, seed: int) -> tuple[list[tuple[Case, DType]], list[tuple[Case, DType]]]:
    """A sample of an operator's cases, and the rest."""
    pairs = [(case, dtype) for case in CASES[name] for dtype in case.dtypes if dtype in ELEMENT_TYPES]
    order = np.random.default_rng([seed, crc32(name.encode())]).permutation(len(pairs))
    return [pairs[k] for k in order[:SAMPLE]], [pairs[k] for k in order[SAMPLE:]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "share" not in metafunc.fixturenames:
        return
    found = []
    for name in WRITTEN:
        sample, rest = drawn(name, metafunc.config.stash[SEED])
        found += [pytest.param(name, sample, id=name), pytest.param(name, rest, id=f"{name}-rest",
                                                                    marks=pytest.mark.slow)]
    metafunc.parametrize(("name", "share"), found)


def fault(name: str, case: Case, dtype: DType, evaluate: Callable[..., list[object]] | None) -> str | None:
    """What is wrong with a case; None where nothing is."""
    op, what = OPERATORS[name], f"{case.label} {dtype}"
    inputs = case.inputs(np.random.default_rng(0), dtype)
    attributes = case.attribute_values(op, dtype)
    if any(x.size > LARGEST for x in inputs):
        return None
    try:
        model = to_onnx(one_operator_graph(stack_for("strict:0"), op, inputs, attributes))
    except NotSupportedError as error:
        return None if name in PARTLY else f"{what}: refused: {error}"
    check(model)
    if evaluate is None:
        return None
    wanted = expected(op, inputs, attributes)
    try:
        found = evaluate(model, {f"x{i}": x for i, x in enumerate(inputs)})
        result = tuple(found) if isinstance(wanted, tuple) else found[0]
        assert_agree(op, result, wanted, what)
    except NoKernelError:
        return None
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    return None


def errs(name: str, case: Case, dtype: DType) -> bool:
    """True for a case that onnx' evaluator is not asked about."""
    text = f"{case.label} {dtype}"
    return (dtype == ml_dtypes.bfloat16 or "bfloat16" in text or name in TAILS
            or any(op == name and part in text for op, part in REFERENCE_ERRS)
            or (name in OTHERS and any(part in text for part in NOT_FINITE)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # evaluators overflow where results do
def test_valid_and_of_our_values(name: str, share: Sequence[tuple[Case, DType]]) -> None:
    found = [fault(name, case, dtype, None if errs(name, case, dtype) else by_reference) for case, dtype in share]
    assert not any(found), "\n".join(text for text in found if text)


RUNTIME_ERRS = frozenset((
    "cos", "cross_entropy", "elu", "gelu", "heaviside", "log_softmax", "logsumexp", "mish", "power", "sigmoid",
    "silu", "sin", "sinc", "trunc", "where", "update_slice",
))  # fmt: skip
"""Operators that ONNX Runtime rounds in another way, or whose zeros lose their signs."""


@pytest.mark.skipif(not HAS_RUNTIME, reason="onnxruntime is not installed")
def test_runs_in_onnx_runtime(name: str, share: Sequence[tuple[Case, DType]]) -> None:
    """Ordinary cases: what is empty, or not finite, ONNX Runtime leaves open, or dies of."""
    if name in RUNTIME_ERRS:
        pytest.skip("rounded in another way")
    plain = [(case, dtype) for case, dtype in share if is_ordinary(case, dtype)]
    found = [fault(name, case, dtype, by_runtime) for case, dtype in plain]
    assert not any(found), "\n".join(text for text in found if text)


def is_ordinary(case: Case, dtype: DType) -> bool:
    """Tell whether operands are neither empty nor infinite, and of a dtype that NumPy has."""
    inputs = case.inputs(np.random.default_rng(0), dtype)
    is_finite = all(np.isfinite(x.astype(np.float64)).all() for x in inputs)
    return is_finite and all(x.size for x in inputs) and "bfloat16" not in f"{case.label} {dtype}" and (
        "wrapping" not in case.label and "of all" not in case.label)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_by_name(name: str) -> None:
    case = CASES[name][0]
    dtype = case.dtypes[0]
    op = OPERATORS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = case.inputs(np.random.default_rng(0), dtype)
    graph = one_operator_graph(stack_for("strict:0"), op, inputs, case.attribute_values(op, dtype))
    with pytest.raises(NotSupportedError, match="ONNX cannot say"):
        to_onnx(graph)
