"""Many nests given to `compile_all` become what `compile` makes of each."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.command import Command
from nnc_core.base.dtype import float32, int32
from nnc_core.base.errors import NotSupportedError, OutOfRangeError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import NOTE_WORDS, LoopNest
from nnc_core.device import Device, Kernel
from nnc_core.engine.candidates import loop_nest
from nnc_core.engine.in_place_nest import inputs_read_where_written
from nnc_core.operator import OPERATORS
from nnc_core.operator.loops import NotedCommand
from nnc_plugins.conformance.running import get, put


def nest(name: str, inputs: int, count: int, *attributes: object) -> LoopNest:
    """The nest of an operator of vectors of one length."""
    rows = Layout.packed((count,), float32)
    out = Layout.packed((inputs * count,) if name == "concat" else (count,), float32)
    made = loop_nest(OPERATORS[name], Command(name, attributes, (rows,) * inputs, (out,)))
    assert made is not None
    return made


def refused_by_many() -> LoopNest:
    """A nest of more buffers than drivers take."""
    return nest("concat", 1000, 2, 0)


def compiled(device: Device, wanted: LoopNest) -> bool:
    try:
        device.compile(wanted)
    except NotSupportedError:
        return False
    return True


def test_kernels_and_refusals_are_in_order(device: Device) -> None:
    """Nests that are given twice and refusals in the middle included; the errors are returned, not raised."""
    unary = [nest(name, 1, 33) for name in ("negative", "tanh", "sign", "abs")]
    wanted = [nest("add", 2, 19), unary[0], refused_by_many(), *unary, refused_by_many(), nest("add", 2, 19)]
    found = device.compile_all(wanted)
    assert len(found) == len(wanted)
    assert all(isinstance(kernel, Kernel | NotSupportedError) for kernel in found)
    assert [isinstance(kernel, Kernel) for kernel in found] == [compiled(device, each) for each in wanted]


def test_each_kernel_computes_what_its_nest_says(device: Device) -> None:
    """Nests of one operator that differ in their size have kernels of their own."""
    x = np.linspace(-2, 2, 40).astype(np.float32)
    cases = [("negative", 17), ("sign", 40), ("negative", 40), ("abs", 3), ("negative", 3), ("sign", 40)]
    kernels = device.compile_all([nest(name, 1, count) for name, count in cases])
    for (name, count), kernel in zip(cases, kernels, strict=True):
        if isinstance(kernel, NotSupportedError):
            pytest.skip(f"no loop nests here: {kernel.message}")
        target = put(device, np.full(40, 9, np.float32))
        kernel.bind([put(device, x), target])()
        reference = OPERATORS[name].reference
        assert reference is not None
        expected = np.concatenate([reference(x[:count]), np.full(40 - count, 9, np.float32)])
        np.testing.assert_array_equal(get(device, target, x), expected)


@pytest.mark.parametrize(("name", "inputs", "attributes"), [
    ("add", 2, ()), ("multiply", 2, ()), ("tanh", 1, ()), ("cumulative_sum", 1, (0, False)),
])
@pytest.mark.parametrize("count", [3, 70, 5000])
def test_an_input_that_is_read_just_where_it_is_written_may_be_overwritten(
        device: Device, name: str, inputs: int, attributes: tuple[object, ...], count: int) -> None:
    """The engine gives a kernel such an input in the output's memory, as the nest says by its accesses."""
    wanted = nest(name, inputs, count, *attributes)
    rows = Layout.packed((count,), float32)
    command = Command(name, attributes, (rows,) * inputs, (rows,))
    if not compiled(device, wanted):
        pytest.skip("no loop nests here")
    hosts = [np.linspace(-1, k + 1, count).astype(np.float32) for k in range(inputs)]
    apart = put(device, np.zeros(count, np.float32))
    kernel = device.compile(wanted)
    kernel.bind([*[put(device, x) for x in hosts], apart])()
    consent = inputs_read_where_written(wanted, command)
    assert consent == tuple(range(inputs))
    for i in consent:
        buffers = [put(device, x) for x in hosts]
        kernel.bind([*buffers, buffers[i]])()
        np.testing.assert_array_equal(get(device, buffers[i], hosts[i]), get(device, apart, hosts[i]))


@pytest.mark.parametrize("count", [3, 70, 5000])
def test_an_index_out_of_range_is_noted_and_raised(device: Device, count: int) -> None:
    """The launch says which, whatever lies in the room for notes before it, and the next launch goes on."""
    if "notes" not in device.spec.features:
        pytest.skip("kernels note nothing here")
    layouts = [Layout.packed((n,), dtype) for n, dtype in ((50, float32), (count, int32), (count, float32))]
    command = NotedCommand("take", (0, 0), tuple(layouts[:2]), (layouts[2],))
    wanted = loop_nest(OPERATORS["take"], command)
    assert wanted.notes
    x, indices = np.arange(50, dtype=np.float32), np.arange(count, dtype=np.int32) % 100 - 50
    given, target = put(device, indices), put(device, np.zeros(count, np.float32))
    buffers = [put(device, x), given, target, put(device, np.full(NOTE_WORDS, -1, np.int64))]
    launch = device.compile(wanted).bind(buffers)
    launch()
    np.testing.assert_array_equal(get(device, target, x[indices]), x[indices])
    for wrong in (50, -51):
        bad = indices.copy()
        bad[count // 2 :: 7] = wrong
        bad[count // 2 + 1 :: 5] = 1 << 20
        device.upload(bad, given).wait()
        with pytest.raises(OutOfRangeError) as caught:
            launch()
        assert caught.value.noted == (0, wrong)
    device.upload(indices, given).wait()
    launch()
    np.testing.assert_array_equal(get(device, target, x[indices]), x[indices])


def test_no_nests(device: Device) -> None:
    assert device.compile_all([]) == []
