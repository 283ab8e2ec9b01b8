"""When a node runs: now, on demand, or when its graph is called."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc


def test_eager_runs_now(x: nnc.Tensor) -> None:
    y = x + 1
    assert not y.is_deferred and not nnc.is_deferred_mode()
    assert y._value.array is not None and y._value.step is None, "eager keeps no history"


def test_deferred_computes_nothing_until_somebody_looks(x: nnc.Tensor) -> None:
    with nnc.deferred():
        assert nnc.is_deferred_mode()
        y = (x + 5) * (x + 5)
        z = nnc.sum(y)
    assert not nnc.is_deferred_mode()
    assert y.is_deferred and z.is_deferred
    assert z.item() == ((np.arange(6) + 5) ** 2).sum()
    assert not z.is_deferred and not y.is_deferred, "what was needed on the way is kept"


@pytest.mark.parametrize("look", [
    lambda y: y.numpy(), lambda y: np.asarray(y), lambda y: y.tolist(), lambda y: y.realize(), lambda y: y.wait(),
    lambda y: nnc.realize(y), lambda y: nnc.realize([y, y * 2]), lambda y: y[0, 0].item(), lambda y: bool(y[0, 1] > 0),
    lambda y: float(y[0, 1]), lambda y: int(y[0, 1]), lambda y: y + 1, lambda y: list(y), lambda y: y.to("strict:0"),
], ids=["numpy", "__array__", "tolist", "realize", "wait", "nnc.realize", "a list", "item", "bool", "float", "int",
        "an eager operator", "iteration", "to"])  # fmt: skip
def test_what_computes_a_deferred_tensor(x: nnc.Tensor, look: Callable[[nnc.Tensor], object]) -> None:
    with nnc.deferred():
        y = x * 2
    found = look(y)
    if isinstance(found, nnc.Tensor):
        found.numpy()
    np.testing.assert_array_equal(y.numpy(), np.arange(6).reshape(2, 3) * 2)
    assert not y.is_deferred


def test_shape_dtype_and_repr_compute_nothing(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = nnc.sum(x @ x.T, axis=0) > 3
    assert (y.shape, y.dtype, y.ndim, y.size, y.nbytes) == ((2,), nnc.bool, 1, 2, 2)
    assert "deferred" in repr(y) and "bool" in repr(y) and len(y) == 2
    assert y.is_deferred


def test_repr_of_a_value_shows_it(x: nnc.Tensor, device: str) -> None:
    assert "4." in repr(x) and "float32" in repr(x) and device in repr(x)


def test_deferred_and_eager_tensors_mix(x: nnc.Tensor) -> None:
    with nnc.deferred():
        lazy = x + 1
        looked = lazy.numpy()  # inside the context: allowed, and computes
        more = lazy * x
    eager = more - lazy
    assert not eager.is_deferred
    np.testing.assert_array_equal(eager.numpy(), looked * x.numpy() - looked)


def test_deferred_work_is_done_once(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = nnc.exp(x)
        z = y + y
    z.realize()
    array = y._value.array
    y.realize()
    assert y._value.array is array and array is not None


def test_the_mode_ends_with_its_block_also_after_an_error(x: nnc.Tensor) -> None:
    with pytest.raises(RuntimeError, match="of the user"), nnc.deferred(), nnc.no_grad():
        raise RuntimeError("of the user")
    assert not nnc.is_deferred_mode() and not (x + 1).is_deferred


def test_modes_nest(x: nnc.Tensor) -> None:
    with nnc.deferred():
        with nnc.deferred():
            assert (x + 1).is_deferred
        assert (x + 1).is_deferred


def test_threads_have_modes_of_their_own(x: nnc.Tensor, device: str) -> None:
    seen: dict[str, bool] = {}
    inside, done = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        seen["other"] = (x + 1).is_deferred
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with nnc.deferred():
        inside.set()
        assert done.wait(10)
        seen["this"] = (x + 1).is_deferred
    thread.join()
    assert seen == {"other": False, "this": True}


def test_coroutines_have_modes_of_their_own(x: nnc.Tensor) -> None:
    """B runs while A waits inside its context."""
    seen: dict[str, bool] = {}

    async def a(entered: asyncio.Event, leave: asyncio.Event) -> None:
        with nnc.deferred(), nnc.use_device("strict:0"):
            entered.set()
            await leave.wait()
            seen["a"] = nnc.is_deferred_mode()

    async def b(entered: asyncio.Event, leave: asyncio.Event) -> None:
        await entered.wait()
        seen["b"] = (x + 1).is_deferred
        leave.set()

    async def both() -> None:
        events = asyncio.Event(), asyncio.Event()
        await asyncio.gather(a(*events), b(*events))

    asyncio.run(both())
    assert seen == {"a": True, "b": False}


def test_a_deferred_tensor_may_be_computed_by_several_threads(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x
        for _ in range(50):
            y = nnc.tanh(y + 0.5)
    wanted: list[np.ndarray] = []
    threads = [threading.Thread(target=lambda: wanted.append(y.numpy())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(wanted) == 4 and all((w == wanted[0]).all() for w in wanted)


def test_config_eager_runs_compiled_graphs_one_by_one(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: nnc.sum(nnc.tanh(x) * 2, axis=1))
    wanted = f(x).numpy()
    with nnc.config.using(eager=True):
        np.testing.assert_array_equal(f(x).numpy(), wanted)


def test_settings_are_known_by_name() -> None:
    with pytest.raises(TypeError, match="deterministic"):
        nnc.config.fast = True
    with pytest.raises(nnc.Error), nnc.config.using(quick=True):
        pass
    with pytest.raises(nnc.Error):
        _ = nnc.config.speed
