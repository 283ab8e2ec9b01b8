"""The house put together, once: what lower floors leave open is given to them here, and nowhere else."""

from __future__ import annotations

import copyreg

from nnc_core import fft, linalg, nn, random, tensor_methods
from nnc_core.algodiff import custom
from nnc_core.graph import SymbolicGraph
from nnc_core.graph.autodiff import BODY_RULES
from nnc_core.graph.batching_rules import RULES as BATCHING_RULES
from nnc_core.indexing.items import AtKey
from nnc_core.nn.layers.function import Function
from nnc_core.nn.networks.handle import Handle
from nnc_core.nn.spellings import ADVICE as OF_NN
from nnc_core.numpy_calls.functions import array_function
from nnc_core.numpy_calls.ufuncs import array_ufunc
from nnc_core.random.generator import Generator
from nnc_core.random.spellings import ADVICE as OF_RANDOM
from nnc_core.recording.compilation import compile_graph
from nnc_core.spellings import advise, unknown_attribute, unknown_distribution, unknown_update
from nnc_core.spellings.elsewhere import OF_FFT, OF_LINALG
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
    setattr(AtKey, "__getattr__", unknown_update)  # noqa: B010
    setattr(Generator, "__getattr__", unknown_distribution)  # noqa: B010
    for module, advice in ((linalg, OF_LINALG), (fft, OF_FFT), (nn, OF_NN), (random, OF_RANDOM)):
        advise(module, advice)
    copyreg.pickle(Value, reduce_value)
    copyreg.pickle(Borrowed, reduce_value)
    BODY_RULES[custom.CUSTOM] = custom.CUSTOM_RULES
    BATCHING_RULES.update(custom.CUSTOM_BATCHING)
    SymbolicGraph.register_compiler(compile_graph)
    Handle.register_functions(Function)
    jit.call_hook = calls.as_call
    watch_settings()
