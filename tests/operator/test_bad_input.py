"""Wrong shapes, dtypes, axes and attributes: one error of the right class, which names the operator and its inputs."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.errors import (
    AttributeValueError,
    AxisError,
    DTypeError,
    Error,
    OperandError,
    ShapeError,
    UnknownAttributeError,
)
from nnc_core.builtin import FLAVOURS, NullDevice, StrictDevice
from nnc_core.operator import OPERATORS, Namespace, Operator
from nnc_core.shape import Shape
from nnc_core.symbol import Number, Symbol
from nnc_core.type import Dim, TensorSpec, Type
from tests.operator.host import HOST, HostValue


def spec(*shape, dtype=dt.float32):
    return TensorSpec(shape, dtype)


INT, BOOL = spec(3, 4, dtype=dt.int32), spec(3, 4, dtype=dt.boolean)
Z = spec(3, 4, dtype=dt.complex64)
X, IMAGE, KERNEL = spec(3, 4), spec(2, 5, 6, 3), spec(3, 3, 3, 4)
KEY = spec(2, dtype=dt.uint64)


def conv(strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1, layout="NHWC"):
    return strides, padding, dilation, groups, layout


def pool(window=(2, 2), strides=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), layout="NHWC"):
    return window, strides, padding, dilation, layout


REACH, BOXES, NUMBERS, ROI = (1, 1, 0, 3), spec(4, 4), spec(4, dtype=dt.int32), ((2, 2), 1.0, "NHWC")
POOLED = spec(2, 4, 5, 3)
INDEX = spec(2, 4, 5, 3, dtype=dt.int32)

BAD = {
    "elementwise": [
        ("add", (X, spec(5)), (), ShapeError, r"shapes \(3, 4\) and \(5,\) do not broadcast"),
        ("add", (X, INT), (), DTypeError, "float32 and int32 differ"),
        ("multiply", (BOOL, BOOL), (), DTypeError, "needs numbers, not booleans"),
        ("negative", (BOOL,), (), DTypeError, "needs numbers"),
        ("exp", (INT,), (), DTypeError, "needs floating-point numbers, not int32"),
        ("divide", (INT, INT), (), DTypeError, "floating-point"),
        ("logical_and", (BOOL, INT), (), DTypeError, "differ"),
        ("logical_not", (INT,), (), DTypeError, "needs booleans, not int32"),
        ("less", (X, spec(2, 1, 5)), (), ShapeError, "do not broadcast"),
        ("where", (INT, X, X), (), DTypeError, "the condition is int32, not boolean"),
        ("where", (BOOL, X, INT), (), DTypeError, "differ"),
        ("where", (BOOL, X, spec(5)), (), ShapeError, "do not broadcast"),
        ("clip", (X, spec(), spec(3)), (), ShapeError, "do not broadcast"),
    ],
    "reduction": [
        ("sum", (X,), ((2,), False), AxisError, "axis 2 is out of range for 2 dimensions"),
        ("sum", (X,), ((-1,), False), AxisError, "axis -1 is out of range"),
        ("sum", (BOOL,), ((0,), False), DTypeError, "needs numbers"),
        ("mean", (INT,), ((0,), False), DTypeError, "floating-point"),
        ("mean", (X,), ((5,), False), AxisError, "axis 5"),
        ("max", (spec(0, 3),), ((0,), False), ShapeError, "no extremum over an empty axis"),
        ("min", (X,), ((9,), True), AxisError, "axis 9"),
        ("argmax", (spec(2, 0),), (1, False), ShapeError, "no extremum over an empty axis"),
        ("argmin", (X,), (2, False), AxisError, "axis 2"),
        ("argmax", (BOOL,), (0, False), DTypeError, "needs numbers"),
        ("all", (X,), ((0,), False), DTypeError, "needs booleans, not float32"),
        ("any", (BOOL,), ((3,), False), AxisError, "axis 3"),
    ],
    "linear algebra": [
        ("inv", (X,), (), ShapeError, "needs square matrices"),
        ("det", (spec(3),), (), ShapeError, "needs matrices, not"),
        ("cholesky", (spec(3, 3, dtype=dt.float16),), (), DTypeError, "float64 or complex numbers, not float16"),
        ("solve", (spec(3, 3), X), ("x",), ShapeError, "attributes do not fit"),
        ("solve", (spec(3, 3), spec(4, 2)), (), ShapeError, "has 3 rows, the right-hand sides .* have 4"),
        ("solve", (spec(2, 3, 3), spec(3, 3, 1)), (), ShapeError, "do not broadcast"),
        ("qr", (X,), ("raw",), AttributeValueError, "mode 'raw'"),
        ("svdvals", (spec(Dim("m"), 3),), (), ShapeError, "it is not known whether m or 3 is smaller"),
        ("lstsq", (X, spec(4, 1)), (None,), ShapeError, "has 3 rows"),
        ("sylvester", (spec(3, 3), spec(4, 4), spec(4, 3)), (), ShapeError, "should have 3 rows"),
        ("care", (spec(3, 3), spec(3, 2), spec(2, 2), spec(2, 2)), (), ShapeError, "asks for b of shape"),
        ("dare", (spec(3, 3), spec(3, 0), spec(3, 3), spec(0, 0)), (), ShapeError, "nothing to control"),
    ],
    "summaries": [
        ("prod", (BOOL,), ((0,), False), DTypeError, "needs numbers"),
        ("var", (INT,), ((0,), 0.0, False), DTypeError, "floating-point"),
        ("std", (X,), ((2,), 1.0, False), AxisError, "axis 2"),
        ("logsumexp", (Z,), ((0,), False), DTypeError, "needs floating-point numbers, not complex64"),
        ("vector_norm", (X,), ((0,), float("nan"), False), AttributeValueError, "order NaN"),
        ("vector_norm", (spec(0, 3),), ((0,), float("-inf"), False), ShapeError, "no extremum over an empty axis"),
    ],
    "cumulative": [
        ("cumulative_sum", (BOOL,), (0, False), DTypeError, "needs numbers"),
        ("cumulative_prod", (X,), (2, False), AxisError, "axis 2"),
        ("cummax", (Z,), (0, False), DTypeError, "has no order"),
        ("argcummin", (spec(),), (0, False), AxisError, "axis 0 is out of range for 0 dimensions"),
        ("logcumsumexp", (INT,), (0, False), DTypeError, "floating-point"),
        ("recurrence", (X, spec(4)), (0, False), ShapeError, "differ in shape"),
        ("recurrence", (X, INT), (0, False), DTypeError, "differ"),
    ],
    "ordering": [
        ("argsort", (Z,), (0, False), DTypeError, "has no order"),
        ("sort", (X,), (-1, False), AxisError, "axis -1"),
        ("arg_top_k", (X,), (0, 4, True), AttributeValueError, "k 4 should be from 0 to 3"),
        ("arg_top_k", (X,), (0, -1, True), AttributeValueError, "k -1"),
        ("lexsort", (spec(3),), (0,), ShapeError, "no keys"),
        ("lexsort", (X,), (1,), AxisError, "axis 1"),
        ("searchsorted", (X, X), (False,), ShapeError, "one axis"),
        ("searchsorted", (spec(3), INT), (False,), DTypeError, "differ"),
        ("bin_range", (X,), (3,), DTypeError, "numbered by integers"),
        ("bin_range", (INT,), (3,), ShapeError, "one axis"),
    ],
    "linear": [
        ("matmul", (spec(3), X), (False, False), ShapeError, "needs matrices"),
        ("matmul", (X, X), (False, False), ShapeError, "inner dimensions 4 and 3 differ"),
        ("matmul", (X, X), (True, True), ShapeError, "inner dimensions 3 and 4 differ"),
        ("matmul", (spec(2, 3, 4), spec(3, 4, 2)), (False, False), ShapeError, "do not broadcast"),
        ("matmul", (BOOL, spec(4, 2, dtype=dt.boolean)), (False, False), DTypeError, "needs numbers"),
        ("matmul", (X, spec(4, 2, dtype=dt.float64)), (False, False), DTypeError, "differ"),
    ],
    "movement": [
        ("reshape", (X,), ((5, 2),), ShapeError, r"12 elements and cannot be reshaped to \(5, 2\)"),
        ("reshape", (X,), ((-1, 12),), ShapeError, "negative dimension"),
        ("permute", (X,), ((0, 0),), AttributeValueError, r"\(0, 0\) is no permutation"),
        ("permute", (X,), ((0,),), AttributeValueError, "no permutation of the 2 axes"),
        ("broadcast_to", (X,), ((3, 5),), ShapeError, "do not broadcast|cannot be broadcast"),
        ("broadcast_to", (X,), ((4,),), ShapeError, "cannot be broadcast"),
        ("broadcast_to", (X,), ((3, 1),), ShapeError, "cannot be broadcast"),
        ("slice", (X,), ((0,), (3,), (1,)), AttributeValueError, "one entry for each of 2 axes"),
        ("slice", (X,), ((0, 0), (4, 4), (1, 1)), AttributeValueError, "0:4:1 does not lie within length 3"),
        ("slice", (X,), ((2, 0), (1, 4), (1, 1)), AttributeValueError, "2:1:1"),
        ("slice", (X,), ((-1, 0), (3, 4), (1, 1)), AttributeValueError, "-1:3:1"),
        ("slice", (X,), ((0, 0), (3, 4), (1, 0)), AttributeValueError, "0:4:0"),
        ("pad", (X,), ((1,), (1,), (0,), 0), AttributeValueError, "one entry for each of 2 axes"),
        ("pad", (X,), ((0, -1), (0, 0), (0, 0), 0), AttributeValueError, "negative padding"),
        ("pad", (X,), ((0, 0), (0, 0), (-2, 0), 0), AttributeValueError, "negative padding"),
        ("flip", (X,), ((2,),), AxisError, "axis 2"),
        ("concat", (X, spec(3, 5)), (0,), ShapeError, "differ in more than axis 0"),
        ("concat", (X, spec(3, 4, 1)), (0,), ShapeError, "differ in more than axis 0"),
        ("concat", (X, X), (2,), AxisError, "axis 2"),
        ("concat", (X, INT), (0,), DTypeError, "differ"),
        ("concat", (), (0,), ShapeError, "nothing to concatenate"),
        ("update_slice", (X, spec(2, 2)), ((2, 0), (1, 1)), ShapeError, "do not lie within length 3"),
        ("update_slice", (X, spec(2, 2)), ((-1, 0), (1, 1)), ShapeError, "do not lie within length 3"),
        ("update_slice", (X, spec(2, 2)), ((0, 0), (0, 1)), AttributeValueError, "step"),
        ("update_slice", (X, spec(2)), ((0,), (1,)), AttributeValueError, "one entry for each of 2 axes"),
        ("update_slice", (X, spec(1, 1, dtype=dt.int32)), ((0, 0), (1, 1)), DTypeError, "differ"),
    ],
    "indexing": [
        ("take", (X, X), (0, 0), DTypeError, "indices are float32, not integers"),
        ("take", (X, INT), (2, 0), AxisError, "axis 2"),
        ("take", (X, INT), (1, 2), AttributeValueError, "batch 2 should be from 0 to 1"),
        ("take", (X, spec(2, 1, dtype=dt.int8)), (1, 1), ShapeError, "differ in their first 1 dimensions"),
        ("scatter", (X, INT, X), (0, "set", 0), ShapeError, r"should have shape \(3, 4, 4\)"),
        ("scatter", (X, spec(dtype=dt.int8), spec(4)), (0, "divide", 0), AttributeValueError, "none of set, add, mul"),
        ("scatter", (X, spec(dtype=dt.int8), spec(4)), (0, "set", 1), AttributeValueError, "batch 1 should be"),
        ("scatter", (X, spec(dtype=dt.int8), spec(4, dtype=dt.float64)), (0, "add", 0), DTypeError, "differ"),
        ("scatter", (BOOL, spec(dtype=dt.int8), spec(4, dtype=dt.boolean)), (0, "max", 0), DTypeError, "not booleans"),
        ("scatter", (Z, spec(dtype=dt.int8), spec(4, dtype=dt.complex64)), (0, "min", 0), DTypeError, "have an order"),
        ("earlier", (X,), (), DTypeError, "not integers"),
        ("earlier", (spec(dtype=dt.int8),), (), ShapeError, "no axis to look along"),
        ("repeat_index", (X,), (3,), DTypeError, "not integers"),
        ("repeat_index", (INT,), (3,), ShapeError, "one dimension"),
        ("repeat_index", (spec(3, dtype=dt.int8),), (-3,), AttributeValueError, "size -3"),
        ("one_hot", (X,), (3, dt.float32), DTypeError, "not integers"),
        ("one_hot", (INT,), (-1, dt.float32), AttributeValueError, "depth -1 is negative"),
    ],
    "windows": [
        ("conv", (IMAGE, KERNEL), conv(layout="HWCN"), AttributeValueError, "layout 'HWCN'"),
        ("conv", (X, KERNEL), conv(), ShapeError, "four dimensions NHWC"),
        ("conv", (IMAGE, X), conv(), ShapeError, "kernel float32.* should have four dimensions"),
        ("conv", (IMAGE, spec(3, 3, 2, 4)), conv(), ShapeError, "takes 2 channels .* the input has 3"),
        ("conv", (IMAGE, spec(3, 3, 1, 4)), conv(groups=3), ShapeError, "4 output channels do not divide"),
        ("conv", (IMAGE, KERNEL), conv(groups=0), AttributeValueError, "groups 0"),
        ("conv", (IMAGE, KERNEL), conv(strides=(0, 1)), AttributeValueError, "stride 0"),
        ("conv", (IMAGE, KERNEL), conv(dilation=(1, -1)), AttributeValueError, "dilation -1"),
        ("conv", (IMAGE, KERNEL), conv(padding=((-1, 0), (0, 0))), AttributeValueError, "padding"),
        ("conv", (IMAGE, KERNEL), conv(dilation=(3, 1)), ShapeError, "does not fit in length 5"),
        ("conv", (spec(2, 5, 6, 3, dtype=dt.int8), spec(3, 3, 3, 4, dtype=dt.int8)), conv(), DTypeError, "floating"),
        ("conv", (IMAGE, spec(3, 3, 3, 4, dtype=dt.float64)), conv(), DTypeError, "differ"),
        ("conv_input_gradient", (spec(2, 3, 4, 5), KERNEL), ((5, 6), *conv()), ShapeError, "the cotangent is"),
        ("conv_input_gradient", (spec(2, 3, 4, 4), KERNEL), ((5, 6), *conv(groups=0)), AttributeValueError, "groups"),
        ("conv_kernel_gradient", (IMAGE, spec(2, 2, 4, 4)), ((3, 3), *conv()), ShapeError, "the cotangent is"),
        ("conv_kernel_gradient", (IMAGE, spec(2, 3, 4, 4)), ((3, 3), *conv(groups=0)), AttributeValueError, "groups"),
        ("conv_kernel_gradient", (IMAGE, spec(2, 3, 4, 4)), ((3, 3), *conv(groups=2)), ShapeError, "2 groups"),
        ("max_pool", (IMAGE,), pool(window=(0, 2)), AttributeValueError, "window"),
        ("max_pool", (IMAGE,), pool(window=(6, 2)), ShapeError, "does not fit in length 5"),
        ("max_pool", (IMAGE,), pool(padding=((2, 0), (0, 0))), AttributeValueError, "see nothing of length 5"),
        ("max_pool", (IMAGE,), pool(padding=((0, 0), (0, 2))), AttributeValueError, "see nothing of length 6"),
        ("max_pool", (spec(1, 1, 9, 1),), pool(padding=((1, 1), (0, 0)), dilation=(2, 1)), AttributeValueError,
         "see nothing of length 1"),
        ("max_pool", (spec(2, 5, 6, 3, dtype=dt.boolean),), pool(), DTypeError, "not booleans"),
        ("max_pool_index", (X,), pool(), ShapeError, "four dimensions"),
        ("sum_pool", (IMAGE,), pool(strides=(1, 0)), AttributeValueError, "stride 0"),
        ("sum_pool_gradient", (IMAGE,), ((5, 6), *pool()), ShapeError, "where the pool gives"),
        ("pool_take", (IMAGE, INDEX), pool(strides=(2, 2)), ShapeError, "the index is"),
        ("pool_take", (IMAGE, POOLED), pool(), DTypeError, "the index is float32"),
        ("pool_put", (POOLED, spec(2, 4, 5, 2, dtype=dt.int32)), ((5, 6), *pool()), ShapeError, "the index is"),
        ("pool_put", (POOLED, INDEX), ((9, 9), *pool()), ShapeError, "where the pool gives"),
        ("avg_pool", (IMAGE,), (*pool(window=(9, 9))[:4], True, "NHWC"), ShapeError, "does not fit"),
        ("avg_pool", (spec(2, 5, 6, 3, dtype=dt.int32),), (*pool()[:4], True, "NHWC"), DTypeError, "floating"),
        ("conv", (spec(2, 5, 3), KERNEL), conv(layout="NWC"), ShapeError, "should have three dimensions"),
        ("conv", (IMAGE, KERNEL), conv(strides=(1,)), AttributeValueError, "should have one entry for each"),
        ("unfold", (X,), pool(), ShapeError, "four dimensions"),
        ("fold", (spec(2, 4, 5, 6),), ((5, 6), *pool()), ShapeError, "6 channels are no multiple of the 4"),
        ("fold", (spec(2, 4, 5, 8),), ((5, 7), *pool()), ShapeError, "unfold to"),
        ("fold", (spec(2, 4, 5, 8),), ((5,), *pool()), AttributeValueError, "size"),
        ("of_size", (IMAGE,), ((5, 5), "NHWC"), ShapeError, "what follows was recorded for"),
        ("resample", (X, INT, spec(3, 4, dtype=dt.float64)), (0, REACH), DTypeError, "weights of float32 are float64"),
        ("resample", (X, X, X), (0, REACH), DTypeError, "the indices are float32"),
        ("resample", (X, INT, spec(3, 3)), (0, REACH), ShapeError, "one row for each result"),
        ("resample", (X, INT, X), (2, REACH), AxisError, "axis 2"),
        ("resample", (X, INT, X), (0, (1, 0, 0, 1)), AttributeValueError, "reach"),
        ("spread", (X, INT, X), (1, 5, REACH), ShapeError, "4 elements along axis 1, the tables 3 rows"),
    ],
    "regions": [
        ("region_product", (IMAGE, spec(4, 2, 5), spec(4, 2, 5), NUMBERS), ("NHWC",), ShapeError, "do not fit"),
        ("region_product", (IMAGE, spec(4, 2, 5), spec(3, 2, 6), NUMBERS), ("NHWC",), ShapeError, "should have shapes"),
        ("region_product", (IMAGE, spec(4, 2, 5), spec(4, 2, 6), X), ("NHWC",), DTypeError, "images are float"),
        ("region_product", (IMAGE, spec(4, 2, 5), spec(4, 2, 6), NUMBERS), ("NWC",), AttributeValueError, "'NWC'"),
        ("region_product_gradient", (IMAGE, spec(2, 4, 9), spec(2, 6, 9), spec(2, dtype=dt.int32)), (3, "NHWC"),
         ShapeError, "do not fit the regions"),
        ("roi_align", (IMAGE, spec(4, 5), NUMBERS), (*ROI[:1], 1.0, 0, True, True, "NHWC"), ShapeError, "x1, y1, x2"),
        ("roi_align", (IMAGE, BOXES, NUMBERS), (*ROI[:1], 1.0, -1, True, True, "NHWC"), AttributeValueError, "ratio"),
        ("roi_pool", (IMAGE, BOXES, NUMBERS), ((0, 2), 1.0, "NHWC"), AttributeValueError, "size"),
        ("roi_pool_index", (IMAGE, spec(4, 4, dtype=dt.int32), NUMBERS), ROI, DTypeError, "boxes are int32"),
        ("roi_pool", (IMAGE, BOXES, spec(3, dtype=dt.int32)), ROI, ShapeError, "one for each of 4 regions"),
        ("nms_order", (BOXES, spec(3), NUMBERS), (0.5,), ShapeError, "one element for each"),
        ("nms_order", (BOXES, spec(4), NUMBERS), (-0.5,), AttributeValueError, "threshold -0.5"),
        ("nms_order", (BOXES, spec(4), spec(4)), (0.5,), DTypeError, "groups are float32"),
    ],
    "composites": [
        ("softmax", (X,), (2,), AxisError, "axis 2"),
        ("softmax", (INT,), (0,), DTypeError, "floating"),
        ("log_softmax", (X,), (-3,), AxisError, "axis -3"),
        ("cross_entropy", (X, spec(3)), (), DTypeError, "labels are float32, not integers"),
        ("cross_entropy", (X, spec(4, dtype=dt.int32)), (), ShapeError, "should have the shape of"),
        ("cross_entropy", (spec(), spec(dtype=dt.int32)), (), ShapeError, "should have the shape of"),
        ("cross_entropy", (INT, spec(3, dtype=dt.int32)), (), DTypeError, "floating"),
    ],
    "random": [
        ("random_bits", (spec(3, dtype=dt.uint64),), ((2,), dt.uint32), ShapeError, "a key is"),
        ("random_bits", (spec(2, dtype=dt.uint32),), ((2,), dt.uint32), DTypeError, "a key is"),
        ("random_bits", (KEY,), ((2,), dt.int32), DTypeError, "uint32 or uint64, not int32"),
        ("random_bits", (KEY,), ((-2,), dt.uint32), ShapeError, "negative dimension"),
        ("uniform", (KEY,), ((2,), dt.int32), DTypeError, "floating-point"),
        ("normal", (spec(3, dtype=dt.uint64),), ((2,), dt.float32), ShapeError, "a key is"),
        ("bernoulli", (KEY,), ((2,), 1.5), AttributeValueError, "probability 1.5"),
        ("bernoulli", (KEY,), ((2,), float("nan")), AttributeValueError, "probability nan"),
    ],
    "creation": [
        ("filled", (), ((2, -1), Number(0, dt.float32)), ShapeError, "negative dimension"),
        ("progression", (), (Number(0, dt.int64), Number(1, dt.int64), -1, dt.int64), AttributeValueError, "-1 is neg"),
        ("progression", (), (Number(0, dt.int64), Number(1, dt.int64), 1, dt.boolean), DTypeError, "not booleans"),
    ],
}
ROWS = [row for rows in BAD.values() for row in rows]


@pytest.mark.parametrize(("name", "inputs", "attributes", "error", "message"), ROWS,
                         ids=[f"{row[0]} {row[4]}"[:60] for row in ROWS])
def test_one_clear_error(name, inputs, attributes, error, message) -> None:
    shape = Shape(Type(NullDevice()))
    with pytest.raises(error, match=message) as caught:
        shape.infer(OPERATORS[name], inputs, attributes)
    assert isinstance(caught.value, Error)
    text = str(caught.value)
    assert text.startswith(f"{name}: ")
    assert all(repr(x) in text for x in inputs)


def test_attributes_of_the_wrong_kind_are_a_shape_error() -> None:
    with pytest.raises(ShapeError, match="reshape: attributes do not fit"):
        Shape(Type(NullDevice())).infer(OPERATORS["reshape"], (X,), (7,))
    with pytest.raises(ShapeError, match="permute: attributes do not fit"):
        Shape(Type(NullDevice())).infer(OPERATORS["permute"], (X,), (("a", 1),))


RESULTS = [
    ("cast", (X,), (dt.float64,)), ("one_hot", (INT,), (3, dt.float64)),
    ("filled", (), ((2,), Number(1, dt.float64))), ("uniform", (KEY,), ((2,), dt.float64)),
    ("progression", (), (Number(0, dt.float64), Number(1, dt.float64), 3, dt.float64)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "attributes"), RESULTS, ids=[row[0] for row in RESULTS])
def test_results_that_the_device_does_not_have(name, inputs, attributes) -> None:
    flavour = next(f for f in FLAVOURS if f.suffix == "nofloat64")
    with pytest.raises(DTypeError, match=rf"{name}: device has no float64[\s\S]*strict-nofloat64:0"):
        Shape(Type(StrictDevice(flavour))).infer(OPERATORS[name], inputs, attributes)
    assert Shape(Type(StrictDevice())).infer(OPERATORS[name], inputs, attributes).dtype == dt.float64


def test_unknown_and_missing_attributes() -> None:
    F = Operator(Symbol(Shape(Type(NullDevice())))).open()
    x = F.placeholder("x", X)
    for call in (lambda: F.sum(x, axes=(0,)), lambda: F.softmax(x)):
        with pytest.raises(TypeError):
            call()
    assert issubclass(UnknownAttributeError, TypeError)


def test_operands_that_are_no_numbers() -> None:
    F = Operator(Symbol(Shape(Type(NullDevice())))).open()
    x = F.placeholder("x", X)
    for wrong in ("two", None, [1.0]):
        with pytest.raises(OperandError, match=f"add: {type(wrong).__name__} is no array and no number"):
            F.add(x, wrong)
    with pytest.raises(OperandError, match="exp: str is no array"):
        HOST.exp("x")
    with pytest.raises(DTypeError, match="add: uint64 and int8 have no common integer dtype"):
        HOST.add(HostValue(np.zeros(1, np.uint64)), HostValue(np.zeros(1, np.int8)))
    assert HOST.add(HostValue([1.0]), 1).array.tolist() == [2.0]


def test_named_dimensions_are_checked_as_far_as_they_are_known() -> None:
    n, m, shape = Dim("n"), Dim("m"), Shape(Type(NullDevice()))
    assert shape.infer(OPERATORS["add"], (spec(n, 4), spec(n, 1)), ()) == spec(n, 4)
    with pytest.raises(ShapeError, match="do not broadcast"):
        shape.infer(OPERATORS["add"], (spec(n), spec(m)), ())
    assert shape.infer(OPERATORS["concat"], (spec(n), spec(m), spec(2)), (0,)) == spec(n + m + 2)
    with pytest.raises(ShapeError, match="inner dimensions"):
        shape.infer(OPERATORS["matmul"], (spec(3, n), spec(m, 2)), (False, False))
    pooled = shape.infer(OPERATORS["max_pool"], (spec(n, 8, 8, m),), pool(strides=(2, 2)))
    assert pooled == spec(n, 4, 4, m)


def test_a_name_that_is_no_operator_is_answered_with_where_they_are_listed():
    with pytest.raises(AttributeError, match=r"no operator 'square'.*docs/operators\.md"):
        Namespace().square  # noqa: B018
