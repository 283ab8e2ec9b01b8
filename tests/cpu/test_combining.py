"""Scatters that combine, by machine code and by NumPy: the same bits, in the order of the updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import COMPLEX, float32
from nnc_core.base.layout import Layout
from nnc_core.codegen import interpret
from nnc_core.errors import OutOfRangeError
from nnc_cpu.combining import COMBINED, combining, combining_nest
from nnc_cpu.indexing import combine
from tests.codegen.nests import as_bytes
from tests.cpu.machine_code.running import HOSTS, kernels
from tests.cpu.test_indexing import SHAPES
from tests.tensors.faults import fails

DTYPES = ("float32", "float64", "int8", "int32", "uint64")
WORKING = {name: shapes for name, shapes in SHAPES.items() if 0 not in shapes[0]}


def problem(name: str, dtype: str, index: str = "int64") -> tuple[Any, Any, Any, int, int]:
    rng = np.random.default_rng(len(name))
    of_x, of_indices, axis, batch = WORKING[name]
    x = rng.uniform(-3, 3, of_x).astype(dtype)
    indices = rng.integers(-of_x[axis], of_x[axis], of_indices).astype(index)
    updates = rng.uniform(-2, 3, (*of_x[:axis], *of_indices[batch:], *of_x[axis + 1 :])).astype(dtype)
    return x, indices, updates, axis, batch


def layout(array: Any) -> Layout:
    return Layout(array.shape, array.dtype, 0, array.strides)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("mode", COMBINED)
@pytest.mark.parametrize("name", WORKING)
def test_machine_code_gives_the_bits_of_numpy(name: str, mode: str, host: str) -> None:
    for dtype in DTYPES:
        x, indices, updates, axis, batch = problem(name, dtype, "int32" if dtype == "int32" else "int64")
        wanted, found = x.copy(), x.copy()
        with np.errstate(over="ignore"):
            combine(wanted, indices, updates, axis, mode, batch)
        nest = combining_nest(layout(indices), layout(updates), layout(found), axis, mode, batch)
        kernels([nest], host)[0].bind([indices, updates, found])()
        assert found.tobytes() == wanted.tobytes(), dtype


@pytest.mark.parametrize("mode", COMBINED)
def test_the_interpreter_agrees(mode: str) -> None:
    x, indices, updates, axis, batch = problem("numbers", "float32")
    wanted, found = x.copy(), x.copy()
    combine(wanted, indices, updates, axis, mode, batch)
    nest = combining_nest(layout(indices), layout(updates), layout(found), axis, mode, batch)
    interpret(nest, [as_bytes(array) for array in (indices, updates, found)])
    assert found.tobytes() == wanted.tobytes()


def test_arrays_with_gaps() -> None:
    room, source = np.zeros((9, 40), np.float32), np.ones((5, 60), np.float32)
    out, updates, indices = room[1::2, ::2], source[:, ::3], np.array([3, -1, 3, 0, 2])
    nest = combining_nest(layout(indices), layout(updates), layout(out), 0, "add", 0)
    kernels([nest], "here")[0].bind([indices, updates, out])()
    assert out[:, 0].tolist() == [1, 0, 1, 3] and room.sum() == 5 * 20


def test_what_numpy_keeps() -> None:
    def kernel(mode: str, dtype: Any, x: tuple[int, ...] = (5, 3), count: int = 4) -> Any:
        layouts = [Layout.packed(shape, d) for shape, d in ((x, dtype), ((count,), np.dtype("int64")),
                                                            ((count, *x[1:]), dtype))]
        return combining(Command("scatter", (0, mode, 0), tuple(layouts), (layouts[0],)), combine)

    assert kernel("add", float32) is not None
    assert kernel("set", float32) is None and kernel("min", float32) is None
    assert kernel("add", float32, (5, 0)) is None and kernel("add", float32, count=0) is None
    assert all(kernel("multiply", dtype) is None for dtype in COMPLEX)


@pytest.mark.parametrize("at_once", [True, False])
def test_gradients_of_embeddings(at_once: bool) -> None:
    """Repeated indices too; a wrong one changes nothing."""
    table = np.linspace(-1, 1, 7 * 20, dtype=np.float32).reshape(7, 20)
    places = np.array([[0, 6, 3], [-1, 3, 3]])
    with nnc.use_device("cpu:0"), config.using(compile_at_once=at_once):
        slope = nnc.jit(nnc.grad(lambda w, i: nnc.sum(nnc.square(nnc.embedding(w, i)))))
        wanted = np.zeros_like(table)
        np.add.at(wanted, places, 2 * table[places])
        for _ in range(3):
            np.testing.assert_allclose(slope(nnc.asarray(table), nnc.asarray(places)).numpy(), wanted, rtol=1e-6)
        added = nnc.jit(lambda x, i: nnc.index_add(x, 0, i, nnc.ones((2, 20))))
        with fails(OutOfRangeError, "index 7 is out of range for an axis of length 7"):
            added(nnc.asarray(table), nnc.asarray([0, 7]))
