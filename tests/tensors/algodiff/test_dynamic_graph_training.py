"""The dynamic graph as NNC means it: models and minimisers (docs/nnc_cases.md maps the cases)."""

from __future__ import annotations

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from tests.tensors.algodiff.references import gradient_of, model


def test_a_module_inside_the_graph(device: str) -> None:
    nnc.manual_seed(0)
    net = model(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    x = nnc.asarray(np.ones((4, 2), np.float32))
    loss = (net(x * 2) * 3).sum()
    loss.backward()
    (value, wanted) = nn.value_and_grad(net, lambda x: (net(x * 2) * 3).sum())(x)
    assert value.item() == loss.item()
    for name, g in net.gradients().items():
        np.testing.assert_array_equal(g.numpy(), wanted[name].numpy())


@pytest.mark.parametrize("function", [lambda t: t / 2, lambda t: 1 / t, lambda t: nnc.reshape(t.T, (3, 2))])
def test_a_module_without_parameters(device: str, function: nn.Lambda) -> None:
    """Division, reciprocal, permutation and reshape as compiled modules."""
    x = nnc.variable(np.arange(1, 7, dtype=np.float32).reshape(2, 3))
    net = nn.Sequential(nn.Lambda(function)).hybridize()
    scale = nnc.asarray(np.arange(6, dtype=np.float32)).reshape(net(x).shape)
    (net(x) * scale).sum().backward()
    wanted = nnc.grad(lambda t: (function(t) * scale).sum())(x.detach())
    assert gradient_of(x) == wanted.numpy().ravel().tolist()


def test_a_compiled_module_gives_the_gradients_of_the_module(device: str) -> None:
    nnc.manual_seed(1)
    net = model(nn.Linear(3, 3), nn.Tanh())
    x = nnc.variable(np.ones((2, 3), np.float32))
    found = []
    for compiled in (False, True):
        net.hybridize(compiled)
        with nnc.no_grad():
            net(x)  # compiled code is there already
        net.zero_grad()
        x.grad = None
        (net(x) * net(x)).sum().backward()
        found.append([gradient_of(x), *[g.tolist() for g in net.gradients().values()]])
    assert found[0] == found[1]


def test_a_compiled_graph_passes_gradients_on(device: str) -> None:
    with nnc.deferred():
        a, b = nnc.zeros(3), nnc.zeros(3)
        y = nnc.tanh(a) * b + 2
    run = nnc.export({"a": a, "b": b}, {"y": y}).compile(device)
    x = nnc.variable([0.1, 0.2, 0.3])
    (run(a=x, b=x * 2)["y"]).sum().backward()
    wanted = nnc.grad(lambda x: (nnc.tanh(x) * (x * 2) + 2).sum())(x.detach())
    assert gradient_of(x) == wanted.tolist()
    assert not run(a=x.detach(), b=nnc.ones(3))["y"].requires_grad
    with nnc.no_grad():
        assert not run(a=x, b=x)["y"].requires_grad
    traced = nnc.jit(lambda t: run(a=t, b=t)["y"])
    np.testing.assert_array_equal(traced(x.detach()).numpy(), run(a=x.detach(), b=x.detach())["y"].numpy())


def test_a_module_adds_up_its_gradients(device: str) -> None:
    net = model(nn.Linear(2, 1))
    x = nnc.asarray([[1.0, 2.0]])
    for times in (1, 2):
        net(x).sum().backward()
        assert net.gradients()["0.weight"].tolist() == [[times], [2 * times]]
    net.zero_grad()
    assert net.gradients()["0.weight"].tolist() == [[0], [0]]


def test_gradients_add_up_across_modules(device: str) -> None:
    first, second = model(nn.Linear(2, 2)), model(nn.Linear(2, 1))
    x = nnc.variable([[1.0, 2.0]])
    hidden = first(x)
    (second(hidden) + second(hidden * 2)).sum().backward()
    weight = second.gradients()["0.weight"]
    np.testing.assert_allclose(weight.numpy().ravel(), 3 * hidden.numpy().ravel(), rtol=1e-6)
    assert x.grad is not None and any(first.gradients()["0.weight"].numpy().ravel())


def test_gradients_add_up_across_modules_that_read_parts(device: str) -> None:
    first, second = model(nn.Linear(2, 4)), model(nn.Linear(2, 1))
    x = nnc.asarray([[1.0, 2.0]])
    hidden = first(x)
    (second(hidden[:, :2]) + second(hidden[:, 2:])).sum().backward()
    np.testing.assert_allclose(second.gradients()["0.weight"].numpy().ravel(),
                               (hidden[:, :2] + hidden[:, 2:]).numpy().ravel(), rtol=1e-6)
    w = next(iter(second.parameters())).read().detach()
    np.testing.assert_allclose(first.gradients()["0.weight"].numpy(), np.outer([1, 2], np.tile(w.numpy().ravel(), 2)),
                               rtol=1e-6)


def test_copies_of_parameters_stay_variables(device: str) -> None:
    import copy

    net = model(nn.Linear(2, 1))
    again = copy.deepcopy(net)
    assert all(p.requires_grad for p in again.parameters())
    again(nnc.ones((1, 2))).sum().backward()
    assert any(again.gradients()["0.weight"].numpy()) and not any(net.gradients()["0.weight"].numpy())
    again.requires_grad_(False)
    assert not again(nnc.ones((1, 2))).requires_grad
    with pytest.raises(nnc.Error, match="requires_grad"):
        again.parameters()[0].grad = nnc.ones((2, 1))


# ---- minimisers
def least_squares() -> tuple[nnc.Tensor, nnc.Tensor, nnc.Tensor]:
    rng = np.random.default_rng(0)
    a, wanted = rng.standard_normal((10, 2)).astype(np.float32), np.array([[2.0], [-1.0]], np.float32)
    return nnc.asarray(a), nnc.asarray(a @ wanted), nnc.asarray(wanted)


def test_least_squares_by_a_minimiser_in_the_graph(device: str) -> None:
    a, b, wanted = least_squares()
    w = nnc.variable(np.zeros((2, 1), np.float32))
    for _ in range(100):
        loss = ((a @ w - b) * (a @ w - b)).sum()
        (g,) = nnc.gradients(loss, [w])
        assert g is not None
        with nnc.no_grad():
            w -= 0.03 * g
    np.testing.assert_allclose(w.numpy(), wanted.numpy(), atol=1e-3)


def test_least_squares_by_backward_and_a_minimiser(device: str) -> None:
    a, b, wanted = least_squares()
    net = model(nn.Linear(2, 1))
    minimiser = optim.SGD(net.named_parameters(), learning_rate=0.03)
    for _ in range(150):
        net.zero_grad()
        error = net(a) - b
        (error * error).sum().backward()
        minimiser.update(net.gradients())
    np.testing.assert_allclose(net.parameters()[0].read().detach().numpy(), wanted.numpy(), atol=1e-2)


def test_a_compiled_update_after_backward(device: str) -> None:
    a, b, _ = least_squares()
    results = []
    for compiled in (False, True):
        nnc.manual_seed(0)
        net = model(nn.Linear(2, 1))
        minimiser = optim.SGD(net.named_parameters(), learning_rate=0.01)
        update = nnc.jit(minimiser.update) if compiled else minimiser.update
        for _ in range(10):
            net.zero_grad()
            error = net(a) - b
            (error * error).sum().backward()
            with nnc.no_grad():
                update(net.gradients())
        results.append(net.parameters()[0].read().detach().numpy())
    np.testing.assert_array_equal(*results)
