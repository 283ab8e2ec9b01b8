"""Scatters as machine code against core's reference, to the bit; mistakes; loops that write elements."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DTYPES, boolean, is_integer
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import NOTE_WORDS
from nnc_core.errors import NotSupportedError, OutOfRangeError
from nnc_core.operator import OPERATORS
from nnc_cpu.kinds import FunctionCode
from nnc_cpu.scattering.kernel import ScatterCompiler
from nnc_cpu.scattering.problem import scatter_of
from tests.cpu.machine_code.running import HOSTS, run
from tests.cpu.test_indexing import SHAPES

INDICES = ("int8", "int32", "int64", "uint8", "uint32", "uint64")
PLACES = {name: shapes for name, shapes in SHAPES.items() if 0 not in shapes[0]} | {
    "one element": ((70,), (), 0, 0), "one row": ((5, 33), (), 0, 0), "no index": ((4, 3), (0,), 0, 0)}
FEW = ("float32", "float64", "int16", "complex128", "float16", "bool")
Values = np.ndarray[Any, Any]
_KEPT = set[FunctionCode]()
"""Code that other tests use again; it goes with its last kernel otherwise."""


@cache
def compiler(host: str) -> ScatterCompiler:
    return ScatterCompiler(HOSTS[host])


def operands(place: str, dtype: str, index: str) -> tuple[list[Values], int, int]:
    rng = np.random.default_rng(len(place) + len(dtype))
    of_x, of_indices, axis, batch = PLACES[place]
    low = -of_x[axis] if index.startswith("i") else 0
    info = np.iinfo(index)
    indices = rng.integers(max(low, info.min), min(of_x[axis], int(info.max) + 1), of_indices).astype(index)
    of_updates = (*of_x[:axis], *of_indices[batch:], *of_x[axis + 1 :])
    x, updates = ((rng.standard_normal(shape) * 50 + 1j * rng.standard_normal(shape)) for shape in (of_x, of_updates))
    kind = DTYPES[dtype]
    if kind == boolean:
        x, updates = x.real > 0, updates.real > 0
    elif kind.kind != "c":
        x, updates = (abs(v.real) if kind.kind == "u" else v.real for v in (x, updates))
    return [np.array(x, kind), np.array(indices), np.array(updates, kind)], axis, batch


def scattered(host: str, arrays: list[Values], axis: int, mode: str, batch: int, inplace: bool,
              threads: int = 1) -> Values:
    """The result of machine code, between guard bytes."""
    layouts = [Layout.packed(a.shape, a.dtype) for a in arrays]
    command = Command("scatter", (axis, mode, batch), tuple(layouts), (layouts[0],))
    kernel = compiler(host).kernel(compiler(host).problem(command), threads)
    _KEPT.add(kernel.code)
    out = arrays[0].copy() if inplace else np.full_like(arrays[0], 1)
    note = np.zeros(NOTE_WORDS, np.int64)
    if inplace:
        kernel.bind([out.reshape(-1).view(np.uint8), *[a.reshape(-1).view(np.uint8) for a in arrays[1:]],
                     out.reshape(-1).view(np.uint8), note.view(np.uint8)])()
    else:
        run(kernel, [*arrays, out, note])
    return out


@pytest.mark.parametrize("mode", ["set", "add", "multiply"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("host", HOSTS)
def test_it_gives_the_bits_of_the_reference(host: str, place: str, mode: str) -> None:
    reference: Any = OPERATORS["scatter"].reference
    for dtype in DTYPES if host == "here" else FEW:
        arrays, axis, batch = operands(place, dtype, "int64")
        try:
            found = [scattered(host, arrays, axis, mode, batch, inplace, threads)
                     for inplace, threads in ((False, 1), (False, 3), (True, 1))]
        except NotSupportedError:
            assert mode != "set"
            assert not (is_integer(DTYPES[dtype]) and DTYPES[dtype].isbuiltin) and dtype not in ("float32", "float64")
            continue
        with np.errstate(all="ignore"):
            wanted = reference(*arrays, axis, mode, batch)
        for result in found:
            assert result.tobytes() == wanted.tobytes(), dtype


def test_every_index_type() -> None:
    reference: Any = OPERATORS["scatter"].reference
    for index in INDICES:
        arrays, axis, batch = operands("short rows", "float32", index)
        wanted = reference(*arrays, axis, "add", batch)
        assert scattered("here", arrays, axis, "add", batch, False).tobytes() == wanted.tobytes(), index


def test_what_lies_otherwise_is_left_to_numpy() -> None:
    def refused(x: Layout, indices: Layout, updates: Layout, mode: str = "add", axis: int = 0) -> str:
        with pytest.raises(NotSupportedError) as caught:
            scatter_of(Command("scatter", (axis, mode, 0), (x, indices, updates), (x,)), 32)
        return caught.value.message

    def packed(shape: tuple[int, ...], dtype: str = "float32") -> Layout:
        return Layout.packed(shape, DTYPES[dtype])

    x, indices, updates = packed((5, 4)), packed((3,), "int64"), packed((3, 4))
    assert "gaps" in refused(x._replace(strides=(32, 4)), indices, updates)
    assert "gaps" in refused(x, indices, updates._replace(strides=(32, 8)))
    assert "gaps" in refused(packed((2, 5, 4)), indices, Layout((2, 3, 4), DTYPES["float32"], 0, (96, 32, 8)), axis=1)
    assert "empty" in refused(packed((0, 4)), indices, updates)
    assert "max" in refused(x, indices, updates, "max")
    for mode, dtype in (("add", "float16"), ("add", "bool"), ("multiply", "complex64")):
        assert dtype in refused(packed((5, 4), dtype), indices, packed((3, 4), dtype), mode)


@pytest.mark.parametrize("mode", ["set", "add"])
def test_updates_of_one_number(mode: str) -> None:
    """As `x.at[i].add(1.0)` has them: one element for all of them, or one for a row."""
    x, indices = np.arange(60, dtype=np.float32).reshape(3, 20), np.array([[0, -1], [2, 2]])
    for strides in ((0, 0, 0), (8, 4, 0)):
        number = np.array([[3, 4], [5, 6]], np.float32)
        updates = np.lib.stride_tricks.as_strided(number, (2, 2, 20), strides)
        layouts = [Layout(a.shape, a.dtype, 0, a.strides) for a in (x, indices, updates)]
        problem = compiler("here").problem(Command("scatter", (0, mode, 0), tuple(layouts), (layouts[0],)))
        assert problem.kind.spread
        out, note = np.empty_like(x), np.zeros(NOTE_WORDS, np.int64)
        run(compiler("here").kernel(problem), [x, indices, number, out, note])
        reference: Any = OPERATORS["scatter"].reference
        np.testing.assert_array_equal(out, reference(x, indices, updates, 0, mode, 0))


# ---- in programs
def in_order(f: Any, *arguments: Any) -> None:
    assert "[in order;" in f.explain(*arguments)


@pytest.mark.parametrize("index", [7, -8, 100])
def test_an_index_out_of_range_leaves_everything_as_it_was(index: int) -> None:
    cell = nnc.Cell(nnc.arange(7.0))

    @nnc.jit
    def change(indices: nnc.Tensor) -> nnc.Tensor:
        cell.write(cell.read().at[indices].add(1.0))
        return cell.read()

    change(nnc.asarray([1, 2]))
    before = cell.read().numpy()
    with pytest.raises(OutOfRangeError, match=rf"scatter: index {index} is out of range.* length 7") as caught:
        change(nnc.asarray([3, index]))
    assert "test_scattering.py" in str(caught.value)
    np.testing.assert_array_equal(cell.read().numpy(), before)
    np.testing.assert_array_equal(change(nnc.asarray([0, 0])).numpy(), before + np.eye(7)[0] * 2)


def test_loops_write_elements() -> None:
    """A table that is filled by recursion."""

    @nnc.jit
    def fibonacci(table: Any) -> Any:
        return nnc.scan(lambda t, k: (t.at[k].set(t[k - 1] + t[k - 2]), k), table, nnc.arange(2, 40))[0]

    table = nnc.zeros(40, dtype="int64").at[1].set(1)
    expected = [0, 1]
    while len(expected) < 40:
        expected.append(expected[-1] + expected[-2])
    assert fibonacci(table).tolist() == expected
    in_order(fibonacci, table)


def test_rows_and_threads() -> None:
    """Sums of segments: large enough for threads, whose pieces have the same bits."""
    rng = np.random.default_rng(3)
    values, segments = rng.standard_normal((4000, 160)).astype(np.float32), rng.integers(0, 90, 4000)
    total = nnc.jit(lambda v, s: nnc.segment_sum(v, s, 90))
    wanted = np.zeros((90, 160), np.float32)
    np.add.at(wanted, segments, values)
    for threads in (1, 3):
        with nnc.config.using(threads=threads):
            np.testing.assert_array_equal(total(nnc.asarray(values), nnc.asarray(segments)).numpy(), wanted)
    in_order(total, nnc.asarray(values), nnc.asarray(segments))


def test_gradients_through_scatters_in_loops() -> None:
    def walk(x: Any, steps: Any) -> Any:
        return nnc.scan(lambda t, k: (t.at[k % 5].add(nnc.sin(t[(k + 1) % 5])), k), x, steps)[0]

    def written_out(x: nnc.Tensor) -> nnc.Tensor:
        for k in range(9):
            x = x.at[k % 5].add(nnc.sin(x[(k + 1) % 5]))
        return x

    x = nnc.asarray(np.linspace(-1, 2, 5))
    found = nnc.jit(nnc.grad(lambda x, s: nnc.sum(walk(x, s) ** 2)))(x, nnc.arange(9))
    wanted = nnc.grad(lambda x: nnc.sum(written_out(x) ** 2))(x)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
