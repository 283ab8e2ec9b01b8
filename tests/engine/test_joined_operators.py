"""Every operator computes the same bits in a part of a larger array, or what it has computed is copied there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import float32
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_core.symbol import Node
from nnc_core.type import TupleSpec, is_static
from nnc_plugins.conformance.agreement import same_bits
from nnc_plugins.conformance.case import Case
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.running import called, eager, spec_of

SMALL = 1 << 11
"""Elements: the strict device interprets."""


def small_case(name: str) -> tuple[Case, Any, tuple[np.ndarray[Any, Any], ...]] | None:
    """A case with few elements, but some: of those one of float32, if there is one, with most axes."""
    found = []
    for case in CASES[name]:
        dtype = float32 if float32 in case.dtypes else case.dtypes[0]
        inputs = case.inputs(np.random.default_rng(3), dtype)
        if all(0 not in x.shape for x in inputs) and sum(x.size for x in inputs) <= SMALL:
            axes = max((x.ndim for x in inputs), default=0)
            found.append((dtype == float32, axes, len(found), case, dtype, inputs))
    return max(found, key=lambda item: item[:3])[3:] if found else None


def beside_itself(name: str, device: str, *, in_place: bool) -> tuple[SymbolicGraph, dict[str, Any], Any] | None:
    """The operator's result beside three other arrays, joined along the last axis; and what it gives by itself.

    in_place: the operand whose memory it may take over is computed in that part as well.
    """
    drawn, op = small_case(name), OPERATORS[name]
    if drawn is None or op.view is not None or op.name == "transfer":
        return None
    case, dtype, inputs = drawn
    if in_place and op.elementwise and len({x.shape for x in inputs}) == 1:
        inputs = tuple([x.reshape(-1, 1)[:5] for x in inputs])  # columns: NumPy has other code for them
    attributes = case.attribute_values(op, dtype)
    stack = stack_for(device)
    if any(x.dtype.name not in stack.device.spec.dtypes for x in inputs):
        return None
    F = stack.operator.open()
    given = {f"x{i}": F.placeholder(f"x{i}", spec_of(x)) for i, x in enumerate(inputs)}
    operands = [F.copy(x) if in_place and i == op.inplace[0] else x for i, x in enumerate(given.values())]
    y: Node = F.apply(op, tuple(operands), attributes)
    if isinstance(y.spec, TupleSpec) or not is_static(y.shape) or not y.shape or 0 in y.shape:
        return None
    wanted = eager(stack, op, inputs, attributes)
    given["around"] = F.placeholder("around", y.spec)
    whole = F.concat(given["around"], y, given["around"], given["around"], axis=y.ndim - 1)
    arrays = {**{f"x{i}": x for i, x in enumerate(inputs)}, "around": np.ones(wanted.shape, wanted.dtype)}
    return SymbolicGraph(given, {"y": whole}), arrays, wanted


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("device", ["cpu:0", "strict:0"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_a_part_of_a_larger_array(name: str, device: str) -> None:
    check(name, device, in_place=False)


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("device", ["cpu:0", "strict:0"])
@pytest.mark.parametrize("name", sorted(name for name in CASES if OPERATORS[name].inplace))
def test_in_place_in_a_part_of_a_larger_array(name: str, device: str) -> None:
    check(name, device, in_place=True)


def check(name: str, device: str, *, in_place: bool) -> None:
    with config.using(deterministic=True):
        found = beside_itself(name, device, in_place=in_place)
        if found is None:
            pytest.skip("has no one array of several elements as its result")
        graph, arrays, wanted = found
        run = stack_for(device).engine.compile(graph, optimise=False)
        y = called(run, arrays)["y"]
    n = wanted.shape[-1]
    part, around = y[..., n : 2 * n], np.concatenate([y[..., :n], y[..., 2 * n :]], -1)
    assert same_bits(part, wanted).all(), run.explain()
    assert (around == 1).all(), "nothing is written beside the part"
