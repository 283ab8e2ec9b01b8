"""Names and layouts of PyTorch's weights for each kind of module: a table of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.errors import NotSupportedError
from nnc_core.nn.layers.activation import PReLU
from nnc_core.nn.layers.attention import MultiHeadAttention
from nnc_core.nn.layers.checks import title
from nnc_core.nn.layers.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from nnc_core.nn.layers.linear import Linear
from nnc_core.nn.layers.normalisation import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from nnc_core.nn.layers.recurrent import GRUCell, RecurrentCell
from nnc_core.nn.layers.sequences import GRU, LSTM, RNN
from nnc_core.nn.layers.transformer import TransformerDecoderLayer, TransformerEncoderLayer
from nnc_core.nn.module import Module

Array = np.ndarray[Any, Any]
_NONE: Mapping[str, str] = MappingProxyType({})


class Entry(NamedTuple):
    """An array of PyTorch's and the cells that it is made of; names are relative to the module."""

    theirs: str
    ours: tuple[str, ...]
    export: Callable[[Sequence[Array]], Array]
    take: Callable[[Array], Sequence[Array]]


class Rule(NamedTuple):
    """The counterpart of a kind of module in PyTorch."""

    entries: Callable[[Any], list[Entry]] = lambda module: []
    children: Mapping[str, str] = _NONE
    """Submodules that are called something else."""
    whole: bool = False
    """True if the entries speak for the submodules too."""


# ---- layouts
def same(theirs: str, ours: str) -> Entry:
    """Another name, the same array."""
    return Entry(theirs, (ours,), lambda xs: xs[0], lambda x: [x])


def turned(theirs: str, ours: str) -> Entry:
    """A matrix that multiplies from the other side."""
    return Entry(theirs, (ours,), lambda xs: xs[0].T, lambda x: [x.T])


def reordered(theirs: str, ours: str, axes: Sequence[int]) -> Entry:
    """Ours with its axes in this order."""
    back = tuple(int(a) for a in np.argsort(axes))
    return Entry(theirs, (ours,), lambda xs: xs[0].transpose(axes), lambda x: [x.transpose(back)])


def stacked(theirs: str, ours: Sequence[str], turn: bool) -> Entry:
    """Several of ours, one above the other."""
    def export(xs: Sequence[Array]) -> Array:
        return np.concatenate([x.T if turn else x for x in xs])

    def take(x: Array) -> list[Array]:
        return [part.T if turn else part for part in np.split(x, len(ours))]

    return Entry(theirs, tuple(ours), export, take)


def flattened_linear(shape: Sequence[int]) -> list[Entry]:
    """A linear layer on a flattened array (*sizes, channels), which PyTorch flattens as (channels, *sizes)."""
    last = len(shape) - 1

    def export(xs: Sequence[Array]) -> Array:
        rows = xs[0].reshape(*shape, -1)
        return rows.transpose(last + 1, last, *range(last)).reshape(xs[0].shape[1], -1)

    def take(x: Array) -> list[Array]:
        rows = x.reshape(-1, shape[last], *shape[:last])
        return [rows.transpose(*range(2, last + 2), 1, 0).reshape(x.shape[1], -1)]

    return [Entry("weight", ("weight",), export, take), same("bias", "bias")]


# ---- kinds
def _linear(module: Linear) -> list[Entry]:
    return [turned("weight", "weight"), same("bias", "bias")]


def _convolution(module: Any) -> list[Entry]:
    rank = module.rank
    axes = (rank + 1, rank, *range(rank)) if module.channels_last else tuple(range(rank + 2))
    return [reordered("weight", "kernel", axes), same("bias", "bias")]


def _norm(module: Any) -> list[Entry]:
    return [same("weight", "scale"), same("bias", "bias")]


def _batch_norm(module: BatchNorm) -> list[Entry]:
    return [*_norm(module), same("running_mean", "running_mean"), same("running_var", "running_variance")]


def _cell(module: RecurrentCell, ours: str = "", theirs: str = "") -> list[Entry]:
    if isinstance(module, GRUCell) and not module.reset_after:
        raise NotSupportedError("PyTorch applies the reset gate after the product", operator=title(module),
                                hint="reset_after=True")
    return [turned(f"weight_ih{theirs}", f"{ours}input_weight"), turned(f"weight_hh{theirs}", f"{ours}hidden_weight"),
            same(f"bias_ih{theirs}", f"{ours}input_bias"), same(f"bias_hh{theirs}", f"{ours}hidden_bias"),
            turned(f"weight_hr{theirs}", f"{ours}projection_weight")]


def _sequences(module: Any) -> list[Entry]:
    found: list[Entry] = []
    for k, cell in enumerate(module.layers):
        layer, direction = divmod(k, module.directions)
        found += _cell(cell, f"layers.{k}.", f"_l{layer}{'_reverse' * direction}")
    return found


def _attention(module: MultiHeadAttention) -> list[Entry]:
    if module.key_heads != module.heads or module.head_size * module.heads != module.features:
        raise NotSupportedError("PyTorch has heads of features / heads numbers, each with keys of its own",
                                operator=title(module))
    names = ("query", "key", "value")
    sizes = {getattr(module, name).in_features for name in names}
    one = [stacked("in_proj_weight", [f"{name}.weight" for name in names], turn=True)]
    each = [turned(f"{name[0]}_proj_weight", f"{name}.weight") for name in names]
    return [*(one if sizes == {module.features} else each),
            stacked("in_proj_bias", [f"{name}.bias" for name in names], turn=False),
            turned("out_proj.weight", "output.weight"), same("out_proj.bias", "output.bias")]


_LAYER = {"attention": "self_attn", "expand": "linear1", "contract": "linear2", "attention_norm": "norm1"}
RULES: Mapping[type[Module], Rule] = {
    Linear: Rule(_linear),
    **dict.fromkeys((Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d), Rule(_convolution)),
    **dict.fromkeys((GroupNorm, InstanceNorm, LayerNorm, RMSNorm), Rule(_norm)),
    BatchNorm: Rule(_batch_norm),
    PReLU: Rule(lambda module: [same("weight", "slope")]),
    RecurrentCell: Rule(_cell),
    **dict.fromkeys((RNN, GRU, LSTM), Rule(_sequences, whole=True)),
    MultiHeadAttention: Rule(_attention, whole=True),
    TransformerEncoderLayer: Rule(children={**_LAYER, "feed_forward_norm": "norm2"}),
    TransformerDecoderLayer: Rule(children={**_LAYER, "cross_attention": "multihead_attn",
                                            "cross_attention_norm": "norm2", "feed_forward_norm": "norm3"}),
}
_PLAIN = Rule()


def rule_of(module: Module) -> Rule:
    """The rule of its class, or of the nearest above it; others are called as here, with arrays as they are."""
    return next((RULES[cls] for cls in type(module).__mro__ if cls in RULES), _PLAIN)
