"""A cuBLASLt that does what its manual says, by NumPy: descriptions with attributes of given sizes, matrices column by
column, algorithms for what they were chosen for alone.  It computes on memory of the driver of these tests, when its
streams come to it, and refuses what the library refuses."""

from __future__ import annotations

import ctypes
from itertools import count
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, float64, int8, int32
from nnc_cuda.cublaslt import (
    ALIGNMENTS,
    AS_IT_IS,
    BATCH_STEP,
    BATCHES,
    BIAS,
    BIAS_POINTER,
    EPILOGUE,
    IN_FLOAT32,
    IN_FLOAT64,
    IN_INT32,
    IN_TF32,
    IN_WIDE,
    MOST_WORKSPACE,
    NOT_SUPPORTED,
    PLAIN,
    REDUCTIONS,
    RELU,
    TURN_A,
    TURN_B,
    TURNED,
    TYPES,
)
from tests.cuda.host_driver import HostDriver

DTYPES = {number: dtype for dtype, number in TYPES.items()}
SIZES = {"MatmulDesc": {TURN_A: 4, TURN_B: 4, EPILOGUE: 4, BIAS_POINTER: 8},
         "MatrixLayout": {BATCHES: 4, BATCH_STEP: 8},
         "MatmulPreference": {MOST_WORKSPACE: 8, REDUCTIONS: 4} | dict.fromkeys(ALIGNMENTS, 4)}
"""Bytes of the attributes that may be set."""
INVALID = 7
WORKSPACE = 4096
"""Bytes that its algorithms want."""


class FakeCublasLt:
    """The functions of cuBLASLt that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self._numbers = driver, count(100)
        self.described: dict[int, dict[Any, Any]] = {}
        """Descriptions that there are, by their handles."""
        self._chosen: dict[int, Any] = {}
        """What algorithms were chosen for."""
        self.asked = 0
        """How often an algorithm was."""
        self.calls: list[tuple[int, int]] = []
        """Compute types and epilogues of products."""
        self.drops_nan = False

    def cublasLtCreate(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = 77
        return 0

    def __getattr__(self, name: str) -> Any:
        """What is created, set and destroyed in the same way, whatever it describes."""
        for kind, sizes in SIZES.items():
            if name == f"cublasLt{kind}Create":
                return self._create
            if name == f"cublasLt{kind}Destroy":
                return lambda handle: 0 if self.described.pop(handle.value) else INVALID
            if name == f"cublasLt{kind}SetAttribute":
                return lambda handle, attribute, value, size: self._set(sizes, handle, attribute, value, size)
        raise AttributeError(name)

    def _create(self, handle: Any, *arguments: Any) -> int:
        handle._obj.value = next(self._numbers)
        self.described[handle._obj.value] = {"made": tuple([argument.value for argument in arguments])}
        return 0

    def _set(self, sizes: dict[int, int], handle: Any, attribute: Any, value: Any, size: Any) -> int:
        if sizes.get(attribute.value) != size.value or ctypes.sizeof(value._obj) != size.value:
            return INVALID
        self.described[handle.value][attribute.value] = value._obj.value or 0
        return 0

    def cublasLtMatmulAlgoGetHeuristic(self, handle: Any, product: Any, a: Any, b: Any, c: Any, d: Any,  # noqa: N802
                                       wanted: Any, most: Any, found: Any, number: Any) -> int:
        assert handle.value == 77 and most.value == 1
        self.asked += 1
        preferred = self.described[wanted.value]
        assert preferred[REDUCTIONS] == IN_WIDE, "halves would be added as halves"
        asked = self._asked(product, a, b, c, d)
        if not _is_known(asked):
            number._obj.value = 0
            return NOT_SUPPORTED
        number._obj.value, name = 1, next(self._numbers)
        found._obj.algorithm[0], found._obj.state = name, 0
        found._obj.workspace = min(WORKSPACE, preferred[MOST_WORKSPACE])
        self._chosen[name] = asked, [preferred[one] for one in ALIGNMENTS], found._obj.workspace
        return 0

    def _asked(self, *handles: Any) -> list[dict[Any, Any]]:
        """Descriptions of a product as they are now; of a bias, its alignment."""
        product, *matrices = [dict(self.described[handle.value]) for handle in handles]
        pointer = product.pop(BIAS_POINTER, 0)
        assert bool(pointer) == bool(product[EPILOGUE] & BIAS)
        return [product, *matrices]

    def cublasLtMatmul(self, handle: Any, product: Any, scale: Any, a: Any, a_place: Any, b: Any,  # noqa: N802
                       b_place: Any, beta: Any, c: Any, c_place: Any, d: Any, d_place: Any, algorithm: Any,
                       workspace: Any, nbytes: Any, stream: Any) -> int:
        asked, alignments, wanted = self._chosen[algorithm._obj[0]]
        now = self._asked(product, a_place, b_place, c_place, d_place)
        addresses = [x.value for x in (a, b, c, d)]
        if handle.value != 77 or now != asked or nbytes.value < wanted or (wanted and not self._has(workspace, wanted)):
            return INVALID
        if any([address % alignment for address, alignment in zip(addresses, alignments, strict=True)]):
            return INVALID
        factors, bias = (scale._obj.value, beta._obj.value), self.described[product.value].get(BIAS_POINTER, 0)
        self.calls.append((now[0]["made"][0], now[0][EPILOGUE]))
        self.driver._enqueue(stream.value or 0, lambda: self._multiply(now, factors, addresses, bias))
        return 0

    def _has(self, workspace: Any, nbytes: int) -> bool:
        return all([self.driver.holds(workspace.value + place) for place in (0, nbytes - 1)])

    def _multiply(self, described: list[dict[Any, Any]], factors: tuple[float, float], addresses: list[int],
                  bias: int) -> None:
        product, *matrices = described
        wide = {float64: np.float64, int8: np.int32}.get(_dtype(matrices[0]), np.float32)
        for number in range(matrices[3].get(BATCHES, 1)):
            x, y, c, d = (_matrix(one, address, number) for one, address in zip(matrices, addresses, strict=True))
            x, y = (one.T if product[way] == TURNED else one for one, way in ((x, TURN_A), (y, TURN_B)))
            sums = wide(factors[0]) * (x.astype(wide) @ y.astype(wide))
            if factors[1]:
                sums += c.astype(wide)
            if product[EPILOGUE] & BIAS:
                sums += _vector(bias, len(sums), _dtype(matrices[3])).astype(wide)[:, None]
            if product[EPILOGUE] & RELU:
                sums = (np.fmax if self.drops_nan else np.maximum)(sums, wide(0))
            d[...] = sums.astype(d.dtype)


def _is_known(asked: list[dict[Any, Any]]) -> bool:
    """Tell whether there is an algorithm; whether sizes fit is the caller's duty, and checked."""
    product, a, b, c, d = asked
    compute, scale = product["made"]
    dtype, epilogue = _dtype(a), product[EPILOGUE]
    assert dtype == _dtype(b) and _dtype(c) == _dtype(d) and epilogue in (PLAIN, RELU, BIAS, RELU | BIAS)
    assert compute in {float64: (IN_FLOAT64,), int8: (IN_INT32,)}.get(dtype, (IN_FLOAT32, IN_TF32))
    assert DTYPES[scale] == {float64: float64, int8: int32}.get(dtype, DTYPES[0])
    (m, k), (n, last) = _shape(a, product[TURN_A]), _shape(b, product[TURN_B])[::-1]
    assert k == last and _shape(c, AS_IT_IS) == _shape(d, AS_IT_IS) == (m, n), "sizes do not fit"
    assert len({one.get(BATCHES, 1) for one in (a, b, c, d)}) == 1
    for one in (a, b, c, d):
        assert one["made"][3] >= max(1, one["made"][1]), "columns overlap"
    if dtype == int8:  # as its table of supported products says
        return bool(product[TURN_A] == TURNED and product[TURN_B] == AS_IT_IS and epilogue == PLAIN
                    and not any([one["made"][3] % 4 for one in (a, b, d)]) and m % 4 == 0)
    return dtype != float64 or epilogue == PLAIN


def _dtype(matrix: dict[Any, Any]) -> DType:
    return DTYPES[matrix["made"][0]]


def _shape(matrix: dict[Any, Any], turn: int) -> tuple[int, int]:
    rows, columns = matrix["made"][1:3]
    return (columns, rows) if turn == TURNED else (rows, columns)


def _matrix(described: dict[Any, Any], address: int, number: int) -> Any:
    """One of the matrices that lie column by column at an address."""
    dtype, (_, rows, columns, distance) = _dtype(described), described["made"]
    begin = address + number * described.get(BATCH_STEP, 0) * dtype.itemsize
    memory = _vector(begin, (columns - 1) * distance + rows, dtype)
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (dtype.itemsize, distance * dtype.itemsize))


def _vector(address: int, length: int, dtype: DType) -> Any:
    return np.frombuffer((ctypes.c_char * (length * dtype.itemsize)).from_address(address), dtype)
