"""Layers that normalise: values by NumPy, and running statistics that are the same in every way of running."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import NotSupportedError, ShapeError
from tests.devices import device, parametrise
from tests.support import near

__all__ = ["device"]
pytest_generate_tests = parametrise
Host = np.ndarray[Any, Any]
WAYS = ("eager", "deferred", "jit", "hybridize", "hybridize, static")


def numbers(*shape: int, seed: int = 0) -> Host:
    return np.random.default_rng(seed).normal(1.0, 2.0, shape).astype(np.float32)


def standardised(x: Host, axes: Any, epsilon: float = 1e-5) -> Host:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def with_affine(layer: Any, seed: int = 3) -> tuple[Host, Host]:
    """A scale and a bias that are not ones and zeros, written into the layer."""
    scale, bias = (numbers(*layer.scale.spec.shape, seed=seed + i) for i in (0, 1))
    layer.scale.write(nnc.asarray(scale))
    if layer.bias is not None:
        layer.bias.write(nnc.asarray(bias))
    return scale, bias


def along(v: Host, axis: int, ndim: int) -> Host:
    return v.reshape([-1 if i == axis % ndim else 1 for i in range(ndim)])


# ---- values
@pytest.mark.parametrize("shape, axis", [((6, 4), -1), ((5, 7, 4), -1), ((3, 4, 5), 1), ((2, 3, 4, 5, 2), 2)])
def test_batch_norm(shape: tuple[int, ...], axis: int) -> None:
    layer = nn.BatchNorm(4, axis, momentum=0.75)
    scale, bias = (along(v, axis, len(shape)) for v in with_affine(layer))
    axes = tuple(i for i in range(len(shape)) if i != axis % len(shape))
    mean, variance = np.zeros(4), np.ones(4)
    for seed in range(3):
        x = numbers(*shape, seed=seed)
        near(layer(nnc.asarray(x)), standardised(x, axes) * scale + bias)
        wide = x.astype(np.float64)
        mean, variance = 0.75 * mean + 0.25 * wide.mean(axes), 0.75 * variance + 0.25 * wide.var(axes)
    near(layer.running_mean.read(), mean)
    near(layer.running_variance.read(), variance)
    x = numbers(*shape, seed=9)
    expected = (x - along(mean, axis, x.ndim)) / np.sqrt(along(variance, axis, x.ndim) + 1e-5) * scale + bias
    before = layer.state_dict()
    near(layer.eval()(nnc.asarray(x)), expected)
    with nnc.evaluating():
        near(layer.train()(nnc.asarray(x)), expected)
    assert all(np.array_equal(a, before[name]) for name, a in layer.state_dict().items())


def test_layer_norm_and_rms_norm() -> None:
    x = numbers(3, 5, 4)
    for shape, axes in ((4, (-1,)), ((5, 4), (-2, -1))):
        layer = nn.LayerNorm(shape, epsilon=1e-3)
        scale, bias = with_affine(layer)
        near(layer(nnc.asarray(x)), standardised(x, axes, 1e-3) * scale + bias)
        root = nn.RMSNorm(shape)
        scale, _ = with_affine(root)
        expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(axes, keepdims=True) + 1e-6) * scale
        near(root(nnc.asarray(x)), expected)
    assert list(nn.RMSNorm(4).named_parameters()) == ["scale"]


@pytest.mark.parametrize("axis", [-1, 1])
def test_group_norm_and_instance_norm(axis: int) -> None:
    x = numbers(2, 3, 5, 6)
    given = nnc.asarray(x if axis == -1 else np.moveaxis(x, -1, 1).copy())
    grouped, single = nn.GroupNorm(3, 6, axis), nn.InstanceNorm(6, axis)
    for layer, groups in ((grouped, 3), (single, 6)):
        scale, bias = with_affine(layer)
        parts = x.reshape(2, 3, 5, groups, 6 // groups)
        expected = standardised(parts, (1, 2, 4)).reshape(x.shape) * scale + bias
        near(layer(given), expected if axis == -1 else np.moveaxis(expected, -1, 1))


def test_local_response_norm() -> None:
    x = numbers(2, 3, 5)
    total = np.zeros(x.shape)
    for c in range(5):
        total[..., c] = (x[..., max(c - 1, 0) : c + 2].astype(np.float64) ** 2).sum(-1)
    near(nn.LocalResponseNorm(3, alpha=0.3, beta=0.5, k=2.0)(nnc.asarray(x)), x / (2 + 0.1 * total) ** 0.5)


def test_without_scale_and_bias() -> None:
    x = numbers(3, 4, 6)
    for layer, axes in ((nn.BatchNorm(6, affine=False), (0, 1)), (nn.LayerNorm(6, affine=False), (2,)),
                        (nn.InstanceNorm(6, affine=False), (1,)), (nn.GroupNorm(1, 6, affine=False), (1, 2))):
        assert not layer.parameters()
        near(layer(nnc.asarray(x)), standardised(x, axes))


def test_weights_of_16_bits() -> None:
    layer = nn.BatchNorm(4, dtype="float16")
    assert {name: str(c.spec.dtype) for name, c in layer.cells().items()} == {
        "scale": "float16", "bias": "float16", "running_mean": "float32", "running_variance": "float32"}
    x = numbers(64, 4)
    y = layer(nnc.asarray(x, dtype="float16"))
    assert y.dtype == nnc.float16
    np.testing.assert_allclose(y.numpy().astype(np.float32), standardised(x, 0), atol=5e-3)
    np.testing.assert_allclose(layer.state_dict()["running_mean"], 0.1 * x.mean(0), atol=1e-3)
    assert layer.eval()(nnc.asarray(x, dtype="float16")).dtype == nnc.float16


# ---- every way of running
def images_net() -> nn.Sequential:
    g = nnc.Generator(1)
    return nn.Sequential(nn.Conv2d(2, 4, 3, generator=g), nn.BatchNorm(4), nn.ReLU(), nn.GlobalAvgPool2d(),
                         nn.Linear(4, 3, generator=g), nn.BatchNorm(3, affine=False), nn.Dropout(0.3, nnc.Generator(2)))


def runner(way: str, net: nn.Module) -> Callable[..., nnc.Tensor]:
    if way == "jit":
        return nnc.jit(net)
    if way.startswith("hybridize"):
        return net.hybridize(static_alloc="static" in way)

    def run(x: nnc.Tensor) -> nnc.Tensor:
        with nnc.deferred() if way == "deferred" else nullcontext():
            return net(x)

    return run


def test_running_statistics_are_carried_the_same_in_every_way() -> None:
    """Training, evaluation, training again: results and state to the bit."""
    found = {}
    for way in WAYS:
        net = images_net()
        run, seen = runner(way, net), []
        for seed, training in enumerate((True, True, False, True, False)):
            net.train(training)
            seen.append(run(nnc.asarray(numbers(3, 6, 5, 2, seed=seed))).numpy().tobytes())
            seen.append({name: a.tobytes() for name, a in net.state_dict().items()})
        assert seen[3] != seen[1] and seen[5] == seen[3] and seen[9] == seen[7]
        found[way] = seen
    assert all(found[way] == found["eager"] for way in WAYS)


def test_training_steps_carry_them_too() -> None:
    x, y = nnc.asarray(numbers(6, 6, 5, 2)), nnc.asarray(np.arange(6) % 3)

    def trained(eager: bool) -> dict[str, Host]:
        net = images_net()
        both = nn.value_and_grad(net, lambda x, y: nnc.cross_entropy(net(x), y))
        step = optim.make_step(both, optim.SGD(net.named_parameters(), 0.1), eager=eager)
        for _ in range(4):
            step(x, y)
        return net.state_dict()

    eager, compiled = trained(True), trained(False)
    assert abs(eager["1.running_mean"]).max() > 0.01
    for name, a in eager.items():
        np.testing.assert_array_equal(compiled[name], a, err_msg=name)


def test_the_dynamic_graph_and_gradients_leave_the_same_statistics() -> None:
    x = nnc.asarray(numbers(8, 4))
    layers = [nn.BatchNorm(4, momentum=0.5) for _ in range(3)]
    layers[0](x)
    nnc.sum(layers[1].requires_grad_()(x) ** 2).backward()
    nnc.grad(lambda x: nnc.sum(layers[2](x) ** 2))(x)
    states = [layer.state_dict() for layer in layers]
    for name in ("running_mean", "running_variance"):
        assert all(np.array_equal(s[name], states[0][name]) for s in states)
        assert not layers[1].cells()[name].read().requires_grad


def test_evaluation_depends_on_nothing_but_the_example() -> None:
    net = images_net()
    for seed in range(3):
        net(nnc.asarray(numbers(4, 6, 5, 2, seed=seed)))
    x = numbers(4, 6, 5, 2, seed=7)
    whole = net.eval()(nnc.asarray(x)).numpy()
    np.testing.assert_allclose(net(nnc.asarray(x[1:2])).numpy(), whole[1:2], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(net(nnc.asarray(x)).numpy(), whole)


def test_assigned_symbols_are_normalised_by_the_running_statistics() -> None:
    layer = nn.BatchNorm(4)
    layer(nnc.asarray(numbers(8, 4)))
    state, symbol = layer.state_dict(), nnc.var_arr("x", ("n", 4))
    with pytest.raises(NotSupportedError, match=r"BatchNorm\(4\): the running statistics(.|\n)*layer.eval\(\)"):
        layer(symbol)
    y = layer.eval()(symbol)
    for count in (3, 5):
        x = numbers(count, 4, seed=count)
        nnc.assign(symbol, x)
        nnc.eval_arr([y])
        np.testing.assert_allclose(nnc.unpack_arr(y), layer(nnc.asarray(x)).numpy(), rtol=1e-6, atol=1e-6)
    assert all(np.array_equal(a, state[name]) for name, a in layer.state_dict().items())


def test_an_empty_batch_has_no_statistics() -> None:
    layer = nn.BatchNorm(4)
    with pytest.raises(ShapeError, match="an empty batch, which has no mean"):
        layer(nnc.ones((0, 4)))
    assert layer.eval()(nnc.ones((0, 4))).shape == (0, 4)
    assert layer.state_dict()["running_mean"].tolist() == [0] * 4


def test_float64_inputs_of_float32_layers() -> None:
    layer, x = nn.BatchNorm(4), numbers(8, 4).astype(np.float64)
    if nnc.float64 not in nnc.stack_for(None).type.dtypes:
        pytest.skip("no float64 on this device")
    assert layer(nnc.asarray(x)).dtype == nnc.float64
    np.testing.assert_allclose(layer.state_dict()["running_mean"], 0.1 * x.mean(0), rtol=1e-5)


def test_a_layer_norm_without_bias(device: str) -> None:
    layer = nn.LayerNorm(4, bias=False)
    x = nnc.asarray(np.asarray([[1.0, 2.0, 4.0, 9.0], [0.0, -1.0, 3.0, 2.0]], np.float32))
    assert list(layer.named_parameters()) == ["scale"] and repr(layer) == "LayerNorm((4,), bias=False)"
    assert repr(nn.LayerNorm(4, affine=False, bias=False)) == repr(nn.LayerNorm(4, affine=False))
    for f in (layer, nnc.jit(layer)):
        np.testing.assert_allclose(f(x).numpy(), nn.LayerNorm(4)(x).numpy(), rtol=1e-6, atol=1e-6)
    state = nn.to_pytorch_state(layer)
    assert list(state) == ["weight"] and nn.from_pytorch_state(layer, state) == ((), ())
