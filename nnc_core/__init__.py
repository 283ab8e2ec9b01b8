"""nnc: computation graphs and neural networks on any device, eager, lazy or compiled.

This module is the Array API namespace; see README.md and docs/architecture.md.
"""

from __future__ import annotations

from nnc_core.base.config import config
from nnc_core.base.dtype import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from nnc_core.base.dtype import boolean as bool
from nnc_core.base.errors import Error
from nnc_core.composition import Stack, devices, make_stack, stack_for
from nnc_core.dynamic import realize
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from nnc_core.dynamic.export import export
from nnc_core.dynamic.functions import (
    abs,
    add,
    all,
    any,
    argmax,
    argmin,
    astype,
    avg_pool2d,
    broadcast_arrays,
    broadcast_to,
    clip,
    concat,
    conv2d,
    cos,
    cross_entropy,
    divide,
    equal,
    exp,
    expand_dims,
    flip,
    floor_divide,
    greater,
    greater_equal,
    isnan,
    less,
    less_equal,
    log,
    log_softmax,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    matmul,
    matrix_transpose,
    max,
    max_pool2d,
    maximum,
    mean,
    min,
    minimum,
    multiply,
    negative,
    not_equal,
    one_hot,
    pad,
    permute_dims,
    positive,
    pow,
    relu,
    remainder,
    reshape,
    sigmoid,
    sign,
    sin,
    softmax,
    sqrt,
    square,
    squeeze,
    stack,
    stop_gradient,
    subtract,
    sum,
    take,
    tanh,
    where,
)
from nnc_core.dynamic.gradients import grad, hessian, jacobian, jvp, value_and_grad, variable, vjp
from nnc_core.dynamic.jit import jit
from nnc_core.dynamic.modes import deferred, is_deferred_mode, no_grad, use_device
from nnc_core.dynamic.random import Generator, manual_seed
from nnc_core.dynamic.symbolic import (
    assign,
    const_arr,
    const_elt,
    eval_arr,
    eval_elt,
    eval_graph,
    is_assigned,
    make_graph,
    unpack_arr,
    unpack_elt,
    var_arr,
    var_elt,
)
from nnc_core.dynamic.tensor import Tensor
from nnc_core.graph import SymbolicGraph
from nnc_core.type import Dim

__version__ = "0.1.0"
__array_api_version__ = "2024.12"
e, inf, nan, pi = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793
newaxis = None

__all__ = [
    "Cell", "Dim", "Error", "Generator", "Stack", "SymbolicGraph", "Tensor",
    "__array_api_version__", "__version__", "abs", "add", "all", "any", "arange", "argmax",
    "argmin", "asarray", "assign", "astype", "avg_pool2d", "bfloat16", "bool", "broadcast_arrays",
    "broadcast_to", "clip", "concat", "config", "const_arr", "const_elt", "conv2d", "cos",
    "cross_entropy", "deferred", "devices", "divide", "e", "empty", "empty_like", "equal",
    "eval_arr", "eval_elt", "eval_graph", "exp", "expand_dims", "export", "eye", "flip", "float16",
    "float32", "float64", "floor_divide", "full", "full_like", "grad", "greater", "greater_equal",
    "hessian", "inf", "int16", "int32", "int64", "int8", "is_assigned", "is_deferred_mode", "isnan",
    "jacobian", "jit", "jvp", "less", "less_equal", "linspace", "log", "log_softmax", "logical_and",
    "logical_not", "logical_or", "logical_xor", "make_graph", "make_stack", "manual_seed", "matmul",
    "matrix_transpose", "max", "max_pool2d", "maximum", "mean", "min", "minimum", "multiply", "nan",
    "negative", "newaxis", "no_grad", "not_equal", "one_hot", "ones", "ones_like", "pad",
    "permute_dims", "pi", "positive", "pow", "realize", "relu", "remainder", "reshape", "sigmoid",
    "sign", "sin", "softmax", "sqrt", "square", "squeeze", "stack", "stack_for", "stop_gradient",
    "subtract", "sum", "take", "tanh", "uint16", "uint32", "uint64", "uint8", "unpack_arr",
    "unpack_elt", "use_device", "value_and_grad", "var_arr", "var_elt", "variable", "vjp", "where",
    "zeros", "zeros_like",
]  # fmt: skip
