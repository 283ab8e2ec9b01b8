"""nnc: computation graphs and neural networks on any device, eager, lazy or compiled.

This module is the Array API namespace; see README.md and docs/architecture.md.
"""

from __future__ import annotations

from nnc_core import fft, linalg
from nnc_core.base.config import config
from nnc_core.base.dtype import (
    bfloat16,
    complex64,
    complex128,
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
from nnc_core.dynamic.algodiff.backward import backward, gradients
from nnc_core.dynamic.algodiff.custom import custom_jvp, custom_vjp
from nnc_core.dynamic.algodiff.gradients import grad, hessian, jacobian, jvp, value_and_grad, variable, vjp
from nnc_core.dynamic.algodiff.queries import bookkeeping_count, depends_on
from nnc_core.dynamic.algodiff.swept import backward_info
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.control.constructs import case_of, cond, foreach, map, scan, while_loop
from nnc_core.dynamic.control.vmap import vmap
from nnc_core.dynamic.debug import synchronize
from nnc_core.dynamic.functions import (
    activation,
    adaptive,
    angles,
    applying,
    attention,
    bits,
    classification,
    complex_numbers,
    contraction,
    counting,
    creation,
    ctc,
    cumulative,
    diagonals,
    differences,
    dropouts,
    dtypes,
    editing,
    elementwise,
    embeddings,
    exponentials,
    grids,
    histograms,
    index_arrays,
    indexing,
    joining,
    linear,
    loss,
    movement,
    nan_reductions,
    neural,
    normalisation,
    packing,
    padding,
    palettes,
    polynomials,
    pooling,
    predicates,
    quantiles,
    ranges,
    recurrent,
    reduction,
    regions,
    resampling,
    rounding,
    sampling,
    scattering,
    selection,
    sets,
    signals,
    sorting,
    special,
    statistics,
    tapers,
    transforms,
    trigonometry,
    trimming,
    window,
)
from nnc_core.dynamic.functions.activation import *
from nnc_core.dynamic.functions.adaptive import *
from nnc_core.dynamic.functions.angles import *
from nnc_core.dynamic.functions.applying import *
from nnc_core.dynamic.functions.attention import *
from nnc_core.dynamic.functions.bits import *
from nnc_core.dynamic.functions.classification import *
from nnc_core.dynamic.functions.complex_numbers import *
from nnc_core.dynamic.functions.contraction import *
from nnc_core.dynamic.functions.counting import *
from nnc_core.dynamic.functions.creation import *
from nnc_core.dynamic.functions.ctc import *
from nnc_core.dynamic.functions.cumulative import *
from nnc_core.dynamic.functions.diagonals import *
from nnc_core.dynamic.functions.differences import *
from nnc_core.dynamic.functions.dropouts import *
from nnc_core.dynamic.functions.dtypes import *
from nnc_core.dynamic.functions.editing import *
from nnc_core.dynamic.functions.elementwise import *
from nnc_core.dynamic.functions.embeddings import *
from nnc_core.dynamic.functions.exponentials import *
from nnc_core.dynamic.functions.grids import *
from nnc_core.dynamic.functions.histograms import *
from nnc_core.dynamic.functions.index_arrays import *
from nnc_core.dynamic.functions.indexing import *
from nnc_core.dynamic.functions.joining import *
from nnc_core.dynamic.functions.linear import *
from nnc_core.dynamic.functions.loss import *
from nnc_core.dynamic.functions.movement import *
from nnc_core.dynamic.functions.nan_reductions import *
from nnc_core.dynamic.functions.neural import *
from nnc_core.dynamic.functions.normalisation import *
from nnc_core.dynamic.functions.packing import *
from nnc_core.dynamic.functions.padding import *
from nnc_core.dynamic.functions.palettes import *
from nnc_core.dynamic.functions.polynomials import *
from nnc_core.dynamic.functions.pooling import *
from nnc_core.dynamic.functions.predicates import *
from nnc_core.dynamic.functions.quantiles import *
from nnc_core.dynamic.functions.ranges import *
from nnc_core.dynamic.functions.recurrent import *
from nnc_core.dynamic.functions.reduction import *
from nnc_core.dynamic.functions.regions import *
from nnc_core.dynamic.functions.resampling import *
from nnc_core.dynamic.functions.rounding import *
from nnc_core.dynamic.functions.sampling import *
from nnc_core.dynamic.functions.scattering import *
from nnc_core.dynamic.functions.selection import *
from nnc_core.dynamic.functions.sets import *
from nnc_core.dynamic.functions.signals import *
from nnc_core.dynamic.functions.sorting import *
from nnc_core.dynamic.functions.special import *
from nnc_core.dynamic.functions.statistics import *
from nnc_core.dynamic.functions.tapers import *
from nnc_core.dynamic.functions.transforms import *
from nnc_core.dynamic.functions.trigonometry import *
from nnc_core.dynamic.functions.trimming import *
from nnc_core.dynamic.functions.window import *
from nnc_core.dynamic.graphs.export import export
from nnc_core.dynamic.host.callback import callback, debug_print
from nnc_core.dynamic.host.owl import delay, delay_array, host_fold, host_map, host_scan, lazy_print
from nnc_core.dynamic.interop import from_dlpack
from nnc_core.dynamic.memo import memo_info, memoise
from nnc_core.dynamic.modes import deferred, evaluating, is_deferred_mode, no_grad, use_device
from nnc_core.dynamic.random.generator import Generator, manual_seed
from nnc_core.dynamic.symbols.assigned import eval_graph, is_iopair_safe, make_graph, make_iopair, update_iopair
from nnc_core.dynamic.symbols.snapshot import restore, snapshot
from nnc_core.dynamic.symbols.symbolic import (
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
from nnc_core.dynamic.traces.jit import jit
from nnc_core.graph import SymbolicGraph
from nnc_core.io.graph_file import load_graph, save_graph
from nnc_core.type import Dim, TensorSpec

__version__ = "0.1.0"
__array_api_version__ = "2024.12"
e, inf, nan, pi = 2.718281828459045, float("inf"), float("nan"), 3.141592653589793
newaxis = None

__all__ = [
    "Cell", "Dim", "Error", "Generator", "Stack", "SymbolicGraph", "Tensor", "TensorSpec", "__array_api_version__",
    "__version__", "assign", "backward", "backward_info", "bfloat16", "bookkeeping_count", "bool", "callback",
    "case_of", "complex128", "complex64", "cond", "config", "const_arr", "const_elt", "custom_jvp", "custom_vjp",
    "debug_print", "deferred", "delay", "delay_array", "depends_on", "devices", "e", "eval_arr", "eval_elt",
    "eval_graph", "evaluating", "export", "fft", "float16", "float32", "float64", "foreach", "freeze",
    "from_dlpack", "grad", "gradients", "hessian", "host_fold", "host_map", "host_scan", "inf", "int16", "int32",
    "int64", "int8", "is_assigned", "is_deferred_mode", "is_frozen", "is_iopair_safe", "is_valid", "jacobian",
    "jit", "jvp", "lazy_print", "linalg", "load_graph", "make_graph", "make_iopair", "make_stack", "manual_seed",
    "map", "memo_info", "memoise", "nan", "newaxis", "no_grad", "pi", "realize", "restore", "save_graph", "scan",
    "snapshot", "stack_for", "synchronize", "uint16", "uint32", "uint64", "uint8", "unfreeze", "unpack_arr",
    "unpack_elt", "update_iopair", "use_device", "value_and_grad", "var_arr", "var_elt", "var_random", "variable",
    "vjp", "vmap", "while_loop",
]  # fmt: skip
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += angles.__all__
__all__ += applying.__all__
__all__ += attention.__all__
__all__ += bits.__all__
__all__ += classification.__all__
__all__ += complex_numbers.__all__
__all__ += contraction.__all__
__all__ += counting.__all__
__all__ += creation.__all__
__all__ += ctc.__all__
__all__ += cumulative.__all__
__all__ += diagonals.__all__
__all__ += differences.__all__
__all__ += dropouts.__all__
__all__ += dtypes.__all__
__all__ += editing.__all__
__all__ += elementwise.__all__
__all__ += embeddings.__all__
__all__ += exponentials.__all__
__all__ += grids.__all__
__all__ += histograms.__all__
__all__ += index_arrays.__all__
__all__ += indexing.__all__
__all__ += joining.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += movement.__all__
__all__ += nan_reductions.__all__
__all__ += neural.__all__
__all__ += normalisation.__all__
__all__ += packing.__all__
__all__ += padding.__all__
__all__ += palettes.__all__
__all__ += polynomials.__all__
__all__ += pooling.__all__
__all__ += predicates.__all__
__all__ += quantiles.__all__
__all__ += ranges.__all__
__all__ += recurrent.__all__
__all__ += reduction.__all__
__all__ += regions.__all__
__all__ += resampling.__all__
__all__ += rounding.__all__
__all__ += sampling.__all__
__all__ += scattering.__all__
__all__ += selection.__all__
__all__ += sets.__all__
__all__ += signals.__all__
__all__ += sorting.__all__
__all__ += special.__all__
__all__ += statistics.__all__
__all__ += tapers.__all__
__all__ += transforms.__all__
__all__ += trigonometry.__all__
__all__ += trimming.__all__
__all__ += window.__all__
