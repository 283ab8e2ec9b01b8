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
from nnc_core.dynamic.assigned import eval_graph, is_iopair_safe, make_graph, make_iopair, update_iopair
from nnc_core.dynamic.backward import backward, gradients
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.control import case_of, cond, foreach, map, scan, while_loop
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
from nnc_core.dynamic.custom import custom_jvp, custom_vjp
from nnc_core.dynamic.debug import synchronize
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
from nnc_core.dynamic.host import callback, debug_print
from nnc_core.dynamic.host_owl import delay, delay_array, host_fold, host_map, host_scan, lazy_print
from nnc_core.dynamic.interop import from_dlpack
from nnc_core.dynamic.jit import jit
from nnc_core.dynamic.memo import memo_info, memoise
from nnc_core.dynamic.modes import deferred, is_deferred_mode, no_grad, use_device
from nnc_core.dynamic.queries import bookkeeping_count, depends_on
from nnc_core.dynamic.random import Generator, manual_seed
from nnc_core.dynamic.selection import (
    argwhere,
    flatnonzero,
    nonzero,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from nnc_core.dynamic.snapshot import restore, snapshot
from nnc_core.dynamic.swept import backward_info
from nnc_core.dynamic.symbolic import (
    assign,
    const_arr,
    const_elt,
    eval_arr,
    eval_elt,
    freeze,
    is_assigned,
    is_frozen,
    is_valid,
    unfreeze,
    unpack_arr,
    unpack_elt,
    var_arr,
    var_elt,
    var_random,
)
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.vmap import vmap
from nnc_core.graph import SymbolicGraph
from nnc_core.io.graph_file import load_graph, save_graph
from nnc_core.type import Dim, TensorSpec

__version__ = "0.1.0"
__array_api_version__ = "2024.12"
e, inf, nan, pi = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793
newaxis = None

__all__ = [
    "Cell", "Dim", "Error", "Generator", "Stack", "SymbolicGraph", "Tensor", "TensorSpec",
    "__array_api_version__", "__version__", "abs", "add", "all", "any", "arange", "argmax",
    "argmin", "argwhere", "asarray", "assign", "astype", "avg_pool2d", "backward", "backward_info",
    "bfloat16", "bookkeeping_count", "bool", "broadcast_arrays", "broadcast_to", "callback",
    "case_of", "clip", "concat", "cond", "config", "const_arr", "const_elt", "conv2d", "cos",
    "cross_entropy", "custom_jvp", "custom_vjp", "debug_print", "deferred", "delay", "delay_array",
    "depends_on", "devices", "divide", "e", "empty", "empty_like", "equal", "eval_arr", "eval_elt",
    "eval_graph", "exp", "expand_dims", "export", "eye", "flatnonzero", "flip", "float16",
    "float32", "float64", "floor_divide", "foreach", "freeze", "from_dlpack", "full", "full_like",
    "grad", "gradients", "greater", "greater_equal", "hessian", "host_fold", "host_map",
    "host_scan", "inf", "int16", "int32", "int64", "int8", "is_assigned", "is_deferred_mode",
    "is_frozen", "is_iopair_safe", "is_valid", "isnan", "jacobian", "jit", "jvp", "lazy_print",
    "less", "less_equal", "linspace", "load_graph", "log", "log_softmax", "logical_and",
    "logical_not", "logical_or", "logical_xor", "make_graph", "make_iopair", "make_stack",
    "manual_seed", "map", "matmul", "matrix_transpose", "max", "max_pool2d", "maximum", "mean",
    "memo_info", "memoise", "min", "minimum", "multiply", "nan", "negative", "newaxis", "no_grad",
    "nonzero", "not_equal", "one_hot", "ones", "ones_like", "pad", "permute_dims", "pi", "positive",
    "pow", "realize", "relu", "remainder", "reshape", "restore", "save_graph", "scan", "sigmoid",
    "sign", "sin", "snapshot", "softmax", "sqrt", "square", "squeeze", "stack", "stack_for",
    "stop_gradient", "subtract", "sum", "synchronize", "take", "tanh", "uint16", "uint32", "uint64",
    "uint8", "unfreeze", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "unpack_arr", "unpack_elt", "update_iopair", "use_device", "value_and_grad", "var_arr",
    "var_elt", "var_random", "variable", "vjp", "vmap", "where", "while_loop", "zeros",
    "zeros_like",
]  # fmt: skip
