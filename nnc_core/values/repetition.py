"""The operators that a function calls, kept so that it calls them straight away for operands of the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nnc_core.operator import OPERATORS
from nnc_core.symbol import postorder
from nnc_core.type import Attributes, Op
from nnc_core.values.dispatch import dispatch
from nnc_core.values.modes import deferred
from nnc_core.values.value import Value

_RESHAPE = OPERATORS["reshape"]


class OperatorCall(NamedTuple):
    """An operator, the numbers of its inputs (operands first, then results in order), and its attributes."""

    op: Op
    inputs: tuple[int, ...]
    attributes: Attributes


class Steps(NamedTuple):
    """Calls of operators in order, and the number of the value that they are for."""

    calls: tuple[OperatorCall, ...]
    result: int


def steps_of(f: Callable[[Sequence[Value]], Value], operands: Sequence[Value]) -> Steps | None:
    """The operators that f calls on values that are there, without reshapes to the same shape; None where some take
    none of them, or random numbers."""
    apart = [Value(v.array, v.stack, v.spec) for v in operands]  # operands that are one now need not be so again
    with deferred(keep_graph=True):
        result = f(apart)
    number = {v: i for i, v in enumerate(apart)}
    order = [v for v in postorder([result], leaf=number.__contains__) if v not in number]
    calls: list[OperatorCall] = []
    for v in order:
        if v.step is None or not v.inputs or v.op.random or v.op.host:
            return None
        if v.op is _RESHAPE and v.shape == v.inputs[0].shape and number[v.inputs[0]] >= len(apart) * (v is result):
            number[v] = number[v.inputs[0]]
            continue
        calls.append(OperatorCall(v.op, tuple([number[x] for x in v.inputs]), v.attributes))
        number[v] = len(apart) + len(calls) - 1
    return Steps(tuple(calls), number[result])


def repeated(steps: Steps, operands: Sequence[Value]) -> Value:
    """The result of the steps for other operands, run now or recorded."""
    values = list(operands)
    for op, inputs, attributes in steps.calls:
        values.append(dispatch(op, tuple([values[i] for i in inputs]), attributes))
    return values[steps.result]
