"""Devices that are made by hand, not offered by a plugin."""

from __future__ import annotations

import nnc_core as nnc
from nnc_core.builtin.strict import StrictDevice
from nnc_core.engine import Engine


class Own(StrictDevice):
    pass


class OwnEngine(Engine):
    pass


def test_a_device_under_an_id_of_a_plugin_does_not_take_its_place() -> None:
    by_name = nnc.stack_for("strict:0")
    own = Own()
    with nnc.use_device(own):
        x = nnc.ones(3) + 1
    assert x._value.stack.device is own and nnc.stack_for(own) is x._value.stack
    assert nnc.stack_for("strict:0") is by_name
    with nnc.use_device("strict:0"):
        assert nnc.ones(3)._value.stack is by_name
    assert x.tolist() == [2, 2, 2]


def test_it_has_one_stack_which_is_plain() -> None:
    own = Own()
    replaced = nnc.make_stack(own, Engine=OwnEngine)
    plain = nnc.make_stack(own)
    assert plain.is_plain and not replaced.is_plain
    assert nnc.stack_for(own) is plain
