"""What only the interpreter does: chunks, bytes as they come, and errors."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest

from nnc_core.base.dtype import boolean, float32, float64, int32, int64
from nnc_core.base.errors import NotSupportedError, OutOfRangeError
from nnc_core.codegen import interpret
from tests.codegen.cases import structure_cases
from tests.codegen.nests import Case, Writer, as_bytes, at, elementwise

SMALL = [case for case in structure_cases() if sum(a.size for a in case.arrays) < 2000]
interpreter = importlib.import_module("nnc_core.codegen.interpret")


@pytest.mark.parametrize("chunk", [1, 7])
@pytest.mark.parametrize("case", SMALL, ids=[case.name for case in SMALL])
def test_chunks_do_not_matter(case: Case, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "CHUNK", chunk)
    arrays = case.copies()
    interpret(case.nest, [as_bytes(array) for array in arrays])
    case.check(arrays)


@pytest.mark.parametrize("case", SMALL, ids=[case.name for case in SMALL])
def test_unaligned_buffers(case: Case) -> None:
    """Each buffer begins one byte after an aligned address, and ends with half an element."""
    buffers = []
    for array in case.arrays:
        room = np.zeros(array.nbytes + 1 + array.itemsize // 2, np.uint8)
        room[1 : 1 + array.nbytes] = as_bytes(array)
        buffers.append(room[1:])
    interpret(case.nest, buffers)
    case.check([b[: a.nbytes].view(a.dtype).reshape(a.shape) for a, b in zip(case.arrays, buffers, strict=True)])


def test_arguments_that_share_memory_in_place() -> None:
    x = np.arange(5, dtype=np.float32)
    interpret(elementwise("double", "add", float32, [x, x], float32), [as_bytes(x)] * 3)
    assert x.tolist() == [0, 2, 4, 6, 8]


def test_no_warning_of_floating_point() -> None:
    x, zero, result = np.array([1.0, -1.0, 0.0]), np.zeros(3), np.zeros(3)
    nest = elementwise("quotient", "divide", float64, [x, zero], float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interpret(nest, [as_bytes(array) for array in (x, zero, result)])
    np.testing.assert_array_equal(result, [np.inf, -np.inf, np.nan])


def test_a_subscript_outside_the_buffer_is_an_error() -> None:
    n = Writer("reader", (4,), [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 1}, 1, offset=1)), at({0: 1}, 1))
    result = np.zeros(4, np.float32)
    with pytest.raises(OutOfRangeError, match=r"reader: load of element 4 of argument 0, whose buffer holds 4"):
        interpret(n.build(), [as_bytes(np.zeros(4, np.float32)), as_bytes(result)])
    assert not result.any()


def test_an_unchecked_index_outside_the_buffer_is_an_error() -> None:
    n = Writer("taker", (2,), [(float32, False), (int64, False), (float32, True)])
    n.store(2, n.load(0, at({}, 1, gather=n.load(1, at({0: 1}, 1)))), at({0: 1}, 1))
    x, result = np.arange(3, dtype=np.float32), np.zeros(2, np.float32)
    with pytest.raises(IndexError, match="element -1"):
        interpret(n.build(), [as_bytes(a) for a in (x, np.array([2, -1]), result)])
    interpret(n.build(), [as_bytes(a) for a in (x, np.array([2, 1]), result)])
    assert result.tolist() == [2, 1]


@pytest.mark.parametrize(("operation", "dtype"), [("add", boolean), ("divide", int32), ("shift_left", float32)])
def test_an_operation_that_makes_no_sense(operation: str, dtype: np.dtype) -> None:
    x = np.ones(2, dtype)
    nest = elementwise("senseless", operation, dtype, [x, x], dtype)
    with pytest.raises(NotSupportedError, match=f"{operation} on {dtype}"):
        interpret(nest, [as_bytes(x), as_bytes(x), as_bytes(x.copy())])


def test_every_argument_needs_a_buffer() -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(ValueError, match="shorter"):
        interpret(elementwise("sum", "add", float32, [x, x], float32), [as_bytes(x)] * 2)
