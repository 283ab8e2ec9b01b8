"""Modules in lists, dicts and sequences: names, parts, changes, files and compiled code; modules of another dtype."""

from __future__ import annotations

import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import (
    AttributeValueError,
    DTypeError,
    NotSupportedError,
    OperandError,
    OutOfRangeError,
    ShapeError,
)

X = nnc.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))


class Blocks(nn.Module):
    """Written as in PyTorch."""

    def __init__(self) -> None:
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
        self.heads = nn.ModuleDict({"left": nn.Linear(3, 2), "right": nn.Sequential(nnc.tanh, nn.Linear(3, 2))})

    def forward(self, x: nnc.Tensor, head: str = "left") -> nnc.Tensor:
        for block in self.blocks:
            x = nnc.relu(block(x)) + x
        return self.heads[head](x) * len(self.blocks)


def near(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


# ---- lists
def test_names_are_those_of_pytorch() -> None:
    model = Blocks()
    assert list(model.state_dict()) == [
        *[f"blocks.{i}.{name}" for i in range(3) for name in ("weight", "bias")],
        "heads.left.weight", "heads.left.bias", "heads.right.1.weight", "heads.right.1.bias"]
    assert "heads: ModuleDict()" in repr(model) and "blocks" in model.summary((4, 3))
    assert model.blocks[0].weight.name == "weight"


@pytest.mark.parametrize("kind", [lambda parts: nn.Sequential(*parts), nn.ModuleList])
def test_lists_of_modules(kind: Any) -> None:
    parts = [nn.Linear(3, 3) for _ in range(4)]
    held = kind(parts)
    assert len(held) == 4 and list(held) == parts and held[-1] is parts[3] and held[np.int64(1)] is parts[1]
    assert type(held[:2]) is type(held) and list(held[:2]) == parts[:2] and list(held[::-2]) == parts[::-2]
    assert parts[2] in held and list(held + nn.ModuleList([nnc.tanh]))[:4] == parts and len(held) == 4
    held.extend([nn.ReLU()])
    held.insert(0, nnc.tanh)
    assert [type(m).__name__ for m in held] == ["Lambda", "Linear", "Linear", "Linear", "Linear", "ReLU"]
    held[1] = parts[3]
    del held[2:5]
    assert list(held)[1] is parts[3] and [type(m).__name__ for m in held] == ["Lambda", "Linear", "ReLU"]
    assert list(held.state_dict()) == ["1.weight", "1.bias"] and not hasattr(held, "3")
    for index in (3, -4, 10**9):
        with pytest.raises(OutOfRangeError, match=f"module {index} of 3"):
            held[index]
        with pytest.raises(IndexError):
            del held[index]
    with pytest.raises(TypeError):
        held["a"]
    with pytest.raises(OperandError, match="int is neither a module nor a function"):
        held.append(5)
    near(nn.Sequential(*held)(X), nnc.relu(parts[3](nnc.tanh(X))))


def test_a_part_of_a_sequence_shares_its_layers() -> None:
    whole = nn.Sequential(nn.Linear(3, 3), nnc.tanh, nn.Linear(3, 2))
    near(whole[2:](whole[:2](X)), whole(X))
    whole[0].weight.write(nnc.zeros((3, 3)))
    assert whole[:1][0].weight is whole[0].weight
    assert not whole[:1](X).numpy().any() or whole[0].bias.numpy().any()


# ---- dicts
def test_dicts_of_modules() -> None:
    a, b = nn.Linear(1, 1), nn.Linear(2, 2)
    held = nn.ModuleDict([("a", a)])
    held["b"] = b
    assert list(held) == ["a", "b"] == list(held.keys()) and list(held.values()) == [a, b] and dict(held.items()) == {
        "a": a, "b": b}
    assert "a" in held and "c" not in held and len(held) == 2
    assert held.pop("a") is a and list(held) == ["b"]
    with pytest.raises(KeyError):
        held["a"]
    with pytest.raises(KeyError):
        del held["forward"]
    for name in ("", "a.b", "forward", "keys", "_x", 5):
        with pytest.raises(AttributeValueError, match="cannot be the name of a module"):
            held[name] = a  # type: ignore[index]


@pytest.mark.parametrize("held", [nn.ModuleList([nn.ReLU()]), nn.ModuleDict({"a": nn.ReLU()})])
def test_they_compute_nothing_themselves(held: Any) -> None:
    with pytest.raises(NotSupportedError, match="has no forward"):
        held(X)


# ---- use
@pytest.mark.parametrize("copy", [deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(copy: Any) -> None:
    model = Blocks()
    near(copy(model)(X, "right"), model(X, "right"))


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    model = nn.Sequential(nn.Linear(3, 3))
    model.extra = nn.ModuleList([nn.Linear(2, 2), nnc.tanh])
    held = nn.ModuleDict({"list": nn.ModuleList([nn.Linear(3, 2), nnc.tanh])})
    nnc.io.save_module(held, tmp_path / "m")
    again = nnc.io.load_module(tmp_path / "m")
    assert repr(again) == repr(held)
    near(again["list"][0](X), held["list"][0](X))


def test_compiled_code_sees_changes() -> None:
    model = Blocks()
    f = nnc.jit(model)
    near(f(X), model(X))
    model.blocks.append(nn.Linear(3, 3))
    near(f(X), model(X))
    model.heads["left"] = nn.Linear(3, 4)
    near(f(X), model(X))
    del model.blocks[0]
    near(f(X), model(X))
    loose = nn.ModuleList([nn.Linear(3, 3)])  # called by nobody, so that only its items are seen
    g = nnc.jit(lambda x: sum([m(x) for m in loose], x))
    near(g(X), loose[0](X) + X)
    loose.append(nn.Linear(3, 3))
    near(g(X), loose[0](X) + loose[1](X) + X)


def test_training_reaches_them() -> None:
    nnc.manual_seed(1)
    model = Blocks()
    before = model.state_dict()
    minimiser = optim.SGD(model.named_parameters(), 0.1)
    optim.make_step(nn.value_and_grad(model, lambda x: nnc.sum(model(x))), minimiser)(X)
    changed = [name for name, x in model.state_dict().items() if not np.array_equal(x, before[name])]
    assert set(changed) == {name for name in before if not name.startswith("heads.right")}


# ---- dtypes
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_module_of_another_dtype(dtype: str) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 2)).eval()
    run = nnc.jit(model)
    wanted = run(X).numpy()
    assert model.astype(dtype) is model
    kept = "float64" if dtype == "float64" else "float32"
    assert {str(p.dtype) for p in model.parameters()} == {dtype} and model[1].running_mean.dtype == kept
    assert model[2].cells()["generator"].dtype != dtype if "generator" in model[2].cells() else True
    for found in (model(X.astype(dtype)), run(X.astype(dtype))):
        assert found.dtype == dtype
        np.testing.assert_allclose(found.astype("float32").numpy(), wanted, atol=0.05)
    assert model.to(nnc.float32)[0].weight.dtype == "float32"
    assert model.to("strict", "float64")[0].weight.device.kind == "strict" and model[0].weight.dtype == "float64"


def test_gradients_after_a_cast() -> None:
    model = nn.Linear(3, 1).requires_grad_()
    nnc.sum(model(X)).backward()
    model.astype("float64")
    assert model.weight.grad is None and model.weight.requires_grad
    nnc.sum(model(X.astype("float64"))).backward()
    assert model.weight.grad is not None and model.weight.grad.dtype == "float64"
    for wrong in ("int32", "complex64", "bool"):
        with pytest.raises(DTypeError, match="no floating-point dtype"):
            model.astype(wrong)


# ---- states that are none, and statistics of one value
@pytest.mark.parametrize("wrong", [[1], None, 5, "x"])
def test_a_state_that_is_no_mapping(wrong: Any) -> None:
    model = nn.Linear(2, 2)
    for thing in (model, optim.Adam(model.named_parameters())):
        with pytest.raises(OperandError, match=r"(?s)the state of .* expected a mapping.*state_dict"):
            thing.load_state_dict(wrong)  # type: ignore[attr-defined]
    model.load_state_dict(dict(nn.Linear(2, 2).cells()))  # cells stand for their tensors


@pytest.mark.parametrize("shape, axis", [((1, 3), -1), ((1, 1, 1, 3), -1), ((1, 3, 1, 1), 1), ((3,), -1)])
def test_batch_norm_needs_more_than_one_value_in_training(shape: tuple[int, ...], axis: int) -> None:
    layer, x = nn.BatchNorm(3, axis), nnc.ones(shape)
    for f in (layer, nnc.jit(layer)):
        with pytest.raises(ShapeError, match=r"(?s)BatchNorm.*one value for each channel.*layer\.eval"):
            f(x)
    assert layer.running_mean.numpy().tolist() == [0, 0, 0]
    assert layer.eval()(x).shape == shape
    assert layer.train()(nnc.concat([x, x], axis=0) if x.ndim > 1 else nnc.ones((2, 3))).shape


@pytest.mark.parametrize(("shape", "axis"), [((1, 3), -1), ((4, 3), -1), ((2, 1, 1, 3), -1), ((2, 3, 1, 1), 1)])
def test_one_value_for_each_channel_has_no_variance(shape: tuple[int, ...], axis: int) -> None:
    """As in PyTorch, in training and in evaluation."""
    x = nnc.ones(shape)
    for layer in (nn.InstanceNorm(3, axis), nn.InstanceNorm(3, axis).eval()):
        for f in (layer, nnc.jit(layer)):
            with pytest.raises(ShapeError, match=r"(?s)one value for each channel"):
                f(x)
    assert nn.InstanceNorm(3)(nnc.ones((2, 2, 3))).shape == (2, 2, 3)


def test_one_value_alone_in_a_group_has_no_variance() -> None:
    """PyTorch asks of the batch as a whole."""
    for f in (nn.GroupNorm(3, 3), nnc.jit(nn.GroupNorm(3, 3))):
        with pytest.raises(ShapeError, match="one value for each group of channels"):
            f(nnc.ones((1, 1, 3)))
    assert nn.GroupNorm(3, 3)(nnc.ones((2, 3))).tolist() == [[0, 0, 0]] * 2
    assert nn.GroupNorm(1, 3)(nnc.ones((1, 3))).tolist() == [[0, 0, 0]]


def test_functions_ask_too() -> None:
    with pytest.raises(ShapeError, match="one value for each channel"):
        nnc.batch_norm_training(nnc.ones((1, 3)))
    with pytest.raises(ShapeError, match="one value for each channel"):
        nnc.instance_norm(nnc.ones((5, 3)))
