"""The measured defects of MXNet's deferred compute and hybridize: each has a test, named for it, that ours has not."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DeferredInplaceError, LeakedTraceError
from tests.devices import devices
from tests.semantics.hybrid import RUNS, run_as
from tests.semantics.modes import hosts
from tests.semantics.networks import Factor, FlatCount, RunningNorm, generator, small_net
from tests.sizes import LONG, WHOLE, whole_or_quarter
from tests.support import numbers, same
from tests.tensors.faults import fails

X = numbers(4, 3)


# ---- values that Python looks at
def chooses(x: nnc.Tensor) -> nnc.Tensor:
    return x + 1 if nnc.sum(x).item() > 0 else x - 1


@pytest.mark.parametrize("ask", [
    lambda s: s.item() > 0, lambda s: s.numpy() > 0, lambda s: bool(s > 0), lambda s: float(s) > 0,
    lambda s: int(s) > 0, lambda s: s.tolist() > 0,
], ids=["item", "numpy", "bool", "float", "int", "tolist"])  # fmt: skip
def test_no_silent_wrong_branch(device: str, ask: Callable[[nnc.Tensor], Any]) -> None:
    """The parent bakes the branch of the first call in: [0, 0] instead of x - 1 for the negated input."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return x + 1 if ask(nnc.sum(x)) else x - 1

    x = nnc.asarray([1.0, 2.0])
    for compiled in (nnc.jit(f), nn.Lambda(f).hybridize()):
        for given in (x, -x):
            with pytest.raises(TypeError) as caught:
                compiled(given)
            assert type(caught.value).__name__ == "ConcretizationError"
            for said in ("test_defects.py", "argument", "try:"):
                assert said in str(caught.value)
    for given in (x, -x):
        assert recorded_or_computed(f, given) == f(given).tolist() == [[2.0, 3.0], [-2.0, -3.0]][given is not x]


def recorded_or_computed(f: Callable[..., nnc.Tensor], *args: nnc.Tensor) -> Any:
    """In plain deferred mode looking is allowed: it computes."""
    with nnc.deferred():
        y = f(*args)
        assert y.is_deferred
    return y.tolist()


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.JitWarning")  # what leaks is kept on purpose
def test_no_wrong_value_of_a_leaked_array(device: str) -> None:
    """The parent gives [16, 22] for [15, 21]: the buffer was used again."""
    kept: list[nnc.Tensor] = []

    def forward(x: nnc.Tensor) -> nnc.Tensor:
        kept[:] = [x * 2]
        return kept[0] + 1

    for how in ("hybridize", "jit"):
        f = run_as(how, nn.Lambda(forward))
        same(hosts(f(nnc.asarray([7.0, 10.0]))), [np.array([15, 21], np.float32)])
        for use in (lambda: kept[0] + 1, lambda: nnc.jit(lambda x: x + kept[0])(nnc.ones(2))):
            with pytest.raises(LeakedTraceError, match="outlived"):
                use()
        for look in (lambda: kept[0].numpy(), lambda: bool(kept[0][0] > 0), lambda: kept[0].realize()):
            with pytest.raises(nnc.Error):
                look()
        assert "test_defects.py" in kept[0].line


def test_no_lost_result_outside_a_deferred_block(device: str) -> None:
    """A lazy array may leave the block that recorded it: it is computed from what it was made of."""
    kept = []
    with nnc.deferred():
        x = nnc.asarray([7.0, 10.0])
        kept.append(x * 2)
        y = kept[-1] + 1
    same(hosts([y, kept[0]]), [np.array([15, 21], np.float32), np.array([14, 20], np.float32)])


# ---- depth and memory
def test_no_crash_of_a_deep_chain(device: str) -> None:
    """MXNet dies at 20,000 lazy additions, Owl at 100,000.  In `make test` the quickest goes beyond the first, others
    beyond what walks by recursion in Python."""
    length = (LONG if WHOLE else 20_001) if device == devices()[0] else whole_or_quarter(20_000) + 1
    x = nnc.asarray(0.0)
    with nnc.deferred():
        y = x
        for _ in range(length):
            y = y + 1
    inside = weakref.ref(y._value.inputs[0])
    assert y.item() == length
    del y
    gc.collect()
    assert inside() is None


def test_no_crash_of_a_deep_gradient(device: str) -> None:
    length = 20_001 if device == devices()[0] else 2_001
    v = nnc.variable(1.0)
    with nnc.deferred():
        y = v
        for _ in range(length):
            y = y * -1.0
    y.backward()
    assert v.grad is not None and v.grad.item() == -1.0


def test_no_history_kept_by_a_trace(device: str) -> None:
    """The parent's traces leaked their arrays until `dc.clear` was added."""
    net, watched = small_net(), []

    def forward(x: nnc.Tensor) -> nnc.Tensor:
        y = net(x)
        watched.append(weakref.ref(y._value))
        return y * 2

    for how in ("deferred", "hybridize", "jit"):
        f = run_as(how, nn.Lambda(forward))
        f(nnc.asarray(X))
        del f
        gc.collect()
        assert watched[-1]() is None, how
    assert len(watched) == 3


# ---- where the mode ends
def test_no_mode_leaking_into_a_coroutine(device: str) -> None:
    seen: dict[str, bool] = {}
    x = nnc.ones(2)

    async def a(inside: asyncio.Event, leave: asyncio.Event) -> None:
        with nnc.deferred():
            inside.set()
            await leave.wait()
            seen["a"] = (x + 1).is_deferred

    async def b(inside: asyncio.Event, leave: asyncio.Event) -> None:
        await inside.wait()
        seen["b"] = nnc.is_deferred_mode() or (x + 1).is_deferred
        leave.set()

    async def both() -> None:
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(a(*events), b(*events))

    asyncio.run(both())
    assert seen == {"a": True, "b": False}


def test_no_trace_leaking_into_a_coroutine(device: str) -> None:
    """While one coroutine is in the middle of a trace, another computes."""
    x = nnc.ones(2)

    async def run() -> tuple[list[float], bool]:
        loop, inside, leave = asyncio.get_running_loop(), threading.Event(), threading.Event()

        def waits(y: nnc.Tensor) -> nnc.Tensor:
            inside.set()
            assert leave.wait(10)
            return y * 2

        traced = loop.run_in_executor(None, lambda: nnc.jit(waits)(x).tolist())
        await loop.run_in_executor(None, inside.wait, 10)
        other = x + 1
        leave.set()
        return await traced, other.is_symbol or other.is_deferred

    assert asyncio.run(run()) == ([2.0, 2.0], False)


def test_no_mode_in_another_thread(device: str) -> None:
    seen: list[bool] = []
    with nnc.deferred():
        thread = threading.Thread(target=lambda: seen.append(nnc.is_deferred_mode()))
        thread.start()
        thread.join()
    assert seen == [False]


# ---- sizes
@pytest.mark.parametrize("how", RUNS)
def test_no_baked_reshape(device: str, how: str) -> None:
    """x.reshape((x.shape[0] * x.shape[1],)), then another shape: the parent cannot reshape [4,3] into [6]."""
    f = run_as(how, nn.Lambda(lambda x: nnc.reshape(x, (int(x.shape[0]) * int(x.shape[1]),)) * 2))
    for shape in ((2, 3), (4, 3), (2, 3), (1, 5)):
        host = numbers(*shape)
        same(hosts(f(nnc.asarray(host))), [host.reshape(-1) * 2])


@pytest.mark.parametrize("how", RUNS)
def test_no_baked_arange(device: str, how: str) -> None:
    """x + arange(x.shape[0]), then another shape: [4] against [2] in the parent."""
    f = run_as(how, nn.Lambda(lambda x: x + nnc.arange(x.shape[0], dtype=nnc.float32)))
    for n in (2, 4, 3, 2):
        same(hosts(f(nnc.zeros(n))), [np.arange(n, dtype=np.float32)])
    both = run_as(how, FlatCount())
    for shape in ((2, 3), (4, 3)):
        same(hosts(both(nnc.zeros(shape))), [np.arange(shape[0] * shape[1], dtype=np.float32)])


@pytest.mark.parametrize("how", RUNS)
def test_no_baked_open_slice(device: str, how: str) -> None:
    f = run_as(how, nn.Lambda(lambda x: x[:, 1:] - x[:, :-1]))
    for columns in (16, 8, 9):
        host = numbers(2, columns)
        same(hosts(f(nnc.asarray(host))), [host[:, 1:] - host[:, :-1]])


def test_no_baked_size_in_a_graph_with_named_dimensions(device: str) -> None:
    """A size that Python read is an error when the graph is to be used for others, never a wrong value."""
    x = nnc.ones((4, 3))
    with nnc.deferred():
        flat = nnc.reshape(x, (12,))
        counted = x + nnc.reshape(nnc.arange(4, dtype=nnc.float32), (4, 1))
        free = nnc.sum(x * 2, axis=1)
    for y in (flat, counted):
        with pytest.raises(ValueError):
            nnc.export({"x": x}, {"y": y}, named_dims={"x": ("n", None)})
    run = nnc.export({"x": x}, {"y": free}, named_dims={"x": ("n", None)}).compile(device)
    for n in (4, 2, 5):
        same(hosts(run(x=numbers(n, 3))["y"]), hosts(nnc.sum(nnc.asarray(numbers(n, 3)) * 2, axis=1)))


@pytest.mark.parametrize("how", ["hybridize", "jit"])
def test_no_trace_for_every_batch_size(device: str, how: str) -> None:
    """The parent's Python ran once over four calls with three batch sizes; ours once more, for the named dimension."""
    traces: list[Any] = []
    net = small_net()

    def forward(x: nnc.Tensor) -> nnc.Tensor:
        traces.append(x.shape)
        return net(x)

    f = run_as(how, nn.Lambda(forward))
    for n in (2, 3, 4, 2, 7):
        host = numbers(n, 3)
        same(hosts(f(nnc.asarray(host))), hosts(net(nnc.asarray(host))))
    assert len(traces) <= 2, traces


def test_no_value_computed_for_a_static_shape(device: str) -> None:
    """`static_shape` was promised by the RFC and never came."""
    x = nnc.asarray([1.0, 0.0, 2.0])
    with nnc.deferred():
        known, unknown = nnc.reshape(x * 2, (3, 1)), nnc.nonzero(x)[0] * 2
    assert known.static_shape == (3, 1) and unknown.static_shape == (None,)
    assert known.is_deferred and unknown.is_deferred
    assert unknown.shape == (2,), "asking for the shape computes"
    assert known.shape == (3, 1) and known.is_deferred, "but not where it is known"


# ---- errors and lines
def unfit(x: nnc.Tensor) -> nnc.Tensor:
    y = x * 2
    return y @ nnc.ones((3, 2))


@pytest.mark.parametrize("how", RUNS)
def test_no_error_without_the_users_line(device: str, how: str) -> None:
    """Whenever it happens: at the first call, and at a later one, where the parent says "operator node_4"."""
    f = run_as(how, nn.Lambda(unfit))
    with fails(ValueError, "in unfit", "float32[2,4]", operator="matmul"):
        f(nnc.ones((2, 4)))
    for _ in range(2):
        assert f(nnc.ones((2, 3))).shape == (2, 2)
        with pytest.raises(ValueError) as caught:
            f(nnc.ones((2, 4)))
        text = str(caught.value)
        assert "matmul" in text and "in unfit" in text and "test_defects.py" in text
        assert "unfit" in {frame.name for frame in traceback.extract_tb(caught.value.__traceback__)}


def test_no_lost_line_in_a_compiled_graph(device: str) -> None:
    """Each command of a compiled graph, first and later calls alike, knows the line that asked for it."""
    f = nnc.jit(lambda x: nnc.sum(nnc.exp(x) @ nnc.ones((3, 2)), axis=0))
    for n in (2, 4, 2):
        f(nnc.ones((n, 3)))
        commands = [line for line in f.lower(nnc.ones((n, 3))).explain().splitlines() if "matmul" in line]
        assert commands and all("test_defects.py" in line for line in commands)


def test_no_lost_line_of_an_error_at_run_time(device: str) -> None:
    """A host function that fails only in the third call of a compiled graph."""
    calls = iter(range(5))

    def look(y: np.ndarray) -> np.ndarray:
        if next(calls) == 2:
            raise RuntimeError("the third time")
        return y

    def through(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.callback(look, x.spec, x) * 2

    f, x = nnc.jit(through), nnc.asarray(X)
    for _ in range(2):
        same(hosts(f(x)), [X * 2])
    with pytest.raises(RuntimeError) as caught:
        f(x).numpy()
    text = str(caught.value)
    assert "the third time" in text and "test_defects.py" in text and "in through" in text
    same(hosts(f(x)), [X * 2])


def test_no_generic_error_for_an_in_place_change(device: str) -> None:
    outer = nnc.ones(3) * 2

    def add(x: nnc.Tensor) -> nnc.Tensor:
        x += 1
        return x

    def put(x: nnc.Tensor) -> nnc.Tensor:
        outer[0] = x[0]
        return x

    for change in (add, put):
        with pytest.raises(NotImplementedError) as caught:
            nnc.jit(change)(nnc.ones(3))
        assert isinstance(caught.value, DeferredInplaceError) and "test_defects.py" in str(caught.value)
        assert "try:" in str(caught.value)
    assert outer.tolist() == [2.0, 2.0, 2.0]


# ---- what a cached graph depends on
@pytest.mark.parametrize("how", RUNS)
def test_no_stale_attribute(device: str, how: str) -> None:
    """self.k changed after the trace: the parent goes on with the old value, silently."""
    net = Factor(2.0)
    outer = nn.Sequential(net, lambda x: x + 0.5)
    f, around = run_as(how, net), run_as(how, outer)
    for factor in (2.0, 3.0, 2.0, -0.0):
        net.factor = factor
        wanted = (X * np.float32(factor)).astype(np.float32)
        same(hosts(f(nnc.asarray(X))), [wanted])
        same(hosts(around(nnc.asarray(X))), [wanted + np.float32(0.5)])


@pytest.mark.parametrize("how", RUNS)
def test_no_refusal_of_an_array_as_a_plain_attribute(device: str, how: str) -> None:
    """ValueError in the parent.  Here it is read at each call."""
    net = Factor(2.0, nnc.asarray([1.0, 2.0, 3.0]))
    f, x = run_as(how, net), nnc.zeros((1, 3))
    assert f(x).tolist() == [[1.0, 2.0, 3.0]]
    assert net.offset is not None
    net.offset[0] = 5.0
    assert f(x).tolist() == [[5.0, 2.0, 3.0]]
    net.offset = nnc.asarray([7.0, 8.0, 9.0])
    assert f(x).tolist() == [[7.0, 8.0, 9.0]]
    net.offset = None
    assert f(x).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("how", RUNS)
def test_no_frozen_dtype(device: str, how: str) -> None:
    f = run_as(how, nn.Lambda(lambda x: x * 2 + 1))
    for dtype in (np.float32, np.int32, np.int64, np.float32, np.uint8):
        host = np.arange(4, dtype=dtype)
        same(hosts(f(nnc.asarray(host))), [(host * dtype(2) + dtype(1)).astype(dtype)])


@pytest.mark.parametrize("how", RUNS)
def test_no_dropout_mode_of_the_trace(device: str, how: str) -> None:
    """The mode of a call counts, not that of the trace; in MXNet so, in Owl's compiled inference dropout stays on."""
    net = nn.Sequential(nn.Dropout(0.5, generator(3)))
    f, x = run_as(how, net), nnc.ones(1000)
    zeros = []
    for training in (False, True, False, True, True, False):
        net.train(training)
        zeros.append(int((f(x).numpy() == 0).sum()))
    assert [z == 0 for z in zeros] == [True, False, True, False, False, True]
    assert all(400 < z < 600 for z in zeros if z) and len({z for z in zeros if z}) > 1, "and masks are drawn anew"


@pytest.mark.parametrize("how", RUNS)
def test_no_running_statistics_left_unchanged(device: str, how: str) -> None:
    """The parent moves them in `backward` only; here a forward call in training has moved them."""
    net, plain = RunningNorm(3), RunningNorm(3)
    f = run_as(how, net)
    for k, training in enumerate((True, False, True, True)):
        net.train(training)
        plain.train(training)
        before = net.mean.read().numpy()
        x = nnc.asarray(numbers(4, 3, seed=k))
        same(hosts(f(x)), hosts(plain(x)))
        found, wanted = net.state_dict(), plain.state_dict()
        same([found[name] for name in wanted], list(wanted.values()))
        assert (found["mean"] != before).any() == training


def test_no_captured_array_frozen(device: str) -> None:
    """A closed-over array is read at each call, also after it was changed in place."""
    w = nnc.asarray([1.0, 2.0, 3.0])
    f = nnc.jit(lambda x: x * w)
    assert f(nnc.ones(3)).tolist() == [1.0, 2.0, 3.0]
    w[1] = 20.0
    assert f(nnc.ones(3)).tolist() == [1.0, 20.0, 3.0]
