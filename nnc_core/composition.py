"""The house put together, once: what lower floors leave open is given to them here, and nowhere else."""

from __future__ import annotations

import copyreg

from nnc_core import tensor_methods
from nnc_core.algodiff import custom
from nnc_core.graph import SymbolicGraph
from nnc_core.graph.autodiff import BODY_RULES
from nnc_core.graph.batching_rules import RULES as BATCHING_RULES
from nnc_core.nn.layers.function import Function
from nnc_core.nn.networks.handle import Handle
from nnc_core.numpy_calls.functions import array_function
from nnc_core.numpy_calls.ufuncs import array_ufunc
from nnc_core.recording.compilation import compile_graph
from nnc_core.spellings import unknown_attribute
from nnc_core.tracing import calls, jit
from nnc_core.values import tensor_operators
from nnc_core.values.copies import reduce_value
from nnc_core.values.debug import watch_settings
from nnc_core.values.reading import ReadAsTensor
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Borrowed, Value


def compose() -> None:
    """Give lower floors what stands above them.

    Tensors get the public functions as methods and NumPy's protocols, values pickling, graphs `compile`, derivatives
    and batching the user's own rules, handles of networks arithmetic, compiled functions calls as one step, and eager
    dispatch the settings that slow it down.
    """
    tensor_operators.install()
    tensor_methods.install()
    for cls in (Tensor, ReadAsTensor):
        cls.__array_ufunc__, cls.__array_function__ = array_ufunc, array_function  # type: ignore[method-assign]
    setattr(Tensor, "__getattr__", unknown_attribute)  # noqa: B010
    ReadAsTensor.unknown = unknown_attribute
    copyreg.pickle(Value, reduce_value)
    copyreg.pickle(Borrowed, reduce_value)
    BODY_RULES[custom.CUSTOM] = custom.CUSTOM_RULES
    BATCHING_RULES.update(custom.CUSTOM_BATCHING)
    SymbolicGraph.register_compiler(compile_graph)
    Handle.register_functions(Function)
    jit.call_hook = calls.as_call
    watch_settings()
