"""Which instructions are written out, and how values are renumbered."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import bfloat16, float32, float64, int32, int64
from nnc_core.codegen import C99, expand, interpret, render
from nnc_core.codegen.expansions import EXPANSIONS, is_expanded
from tests.codegen.functions import nest_of
from tests.codegen.nests import Writer, as_bytes, at, elementwise


def test_nothing_to_expand_is_the_same_nest() -> None:
    nest = elementwise("sine", "sin", float32, [np.zeros(3, np.float32)], float32)
    assert expand(nest) is nest
    assert expand(nest, {"sin"}) is not nest


def test_only_the_functions_asked_for() -> None:
    x = np.zeros(3, np.float32)
    nest = elementwise("exponential", "exp", float32, [x], float32)
    assert expand(nest, {"log"}) is nest
    with pytest.raises(ValueError, match="sqrt"):
        expand(nest, {"sqrt"})


def test_powers_are_written_out_in_float32_alone() -> None:
    for dtype, written in ((float32, True), (bfloat16, True), (float64, False), (int32, False)):
        nest = elementwise("power", "power", dtype, [np.ones(3, dtype)] * 2, dtype)
        assert (expand(nest, {"power"}) is not nest) == written


def test_no_call_of_the_library_is_left() -> None:
    text = "".join(render(nest_of(f, float64), C99) for f in EXPANSIONS if is_expanded(f, float64))
    for name in ("exp", "log", "tanh", "expm1", "pow", "erf", "lgamma", "atan", "fma", "sin", "cos", "tan"):
        assert f" {name}(" not in text and f"{name}(v" not in text


def test_values_are_renumbered_through_stages_and_gathers() -> None:
    """A row softmax of rows taken by index, whose exponentials stand before reductions and later loads."""
    rng = np.random.default_rng(6)
    x, index = rng.standard_normal((5, 7)), np.array([3, 0, 4, 3], np.int64)
    n = Writer("taken softmax", (4,), [(float64, False), (int64, False), (float64, True)])
    n.op("exp", float64, n.constant(1.0, float64))  # used by nobody, moves all later numbers
    taken = n.load(1, at({0: 1}, 1))
    row = at({}, 7, extent=5, checked=True, gather=taken), at({1: 1}, 1)
    n.stage(7)
    n.op("tanh", float64, n.load(0, *row, fill=0))
    total = n.reduce("sum", n.op("exp", float64, n.load(0, *row, fill=0)), float64)
    n.stage(7)
    grown = n.op("exp", float64, n.load(0, *row, fill=0))
    n.store(2, n.op("divide", float64, grown, total), at({0: 7, 1: 1}, 1))
    result = np.zeros((4, 7))
    interpret(expand(n.build()), [as_bytes(a) for a in (x, index, result)])
    wanted = np.exp(x[index])
    np.testing.assert_allclose(result, wanted / wanted.sum(1, keepdims=True), rtol=1e-14)
