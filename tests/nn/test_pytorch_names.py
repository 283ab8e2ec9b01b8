"""States of PyTorch's: its own layers, in NumPy, compute the same with the arrays that ours give and take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DTypeError, NotSupportedError, OperandError, ShapeError, StateError
from tests.nn import pytorch_numpy as torch
from tests.nn.pytorch_numpy import under
from tests.support import numbers


def last(x: Any) -> Any:
    """NCHW as NHWC."""
    return x.transpose(0, 2, 3, 1)


class Case(NamedTuple):
    make: Callable[[], Any]
    shapes: dict[str, tuple[int, ...]]
    """Of PyTorch's state_dict."""
    run: Callable[[Any, Any], Any]
    reference: Callable[[Any, Any], Any]
    x: Any


def recurrent_shapes(gates: int, features: int, n: int, layers: int, directions: int, projection: int = 0) -> Any:
    found = {}
    size = projection or n
    for layer in range(layers):
        for side in ("", "_reverse")[:directions]:
            name = f"l{layer}{side}"
            taken = features if layer == 0 else directions * size
            found |= {f"weight_ih_{name}": (gates * n, taken), f"weight_hh_{name}": (gates * n, size),
                      f"bias_ih_{name}": (gates * n,), f"bias_hh_{name}": (gates * n,)}
            if projection:
                found[f"weight_hr_{name}"] = (projection, n)
    return found


def prefixed(prefix: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {f"{prefix}.{name}": shape for name, shape in shapes.items()}


def given(model: Any, x: Any) -> Any:
    return model.eval()(nnc.asarray(x)).numpy()


def images(model: Any, x: Any) -> Any:
    return given(model, last(x)).transpose(0, 3, 1, 2)


E, H = 6, 8
ATTENTION = {"in_proj_weight": (3 * E, E), "in_proj_bias": (3 * E,), "out_proj.weight": (E, E), "out_proj.bias": (E,)}
PAIR = {"weight": (E,), "bias": (E,)}
FEED = {"linear1.weight": (H, E), "linear1.bias": (H,), "linear2.weight": (E, H), "linear2.bias": (E,)}
ENCODER = {**prefixed("self_attn", ATTENTION), **FEED, **prefixed("norm1", PAIR), **prefixed("norm2", PAIR)}
DECODER = {**ENCODER, **prefixed("multihead_attn", ATTENTION), **prefixed("norm3", PAIR)}
SEQUENCE, IMAGE = numbers(2, 4, 3), numbers(2, 4, 5, 6)
CASES = {
    "linear": Case(lambda: nn.Linear(3, 2), {"weight": (2, 3), "bias": (2,)}, given, torch.linear, SEQUENCE),
    "embedding": Case(lambda: nn.Embedding(5, 3), {"weight": (5, 3)}, given, lambda s, x: s["weight"][x],
                      np.array([[1, 4]])),
    "conv": Case(lambda: nn.Conv2d(4, 6, 3, strides=2, padding=1, groups=2),
                 {"weight": (6, 2, 3, 3), "bias": (6,)}, images, lambda s, x: torch.conv2d(s, x, 2, 1, 2), IMAGE),
    "conv, channels first": Case(lambda: nn.Conv2d(4, 6, (3, 2), bias=False, layout="NCHW"), {"weight": (6, 4, 3, 2)},
                                 given, torch.conv2d, IMAGE),
    "transposed": Case(lambda: nn.ConvTranspose2d(4, 3, (3, 2), strides=2), {"weight": (4, 3, 3, 2), "bias": (3,)},
                       images, lambda s, x: torch.conv_transpose2d(s, x, 2), IMAGE),
    "transposed, channels first": Case(lambda: nn.ConvTranspose2d(4, 3, 2, layout="NCHW"),
                                       {"weight": (4, 3, 2, 2), "bias": (3,)}, given, torch.conv_transpose2d, IMAGE),
    "batch norm": Case(lambda: nn.BatchNorm(4), dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (4,)),
                       images, torch.batch_norm, IMAGE),
    "layer norm": Case(lambda: nn.LayerNorm(3), {"weight": (3,), "bias": (3,)}, given, torch.layer_norm, SEQUENCE),
    "rnn": Case(lambda: nn.RNN(3, 2, returns="outputs"), recurrent_shapes(1, 3, 2, 1, 1), given,
                lambda s, x: torch.recurrent(s, x, "rnn"), SEQUENCE),
    "gru": Case(lambda: nn.GRU(3, 2, 2, bidirectional=True, returns="outputs"), recurrent_shapes(3, 3, 2, 2, 2), given,
                lambda s, x: torch.recurrent(s, x, "gru", 2, 2), SEQUENCE),
    "lstm": Case(lambda: nn.LSTM(3, 2, 2, bidirectional=True, returns="outputs"), recurrent_shapes(4, 3, 2, 2, 2),
                 given, lambda s, x: torch.recurrent(s, x, "lstm", 2, 2), SEQUENCE),
    "projected": Case(lambda: nn.LSTM(3, 4, 2, projection=2, returns="outputs"), recurrent_shapes(4, 3, 4, 2, 1, 2),
                      given, lambda s, x: torch.recurrent(s, x, "lstm", 2), SEQUENCE),
    "attention": Case(lambda: nn.MultiHeadAttention(E, 2), ATTENTION, given,
                      lambda s, x: torch.attention(s, 2, x, x, x), numbers(2, 3, E)),
    "cross attention": Case(
        lambda: nn.MultiHeadAttention(E, 2, key_features=4, value_features=5),
        {"q_proj_weight": (E, E), "k_proj_weight": (E, 4), "v_proj_weight": (E, 5), "in_proj_bias": (3 * E,),
         "out_proj.weight": (E, E), "out_proj.bias": (E,)},
        lambda m, x: m(*[nnc.asarray(x[..., :n]) for n in (E, 4, 5)]).numpy(),
        lambda s, x: torch.attention(s, 2, x[..., :E], x[..., :4], x[..., :5]), numbers(2, 3, E)),
    "encoder layer": Case(lambda: nn.TransformerEncoderLayer(E, 2, hidden=H), ENCODER, given,
                          lambda s, x: torch.encoder_layer(s, 2, x), numbers(2, 3, E)),
    "encoder": Case(lambda: nn.TransformerEncoder(E, 2, 2, True, hidden=H),
                    {**prefixed("layers.0", ENCODER), **prefixed("layers.1", ENCODER), **prefixed("norm", PAIR)},
                    given, lambda s, x: torch.layer_norm(under(s, "norm"), torch.encoder_layer(
                        under(s, "layers.1"), 2, torch.encoder_layer(under(s, "layers.0"), 2, x))), numbers(2, 3, E)),
    "decoder layer": Case(lambda: nn.TransformerDecoderLayer(E, 2, hidden=H), DECODER,
                          lambda m, x: m.eval()(nnc.asarray(x), nnc.asarray(x[:, ::-1]), causal=False).numpy(),
                          lambda s, x: torch.decoder_layer(s, 2, x, x[:, ::-1]), numbers(2, 3, E)),
}  # fmt: skip
each = pytest.mark.parametrize("kind", CASES)


def state_of(shapes: dict[str, tuple[int, ...]], seed: int = 1) -> dict[str, Any]:
    """Random numbers; variances are positive."""
    rng = np.random.default_rng(seed)
    return {name: (abs(a) + 0.5 if name.endswith("running_var") else a) for name, a in
            ((name, (rng.normal(size=shape) * 0.5).astype(np.float32)) for name, shape in shapes.items())}


@each
def test_ours_computes_the_same_with_arrays_of_pytorch(kind: str) -> None:
    case = CASES[kind]
    state, model = state_of(case.shapes), case.make()
    assert nn.from_pytorch_state(model, state) == ((), ())
    np.testing.assert_allclose(case.run(model, case.x), case.reference(state, case.x), rtol=2e-4, atol=2e-5)


@each
def test_pytorch_computes_the_same_with_arrays_of_ours(kind: str) -> None:
    case = CASES[kind]
    model = case.make()
    state = nn.to_pytorch_state(model)
    assert {name: a.shape for name, a in state.items()} == case.shapes
    assert all(a.flags.c_contiguous for a in state.values())
    np.testing.assert_allclose(case.run(model, case.x), case.reference(state, case.x), rtol=2e-4, atol=2e-5)


@each
def test_there_and_back_changes_no_bit(kind: str) -> None:
    case = CASES[kind]
    state, model = state_of(case.shapes), case.make()
    nn.from_pytorch_state(model, state)
    back = nn.to_pytorch_state(model)
    assert back.keys() == state.keys()
    for name, a in state.items():
        np.testing.assert_array_equal(back[name], a, err_msg=name)


def small() -> nn.Sequential:
    """A network that PyTorch has with the same names."""
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm(3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.5),
                         nn.Linear(4 * 5 * 3, 2))


def test_a_whole_network_whose_image_is_flattened() -> None:
    model, x = small().eval(), numbers(2, 1, 6, 7)
    state = state_of({name: a.shape for name, a in nn.to_pytorch_state(model).items()})
    assert list(state) == ["0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var", "5.weight",
                           "5.bias"]
    state["1.num_batches_tracked"] = np.array(7)
    nn.from_pytorch_state(model, state, flattened={"5": (4, 5, 3)})
    h = np.maximum(torch.batch_norm(under(state, "1"), torch.conv2d(under(state, "0"), x)), 0)
    expected = torch.linear(under(state, "5"), h.reshape(2, -1))
    np.testing.assert_allclose(given(model, last(x)), expected, rtol=1e-4, atol=1e-5)
    back = nn.to_pytorch_state(model, flattened={"5": (4, 5, 3)})
    for name, a in back.items():
        np.testing.assert_array_equal(a, state[name], err_msg=name)
    with pytest.raises(OperandError, match=r"'0' of `flattened` is no nn.Linear"):
        nn.to_pytorch_state(model, flattened={"0": (4, 5, 3)})


def test_prefixes_and_other_names() -> None:
    model = small()
    state = nn.to_pytorch_state(model, prefix="backbone.", rename=lambda n: n.replace("0.", "conv.", 1))
    assert "backbone.conv.weight" in state and "backbone.1.running_var" in state
    other = small()
    nn.from_pytorch_state(other, {**state, "head.weight": np.ones(3)}, prefix="backbone.",
                          rename=lambda n: n.replace("0.", "conv.", 1))
    for name, a in model.named_parameters().items():
        np.testing.assert_array_equal(other.state_dict()[name], a.read().numpy())


class Tied(nn.Module):
    """A language model whose last layer has the weights of the first; and a buffer of its own."""

    def __init__(self) -> None:
        self.embedding, self.decoder = nn.Embedding(5, 3), nn.Embedding(5, 3)
        self.decoder.weight = self.embedding.weight
        self.again = self.embedding
        self.scale = nn.Parameter(nnc.ones(3))
        self.drop = nn.Dropout(0.5)


def test_shared_weights_have_all_of_their_names() -> None:
    model = Tied()
    state = nn.to_pytorch_state(model)
    assert set(state) == {"embedding.weight", "decoder.weight", "again.weight", "scale"}
    new = numbers(5, 3)
    assert nn.from_pytorch_state(model, {"decoder.weight": new, "scale": state["scale"]}) == ((), ())
    np.testing.assert_array_equal(model.embedding.weight.read().numpy(), new)
    nn.from_pytorch_state(model, dict.fromkeys(("embedding.weight", "decoder.weight", "again.weight"), new)
                          | {"scale": state["scale"]})
    with pytest.raises(StateError, match=r"differs from what else is 'embedding.weight', which is shared"):
        nn.from_pytorch_state(model, {**state, "decoder.weight": new + 1})


def test_random_keys_stay() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5, nnc.Generator(9)))
    nn.from_pytorch_state(model, nn.to_pytorch_state(model))
    assert model[1].generator.state == (9, 0)


def test_names_that_do_not_fit_are_listed_and_nothing_changes() -> None:
    model = small()
    before = model.state_dict()
    state = nn.to_pytorch_state(small())
    wrong = {name: a for name, a in state.items() if name not in ("0.bias", "5.weight")} | {"a": np.ones(1),
                                                                                          "b": np.ones(1)}
    with pytest.raises(StateError, match=r"Sequential does not fit: missing 0.bias, 5.weight; unexpected a, b"):
        nn.from_pytorch_state(model, wrong)
    with pytest.raises(ShapeError, match=r"'5.weight' has shape \(60, 2\), expected \(2, 60\) for '5.weight'"):
        nn.from_pytorch_state(model, {**state, "5.weight": state["5.weight"].T})
    with pytest.raises(DTypeError, match="dtype float64"):
        nn.from_pytorch_state(model, {**state, "0.bias": np.ones(3)})
    assert all(np.array_equal(a, before[name]) for name, a in model.state_dict().items())
    found = nn.from_pytorch_state(model, wrong, strict=False)
    assert found.missing == ("0.bias", "5.weight") and found.unexpected == ("a", "b")
    np.testing.assert_array_equal(model.state_dict()["5.bias"], state["5.bias"])
    np.testing.assert_array_equal(model.state_dict()["0.bias"], before["0.bias"])


def test_tensors_and_whatever_numpy_takes_are_arrays() -> None:
    class Foreign:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return self.array

    model = nn.Linear(3, 2)
    weight, bias = numbers(2, 3), numbers(2, seed=4)
    nn.from_pytorch_state(model, {"weight": nnc.asarray(weight), "bias": Foreign(bias)})
    np.testing.assert_array_equal(model.weight.read().numpy(), weight.T)
    np.testing.assert_array_equal(model.bias.read().numpy(), bias)


@pytest.mark.parametrize("make, words", [
    (lambda: nn.GRU(3, 2, reset_after=False), r"GRUCell.*applies the reset gate after(.|\n)*reset_after=True"),
    (lambda: nn.MultiHeadAttention(6, 2, head_size=4), "heads of features / heads"),
    (lambda: nn.MultiHeadAttention(6, 2, key_heads=1), "keys of its own"),
])
def test_what_pytorch_has_not(make: Any, words: str) -> None:
    with pytest.raises(NotSupportedError, match=words):
        nn.to_pytorch_state(nn.Sequential(make()))


def test_a_functional_network() -> None:
    x = nn.Input((3,))
    net = nn.Network(x, nn.Linear(4, 2)(nn.Linear(3, 4)(x)))
    assert {name: a.shape for name, a in nn.to_pytorch_state(net).items()} == {
        "linear.weight": (4, 3), "linear.bias": (4,), "linear_1.weight": (2, 4), "linear_1.bias": (2,)}
