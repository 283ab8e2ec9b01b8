"""Networks for inference alone: values of the network in evaluation, weights packed once, writes not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import OperandError


def network() -> nn.Sequential:
    nnc.manual_seed(0)
    return nn.Sequential(nn.Conv2d(8, 32, 3), nn.BatchNorm(32), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(),
                         nn.Linear(32 * 16, 64), nn.GELU(), nn.Linear(64, 300))  # fmt: skip


def images(batch: int) -> nnc.Tensor:
    return nnc.asarray(np.random.default_rng(batch).standard_normal((batch, 6, 6, 8)).astype(np.float32))


def expected_of(net: nn.Module, *args: Any) -> Any:
    with nnc.no_grad(), nnc.evaluating():
        return net(*args)


def test_values_are_those_of_evaluation_for_all_shapes() -> None:
    net = network()
    run = nn.deploy(net)
    for batch in (1, 3, 1):
        expected = expected_of(net, images(batch)).numpy()
        np.testing.assert_allclose(run(images(batch)).numpy(), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(run(images(batch).numpy()).numpy(), expected, rtol=1e-5, atol=1e-5)
    assert repr(run) == "<Sequential deployed, compiled 2 times>"
    assert net.training, "the network is as it was"


def test_bits_are_those_of_eager_code() -> None:
    net, x = network(), images(2)
    with nnc.config.using(deterministic=True):
        expected = expected_of(net, x).numpy()
        np.testing.assert_array_equal(nn.deploy(net)(x).numpy(), expected)
        np.testing.assert_array_equal(nnc.jit(nn.deploy(net))(x).numpy(), expected)
        with nnc.deferred():
            later = nn.deploy(net)(x)
        np.testing.assert_array_equal(later.numpy(), expected)


def test_code_is_made_for_the_device_of_the_weights() -> None:
    net, x = network().to("strict:0"), images(2).to("strict:0")
    found = nn.deploy(net)(x)
    assert found.device.id == "strict:0"
    np.testing.assert_allclose(found.numpy(), expected_of(net, x).numpy(), rtol=1e-5, atol=1e-5)


def test_weights_are_packed_when_it_is_compiled() -> None:
    text = nn.deploy(network().to("cpu:0")).explain(nnc.asarray(images(8), device="cpu:0"))
    assert "fused(unpack matmul add" in text and "fused(pack" not in text and " pack(" not in text, text


def test_what_is_written_later_is_not_seen() -> None:
    net, x = network(), images(2)
    before, run = expected_of(net, x).numpy(), nn.deploy(net)
    run(x)
    net[1].running_mean.write(nnc.full(32, 3.0))
    np.testing.assert_allclose(run(x).numpy(), before, rtol=1e-5, atol=1e-5)
    with pytest.raises(OperandError, match=r"'1\.running_mean' was written since .* deploy"):
        run(images(5))
    after = nn.deploy(net)(x).numpy()
    np.testing.assert_allclose(after, expected_of(net, x).numpy(), rtol=1e-5, atol=1e-5)
    assert not np.allclose(after, before)


def test_training_goes_on_beside_it() -> None:
    """Compiled updates leave arrays alone that somebody holds."""
    net, x = network(), images(4)
    before, run = expected_of(net, x).numpy(), nn.deploy(net)
    rule = nnc.optim.SGD(net.named_parameters(), 0.1)
    step = nnc.optim.make_step(nn.value_and_grad(net, lambda x: nnc.sum(net(x) ** 2)), rule)
    for _ in range(4):
        step(x)
    with pytest.raises(OperandError, match="was written since"):
        run(x)
    run = nn.deploy(net)
    held = run(x).numpy()
    step(x)
    np.testing.assert_array_equal(run(x).numpy(), held)
    assert not np.allclose(held, before)


class Structured(nn.Module):
    """Trees in and out, a setting, and a weight that is read twice."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(nnc.ones(4))

    def forward(self, parts: dict[str, nnc.Tensor], scale: float, *, twice: bool = False) -> Any:
        y = parts["a"] * self.weight + parts["b"]
        return {"y": y * scale, "pair": (self.weight + 1.0, y + y if twice else y)}


def test_trees_settings_and_constant_results() -> None:
    net = Structured()
    run, parts = nn.deploy(net), {"a": nnc.arange(4.0), "b": nnc.ones(4)}
    for scale, twice in ((2.0, False), (2.0, True), (3.0, True)):
        found, expected = run(parts, scale, twice=twice), net(parts, scale, twice=twice)
        np.testing.assert_array_equal(found["y"].numpy(), expected["y"].numpy())
        for a, b in zip(found["pair"], expected["pair"], strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert "compiled 3 times" in repr(run)


def test_gradients_of_inputs() -> None:
    net, x = network(), images(2)
    run = nn.deploy(net)

    def gradient(f: Any) -> np.ndarray[Any, Any]:
        with nnc.evaluating():
            return np.asarray(nnc.grad(lambda x: nnc.sum(f(x) ** 2))(x))

    np.testing.assert_allclose(gradient(run), gradient(net), rtol=1e-4, atol=1e-4)


class Labelled(nn.Module):
    def forward(self, x: nnc.Tensor) -> Any:
        return x, "a label"


def test_inputs_as_results_and_what_is_no_tensor() -> None:
    x = images(1)
    assert nn.deploy(nn.Sequential())(x) is not x
    np.testing.assert_array_equal(nn.deploy(nn.Sequential())(x).numpy(), x.numpy())
    with pytest.raises(OperandError, match="gives 'a label' among its results"):
        nn.deploy(Labelled())(x)


def test_what_is_no_network_or_setting() -> None:
    with pytest.raises(OperandError, match=r"set \{1\} cannot be told from others"):
        nn.deploy(Labelled())({1})
    with pytest.raises(OperandError, match="function is no module"):
        nn.deploy(lambda x: x)  # type: ignore[arg-type]
