"""Floor 16: networks as modules with named weights, and gradients by them."""

from __future__ import annotations

from nnc_core.nn.deployed import Deployed, deploy
from nnc_core.nn.gradient import value_and_grad
from nnc_core.nn.layers import (
    activation,
    adaptive_pooling,
    arithmetic,
    convolution,
    dropout,
    global_pooling,
    linear,
    merging,
    normalisation,
    parts,
    pooling,
    resizing,
    shapes,
)
from nnc_core.nn.layers.activation import *
from nnc_core.nn.layers.adaptive_pooling import *
from nnc_core.nn.layers.arithmetic import *
from nnc_core.nn.layers.attention import MultiHeadAttention, PositionalEncoding
from nnc_core.nn.layers.container import Lambda, ModuleDict, ModuleList, Sequential
from nnc_core.nn.layers.convolution import *
from nnc_core.nn.layers.dropout import *
from nnc_core.nn.layers.function import Function
from nnc_core.nn.layers.global_pooling import *
from nnc_core.nn.layers.linear import *
from nnc_core.nn.layers.merging import *
from nnc_core.nn.layers.normalisation import *
from nnc_core.nn.layers.parts import *
from nnc_core.nn.layers.pooling import *
from nnc_core.nn.layers.recurrent import GRUCell, LSTMCell, RNNCell
from nnc_core.nn.layers.resizing import *
from nnc_core.nn.layers.sequences import GRU, LSTM, RNN, Recurrent
from nnc_core.nn.layers.shapes import *
from nnc_core.nn.layers.transformer import (
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from nnc_core.nn.module import Module
from nnc_core.nn.networks.handle import Handle, Input
from nnc_core.nn.networks.network import Network
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.registry import register
from nnc_core.nn.weights.palettised import PalettisedWeight, palettise
from nnc_core.nn.weights.pytorch import from_pytorch_state, to_pytorch_state
from nnc_core.nn.weights.unmatched import Unmatched
from nnc_core.nn.weights.utilities import has_nan, map_parameters

__all__ = [
    "Deployed",
    "deploy",
    "Function",
    "GRU",
    "GRUCell",
    "Handle",
    "Input",
    "LSTM",
    "LSTMCell",
    "Lambda",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiHeadAttention",
    "Network",
    "PalettisedWeight",
    "Parameter",
    "PositionalEncoding",
    "RNN",
    "RNNCell",
    "Recurrent",
    "Sequential",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unmatched",
    "from_pytorch_state",
    "has_nan",
    "map_parameters",
    "palettise",
    "register",
    "to_pytorch_state",
    "value_and_grad",
]
__all__ += activation.__all__
__all__ += adaptive_pooling.__all__
__all__ += arithmetic.__all__
__all__ += convolution.__all__
__all__ += dropout.__all__
__all__ += global_pooling.__all__
__all__ += linear.__all__
__all__ += merging.__all__
__all__ += normalisation.__all__
__all__ += parts.__all__
__all__ += pooling.__all__
__all__ += resizing.__all__
__all__ += shapes.__all__
