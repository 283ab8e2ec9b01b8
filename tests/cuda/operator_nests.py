"""The loop nests of all operators, for the inputs that the conformance kit tries them with."""

from __future__ import annotations

from functools import cache

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.engine.candidates import loop_nest
from nnc_core.type import TensorSpec, TupleSpec
from nnc_plugins.conformance.cases import Example, examples


@cache
def operator_nests() -> tuple[LoopNest, ...]:
    """Each once, in the order of the kit's table."""
    found: dict[LoopNest, None] = {}
    for example in examples():
        nest = _nest(example)
        if nest is not None and nest.points:
            found[nest] = None
    return tuple(found)


def _nest(example: Example) -> LoopNest | None:
    """None where there is none: composites, host operators, and results whose size depends on data."""
    op, case, dtype = example
    if op.data_dependent or op.host or op.bodies:
        return None
    inputs = case.inputs(np.random.default_rng(0), dtype)
    attributes = case.attribute_values(op, dtype)
    try:
        spec = op.infer(*[TensorSpec(x.shape, x.dtype) for x in inputs], *attributes)
    except Error:
        return None
    parts = spec.parts if isinstance(spec, TupleSpec) else (spec,)
    command = Command(op.name, attributes, tuple([Layout.packed(x.shape, x.dtype) for x in inputs]),
                      tuple([part.layout() for part in parts]))
    try:
        return loop_nest(op, command)
    except NotSupportedError:  # complex powers, say
        return None
