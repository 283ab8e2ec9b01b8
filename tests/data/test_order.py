"""The order of examples can be left and taken up anywhere."""

from __future__ import annotations

from itertools import islice

import pytest

from nnc_core.base.errors import DataError, StateError
from nnc_core.data import DataOrder, batches


def epoch_of(order: DataOrder) -> list[list[int]]:
    return [batch.tolist() for batch in order]


@pytest.mark.parametrize("drop_last", [True, False])
def test_its_epochs_are_those_of_batches(drop_last: bool) -> None:
    order = DataOrder(10, 3, seed=4, drop_last=drop_last)
    for epoch in range(3):
        assert order.epoch == epoch
        expected = [b.tolist() for b in batches(10, 3, seed=4, epoch=epoch, drop_last=drop_last)]
        assert epoch_of(order) == expected
        assert len(order) == len(expected)


@pytest.mark.parametrize("position", range(5))
def test_it_goes_on_from_any_place(position: int) -> None:
    order, whole = DataOrder(12, 3, seed=0), DataOrder(12, 3, seed=0)
    both = epoch_of(whole) + epoch_of(whole)
    list(islice(order, position))
    other = DataOrder(12, 3, seed=0)
    other.load_state_dict(order.state_dict())
    assert repr(other) == f"<order of 12 examples: epoch 0, batch {position} of 4>"
    assert epoch_of(other) + epoch_of(other) == both[position:]


def test_a_loop_that_is_left_goes_on_where_it_was() -> None:
    order = DataOrder(12, 3, seed=0)
    found = [b.tolist() for b in islice(order, 1)] + epoch_of(order)
    assert found == epoch_of(DataOrder(12, 3, seed=0))
    assert (order.epoch, order.position) == (1, 0)


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(DataError, match="do not fill one batch"):
        DataOrder(2, 3, seed=0)
    order = DataOrder(12, 3, seed=0)
    with pytest.raises(StateError, match=r"n was 12 and is 13; batch_size was 3 and is 4"):
        DataOrder(13, 4, seed=0).load_state_dict(order.state_dict())
    with pytest.raises(StateError, match="no place in the order of examples"):
        order.load_state_dict({"epoch": 1})
