"""Operators of neural networks, most of them composites, which a device may claim whole."""

from __future__ import annotations

from typing import Generic

from nnc_core.operator.activation import Activations
from nnc_core.operator.attention import Attention
from nnc_core.operator.declare import V
from nnc_core.operator.normalisation import Normalisations
from nnc_core.operator.recurrent import Recurrent
from nnc_core.operator.softmax import Softmaxes


class Neural(Activations[V], Softmaxes[V], Normalisations[V], Attention[V], Recurrent[V], Generic[V]):
    """Operators that layers are made of, beside products, windows and random numbers."""
