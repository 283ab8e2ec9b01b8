"""Arguments in the spellings of NumPy and PyTorch, brought into a function's own.

Asked when Python has refused the arguments of a call, so that calls that work pay nothing for it.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter
from typing import Any

import numpy as np

from nnc_core.base.errors import OperandError
from nnc_core.values.keyword_options import spelled_out

NAMES: dict[str, tuple[str, ...]] = {
    "dim": ("axis",), "dims": ("axis", "axes", "repetitions", "shape"), "axes": ("axis",),
    "keepdim": ("keepdims",), "ddof": ("correction",), "stride": ("strides",), "eps": ("epsilon",), "rcond": ("rtol",),
    "negative_slope": ("slope",), "kernel_size": ("window",), "weight": ("weights",),
    "num_classes": ("depth",), "num_embeddings": ("count",), "embedding_dim": ("features",),
    "padding_idx": ("padding_index",), "count_include_pad": ("count_padding",), "return_indices": ("with_indices",),
    "elementwise_affine": ("affine",), "num_features": ("channels",), "normalized_shape": ("shape",),
    "p": ("rate", "probability", "probabilities"),
    "a_min": ("min",), "a_max": ("max",), "shifts": ("shift",), "steps": ("num",), "interpolation": ("method",),
    "diagonal": ("k", "offset"), "reps": ("repetitions",), "newshape": ("shape",), "size": ("shape",),
    "loc": ("mean", "location"), "scale": ("deviation",), "lam": ("rate",), "pvals": ("probabilities",),
    "minval": ("low",), "maxval": ("high",), "alpha": ("concentration",),
    "is_causal": ("causal",), "attn_mask": ("mask",), "dropout_p": ("dropout",), "embed_dim": ("features",),
    "num_heads": ("heads",), "d_model": ("features",), "nhead": ("heads",), "dim_feedforward": ("hidden",),
    "layer_norm_eps": ("epsilon",), "num_layers": ("layers",), "num_groups": ("groups",), "num_channels": ("channels",),
    "output_size": ("size",), "lower": ("low",), "upper": ("high",), "num_parameters": ("channels",),
    "unflattened_size": ("shape",), "var": ("variance",), "norm_type": ("p",), "mode": ("method",),
    "start_dim": ("start",), "end_dim": ("stop",), "in_dims": ("in_axes",), "out_dims": ("out_axes",),
    "kdim": ("key_features",), "vdim": ("value_features",),
    "scale_factor": ("scale",), "tau": ("temperature",), "lambd": ("bound",), "min_val": ("low",), "max_val": ("high",),
    "padding": ("padding_mode",),
}  # fmt: skip
"""Arguments by their names elsewhere, and what they are here: the first name that the function has."""

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "out": (None,), "where": (True, None), "order": (None, "K", "C", "A"), "casting": ("same_kind",), "like": (None,),
    "subok": (True, False), "dtype": (None,), "kind": (None, "quicksort", "mergesort", "heapsort", "stable"),
    "overwrite_input": (True, False), "requires_grad": (False,), "pin_memory": (False,), "initial": (None,),
    "inplace": (False,), "hermitian": (False,), "compute_uv": (True,), "UPLO": ("L",), "mean": (None,),
    "retstep": (False,), "sparse": (False,), "stable": (None,), "copy": (None, True, False), "full": (False,),
    "cov": (False,), "batch_first": (True,), "add_bias_kv": (False,), "add_zero_attn": (False,),
    "padding_mode": ("zeros",),
    "retain_graph": (None, True, False), "create_graph": (None, False), "inputs": (None,),
}  # fmt: skip
"""Arguments elsewhere that change nothing here if they are one of these."""

ADVICE = {
    "out": "y[...] = the result", "where": "nnc.where(mask, x, a number that changes nothing), and then the function",
    "initial": "take the result and the number together", "requires_grad": "nnc.variable(x)",
    "create_graph": "nnc.grad of a function, which can be differentiated again", "inputs": "nnc.gradients(y, inputs)",
    "padding_mode": "nn.Padding2d(width, mode) before it", "normalized_shape": "axis=, over which it is normalised",
    "padding_mask": "key_mask=, true where there is a key",
    "batch_first": "leave it out: the batch comes first, and x.swapaxes(0, 1) of data that have it second",
    "encoder_layer": "features, heads and layers: the layers are made here",
    "decoder_layer": "features, heads and layers: the layers are made here",
    "inplace": "leave it out: x = the result", "dtype": "cast with astype", "unbiased": "correction=1, or 0",
}  # fmt: skip

POSITIONS: dict[str, tuple[str, ...]] = {
    "vector_norm": ("x", "ord", "axis", "keepdims"), "gumbel_softmax": ("logits", "temperature", "hard"),
    "normalise": ("x", "p", "axis", "epsilon"),
}  # fmt: skip
"""Arguments by position in PyTorch's functions that NumPy has not, or not by position, where the axis is not the
first behind the operands."""

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def respelled(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments | None:
    """The arguments of a call by f's own names; None where f takes them as they are.

    OperandError for an argument that f has not, or that is missing.
    """
    signature = spelled_out(f)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError:
        call = _Call(f, signature.parameters, args)
    for name, x in kwargs.items():
        call.take(name, x)
    return call.arguments(signature)


def is_neutral(name: str, x: Any) -> bool:
    """True if an argument of NumPy's or PyTorch's changes nothing."""
    return any(x is same or (isinstance(same, str) and isinstance(x, str) and x == same)
               for same in NEUTRAL.get(name, ()))


class _Call:
    """A call that is brought into a function's own names."""

    def __init__(self, f: Callable[..., Any], parameters: Mapping[str, Parameter], args: Sequence[Any]) -> None:
        self.f, self.parameters = f, parameters
        self.leading = [p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.placed = dict(enumerate(args))
        self.named: dict[str, Any] = {}
        several = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        if len(args) > len(self.leading) and not several:
            self._place(args)

    def _place(self, args: Sequence[Any]) -> None:
        """More arguments by position than f has: sizes one by one, or what NumPy has there."""
        count = len(self.leading)
        if self.leading == ["shape"] and all(isinstance(n, (int, np.integer)) for n in args):
            self.placed = {0: tuple(args)}
            return
        names = numpy_parameters(self.f)[count:] or self._next(args[count])
        if len(args) - count > len(names):
            own = self.leading[:1] == ["self"]
            raise self._refusal(f"{len(args) - own} arguments by position where {count - own} are taken")
        self.placed = dict(enumerate(args[:count]))
        for name, x in zip(names, args[count:], strict=False):
            self.take(name, x)

    def _next(self, x: Any) -> list[str]:
        """The argument that stands behind those by position elsewhere: the axis, or the only one that is left, as the
        slope of `leaky_relu(x, 0.2)`."""
        named = [p.name for p in self.parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
        if "axis" in self.parameters:
            return ["axis"] if _may_be_axis(x) else []
        return named if len(named) == 1 else []

    def take(self, name: str, x: Any) -> None:
        """Take an argument given by its name, here or elsewhere."""
        own = next(filter(self._is_free, self._own(name)), None)
        if own is None and any(p.kind is p.VAR_KEYWORD for p in self.parameters.values()):
            own = name
        if own is not None and own in self.parameters and self.parameters[own].kind is Parameter.POSITIONAL_ONLY:
            self.placed[self.leading.index(own)] = x
        elif own is not None:
            self.named[own] = x
        elif name == "unbiased" and "correction" in self.parameters:
            self.named["correction"] = float(bool(x))
        elif name in self.parameters:
            raise self._refusal(f"the argument {name!r} is given twice")
        elif not is_neutral(name, x):
            close = difflib.get_close_matches(name, list(self.parameters), n=1)
            raise self._refusal(f"there is no argument {name!r}",
                                ADVICE.get(name) or (f"{close[0]}=" if close else None))

    def _own(self, name: str) -> Iterator[str]:
        """The names that an argument may have here; operands, which functions of arrays do not take by name, too."""
        yield from (name, *NAMES.get(name, ()))
        for names in (numpy_parameters(self.f), ["input", "other"], ["tensors"]):
            if name in names[: len(self.leading)]:
                yield self.leading[names.index(name)]

    def _is_free(self, own: str) -> bool:
        """True if f has such an argument, and nothing but None was given for it."""
        known = self.parameters.get(own)
        if known is None or known.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            return False
        placed = own in self.leading and self.leading.index(own) in self.placed
        return not placed and self.named.get(own) is None

    def arguments(self, signature: inspect.Signature) -> Arguments:
        args = tuple([x for _, x in sorted(self.placed.items())])
        try:
            signature.bind(*args, **self.named)
        except TypeError as error:
            raise self._refusal(str(error)) from None
        return args, self.named

    def _refusal(self, message: str, hint: str | None = None) -> OperandError:
        names = [p.name for p in self.parameters.values() if p.name != "self"]
        return OperandError(message, hint=hint or f"it takes {', '.join(names) or 'nothing'}")


def _may_be_axis(x: Any) -> bool:
    parts = x if isinstance(x, (tuple, list)) else (x,)
    return all(n is None or (isinstance(n, (int, np.integer)) and not isinstance(n, bool)) for n in parts)


@lru_cache(maxsize=1024)
def numpy_parameters(f: Callable[..., Any]) -> list[str]:
    """The names of what NumPy's function of the same name takes by position; none where there is no such function."""
    name = f.__name__
    if name in POSITIONS:
        return [*POSITIONS[name]]
    found = [] if name.startswith("_") else [getattr(space, name, None) for space in (np, np.linalg, np.fft)]
    theirs = next(filter(callable, found), None)  # `np.fft` is no function
    try:
        parameters = inspect.signature(theirs).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
