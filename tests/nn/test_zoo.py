"""The zoo: parameters as published, shapes, and small ones that learn the same eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import ShapeError
from nnc_core.nn import zoo
from nnc_core.nn.zoo.densenet import DenseNet
from nnc_core.nn.zoo.efficientnet import B0, EfficientNet
from nnc_core.nn.zoo.mobilenet import V2, MobileNetV2
from nnc_core.nn.zoo.resnet import Bottleneck, ResNet
from tests.sizes import WHOLE
from tests.support import to_the_bit

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel on strict")

Build = Callable[[], Any]

PUBLISHED = {
    "lenet5": 61_706,
    "vgg16": 138_357_544,
    "googlenet": 6_624_904,
    "resnet18": 11_689_512,
    "resnet34": 21_797_672,
    "resnet50": 25_557_032,
    "resnet101": 44_549_160,
    "resnet152": 60_192_808,
    "densenet121": 7_978_856,
    "efficientnet_b0": 5_288_548,
    "mobilenet_v2": 3_504_872,
    "inception_v3": 23_834_568,
    "mask_rcnn": 44_401_393,  # its batch normalisation is constant
}
WITH_AUXILIARY = {"googlenet": 13_004_888, "inception_v3": 27_161_264}


def count(network: nn.Module) -> int:
    """How many numbers are trained."""
    return sum(prod(p.spec.static_shape) for p in network.parameters())


# ---- as published: nothing is drawn on the null device
@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_as_published(name: str) -> None:
    with nnc.use_device("null:0"):
        assert count(getattr(zoo, name)()) == PUBLISHED[name]


@pytest.mark.parametrize("name", WITH_AUXILIARY)
def test_parameters_with_auxiliary_classifiers(name: str) -> None:
    with nnc.use_device("null:0"):
        assert count(getattr(zoo, name)(auxiliary=True)) == WITH_AUXILIARY[name]


def lstm_parameters(features: int, n: int) -> int:
    """Of four gates, with two biases each."""
    return 4 * n * (features + n + 2)


def test_parameters_of_texts_by_formula() -> None:
    attention, feed_forward, norm = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
    with nnc.use_device("null:0"):
        assert count(zoo.lstm_language_model()) == 650 * 10_000 + 2 * lstm_parameters(650, 650) + 651 * 10_000
        assert count(zoo.lstm_classifier(3)) == 128 * 10_000 + lstm_parameters(128, 128) + 129 * 3
        encoder = attention + feed_forward + 2 * norm
        assert count(zoo.transformer()) == 37_000 * 512 + 6 * (encoder + attention + encoder + norm)
        assert count(zoo.transformer_language_model()) == 10_000 * 512 + 6 * encoder + norm


SIDES = {"lenet5": 28, "owl_lenet": 28, "inception_v3": 299}
CLASSIFIERS = sorted({*PUBLISHED, "owl_lenet"} - {"mask_rcnn"})


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_shapes_of_classifiers(name: str, layout: str) -> None:
    side = SIDES.get(name, 224)
    sizes = {"N": 2, "H": side, "W": side, "C": 5}
    with nnc.use_device("null:0"):
        network = getattr(zoo, name)(7, 5, layout=layout).eval()
        assert network(nnc.zeros([sizes[c] for c in layout])).shape == (2, 7)


@pytest.mark.parametrize("name", WITH_AUXILIARY)
def test_shapes_of_auxiliary_classifiers(name: str) -> None:
    with nnc.use_device("null:0"):
        network = getattr(zoo, name)(7, auxiliary=True)
        logits = network.all_logits(nnc.zeros((2, 299, 299, 3)))
        assert [x.shape for x in logits] == [(2, 7)] * (3 if name == "googlenet" else 2)


def test_feature_maps_of_residual_networks() -> None:
    with nnc.use_device("null:0"):
        maps = zoo.resnet50().features(nnc.zeros((1, 64, 96, 3)))
    assert [m.shape for m in maps] == [(1, 16, 24, 256), (1, 8, 12, 512), (1, 4, 6, 1024), (1, 2, 3, 2048)]


def test_an_image_of_another_size_is_an_error_where_layers_are_dense() -> None:
    with nnc.use_device("null:0"), pytest.raises(ShapeError):
        zoo.vgg16(width=2, hidden=4, image=64)(nnc.zeros((1, 96, 96, 3)))


def test_one_trace_serves_batches_of_any_size() -> None:
    """Networks read no size that they do not have to."""
    network = ResNet(Bottleneck, (1, 1), 3, width=1).eval()
    compiled = nnc.jit(network)
    for batch in (2, 3, 4, 5):
        x = nnc.ones((batch, 16, 16, 3))
        np.testing.assert_allclose(compiled(x).numpy(), network(x).numpy(), rtol=1e-5, atol=1e-6)
    assert compiled.traces < 4


# ---- layouts compute the same
def in_layout(name: str, array: Any) -> Any:
    return array.transpose(3, 2, 0, 1) if name.endswith("kernel") else array


@pytest.mark.parametrize("build", [
    partial(ResNet, Bottleneck, (1, 1), 3, width=2),
    partial(DenseNet, (2, 2), 3, growth=2),
    partial(EfficientNet, B0[:2], 3, width=0.25),
    partial(MobileNetV2, V2[:2], 3, width=0.25),
    partial(zoo.googlenet, 3, width=0.05),
], ids=["resnet", "densenet", "efficientnet", "mobilenet", "googlenet"])  # fmt: skip
def test_layouts_agree(build: Callable[..., Any], rng: np.random.Generator) -> None:
    last, first = build().eval(), build(layout="NCHW").eval()
    first.load_state_dict({name: in_layout(name, array) for name, array in last.state_dict().items()})
    x = rng.normal(size=(2, 32, 32, 3)).astype(np.float32)
    expected = last(nnc.asarray(x)).numpy()
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(first(nnc.asarray(x.transpose(0, 3, 1, 2))).numpy(), expected, rtol=1e-4, atol=1e-5)


# ---- learning
def images(batch: int, side: int) -> tuple[nnc.Tensor, ...]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, side, side, 3)).astype(np.float32)
    return nnc.asarray(x), nnc.asarray(rng.integers(0, 3, batch))


def tokens(*shape: int) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(0).integers(0, 11, shape))


def texts() -> tuple[nnc.Tensor, ...]:
    return tokens(4, 5), nnc.asarray(np.array([0, 1, 2, 1]))


TEXT: dict[str, Any] = {"features": 8, "heads": 2, "layers": 1, "hidden": 12, "dropout": 0.0}
SMALL: dict[str, tuple[Build, Callable[[], tuple[nnc.Tensor, ...]]]] = {
    "lenet5": (lambda: zoo.lenet5(3, 3, width=6, image=16), partial(images, 4, 16)),
    "owl_lenet": (lambda: zoo.owl_lenet(3, 3, width=3, hidden=8, image=8), partial(images, 4, 8)),
    "vgg": (lambda: zoo.vgg16(3, width=2, hidden=8, image=32, dropout=0.0), partial(images, 4, 32)),
    "resnet": (lambda: ResNet(Bottleneck, (1, 1, 1, 1), 3, width=2), partial(images, 4, 32)),
    "densenet": (lambda: DenseNet((2, 2), 3, growth=2), partial(images, 4, 32)),
    "efficientnet": (lambda: EfficientNet(B0[:2], 3, width=0.25, dropout=0.0), partial(images, 4, 32)),
    "mobilenet": (lambda: MobileNetV2(V2[:2], 3, width=0.25, dropout=0.0), partial(images, 4, 32)),
    "googlenet": (lambda: zoo.googlenet(3, width=0.05, auxiliary=True, dropout=0.0), partial(images, 4, 48)),
    "inception": (lambda: zoo.inception_v3(3, width=0.05, dropout=0.0), partial(images, 2, 75)),
    "lstm": (lambda: zoo.lstm_language_model(11, features=4, hidden=5, dropout=0.0), lambda: (tokens(4, 7),)),
    "lstm classifier": (lambda: zoo.lstm_classifier(3, 11, features=4, hidden=5, bidirectional=True), texts),
    "transformer": (lambda: zoo.transformer(11, **TEXT), lambda: (tokens(4, 5), tokens(4, 6))),
    "transformer language model": (lambda: zoo.transformer_language_model(11, **TEXT), lambda: (tokens(4, 6),)),
    "transformer classifier": (lambda: zoo.transformer_classifier(3, 11, **TEXT), texts),
}


def loss_of(network: Any) -> Callable[..., nnc.Tensor]:
    if hasattr(network, "loss"):
        return network.loss  # type: ignore[no-any-return]
    return lambda x, labels: nnc.cross_entropy(network(x), labels)


STEPS = 5 if WHOLE else 3


def trained(build: Build, batch: tuple[nnc.Tensor, ...], eager: bool, steps: int = STEPS) -> tuple[Any, list[float]]:
    """The network and its losses before each step."""
    nnc.manual_seed(1)
    network = build()
    minimiser = optim.Adam(network.named_parameters(), learning_rate=3e-3)
    step = optim.make_step(nn.value_and_grad(network, loss_of(network)), minimiser, eager=eager)
    return network, [float(step(*batch).item()) for _ in range(steps)]


@to_the_bit
@pytest.mark.parametrize("name", SMALL)
def test_small_networks_learn_alike_eagerly_and_compiled(name: str) -> None:
    build, data = SMALL[name]
    batch = data()
    (eager, losses), (compiled, same) = (trained(build, batch, mode) for mode in (True, False))
    np.testing.assert_allclose(losses, same, rtol=1e-5)
    assert min(losses[1:]) < losses[0]
    given = batch if name == "transformer" else batch[:1]
    first, again, other = (_first(network.eval()(*given)) for network in (eager, eager, compiled))
    assert np.array_equal(first, again), "evaluation draws nothing"
    np.testing.assert_allclose(first, other, rtol=1e-4, atol=1e-5)
    assert np.array_equal(_first(nnc.jit(eager)(*given)), _first(nnc.jit(eager)(*given)))


def _first(result: Any) -> Any:
    return (result[0] if isinstance(result, tuple) else result).numpy()


# ---- what is left out, and what is masked
def test_examples_are_left_out_whole() -> None:
    from nnc_core.nn.zoo.efficientnet import ExampleDropout

    drop = ExampleDropout(0.5, nnc.Generator(0))
    y = drop(nnc.ones((64, 2, 3, 4))).numpy().reshape(64, -1)
    assert {float(row[0]) for row in y} == {0.0, 2.0}
    assert np.all(y == y[:, :1])
    assert np.array_equal(drop.eval()(nnc.ones((2, 3))).numpy(), np.ones((2, 3)))


def test_padding_changes_nothing() -> None:
    text, masks = tokens(2, 5), nnc.asarray(np.arange(5) < np.array([[3], [5]]))
    network = zoo.transformer_classifier(3, 11, **TEXT).eval()
    short = network(text[:1, :3]).numpy()
    np.testing.assert_allclose(network(text, masks)[:1].numpy(), short, rtol=1e-5, atol=1e-6)
    translation = zoo.transformer(11, **TEXT).eval()
    target = tokens(2, 4)
    expected = translation(text[:1, :3], target[:1]).numpy()
    np.testing.assert_allclose(translation(text, target, masks)[:1].numpy(), expected, rtol=1e-5, atol=1e-6)


def test_what_comes_later_is_not_seen() -> None:
    text = tokens(1, 6).numpy()
    changed = text.copy()
    changed[0, 4:] = (changed[0, 4:] + 1) % 11
    for network in (zoo.transformer_language_model(11, **TEXT), zoo.lstm_language_model(11, features=4, hidden=5)):
        a, b = (_first(network.eval()(nnc.asarray(x))) for x in (text, changed))
        np.testing.assert_allclose(a[:, :4], b[:, :4], rtol=1e-5, atol=1e-6)
        assert not np.allclose(a[:, 4:], b[:, 4:])


def test_a_language_model_goes_on_with_its_state() -> None:
    network, text = zoo.lstm_language_model(11, features=4, hidden=5).eval(), tokens(2, 6)
    whole, _ = network(text)
    first, state = network(text[:, :4])
    rest, _ = network(text[:, 4:], state)
    np.testing.assert_allclose(nnc.concat([first, rest], axis=1).numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)


# ---- building on the null device
def test_what_is_built_on_null_changes_no_draws(device: str) -> None:
    def drawn() -> Any:
        return nn.Linear(2, 3).weight.read().numpy()

    nnc.manual_seed(3)
    first, expected = drawn(), drawn()
    nnc.manual_seed(3)
    assert np.array_equal(drawn(), first)
    with nnc.use_device("null:0"):
        nnc.manual_seed(5)
        network = zoo.efficientnet_b0()
        network(nnc.zeros((2, 32, 32, 3)))
    assert np.array_equal(drawn(), expected)
