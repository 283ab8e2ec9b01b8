"""Random graphs over most operators: each step takes a case of the conformance kit, with some of its inputs replaced by
nodes of the same dtype and shape that are there already.

A step whose reference refuses what it is given, as matrices with NaN are, adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.symbol import Literal, Node
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.host import expected
from tests.graph.stack import new_namespace
from tests.graph.strategies import RandomGraph, _grown, _size
from tests.optimiser.helpers import Build, spec

Formula = tuple[Sequence[str], Build]
LARGEST = 96
"""Elements of an input or a result."""
APART = frozenset(("transfer", "loop", "case_of", "call", "pick"))
"""Operators that need devices or bodies."""
CASES_OF = {
    name: fit for name, cases in sorted(CASES.items())
    if name not in APART and not OPERATORS[name].bodies and not OPERATORS[name].data_dependent
    and (fit := [(case, dtype) for case in cases for dtype in case.dtypes])
}  # fmt: skip


def grow_over_operators(random: Random, steps: int, formulas: Sequence[Formula] = ()) -> RandomGraph:
    """The outputs are the nodes that nothing uses; cases of the kit alternate with the steps of simpler graphs, and
    with formulas (specs of operands, what is built of them) if there are any."""
    F = new_namespace()
    values: dict[Node, Any] = {}
    pool: list[Node] = []
    names = random.sample(sorted(CASES_OF), 3)  # few, so that they meet themselves
    for _ in range(steps):
        if formulas and random.random() < 0.5:
            node = _built(random, F, pool, values, random.choice(formulas))
        elif pool and random.random() < 0.4:
            node = _grown(random, F, pool)
        else:
            name = random.choice(names if random.random() < 0.5 else sorted(CASES_OF))
            node = _applied(random, F, pool, values, name)
        if node is not None and _size(node) <= LARGEST:
            pool.append(node)
    used = {x for node in pool for x in node.inputs}
    outputs = [node for node in dict.fromkeys(pool) if node not in used]
    return RandomGraph(outputs, list(values), values)


def _applied(random: Random, F: Nodes, pool: list[Node], values: dict[Node, Any], name: str) -> Node | None:
    case, dtype = random.choice(CASES_OF[name])
    arrays = case.inputs(np.random.default_rng(random.randrange(2**32)), dtype)
    if any(a.size > LARGEST for a in arrays):
        return None
    op, attributes = OPERATORS[name], case.attribute_values(OPERATORS[name], dtype)
    mine = [_standing_in(random, F, pool, values, a) for a in arrays]
    if not _works(op, arrays, attributes):
        return None
    node = F.apply(op, tuple(mine), attributes)
    if isinstance(node.spec, TupleSpec):
        node = F.pick(node, index=random.randrange(len(node.spec.parts)))
    return node


def _built(random: Random, F: Nodes, pool: list[Node], values: dict[Node, Any], formula: Formula) -> Node:
    specs, build = formula
    rng = np.random.default_rng(random.randrange(2**32))
    arrays = [rng.integers(0, 3, spec(text).static_shape) if text.startswith(("int", "uint", "bool"))
              else rng.uniform(-2, 2, spec(text).static_shape) for text in specs]
    return build(F, *[_standing_in(random, F, pool, values, a.astype(spec(text).dtype))
                      for a, text in zip(arrays, specs, strict=True)])


def _standing_in(random: Random, F: Nodes, pool: Sequence[Node], values: dict[Node, Any], array: Any) -> Node:
    """An operand for an array: a node like it, a constant or a placeholder."""
    spec = TensorSpec(array.shape, array.dtype)
    alike = [x for x in pool if x.spec == spec]
    if alike and random.random() < 0.7:
        return random.choice(alike)
    if random.random() < 0.3:
        return F.constant(Literal(array), spec)
    x = F.placeholder(f"p{len(values)}", spec)
    values[x] = array
    return x


def _works(op: Op, arrays: Sequence[Any], attributes: Attributes) -> bool:
    try:
        expected(op, tuple(arrays), attributes)
    except Exception:  # whatever a reference raises for inputs that it refuses
        return False
    return True
