"""The parents' defects at both ends of a graph, in gradients, and with several devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import UnconnectedError, VariableRebindError
from nnc_core.io import load_graph, save_graph
from tests.devices import another
from tests.semantics.hybrid import run_as
from tests.semantics.loops import near
from tests.semantics.modes import check, exported, hosts, recorded
from tests.semantics.networks import small_net
from tests.support import numbers, same

X = numbers(4, 3)


# ---- both ends of a graph
def test_no_input_demanded_for_a_creation(device: str) -> None:
    with nnc.deferred():
        y = nnc.arange(10, dtype=nnc.float32) + nnc.ones(10)
    graph = nnc.export({}, {"y": y})
    assert graph.list_inputs() == [] and graph.compile(device)()["y"].tolist() == list(range(1, 11))


def test_no_second_variable_for_one_array(device: str) -> None:
    a = nnc.ones(3)
    with nnc.deferred():
        b = a + 1
    with pytest.raises(VariableRebindError, match="same tensor") as caught:
        nnc.export({"a": a, "again": a}, {"b": b})
    assert isinstance(caught.value, ValueError)
    assert nnc.export({"again": a}, {"b": b}).list_inputs() == ["again"], "another name another time is no matter"


def test_no_graph_of_an_array_without_history(device: str) -> None:
    a, b = nnc.ones(3), nnc.ones(3)
    with pytest.raises(UnconnectedError, match="no recorded history"):
        nnc.export({"a": a}, {"b": b})


def test_no_unused_input_unnoticed(device: str) -> None:
    """Unchecked, or a warning, in the parent; the RFC had promised an error."""
    a, b = nnc.ones(3), nnc.ones(3)
    with nnc.deferred():
        y = a + 1
    with pytest.raises(ValueError, match="'b'"):
        nnc.export({"a": a, "b": b}, {"y": y})
    with pytest.warns(UserWarning, match="'b'"):
        graph = nnc.export({"a": a, "b": b}, {"y": y}, on_unused="warn")
    assert graph.list_inputs() == ["a", "b"]
    assert nnc.export({"a": a, "b": b}, {"y": y}, on_unused="ignore").list_inputs() == ["a", "b"]


def test_no_array_captured_unasked(device: str) -> None:
    """The RFC's error for an output that depends on an input which is not named."""
    a, b = nnc.asarray([1.0, 2.0]), nnc.asarray([3.0, 4.0])
    with nnc.deferred():
        y = a + b
    with pytest.raises(UnconnectedError, match=r"neither an input nor a constant"):
        nnc.export({"a": a}, {"y": y})
    graph = nnc.export({"a": a}, {"y": y}, capture="constant")
    b[...] = -1.0
    assert graph.compile(device)(a=a)["y"].tolist() == [4.0, 6.0]


def test_no_call_needed_before_an_export(device: str, tmp_path: Path) -> None:
    """The parent wants hybridize and one forward call first."""
    net, x = small_net(), nnc.asarray(X)
    with nnc.deferred():
        y = net(x)
    graph = nnc.export({"x": x}, {"y": y}, capture="constant")
    save_graph(graph, tmp_path / "net.nnc")
    loaded = load_graph(tmp_path / "net.nnc", nnc.stack_for(device).operator)
    same(hosts(loaded.compile(device)(x=x)), hosts(net(x)))


# ---- gradients
def test_no_gradient_refused_inside_deferred(device: str) -> None:
    """Both nestings are errors in the parent."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.grad(lambda x: nnc.sum(nnc.tanh(x) ** 2))(x)

    x = nnc.asarray(X)
    for mode in ("deferred", "deferred then eager", "symbolic", "all in turn", "jit"):
        check(mode, f, x)
    same(hosts(nnc.grad(lambda x: nnc.sum(recorded(nnc.tanh, x)[0] ** 2))(x)), hosts(f(x)))


def test_no_gradient_stopping_at_a_lazy_array(device: str) -> None:
    """A lazy array given to a recorded operator was a leaf: the gradient did not reach what is before it."""
    v, wanted = nnc.variable(X), nnc.variable(X)
    with nnc.deferred():
        y = nnc.tanh(v)
    nnc.sum(y * y).backward()
    z = nnc.tanh(wanted)
    nnc.sum(z * z).backward()
    assert v.grad is not None and wanted.grad is not None
    same(hosts(v.grad), hosts(wanted.grad))


def test_no_refusal_of_outer_variables_in_a_loop(device: str) -> None:
    """Closures are not allowed as inputs of a body in MXNet 2; gradients reach them here."""
    w = nnc.asarray([0.5, -0.25])

    def f(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
        shifted = w + 1
        (y,) = nnc.while_loop(lambda y: nnc.sum(y * y) < 50.0, lambda y: (y * shifted + x,), (x,))
        z, _ = nnc.scan(lambda c, row: (c * w + row, c), y, nnc.stack([x, x * 2]))
        return nnc.cond(nnc.sum(z) > 0, lambda z: z * w, lambda z: z - w, z)

    def loss(x: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(f(x, w) ** 2)

    x = nnc.asarray([1.0, 2.0])
    for mode in ("deferred", "symbolic", "jit"):
        check(mode, f, x, w)
        check(mode, lambda x, w: list(nnc.grad(loss, (0, 1))(x, w)), x, w, compare=near)
    step = 1e-2
    found = nnc.grad(loss, 1)(x, w).numpy()
    for i in range(2):
        moved = np.eye(2, dtype=np.float32)[i] * step
        slope = (loss(x, w + moved).item() - loss(x, w - moved).item()) / (2 * step)
        assert found[i] == pytest.approx(slope, rel=2e-2)


# ---- devices
def test_no_graph_confined_to_one_device(device: str) -> None:
    """"Find multiple devices in the input ..." in the parent: a hybridized function may copy between devices."""
    other = another(device)

    def f(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return x * 2 + y.to(device)

    x, y = nnc.asarray(X), nnc.asarray(X * 3, device=other)
    same(hosts(f(x, y)), [X * 2 + X * 3])
    for how in ("deferred", "hybridize", "jit"):
        same(hosts(run_as(how, nn.Lambda(f))(x, y)), [X * 2 + X * 3])
    assert nnc.grad(lambda y: nnc.sum(f(x, y) * 2))(y).device.id == other, "the gradient goes back with it"


def test_the_harness_of_exports_agrees(device: str) -> None:
    """`recorded` and `exported`, which tests above lean on, find what numpy finds."""
    x = nnc.asarray(X)
    ys = recorded(lambda x: [x * 2, x[0]], x)
    same(exported(ys, {"x": x}), [X * 2, X[0]])
