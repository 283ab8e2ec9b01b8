"""Problems as cuDNN's graphs of operations, which tensors with numbers connect."""

from __future__ import annotations

from math import inf
from typing import Any

from nnc_core.base.dtype import DType, bfloat16, float16, float32, float64
from nnc_cuda.dnn.descriptors import (
    BOOLEAN,
    CONVOLUTION_MODE,
    DATA_TYPE,
    DESCRIPTOR,
    DOUBLE,
    FLOAT,
    INT64,
    POINTWISE_MODE,
    Descriptor,
    ElementKind,
    described,
)
from nnc_cuda.dnn.interface import Attention, Convolution, Problem, TensorPlace, Way

TYPES: dict[DType, int] = {float32: 0, float64: 1, float16: 2, bfloat16: 9}
"""CUDNN_DATA_FLOAT, _DOUBLE, _HALF, _BFLOAT16."""
POINTWISE, CONVOLUTION, POINTWISE_STEP, TENSOR, ATTENTION_STEP = 0, 1, 13, 17, 41
"""Descriptors: CUDNN_BACKEND_POINTWISE_DESCRIPTOR, _CONVOLUTION_, _OPERATION_POINTWISE_, _TENSOR_,
_OPERATION_SDPA_FWD_."""
UNIQUE_ID, ELEMENTS, ALIGNMENT, DIMENSIONS, STRIDES, VIRTUAL, BY_VALUE = 906, 901, 900, 902, 903, 907, 908
"""Attributes of a tensor: CUDNN_ATTR_TENSOR_UNIQUE_ID, _DATA_TYPE, _BYTE_ALIGNMENT, _DIMENSIONS, _STRIDES, _IS_VIRTUAL,
_IS_BY_VALUE."""
COMPUTED_IN, MODE, AXES, DILATIONS, FILTER_STRIDES, BEFORE, AFTER = 100, 101, 106, 102, 103, 105, 104
"""Of a convolution: CUDNN_ATTR_CONVOLUTION_COMP_TYPE, _CONV_MODE, _SPATIAL_DIMS, _DILATIONS, _FILTER_STRIDES,
_PRE_PADDINGS, _POST_PADDINGS."""
CROSS_CORRELATION = 1
OPERATIONS: dict[Way, tuple[int, tuple[int, ...]]] = {
    "conv": (10, (700, 701, 702, 705, 703, 704)),
    "conv_input_gradient": (12, (706, 707, 708, 711, 709, 710)),
    "conv_kernel_gradient": (11, (712, 713, 714, 717, 715, 716))}
"""CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_, _BACKWARD_DATA_, _BACKWARD_FILTER_DESCRIPTOR and their attributes
_ALPHA, _BETA, _CONV_DESC, _Y or _DY, _W or _DW, _X or _DX."""
POINTWISE_MODE_OF, POINTWISE_IN, RELU_FROM = 0, 1, 3
"""Of a pointwise operation: CUDNN_ATTR_POINTWISE_MODE, _MATH_PREC, _RELU_LOWER_CLIP."""
STEP_OF, STEP_X, STEP_B, STEP_Y = 750, 751, 752, 753
"""CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, _XDESC, _BDESC, _YDESC."""
ADD, RELU = 0, 100
"""CUDNN_POINTWISE_ADD, _RELU_FWD, which the header gives as `if (value < 0) value = 0`: a NaN stays."""
QUERY, KEY, VALUE, RESULT, SUMS, SCALE = 2800, 2801, 2802, 2803, 2804, 2805
"""CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, _KDESC, _VDESC, _ODESC, _STATSDESC, _SCALEDESC."""
INNER, INNER_SCORES, INNER_RESULT = 2811, 2812, 2813
"""CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH, _SUBGRAPH_INPUT_UID, _SUBGRAPH_OUTPUT_UID."""
BAND_STEP, BAND_OF, BAND_ELSE, BAND_Y, BAND_KEEPS = 44, 3000, 3005, 3006, 3007
"""CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, _BDESC, _YDESC,
_COMPARISON_MODE."""
AT_LEAST = 303
"""CUDNN_POINTWISE_CMP_GE: the number of a query is at least that of a key."""
GRAPH, GRAPH_OPERATIONS = 15, 801
"""CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS."""
FIRST_UNSEEN, SCALE_ID, HIDDEN_ID = 100, 200, 201
"""Numbers of tensors that are in no memory, of the scale of attention and of the score of what is not seen; arrays are
numbered from 1."""
SMALLEST = 16
"""The alignment of what is in no memory."""


class GraphWriter:
    """Describes the operations of one problem."""

    def __init__(self, functions: Any) -> None:
        self.functions, self.operations = functions, list[Descriptor]()
        self._tensors = 0
        self._unseen = FIRST_UNSEEN

    def write(self, problem: Problem) -> list[Descriptor]:
        if isinstance(problem, Convolution):
            self._convolution(problem)
        else:
            self._attention(problem)
        return self.operations

    def _convolution(self, problem: Convolution) -> None:
        arrays = iter([self._tensor(place) for place in problem.arrays])
        x, kernel, y = next(arrays), next(arrays), next(arrays)
        ending = [*[(ADD, next(arrays)) for one in (problem.added, problem.bias) if one is not None],
                  *([(RELU, None)] if problem.relu else [])]
        results = [*[self._between(problem.y) for _ in ending], y]
        self._convolved(problem, x, kernel, results[0])
        wide = float64 if problem.y.dtype == float64 else float32
        for n, (mode, operand) in enumerate(ending):
            self._pointwise(mode, wide, results[n], operand, results[n + 1])

    def _convolved(self, problem: Convolution, x: Descriptor, kernel: Descriptor, y: Descriptor) -> None:
        f, wide = self.functions, problem.x.dtype == float64
        sliding = described(
            f, CONVOLUTION, (COMPUTED_IN, DATA_TYPE, (TYPES[float64 if wide else float32],)),
            (MODE, CONVOLUTION_MODE, (CROSS_CORRELATION,)), (AXES, INT64, (len(problem.strides),)),
            (DILATIONS, INT64, problem.dilation), (FILTER_STRIDES, INT64, problem.strides),
            (BEFORE, INT64, problem.before), (AFTER, INT64, problem.after))
        kind, (alpha, beta, of, to_y, to_kernel, to_x) = OPERATIONS[problem.way]
        number: ElementKind = DOUBLE if wide else FLOAT
        self.operations.append(described(
            f, kind, (alpha, number, (problem.scale,)), (beta, number, (0.0,)), (of, DESCRIPTOR, (sliding,)),
            (to_y, DESCRIPTOR, (y,)), (to_kernel, DESCRIPTOR, (kernel,)), (to_x, DESCRIPTOR, (x,))))

    def _pointwise(self, mode: int, wide: DType, x: Descriptor, operand: Descriptor | None, y: Descriptor) -> None:
        f = self.functions
        what = described(f, POINTWISE, (POINTWISE_MODE_OF, POINTWISE_MODE, (mode,)),
                         (POINTWISE_IN, DATA_TYPE, (TYPES[wide],)),
                         *([(RELU_FROM, DOUBLE, (0.0,))] if mode == RELU else []))
        self.operations.append(described(
            f, POINTWISE_STEP, (STEP_OF, DESCRIPTOR, (what,)), (STEP_X, DESCRIPTOR, (x,)),
            *([] if operand is None else [(STEP_B, DESCRIPTOR, (operand,))]), (STEP_Y, DESCRIPTOR, (y,))))

    def _attention(self, problem: Attention) -> None:
        query, key, value, result, sums = (self._tensor(place) for place in problem.arrays)
        self.operations.append(described(
            self.functions, ATTENTION_STEP, (QUERY, DESCRIPTOR, (query,)), (KEY, DESCRIPTOR, (key,)),
            (VALUE, DESCRIPTOR, (value,)), (RESULT, DESCRIPTOR, (result,)), (SUMS, DESCRIPTOR, (sums,)),
            (SCALE, DESCRIPTOR, (self._number(SCALE_ID),)), *(self._masked(problem) if problem.causal else [])))

    def _masked(self, problem: Attention) -> list[tuple[int, ElementKind, tuple[Any, ...]]]:
        """The attributes by which scores above the diagonal become less than all others: a graph within the graph."""
        batch, heads, rows, _ = problem.query.shape
        keys = problem.key.shape[2]
        place = TensorPlace(float32, (batch, heads, rows, keys), (heads * rows * keys, rows * keys, keys, 1), SMALLEST)
        scores, left = self._between(place), self._between(place)
        step = described(
            self.functions, BAND_STEP, (BAND_OF, DESCRIPTOR, (scores,)), (BAND_Y, DESCRIPTOR, (left,)),
            (BAND_ELSE, DESCRIPTOR, (self._number(HIDDEN_ID),)), (BAND_KEEPS, POINTWISE_MODE, (AT_LEAST,)))
        inner = described(self.functions, GRAPH, (GRAPH_OPERATIONS, DESCRIPTOR, (step,)))
        return [(INNER, DESCRIPTOR, (inner,)), (INNER_SCORES, INT64, (FIRST_UNSEEN + 1,)),
                (INNER_RESULT, INT64, (FIRST_UNSEEN + 2,))]

    def _number(self, number: int) -> Descriptor:
        """A number of the host's memory, float32."""
        return described(
            self.functions, TENSOR, (UNIQUE_ID, INT64, (number,)), (ELEMENTS, DATA_TYPE, (TYPES[float32],)),
            (ALIGNMENT, INT64, (4,)), (DIMENSIONS, INT64, (1,) * 4), (STRIDES, INT64, (1,) * 4),
            (BY_VALUE, BOOLEAN, (True,)))

    def _tensor(self, place: TensorPlace) -> Descriptor:
        """An array, the next in number."""
        self._tensors += 1
        return self._described(self._tensors, place)

    def _between(self, place: TensorPlace) -> Descriptor:
        """A tensor that one operation leaves to the next, in no memory and not rounded."""
        self._unseen += 1
        dtype = float64 if place.dtype == float64 else float32
        unseen = place._replace(dtype=dtype, alignment=max(SMALLEST, dtype.itemsize))
        return self._described(self._unseen, unseen, (VIRTUAL, BOOLEAN, (True,)))

    def _described(self, number: int, place: TensorPlace,
                   *more: tuple[int, ElementKind, tuple[Any, ...]]) -> Descriptor:
        return described(
            self.functions, TENSOR, (UNIQUE_ID, INT64, (number,)), (ELEMENTS, DATA_TYPE, (TYPES[place.dtype],)),
            (ALIGNMENT, INT64, (place.alignment,)), (DIMENSIONS, INT64, place.shape), (STRIDES, INT64, place.steps),
            *more)


def numbers_of(problem: Problem) -> list[int]:
    """The numbers of the tensors whose addresses an execution is given: of arrays, then of numbers of the host."""
    alone = [] if isinstance(problem, Convolution) else [SCALE_ID, *([HIDDEN_ID] if problem.causal else [])]
    return [*range(1, len(problem.arrays) + 1), *alone]


def host_numbers_of(problem: Problem) -> list[float]:
    """The values of the latter."""
    return [] if isinstance(problem, Convolution) else [problem.scale, *([-inf] if problem.causal else [])]
