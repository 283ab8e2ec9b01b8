"""Every operator: eager kernel, bound kernel and reference agree, whatever the strides, in place or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.base.errors import LinAlgError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.type import TupleSpec
from nnc_cpu import convolution
from nnc_cpu.backends import MAKERS, routine_for
from nnc_cpu.device import CpuDevice
from nnc_cpu.eager import EAGER
from nnc_cpu.reference import by_reference as by_reference_routine
from nnc_cpu.silence import quiet_launch
from nnc_plugins.conformance.agreement import assert_agree
from tests.cpu.cases import Case, admitted
from tests.cpu.harness import bits, by_kernel, by_reference, parts_of, spec_of

Array = np.ndarray[Any, Any]
ON_THE_HOST = {name for name, op in OPERATORS.items() if op.host}
"""By nature: what they give depends on the data, so that they cannot be bound to arrays of another count."""
NAMES = sorted(({name for name, op in OPERATORS.items() if op.reference is not None} | set(MAKERS)) - ON_THE_HOST)
DTYPES = (dt.float32, dt.float64, dt.bfloat16, dt.float16, dt.int32, dt.uint8, dt.boolean, dt.uint64, dt.complex64)
ELSEWHERE = {"transfer"}
"""Not run by the device's eager kernels."""


@pytest.fixture(scope="module")
def device() -> CpuDevice:
    return CpuDevice()


def _everything() -> Iterator[Any]:
    for name in NAMES:
        for dtype in DTYPES:
            if admitted(name, dtype):
                yield pytest.param(name, dtype, id=f"{name}-{dtype}")


EVERYTHING = list(_everything())


def test_every_operator_has_a_kernel_and_is_tried() -> None:
    assert [name for name in NAMES if name not in MAKERS] == []
    assert [name for name in NAMES if not any(admitted(name, dtype) for dtype in DTYPES)] == []


@pytest.mark.parametrize(("name", "dtype"), EVERYTHING)
def test_eager_and_bound_kernels_give_what_the_reference_gives(device: CpuDevice, name: str, dtype: DType) -> None:
    for case in admitted(name, dtype):
        specs = parts_of(spec_of(name, case.arrays, case.attributes))
        bound = by_kernel(device, name, case.arrays, case.attributes)
        assert_agree(OPERATORS[name], bound, by_reference(name, case.arrays, case.attributes), name)
        for made in (bound, eagerly(name, case.arrays, case.attributes)):
            if made is not NotImplemented:
                found = made if isinstance(made, tuple) else (made,)
                assert [(x.shape, x.dtype) for x in found] == [(s.shape, s.dtype) for s in specs]
                assert bits(made) == bits(bound)


def eagerly(name: str, arrays: Sequence[Array], attributes: Sequence[Any]) -> Any:
    """NotImplemented where there is no eager kernel; of operators with several results a tuple."""
    if name in ELSEWHERE:
        return NotImplemented
    made = EAGER[name](*arrays, *attributes)
    assert isinstance(made, tuple) == isinstance(spec_of(name, arrays, attributes), TupleSpec)
    return made


def gapped(x: Array) -> Array:
    """The same values with gaps between them along every axis, away from the start of the memory."""
    room = np.empty([2 * n + 1 for n in x.shape], x.dtype)[(*[slice(1, None, 2)] * x.ndim, ...)]
    room[...] = x
    return room


def reversed_axes(x: Array) -> Array:
    return np.array(x, order="F")


def repeated(x: Array) -> Array:
    """Along the first axis that is longer than 1, the first slice again and again."""
    axis = next((i for i, n in enumerate(x.shape) if n > 1), None)
    return x if axis is None else np.broadcast_to(x.take([0], axis), x.shape)


@pytest.mark.parametrize("strided", [gapped, reversed_axes, repeated])
@pytest.mark.parametrize(("name", "dtype"), EVERYTHING)
def test_strides_change_no_bit(device: CpuDevice, name: str, dtype: DType, strided: Any) -> None:
    for case in admitted(name, dtype):
        arrays = [strided(x) for x in case.arrays]
        try:
            wanted = by_kernel(device, name, [np.array(x, order="C") for x in arrays], case.attributes)
        except LinAlgError:  # repeated rows make a singular matrix
            assert strided is repeated
            with pytest.raises(LinAlgError):
                by_kernel(device, name, arrays, case.attributes)
            continue
        assert bits(by_kernel(device, name, arrays, case.attributes)) == bits(wanted)
        made = eagerly(name, arrays, case.attributes)
        assert made is NotImplemented or bits(made) == bits(wanted)


def spread_out(packed: Layout) -> Layout:
    """Every element three places from the next, some places into the storage."""
    return Layout(packed.shape, packed.dtype, 5 * packed.dtype.itemsize, tuple(3 * s for s in packed.strides))


def turned(packed: Layout) -> Layout:
    step, strides = packed.dtype.itemsize, []
    for n in packed.shape:
        strides.append(step)
        step *= n
    return packed._replace(strides=tuple(strides))


@pytest.mark.parametrize("layout", [spread_out, turned])
@pytest.mark.parametrize(("name", "dtype"), EVERYTHING)
def test_outputs_may_have_any_strides(device: CpuDevice, name: str, dtype: DType, layout: Any) -> None:
    for case in admitted(name, dtype):
        wanted = by_kernel(device, name, case.arrays, case.attributes)
        assert bits(by_kernel(device, name, case.arrays, case.attributes, layout)) == bits(wanted)


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATORS[n].inplace])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float16, dt.int32, dt.boolean], ids=str)
def test_results_may_take_over_the_memory_that_the_kernel_consents_to(device: CpuDevice, name: str,
                                                                      dtype: DType) -> None:
    *_, backend = device.backends(name)
    for case in admitted(name, dtype):
        wanted = by_kernel(device, name, case.arrays, case.attributes)
        layout = spec_of(name, case.arrays, case.attributes).layout()
        for i in consent(device, name, case, layout):
            assert bits(by_kernel(device, name, case.arrays, case.attributes, onto=i)) == bits(wanted), (i, case)
    assert backend.name == "numpy"


def consent(device: CpuDevice, name: str, case: Case, out: Layout) -> tuple[int, ...]:
    command = Command(name, case.attributes, tuple(map(device.layout_of, case.arrays)), (out,))
    return device.backends(name)[-1].inplace(command, OPERATORS[name].inplace)


@pytest.mark.parametrize("name", ["conv", "conv_input_gradient", "conv_kernel_gradient"])
def test_convolutions_in_parts_are_those_in_one(device: CpuDevice, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wholes = [by_kernel(device, name, c.arrays, c.attributes) for c in admitted(name, dt.float64)]
    monkeypatch.setattr(convolution, "_AT_ONCE", 1)
    routine_for.cache_clear()
    parts = [by_kernel(device, name, c.arrays, c.attributes) for c in admitted(name, dt.float64)]
    routine_for.cache_clear()
    for whole, part in zip(wholes, parts, strict=True):
        np.testing.assert_allclose(part, whole, rtol=1e-13, atol=1e-11)


def test_consent_is_given_where_it_costs_nothing_and_never_for_another_shape(device: CpuDevice) -> None:
    x, y = np.zeros((3, 4), np.float32), np.zeros(4, np.float32)
    out = Layout.packed((3, 4), dt.float32)
    assert consent(device, "add", Case((x, x)), out) == (0, 1)
    assert consent(device, "add", Case((x, y)), out) == (0,)
    assert consent(device, "where", Case((x > 0, x, x)), out) == (1, 2)
    assert consent(device, "clip", Case((x, y, y)), out) == (0,)
    assert consent(device, "scatter", Case((x, np.zeros(1, int), x[:1]), (0, "add", 0)), out) == (0,)


def test_where_in_place_of_both_choices_is_that_choice(device: CpuDevice) -> None:
    layout, truth = Layout.packed((4,), dt.float32), Layout.packed((4,), dt.boolean)
    command = Command("where", (), (truth, layout, layout), (layout,))
    (backend,) = device.backends("where")
    condition, x, room = device.allocate(4), device.allocate(16), device.allocate(backend.workspace(command))
    device.upload(np.array([True, False, True, False]), condition)
    device.upload(np.arange(4, dtype=np.float32), x)
    backend.prepare(command).bind([condition, x, x, x, room])()
    assert device.array(x, layout).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
def test_claimed_composites_are_their_decomposition_to_the_bit(device: CpuDevice, name: str, dtype: DType) -> None:
    for case in admitted(name, dtype):
        claimed = device.eager[name](*case.arrays, *case.attributes)
        assert bits(claimed) == bits(by_reference(name, case.arrays, case.attributes))


@pytest.mark.parametrize("name", ["add", "matmul", "pad", "take", "max_pool", "filled"])
def test_the_reference_serves_where_there_is_no_kernel(device: CpuDevice, name: str) -> None:
    reference = OPERATORS[name].reference
    assert reference is not None
    for case in admitted(name, dt.float32):
        layouts = tuple(map(device.layout_of, case.arrays))
        out = spec_of(name, case.arrays, case.attributes).layout()
        routine = by_reference_routine(reference)(Command(name, case.attributes, layouts, (out,)))
        result = np.empty(out.shape, out.dtype)
        scratch = routine.scratch_in(np.empty(routine.workspace, np.uint8))
        quiet_launch(routine.bind(*case.arrays, result, *scratch))()
        assert bits(result) == bits(by_reference(name, case.arrays, case.attributes))
