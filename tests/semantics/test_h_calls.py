"""H04-H18 and H21: how calls of hybridized blocks are recorded, kept and looked into: as in eager code, to the bit."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.io import load_graph, save_graph
from nnc_core.symbol import postorder
from nnc_core.values.value import Value
from tests.devices import another
from tests.semantics.hybrid import (
    FLAGS,
    HYBRID_MODES,
    Call,
    agree,
    eagerly,
    runner,
    same_names,
)
from tests.semantics.modes import hosts, tensors
from tests.semantics.networks import (
    Identity,
    LabelsToo,
    RunningNorm,
    Sum,
    generator,
    small_net,
)
from tests.support import numbers, same

MODES = HYBRID_MODES
X, OTHER = numbers(4, 3), numbers(4, 3, seed=1)


# ---- files
def test_h04_a_module_through_a_file(device: str, mode: str, tmp_path: Path) -> None:
    net, x = small_net(), nnc.asarray(X)
    net.hybridize()
    wanted = runner(mode, net)(x)["result 0"]
    weights = {name: p.read() for name, p in net.named_parameters().items()}
    with nnc.deferred():
        y = net(x)
    graph = nnc.export({"x": x, **weights}, {"y": y})
    assert graph.list_inputs() == ["x", *net.named_parameters()] and graph.list_outputs() == ["y"]
    save_graph(graph, tmp_path / "net.nnc")
    loaded = load_graph(tmp_path / "net.nnc", nnc.stack_for(device).operator)
    assert str(loaded) == str(graph)
    same(hosts(loaded.compile(device)(x=x, **weights)), [wanted])


def test_h05_a_part_that_is_added_or_replaced(device: str, mode: str) -> None:
    x, nets = nnc.asarray(X), [small_net(), small_net()]
    nets[1].hybridize()
    run = runner(mode, nets[1])

    def compare() -> None:
        same_names(run(x), eagerly(nets[0], x))

    compare()
    for net in nets:
        net.append(nn.Linear(2, 5, generator=generator(7)))
    compare()
    for net in nets:
        setattr(net, "0", nn.Linear(3, 4, generator=generator(8)))
    compare()
    for net in nets:
        setattr(net, "1", nn.Lambda(nnc.exp))
    compare()
    for net in nets:
        net[0].bias = None
    compare()


def test_h06_weights_loaded_before_the_first_call(device: str, mode: str) -> None:
    """Sizes are known when a layer is made, so that a state can be loaded before anything was called."""

    def images(seed: int) -> nn.Module:
        g = generator(seed)
        return nn.Sequential(nn.Conv2d(4, 3, 3, generator=g), RunningNorm(3), nn.ReLU(), nn.Flatten(),
                             nn.Linear(60, 2, generator=g))

    trained = images(1)
    x = nnc.asarray(numbers(2, 6, 7, 4))
    trained(x)
    state = trained.state_dict()
    net = images(2)
    net.hybridize()
    net.load_state_dict(state)
    same_names(runner(mode, net)(x), eagerly(trained, x))
    net.load_state_dict(state)  # and after one
    trained.load_state_dict(state)
    same_names(runner(mode, net)(x), eagerly(trained, x))


def test_h07_another_dtype_after_a_call(device: str, mode: str) -> None:
    wide = nnc.float64 if nnc.float64 in nnc.stack_for(device).device.spec.dtypes else nnc.float16

    def cast(net: nn.Module) -> None:
        for layer in (net[0], net[2]):
            layer.weight = nn.Parameter(layer.weight.read().astype(wide))
            layer.bias = nn.Parameter(layer.bias.read().astype(wide))

    nets = [small_net(), small_net()]
    nets[1].hybridize()
    run = runner(mode, nets[1])
    x = nnc.asarray(X)
    same_names(run(x), eagerly(nets[0], x))
    for net in nets:
        cast(net)
    x = x.astype(wide)
    found = run(x)
    assert {a.dtype for a in found.values()} == {wide}
    same_names(found, eagerly(nets[0], x))


# ---- how a call is recorded
def three_steps() -> nn.Module:
    return nn.Sequential(lambda x: nnc.exp(x), lambda x: nnc.sin(x), lambda x: nnc.tanh(x))


@pytest.mark.parametrize("limit", [0, 3])
def test_h08_a_short_function_is_written_out_a_longer_one_is_one_step(device: str, mode: str, limit: int) -> None:
    agree(mode, three_steps, Call((X,)), Call((X,)), inline_limit=limit)
    net = three_steps()
    net.hybridize(inline_limit=limit)
    v = nnc.variable(X)
    with nnc.config.using(deterministic=False):  # where the gradient of one step may be rounded in another way
        steps = {u.op.name for u in postorder([net(v)._value]) if u.step is not None}
    assert ({"exp", "sin", "tanh"} <= steps) == (limit == 3), steps
    assert steps & {"exp", "sin", "tanh"} == set() or limit == 3, steps


def test_h09_gradients_add_up(device: str, mode: str) -> None:
    """grad_req="add" of the parent is what `backward` always does."""
    plain, net = small_net(), small_net()
    net.hybridize()
    wanted, v = nnc.variable(X), nnc.variable(X)
    f = {"jit": lambda: nnc.jit(net), "hybridize": lambda: net}.get(mode, lambda: net)()
    for k in (1, 2):
        for net_, leaf in ((plain, wanted), (f, v)):
            if mode in ("deferred", "symbolic"):
                with nnc.deferred():
                    loss = nnc.sum(net_(leaf) ** 2)
            else:
                loss = nnc.sum(net_(leaf) ** 2)
            loss.backward()
        assert v.grad is not None and wanted.grad is not None
        same([v.grad.numpy()], [wanted.grad.numpy()])
        once = nnc.grad(lambda x: nnc.sum(plain(x) ** 2))(nnc.asarray(X))
        same([v.grad.numpy()], [(once if k == 1 else once + once).numpy()])


def test_h10_parameters_on_two_devices(device: str, mode: str) -> None:
    """A module runs where its parameters are; moved, its calls are compiled for the other device."""
    plain, net = small_net(), small_net()
    net.hybridize()
    run = runner(mode, net)
    for place in (device, another(device), device):
        x = nnc.asarray(X, device=place)
        for m in (plain, net):
            m.to(place)
        with nnc.use_device(place):
            same_names(run(x), eagerly(plain, x))
            assert all(y.device.id == place for y in tensors(net(x)))


# ---- memory
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_h11_two_live_calls_of_one_graph(device: str, mode: str, flags: dict[str, bool]) -> None:
    """net(x) + net(x) in one history: the second call must not take the memory of the first."""
    shared = small_net

    def make() -> nn.Module:
        net = shared()
        net.hybridize(**flags)
        return Sum(net, net)

    plain = small_net()
    run = runner(mode, make())
    for host in (X, OTHER, X):
        x = nnc.asarray(host)
        same_names(run(x), eagerly(Sum(plain, plain), x))
    net = small_net()
    net.hybridize(**flags)
    first, second = net(nnc.asarray(X)), net(nnc.asarray(OTHER))
    same(hosts([first, second]), hosts([plain(nnc.asarray(X)), plain(nnc.asarray(OTHER))]))


@pytest.mark.parametrize("flags", FLAGS[:2], ids=str)
def test_h12_batches_of_two_sizes_in_training_and_evaluation(device: str, mode: str, flags: dict[str, bool]) -> None:
    """Not with static_shape, which promises one size."""
    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4, generator=generator(1)), RunningNorm(4), nn.Dropout(0.3, generator(2)),
                             nn.Linear(4, 2, generator=generator(3)))

    calls = [Call((X[:n],), training) for n, training in ((4, False), (2, False), (4, True), (2, True), (4, False),
                                                          (2, True), (4, True), (2, False))]
    agree(mode, make, *calls, **flags)


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_h13_a_recorded_call_then_one_that_is_not(device: str, mode: str, flags: dict[str, bool]) -> None:
    net, plain = small_net(), small_net()
    net.hybridize(**flags)
    run = runner(mode, net)
    v, wanted = nnc.variable(X), nnc.variable(X)
    loss = nnc.sum(net(v) ** 2)
    with nnc.no_grad():
        found = net(nnc.asarray(OTHER))
        assert not found.requires_grad
    same_names(run(nnc.asarray(OTHER)), eagerly(plain, nnc.asarray(OTHER)))
    loss.backward()
    nnc.sum(plain(wanted) ** 2).backward()
    assert v.grad is not None and wanted.grad is not None
    same([found.numpy(), v.grad.numpy()], [plain(nnc.asarray(OTHER)).numpy(), wanted.grad.numpy()])


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_h14_a_result_that_is_the_input(device: str, mode: str, flags: dict[str, bool]) -> None:
    """The gradient is the cotangent itself; neither shares memory that somebody may write to."""
    agree(mode, Identity, *[Call((X,))] * 5, **flags)
    net = Identity()
    net.hybridize(**flags)
    x = nnc.asarray(X)
    for _ in range(5):
        y = net(x)
        y[...] = -1
        same(hosts(x), [X])
    agree(mode, lambda: nn.Sequential(Identity(), Identity()), Call((X,)), **flags)


def test_h15_an_integer_input_that_is_an_output(device: str, mode: str) -> None:
    labels = np.array([0, 4, 4, 2])
    agree(mode, LabelsToo, Call((labels,)), Call((labels[:2],)), Call((labels,)))


def test_h16_training_evaluation_training(device: str, mode: str) -> None:
    """Train on x, train on another, evaluate, train on x: the gradient is that of the first time."""

    def make() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 4, generator=generator(1)), RunningNorm(4), nn.Linear(4, 2))

    nnc.manual_seed(5)
    net = make()
    net.hybridize()
    run = runner(mode, net)
    first, _, evaluated, last = (run(nnc.asarray(host)) for host, training in (
        (X, True), (OTHER, True), (X, False), (X, True)) if net.train(training))
    by = [name for name in first if name.startswith("by ")]
    same_names({name: last[name] for name in by}, {name: first[name] for name in by})
    assert any(evaluated[name].tobytes() != first[name].tobytes() for name in by)

    def seeded() -> nn.Module:
        nnc.manual_seed(5)
        return make()

    agree(mode, seeded, Call((X,)), Call((OTHER,)), Call((X,), False), Call((X,)))


# ---- looking inside
@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_h17_a_hook_sees_every_call(device: str, mode: str, flags: dict[str, bool]) -> None:
    """The parent hooks operators of a compiled graph by name; here a host function is a node of the graph."""
    seen: list[np.ndarray] = []

    def look(y: np.ndarray) -> np.ndarray:
        seen.append(np.array(y))
        return y

    def forward(x: nnc.Tensor) -> nnc.Tensor:
        y = nnc.tanh(x)
        return nnc.callback(look, y.spec, y) * 2

    net = nn.Lambda(forward)
    net.hybridize(**flags)
    x = nnc.asarray(X)
    wanted = nnc.tanh(x).numpy()
    f = nnc.jit(net) if mode == "jit" else net
    for k in (1, 2, 3):
        if mode in ("deferred", "symbolic"):
            with nnc.deferred():
                y = f(x)
            assert len(seen) == k - 1, "nothing was computed yet"
        else:
            y = f(x)
        if mode == "symbolic":
            y = nnc.export({"x": x}, {"y": y}).compile(device)(x=x)["y"]
        same(hosts(y), [wanted * 2])
        assert len(seen) == k
        same(seen[-1:], [wanted])


def test_h18_text_of_a_hybridized_module(device: str, mode: str) -> None:
    """The parent's summary fails on a hybridized block."""
    net, plain = small_net(), small_net()
    before = net.summary(), repr(net)
    net.hybridize()
    runner(mode, net)(nnc.asarray(X))
    assert (net.summary(), repr(net)) == before == (plain.summary(), repr(plain))
    assert "26" in before[0], "parameters are counted"


def live_values() -> int:
    gc.collect()
    return sum(isinstance(x, Value) for x in gc.get_objects())


def test_h21_no_memory_leak(device: str, mode: str) -> None:
    x = nnc.asarray(X)

    def once() -> list[Any]:
        net = nn.Sequential(small_net(), RunningNorm(2), nn.Dropout(0.3, generator(1)))
        net.hybridize()
        run = runner(mode, net)
        run(x), run(x)
        y = net(x)
        watched = [y._value, *[p.read()._value for p in net.parameters()], *net.cells().values()]
        return [weakref.ref(v) for v in watched]

    once()
    before = live_values()
    for _ in range(2):
        watched = once()
        assert live_values() <= before
        assert [ref() for ref in watched] == [None] * len(watched)
