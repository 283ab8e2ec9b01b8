"""Calls bind what is new to them alone, and results keep their values for as long as somebody sees them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.dtype import float32
from nnc_core.base.errors import DeviceMemoryError, ExecutionError
from nnc_core.device import Device, PythonProgram
from nnc_core.values.modes import current_stack
from tests.support import at_once

DEVICES = ("cpu:0", "strict:0", "strict-async:0", "strict-poison:0", "strict-noviews:0")
HOST = np.arange(64, dtype=np.float32)


def chained(x: Any) -> Any:
    y = x
    for _ in range(6):
        y = nnc.tanh(y + x) * 2
    return y


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """With the kernels that stay: going over to machine code binds anew, whenever that pays."""
    with nnc.use_device(request.param), nnc.config.using(compile_at_once=True):
        yield current_stack().device


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the calls whose arguments are set."""
    gc.collect()  # memory of earlier tests that comes back in between would be new to the programs
    found: list[int] = []
    original = PythonProgram.bound

    def counted(self: PythonProgram, n: int) -> Any:
        found.append(n)
        return original(self, n)

    monkeypatch.setattr(PythonProgram, "bound", counted)
    return found


def scanned(xs: Any) -> Any:
    return nnc.scan(lambda c, x: (nnc.tanh(c + x), c * x), xs[0], xs)[1]


CALLS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "commands": (chained, (64,)), "loop": (scanned, (8, 64)),
    "loops in a gradient": (nnc.grad(lambda xs: nnc.sum(scanned(xs) ** 2)), (8, 64)),
    "branch": (lambda x: nnc.cond(nnc.sum(x) > 0, chained, lambda x: nnc.exp(x) * 2, x), (64,)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_calls_in_a_loop_bind_nothing_in_the_end(device: Device, bound: list[int], name: str) -> None:
    """The result of a call is there until the next has made its own, as in training."""
    f, shape = CALLS[name]
    compiled, x = nnc.jit(f), nnc.asarray(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    y = None
    for _ in range(4):
        y = compiled(x)
    bound.clear()
    for _ in range(4):
        y = compiled(x)
    assert not bound and y is not None
    np.testing.assert_allclose(y.numpy(), f(x).numpy(), rtol=1e-4)


def test_new_inputs_in_a_loop_bind_nothing_in_the_end(device: Device, bound: list[int]) -> None:
    """Batches come from the pool too, as their predecessors go.  A block that comes back late, from the collector or
    another thread, takes its turn once more: then a few are bound again."""
    gc.collect()
    device.trim()  # blocks of other tests: with more of them than sets of buffers are kept, there is always a new one
    compiled, counts = nnc.jit(chained), list[int]()
    for k in range(40):
        bound.clear()
        x = nnc.asarray(HOST / 64 + k)
        y = compiled(x)
        counts.append(len(bound))
        np.testing.assert_allclose(y.numpy(), chained(x).numpy(), rtol=1e-5)
    assert any(not any(counts[k : k + 8]) for k in range(8, 33)), counts


def test_only_commands_that_see_a_new_array_are_bound(bound: list[int]) -> None:
    """From Python: a program in machine code has nothing to bind.  The results of eager code are new each time."""
    with nnc.use_device("strict:0"):
        compiled = nnc.jit(lambda x, w: nnc.sum(nnc.exp(w) * nnc.tanh(w * w)) + nnc.sum(x))
        w, held = nnc.asarray(HOST), []
        for k in range(4):
            x = nnc.asarray(HOST) + k
            held.append(x)  # so that none takes the memory of another
            bound.clear()
            compiled(x, w)
        assert 0 < len(bound) < len(compiled.lower(x, w).program.records)
        bound.clear()
        compiled(x, w)
        compiled(x, w)
        assert not bound, "the same arrays are bound already"


def test_a_cell_is_updated_without_binding(device: Device, bound: list[int]) -> None:
    cell = nnc.Cell(nnc.zeros(64))

    @nnc.jit
    def step(x: nnc.Tensor) -> nnc.Tensor:
        cell.write(cell.read() + x)
        return nnc.sum(cell.read())

    x = nnc.asarray(HOST)
    for _ in range(4):
        total = step(x)
    bound.clear()
    for _ in range(4):
        total = step(x)
    assert not bound
    assert float(total) == 8 * HOST.sum() and cell.read().tolist() == (8 * HOST).tolist()


# ---- what is seen keeps its value


@pytest.mark.parametrize("name", ["cpu:0", "strict:0", "strict-async:0", "strict-poison:0"])
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["call", "eager", "drop", "view", "trim"])), max_size=25))
def test_results_that_are_kept_never_change(name: str, actions: list[tuple[int, str]]) -> None:
    """Calls, eager operations, views and new arrays in any order, with a few results kept."""
    with nnc.use_device(name):
        held: list[tuple[nnc.Tensor, np.ndarray[Any, Any]]] = []
        for number, action in actions:
            x = nnc.asarray(HOST + number)
            if action == "call":
                held.append((DOUBLED(x), 2 * (HOST + number)))
            elif action == "eager":
                held.append((x * 3, 3 * (HOST + number)))
            elif action == "view":
                held.append((DOUBLED(x)[3:9], 2 * (HOST + number)[3:9]))
            elif action == "trim":
                current_stack().device.trim()
            elif held:
                held.pop(number % len(held))
            for y, wanted in held:
                np.testing.assert_array_equal(y.numpy(), wanted)


DOUBLED = nnc.jit(lambda x: x * 2)


EXPORTS: dict[str, Callable[[nnc.Tensor], Any]] = {
    "numpy": lambda y: y.numpy(), "shared": np.from_dlpack, "view of shared": lambda y: np.from_dlpack(y)[1:],
    "memoryview": lambda y: memoryview(np.from_dlpack(y)), "tensor of tensor": lambda y: nnc.from_dlpack(y)[2:],
    "array protocol": np.asarray,
}  # fmt: skip


@pytest.mark.parametrize("how", EXPORTS)
def test_what_others_see_keeps_its_value(how: str) -> None:
    with nnc.use_device("cpu:0"):
        wanted = np.asarray(EXPORTS[how](nnc.asarray(HOST * 2))).copy()
        seen = EXPORTS[how](DOUBLED(nnc.asarray(HOST)))
        gc.collect()
        later = [DOUBLED(nnc.asarray(HOST + k)) for k in range(1, 6)]
        np.testing.assert_array_equal(np.asarray(seen), wanted)
        assert len({y._value.array.ctypes.data for y in later}) == len(later)


def test_a_deferred_value_and_its_operands_keep_their_memory(device: Device) -> None:
    with nnc.deferred():
        y = nnc.asarray(HOST) * 2
        z = DOUBLED(nnc.asarray(HOST)) + y
    for k in range(5):
        DOUBLED(nnc.asarray(HOST + k))
    assert z.tolist() == (4 * HOST).tolist() and y.tolist() == (2 * HOST).tolist()


def test_a_tape_keeps_the_memory_of_its_values(device: Device) -> None:
    v = nnc.variable(HOST / 64)
    loss = nnc.sum(nnc.exp(v) * nnc.tanh(v))
    for k in range(5):
        DOUBLED(nnc.asarray(HOST + k))
    loss.backward()
    wanted = nnc.grad(lambda x: nnc.sum(nnc.exp(x) * nnc.tanh(x)))(nnc.asarray(HOST / 64))
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), wanted.numpy(), rtol=1e-5)


@pytest.mark.parametrize("limit", [1.0, 30.0])
def test_tapes_of_loops_that_stop_by_themselves_keep_their_rows(device: Device, limit: float) -> None:
    """Gradients of while loops: rows are pushed at each call, and read by another graph."""
    def total(x: nnc.Tensor) -> nnc.Tensor:
        (y,) = nnc.while_loop(lambda y: nnc.sum(y) < limit, lambda y: (y * 1.5 + 0.25,), (x,))
        return nnc.sum(y)

    compiled = nnc.jit(nnc.value_and_grad(total))
    kept = []
    for k in (1, 2, 1, 3, 1):
        x = nnc.asarray(np.full(4, k / 8, np.float32))
        kept.append((compiled(x), nnc.value_and_grad(total)(x)))
    for found, wanted in kept:
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)


def test_donated_arguments_give_their_memory_to_results_alone(device: Device) -> None:
    compiled = nnc.jit(lambda p, g: p - g, donate_argnums=0)
    g, p = nnc.asarray(np.ones(64, np.float32)), nnc.asarray(HOST)
    kept = []
    for k in range(6):
        p = compiled(p, g)
        kept.append((p * 1, HOST - k - 1))
        if k == 3:
            seen = p + 0
            p = nnc.asarray(seen)
    for found, wanted in kept:
        np.testing.assert_array_equal(found.numpy(), wanted)


def test_a_result_of_compiled_code_is_donated_without_a_copy() -> None:
    """A program that waits for its next call does not see it; small ones, which may lie in memory of NumPy's own, are
    copied once."""
    with nnc.use_device("cpu:0"):
        f = nnc.jit(lambda p, g: p - g, donate_argnums=0)
        g, p = nnc.ones(4096), DOUBLED(nnc.ones(4096))
        at = p._value.array.ctypes.data
        for _ in range(3):
            p = f(p, g)
            assert p._value.array.ctypes.data == at


# ---- failures, threads, memory


def test_a_call_that_fails_takes_no_memory_and_spoils_none(device: Device) -> None:
    failing = [True]

    def maybe(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if failing[0]:
            raise RuntimeError("not now")
        return x

    compiled = nnc.jit(lambda x: nnc.callback(maybe, nnc.TensorSpec((64,), float32), nnc.exp(x / 64)) * 2)
    x = nnc.asarray(HOST)
    kept = DOUBLED(x)
    for _ in range(2):
        with pytest.raises(ExecutionError, match="not now"):
            compiled(x)
    gc.collect()
    used = device.memory_info().used
    with pytest.raises(ExecutionError, match="not now"):
        compiled(x)
    gc.collect()
    assert device.memory_info().used <= used
    failing[0] = False
    np.testing.assert_allclose(compiled(x).numpy(), 2 * np.exp(HOST / 64), rtol=1e-5)
    assert kept.tolist() == (2 * HOST).tolist()


def test_threads_share_a_compiled_function(device: Device) -> None:
    wrong: list[int] = []
    compiled = nnc.jit(chained)
    wanted = [chained(nnc.asarray(HOST / 64 + k)).numpy() for k in range(4)]

    def work(k: int) -> None:
        with nnc.use_device(device.spec.id):
            kept = []
            for round in range(12):
                kept.append(compiled(nnc.asarray(HOST / 64 + k)))
                if round % 5 == 4:
                    device.trim()
                wrong.extend([k for y in kept[-3:] if not np.allclose(y.numpy(), wanted[k], rtol=1e-5)])

    at_once(work, range(4))
    assert not wrong


def test_trim_gives_back_what_programs_have_bound(device: Device) -> None:
    compiled, x = nnc.jit(chained), nnc.asarray(HOST)
    for _ in range(3):
        compiled(x)
    device.default_stream.synchronize()
    gc.collect()
    assert device.trim() > 0
    assert device.memory_info().pooled == 0
    driver = device.driver_memory()
    if device.spec.kind == "strict":
        assert driver is not None and driver[1] - driver[0] == device.memory_info().used, "nobody holds it in secret"
    np.testing.assert_allclose(compiled(x).numpy(), chained(x).numpy(), rtol=1e-5)


def test_a_program_that_runs_while_memory_is_trimmed_forgets_it_afterwards() -> None:
    """Trimmed within a call, by the host function that it calls."""
    with nnc.use_device("strict:0"):
        device = current_stack().device

        def trimming(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
            device.trim()
            return x

        compiled = nnc.jit(lambda x: nnc.callback(trimming, nnc.TensorSpec((64,), float32), x * 2) + 1)
        for k in range(6):
            assert compiled(nnc.asarray(HOST + k)).tolist() == (2 * (HOST + k) + 1).tolist()
        gc.collect()
        device.trim()
        driver = device.driver_memory()
        assert driver is not None and driver[1] - driver[0] == device.memory_info().used


def test_large_arrays_are_not_pooled() -> None:
    with nnc.use_device("strict-small:0"):
        device = current_stack().device
        device.trim()
        before = device.memory_info()
        assert device.pool_limit == device.spec.memory // 16
        held = [device.allocate(1 << 20) for _ in range(8)]
        assert device.memory_info().used == before.used + (8 << 20)
        held.clear()
        after = device.memory_info()
        assert after.used == before.used and after.pooled <= device.pool_limit


def test_several_blocks_are_claimed_at_once() -> None:
    """Those that are idle; further ones are reserved, and none gets lost where that fails."""
    with nnc.use_device("strict-small:0"):
        device = current_stack().device
        device.trim()
        before, pool = device.memory_info().used, device.pool
        held = pool.claim_each(device, [64, 128, 64, 0])
        assert len(held) == 4 and len({id(pool.block_of(x)) for x in held[:3]}) == 3
        assert device.memory_info().used == before + 256
        blocks = {id(pool.block_of(x)) for x in held[:3]}
        held.clear()
        again = pool.claim_each(device, [128, 64, 64])
        assert {id(pool.block_of(x)) for x in again} == blocks and device.memory_info().used == before + 256
        again.clear()
        with pytest.raises(DeviceMemoryError):
            pool.claim_each(device, [64, device.spec.memory * 2, 128])
        info = device.memory_info()
        assert info.used == before and pool.claim_each(device, [64, 128])
