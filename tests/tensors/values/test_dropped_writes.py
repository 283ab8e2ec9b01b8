"""Item assignments to tensors that nobody else holds: said once, and never of a tensor that has a name."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DroppedWriteWarning
from nnc_core.values.temporaries import OF_TEMPORARY

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
        for each in m:
            each[0] = 1
        if (named := m[0]) is not None:
            named[0] = 1
        assert (row[1].item(), held[0][1].item(), of.t[1].item(), named[0].item()) == (4, 2, 4, 1)


def _write_by_name(t: nnc.Tensor) -> None:
    t.__setitem__(0, 1)


def _write_argument(t: nnc.Tensor) -> None:
    t[0] = 1


def test_calls_that_write_are_silent(m: nnc.Tensor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _write_by_name(m[0])
        _write_argument(m[0])
        operator.setitem(m[0], 0, 1)
        list(map(operator.setitem, [m[0]], [0], [1]))


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
