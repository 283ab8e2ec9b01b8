"""What the renderer writes: index types, names, helpers and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nnc_core.base.dtype import boolean, float16, float32, float64, int32, int64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import OPERATIONS, LoopNest
from nnc_core.codegen import C99, OPENCL, Dialect, entry_name, expand, index_type, render, render_program
from nnc_core.codegen.expansions import EXPANSIONS
from tests.codegen.nests import Writer, at, elementwise


def copy(axes: tuple[int, ...], stride: int, **rest: int) -> LoopNest:
    n = Writer("copy", axes, [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 1}, stride, **rest)), at({0: 1}, 1))
    return n.build()


@pytest.mark.parametrize(
    ("nest", "wanted"),
    [
        (copy((1000,), 1), int32),
        (copy((2**31 - 1,), 1), int32),
        (copy((2**31,), 1), int64),
        (copy((2**16, 2**16), 1), int64),
        (copy((3,), 2**30), int64),
        (copy((2,), 2**30), int32),
        (copy((2,), -(2**31)), int64),
        (copy((2,), 1, offset=2**31), int64),
        (copy((0,), 1), int32),
    ],
)
def test_indices_are_wide_only_where_they_must_be(nest: LoopNest, wanted: np.dtype) -> None:
    assert index_type(nest) == wanted
    assert ("long rest" in render(nest, OPENCL)) == (wanted == int64 and nest.points > 0)


@pytest.mark.parametrize(
    ("extent", "stride", "wanted"), [(100, 7, int32), (2**31, 7, int64), (0, 1, int64), (2**20, 2**12, int64)]
)
def test_a_gathered_index_reaches_as_far_as_its_extent(extent: int, stride: int, wanted: np.dtype) -> None:
    n = Writer("take", (4,), [(float32, False), (int64, False), (float32, True)])
    value = n.load(0, at({}, stride, extent=extent, gather=n.load(1, at({0: 1}, 1))))
    n.store(2, value, at({0: 1}, 1))
    assert index_type(n.build()) == wanted


def test_inner_axes_count() -> None:
    n = Writer("sum", (2,), [(float32, False)])
    n.stage(2**20, 2**20)
    n.reduce("sum", n.load(0), float32)
    assert index_type(n.build()) == int64


@pytest.mark.parametrize("name", ["", "while", "conv2d+bias", "1x1", "größe", "a b\n#define x"])
def test_names_are_identifiers(name: str) -> None:
    nest = LoopNest(name, (), (), ())
    assert entry_name(nest).isascii()
    assert entry_name(nest).isidentifier()
    assert entry_name(nest) in render(nest, C99)


def test_opencl_kernels_have_typed_arguments_and_a_guard() -> None:
    nest = elementwise("product", "multiply", float32, [np.zeros(10, np.float32)] * 2, float32)
    text = render(nest, OPENCL)
    assert "kernel_product(__global const float *a0, __global const float *a1, __global float *a2)" in text
    assert "if (get_global_id(0) >= 10UL) return;" in text
    assert "FP_CONTRACT OFF" in text
    assert "cl_khr" not in text


def test_float64_is_announced_where_it_is_used() -> None:
    assert "cl_khr_fp64" in render(elementwise("x", "sqrt", float64, [np.zeros(1)], float64), OPENCL)


def test_helpers_are_written_once_for_a_program() -> None:
    nest = elementwise("h", "add", float16, [np.zeros(3, np.float16)] * 2, float16)
    text = render_program({"first": nest, "second": nest}, C99)
    assert text.count("float nnc_round_float16(") == 1
    assert text.count("void first(") == text.count("void second(") == 1


@pytest.mark.parametrize(("operation", "dtype"), [("add", boolean), ("divide", int32), ("shift_left", float32)])
def test_an_operation_that_makes_no_sense(operation: str, dtype: np.dtype) -> None:
    x = np.ones(2, dtype)
    with pytest.raises(NotSupportedError, match=f"{operation} on {dtype}"):
        render(elementwise("senseless", operation, dtype, [x, x], dtype), C99)


@pytest.mark.parametrize("dialect", [C99, OPENCL], ids=["C99", "OpenCL C"])
@pytest.mark.parametrize("name", sorted(EXPANSIONS))
def test_functions_that_the_language_lacks_are_expanded(name: str, dialect: Dialect) -> None:
    """Others are called, unless they were expanded before."""
    nest = elementwise("f", name, float32, [np.ones(2, np.float32)] * OPERATIONS[name], float32)
    if name in ("digamma", "dawsn", "erfcx", "logit", "i0"):
        assert render(nest, dialect) == render(expand(nest), dialect)
    if name in ("tanh", "erf", "atan2"):
        assert re.search(rf"\b{name}f?\(v0", render(nest, dialect))
    assert "kernel_f" in render(nest, dialect)


def test_a_bitcast_between_widths_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="float32 to float64"):
        render(elementwise("bits", "bitcast", float64, [np.ones(2, np.float32)], float64), C99)


def test_loops_that_add_floats_keep_their_order() -> None:
    """Intel's compiler would add up the floats of a loop in an order of its own."""
    texts = []
    for kind, dtype in (("sum", float32), ("sum", int32), ("maximum", float32)):
        n = Writer("row", (2,), [(dtype, False)])
        n.stage(3, 4)
        n.reduce(kind, n.load(0, at({0: 12, 1: 4, 2: 1}, 1)), dtype)
        texts.append(render(n.build(), OPENCL))
    assert [text.count("vectorize(disable)") for text in texts] == [2, 0, 0]


def test_nests_that_differ_in_a_literal_only_are_not_equal() -> None:
    """Else a cache of kernels would mix them up; nests with NaN are equal to their likes."""
    nests = []
    for literal in (0.0, -0.0, 0, float("nan"), float("nan")):
        n = Writer("fill", (2,), [(float32, True)])
        n.store(0, n.constant(literal, float32), at({0: 1}, 1))
        nests.append(n.build())
    assert len(set(nests)) == 4
    assert nests[0] != nests[1]
    assert nests[3] == nests[4]
