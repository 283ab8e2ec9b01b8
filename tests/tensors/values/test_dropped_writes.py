"""Item assignments to tensors that nobody else holds: said once, and never of a tensor that has a name."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DroppedWriteWarning
from nnc_core.values.dropped_writes import OF_TEMPORARY

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
DROPPED = r"float32.* was written to and dropped at once"


@pytest.fixture
def m(device: str) -> nnc.Tensor:
    return nnc.asarray(HOST, device=device)


def _item_of_item(m: nnc.Tensor) -> None:
    m[0][1] = 5


def _augmented_item_of_item(m: nnc.Tensor) -> None:
    m[0][1] += 5


def _slice_of_item(m: nnc.Tensor) -> None:
    m[0][0:2] = 5


def _transposed(m: nnc.Tensor) -> None:
    m.T[0] = 5


def _result(m: nnc.Tensor) -> None:
    (m + 1)[0] = 5


@pytest.mark.skipif(not OF_TEMPORARY, reason="this Python does not tell temporaries")
@pytest.mark.parametrize("write", [_item_of_item, _augmented_item_of_item, _slice_of_item, _transposed, _result])
def test_a_write_to_a_temporary_is_said_at_the_line(m: nnc.Tensor, write: Callable[[nnc.Tensor], None]) -> None:
    with pytest.warns(DroppedWriteWarning, match=DROPPED) as caught:
        write(m)
    assert [w.filename for w in caught] == [__file__]
    assert caught[0].lineno == write.__code__.co_firstlineno + 1
    np.testing.assert_array_equal(m.numpy(), HOST)


@pytest.mark.skipif(not OF_TEMPORARY, reason="this Python does not tell temporaries")
def test_gradients_are_handed_out_as_values(device: str) -> None:
    v = nnc.variable(HOST)
    (v * 2).sum().backward()
    assert v.grad is not None
    with pytest.warns(DroppedWriteWarning):
        v.grad[0] = 0
    np.testing.assert_array_equal(v.grad.numpy(), np.full_like(HOST, 2))


class _Holder:
    def __init__(self, t: nnc.Tensor) -> None:
        self.t = t


def test_whatever_somebody_holds_is_written_in_silence(m: nnc.Tensor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m[0, 1] = 5
        m[0] += 1
        row = m[0]
        row[1] = 2
        row[1] += 2
        held, kept, of = [m[0]], {"a": m[0]}, _Holder(m[0])
        held[0][1] = kept["a"][1] = of.t[1] = 2
        of.t[1] += 2
        if (named := m[0]) is not None:
            named[0] = 1
        assert (row[1].item(), held[0][1].item(), of.t[1].item(), named[0].item()) == (4, 2, 4, 1)
        assert kept["a"][1].item() == 2


def _rows(m: nnc.Tensor) -> None:
    for row in m:
        row[0] = 1


def _rows_in_place(m: nnc.Tensor) -> None:
    for row in m:
        row *= 2


def _rows_twice(m: nnc.Tensor) -> None:
    for row in m:
        row[0], row[1] = 1, 2


def _rows_augmented(m: nnc.Tensor) -> None:
    for row in m:
        row[0] += 1; row[1] += 2  # noqa: E702


def _unpacked(m: nnc.Tensor) -> None:
    a, _ = m; a[0] = 1  # noqa: E702


def _listed(m: nnc.Tensor) -> None:
    rows = list(m); rows[1][0] = 1  # noqa: E702


def _named_transpose(m: nnc.Tensor) -> None:
    t = m.T; t[0] = 7  # noqa: E702


def _of_a_row(m: nnc.Tensor) -> None:
    row = m[0]; part = row[:2]; part[0] = 7  # noqa: E702


def _write_by_name(m: nnc.Tensor) -> None:
    m[0].__setitem__(0, 1)


def _write_by_function(m: nnc.Tensor) -> None:
    operator.setitem(m[0], 0, 1)


ROWS = (_rows, _rows_in_place, _rows_twice, _rows_augmented)
LATER = (*ROWS, _unpacked, _listed, _named_transpose, _of_a_row, _write_by_name, _write_by_function)


@pytest.mark.skipif(not OF_TEMPORARY, reason="this Python does not tell temporaries")
@pytest.mark.parametrize("write", LATER)
def test_a_write_that_is_dropped_unread_is_said_at_its_line(m: nnc.Tensor, write: Callable[[nnc.Tensor], None]) -> None:
    with pytest.warns(DroppedWriteWarning, match="float32.* was written to and dropped before it was read") as caught:
        write(m)
    assert {w.filename for w in caught} == {__file__} and len(caught) == (2 if write in ROWS else 1)
    assert {w.lineno - write.__code__.co_firstlineno for w in caught} == {2 if write in ROWS else 1}
    np.testing.assert_array_equal(m.numpy(), HOST)


@pytest.mark.skipif(not OF_TEMPORARY, reason="this Python does not tell temporaries")
def test_it_is_said_once_for_a_line() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            _rows(nnc.asarray(HOST))
    assert len([w for w in caught if w.category is DroppedWriteWarning]) == 1


def _written(m: nnc.Tensor) -> nnc.Tensor:
    row = m[0]
    row[1] = 5
    return row


READ: dict[str, Callable[[nnc.Tensor], object]] = {
    "numpy": lambda m: _written(m).numpy(), "operator": lambda m: _written(m) + 1,
    "other side": lambda m: 1 + _written(m),
    "between tensors": lambda m: m[1] * _written(m), "function": lambda m: nnc.sum(_written(m)),
    "list of tensors": lambda m: nnc.stack([_written(m), m[1]]), "item": lambda m: _written(m)[1].item(),
    "repr": lambda m: repr(_written(m)), "jit": lambda m: nnc.jit(lambda x: x * 2)(_written(m)),
    "in a tree": lambda m: nnc.jit(lambda x: x["a"][0] * 2)({"a": [_written(m)]}), "copy": lambda m: _written(m).copy(),
    "copy.copy": lambda m: copy.copy(_written(m)), "deepcopy": lambda m: copy.deepcopy(_written(m)),
    "pickle": lambda m: pickle.loads(pickle.dumps(_written(m))), "written back": lambda m: m.at[0].set(_written(m)),
    "gradient": lambda m: nnc.grad(nnc.sum)(_written(m)), "numpy.asarray": lambda m: np.asarray(_written(m)),
    "branches": lambda m: nnc.cond(True, lambda v: v, nnc.exp, _written(m)),
    "cell": lambda m: nnc.Cell(_written(m)).read(), "shape": lambda m: _written(m).shape,
    "comparison": lambda m: _written(m) == 2, "loop": lambda m: [float(v) for v in _written(m)],
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_no_dropped_write(m: nnc.Tensor, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        READ[name](m)
        row = _written(m)
        assert row.tolist() == [0, 5, 2] and type(row) is nnc.Tensor


NEW: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "created": lambda m: nnc.zeros(3), "computed": lambda m: m + 1, "of a result": lambda m: (m + 1)[0],
    "reshaped": lambda m: nnc.arange(6).reshape(2, 3), "compiled": lambda m: nnc.jit(lambda x: x * 2)(m),
    "gathered": lambda m: m[[0, 1]], "joined": lambda m: nnc.concat([m, m]), "itself": lambda m: m,
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_memory_of_its_own_may_be_written_for_nothing(m: nnc.Tensor, name: str) -> None:
    """Nothing is lost that NumPy would have kept."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = NEW[name](m)
        made[0] = 1
        del made


def test_a_subclass_that_passes_a_write_on_is_silent(m: nnc.Tensor) -> None:
    class Logged(nnc.Tensor):
        def __setitem__(self, key: object, value: object) -> None:
            super().__setitem__(key, value)

    t = Logged(m[0]._value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t[0] = 7
    assert t[0].item() == 7


def test_parameters_are_written_themselves(device: str) -> None:
    p = nnc.nn.Parameter(nnc.asarray(HOST, device=device))
    with warnings.catch_warnings(), nnc.no_grad():
        warnings.simplefilter("error")
        p[0, 1] = 5
    assert p[0, 1].item() == 5
