"""The kit compiles the kernels of many tests together, and finds them there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nnc_core.base.errors import DeviceFailureError
from nnc_core.builtin import StrictDevice
from nnc_core.builtin.flavours import Flavour
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack, make_stack
from nnc_plugins.conformance.ahead import AT_ONCE, Ahead
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.running import called, eager, one_operator_graph

NAMES = "tanh", "log_softmax", "logsumexp", "sum", "add", "random_bits"
"""Composites, with views inside, among them, and an operator without inputs."""


class Slow(StrictDevice):
    """A device that counts what it is asked to compile."""

    def __init__(self) -> None:
        super().__init__(Flavour())
        self.asked: list[int] = []
        self.broken = False

    def compile_all(self, nests: Any) -> Any:
        if self.broken:
            raise DeviceFailureError("the compiler is out of order")
        self.asked += [len(nests)] if nests else []
        return super().compile_all(nests)


def items(*names: str) -> list[Any]:
    """Tests of operators as pytest knows them."""
    session = SimpleNamespace(items=[])
    for name in names:
        case = CASES[name][0]
        for how in ("eager", "compiled"):
            given = {"name": name, "dtype": case.dtypes[-1], "share": [case], "how": how}
            session.items.append(SimpleNamespace(nodeid=f"{name}-{how}", session=session,
                                                 callspec=SimpleNamespace(params=given)))
    return session.items


def run(stack: Stack, item: Any) -> None:
    given = item.callspec.params
    op, [case] = OPERATORS[given["name"]], given["share"]
    inputs = case.inputs(np.random.default_rng(0), given["dtype"])
    attributes = case.attribute_values(op, given["dtype"])
    if given["how"] == "eager":
        eager(stack, op, inputs, attributes)
    else:
        called(stack.engine.compile(one_operator_graph(stack, op, inputs, attributes)),
               {f"x{i}": x for i, x in enumerate(inputs)})


@pytest.fixture
def device() -> Slow:
    return Slow()


@pytest.fixture
def ahead(device: Slow) -> Ahead:
    made = Ahead(make_stack(device), 0, isolated=False)
    made.pays = True  # strict:0 interprets its nests
    return made


def test_what_tests_run_is_compiled_at_once(device: Slow, ahead: Ahead) -> None:
    for item in items(*NAMES):
        ahead.reach(item)
        run(ahead.stack, item)
    [together] = device.asked
    assert len(NAMES) < together < AT_ONCE


def test_it_goes_on_where_it_ended(device: Slow, ahead: Ahead) -> None:
    tests = items(*sorted(CASES.keys() - {"transfer"})[:120])
    for item in tests:
        ahead.reach(item)
    assert len(device.asked) > 2 and min(device.asked[:-1]) > AT_ONCE / 2


def test_what_cannot_be_compiled_is_left_to_its_test(device: Slow, ahead: Ahead) -> None:
    device.broken = True
    [first, *_] = items("tanh")
    ahead.reach(first)
    with pytest.raises(DeviceFailureError, match="out of order"):
        run(ahead.stack, first)


@pytest.mark.parametrize("isolated", [False, True])
def test_nothing_is_compiled_ahead_where_it_does_not_pay(device: Slow, isolated: bool) -> None:
    Ahead(make_stack(device), 0, isolated=isolated).reach(items("tanh")[0])
    assert not device.asked
