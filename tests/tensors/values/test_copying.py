"""copy, deepcopy and pickle of tensors and cells: the elements, by way of the host, without the history."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from tests.tensors.faults import fails

WAYS: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda t: pickle.loads(pickle.dumps(t)),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_, ml_dtypes.bfloat16])
def test_a_copy_is_equal_and_apart(device: str, way: str, dtype: Any) -> None:
    host = np.array([[1, 0, 2], [3, 4, 5]]).astype(dtype)
    x = nnc.asarray(host)
    y = WAYS[way](x)
    assert y.device is x.device and y.spec == x.spec and y.numpy().tobytes() == host.tobytes()
    assert (y == x).numpy().all(), "it is on the same device"
    y[0] = 0
    assert x.numpy().tobytes() == host.tobytes()


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_variables_stay_variables_and_results_leave_their_history(device: str, way: str) -> None:
    v = nnc.variable([2.0])
    w, y = WAYS[way](v), WAYS[way](v * v)
    (w * w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [4.0] and v.grad is None
    assert y.tolist() == [4.0] and not y.requires_grad


@pytest.mark.parametrize("way", WAYS)
def test_deferred_tensors_are_computed(x: nnc.Tensor, way: str) -> None:
    with nnc.deferred():
        y = x * 2
    assert WAYS[way](y).tolist() == [[0, 2, 4], [6, 8, 10]]


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_cells_and_what_holds_them(device: str, way: str) -> None:
    state: dict[str, Any] = {"w": nnc.Cell(nnc.ones(2), "w"), "generator": nnc.Generator(3)}
    other = WAYS[way](state)
    other["w"].write(nnc.zeros(2))
    assert state["w"].read().tolist() == [1, 1] and other["w"].name == "w"
    assert state["generator"].uniform((2,)).tolist() == other["generator"].uniform((2,)).tolist()


def test_a_symbol_cannot_be_copied(device: str) -> None:
    s = nnc.var_arr("s", (2,))
    for way in ("deepcopy", "pickle"):
        with fails(TypeError, "symbol float32[2]", line=False):
            WAYS[way](s)


# ---- what is kept and what is not
@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_goes_along_and_is_apart_in_a_copy(device: str, way: str) -> None:
    """It is state of the variable, as its elements are: training that accumulates goes on where it was."""
    v = nnc.variable([1.0, 2.0])
    (v * v).sum().backward()
    w = WAYS[way](v)
    assert w.requires_grad and w.grad is not None and w.grad.tolist() == [2, 4] and w.grad.device is v.device
    if way == "copy":  # another handle of the same value
        assert w._value is v._value
        return
    (w * w).sum().backward()
    assert w.grad.tolist() == [4, 8] and v.grad is not None and v.grad.tolist() == [2, 4]


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_what_is_shared_inside_one_copy_stays_shared(device: str, way: str) -> None:
    x, cell = nnc.asarray([1.0, 2.0]), nnc.Cell(nnc.ones(2), "w")
    alias, value = x, copy.copy(x)
    a, b, c, d, e = WAYS[way]([x, alias, value, cell, {"again": cell}])
    assert a is b and a is not x, "one handle"
    assert c is not a and c._value is a._value, "two handles of one value"
    assert e["again"] is d and d is not cell
    a[0] = 9
    assert b[0].item() == 9 and c[0].item() == 1
    d.write(a)
    assert cell.read().tolist() == [1, 1] and e["again"].read().tolist() == [9, 2]


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_is_on_the_device_of_the_original(way: str) -> None:
    for id in ("strict:0", "strict-async:0"):
        x = nnc.asarray([1.0, 2.0], device=id)
        cell = nnc.Cell(x, "w")
        assert WAYS[way](x).device.id == WAYS[way](cell).device.id == id
        assert WAYS[way](nnc.Generator(3, device=id)).key.device.id == id


def test_a_pickle_says_that_its_device_is_missing(device: str) -> None:
    """One that was made on a machine with other devices."""
    missing = "q" * (len(device) - 2) + ":7"
    data = pickle.dumps(nnc.ones(2)).replace(device.encode(), missing.encode())
    with fails(ValueError, missing, line=False):
        pickle.loads(data)


# ---- symbols and traces
@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_traced_tensors_refuse(device: str, way: str) -> None:
    cell = nnc.Cell(nnc.ones(2), "w")

    def tensor(t: nnc.Tensor) -> Any:
        return WAYS[way](t * 2)

    def read(t: nnc.Tensor) -> Any:
        return WAYS[way](cell.read()) + t

    def whole(t: nnc.Tensor) -> Any:
        cell.write(cell.read() + t)
        return WAYS[way](cell).read() + t

    for f in (tensor, read, whole):
        with fails(TypeError, "symbol float32[2] cannot be copied", line=False):
            nnc.jit(f)(nnc.ones(2))
    assert cell.read().tolist() == [1, 1]


def test_a_handle_of_a_symbol_can_be_copied(device: str) -> None:
    s = nnc.var_arr("s", (2,))
    t = copy.copy(s)
    assert t._value is s._value
    f = nnc.jit(lambda x: copy.copy(x) + 1)
    assert f(nnc.ones(2)).tolist() == [2, 2]


# ---- modules, minimisers, generators
class Net(nn.Module):
    def __init__(self) -> None:
        self.first, self.second = nn.Linear(3, 4), nn.Linear(4, 4)
        self.tied = self.second
        self.count = nnc.Cell(nnc.zeros(()), "count")

    def forward(self, x: nnc.Tensor) -> Any:
        self.count.write(self.count.read() + 1)
        return self.tied(nnc.tanh(self.second(self.first(x))))


def trained(net: Net, minimiser: Any, steps: int) -> list[float]:
    x = nnc.asarray(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    losses = []
    for _ in range(steps):
        loss, grads = nn.value_and_grad(net, lambda: (net(x) ** 2).sum())()
        minimiser.update(grads)
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
@pytest.mark.parametrize("make", [
    lambda p: optim.SGD(p, 0.05, momentum=0.9), lambda p: optim.Adam(p, 0.01), lambda p: optim.Adam(p, constant_rate),
], ids=["SGD", "Adam", "schedule"])  # fmt: skip
def test_a_network_and_its_minimiser_go_on_as_one(device: str, way: str, make: Callable[[Any], Any]) -> None:
    net = Net()
    minimiser = make(net.named_parameters())
    trained(net, minimiser, 2)
    other, others = WAYS[way]((net, minimiser))
    assert other.tied is other.second and other.first is not net.first
    assert list(others.parameters.values()) == list(other.named_parameters().values()), "the minimiser's are the net's"
    assert trained(other, others, 3) == trained(net, minimiser, 3)
    trained(other, others, 1)
    assert other.count.read().item() == net.count.read().item() + 1 and minimiser.step.read().item() == 5
    for name, p in net.named_parameters().items():
        assert other.named_parameters()[name].device is p.device


def constant_rate(step: nnc.Tensor) -> nnc.Tensor:
    return step * 0 + 0.01


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_copy_of_a_network_is_apart_and_set_as_it_was(device: str, way: str) -> None:
    net = Net().eval()
    other = WAYS[way](net)
    assert not other.training and repr(other) == repr(net)
    other.first.weight.write(other.first.weight.read() * 0)
    assert net.first.weight.read().numpy().any() and not other.first.weight.read().numpy().any()
    assert isinstance(other.first.weight, nn.Parameter)


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_generator_goes_on_apart(device: str, way: str) -> None:
    g = nnc.Generator(7)
    g.uniform((3,))
    h = WAYS[way](g)
    expected = g.normal((4,)).tolist()
    g.uniform((2,))
    assert h.normal((4,)).tolist() == expected


@pytest.mark.parametrize("way", ["deepcopy", "pickle"])
def test_a_cell_that_was_lost_says_so(device: str, way: str) -> None:
    cell = nnc.Cell(nnc.ones(2), "w")
    cell.lose("a call failed")
    with fails(RuntimeError, "'w'", "a call failed", line=False):
        WAYS[way](cell)
