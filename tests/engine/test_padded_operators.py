"""Every operator within padding: where the padding asks for elements that there are not, nothing is read for them."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_core.symbol import Node
from nnc_core.type import TupleSpec, is_static
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.running import called, eager, spec_of
from tests.engine.test_joined_operators import small_case


@pytest.mark.parametrize("name", sorted(CASES))
def test_an_operator_whose_result_is_padded(name: str) -> None:
    drawn, op, stack = small_case(name), OPERATORS[name], stack_for("strict:0")
    if drawn is None or (op.nest is None and op.scalar is None):
        pytest.skip("has no small case, or no loop nest")
    case, dtype, inputs = drawn
    attributes = case.attribute_values(op, dtype)
    F = stack.operator.open()
    given = {f"x{i}": F.placeholder(f"x{i}", spec_of(x)) for i, x in enumerate(inputs)}
    y: Node = F.apply(op, tuple(given.values()), attributes)
    if isinstance(y.spec, TupleSpec) or not is_static(y.shape) or not y.shape:
        pytest.skip("has no one array as its result")
    low, high = (0,) * len(y.shape), (1,) * len(y.shape)
    padded = F.pad(y, low=low, high=high, interior=(0,) * len(y.shape), value=1)
    with config.using(deterministic=True):
        run = stack.engine.compile(SymbolicGraph(given, {"y": padded}), optimise=False)
        found = called(run, {f"x{i}": x for i, x in enumerate(inputs)})["y"]
        wanted = np.pad(eager(stack, op, inputs, attributes), list(zip(low, high, strict=True)), constant_values=1)
    assert same_bits(found, wanted).all(), run.explain()
