"""Problems as cuDNN's graphs of operations."""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import float32, float64
from nnc_cuda.dnn.attention_graphs import numbers_of, write_attention
from nnc_cuda.dnn.descriptors import (
    CONVOLUTION_MODE,
    DATA_TYPE,
    DESCRIPTOR,
    DOUBLE,
    FLOAT,
    INT64,
    Descriptor,
    ElementKind,
    described,
)
from nnc_cuda.dnn.interface import Convolution, Problem, Way
from nnc_cuda.dnn.operations import ADD, RELU, TYPES, OperationWriter

CONVOLUTION = 1
"""CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR."""
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


def operations_of(functions: Any, problem: Problem) -> list[Descriptor]:
    """The operations of one problem."""
    writer = OperationWriter(functions)
    if isinstance(problem, Convolution):
        _write_convolution(writer, problem)
    else:
        write_attention(writer, problem)
    return writer.operations


def _write_convolution(writer: OperationWriter, problem: Convolution) -> None:
    arrays = iter([writer.array(place) for place in problem.arrays])
    x, kernel, y = next(arrays), next(arrays), next(arrays)
    wide = float64 if problem.y.dtype == float64 else float32
    ending = [*[(ADD, next(arrays)) for one in (problem.added, problem.bias) if one is not None],
              *([(RELU, None)] if problem.relu else [])]
    results = [*[writer.between(problem.y, wide) for _ in ending], y]
    _write_convolved(writer, problem, x, kernel, results[0])
    for n, (mode, operand) in enumerate(ending):
        writer.pointwise(mode, results[n], operand, results[n + 1], wide)


def _write_convolved(writer: OperationWriter, problem: Convolution, x: Descriptor, kernel: Descriptor,
                     y: Descriptor) -> None:
    wide = problem.x.dtype == float64
    sliding = described(
        writer.functions, CONVOLUTION, (COMPUTED_IN, DATA_TYPE, (TYPES[float64 if wide else float32],)),
        (MODE, CONVOLUTION_MODE, (CROSS_CORRELATION,)), (AXES, INT64, (len(problem.strides),)),
        (DILATIONS, INT64, problem.dilation), (FILTER_STRIDES, INT64, problem.strides),
        (BEFORE, INT64, problem.before), (AFTER, INT64, problem.after))
    kind, (alpha, beta, of, to_y, to_kernel, to_x) = OPERATIONS[problem.way]
    number: ElementKind = DOUBLE if wide else FLOAT
    writer.add(kind, [
        (alpha, number, (problem.scale,)), (beta, number, (0.0,)), (of, DESCRIPTOR, (sliding,)),
        (to_y, DESCRIPTOR, (y,)), (to_kernel, DESCRIPTOR, (kernel,)), (to_x, DESCRIPTOR, (x,))])


def host_numbers_of(problem: Problem) -> dict[int, float]:
    """The numbers of the host that an execution is given beside its arrays, which are numbered from 1."""
    return {} if isinstance(problem, Convolution) else numbers_of(problem)
