"""Donated arguments: their memory is taken over where nobody can see it, and they are gone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DeviceMemoryError, DonatedError
from nnc_core.tracing.donation import array_to_overwrite
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def made(device: str) -> nnc.Tensor:
    """A tensor that nobody else knows."""
    return nnc.asarray(HOST, device=device)


def update(p: Any, g: Any) -> Any:
    return p * 2 + g


def test_a_donated_argument_is_gone(x: nnc.Tensor) -> None:
    f = nnc.jit(update, donate_argnums=0)
    g = x + 1
    for _ in range(2):
        p = made(x.device.id)
        assert f(p, g).tolist() == (HOST * 3 + 1).tolist()
        with fails(DonatedError, "`p`", "'update'", "test_jit_donation.py", operator="add"):
            p + 1
    assert g.tolist() == (HOST + 1).tolist(), "the others are as they were"
    assert f.lower(x, g).donated == {"arg0"}, "the result lies in its memory"


@pytest.mark.parametrize("use", [
    lambda t: t.numpy(), lambda t: t.tolist(), lambda t: bool(t[0]), nnc.exp, lambda t: t[0],
    lambda t: t.__setitem__(0, 1), lambda t: t.__iadd__(1), lambda t: t.realize(), lambda t: t.wait(),
    lambda t: nnc.jit(lambda x: 1)(t), lambda t: nnc.jit(lambda x: x + t)(nnc.ones((2, 3))),
    lambda t: t.to("strict:0") + 1,
    lambda t: nnc.Cell(t).read() + 1, nnc.grad(lambda t: t.sum()),
])
def test_any_use_of_it_is_an_error(x: nnc.Tensor, use: Callable[[Any], Any]) -> None:
    p = made(x.device.id)
    nnc.jit(update, donate_argnames="p")(p, x)
    with fails(RuntimeError, "donated argument `p`"):
        use(p)
    assert "donated" in repr(p) and p.shape == (2, 3) and p.dtype == nnc.float32


def test_a_loop_that_carries_its_state(device: str) -> None:
    step = nnc.jit(lambda state, x: {"w": state["w"] + x, "n": state["n"] + 1}, donate_argnums=0)
    state = {"w": made(device), "n": nnc.asarray(0)}
    for _ in range(5):
        old, state = state, step(state, nnc.ones(3))
        with pytest.raises(DonatedError, match=r"`state\['w'\]`"):
            old["w"] + 1
    assert state["w"].tolist() == (HOST + 5).tolist() and state["n"].item() == 5
    assert step.lower(state, nnc.ones(3)).donated == {"arg0", "arg1"}


def test_memory_that_nobody_else_can_see_is_not_copied(device: str) -> None:
    p = made(device)
    array = p._value.array
    assert array_to_overwrite(p) is not array, "`array` can see it, so that this is a copy"
    where = id(array)
    del array
    assert id(array_to_overwrite(p)) == where


SHARED: dict[str, Callable[[nnc.Tensor], Any]] = {
    "another handle": lambda p: nnc.asarray(p),
    "detached": lambda p: p.detach(),
    "moved to where it is": lambda p: p.to(p.device.id),
    "a view of a part": lambda p: p[1:],
    "a view in another shape": lambda p: p.reshape((3, 2)),
    "a transposed view": lambda p: p.T,
    "a view of a view": lambda p: p.reshape((6,))[2:],
    "a cell": lambda p: nnc.Cell(p),
    "a variable": lambda p: nnc.variable(p),
    "a deferred step": lambda p: _deferred(p),
    "a step for a gradient": lambda p: nnc.variable(np.ones((2, 3), np.float32)) * p,
    "the host": lambda p: np.asarray(p),
}  # fmt: skip


def _deferred(p: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        return p * 1


def _shown(held: Any) -> np.ndarray[Any, Any]:
    tensor = held.read() if isinstance(held, nnc.Cell) else held
    return np.array(tensor.numpy() if isinstance(tensor, nnc.Tensor) else tensor)


@pytest.mark.parametrize("how", SHARED)
def test_what_somebody_else_sees_stays(device: str, how: str) -> None:
    """The call works on a copy, and the donated handle is gone all the same."""
    f = nnc.jit(update, donate_argnums=0)
    g = nnc.ones((2, 3), device=device)
    f(made(device), g)
    wanted = _shown(SHARED[how](made(device)))
    p = made(device)
    held = SHARED[how](p)
    for _ in range(2):
        assert f(p, g).tolist() == (HOST * 2 + 1).tolist()
        p = made(device)
    p = made(device)
    held = SHARED[how](p)
    assert f(p, g).tolist() == (HOST * 2 + 1).tolist()
    assert _shown(held).tolist() == wanted.tolist()
    with pytest.raises(DonatedError):
        p + 1


def test_a_loop_goes_on_where_vectors_cross_no_lines(device: str) -> None:
    """Eager code's arrays lie anywhere; results take over the memory of what they are made of."""
    step = nnc.jit(lambda x: x * 2.0, donate_argnums=0)
    x = nnc.asarray(np.ones(1 << 16, np.float32)) + 0.0
    for _ in range(3):
        x = step(x)
        own = x._value.stack.device
        assert own.is_aligned(x._value.array)
        assert not device.startswith("cpu") or x._value.array.ctypes.data % own.spec.alignment == 0
    assert np.array_equal(x.numpy(), np.full(1 << 16, 8, np.float32))


def test_the_same_tensor_twice(device: str) -> None:
    p = made(device)
    assert nnc.jit(update, donate_argnums=0)(p, p).tolist() == (HOST * 3).tolist()
    p = made(device)
    both = nnc.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))
    a, b = both(p, p)
    assert a.tolist() == (HOST + 1).tolist() and b.tolist() == (HOST * 2).tolist()


def test_a_tensor_that_the_function_reads_besides(device: str) -> None:
    p = made(device)
    f = nnc.jit(lambda q: q + 1 + p * 2, donate_argnums=0)
    assert f(p).tolist() == (HOST * 3 + 1).tolist()
    with pytest.raises(DonatedError):
        f(made(device))


def test_results_that_do_not_fit_or_are_the_argument(device: str) -> None:
    f = nnc.jit(lambda p: (p.sum(), p), donate_argnums=0)
    p = made(device)
    total, same = f(p)
    assert total.item() == 15 and same.tolist() == HOST.tolist()
    with pytest.raises(DonatedError):
        p + 1
    assert f(same)[1].tolist() == HOST.tolist()


def test_memory_borrowed_from_the_host_is_not_given_away(device: str) -> None:
    host = HOST.copy()
    try:
        p = nnc.asarray(host, copy=False, device=device)
    except nnc.Error:
        pytest.skip("this device shares no memory")
    assert nnc.jit(update, donate_argnums=0)(p, nnc.ones((2, 3))).tolist() == (HOST * 2 + 1).tolist()
    assert (host == HOST).all()


def test_where_the_function_runs_as_it_is_written_nothing_is_donated(x: nnc.Tensor) -> None:
    f = nnc.jit(update, donate_argnums=0)
    with nnc.deferred():
        y = f(x, x)
    assert y.tolist() == (HOST * 3).tolist() and x.tolist() == HOST.tolist()
    assert nnc.jit(lambda x: f(x, x) + x)(x).tolist() == (HOST * 4).tolist()
    assert nnc.grad(lambda p: f(p, x).sum())(x).tolist() == (HOST * 0 + 2).tolist() and x.tolist() == HOST.tolist()


def test_looking_does_not_donate(x: nnc.Tensor) -> None:
    f = nnc.jit(update, donate_argnums=0)
    f.lower(x, x)
    assert "memory taken over: arg0" in f.explain(x, x)
    f.profile(x, x, repeats=1)
    assert x.tolist() == HOST.tolist()


def test_polymorphic_calls_donate_as_well(device: str) -> None:
    f = nnc.jit(update, donate_argnums=0)
    for n in (2, 3, 4, 5):
        p = nnc.ones((n, 3))
        assert f(p, nnc.ones((n, 3))).tolist() == [[3.0] * 3] * n
        with pytest.raises(DonatedError):
            p + 1
    assert f.traces == 2


def test_a_call_that_fails_before_it_runs_leaves_it(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda p, y: p @ y, donate_argnums=0)
    with pytest.raises(nnc.Error):
        f(x, x)
    assert x.tolist() == HOST.tolist()


def test_a_call_that_fails_while_it_runs_says_what_is_lost(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f = nnc.jit(update, donate_argnums=0)
    f(made(device), made(device))
    run = f.lower(made(device), made(device)).program
    program = run._program()

    def broken() -> None:
        program.position, program.started = len(run.plan.steps) - 1, True
        raise MemoryError("no more")

    monkeypatch.setattr(run, "_program", lambda: _Broken(program, broken))
    p, g, shared = made(device), made(device), made(device)
    view = nnc.asarray(shared)
    with pytest.raises(DeviceMemoryError, match="no more; the call had begun to overwrite p, now lost") as caught:
        f(p, g)
    assert caught.value.lost == {"p"}
    with fails(DonatedError, "was lost", "`p`"):
        p + 1
    with pytest.raises(DeviceMemoryError, match="no more") as caught:
        f(shared, g)
    assert not caught.value.lost
    assert shared.tolist() == view.tolist() == g.tolist() == HOST.tolist(), "it was copied: nothing is lost"


class _Broken:
    """A program whose run fails."""

    def __init__(self, program: Any, run: Callable[[], None]) -> None:
        self._program, self.run = program, run

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)


def test_what_was_donated_is_not_copied_or_pickled(device: str) -> None:
    x = nnc.ones(3)
    nnc.jit(lambda x: x * 2, donate_argnums=0)(x)
    for use in (pickle.dumps, copy.deepcopy):
        with pytest.raises(DonatedError, match="donated argument `x`"):
            use(x)
