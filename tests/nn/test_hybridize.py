"""hybridize: modules compiled where they are, and never stale."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.base.errors import AttributeValueError, ShapeError
from tests.nn.network import digits, small_lenet

FLAGS: list[dict[str, bool]] = [{}, {"static_alloc": True}, {"static_alloc": True, "static_shape": True}]
HOST = np.arange(8, dtype=np.float32).reshape(4, 2) / 8


class Net(nn.Module):
    """Two layers, an attribute that is read, and a count of how often Python runs."""

    def __init__(self) -> None:
        self.first = nn.Linear(2, 3, generator=nnc.Generator(1))
        self.second = nn.Linear(3, 2, generator=nnc.Generator(2))
        self.scale = 1.0
        self.runs: list[Any] = []

    def forward(self, x: Any) -> Any:
        self.runs.append(x.shape)
        return self.second(nnc.tanh(self.first(x))) * self.scale


def close(a: nnc.Tensor, b: nnc.Tensor) -> None:
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_it_computes_the_same_and_runs_python_once(flags: dict[str, bool]) -> None:
    plain, net = Net(), Net().hybridize(**flags)
    for k in range(3):
        x = nnc.asarray(HOST + k)
        close(net(x), plain(x))
    assert len(net.runs) == 1


def test_it_is_recursive_and_undone() -> None:
    net = Net()
    assert net.hybridize() is net
    assert all(m._compiled is not None for m in (net, net.first, net.second))
    x = nnc.asarray(HOST)
    net.first(x)
    net.first(x)
    assert net.first._compiled is not None and net.first._compiled.cache_info().hits == 1, "a part called on its own"
    net(x)
    assert net.first._compiled.cache_info().hits == 1, "inside the whole it is part of it"
    net.hybridize(False)
    assert net._compiled is None and net.first._compiled is None
    net(x)
    net(x)
    assert len(net.runs) == 3


def test_a_replaced_or_added_part_is_used() -> None:
    """H05."""
    net = Net().hybridize()
    x = nnc.asarray(HOST)
    before = net(x).numpy()
    net.second = nn.Linear(3, 2, generator=nnc.Generator(9))
    close(net(x), Net.forward(net, x))
    assert not np.allclose(net(x).numpy(), before)
    net.first.weight = nn.Parameter(nnc.ones((2, 3)))
    close(net(x), Net.forward(net, x))
    sequence = nn.Sequential(nn.Linear(2, 2, generator=nnc.Generator(3))).hybridize()
    sequence(x)
    sequence.append(nn.Tanh())
    close(sequence(x), nnc.tanh(sequence[0](x)))


def test_a_changed_attribute_is_used() -> None:
    """The parent went on with the first value."""
    net = Net().hybridize()
    x = nnc.asarray(HOST)
    one = net(x).numpy()
    net.scale = 2.0
    np.testing.assert_allclose(net(x).numpy(), 2 * one, rtol=1e-6)
    net.scale = 1.0
    np.testing.assert_allclose(net(x).numpy(), one, rtol=1e-6)
    runs = len(net.runs)
    net(x)
    assert len(net.runs) == runs


def test_another_dtype(device: str) -> None:
    """H07."""
    net = Net().hybridize()
    x = nnc.asarray(HOST)
    close(net(x), Net.forward(net, x))
    for layer in (net.first, net.second):
        for name in ("weight", "bias"):
            setattr(layer, name, nn.Parameter(getattr(layer, name).read().astype("float64")))
    y = net(x.astype("float64"))
    assert y.dtype == nnc.float64
    close(y, Net.forward(net, x.astype("float64")))


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_two_live_calls_share_no_memory(flags: dict[str, bool]) -> None:
    """H11: net(x) + net(x), and by the parameters."""
    plain, net = Net(), Net().hybridize(**flags)
    x, other = nnc.asarray(HOST), nnc.asarray(HOST * 3 - 1)
    close(net(x) + net(other), plain(x) + plain(other))
    first, second = net(x), net(other)
    close(first, plain(x))
    close(second, plain(other))

    def loss(of: Net) -> Any:
        return nn.value_and_grad(of, lambda: ((of(x) + of(x)) ** 2).sum())()

    (a, by_a), (b, by_b) = loss(net), loss(plain)
    close(a, b)
    for name in by_b:
        close(by_a[name], by_b[name])


@pytest.mark.parametrize("flags", FLAGS[:2], ids=str)
def test_batches_and_modes_in_turn(flags: dict[str, bool]) -> None:
    """H12, H13, H16: batches of 4 and 2, training and evaluation interleaved."""
    plain, net = small_lenet(), small_lenet().hybridize(**flags)
    images, _ = digits(6)
    for training, count in [(True, 4), (False, 4), (False, 2), (True, 2), (True, 4), (False, 6), (True, 6)]:
        plain.train(training)
        net.train(training)
        close(net(images[:count]), plain(images[:count]))
        assert (plain[4].generator.key.read().numpy() == net[4].generator.key.read().numpy()).all()
    assert net._compiled is not None and net._compiled.traces == 4, "a size and any, in both modes"


def test_training_through_a_hybrid_module() -> None:
    x, y = digits(6)
    losses = []
    for hybrid in (False, True):
        model = small_lenet().hybridize(hybrid)
        both = nn.value_and_grad(model, lambda x, y, model=model: nnc.cross_entropy(model(x), y))
        step = optim.make_step(both, optim.SGD(model.named_parameters(), 0.1), eager=True)
        losses.append([float(step(x, y)) for _ in range(3)])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_a_static_shape_is_refused_another() -> None:
    net = Net().hybridize(static_alloc=True, static_shape=True)
    net(nnc.asarray(HOST))
    with pytest.raises(ShapeError, match=r"static_shape=True(.|\n)*argument 0 `x`: float32\[4,2\] .*-> float32\[3,2\]"):
        net(nnc.ones((3, 2)))
    with pytest.raises(ValueError, match="static_shape"):
        net(nnc.ones((1, 4, 2)))
    close(net(nnc.asarray(HOST)), Net()(nnc.asarray(HOST)))
    assert len(net.runs) == 1
    with pytest.raises(AttributeValueError, match="needs static_alloc"):
        net.hybridize(static_shape=True)
    net.hybridize()
    close(net(nnc.ones((3, 2))), Net()(nnc.ones((3, 2))))


def test_static_memory_is_there_before_the_first_run() -> None:
    x = nnc.asarray(HOST)
    for static in (False, True):
        net = Net().hybridize(static_alloc=static)
        assert net._compiled is not None
        run = net._compiled.lower(x).program
        assert len(run._idle) == static
        net(x)
        net(x)
        assert len(run._idle) == 1, "calls one after another use the same"


def test_the_inline_limit_is_kept_and_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes steps of whole modules is asked with the module's limit."""
    from nnc_core.tracing import jit

    asked: list[Any] = []

    def hook(jitted: Any, args: Any, kwargs: Any) -> Any:
        asked.append((jitted.name, jitted.inline_limit))
        return args[0] * 0 if jitted.inline_limit == 0 else NotImplemented

    monkeypatch.setattr(jit, "call_hook", hook)
    net, x = Net().hybridize(inline_limit=7), nnc.asarray(HOST)
    close(nnc.jit(lambda x: net(x))(x), Net()(x))
    assert asked == [("Net.forward", 7), ("Linear.forward", 7), ("Linear.forward", 7)]
    asked.clear()
    assert nnc.jit(lambda x: x + 1)(x).shape == (4, 2) and not asked
    net.hybridize(static_alloc=True)
    assert nnc.jit(lambda x: net(x))(x).tolist() == (HOST * 0).tolist(), "what the hook gives is the result"
    assert asked == [("Net.forward", 0)], "a module with memory of its own is never written out"


def test_arguments_may_be_structures_and_none() -> None:
    """H01, H02: each structure is traced; numbers are part of the signature."""

    class Sum(nn.Module):
        def forward(self, x: Any, y: Any = None, scale: float = 1.0) -> Any:
            return x * scale if y is None else (x + y["a"][0]) * scale

    net = Sum().hybridize()
    x = nnc.asarray(HOST)
    for _ in range(2):
        assert net(x).tolist() == HOST.tolist()
        assert net(x, None).tolist() == HOST.tolist()
        assert net(x, {"a": [x]}).tolist() == (2 * HOST).tolist()
        assert net(x, y={"a": [x]}, scale=2.0).tolist() == (4 * HOST).tolist()
    assert net._compiled is not None and net._compiled.traces == 4


def test_errors_speak_of_the_module() -> None:
    class Branching(nn.Module):
        def forward(self, images: Any) -> Any:
            return images if images.sum() > 0 else -images

    with pytest.raises(TypeError, match=r"'\S*Branching.forward' is traced; it depends on argument `images`"):
        Branching().hybridize()(nnc.asarray(HOST))


def test_a_module_is_freed() -> None:
    """H21."""
    net = Net().hybridize()
    net(nnc.asarray(HOST))
    seen = weakref.ref(net), weakref.ref(net.first.weight)
    del net
    gc.collect()
    assert [r() for r in seen] == [None, None]
