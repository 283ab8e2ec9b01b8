"""Every loop nest, run by the interpreter, gives what the reference gives: for packed, strided and repeated inputs,
and for outputs that lie between other things, which stay as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import is_complex
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.codegen.interpret import interpret
from nnc_core.operator import OPERATORS
from nnc_core.operator.decompositions import Decompositions
from nnc_core.operator.eigen import Eigen
from nnc_core.operator.equations import Equations
from nnc_core.operator.fft import Fourier
from nnc_core.operator.loops import elementwise_nest
from nnc_core.operator.solvers import Solvers
from nnc_plugins.conformance.agreement import assert_agree
from nnc_plugins.conformance.cases import CASES, Example, examples
from tests.operator.host import call

SENTINEL = 0xA5
LOWERED = [name for name, op in OPERATORS.items() if op.scalar is not None or op.nest is not None]
ON_THE_HOST = {method.op.name for family in (Solvers, Decompositions, Eigen, Equations, Fourier)
               for method in vars(family).values() if hasattr(method, "op")}
each_lowered = pytest.mark.parametrize("name", LOWERED)


def packed(array: Any) -> Layout:
    return Layout.packed(array.shape, array.dtype)


def spread(array: Any) -> Layout:
    """Axes in reverse order with gaps between elements, behind some others."""
    strides, step = [], array.dtype.itemsize * 2
    for length in array.shape:
        strides.append(step)
        step *= length + 1
    return Layout(array.shape, array.dtype, 3 * array.dtype.itemsize, tuple(strides))


def repeated(array: Any) -> Layout:
    """The first element of each axis of even number stands for all."""
    layout = packed(array)
    strides = [0 if axis % 2 == 0 else step for axis, step in enumerate(layout.strides)]
    return layout._replace(strides=tuple(strides))


def window_on(buffer: Any, layout: Layout) -> Any:
    """The array of that layout, as a view of the bytes."""
    rest = buffer[layout.offset :] if 0 not in layout.shape else buffer[:0]
    stored = np.uint8 if layout.dtype == np.bool_ else layout.dtype
    elements = rest[: len(rest) // layout.dtype.itemsize * layout.dtype.itemsize].view(stored)
    return np.ndarray(layout.shape, layout.dtype, elements, 0, layout.strides)  # as_strided knows NumPy's dtypes only


def stored(array: Any, layout: Layout) -> Any:
    buffer = np.full(layout.extent, SENTINEL, np.uint8)
    window_on(buffer, layout)[...] = array
    return buffer


def read(buffer: Any, layout: Layout) -> Any:
    return window_on(buffer, layout).astype(layout.dtype)


def nest_of(op: Any, command: Command) -> Any:
    return op.nest(command) if op.nest is not None else elementwise_nest(op.scalar, command)


def run_nest(example: Example, rng: Any, inputs_as: Any, output_as: Any) -> None:
    op, case, dtype = example
    arrays, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
    layouts = [inputs_as(x) for x in arrays]
    buffers = [stored(x, layout) for x, layout in zip(arrays, layouts, strict=True)]
    seen = [read(b, layout) for b, layout in zip(buffers, layouts, strict=True)]
    expected = call(op, *seen, *attributes)
    out = output_as(expected)
    target = np.full(out.extent, SENTINEL, np.uint8)
    try:
        nest = nest_of(op, Command(op.name, attributes, tuple(layouts), (out,)))
    except NotSupportedError:
        assert is_complex(dtype), f"{example}: no nest for real numbers"
        return
    before = [b.copy() for b in buffers]
    interpret(nest, [*buffers, target])
    assert_agree(op, read(target, out), expected, str(example), example.dtype)
    window_on(target, out).view(np.dtype((np.void, out.dtype.itemsize)))[...] = bytes([SENTINEL] * out.dtype.itemsize)
    assert (target == SENTINEL).all(), f"{example}: the nest wrote beside its output"
    assert all((a == b).all() for a, b in zip(buffers, before, strict=True)), f"{example}: wrote to an input"


def test_what_has_no_nest() -> None:
    """Transfers and scatters run otherwise, linear algebra and transforms on the host; composites are decomposed."""
    without = {name for name, op in OPERATORS.items() if name not in LOWERED and not op.decompose and not op.host}
    assert without - ON_THE_HOST == {"transfer", "scatter"}


@each_lowered
def test_packed(name, rng) -> None:
    for example in examples(name):
        run_nest(example, rng, packed, packed)


def small(name: str) -> list[Example]:
    """Without the large cases, which other layouts add nothing to."""
    skipped = ("large", "wide", "extremes", "subnormal")
    return [e for e in examples(name) if not e.case.label.startswith(skipped) and e.dtype.name in MIXED]


MIXED = ("bool", "int8", "int32", "uint64", "bfloat16", "float32", "float64", "uint32")


@each_lowered
def test_strided_inputs(name, rng) -> None:
    for example in small(name):
        run_nest(example, rng, spread, packed)


@each_lowered
def test_strided_outputs(name, rng) -> None:
    for example in small(name):
        run_nest(example, rng, packed, spread)


# The planner packs one side of a reshape, which its nest relies on.
@pytest.mark.parametrize("name", [name for name in LOWERED if name != "reshape"])
def test_strided_inputs_and_outputs(name, rng) -> None:
    for example in small(name):
        run_nest(example, rng, spread, spread)


@each_lowered
def test_repeated_inputs(name, rng) -> None:
    for example in small(name):
        run_nest(example, rng, repeated, packed)


@pytest.mark.parametrize("name", [name for name, op in OPERATORS.items() if op.inplace and op.scalar is not None])
def test_offered_inputs_may_be_overwritten(name, rng) -> None:
    """The nest of an elementwise operator reads each element before it writes it."""
    op, case = OPERATORS[name], CASES[name][0]
    dtype = case.dtypes[-1]
    for place in op.inplace:
        arrays, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
        expected = call(op, *arrays, *attributes)
        if (arrays[place].shape, arrays[place].dtype) != (expected.shape, expected.dtype):
            continue
        layouts = tuple(packed(x) for x in arrays)
        buffers = [stored(x, layout) for x, layout in zip(arrays, layouts, strict=True)]
        interpret(nest_of(op, Command(name, attributes, layouts, (packed(expected),))), [*buffers, buffers[place]])
        assert_agree(op, read(buffers[place], packed(expected)), expected, f"over input {place}")
