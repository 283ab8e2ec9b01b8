"""Arguments that a program only reads are lent to it: addresses alone, new arrays at each call included."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
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
    assert lent is not None and len(lent.slots) == 3
    assert not set(bound) & set(lent.slots)


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
