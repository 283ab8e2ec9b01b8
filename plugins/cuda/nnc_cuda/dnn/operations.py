"""Operations of cuDNN's graphs, one by one, and the tensors with numbers that connect them."""

from __future__ import annotations

from typing import Any, TypeAlias

from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_cuda.dnn.descriptors import (
    BOOLEAN,
    DATA_TYPE,
    DESCRIPTOR,
    DOUBLE,
    INT64,
    POINTWISE_MODE,
    REDUCTION_OPERATOR,
    Descriptor,
    ElementKind,
    described,
)
from nnc_cuda.dnn.interface import TensorPlace

TYPES: dict[DType, int] = {float32: 0, float64: 1, float16: 2, bfloat16: 9}
"""CUDNN_DATA_FLOAT, _DOUBLE, _HALF, _BFLOAT16."""
POINTWISE, POINTWISE_STEP, GRAPH, TENSOR = 0, 13, 15, 17
PRODUCT, PRODUCT_STEP, REDUCTION, REDUCTION_STEP, RESHAPE_STEP, BAND_STEP = 18, 19, 21, 22, 31, 44
"""Descriptors: CUDNN_BACKEND_POINTWISE_DESCRIPTOR, _OPERATION_POINTWISE_, _OPERATIONGRAPH_, _TENSOR_; _MATMUL_,
_OPERATION_MATMUL_, _REDUCTION_, _OPERATION_REDUCTION_, _OPERATION_RESHAPE_, _OPERATION_DIAGONAL_BAND_MASK_."""
UNIQUE_ID, ELEMENTS, ALIGNMENT, DIMENSIONS, STRIDES, VIRTUAL, BY_VALUE = 906, 901, 900, 902, 903, 907, 908
"""Attributes of a tensor: CUDNN_ATTR_TENSOR_UNIQUE_ID, _DATA_TYPE, _BYTE_ALIGNMENT, _DIMENSIONS, _STRIDES, _IS_VIRTUAL,
_IS_BY_VALUE."""
POINTWISE_MODE_OF, POINTWISE_IN, RELU_FROM = 0, 1, 3
"""Of a pointwise operation: CUDNN_ATTR_POINTWISE_MODE, _MATH_PREC, _RELU_LOWER_CLIP."""
STEP_OF, STEP_X, STEP_B, STEP_Y = 750, 751, 752, 753
"""CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, _XDESC, _BDESC, _YDESC."""
ADD, MULTIPLY, SUBTRACT, EXPONENTIAL, RELU = 0, 1, 9, 13, 100
"""CUDNN_POINTWISE_ADD, _MUL, _SUB, _EXP, _RELU_FWD, which the header gives as `if (value < 0) value = 0`: a NaN
stays."""
PRODUCT_IN, PRODUCT_A, PRODUCT_B, PRODUCT_C, PRODUCT_OF = 1500, 1520, 1521, 1522, 1523
"""CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_ATTR_OPERATION_MATMUL_ADESC, _BDESC, _CDESC, _DESC."""
REDUCTION_BY, REDUCTION_IN, REDUCED, REDUCED_TO, REDUCTION_OF, BY_SUM = 1600, 1601, 1610, 1611, 1612, 0
"""CUDNN_ATTR_REDUCTION_OPERATOR, _COMP_TYPE, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, _YDESC, _DESC;
CUDNN_REDUCE_TENSOR_ADD."""
RESHAPED, RESHAPED_TO = 2200, 2201
"""CUDNN_ATTR_OPERATION_RESHAPE_XDESC, _YDESC."""
BAND_OF, BAND_ELSE, BAND_Y, BAND_KEEPS = 3000, 3005, 3006, 3007
"""CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, _BDESC, _YDESC, _COMPARISON_MODE."""
AT_LEAST = 303
"""CUDNN_POINTWISE_CMP_GE: the number of a query is at least that of a key."""
GRAPH_OPERATIONS = 801
"""CUDNN_ATTR_OPERATIONGRAPH_OPS."""
FIRST_UNSEEN = 100
"""Numbers of tensors that are in no memory come behind it; arrays are numbered from 1."""
SMALLEST = 16
"""The alignment of what is in no memory."""
Attributes: TypeAlias = list[tuple[int, ElementKind, tuple[Any, ...]]]


class OperationWriter:
    """Describes operations in order."""

    def __init__(self, functions: Any, unseen: int = FIRST_UNSEEN) -> None:
        """`unseen`: numbers of tensors in no memory that are taken."""
        self.functions, self.operations = functions, list[Descriptor]()
        self._tensors = 0
        self._unseen = unseen

    # ---- tensors
    def array(self, place: TensorPlace) -> Descriptor:
        """An array, the next in number."""
        self._tensors += 1
        return self._described(self._tensors, place)

    def between(self, place: TensorPlace, dtype: DType = float32) -> Descriptor:
        """A tensor that one operation leaves to the next, in no memory."""
        self._unseen += 1
        unseen = place._replace(dtype=dtype, alignment=max(SMALLEST, dtype.itemsize))
        return self._described(self._unseen, unseen, (VIRTUAL, BOOLEAN, (True,)))

    @property
    def latest(self) -> int:
        """The number of the last of these."""
        return self._unseen

    def number(self, number: int) -> Descriptor:
        """A number of the host's memory, float32."""
        return self._described(number, TensorPlace(float32, (1,) * 4, (1,) * 4, 4), (BY_VALUE, BOOLEAN, (True,)))

    def _described(self, number: int, place: TensorPlace,
                   *more: tuple[int, ElementKind, tuple[Any, ...]]) -> Descriptor:
        return described(
            self.functions, TENSOR, (UNIQUE_ID, INT64, (number,)), (ELEMENTS, DATA_TYPE, (TYPES[place.dtype],)),
            (ALIGNMENT, INT64, (place.alignment,)), (DIMENSIONS, INT64, place.shape), (STRIDES, INT64, place.steps),
            *more)

    # ---- operations
    def add(self, kind: int, attributes: Attributes) -> None:
        self.operations.append(described(self.functions, kind, *attributes))

    def pointwise(self, mode: int, x: Descriptor, operand: Descriptor | None, y: Descriptor,
                  wide: DType = float32) -> None:
        what = described(self.functions, POINTWISE, (POINTWISE_MODE_OF, POINTWISE_MODE, (mode,)),
                         (POINTWISE_IN, DATA_TYPE, (TYPES[wide],)),
                         *([(RELU_FROM, DOUBLE, (0.0,))] if mode == RELU else []))
        self.add(POINTWISE_STEP, [
            (STEP_OF, DESCRIPTOR, (what,)), (STEP_X, DESCRIPTOR, (x,)),
            *([] if operand is None else [(STEP_B, DESCRIPTOR, (operand,))]), (STEP_Y, DESCRIPTOR, (y,))])

    def product(self, a: Descriptor, b: Descriptor, c: Descriptor) -> None:
        """c = a @ b, whose sums are float32; heads of b, where there are fewer, are each for as many of a."""
        of = described(self.functions, PRODUCT, (PRODUCT_IN, DATA_TYPE, (TYPES[float32],)))
        self.add(PRODUCT_STEP, [(PRODUCT_A, DESCRIPTOR, (a,)), (PRODUCT_B, DESCRIPTOR, (b,)),
                                (PRODUCT_C, DESCRIPTOR, (c,)), (PRODUCT_OF, DESCRIPTOR, (of,))])

    def total(self, x: Descriptor, y: Descriptor) -> None:
        """Sums of so many as there are more of x than of y along each axis."""
        of = described(self.functions, REDUCTION, (REDUCTION_BY, REDUCTION_OPERATOR, (BY_SUM,)),
                       (REDUCTION_IN, DATA_TYPE, (TYPES[float32],)))
        self.add(REDUCTION_STEP, [
            (REDUCED, DESCRIPTOR, (x,)), (REDUCED_TO, DESCRIPTOR, (y,)), (REDUCTION_OF, DESCRIPTOR, (of,))])

    def reshape(self, x: Descriptor, y: Descriptor) -> None:
        """The elements of x where y has them."""
        self.add(RESHAPE_STEP, [(RESHAPED, DESCRIPTOR, (x,)), (RESHAPED_TO, DESCRIPTOR, (y,))])


def band(scores: Descriptor, left: Descriptor, hidden: Descriptor) -> Attributes:
    """The attributes of the operation by which scores above the diagonal become another number."""
    return [(BAND_OF, DESCRIPTOR, (scores,)), (BAND_Y, DESCRIPTOR, (left,)), (BAND_ELSE, DESCRIPTOR, (hidden,)),
            (BAND_KEEPS, POINTWISE_MODE, (AT_LEAST,))]
