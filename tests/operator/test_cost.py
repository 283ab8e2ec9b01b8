"""What commands cost: known counts, and every operator on the kit's cases."""

from __future__ import annotations

from math import isfinite, log2, prod
from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.cost import Cost
from nnc_core.base.dtype import float32, int64
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.operator.cost import cost_of
from nnc_core.operator.form import form_of
from nnc_core.type import TensorSpec, TupleSpec
from nnc_plugins.conformance.cases import CASES, examples


def command(name: str, *inputs: tuple[int, ...] | TensorSpec, attributes: tuple[Any, ...] = ()) -> Command:
    specs = [x if isinstance(x, TensorSpec) else TensorSpec(x, float32) for x in inputs]
    out = OPERATORS[name].infer(*specs, *attributes)
    outs = out.parts if isinstance(out, TupleSpec) else (out,)
    return Command(name, attributes, tuple(x.layout() for x in specs), tuple(x.layout() for x in outs))


def cost(name: str, *inputs: tuple[int, ...] | TensorSpec, attributes: tuple[Any, ...] = ()) -> Cost:
    return cost_of(OPERATORS[name], command(name, *inputs, attributes=attributes))


@pytest.mark.parametrize(("shapes", "transposed"), [
    (((7, 5), (5, 3)), (False, False)), (((5, 7), (3, 5)), (True, True)), (((4, 7, 5), (5, 3)), (False, False)),
])  # fmt: skip
def test_matrix_products(shapes: tuple[Any, ...], transposed: tuple[bool, bool]) -> None:
    batch = 4 if len(shapes[0]) == 3 else 1
    found = cost("matmul", *shapes, attributes=transposed)
    assert found == Cost(2 * batch * 7 * 5 * 3, 4 * (batch * 7 * 5 + 5 * 3 + batch * 7 * 3))


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_convolutions(layout: str, stride: int, groups: int) -> None:
    """2 N K C R S P Q, and as many for either gradient; the padding counts as if it were there."""
    n, c, h, w, k, r, s = 2, 4, 9, 10, 6, 3, 2
    how = ((stride, stride), ((1, 1), (0, 1)), (1, 1), groups, layout)
    x = (n, h, w, c) if layout == "NHWC" else (n, c, h, w)
    kernel = (r, s, c // groups, k) if layout == "NHWC" else (k, c // groups, r, s)
    forward = command("conv", x, kernel, attributes=how)
    y = forward.output.shape
    p, q = y[1:3] if layout == "NHWC" else y[2:]
    expected = 2 * n * k * (c // groups) * r * s * p * q
    assert cost_of(OPERATORS["conv"], forward).flops == expected
    assert cost("conv_input_gradient", y, kernel, attributes=((h, w), *how)).flops == expected
    assert cost("conv_kernel_gradient", x, y, attributes=((r, s), *how)).flops == expected


def test_elementwise() -> None:
    assert cost("add", (6, 5), (6, 5)) == Cost(30, 3 * 120)
    assert cost("add", (6, 5), (5,)) == Cost(30, 120 + 20 + 120)
    assert cost("maximum", (30,), ()) == Cost(30, 120 + 4 + 120)
    assert cost("cast", (6, 5), attributes=(int64,)) == Cost(0, 120 + 240)
    assert cost("exp", (30,)).flops >= 10 * 30
    assert cost("tanh", (30,)).bytes == 240
    assert cost("sin", (30,)).flops == 600


def test_complex_numbers_count_their_parts() -> None:
    x = TensorSpec((5,), np.dtype(np.complex64))
    assert cost("multiply", x, x) == Cost(6 * 5, 3 * 40)
    assert cost("exp", x).flops > 0


def test_reductions() -> None:
    assert cost("sum", (6, 5), attributes=((1,), False)) == Cost(30, 120 + 24)
    assert cost("argmax", (6, 5), attributes=(0, False)) == Cost(30, 120 + 40)
    assert cost("max", (6, 5), attributes=((0, 1), True)).flops == 30


def test_movement_costs_bytes() -> None:
    assert cost("concat", (3, 2), (4, 2), attributes=(0,)) == Cost(0, 2 * 4 * 14)
    assert cost("pad", (3,), attributes=((1,), (1,), (0,), 0.0)) == Cost(0, 4 * 8)


def test_of_a_table_what_is_taken_counts() -> None:
    found = cost("take", (1000, 8), TensorSpec((3,), int64), attributes=(0, 0))
    assert found == Cost(0, 3 * 8 + 2 * 3 * 8 * 4)


@pytest.mark.parametrize(("name", "attributes"), [
    ("reshape", ((5, 6),)), ("permute", ((1, 0),)), ("slice", ((0, 0), (3, 5), (1, 1))), ("identity", ()),
    ("broadcast_to", ((2, 6, 5),)),
])  # fmt: skip
def test_views_cost_nothing(name: str, attributes: tuple[Any, ...]) -> None:
    assert cost(name, (6, 5), attributes=attributes) == Cost(0, 0)


def test_a_copy_that_might_have_been_a_view() -> None:
    turned = Layout((5, 6), float32, 0, (4, 20))
    out = Layout.packed((30,), float32)
    assert cost_of(OPERATORS["reshape"], Command("reshape", ((30,),), (turned,), (out,))) == Cost(0, 240)


def test_composites_cost_what_their_parts_cost() -> None:
    whole = cost("softmax", (8, 100), attributes=(1,))
    assert whole.flops >= 800 * (10 + 3)
    assert whole.bytes == 2 * 8 * 100 * 4
    t, b, features, size = 7, 3, 4, 5
    found = cost("rnn", (t, b, features), (b, size), (features, size), (size, size), (size,),
                 attributes=("tanh", False))
    assert found.flops == 2 * t * b * (features * size + size * size)


def test_sorting_transforms_and_matrices() -> None:
    assert cost("argsort", (4, 64), attributes=(1, False)).flops == 4 * 64 * 6
    assert cost("argsort", (2, 4096), attributes=(1, False)).flops == 2 * 4096 * 12
    z = TensorSpec((3, 16), np.dtype(np.complex64))
    assert cost("fft", z, attributes=((1,), False, "backward")).flops == 3 * 5 * 16 * 4
    assert cost("rfft", (3, 16), attributes=(1, "backward")).flops == 3 * 2.5 * 16 * log2(16)
    assert cost("inv", (2, 10, 10)).flops == 2 * 2 * 1000
    assert cost("solve", (10, 10), (10, 3)).flops == pytest.approx(2 / 3 * 1000 + 2 * 100 * 3)


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_operator_costs_something_finite(name: str) -> None:
    rng = np.random.default_rng(0)
    for op, case, dtype in examples(name):
        arrays, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
        specs = [TensorSpec(x.shape, x.dtype) for x in arrays]
        made = command(name, *specs, attributes=attributes)
        flops, nbytes = cost_of(op, made)
        assert isfinite(flops), (name, case.label)
        assert flops >= 0, (name, case.label)
        most = sum(prod(x.shape) * x.dtype.itemsize for x in (*made.inputs, *made.outputs))
        assert 0 <= nbytes <= most, (name, case.label)


# ---- what it costs to compute an element again, when operators are joined
def weight(name: str, *shapes: tuple[int, ...], attributes: tuple[Any, ...] = ()) -> int:
    specs = tuple([TensorSpec(x, float32) for x in shapes])
    return form_of(OPERATORS[name], specs, attributes, OPERATORS[name].infer(*specs, *attributes)).weight


@pytest.mark.parametrize("name", ["add", "divide", "exp", "sin", "erf", "lgamma"])
def test_an_element_weighs_its_operations(name: str) -> None:
    """Counted by one table; what a function selects and converts takes time as well."""
    inputs = 2 if name in ("add", "divide") else 1
    flops = cost(name, *[(6, 5)] * inputs).flops / 30
    assert flops <= weight(name, *[(6, 5)] * inputs) <= 2 * flops


def test_folds_weigh_all_that_they_fold() -> None:
    along = ((1,), False)
    assert weight("sum", (6, 5), attributes=along) == 5 == cost("sum", (6, 5), attributes=along).flops / 6
    assert weight("matmul", (6, 5), (5, 3), attributes=(False, False)) == 10


def test_conversions_and_choices_weigh_something_and_are_no_operations() -> None:
    where = ("where", TensorSpec((6, 5), np.dtype(bool)), TensorSpec((6, 5), float32), TensorSpec((6, 5), float32))
    name, *specs = where
    assert form_of(OPERATORS[name], tuple(specs), (), specs[1]).weight > 0 == cost(*where).flops
