"""Which code cpu:0 takes where there are both: NumPy's or loop nests as machine code."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_plugins.conformance.running import called, one_operator_graph


@pytest.mark.parametrize(("count", "backend"), [(64, "loop nest"), (65, "numpy")])
def test_many_arrays_are_joined_without_machine_code(count: int, backend: str) -> None:
    """It would have instructions for each of them: thousands take minutes to compile."""
    stack = stack_for("cpu:0")
    arrays = tuple(np.array([i], np.float32) for i in range(count))
    run = stack.engine.compile(one_operator_graph(stack, OPERATORS["concat"], arrays, (0,)))
    assert [step.decision.backend for step in run.plan.steps] == [backend]
    joined = called(run, {f"x{i}": x for i, x in enumerate(arrays)})["y"]
    assert joined.tolist() == [*range(count)]
