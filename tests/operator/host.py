"""All operators on NumPy arrays, by their references and decompositions: what results are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import LOOP, PICK
from nnc_core.type import Attributes, Op
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.cases import examples
from nnc_plugins.conformance.host import Host, HostValue


class CheckedHost(Host):
    """Checks on its way that each operator's rule predicts what its reference gives."""

    def apply(self, op: Op, inputs: tuple[Any, ...], attributes: Attributes) -> HostValue:
        xs = self.operands(op, inputs)
        value = super().apply(op, xs, attributes)
        if op not in (PICK, LOOP) and op.decompose is None:
            assert value.spec == op.infer(*(x.spec for x in xs), *attributes), op.name
        return value


HOST = CheckedHost()


def call(op: Op, *arguments: Any) -> Any:
    """The result of an operator, or a tuple of its results, on arrays, then attributes in order: by its reference, or
    its decomposition."""
    split = len(arguments) - len(op.attributes)
    inputs = tuple(HostValue(x) if isinstance(x, np.ndarray) else x for x in arguments[:split])
    return HOST.apply(op, inputs, tuple(arguments[split:])).array


def host(name: str, *inputs: Any, **attributes: Any) -> Any:
    """The same by name, with attributes by keyword."""
    op = OPERATORS[name]
    return call(op, *inputs, *(attributes[a] for a in op.attributes))


WIDE = {dt.float16: np.float64, dt.bfloat16: np.float64, dt.float32: np.float64, dt.float64: np.longdouble}


def cases(*names: str, dtypes=(dt.float32, dt.float64), large=True):
    """Large ones are left out where the second source is a plain loop."""
    return [e for e in examples(*names) if e.dtype in dtypes and (large or not e.case.label.startswith("large"))]


def arguments(example, rng):
    """Inputs as the example has them, and its attributes by name."""
    values = example.case.attribute_values(example.op, example.dtype)
    return example.case.inputs(rng, example.dtype), dict(zip(example.op.attributes, values, strict=True))


def agree(example, rng, second) -> None:
    """`second` computes from wide inputs."""
    inputs, attributes = arguments(example, rng)
    wide = [x.astype(WIDE.get(x.dtype, x.dtype)) for x in inputs]
    with np.errstate(all="ignore"):
        expected = np.asarray(second(*wide, **attributes))
        result = call(example.op, *inputs, *attributes.values())
        assert_agree(example.op, result, expected.astype(result.dtype), str(example))
