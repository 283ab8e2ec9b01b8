"""Modules whose weights are codes and palettes."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, NonfiniteError, NotSupportedError, OperandError, StateError
from tests.support import drawn


def net() -> nn.Sequential:
    g = nnc.Generator(2)
    return nn.Sequential(nn.Linear(40, 30, generator=g), nn.Tanh(), nn.Linear(30, 20, generator=g))


def inputs() -> nnc.Tensor:
    """On the device of the test."""
    return drawn(3, 40)


def bytes_of(module: nn.Module) -> int:
    return sum(cell.spec.nbytes for cell in module.cells().values())


def with_rounded_weights(module: nn.Module, **how: Any) -> nn.Module:
    """The same with ordinary parameters that hold what the codes of large ones stand for."""
    same = copy.deepcopy(module)
    for p in same.named_parameters().values():
        if p.spec.ndim > 1:
            p.write(nnc.palettise(p.read(), **how).depalettise().astype(p.spec.dtype))
    return same


# ---- what is read
@pytest.mark.parametrize("bits", [4, 5, 6, 7, 8])
def test_modules_read_what_codes_stand_for_in_every_mode(bits: int) -> None:
    model = net()
    wanted = with_rounded_weights(model, bits=bits, block_size=400)(inputs()).numpy()
    assert nn.palettise(model, bits, block_size=400, only="*.weight") is model
    assert np.array_equal(model(inputs()).numpy(), wanted)
    with nnc.deferred():
        late = model(inputs())
    np.testing.assert_allclose(late.numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(nnc.jit(lambda x: model(x))(inputs()).numpy(), wanted, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.hybridize()(inputs()).numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_compiled_code_sees_that_weights_were_palettised() -> None:
    model = net().hybridize()
    exact = model(inputs()).numpy()
    wanted = with_rounded_weights(model, bits=4)(inputs()).numpy()
    found = nn.palettise(model, 4)(inputs()).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert not np.allclose(found, exact, rtol=1e-3)


@pytest.mark.parametrize(("layer", "shape"), [
    (lambda g: nn.Conv2d(8, 16, 3, generator=g), (2, 6, 6, 8)),
    (lambda g: nn.LSTM(12, 16, generator=g), (2, 5, 12)),
    (lambda g: nn.MultiHeadAttention(32, 4, generator=g), (2, 5, 32)),
], ids=["Conv2d", "LSTM", "MultiHeadAttention"])  # fmt: skip
def test_layers_of_all_kinds(layer: Any, shape: tuple[int, ...]) -> None:
    model, x = layer(nnc.Generator(4)).eval(), drawn(*shape)
    call = (lambda m: m(x, x, x)) if isinstance(model, nn.MultiHeadAttention) else lambda m: m(x)
    wanted = with_rounded_weights(model, bits=5)
    before = bytes_of(model)
    nn.palettise(model, 5)
    assert bytes_of(model) < 0.45 * before
    for found, expected in zip(results(call(model)), results(call(wanted)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def results(x: Any) -> list[np.ndarray]:
    return [x.numpy()] if isinstance(x, nnc.Tensor) else [a for part in x if part is not None for a in results(part)]


def test_shared_tables_stay_shared() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.table = nn.Embedding(50, 16, generator=nnc.Generator(1))
            self.back = nn.Linear(16, 50, bias=False)
            self.pair = Pair(self.table.weight, 3)

    class Pair(NamedTuple):
        weight: Any
        other: int

    model = Tied()
    rows = model.table(nnc.asarray([3, 9])).numpy()
    nn.palettise(model, 8, only="pair.*")
    assert isinstance(model.table.weight, nn.PalettisedWeight) and type(model.pair) is Pair
    assert model.pair.weight is model.table.weight and isinstance(model.back.weight, nn.Parameter)
    assert sorted(model.cells()) == ["back.weight", "table.weight.codes", "table.weight.palette"]
    np.testing.assert_allclose(model.table(nnc.asarray([3, 9])).numpy(), rows, atol=0.05)


# ---- what is kept
def test_memory_is_that_of_codes_and_palettes() -> None:
    model = net()
    assert bytes_of(model) == 4 * (1200 + 30 + 600 + 20)
    nn.palettise(model, 4, dtype=nnc.float16)
    assert bytes_of(model) == 600 + 2 * 16 + 4 * 30 + 300 + 2 * 16 + 4 * 20
    weight = model[0].weight
    assert weight.codes.spec == nnc.TensorSpec((600,), nnc.uint8)
    assert weight.palette.spec == nnc.TensorSpec((1, 16), nnc.float16)
    assert weight.read().spec == weight.spec == nnc.TensorSpec((40, 30), nnc.float32)
    assert "weight: PalettisedWeight(float32[40,30], bits=4, block_size=1200)" in repr(model)
    assert "32 frozen" in model.summary(("batch", 40))


def test_which_parameters_are_palettised() -> None:
    model = nn.palettise(net())  # palettes of 256 float32 take 1024 bytes, and a weight of 600 numbers 2400
    assert [isinstance(model[k].weight, nn.PalettisedWeight) for k in (0, 2)] == [True, True]
    assert isinstance(model[0].bias, nn.Parameter)
    small = nn.palettise(nn.Linear(16, 16))  # 256 + 1024 bytes are more than 1024
    assert isinstance(small.weight, nn.Parameter)
    assert isinstance(nn.palettise(small, only=["w*"]).weight, nn.PalettisedWeight)
    assert isinstance(nn.palettise(small, 4, only="bias").bias, nn.PalettisedWeight)
    again = small.weight
    assert nn.palettise(small, 4).weight is again and list(small.cells()) == [
        "weight.codes", "weight.palette", "bias.codes", "bias.palette"]


def test_state_copies_and_pickles() -> None:
    model = nn.palettise(net(), 6)
    state = model.state_dict()
    assert list(state) == ["0.bias", "0.weight.codes", "0.weight.palette", "2.bias", "2.weight.codes",
                           "2.weight.palette"]
    assert state["0.weight.codes"].dtype == np.uint8 and state["0.weight.codes"].shape == (900,)
    other = nn.palettise(nn.Sequential(nn.Linear(40, 30), nn.Tanh(), nn.Linear(30, 20)), 6)
    assert not np.array_equal(other(inputs()).numpy(), model(inputs()).numpy())
    other.load_state_dict(state)
    for same in (other, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(same(inputs()).numpy(), model(inputs()).numpy())
        assert same[0].weight.palette.frozen


def test_files_hold_codes(tmp_path: Path) -> None:
    model = nn.palettise(net(), 4, block_size=100, dtype=nnc.float16, only="0.weight").eval()
    nnc.io.save_module(model, tmp_path / "net")
    arrays, _ = nnc.io.load_arrays(tmp_path / "net")
    assert arrays["0.weight.codes"].nbytes == 600 and arrays["0.weight.palette"].shape == (12, 16)
    again = nnc.io.load_module(tmp_path / "net")
    assert np.array_equal(again(inputs()).numpy(), model(inputs()).numpy()) and repr(again) == repr(model)
    assert again[0].weight.palette.frozen and not again.training and not again[0].weight.training
    assert bytes_of(again) == bytes_of(model)
    plain = net()
    with pytest.raises(StateError, match=r"0\.weight\.codes"):
        nnc.io.load_weights(plain, tmp_path / "net")
    nnc.io.load_weights(nn.palettise(plain, 4, block_size=100, dtype=nnc.float16, only="0.weight"), tmp_path / "net")
    assert np.array_equal(plain(inputs()).numpy(), model(inputs()).numpy())


@nn.register("tests.untied")
class Untied(nn.Module):
    """Two matrices that users may tie."""

    def __init__(self) -> None:
        self.first, self.second = nn.Linear(20, 20), nn.Linear(20, 20)
        self.held = (self.second.weight,)


def test_files_of_what_was_tied_afterwards(tmp_path: Path) -> None:
    model = Untied()
    model.first.weight = model.second.weight
    nn.palettise(model, 4)
    assert model.first.weight is model.second.weight is model.held[0]
    nnc.io.save_module(model, tmp_path / "net")
    again = nnc.io.load_module(tmp_path / "net")
    assert again.first.weight is again.second.weight is again.held[0]
    assert np.array_equal(again.first.weight.read().numpy(), model.first.weight.read().numpy())


def test_files_of_a_weight_alone(tmp_path: Path) -> None:
    """Its constructor says it all."""
    weight = nn.palettise(net(), 5)[2].weight
    nnc.io.save_module(weight, tmp_path / "weight")
    assert np.array_equal(nnc.io.load_module(tmp_path / "weight").read().numpy(), weight.read().numpy())


# ---- training
def step_of(model: nn.Module) -> Any:
    loss = nn.value_and_grad(model, lambda: (model(inputs()) ** 2).mean())
    return optim.make_step(loss, optim.SGD(model.named_parameters(), 0.1))


@pytest.mark.filterwarnings("ignore:scatter has no kernel")  # the gradient by a palette adds at places
def test_palettes_are_trained_only_once_they_are_thawed() -> None:
    model = nn.palettise(net(), 4, only="0.weight")
    assert sorted(model.named_parameters()) == ["0.bias", "2.bias", "2.weight"]
    before = model.state_dict()
    step_of(model)()
    assert np.array_equal(model.state_dict()["0.weight.palette"], before["0.weight.palette"])
    assert not np.array_equal(model.state_dict()["2.weight"], before["2.weight"])
    model.unfreeze("0.weight.palette")
    step = step_of(model)
    losses = [float(step()) for _ in range(3)]
    assert losses[2] < losses[0]
    assert not np.array_equal(model.state_dict()["0.weight.palette"], before["0.weight.palette"])
    assert np.array_equal(model.state_dict()["0.weight.codes"], before["0.weight.codes"])


# ---- errors
def test_nothing_changes_unless_all_can_be_palettised() -> None:
    model = net()
    model[2].weight.write(model[2].weight.read().at[1, 2].set(np.nan))
    with pytest.raises(NonfiniteError, match=r"parameter '2\.weight': x\[1, 2\] is nan"):
        nn.palettise(model, 4)
    assert isinstance(model[0].weight, nn.Parameter)
    with pytest.raises(OperandError, match=r"no parameter's name matches 'encoder\.\*'"):
        nn.palettise(model, 4, only="encoder.*")
    with pytest.raises(OperandError, match="no parameter's name"):
        nn.palettise(model, 4, only=())
    with pytest.raises(AttributeValueError, match="bits 3"):
        nn.palettise(model, 3)
    with pytest.raises(AttributeValueError, match="block 0"):
        nn.palettise(nn.ReLU(), block_size=0)


def test_pytorch_has_none_of_it() -> None:
    model = nn.palettise(net(), 4)
    with pytest.raises(NotSupportedError, match=r"'0\.weight' of Sequential is palettised"):
        nn.to_pytorch_state(model)
    with pytest.raises(NotSupportedError, match="palettised"):
        nn.from_pytorch_state(model, {})
