"""nnc: computation graphs and neural networks on any device, eager, lazy or compiled.

This module is the Array API namespace; see README.md and docs/architecture.md.
"""

from __future__ import annotations

from importlib import import_module
from sys import modules
from typing import TYPE_CHECKING, Any

from nnc_core import errors, fft, linalg
from nnc_core.algodiff.backward import backward, gradients
from nnc_core.algodiff.compiled_backward import backward_info
from nnc_core.algodiff.custom import custom_jvp, custom_vjp
from nnc_core.algodiff.gradients import grad, hessian, jacobian, jvp, value_and_grad, variable, vjp
from nnc_core.algodiff.queries import bookkeeping_count, depends_on
from nnc_core.algodiff.second_order import gradhessian, gradhessianv, hessianv, jacobianv, laplacian
from nnc_core.base.config import config
from nnc_core.base.dtype import (
    bfloat16,
    complex64,
    complex128,
    float4_e2m1fn,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from nnc_core.base.dtype import boolean as bool
from nnc_core.base.errors import Error
from nnc_core.callbacks.callback import callback, debug_print
from nnc_core.callbacks.owl import delay, delay_array, host_fold, host_map, host_scan, lazy_print
from nnc_core.composition import compose
from nnc_core.control.constructs import case_of, cond, foreach, map, scan, while_loop
from nnc_core.control.vmap import vmap
from nnc_core.functions import public
from nnc_core.functions.dtypes import __array_namespace_info__
from nnc_core.functions.public import *
from nnc_core.graph import SymbolicGraph
from nnc_core.io.graph_file import load_graph, save_graph
from nnc_core.random.generator import Generator, manual_seed
from nnc_core.recording.export import export
from nnc_core.spellings import taken, unknown_name
from nnc_core.stacks import Stack, devices, make_stack, register_plugin, reopen, stack_for
from nnc_core.symbols.assigned import eval_graph, is_iopair_safe, make_graph, make_iopair, update_iopair
from nnc_core.symbols.snapshot import restore, snapshot
from nnc_core.symbols.symbolic import (
    assign,
    const_arr,
    const_elt,
    eval_arr,
    eval_elt,
    freeze,
    invalidate,
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
from nnc_core.tracing.jit import jit
from nnc_core.type import Dim, TensorSpec
from nnc_core.values.cell import Cell
from nnc_core.values.memo import memo_info, memoise
from nnc_core.values.modes import deferred, evaluating, is_deferred_mode, no_grad, use_device
from nnc_core.values.tensor import Tensor
from nnc_core.values.waiting import empty_cache, realize, synchronize

_LATE = ("data", "optim")
"""Packages that are loaded when they are first named (`nnc.optim`); `nnc.nn` and `nnc.io` are there at once."""

if TYPE_CHECKING:
    from nnc_core import data as data
    from nnc_core import optim as optim
else:

    def __getattr__(name: str) -> Any:
        if name in _LATE:
            return import_module(f"{__name__}.{name}")
        found = taken(name)
        if found is None:
            raise unknown_name(name, modules[__name__])
        return found


__version__ = "0.1.0"
__array_api_version__ = "2024.12"
e, inf, nan, pi = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793
newaxis = None

__all__ = [
    "Cell", "Dim", "Error", "Generator", "Stack", "SymbolicGraph", "Tensor", "TensorSpec", "__array_api_version__",
    "__array_namespace_info__", "__version__", "assign", "backward", "backward_info", "bfloat16", "bookkeeping_count",
    "bool", "callback", "case_of", "complex128", "complex64", "cond", "config", "const_arr", "const_elt",
    "custom_jvp", "custom_vjp", "debug_print", "deferred", "delay", "delay_array", "depends_on", "devices", "e",
    "empty_cache", "errors", "eval_arr", "eval_elt", "eval_graph", "evaluating", "export", "fft", "float16",
    "float32", "float4_e2m1fn", "float64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "foreach", "freeze", "grad", "gradhessian", "gradhessianv", "gradients", "hessian", "hessianv",
    "host_fold", "host_map", "host_scan", "inf", "int16", "int2", "int32", "int4", "int64", "int8", "invalidate",
    "is_assigned", "is_deferred_mode", "is_frozen", "is_iopair_safe", "is_valid", "jacobian", "jacobianv", "jit",
    "jvp", "laplacian", "lazy_print", "linalg", "load_graph", "make_graph", "make_iopair", "make_stack",
    "manual_seed", "map", "memo_info", "memoise", "nan", "newaxis", "no_grad", "pi", "realize", "register_plugin",
    "reopen", "restore", "save_graph", "scan", "snapshot", "stack_for", "synchronize", "uint16", "uint2", "uint32",
    "uint4", "uint64", "uint8", "unfreeze", "unpack_arr", "unpack_elt", "update_iopair", "use_device",
    "value_and_grad", "var_arr", "var_elt", "var_random", "variable", "vjp", "vmap", "while_loop",
]  # fmt: skip
__all__ += [name for name in vars(public) if not name.startswith("_")]


def __dir__() -> list[str]:
    """The names that are meant to be used: completion and Python's suggestions look here."""
    return sorted({*__all__, *_LATE, "io", "nn"})


compose()
