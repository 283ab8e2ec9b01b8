"""`x[key] = v` writes where x lies only where nobody else holds that memory: whoever does keeps what it saw."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.values.cell import Cell
from nnc_core.values.from_host import kept_value
from nnc_core.values.in_place import _OWNER
from tests.tensors.values.in_place import HOST, fresh, written

pytestmark = [pytest.mark.skipif(not any(_OWNER), reason="this Python does not count references"),
              pytest.mark.skipif(nnc.stack_for(None).device.spec.kind != "cpu", reason="cpu:0 writes in place")]


@pytest.fixture(autouse=True)
def kernels_known() -> None:
    """The first item of all is written by operators."""
    written(fresh())


# ---- holders: each sees what it saw
def _array(x: nnc.Tensor) -> Any:
    return x._value.array


HOLDERS: dict[str, Callable[[nnc.Tensor], Any]] = {
    "another tensor": lambda x: nnc.Tensor(x._value),
    "to the same device": lambda x: x.to("cpu:0"),
    "detached": lambda x: x.detach(),
    "a row": lambda x: x[1],
    "a range": lambda x: x[0:2, 1:3],
    "a transpose": lambda x: x.T,
    "a reshape": lambda x: nnc.reshape(x, (4, 3)),
    "a broadcast": lambda x: nnc.broadcast_to(x, (2, 3, 4)),
    "a view of a view": lambda x: x.T[1:][0],
    "rows by iteration": lambda x: list(x),
    "a squeeze": lambda x: nnc.expand_dims(x, 0),
    "a list": lambda x: [nnc.Tensor(x._value)],
    "NumPy's view": lambda x: np.asarray(x, copy=False),
    "a view of NumPy's view": lambda x: np.asarray(x, copy=False)[1:],
    "a memoryview": lambda x: memoryview(np.asarray(x, copy=False)),
    "DLPack": lambda x: np.from_dlpack(x),
    "a capsule": lambda x: x.__dlpack__(max_version=(1, 0)),
    "a borrower": lambda x: nnc.asarray(np.asarray(x, copy=False), copy=False),
    "a pointer's owner": lambda x: (np.asarray(x, copy=False), _array(x).ctypes.data_as(ctypes.c_void_p)),
    "a cell": lambda x: Cell(x, "state"),
    "a parameter": lambda x: nn.Parameter(x),
    "a generator's step": lambda x: (row for row in [nnc.Tensor(x._value)]),
    "a closure": lambda x: partial(_itself, nnc.Tensor(x._value)),
    "a deferred sum": lambda x: _deferred(x),
    "a tape": lambda x: _taped(x),
    "a gradient": lambda x: _with_gradient(x),
    "a weak reference": lambda x: weakref.ref(_array(x)),
}  # fmt: skip


def _itself(x: nnc.Tensor) -> nnc.Tensor:
    return x


def _deferred(x: nnc.Tensor) -> nnc.Tensor:
    with nnc.deferred():
        return x * 1.0


def _taped(x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
    v = nnc.variable(HOST)
    return v, v * x


def _with_gradient(x: nnc.Tensor) -> nnc.Tensor:
    v = nnc.variable(HOST)
    v.grad = x
    return v


SEEN: dict[str, Callable[[Any], Any]] = {
    "a row": lambda h: (h.numpy(), HOST[1]), "a range": lambda h: (h.numpy(), HOST[0:2, 1:3]),
    "a transpose": lambda h: (h.numpy(), HOST.T), "a reshape": lambda h: (h.numpy(), HOST.reshape(4, 3)),
    "a broadcast": lambda h: (h.numpy(), np.broadcast_to(HOST, (2, 3, 4))),
    "a view of a view": lambda h: (h.numpy(), HOST.T[1]),
    "rows by iteration": lambda h: (np.stack([r.numpy() for r in h]), HOST),
    "a squeeze": lambda h: (h.numpy()[0], HOST), "a list": lambda h: (h[0].numpy(), HOST),
    "a view of NumPy's view": lambda h: (h, HOST[1:]), "a capsule": lambda h: (np.from_dlpack(_Capsule(h)), HOST),
    "a pointer's owner": lambda h: (h[0], HOST), "a cell": lambda h: (h.read().numpy(), HOST),
    "a parameter": lambda h: (h.numpy(), HOST), "a generator's step": lambda h: (next(h).numpy(), HOST),
    "a closure": lambda h: (h().numpy(), HOST), "a tape": lambda h: (_gradient_of(h), HOST),
    "a gradient": lambda h: (h.grad.numpy(), HOST), "a weak reference": lambda h: (HOST if h() is None else h(), HOST),
}  # fmt: skip


class _Capsule:
    """What has a capsule, for those who ask for one."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _gradient_of(tape: tuple[nnc.Tensor, nnc.Tensor]) -> Any:
    v, y = tape
    nnc.sum(y).backward()
    assert v.grad is not None
    return v.grad.numpy()


@pytest.mark.parametrize("name", HOLDERS)
def test_whoever_holds_it_sees_what_it_saw(name: str) -> None:
    x = fresh()
    holder = HOLDERS[name](x)
    assert not written(x), "somebody holds it"
    seen, want = SEEN.get(name, lambda h: (np.asarray(h), HOST))(holder)
    np.testing.assert_array_equal(seen, want)
    assert x.numpy()[1, 2] == 100


@pytest.mark.parametrize("name", HOLDERS)
def test_and_lets_go_of_it(name: str) -> None:
    x = fresh()
    holder = HOLDERS[name](x)
    del holder
    x[0, 0] = 1.0
    assert written(x)


def test_the_value_that_is_written_keeps_its_own() -> None:
    x, row = fresh(), nnc.asarray(HOST[0] + 50)
    x[1] = row
    x[1, 0] = -1.0
    row[2] = -2.0
    np.testing.assert_array_equal(row.numpy(), [50, 51, -2, 53])
    np.testing.assert_array_equal(x.numpy()[1], [-1, 51, 52, 53])


@pytest.mark.parametrize("write", [lambda x: x.__setitem__(slice(1, None), x[:-1]), lambda x: x.__setitem__(0, x[2]),
                                   lambda x: x.__setitem__(..., x), lambda x: x.__setitem__(slice(None), x[::-1])])
def test_a_part_of_itself_is_read_before_it_is_written(write: Callable[[Any], None]) -> None:
    x, want = fresh(), HOST.copy()
    write(x)
    copied = HOST.copy()
    write(want if want.base is None else copied)
    np.testing.assert_array_equal(x.numpy(), want)


def test_a_row_is_written_apart_from_its_matrix() -> None:
    x = fresh()
    row = x[1]
    row[0] = 77.0
    assert row.numpy()[0] == 77
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_the_last_holder_of_a_part_may_write_it() -> None:
    row = fresh()[1]
    row[0] = 77.0
    np.testing.assert_array_equal(row.numpy(), [77, 5, 6, 7])


def test_a_broadcast_is_never_written_where_it_lies() -> None:
    x = nnc.broadcast_to(nnc.asarray(HOST[0]), (3, 4))
    x[0, 0] = 9.0
    np.testing.assert_array_equal(x.numpy(), [[9, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]])


def test_borrowed_memory_is_never_written() -> None:
    theirs = HOST.copy()
    x = nnc.asarray(theirs, copy=False)
    x[0, 0] = 9.0
    assert theirs[0, 0] == 0 and x.numpy()[0, 0] == 9


def test_memory_that_is_kept_is_never_written() -> None:
    frozen = HOST.copy()
    x = nnc.Tensor(kept_value(frozen, nnc.stack_for(None)))
    x[0, 0] = 9.0
    assert frozen[0, 0] == 0 and x.numpy()[0, 0] == 9
