"""Every layer with settings of a wrong kind, called with what is no tensor: one clear error of ours, or a result."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn

SETTINGS: tuple[Any, ...] = (-1, 0, 1.5, "abc", None, [1, 2], {}, object(), 1j, nnc.ones((2, 3)))
INPUTS: tuple[Any, ...] = ("abc", None, 5, [1, 2], {}, object(), np.ones((2, 3)), nnc.asarray(2.0), nnc.zeros((0,)),
                           nnc.ones((1, 2, 3, 2, 2)), nnc.asarray([[1, 2], [3, 4]]), nnc.asarray([[1 + 2j]]))
USUAL = {"float": 0.5, "str": "x", "Int": 3}
"""What stands for the settings that a layer must be given, by how they are declared; 4 for all others."""

LAYERS = [name for name in nn.__all__ if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)
          and name not in ("Module", "PalettisedWeight")]  # which are no layers


def parameters(layer: type[nn.Module]) -> list[inspect.Parameter]:
    found = inspect.signature(layer.__init__).parameters.values()
    return [p for p in found if p.name != "self" and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def required(layer: type[nn.Module]) -> dict[str, Any]:
    return {p.name: USUAL.get(str(p.annotation), 4) for p in parameters(layer) if p.default is p.empty}


def answer(call: Callable[[], Any]) -> Any:
    """The result, or None for an error of ours; anything else fails the test."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call()
    except nnc.Error as error:
        assert Path(__file__).name in str(error) or error.operator, str(error)
    except TypeError as error:
        if "required" not in str(error):
            raise
    return None


@pytest.mark.parametrize("name", LAYERS)
def test_one_clear_error_or_a_result(name: str) -> None:
    layer = getattr(nn, name)
    usual = required(layer)
    for parameter in parameters(layer):
        for wrong in SETTINGS:
            made = answer(lambda wrong=wrong, at=parameter.name: layer(**{**usual, at: wrong}))
            if made is not None:
                answer(lambda made=made: made(nnc.ones((2, 4, 4, 4))))
    made = answer(lambda: layer(**usual))
    for x in INPUTS if made is not None else ():
        answer(lambda x=x: made(x))
    assert (nnc.ones(2) + 1).tolist() == [2, 2]


SAID: dict[str, tuple[str, Callable[[], Any]]] = {
    "no tensor": ("GRU: x is 5 (int), expected a Tensor", lambda: nn.GRU(3, 2)(5)),
    "a generator": ("Linear: generator is 5 (int), expected a Generator or None", lambda: nn.Linear(3, 2, generator=5)),
    "an initialiser": ("LSTMCell: init is 'ones' (str), expected a function or None",
                       lambda: nn.LSTM(3, 2, init="ones")),
    "axes": ("Permute: axes is 5 (int), expected a sequence of integers", lambda: nn.Permute(5)),
    "a state": ("LSTMCell: state is 5 (int), expected", lambda: nn.LSTMCell(3, 2)(nnc.ones((1, 3)), 5)),
    "an axis": ("BatchNorm: axis 'x' is no integer", lambda: nn.BatchNorm(3, axis="x")(nnc.ones((2, 3)))),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    said, call = SAID[name]
    with pytest.raises(nnc.Error) as caught:
        call()
    assert said in str(caught.value), str(caught.value)
    assert Path(__file__).name in str(caught.value), str(caught.value)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: nn.TransformerEncoder(8, 2, 1)(nnc.ones((1, 2, 8)), src_key_padding_mask=None),
     ("no argument 'src_key_padding_mask'", "key_mask=, true where there is a key: ~src_key_padding_mask")),
    (lambda: nn.TransformerDecoder(8, 2, 1)(nnc.ones((1, 2, 8)), nnc.ones((1, 2, 8)), tgt_mask=None),
     ("no argument 'tgt_mask'", "mask=, true where", "~tgt_mask")),
    (lambda: nn.MultiHeadAttention(8, 2)(nnc.ones((1, 2, 8)), need_weights=False),
     ("no argument 'need_weights'", "nnc.attention_weights")),
    (lambda: nn.GRU(8, 2)(nnc.ones((1, 2, 8)), hx=None), ("no argument 'hx'", "state=")),
    (lambda: nn.Linear(2, 3)(nnc.ones((1, 2)), attn_mask=None), ("'attn_mask'", "it takes x")),
    (lambda: nn.ReLU()(), ("missing a required argument: 'x'", "it takes x")),
    (lambda: nn.Linear(2, 3)(nnc.ones((1, 2)), 3), ("too many positional arguments", "it takes x")),
])  # fmt: skip
def test_a_call_with_other_arguments_says_which_there_are(call: Callable[[], Any], said: tuple[str, ...]) -> None:
    with pytest.raises(nnc.errors.OperandError) as caught:
        call()
    assert all(part in str(caught.value) for part in (*said, Path(__file__).name)), str(caught.value)


def test_modules_of_users_answer_for_themselves() -> None:
    class Mine(nn.Module):
        def forward(self, x: str) -> Any:
            return x + 1  # type: ignore[operator]

    assert Mine()(nnc.ones(2)).tolist() == [2, 2]  # type: ignore[call-overload]
    with pytest.raises(TypeError) as caught:
        Mine()({})
    assert not isinstance(caught.value, nnc.Error)


def test_stacks_of_transformer_layers_are_not_given_a_layer() -> None:
    layer = nn.TransformerEncoderLayer(8, 2)
    with pytest.raises(nnc.errors.OperandError, match=r"(?s)is a TransformerEncoderLayer, .*makes its layers itself"):
        nn.TransformerEncoder(layer, 2)  # type: ignore[arg-type]
    with pytest.raises(nnc.errors.OperandError, match=r"(?s)no argument 'decoder_layer'.*the layers are made here"):
        nn.TransformerDecoder(decoder_layer=layer, num_layers=2)  # type: ignore[call-arg]


def test_sizes_of_keys_and_values_have_pytorchs_names_too() -> None:
    made: Any = nn.MultiHeadAttention
    assert made(8, 2, kdim=3, vdim=4, add_bias_kv=False).value.in_features == 4
    with pytest.raises(nnc.errors.OperandError, match=r"(?s)no argument 'batch_first'.*swapaxes"):
        made(8, 2, batch_first=False)
