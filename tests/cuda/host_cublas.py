"""Routines of cuBLAS for triangles and stacks that do what their manual says, by LAPACK on memory of the driver of
these tests, when its streams come to it.  They refuse what the library refuses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from nnc_core.base.dtype import is_complex, real_of
from tests.cuda.host_calls import checked, memory
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_matrices import BLAS, DTYPES, INVALID, columns, pointed

OF_BLAS = {
    "trsm_v2": "handle int int int int int int number* address int address int",
    "trsmBatched": "handle int int int int int int number* address int address int int",
    "getrfBatched": "handle int address int address address int",
    "getrsBatched": "handle int int int address int address address int int* int",
    "geqrfBatched": "handle int int address int address int* int"}


class FakeCublas:
    """The functions of cuBLAS that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self.stream = driver, -1
        self.calls: list[str] = []
        self.wrong_argument = 0

    def cublasCreate_v2(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = BLAS
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:  # noqa: N802
        assert handle.value == BLAS
        self.stream = stream.value or 0
        return 0

    def __getattr__(self, name: str) -> Any:
        found = re.fullmatch(r"cublas([SDCZ])(\w+)", name)
        if found is None or found[2] not in OF_BLAS:
            raise AttributeError(name)

        def call(*arguments: Any) -> int:
            handle, *given = checked(name, OF_BLAS[found[2]], arguments)
            assert handle == BLAS
            run = getattr(self, f"_{found[2]}")(DTYPES[found[1]], *given)
            if run is None:
                return INVALID
            self.calls.append(found[2])
            self.driver._enqueue(self.stream, run)
            return 0

        return call

    def _trsm_v2(self, dtype: Any, *given: Any) -> Any:
        return self._triangles(dtype, *given, places=lambda at, *of: [columns(at, *of)])

    def _trsmBatched(self, dtype: Any, *given: Any) -> Any:  # noqa: N802
        *given, times = given  # type: ignore[assignment]
        return self._triangles(dtype, *given, places=lambda at, *of: pointed(at, times, *of))

    def _triangles(self, dtype: Any, side: int, uplo: int, trans: int, diag: int, m: int, n: int, alpha: Any,
                   a: int, lda: int, b: int, ldb: int, places: Any) -> Any:
        parts = np.frombuffer(alpha, real_of(dtype))
        assert [*parts] == ([1, 0] if is_complex(dtype) else [1])
        if (side, trans) != (0, 0) or uplo not in (0, 1) or diag not in (0, 1) or lda < m or ldb < m:
            return None

        def run() -> None:
            solve = blas.get_blas_funcs("trsm", dtype=dtype)
            for x, y in zip(places(a, m, m, lda, dtype), places(b, m, n, ldb, dtype), strict=True):
                y[...] = solve(1, np.array(x), np.array(y), lower=uplo == 0, diag=diag)

        return run

    def _getrfBatched(self, dtype: Any, n: int, a: int, lda: int, exchanges: int, status: int, times: int) -> Any:  # noqa: N802
        def run() -> None:
            for number, x in enumerate(pointed(a, times, n, n, lda, dtype)):
                lu, piv, info = lapack.get_lapack_funcs("getrf", dtype=dtype)(np.array(x))
                x[...] = lu
                memory(exchanges + 4 * n * number, n, np.dtype(np.int32))[:] = piv + 1
                memory(status + 4 * number, 1, np.dtype(np.int32))[0] = info

        return None if lda < n else run

    def _getrsBatched(self, dtype: Any, trans: int, n: int, nrhs: int, a: int, lda: int, exchanges: int,  # noqa: N802
                      b: int, ldb: int, wrong: Any, times: int) -> Any:
        wrong.value = -self.wrong_argument
        if trans != 0 or min(lda, ldb) < n:
            return None

        def run() -> None:
            places = zip(pointed(a, times, n, n, lda, dtype), pointed(b, times, n, nrhs, ldb, dtype), strict=True)
            for number, (x, y) in enumerate(places):
                piv = memory(exchanges + 4 * n * number, n, np.dtype(np.int32)) - 1
                y[...], _ = lapack.get_lapack_funcs("getrs", dtype=dtype)(np.array(x), piv, np.array(y))

        return run

    def _geqrfBatched(self, dtype: Any, m: int, n: int, a: int, lda: int, tau: int, wrong: Any, times: int) -> Any:  # noqa: N802
        wrong.value = -self.wrong_argument

        def run() -> None:
            factors = pointed(tau, times, min(m, n), 1, m, dtype)
            for x, t in zip(pointed(a, times, m, n, lda, dtype), factors, strict=True):
                x[...], t[:, 0], _, _ = lapack.get_lapack_funcs("geqrf", dtype=dtype)(np.array(x))

        return None if lda < m else run
