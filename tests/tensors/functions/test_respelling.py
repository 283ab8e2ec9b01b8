"""Calls in the spellings of NumPy and PyTorch: taken where they mean one thing, one error with the name otherwise."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core import nn
from nnc_core.spellings.tables import ADVICE
from tests.tensors.faults import fails

X = np.array([[0.25, -1.5, 3.0], [2.0, 0.5, -0.75]])

TAKEN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "axis": (lambda t: nnc.sum(t, 0), lambda a: a.sum(0)),
    "dim": (lambda t: nnc.sum(t, dim=1, keepdim=True), lambda a: a.sum(1, keepdims=True)),
    "method dim": (lambda t: t.mean(dim=-1, keepdim=True), lambda a: a.mean(-1, keepdims=True)),
    "input": (lambda t: nnc.max(input=t), lambda a: a.max()),
    "a": (lambda t: nnc.mean(a=t, axis=0), lambda a: a.mean(0)),
    "numpy's order": (lambda t: nnc.std(t, 0, None, None, 1), lambda a: a.std(0, None, None, 1)),
    "ddof": (lambda t: nnc.var(t, ddof=1), lambda a: a.var(ddof=1)),
    "unbiased": (lambda t: nnc.var(t, unbiased=True), lambda a: a.var(ddof=1)),
    "n of diff": (lambda t: nnc.diff(t, 2), lambda a: np.diff(a, 2)),
    "concat axis": (lambda t: nnc.concat([t, t], 1), lambda a: np.concatenate([a, a], 1)),
    "concat dim": (lambda t: nnc.concat(tensors=[t, t], dim=1), lambda a: np.concatenate([a, a], 1)),
    "softmax": (lambda t: nnc.softmax(t, 0), lambda a: np.exp(a) / np.exp(a).sum(0)),
    "dims": (lambda t: nnc.flip(t, dims=(0,)), lambda a: a[::-1]),
    "clip": (lambda t: nnc.clip(t, a_min=0, a_max=1), lambda a: a.clip(0, 1)),
    "newshape": (lambda t: nnc.reshape(t, newshape=(3, 2)), lambda a: a.reshape(3, 2)),
    "sizes": (lambda t: nnc.ones(2, 3), lambda a: np.ones((2, 3))),
    "dtype of ones": (lambda t: nnc.zeros((2,), "int8"), lambda a: np.zeros(2, "int8")),
    "scipy's psi": (lambda t: nnc.psi(nnc.abs(t) + 0.5), lambda a: scipy.special.psi(np.abs(a) + 0.5)),
    "sort kind": (lambda t: nnc.sort(t, 0, "mergesort"), lambda a: np.sort(a, 0)),
    "out": (lambda t: nnc.sum(t, axis=0, out=None), lambda a: a.sum(0)),
    "stride": (lambda t: nnc.max_pool2d(nnc.reshape(t, (1, 2, 3, 1)), kernel_size=2, stride=1),
               lambda a: np.array([2.0, 3.0]).reshape(1, 1, 2, 1)),
    "classes": (lambda t: nnc.one_hot([1, 0], num_classes=2), lambda a: np.eye(2)[::-1]),
    "rate": (lambda t: nnc.dropout(t, p=0.0), lambda a: a),
    "the only one": (lambda t: nnc.leaky_relu(t, 0.5), lambda a: np.where(a > 0, a, 0.5 * a)),
    "interleaved": (lambda t: nnc.repeat_interleave(t, 2, dim=1), lambda a: a.repeat(2, 1)),
    "flatten": (lambda t: t.reshape(2, 3, 1).flatten(1), lambda a: a),
    "flatten up to": (lambda t: t.reshape(1, 2, 3).flatten(0, 1), lambda a: a),
    "flatten all": (lambda t: t.flatten(), lambda a: a.ravel()),
    "flatten a number": (lambda t: nnc.sum(t).flatten(), lambda a: a.sum()[None]),
    "flatten nothing": (lambda t: t[:0].flatten(1), lambda a: a[:0]),
    "length of a transform": (lambda t: nnc.fft.fft(t, 1), lambda a: np.fft.fft(a, 1)),
    "all of a transform": (lambda t: nnc.fft.ifft(t, 4, 0, "ortho"), lambda a: np.fft.ifft(a, 4, 0, "ortho")),
    "length of a signal": (lambda t: nnc.fft.irfft(t, 5), lambda a: np.fft.irfft(a, 5)),
    "lengths and axes": (lambda t: nnc.fft.fftn(t, (3, 2), (1, 0)), lambda a: np.fft.fftn(a, (3, 2), (1, 0))),
    "axes of a shift": (lambda t: nnc.fft.fftshift(t, 1), lambda a: np.fft.fftshift(a, 1)),
    "order of a norm": (lambda t: nnc.linalg.vector_norm(t, 1), lambda a: np.abs(a).sum()),
    "order and axis": (lambda t: nnc.linalg.vector_norm(t, 1, 0), lambda a: np.abs(a).sum(0)),
    "order of vectors": (lambda t: nnc.normalise(t, 1), lambda a: a / np.abs(a).sum(1, keepdims=True)),
    "temperature": (lambda t: nnc.gumbel_softmax(t, 1).sum(-1), lambda a: np.ones(2)),
    "default": (lambda t: nnc.asarray(X, "float32"), lambda a: a.astype("float32")),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_means_one_thing_is_taken(name: str) -> None:
    ours, numpys = TAKEN[name]
    found, wanted = ours(nnc.asarray(X)).numpy(), numpys(X)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_layers_take_pytorchs_names() -> None:
    assert nn.Conv2d(1, 2, kernel_size=3, stride=2).strides == (2, 2)
    assert nn.Conv2d(1, 2, 3, padding=1, padding_mode="zeros").padding == nn.Conv2d(1, 2, 3, padding=1).padding
    assert nn.LayerNorm(4, eps=1e-3).epsilon == 1e-3 and nn.Dropout(p=0.25).rate == 0.25
    assert nn.GroupNorm(num_groups=2, num_channels=4).groups == 2 and nn.Flatten(start_dim=2).start == 2
    assert nn.MultiHeadAttention(embed_dim=8, num_heads=2).heads == 2
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)
    assert (layer.attention.heads, layer.expand.out_features) == (2, 16)
    assert len(nn.LSTM(3, 4, num_layers=2, batch_first=True).layers) == 2
    assert nn.Embedding(num_embeddings=3, embedding_dim=4)(nnc.asarray([0])).shape == (1, 4)


def test_transforms_and_methods_take_pytorchs_names() -> None:
    t = nnc.asarray(X)
    assert nnc.vmap(nnc.sum, in_dims=1)(t).tolist() == X.sum(0).tolist()
    v = nnc.variable(t)
    loss = nnc.sum(v * 2)
    loss.backward(retain_graph=True)
    loss.backward()
    assert v.grad is not None and (v.grad == 4).all()
    assert t.to(nnc.float32).dtype == nnc.float32 and t.to(dtype=nnc.float16).dtype == nnc.float16
    moved = t.to("strict:0", nnc.float32)
    assert (moved.device.id, moved.dtype) == ("strict:0", nnc.float32) and t.to().tolist() == X.tolist()
    assert nnc.jit(lambda x: x.to(nnc.float32))(t).dtype == nnc.float32


def test_in_every_mode(device: str) -> None:
    x = nnc.asarray(X.astype(np.float32))
    wanted = X.sum(0).astype(np.float32)
    np.testing.assert_allclose(nnc.jit(lambda x: nnc.sum(x, dim=0))(x).numpy(), wanted, rtol=1e-6)
    symbol = nnc.var_arr("x")
    y = nnc.sum(symbol, dim=0)
    nnc.assign(symbol, x)
    nnc.eval_arr(y)
    np.testing.assert_allclose(nnc.unpack_arr(y), wanted, rtol=1e-6)


WRONG: list[tuple[Callable[[Any], Any], tuple[str, ...]]] = [
    (lambda t: nnc.sum(t, axs=0), ("no argument 'axs'", "axis=")),
    (lambda t: nnc.sum(t, out=np.zeros(3)), ("'out'", "y[...] = the result")),
    (lambda t: nnc.sum(t, nothing=1), ("'nothing'", "it takes x, axis, dtype, keepdims")),
    (lambda t: nnc.sum(), ("missing", "'x'")),
    (lambda t: nnc.sum(t, 1, None, None, False, 0, True, 8), ("8 arguments by position where 1 are taken",)),
    (lambda t: nnc.sum(t, axis=0, dim=1), ("'dim'",)), (lambda t: nnc.reshape(t, 3, 2), ("'order'",)),
    (lambda t: nnc.transpose(t, 0, 1), ("3 arguments by position",)),
    (lambda t: nnc.tensor(t, requires_grad=True), ("nnc.variable",)),
    (lambda t: nn.Linear(2, 3, nothing=1), ("Linear", "'nothing'", "in_features")),
    (lambda t: nnc.gather(t, t, axis=1), ("'axis' is given twice", "x, axis, index")),
    (lambda t: nnc.layer_norm(t, t, t, t), ("4 arguments by position where 3 are taken", "scale, bias, axis")),
    (lambda t: nn.TransformerEncoderLayer(8, 2, hiden=4), ("'hiden'", "hidden=")),
    (lambda t: nn.TransformerEncoderLayer(8, 2, 4), ("3 arguments by position where 2 are taken", "hidden, dropout")),
    (lambda t: nn.ReLU(inplace=True), ("takes no arguments", "leave inplace out")),
    (lambda t: nnc.sum(nnc.variable(t)).backward(create_graph=True), ("'create_graph'", "nnc.grad of a function")),
    (lambda t: nnc.vmap(nnc.sum, randomness="same"), ("vmap", "'randomness'", "f, in_axes, out_axes")),
    (lambda t: nnc.vmap(5), ("vmap", "no function")),
    (lambda t: nn.LeakyReLU(0.1, inplace=True), ("'inplace'", "leave it out")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "said"), WRONG, ids=[said[0] for _, said in WRONG])
def test_what_is_not_taken_is_one_error(call: Callable[[Any], Any], said: tuple[str, ...]) -> None:
    with fails(TypeError, *said):
        call(nnc.asarray(X))


def test_errors_of_the_function_itself_stay() -> None:
    def f(x: Any) -> Any:
        return (lambda: 0)(x)  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="0 positional arguments"):
        nnc.grad(f)(nnc.ones(2))
    with fails(TypeError, "an integer"):
        nnc.trace(nnc.asarray(X), offset="a")


# ---- names
def test_names_that_mean_the_same() -> None:
    t = nnc.asarray(X)
    assert nnc.concatenate is nnc.concat and nnc.absolute is nnc.abs
    assert nnc.power is nnc.pow and nnc.mul is nnc.multiply
    assert nnc.array(X).tolist() == X.tolist() and nnc.tensor([1.0], dtype=nnc.double).dtype == np.float64
    assert nnc.transpose(t).shape == (3, 2) and nnc.transpose(t, (0, 1)).shape == (2, 3)
    assert nnc.clamp(t, min=0.0).tolist() == X.clip(0).tolist()
    assert "concatenate" not in nnc.__all__ and not hasattr(nnc, "no_such_name")


def test_another_array_of_the_same_value_is_written_alone() -> None:
    t = nnc.asarray(X)
    u = nnc.array(t)
    u[0, 0] = 9.0
    assert t.tolist() == X.tolist()


@pytest.mark.parametrize(("name", "said"), [("randn", "normal(shape)"), ("compile", "nnc.jit"), ("cuda",
"x.to(device)")])
def test_names_with_an_answer(name: str, said: str) -> None:
    with fails(AttributeError, f"no attribute '{name}'", said, line=False):
        getattr(nnc, name)


def test_a_misspelt_name_has_what_python_suggests_by() -> None:
    with pytest.raises(nnc.errors.UnknownNameError) as caught:
        nnc.concatt  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("concatt", nnc)


@pytest.mark.parametrize(("name", "said"), [
    ("view", "x.reshape(shape)"), ("cuda", "x.to("), ("exp", "nnc.exp(x, ...)"), ("absolute", "nnc.abs(x, ...)"),
    ("unsqueeze", "nnc.expand_dims(x, axis)"), ("nothing", ""),
])  # fmt: skip
def test_attributes_of_tensors(name: str, said: str) -> None:
    t = nnc.asarray(X)
    with fails(AttributeError, f"'Tensor' object has no attribute '{name}'", said, line=False):
        getattr(t, name)
    with fails(AttributeError, name, line=False):
        getattr(nnc.jit(lambda x: x)(t), name)
    assert getattr(t, "__cuda_array_interface__", None) is None


def test_settings_that_are_advised_are_settings() -> None:
    advised = [text for text in ADVICE.values() if text.startswith("nnc.config.")]
    assert any("=" in text for text in advised)
    for text in advised:
        name, _, value = text.removeprefix("nnc.config.").partition(" = ")
        with nnc.config.using(**{name: ast.literal_eval(value) if value else getattr(nnc.config, name)}):
            pass
