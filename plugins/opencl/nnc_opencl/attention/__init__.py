"""Attention by blocks: a running softmax between products whose sums stay in registers."""

from collections.abc import Mapping

from nnc_core.device import CommandBackend
from nnc_core.operator.attention_problem import OPERANDS
from nnc_opencl.attention.backend import OpenCLAttention
from nnc_opencl.steps import StepsCompiler


def attention(compiler: StepsCompiler) -> Mapping[str, CommandBackend]:
    """The library code of a device."""
    return {name: OpenCLAttention(name, compiler) for name in OPERANDS}
