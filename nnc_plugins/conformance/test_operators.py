"""Every declared operator against its NumPy reference, run on its own and as a compiled graph, by a kernel of the
device wherever there is a loop nest; and both ways against each other, to the bit, under `config.deterministic`.

One test of either kind for each operator and dtype.  It runs a few of the cases, drawn with the seed that the summary
prints; the rest of them is marked slow, and so is all of the dtypes that --nnc-one-dtype-in leaves out.  One more test
for each operator reads operands that are not packed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import ALL_DTYPES, DType
from nnc_core.operator import OPERATORS
from nnc_core.stacks import Stack
from nnc_core.type import Attributes, Op, TupleSpec, is_static
from nnc_plugins.conformance.agreement import assert_agree, assert_same_bits
from nnc_plugins.conformance.case import Array, Case
from nnc_plugins.conformance.cases import CASES
from nnc_plugins.conformance.conftest import NoDeviceError, chosen_seed, opened
from nnc_plugins.conformance.coverage import can_be_viewed
from nnc_plugins.conformance.host import expected
from nnc_plugins.conformance.report import ERROR
from nnc_plugins.conformance.running import (
    applied,
    called,
    compiles_slowly,
    downloaded,
    eager,
    has_room,
    host_fallback,
    one_operator_graph,
    spec_of,
    viewed,
)

Record = Callable[[str, object], None]

SAMPLE, SAMPLE_COMPILED = 6, 2
"""Cases of a sample; where each needs a kernel compiled, which takes long, there are fewer.  Both ways are held to each
other by the first case."""
EVERYDAY = frozenset(("bool", "int32", "float32", "complex64"))
"""Dtypes in which both ways are held to each other where kernels take long to compile; the others are marked slow."""
ELSEWHERE = frozenset(("transfer",))
"""Operators with a test file of their own."""


SAMPLED, VIEWED = ("name", "dtype", "share"), ("name", "dtype", "case")


def test_every_operator_has_cases() -> None:
    assert set(CASES) == set(OPERATORS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    arguments = next((a for a in (SAMPLED, VIEWED) if a[-1] in metafunc.fixturenames), None)
    if arguments is None:
        return
    try:
        device = opened(metafunc.config).device
    except NoDeviceError:
        return metafunc.parametrize(arguments, [])  # the run ends when all is collected
    seed, known = chosen_seed(metafunc.config), device.spec.dtypes
    if arguments is VIEWED:
        views = [one_to_view(name, seed, known) for name in sorted(CASES.keys() - ELSEWHERE)]
        found = [pytest.param(*one, id=f"{one[0]}-{one[1]}") for one in views if one is not None]
        return metafunc.parametrize(VIEWED, found)
    against_reference = "how" in metafunc.fixturenames
    size = 1 if not against_reference else SAMPLE_COMPILED if compiles_slowly(device) else SAMPLE
    one_in = metafunc.config.getoption("--nnc-one-dtype-in")
    found = []
    for name in sorted(CASES.keys() - ELSEWHERE):
        dtypes = {dtype for case in CASES[name] for dtype in case.dtypes if dtype.name in device.spec.dtypes}
        drawn = drawn_dtypes(name, [d for d in ALL_DTYPES.values() if d in dtypes], seed, one_in)
        for dtype in (d for d in ALL_DTYPES.values() if d in dtypes):
            sample, rest = split(name, dtype, seed, size)
            later = not against_reference and compiles_slowly(device) and dtype.name not in EVERYDAY
            marks = [pytest.mark.slow] if later or dtype not in drawn else []
            found.append(pytest.param(name, dtype, sample, id=f"{name}-{dtype}", marks=marks))
            if rest:
                found.append(pytest.param(name, dtype, rest, id=f"{name}-{dtype}-rest", marks=pytest.mark.slow))
    metafunc.parametrize(SAMPLED, found)


def drawn_dtypes(name: str, dtypes: Sequence[DType], seed: int, one_in: int) -> set[DType]:
    """float32, where it is among them, and one of so many of the others, at least one."""
    others = [d for d in dtypes if d.name != "float32"]
    order = np.random.default_rng([seed, crc32(name.encode()), one_in]).permutation(len(others))
    return {d for d in dtypes if d.name == "float32"} | {others[k] for k in order[: -(-len(others) // one_in)]}


def split(name: str, dtype: DType, seed: int, size: int) -> tuple[list[Case], list[Case]]:
    """The first case and some drawn by the seed; the others."""
    cases = [case for case in CASES[name] if dtype in case.dtypes]
    drawn = np.random.default_rng([seed, crc32(f"{name} {dtype}".encode())]).permutation(len(cases) - 1) + 1
    chosen = {0, *(int(k) for k in drawn[: size - 1])}
    return ([c for k, c in enumerate(cases) if k in chosen], [c for k, c in enumerate(cases) if k not in chosen])


def one_to_view(name: str, seed: int, known: Collection[str]) -> tuple[str, DType, Case] | None:
    """A case that has an operand which may be a view, drawn by the seed, for one of the known dtypes."""
    drawn = np.random.default_rng([seed, crc32(name.encode())])
    pairs = [(case, dtype) for case in CASES[name] for dtype in case.dtypes if dtype.name in known]
    for k in drawn.permutation(len(pairs)):
        case, dtype = pairs[k]
        if can_be_viewed(case.inputs(np.random.default_rng(0), dtype)):
            return name, dtype, case
    return None


@pytest.mark.usefixtures("compiled_ahead")
@pytest.mark.parametrize("how", ["eager", "compiled"])
def test_agrees_with_the_reference(stack: Stack, rng: np.random.Generator, record_property: Record, name: str,
                                   dtype: DType, share: Sequence[Case], how: str) -> None:
    op, faults, part = OPERATORS[name], [], 0.0
    for case in share:
        inputs, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
        wanted = expected(op, inputs, attributes)
        results = wanted if isinstance(wanted, tuple) else (wanted,)
        if any(x.dtype.name not in stack.device.spec.dtypes for x in (*inputs, *results)):
            continue  # a cast to what the device has not
        if not has_room(stack.device, (*inputs, *results)):
            continue
        result = _result(stack, op, inputs, attributes, how)
        refusals = host_fallback(stack, op, inputs, attributes)
        if refusals is not None:
            faults.append(f"{case.label} {dtype}: runs on the host, though it has a loop nest: {refusals}")
        try:
            part = max(part, assert_agree(op, result, wanted, f"{case.label} {dtype}", dtype))
        except AssertionError as fault:
            faults.append(str(fault))
    record_property(ERROR, (name, part))
    assert not faults, "\n".join(faults)


@pytest.mark.usefixtures("compiled_ahead")
def test_gives_the_same_bits_eager_and_compiled(stack: Stack, rng: np.random.Generator, name: str, dtype: DType,
                                                share: Sequence[Case]) -> None:
    """Under `config.deterministic`, when eager code runs the commands of graphs."""
    op = OPERATORS[name]
    for case in share:
        inputs, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
        made = op.infer(*map(spec_of, inputs), *attributes)  # the stack refuses dtypes that the device has not
        results = made.parts if isinstance(made, TupleSpec) else (made,)
        if all(x.dtype.name in stack.device.spec.dtypes for x in results) and has_room(
                stack.device, (*inputs, *(x for x in results if is_static(x.shape)))):
            with config.using(deterministic=True):
                once, again = (_result(stack, op, inputs, attributes, how) for how in ("eager", "compiled"))
            assert_same_bits(once, again, f"{op.name} {case.label} {dtype}")


@pytest.mark.usefixtures("compiled_ahead")
def test_reads_views(stack: Stack, rng: np.random.Generator, record_property: Record, name: str, dtype: DType,
                     case: Case) -> None:
    """Operands are every other element of larger arrays, their axes in reverse."""
    op = OPERATORS[name]
    inputs, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
    wanted = expected(op, inputs, attributes)
    results = wanted if isinstance(wanted, tuple) else (wanted,)
    if any(x.dtype.name not in stack.device.spec.dtypes for x in (*inputs, *results)):
        pytest.skip("the device has not all dtypes of this case, and says so")
    if not has_room(stack.device, (*inputs, *results)):
        pytest.skip("the device allocates too little at once for this case, and says so")
    found = downloaded(stack, applied(stack, op, [viewed(stack, x) for x in inputs], attributes))
    record_property(ERROR, (name, assert_agree(op, found, wanted, f"{case.label} {dtype}", dtype)))


def _result(stack: Stack, op: Op, inputs: tuple[Array, ...], attributes: Attributes, how: str) -> Any:
    if how == "eager":
        return eager(stack, op, inputs, attributes)
    run = stack.engine.compile(one_operator_graph(stack, op, inputs, attributes))
    results = called(run, {f"x{i}": x for i, x in enumerate(inputs)})
    return results["y"] if "y" in results else tuple(results.values())
