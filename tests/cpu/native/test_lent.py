"""What comes and goes is lent to a program: addresses alone, new arrays at each call included."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.values.cell import Cell
from nnc_cpu.program import NumpyProgram

KEPT = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def program() -> Any:
    """A compiled function of three arguments, all of whose commands are machine code, and its program."""
    with config.using(compile_at_once=True):
        f = nnc.jit(lambda x, y, z: nnc.tanh(x * y) + z)
        x = nnc.asarray(KEPT, device="cpu:0")
        f(x, x + 1, x - 1)
        run = f.lower(x, x + 1, x - 1).program
        f(x, x + 1, x - 1)
        yield f, run._idle[-1]


def called(f: Any, *hosts: Any) -> None:
    tensors = [nnc.asarray(h, device="cpu:0") for h in hosts]
    np.testing.assert_allclose(f(*tensors).numpy(), np.tanh(hosts[0] * hosts[1]) + hosts[2], rtol=1e-6)


def test_nothing_is_bound(program: tuple[Any, NumpyProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    f, of = program
    bound: list[int] = []
    monkeypatch.setattr(NumpyProgram, "bind", lambda self, slot, buffer: bound.append(slot))
    called(f, KEPT + 2, KEPT - 2, KEPT)
    lent = of._lent
    assert lent is not None and len(lent.slots) == 4, "three arguments and a result"
    assert not bound


def test_objects_that_begin_otherwise_are_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of builds without the lock are: machine code would not find their class."""
    monkeypatch.setattr("nnc_cpu.native.way.KNOWN", False)
    with config.using(compile_at_once=True):
        f = nnc.jit(lambda x, y, z: nnc.tanh(x * y) + z)
        for k in range(4):
            called(f, KEPT + k, KEPT - 2, KEPT)
        run = f.lower(*[nnc.asarray(KEPT, device="cpu:0")] * 3).program
        assert run is not None and all(kept._lent is None for kept in run._idle)


def test_any_order_in_memory(program: tuple[Any, NumpyProgram]) -> None:
    f, _ = program
    x, y, z = nnc.asarray(KEPT), nnc.asarray(KEPT.T.copy()).T, nnc.flip(nnc.asarray(KEPT), 0)
    row = nnc.broadcast_to(nnc.asarray(KEPT[:1]), (3, 4))
    for given in ((x, y, z), (y, row, y), (row, z, x)):
        hosts = [t.numpy() for t in given]
        np.testing.assert_allclose(f(*given).numpy(), np.tanh(hosts[0] * hosts[1]) + hosts[2], rtol=1e-6)


def test_numbers_of_numpy() -> None:
    with config.using(compile_at_once=True):
        f = nnc.jit(lambda x, y: x * y + 1)
        for k in range(4):
            x = nnc.asarray(KEPT + k)
            assert float(f(nnc.sum(x), nnc.max(x))) == pytest.approx((KEPT + k).sum() * (KEPT + k).max() + 1)


def test_looking_on_between_calls(program: tuple[Any, NumpyProgram]) -> None:
    f, of = program
    for k in range(3):
        called(f, KEPT + k, KEPT, KEPT - k)
        with config.using(check_nan="nan"):
            called(f, KEPT - k, KEPT, KEPT)
        assert of._lent is None
        f.profile(*[nnc.asarray(KEPT)] * 3, repeats=1)
        called(f, KEPT * k, KEPT, KEPT)
        assert of._lent is not None


def test_what_is_lent_is_not_kept(program: tuple[Any, NumpyProgram]) -> None:
    f, _ = program
    x = nnc.asarray(KEPT + 1)
    alive = weakref.ref(x._value.array)
    f(x, nnc.asarray(KEPT), nnc.asarray(KEPT))
    del x
    gc.collect()
    assert alive() is None


def test_an_argument_that_is_a_result_too() -> None:
    with config.using(compile_at_once=True):
        f = nnc.jit(lambda x, y: (nnc.reshape(x, (-1,)), x * y))
        for k in range(3):
            x = nnc.asarray(KEPT + k)
            same, product = f(x, nnc.asarray(KEPT))
            np.testing.assert_array_equal(same.numpy(), (KEPT + k).reshape(-1))
            np.testing.assert_array_equal(product.numpy(), (KEPT + k) * KEPT)


def test_what_is_overwritten_is_bound_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell has the same memory after each step, of the pool or not, and former values that were read out stay."""
    first = np.arange(10_000, dtype=np.float32).reshape(100, 100)  # large enough for the pool
    with config.using(compile_at_once=True):
        cells = [Cell(nnc.asarray(first)), Cell(nnc.asarray(first.T.copy()).T)]

        @nnc.jit
        def step(x: nnc.Tensor) -> nnc.Tensor:
            for cell in cells:
                cell.write(cell.read() * 0.5 + x)
            return nnc.sum(x)

        expected = first
        for k in range(4):
            x = first - k
            if k == 3:
                monkeypatch.setattr(NumpyProgram, "bind", lambda *_: pytest.fail("bound"))
            held = cells[0].read() if k == 2 else None
            before = [cell.lend().array.ctypes.data for cell in cells]  # type: ignore[union-attr]
            step(nnc.asarray(x))
            after = [cell.lend().array.ctypes.data for cell in cells]  # type: ignore[union-attr]
            assert held is None or np.array_equal(held.numpy(), expected)
            expected = expected * np.float32(0.5) + x
            for cell in cells:
                np.testing.assert_array_equal(cell.read().numpy(), expected)
            assert (before[0] == after[0]) == (held is None) and (k == 0 or before[1] == after[1])


def test_donated_arguments_and_their_results() -> None:
    with config.using(compile_at_once=True):
        f = nnc.jit(lambda x, y: (x * y, nnc.reshape(y + 1, (-1,)), y[:0]), donate_argnums=(0, 1))
        for k in range(4):
            row = nnc.broadcast_to(nnc.asarray(KEPT[:1]), (3, 4)) if k == 2 else nnc.asarray(KEPT + k)
            hosts = row.numpy().copy(), KEPT.T.copy().T if k == 3 else KEPT.copy()
            product, more, nothing = f(row, nnc.asarray(hosts[1].copy("K"), copy=True))
            np.testing.assert_array_equal(product.numpy(), hosts[0] * hosts[1])
            np.testing.assert_array_equal(more.numpy(), (hosts[1] + 1).reshape(-1))
            assert nothing.shape == (0, 4)


def test_numbers_in_cells() -> None:
    """What NumPy gives for a sum of all is no array: its place is taken by one."""
    with config.using(compile_at_once=True):
        cell = Cell(nnc.sum(nnc.asarray(KEPT)))
        step = nnc.jit(lambda x: cell.write(cell.read() + x) or cell.read() * 2)
        for k in range(4):
            assert float(step(nnc.max(nnc.asarray(KEPT)))) == 2 * (KEPT.sum() + 11 * (k + 1))
            assert cell.read().shape == ()
