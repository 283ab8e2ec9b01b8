"""Hooks on gradients: when they run, what they change, what they cost nobody else."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.algodiff import compiled_backward
from tests.tensors.faults import fails


def test_a_hook_sees_the_complete_gradient_and_may_change_it(device: str) -> None:
    for _ in range(4):  # step by step, then compiled
        x, seen = nnc.variable(2.0), []
        y = x * 3
        y.register_hook(lambda g, seen=seen: seen.append(g.item()))  # type: ignore[misc]
        y.register_hook(lambda g: g * 10)
        (y * y + y).backward()
        assert seen == [13.0], "both uses of y together, once"
        assert x.grad is not None and x.grad.item() == 390


def test_hooks_on_variables(device: str) -> None:
    hits = compiled_backward.PROGRAMS.info().hits
    for _ in range(5):
        x, seen = nnc.variable([1.0, 2.0]), []
        x.register_hook(lambda g, seen=seen: seen.append(g.tolist()))  # type: ignore[misc]
        x.register_hook(lambda g: -g)
        (x * x).sum().backward()
        assert seen == [[2, 4]] and x.grad is not None and x.grad.tolist() == [-2, -4]
    assert compiled_backward.PROGRAMS.info().hits > hits, "hooks on variables leave the pass compiled"


def test_a_removed_hook_is_not_called(device: str) -> None:
    x = nnc.variable(1.0)
    handle = x.register_hook(lambda g: g * 100)
    with x.register_hook(lambda g: g + 1):
        (x * 2).backward()
    assert x.grad is not None and x.grad.item() == 201
    handle.remove()
    handle.remove()
    x.grad = None
    (x * 2).backward()
    assert x.grad.item() == 2


def test_hooks_run_once_in_every_pass(device: str) -> None:
    x, seen = nnc.variable(3.0), []
    y = x * x
    y.register_hook(lambda g: seen.append(1))
    y.backward()
    y.backward()
    assert len(seen) == 2
    y.detach().sum()
    assert len(seen) == 2


def test_order_of_hooks_along_the_graph(device: str) -> None:
    x, seen = nnc.variable(1.0), []
    a = x * 2
    b = a * 3
    for name, t in (("x", x), ("a", a), ("b", b)):
        t.register_hook(lambda g, name=name: seen.append(name))  # type: ignore[misc]
    b.backward()
    assert seen == ["b", "a", "x"]


def test_after_accumulation(device: str) -> None:
    x, seen = nnc.variable(3.0), []

    def descend(v: nnc.Tensor) -> None:
        assert v is x and v.grad is not None
        seen.append(v.grad.item())
        with nnc.no_grad():
            v -= 0.5 * v.grad
        v.grad = None

    x.register_post_accumulate_grad_hook(descend)
    for _ in range(4):
        (x * x).backward()
    assert seen == [6, 0, 0, 0] and x.item() == 0 and x.grad is None


def test_a_variable_keeps_its_hooks_when_it_is_changed(device: str) -> None:
    x, seen = nnc.variable([1.0]), []
    x.register_hook(lambda g: seen.append(g.item()))
    with nnc.no_grad():
        x -= 0.5
    (x * x).sum().backward()
    assert seen == [1.0]


def test_a_value_keeps_its_hook_when_its_name_is_given_another_one(device: str) -> None:
    x, seen = nnc.variable([1.0]), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.item()))
    y += 1
    (y * y).sum().backward()
    assert seen == [6.0], "of the value before += 1"
    z = x * 2
    (z * z).sum().backward()
    assert seen == [6.0]


def test_hooks_in_transforms(x: nnc.Tensor) -> None:
    def f(t: nnc.Tensor) -> nnc.Tensor:
        y = nnc.tanh(t)
        y.register_hook(lambda g: g * 2)
        return (y * y).sum()

    plain = nnc.grad(lambda t: (nnc.tanh(t) * nnc.tanh(t)).sum())
    for g in (nnc.grad(f), nnc.jit(nnc.grad(f))):
        np.testing.assert_allclose(g(x).numpy(), 2 * plain(x).numpy(), rtol=1e-6)
    second = nnc.grad(lambda t: nnc.grad(f)(t).sum())  # both sweeps come by y
    np.testing.assert_allclose(second(x).numpy(), 4 * nnc.grad(lambda t: plain(t).sum())(x).numpy(), rtol=1e-5)


def test_gradients_given_back_pass_hooks_too(device: str) -> None:
    x = nnc.variable(2.0)
    y = x * 3
    y.register_hook(lambda g: g * 10)
    by_y, by_x = nnc.gradients(y * y, [y, x])
    assert by_y is not None and by_y.item() == 120 and by_x is not None and by_x.item() == 360
    assert x.grad is None


def test_bad_hooks(device: str) -> None:
    x = nnc.variable([1.0, 2.0])
    with fails(ValueError, "nnc.variable", line=False):
        nnc.ones(2).register_hook(lambda g: None)
    with fails(ValueError, "no variable", line=False):
        (x * 2).register_post_accumulate_grad_hook(lambda v: None)
    with fails(TypeError, "function", line=False):
        x.register_hook(3)  # type: ignore[arg-type]
    for bad, said in ((lambda g: 1.0, "float"), (lambda g: g.sum(), "float32[]")):
        with x.register_hook(bad), fails(ValueError, said, line=False):
            (x * x).sum().backward()


def test_the_handle_keeps_nothing_alive(device: str) -> None:
    x = nnc.variable(1.0)
    handle, seen = x.register_hook(lambda g: None), weakref.ref(x._value)
    del x
    assert seen() is None
    handle.remove()


@pytest.mark.parametrize("compiled", [False, True])
def test_module_hooks(device: str, compiled: bool) -> None:
    inner = nn.Lambda(lambda t: t * 2)
    net = nn.Sequential(inner, nn.Lambda(lambda t: t + 1)).hybridize(compiled)
    x = nnc.asarray([1.0, 2.0])
    assert net(x).tolist() == [3, 5]
    seen: list[object] = []
    watch = net.register_forward_hook(lambda m, args, y: seen.append((m is net, args[0].tolist(), y.tolist())))
    assert net(x).tolist() == [3, 5] and seen == [(True, [1, 2], [3, 5])]
    watch.remove()
    with inner.register_forward_hook(lambda m, args, y: y * 10):  # retraces what is compiled around it
        assert net(x).tolist() == [21, 41]
        with inner.register_forward_pre_hook(lambda m, args: args[0] + 1):
            assert net(x).tolist() == [41, 61]
    assert net(x).tolist() == [3, 5] and len(seen) == 1
    with pytest.raises(nnc.Error, match="function"):
        net.register_forward_hook(None)


def test_copies_of_modules_have_no_hooks() -> None:
    import copy

    net = nn.Lambda(nnc.tanh)
    net.register_forward_hook(lambda m, args, y: y * 0)
    assert copy.deepcopy(net)(nnc.ones(1)).item() != 0 and net(nnc.ones(1)).item() == 0
