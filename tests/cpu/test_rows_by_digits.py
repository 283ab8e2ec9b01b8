"""The order of rows by machine code against core's reference: every kind of element, equal ones, and tasks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DTYPES
from nnc_core.base.layout import Layout
from nnc_core.errors import NotSupportedError
from nnc_core.operator.ordering import argsort
from nnc_cpu.backends import MOST_COUNTED, OrderBackend
from nnc_cpu.positions import FEW, MANY
from nnc_cpu.sorting.kernel import PIECES, RowCompiler, divided, workspace
from nnc_cpu.sorting.rows import rows_of
from tests.cpu.machine_code.running import HOSTS, run
from tests.cpu.native.runs import loops_need_no_python, repeated, same_bits

KINDS = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
Values = np.ndarray[Any, Any]


@cache
def compiler(host: str) -> RowCompiler:
    return RowCompiler(HOSTS[host])


def elements(dtype: str, shape: tuple[int, ...], few: bool = False) -> Values:
    """Numbers of all sizes, or few different ones, with zeros of either sign and NaN of many forms among floats."""
    rng = np.random.default_rng(len(dtype) + sum(shape))
    size = DTYPES[dtype].itemsize if dtype[0] == "f" else 8
    bits = rng.integers(0, 2 ** (8 * size), shape, dtype=f"u{size}")
    if few:
        return ((bits % 5).astype(np.int64) - (2 if dtype[0] in "if" else 0)).astype(DTYPES[dtype])
    if dtype == "bool":
        return bits % 2 == 1
    if dtype[0] != "f":
        return bits.astype(DTYPES[dtype])
    x = bits.view(dtype)
    flat, words = x.reshape(-1), bits.reshape(-1)
    words[2::9] %= 200  # below normal numbers
    words[4::19] = np.array(np.nan, dtype).view(words.dtype) + words[4::19] % 99
    flat[::7], flat[3::11], flat[5::13], flat[6::17] = 0.0, -0.0, np.inf, -np.inf
    return x


def command_of(x: Values, axis: int, descending: bool, layout: Layout | None = None) -> Command:
    out = Layout.packed(x.shape, np.dtype(np.int64))
    return Command("argsort", (axis, descending), (layout or Layout.packed(x.shape, x.dtype),), (out,))


def order(host: str, x: Values, axis: int, descending: bool) -> Values:
    """The result of machine code, between guard bytes."""
    command = command_of(x, axis, descending)
    out, room = np.full(x.shape, -1, np.int64), np.full(workspace(command) // 8, -1, np.int64)
    run(compiler(host).kernel(command), [x.copy(), out, room])
    return out


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
def test_every_kind(dtype: str, descending: bool, few: bool) -> None:
    x = elements(dtype, (3, 300, 2), few)
    for axis in (0, 1, 2):
        np.testing.assert_array_equal(order("here", x, axis, descending), argsort(x, axis, descending))


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("shape", [(1,), (255,), (257,), (20_000,), (40, 3000), (33, 1, 700)])
def test_every_host_and_length(host: str, shape: tuple[int, ...]) -> None:
    x = elements("float32", shape)
    np.testing.assert_array_equal(order(host, x, len(shape) - 1, False), argsort(x, len(shape) - 1, False))


def test_many_rows_are_several_tasks() -> None:
    shapes = ((50, 5000), (2, 9))
    many, few = (divided(rows_of(command_of(np.zeros(shape, np.int8), 1, False))).numbers for shape in shapes)
    assert -(-50 // many.each) <= PIECES and many.each < 50 and few.each == 2


def test_what_is_left_to_others() -> None:
    half, gaps = np.zeros(3000, np.float16), Layout((300,), np.dtype(np.float32), 0, (8,))
    for command in (command_of(half, 0, False), command_of(np.zeros(300, np.float32), 0, False, gaps),
                    command_of(np.zeros((0, 300), np.float32), 1, False)):
        with pytest.raises(NotSupportedError):
            rows_of(command)
        assert OrderBackend().refuse(command)
    few = np.zeros(int(MOST_COUNTED**0.5), np.float32)
    assert OrderBackend().refuse(command_of(few, 0, False)) == "counting is quicker"
    for long in (np.zeros(MANY, np.float32), np.zeros(FEW, np.int64)):
        assert OrderBackend().refuse(command_of(long, 0, False)) == "the rows are long"
        assert OrderBackend().refuse(command_of(long[1:], 0, False)) is None
    assert OrderBackend().refuse(command_of(np.zeros(300, np.float32), 0, False)) is None


@pytest.mark.parametrize("descending", [False, True])
def test_compiled_and_eager_orders_are_the_same(descending: bool) -> None:
    for dtype in ("float32", "float64", "int64", "int16"):
        x = nnc.asarray(elements(dtype, (4, 500)), device="cpu:0")
        wanted = argsort(x.numpy(), 1, descending)
        for config in ({}, {"deterministic": True}):
            with nnc.config.using(**config):
                f = nnc.jit(lambda x: nnc.argsort(x, axis=1, descending=descending))
                np.testing.assert_array_equal(f(x).numpy(), wanted)
                np.testing.assert_array_equal(nnc.argsort(x, axis=1, descending=descending).numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_keys_are_sorted_one_after_the_other(dtype: str) -> None:
    keys = elements(dtype, (3, 4, 400), few=True)
    for axis in (0, 1):
        wanted = np.lexsort(list(keys), axis)
        assert (nnc.jit(lambda k, axis=axis: nnc.lexsort(k, axis=axis))(nnc.asarray(keys)).numpy() == wanted).all()


ROUNDS: dict[str, Callable[[Any], Any]] = {
    "argsort": lambda c: c * 1.01 + nnc.argsort(c, axis=1), "lexsort": lambda c: c * 1.01 + nnc.lexsort(c, axis=0),
    "descending": lambda c: c * 1.01 + nnc.argsort(c, axis=1, descending=True)}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_of_loops_need_no_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loops_need_no_python(ROUNDS[name], elements("float32", (2, 300)), monkeypatch)


@pytest.mark.parametrize("name", ROUNDS)
def test_rounds_give_what_python_gives(name: str) -> None:
    x = elements("int16", (2, 300)).astype(np.float32)
    same_bits(lambda a: repeated(3, ROUNDS[name], a), [x], [x + 1])
