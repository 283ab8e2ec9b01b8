"""Networks and weights in files: what comes back, what is refused, and what is never written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import (
    DTypeError,
    NotSupportedError,
    OperandError,
    ShapeError,
    StateError,
)
from nnc_core.io import (
    load_arrays,
    load_module,
    load_weights,
    save_arrays,
    save_module,
    save_weights,
)
from nnc_core.nn import initialise, zoo
from tests.nn.network import digits
from tests.nn.saved_models import double, functional, residual
from tests.semantics.layers import LAYERS
from tests.support import drawn, same

pytest.importorskip("safetensors")


def randomised(model: Any) -> Any:
    """No parameter is what a constructor makes."""
    rng = np.random.default_rng(7)
    for p in model.parameters():
        p.write(nnc.asarray(rng.normal(size=p.spec.shape).astype(p.spec.dtype)))
    return model


class Unregistered(nn.Module):
    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return x


IMAGES, ROWS = (2, 8, 8, 1), (2, 3)
MODELS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "sequential": (lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=((1, 1), (0, 2)), init=initialise.he_normal), nn.BatchNorm(4), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(64, 3, bias=False)), (drawn(*IMAGES),)),
    "functions": (lambda: nn.Sequential(nnc.tanh, nn.Linear(3, 2), double, nn.Lambda(nnc.exp)), (drawn(*ROWS),)),
    "functional": (functional, (drawn(*IMAGES), drawn(2, 2))),
    "recurrent": (lambda: nn.GRU(3, 4, 2, bidirectional=True, returns="last"), (drawn(2, 5, 3),)),
    "transformer": (lambda: nn.TransformerEncoder(4, 2, 2, hidden=8, norm_first=True), (drawn(2, 3, 4),)),
    "of the user": (residual, (drawn(*ROWS),)),
    "float64": (lambda: nn.Linear(3, 2, dtype=np.float64), (drawn(*ROWS).astype("float64"),)),
    "nested": (lambda: nn.Sequential(nn.Sequential(nn.Linear(3, 3), nn.Tanh()), residual()), (drawn(*ROWS),)),
    "an initialiser": (lambda: nn.Linear(3, 2, init=initialise.Uniform(-0.5, 0.5)), (drawn(*ROWS),)),
}  # fmt: skip
each = pytest.mark.parametrize("kind", MODELS)


@each
def test_a_network_comes_back_bit_for_bit(kind: str, tmp_path: Path) -> None:
    make, inputs = MODELS[kind]
    model, path = randomised(make()), tmp_path / "model.safetensors"
    save_module(model, path)
    again = load_module(path)
    assert type(again) is type(model) and str(again) == str(model) and repr(again) == repr(model)
    assert list(again.cells()) == list(model.cells())
    for name, a in model.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name], a, err_msg=name)
    for training in (False, True):  # masks too: keys of generators are part of the state
        same(again.train(training)(*inputs), model.train(training)(*inputs))


def test_it_loads_on_another_device(tmp_path: Path, device: str) -> None:
    model, path = randomised(functional()).eval(), tmp_path / "model.safetensors"
    save_module(model, path)
    other = "strict-nofloat64:0"
    again = load_module(path, device=other)
    assert {c.device.id for c in again.cells().values()} == {other}
    assert not again.training
    for name, a in model.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name], a, err_msg=name)
    x, extra = MODELS["functional"][1]
    found = again(x.to(other), extra.to(other))
    for key, y in model(x, extra).items():
        np.testing.assert_allclose(found[key].numpy(), y.numpy(), rtol=1e-5, atol=1e-6)
    assert nnc.zeros(1).device.id == device


def test_modes_and_what_is_frozen_come_back(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 1)))
    model[1].eval()
    model.freeze("0.*")
    save_module(model, tmp_path / "m")
    again = load_module(tmp_path / "m")
    assert again.training and not again[1].training and not again[1][0].training
    assert list(again.named_parameters(frozen=True)) == ["0.weight", "0.bias"]


def test_what_is_shared_stays_shared(tmp_path: Path) -> None:
    generator, layer = nnc.Generator(2), nn.Linear(3, 3)
    model = nn.Sequential(layer, nn.Dropout(0.5, generator), layer, nn.Dropout(0.5, generator), nn.Linear(3, 3))
    model[4].weight = layer.weight
    model[0].again = model[4]
    save_module(model, tmp_path / "m")
    again = load_module(tmp_path / "m")
    assert again[0] is again[2] and again[4].weight is again[0].weight and again[0].again is again[4]
    assert again[1].generator.key is again[3].generator.key
    x = drawn(*ROWS)
    same(again(x), model(x)), same(again(x), model(x))
    tied = nn.Sequential(nn.TransformerEncoderLayer(4, 2, hidden=4), nn.TransformerEncoderLayer(4, 2, hidden=4))
    tied[1].attention = tied[0].attention
    save_module(tied, tmp_path / "tied")
    assert load_module(tmp_path / "tied")[1].attention is not tied[1].attention
    back = load_module(tmp_path / "tied")
    assert back[1].attention is back[0].attention


def test_loading_and_saving_leave_the_default_generator_alone(tmp_path: Path) -> None:
    nnc.manual_seed(11)
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
    state = nnc.manual_seed(5).state
    save_module(model, tmp_path / "m")
    load_module(tmp_path / "m")
    from nnc_core.random.generator import default_generator

    assert default_generator().state == state


def test_a_copy_and_an_appended_layer_are_saved_as_they_are(tmp_path: Path) -> None:
    import copy

    model = nn.Sequential(nn.Linear(3, 4))
    model.append(nn.Tanh())
    model.append(copy.deepcopy(model[0]))
    model[2].weight = nn.Parameter(nnc.ones((3, 4)))
    save_module(copy.deepcopy(model), tmp_path / "m")
    assert [type(layer).__name__ for layer in load_module(tmp_path / "m")] == ["Linear", "Tanh", "Linear"]


def test_a_subclass_of_a_network_is_made_by_its_own_constructor(tmp_path: Path) -> None:
    @nn.register("tests.Head")
    class Head(nn.Network):
        def __init__(self, count: int) -> None:
            x = nn.Input((3,))
            super().__init__(x, nn.Linear(3, count)(x))

    model = randomised(Head(5))
    save_module(model, tmp_path / "m")
    again = load_module(tmp_path / "m")
    assert type(again) is Head
    same(again(drawn(*ROWS)), model(drawn(*ROWS)))


UNREGISTERED = {"LSTMCell, unrolled", "Lambda", "Sequential", "running statistics", "GRU, lengths"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(LAYERS.keys() - UNREGISTERED))
def test_every_layer_can_be_saved(name: str, tmp_path: Path) -> None:
    layer = LAYERS[name]
    args = [tuple(map(nnc.asarray, a)) if isinstance(a, tuple) else nnc.asarray(a) if isinstance(a, np.ndarray) else a
            for a in layer.args]
    model = layer.make()
    save_module(model, tmp_path / "m")
    again = load_module(tmp_path / "m")
    assert repr(again) == repr(model)
    same(again(*args), model(*args))


@pytest.mark.parametrize("make, x", [
    (lambda: zoo.owl_lenet(3, width=2, hidden=4), drawn(1, 28, 28, 1)),
    (lambda: zoo.resnet18(3, width=2), drawn(1, 32, 32, 3)),
    (lambda: zoo.ResNet(zoo.resnet.Bottleneck, (1, 1, 1, 1), 3, width=2), drawn(1, 32, 32, 3)),
    (lambda: zoo.efficientnet_b0(3, width=0.1), drawn(1, 32, 32, 3)),
    (lambda: zoo.lstm_classifier(2, 9, features=3, hidden=4), nnc.asarray([[1, 2, 8]])),
    (lambda: zoo.transformer_classifier(2, 9, features=4, heads=2, layers=1, hidden=6), nnc.asarray([[1, 2, 8]])),
], ids=["lenet", "resnet18", "bottlenecks", "efficientnet", "lstm", "transformer"])
def test_networks_of_the_zoo(make: Any, x: nnc.Tensor, tmp_path: Path) -> None:
    model = make().eval()
    save_module(model, tmp_path / "m")
    again = load_module(tmp_path / "m")
    assert type(again) is type(model) and not again.training
    same(again(x), model(x))


def test_a_deep_network(tmp_path: Path) -> None:
    model: nn.Module = nn.Linear(3, 2)
    for _ in range(1000):
        model = nn.Sequential(model)
    save_module(model, tmp_path / "m")
    assert len(load_module(tmp_path / "m").cells()) == 2


@nn.register("tests.Looking")
class Looking(nn.Module):
    """Its constructor looks at what it computes."""

    def __init__(self, table: nnc.Tensor) -> None:
        self.width = int(table.max().item())
        self.inner = nn.Linear(self.width, 1)

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return self.inner(x)


def test_a_constructor_may_look_at_values(tmp_path: Path) -> None:
    model = Looking(nnc.asarray([3, 1]))
    save_module(model, tmp_path / "m")
    same(load_module(tmp_path / "m")(drawn(*ROWS)), model(drawn(*ROWS)))


# ---- what is refused before anything is written
def changed(model: Any, name: str, value: Any) -> Any:
    setattr(model, name, value)
    return model


@pytest.mark.parametrize("make, error, words", [
    (lambda: nn.Sequential(nn.Linear(2, 2), lambda x: x), NotSupportedError,
     r"1: Lambda\(<lambda>\): argument 'function' is (.|\n)*<lambda>, which a file cannot hold(.|\n)*@nn.register"),
    (lambda: nn.Sequential(nn.Sequential(Unregistered())), NotSupportedError,
     r"0.0: Unregistered\(\): the class Unregistered is not registered(.|\n)*decorate it with @nn.register"),
    (lambda: nn.Network(x := nn.Input((2,)), Unregistered()(x)), NotSupportedError, "Unregistered"),
    (lambda: changed(nn.Dropout(0.5), "rate", 0.25), StateError,
     r"its rate is 0.25, constructed again it would be 0.5(.|\n)*constructor_arguments"),
    (lambda: nn.Sequential(changed(nn.Linear(2, 3), "bias", None)), StateError,
     r"its 0.bias is nothing, constructed again it would be float32\[3\]|0: its bias is None"),
    (lambda: changed(nn.Linear(2, 3), "weight", nn.Parameter(nnc.ones((2, 3), dtype="float64"))), StateError,
     r"its weight is float64\[2,3\], constructed again it would be float32\[2,3\]"),
    (lambda: changed(nn.Linear(2, 3), "extra", nn.ReLU()), StateError, "extra: it is not there"),
    (lambda: changed(nn.TransformerEncoderLayer(4, 2), "attention", nn.Linear(4, 4)), StateError, "attention"),
])
def test_what_cannot_be_made_again_is_not_written(make: Any, error: type[Exception], words: str,
                                                  tmp_path: Path) -> None:
    path = tmp_path / "model"
    save_arrays(path, {"old": np.ones(1)})
    with pytest.raises(error, match=words):
        save_module(make(), path)
    assert list(load_arrays(path)[0]) == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_registering() -> None:
    with pytest.raises(ValueError, match=r"'tests.double' is registered already, by .*double"):
        nn.register("tests.double")(Unregistered)
    with pytest.raises(ValueError, match="no name that can be found again"):
        nn.register(lambda x: x)
    with pytest.raises(OperandError, match="int is neither"):
        nn.register("a")(3)
    assert nn.register("tests.double")(double) is double


# ---- weights alone
def test_weights_round_trip(tmp_path: Path) -> None:
    first, second = nn.Sequential(nn.Linear(3, 2), lambda x: x), nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    save_weights(first, tmp_path / "w", {"epoch": "3"})
    assert load_weights(second, tmp_path / "w") == ((), ())
    same(second[0].weight.read(), first[0].weight.read())
    assert load_arrays(tmp_path / "w")[1] == {"epoch": "3"}


def test_weights_of_a_file_with_a_network(tmp_path: Path) -> None:
    model = randomised(residual())
    save_module(model, tmp_path / "m")
    other = residual()
    load_weights(other, tmp_path / "m")
    same(other.table.read(), model.table.read())


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    save_weights(nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), tmp_path / "w")
    other = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 2))
    before = other.state_dict()
    with pytest.raises(StateError, match=r"missing 2.bias, 2.weight; unexpected 1.bias, 1.weight"):
        load_weights(other, tmp_path / "w")
    assert all(np.array_equal(a, before[name]) for name, a in other.state_dict().items())
    found = load_weights(other, tmp_path / "w", strict=False)
    assert found.missing == ("2.weight", "2.bias") and set(found.unexpected) == {"1.weight", "1.bias"}
    assert not np.array_equal(other.state_dict()["0.weight"], before["0.weight"])
    assert np.array_equal(other.state_dict()["2.weight"], before["2.weight"])
    with pytest.raises(ShapeError):
        load_weights(nn.Sequential(nn.Linear(3, 4)), tmp_path / "w", strict=False)
    with pytest.raises(DTypeError):
        load_weights(nn.Sequential(nn.Linear(3, 2, dtype="float64")), tmp_path / "w", strict=False)


def test_a_trained_network_goes_on_after_loading(tmp_path: Path) -> None:
    from nnc_core import optim

    x, y = digits()
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm(2), nn.Flatten(), nn.Linear(72, 3))
    losses: list[float] = []
    for part in range(2):
        both = nn.value_and_grad(model, lambda x, y, model=model: nnc.cross_entropy(model(x), y))
        step = optim.make_step(both, optim.SGD(model.named_parameters(), 0.01))
        losses += [float(step(x, y)) for _ in range(3)]
        if part == 0:
            save_module(model, tmp_path / "m")
            model = load_module(tmp_path / "m")
    assert losses == sorted(losses, reverse=True)
