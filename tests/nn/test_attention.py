"""Attention and transformers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import erf, expit, softmax

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from tests.support import near, numbers

B, L, K, E = 2, 3, 4, 6


def part_of(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {key.removeprefix(f"{name}."): a for key, a in state.items() if key.startswith(f"{name}.")}


def linear(state: dict[str, Any], name: str, x: Any) -> Any:
    own = part_of(state, name)
    return x @ own["weight"] + own.get("bias", 0)


def attention(state: dict[str, Any], heads: int, query: Any, key: Any, value: Any, see: Any = None,
              added: Any = 0.0, key_heads: int | None = None) -> Any:
    """Head by head; `see` (batch, queries, keys) or less."""
    shared, out = key_heads or heads, []
    q = np.split(linear(state, "query", query), heads, -1)
    k, v = (np.split(linear(state, name, x), shared, -1) for name, x in (("key", key), ("value", value)))
    for head in range(heads):
        other = head // (heads // shared)
        scores = q[head] @ k[other].transpose(0, 2, 1) / np.sqrt(q[head].shape[-1]) + added
        if see is not None:
            scores = np.where(see, scores, -np.inf)
        out.append(softmax(scores, -1) @ v[other])
    return linear(state, "output", np.concatenate(out, -1))


def norm(state: dict[str, Any], name: str, x: Any) -> Any:
    own = part_of(state, name)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return y * own["scale"] + own["bias"]


ACTIVATIONS = {"relu": lambda x: np.maximum(x, 0), "gelu": lambda x: x * (1 + erf(x / np.sqrt(2))) / 2,
               "silu": lambda x: x * expit(x)}


def transformer_layer(state: dict[str, Any], heads: int, x: Any, memory: Any, activation: str, first: bool,
                      see: Any = None) -> Any:
    def joined(x: Any, name: str, f: Any) -> Any:
        return x + f(norm(state, name, x)) if first else norm(state, name, x + f(x))

    x = joined(x, "attention_norm", lambda y: attention(part_of(state, "attention"), heads, y, y, y, see))
    if memory is not None:
        own = part_of(state, "cross_attention")
        x = joined(x, "cross_attention_norm", lambda y: attention(own, heads, y, memory, memory))
    return joined(x, "feed_forward_norm",
                  lambda y: linear(state, "contract", ACTIVATIONS[activation](linear(state, "expand", y))))


def randomised(model: Any, seed: int = 3) -> Any:
    """Norms and biases are no ones and zeros."""
    rng = np.random.default_rng(seed)
    for p in model.parameters():
        p.write(nnc.asarray((rng.normal(size=p.spec.shape) * 0.5).astype(p.spec.dtype)))
    return model


# ---- attention
def test_self_attention_and_cross_attention(device: str) -> None:
    model = randomised(nn.MultiHeadAttention(E, 2, key_features=5, value_features=7))
    s, q, k, v = model.state_dict(), numbers(B, L, E), numbers(B, K, 5, seed=1), numbers(B, K, 7, seed=2)
    for run in (model, nnc.jit(model)):
        near(run(nnc.asarray(q), nnc.asarray(k), nnc.asarray(v)), attention(s, 2, q, k, v))
    alone = randomised(nn.MultiHeadAttention(E, 3, bias=False))
    assert list(alone.state_dict()) == ["query.weight", "key.weight", "value.weight", "output.weight"]
    near(alone(nnc.asarray(q)), attention(alone.state_dict(), 3, q, q, q))


def test_heads_that_share_keys_and_have_sizes_of_their_own() -> None:
    model, x = randomised(nn.MultiHeadAttention(E, 4, head_size=5, key_heads=2)), numbers(B, L, E)
    assert model.key.weight.spec.shape == (E, 10) and model.output.weight.spec.shape == (20, E)
    near(model(nnc.asarray(x)), attention(model.state_dict(), 4, x, x, x, key_heads=2))
    assert repr(model).startswith("MultiHeadAttention(6, 4, head_size=5, key_heads=2)")


def test_masks(rng: np.random.Generator) -> None:
    model, x = randomised(nn.MultiHeadAttention(E, 2)), numbers(B, L, E)
    s, given = model.state_dict(), nnc.asarray(x)
    boolean = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
    keys = np.array([[1, 1, 1], [1, 1, 0]], bool)
    added = rng.normal(size=(L, L)).astype(np.float32)
    below = np.tril(np.ones((L, L), bool))
    near(model(given, mask=nnc.asarray(boolean)), attention(s, 2, x, x, x, boolean))
    near(model(given, mask=nnc.asarray(added)), attention(s, 2, x, x, x, added=added))
    near(model(given, key_mask=nnc.asarray(keys)), attention(s, 2, x, x, x, keys[:, None]))
    near(model(given, causal=True), attention(s, 2, x, x, x, below))
    near(model(given, causal=True, offset=1), attention(s, 2, x, x, x, np.tril(np.ones((L, L), bool), 1)))
    near(model(given, mask=nnc.asarray(boolean), key_mask=nnc.asarray(keys)),
         attention(s, 2, x, x, x, boolean & keys[:, None]))
    near(model(given, mask=nnc.asarray(added), key_mask=nnc.asarray(keys), causal=True),
         attention(s, 2, x, x, x, below & keys[:, None], added))


def test_a_query_that_sees_nothing_gives_the_output_of_zeros() -> None:
    model, x = randomised(nn.MultiHeadAttention(E, 2)), nnc.asarray(numbers(B, L, E))
    y = model(x, key_mask=nnc.asarray([[True] * L, [False] * L]))
    near(y[1], np.broadcast_to(model.state_dict()["output.bias"], (L, E)))


def test_dropout_of_weights_in_training_only() -> None:
    model, x = randomised(nn.MultiHeadAttention(E, 2, dropout=0.5)), numbers(B, L, E)
    given = nnc.asarray(x)
    assert not np.array_equal(model(given).numpy(), model(given).numpy())
    near(model.eval()(given), attention(model.state_dict(), 2, x, x, x))


@pytest.mark.parametrize("make, call, error, words", [
    (lambda: nn.MultiHeadAttention(6, 4), None, AttributeValueError, "6 features cannot be split into 4 heads"),
    (lambda: nn.MultiHeadAttention(6, 3, key_heads=2), None, AttributeValueError, "3 heads cannot share 2 key heads"),
    (lambda: nn.MultiHeadAttention(6, 2, dropout=1.5), None, AttributeValueError, "dropout is 1.5"),
    (lambda: nn.TransformerEncoder(6, 2, 0), None, AttributeValueError, "TransformerEncoder: layers is 0"),
    (lambda: nn.TransformerEncoderLayer(6, 2, activation="tanh"), None, AttributeValueError, "activation 'tanh'"),
    (lambda: nn.MultiHeadAttention(6, 2), lambda m: m(nnc.ones((3, 6))), ShapeError, "three dimensions, BLF"),
    (lambda: nn.MultiHeadAttention(6, 2), lambda m: m(nnc.ones((1, 3, 6)), key_mask=nnc.ones((1, 3))), DTypeError,
     "key_mask is float32(.|\n)*key_padding_mask is the opposite"),
    (lambda: nn.MultiHeadAttention(6, 2), lambda m: m(nnc.ones((1, 3, 6)), key_mask=nnc.ones((1, 2), dtype="bool")),
     ShapeError, r"expected \(batch, keys\) = \(1, 3\)"),
    (lambda: nn.PositionalEncoding(6), lambda m: m(nnc.ones((1, 3, 4))), ShapeError, "features .* should be 6"),
])
def test_what_is_refused(make: Any, call: Any, error: type[Exception], words: str) -> None:
    model = make() if call else None
    with pytest.raises(error, match=words):
        call(model) if call else make()


# ---- transformers
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("first", [False, True])
def test_encoder_and_decoder_layers(first: bool, activation: str) -> None:
    x, memory = numbers(B, L, E), numbers(B, K, 4, seed=1)
    below, options = np.tril(np.ones((L, L), bool)), {"hidden": 8, "activation": activation, "norm_first": first}
    encoder = randomised(nn.TransformerEncoderLayer(E, 2, **options)).eval()
    s = encoder.state_dict()
    near(encoder(nnc.asarray(x)), transformer_layer(s, 2, x, None, activation, first))
    near(encoder(nnc.asarray(x), causal=True), transformer_layer(s, 2, x, None, activation, first, below))
    decoder = randomised(nn.TransformerDecoderLayer(E, 2, 4, **options)).eval()
    near(decoder(nnc.asarray(x), nnc.asarray(memory)),
         transformer_layer(decoder.state_dict(), 2, x, memory, activation, first, below))


def test_stacks_of_layers_in_all_modes(device: str) -> None:
    x, memory = numbers(B, L, E), numbers(B, K, E, seed=1)
    encoder = randomised(nn.TransformerEncoder(E, 2, 2, hidden=8, norm_first=True)).eval()
    y = x
    for k in range(2):
        y = transformer_layer(part_of(encoder.state_dict(), f"layers.{k}"), 2, y, None, "relu", True)
    y = norm(encoder.state_dict(), "norm", y)
    with nnc.deferred():
        late = encoder(nnc.asarray(x))
    for found in (encoder(nnc.asarray(x)), nnc.jit(encoder)(nnc.asarray(x)), late):
        near(found, y)
    decoder = randomised(nn.TransformerDecoder(E, 2, 2, hidden=8)).eval()
    assert decoder.norm is None
    z = x
    for k in range(2):
        z = transformer_layer(part_of(decoder.state_dict(), f"layers.{k}"), 2, z, memory, "relu", False,
                              np.tril(np.ones((L, L), bool)))
    near(decoder(nnc.asarray(x), nnc.asarray(memory)), z)


def test_dropout_of_layers_is_drawn_anew_and_the_same_compiled() -> None:
    x = nnc.asarray(numbers(B, L, E))
    nnc.manual_seed(3)
    plain = nn.TransformerEncoderLayer(E, 2, hidden=8, dropout=0.3)
    nnc.manual_seed(3)
    other = nn.TransformerEncoderLayer(E, 2, hidden=8, dropout=0.3)
    run = nnc.jit(other)
    first, second = plain(x).numpy(), plain(x).numpy()
    assert not np.array_equal(first, second)
    near(run(x), first), near(run(x), second)


def test_a_transformer_is_differentiated(device: str) -> None:
    model = randomised(nn.TransformerEncoder(E, 2, 1, hidden=4, dtype="float64")).eval()
    x = nnc.asarray(numbers(1, L, E).astype(np.float64))
    both = nn.value_and_grad(model, lambda: (model(x, causal=True) ** 3).sum())
    _, grads = both()
    _, compiled = nnc.jit(both)()
    rng = np.random.default_rng(0)
    for name, p in model.named_parameters().items():
        before, direction, losses = p.read(), rng.normal(size=p.spec.shape), []
        for sign in (1, -1):
            p.write(before + nnc.asarray(direction * 1e-5 * sign))
            losses.append(both()[0].item())
        p.write(before)
        for found in (grads, compiled):
            np.testing.assert_allclose((found[name].numpy() * direction).sum(), (losses[0] - losses[1]) / 2e-5,
                                       rtol=1e-5, atol=1e-7, err_msg=name)


# ---- places
@pytest.mark.parametrize("features", [4, 5])
def test_positional_encoding(features: int, device: str) -> None:
    x = numbers(B, L, features)
    angles = np.arange(5)[:, None] * 10000.0 ** (-2 * np.arange(3) / features)
    table = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(5, -1)[:, :features]
    layer = nn.PositionalEncoding(features)
    for run in (layer, nnc.jit(layer)):
        near(run(nnc.asarray(x)), x + table[:L])
        near(run(nnc.asarray(x), 2), x + table[2 : 2 + L])
    assert layer(nnc.asarray(x).astype("float16")).dtype == nnc.float16
    away = nnc.asarray(x).to("strict-nofloat64:0")
    assert layer(away).device.id == "strict-nofloat64:0"
