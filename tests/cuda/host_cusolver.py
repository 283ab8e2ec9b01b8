"""cuSOLVER and cuBLAS' triangular solver that do what their manuals say, by LAPACK on memory of the driver of these
tests, when its streams come to it.  They refuse what the libraries refuse, and scratch memory that is too small."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

from nnc_core.base.dtype import complex64, complex128, float32, float64, is_complex, real_of
from tests.cuda.host_calls import checked, memory
from tests.cuda.host_driver import HostDriver

DTYPES = {"S": float32, "D": float64, "C": complex64, "Z": complex128}
SOLVER, BLAS = 81, 82
"""Handles."""
INVALID = 3
"""CUSOLVER_STATUS_INVALID_VALUE."""
DECLARED = {
    "potrf": "handle int int address int address int address",
    "potrf_bufferSize": "handle int int address int int*",
    "getrf": "handle int int address int address address address",
    "getrf_bufferSize": "handle int int address int int*",
    "getrs": "handle int int int address int address address int address",
    "geqrf": "handle int int address int address address int address",
    "geqrf_bufferSize": "handle int int address int int*",
    "orgqr": "handle int int int address int address address int address",
    "orgqr_bufferSize": "handle int int int address int address int*",
    "syevd": "handle int int int address int address address int address",
    "syevd_bufferSize": "handle int int int address int address int*",
    "gesvd": "handle char char int int address int address address int address int address int address address",
    "gesvd_bufferSize": "handle int int int*",
}
"""Kinds of arguments, by LAPACK's names for real numbers."""
TRSM = "handle int int int int int int number* address int address int"
OF_COMPLEX = {"ungqr": "orgqr", "heevd": "syevd"}
NAME = re.compile(r"cusolverDn([SDCZ])(\w+?)(_bufferSize)?$")
SCRATCH = 3
"""Numbers of scratch memory for each column, so that one size is not taken for another."""


class FakeCusolver:
    """The functions of cuSOLVER that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self.stream = driver, -1
        self.calls: list[str] = []
        self.wrong_argument = 0
        """Reported by the next routines."""

    def cusolverDnCreate(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = SOLVER
        return 0

    def cusolverDnSetStream(self, handle: Any, stream: Any) -> int:  # noqa: N802
        assert handle.value == SOLVER
        self.stream = stream.value or 0
        return 0

    def __getattr__(self, name: str) -> Any:
        found = NAME.fullmatch(name)
        if found is None:
            raise AttributeError(name)
        letter, routine, asked = found.groups()
        assert not (routine in ("ungqr", "heevd") and letter in "SD")
        assert not (routine in ("orgqr", "syevd") and letter in "CZ")
        routine, dtype = OF_COMPLEX.get(routine, routine), DTYPES[letter]

        def call(*arguments: Any) -> int:
            given = checked(name, DECLARED[routine + (asked or "")], arguments)
            assert given[0] == SOLVER
            return self._size(routine, given[1:]) if asked else self._run(routine, dtype, given[1:])

        return call

    def _size(self, routine: str, given: list[Any]) -> int:
        sizes = [x for x in given[:-1] if x]
        given[-1].value = SCRATCH * max(sizes)
        return 0

    def _run(self, routine: str, dtype: Any, given: list[Any]) -> int:
        self.calls.append(routine)
        work = getattr(self, f"_{routine}")(dtype, *given)
        if work is None:
            return INVALID
        *_, status = given

        def run() -> None:
            info = memory(status, 1, np.dtype(np.int32))
            info[0] = -self.wrong_argument if self.wrong_argument else work()

        self.driver._enqueue(self.stream, run)
        return 0

    def _scratch(self, address: int, elements: int, wanted: int, dtype: Any) -> bool:
        """Spoil scratch memory, which has to be there."""
        if elements < wanted:
            return False
        size = wanted * dtype.itemsize
        assert self.driver.holds(address) and self.driver.holds(address + size - 1)
        self.driver._enqueue(self.stream, lambda: memory(address, size, np.dtype(np.uint8)).fill(0xA5))
        return True

    def _potrf(self, dtype: Any, uplo: int, n: int, a: int, lda: int, work: int, elements: int, _: int) -> Any:
        if uplo != 0 or lda < n or not self._scratch(work, elements, SCRATCH * n, dtype):
            return None
        x = columns(a, n, n, lda, dtype)

        def run() -> int:
            c, info = lapack.get_lapack_funcs("potrf", dtype=dtype)(np.array(x), lower=1, clean=0)
            x[...] = np.where(np.tri(n, dtype=bool), c, x)
            return int(info)

        return run

    def _getrf(self, dtype: Any, m: int, n: int, a: int, lda: int, work: int, exchanges: int, _: int) -> Any:
        if lda < m or not self._scratch(work, SCRATCH * max(m, n), SCRATCH * max(m, n), dtype):
            return None
        x = columns(a, m, n, lda, dtype)

        def run() -> int:
            lu, piv, info = lapack.get_lapack_funcs("getrf", dtype=dtype)(np.array(x))
            x[...] = lu
            memory(exchanges, min(m, n), np.dtype(np.int32))[:] = piv + 1
            return int(info)

        return run

    def _getrs(self, dtype: Any, trans: int, n: int, nrhs: int, a: int, lda: int, exchanges: int, b: int, ldb: int,
               _: int) -> Any:
        if trans != 0 or lda < n or ldb < n:
            return None
        x, y = columns(a, n, n, lda, dtype), columns(b, n, nrhs, ldb, dtype)

        def run() -> int:
            piv = memory(exchanges, n, np.dtype(np.int32)) - 1
            found, info = lapack.get_lapack_funcs("getrs", dtype=dtype)(np.array(x), piv, np.array(y))
            y[...] = found
            return int(info)

        return run

    def _geqrf(self, dtype: Any, m: int, n: int, a: int, lda: int, tau: int, work: int, elements: int, _: int) -> Any:
        if lda < m or not self._scratch(work, elements, SCRATCH * max(m, n), dtype):
            return None
        x = columns(a, m, n, lda, dtype)

        def run() -> int:
            qr, t, _, info = lapack.get_lapack_funcs("geqrf", dtype=dtype)(np.array(x))
            x[...], memory(tau, min(m, n), dtype)[:] = qr, t
            return int(info)

        return run

    def _orgqr(self, dtype: Any, m: int, n: int, k: int, a: int, lda: int, tau: int, work: int, elements: int,
               _: int) -> Any:
        if lda < m or not m >= n >= k or not self._scratch(work, elements, SCRATCH * max(m, n), dtype):
            return None
        x = columns(a, m, n, lda, dtype)

        def run() -> int:
            name = "ungqr" if is_complex(dtype) else "orgqr"
            q, _, info = lapack.get_lapack_funcs(name, dtype=dtype)(np.array(x), memory(tau, k, dtype))
            x[...] = q
            return int(info)

        return run

    def _syevd(self, dtype: Any, jobz: int, uplo: int, n: int, a: int, lda: int, values: int, work: int, elements: int,
               _: int) -> Any:
        if jobz not in (0, 1) or uplo != 0 or lda < n or not self._scratch(work, elements, SCRATCH * n, dtype):
            return None
        x = columns(a, n, n, lda, dtype)

        def run() -> int:
            name = "heevd" if is_complex(dtype) else "syevd"
            w, v, info = lapack.get_lapack_funcs(name, dtype=dtype)(np.array(x), compute_v=jobz, lower=1)
            x[...], memory(values, n, real_of(dtype))[:] = v if jobz else np.nan, w
            return int(info)

        return run

    def _gesvd(self, dtype: Any, jobu: int, jobvt: int, m: int, n: int, a: int, lda: int, values: int, u: int, ldu: int,
               vt: int, ldvt: int, work: int, elements: int, rwork: int, _: int) -> Any:
        wanted = jobu == ord("S")
        if m < n or jobu != jobvt or chr(jobu) not in "NS" or lda < m or (wanted and (ldu < m or ldvt < n)):
            return None
        if rwork or not self._scratch(work, elements, SCRATCH * m, dtype):
            return None
        x = columns(a, m, n, lda, dtype)

        def run() -> int:
            left, s, right, info = lapack.get_lapack_funcs("gesvd", dtype=dtype)(np.array(x), wanted, 0)
            x[...], memory(values, n, real_of(dtype))[:] = np.nan, s
            if wanted:
                columns(u, m, n, ldu, dtype)[...], columns(vt, n, n, ldvt, dtype)[...] = left, right
            return int(info)

        return run


class FakeCublas:
    """The functions of cuBLAS that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self.stream = driver, -1
        self.calls = 0

    def cublasCreate_v2(self, handle: Any) -> int:  # noqa: N802
        handle._obj.value = BLAS
        return 0

    def cublasSetStream_v2(self, handle: Any, stream: Any) -> int:  # noqa: N802
        assert handle.value == BLAS
        self.stream = stream.value or 0
        return 0

    def __getattr__(self, name: str) -> Any:
        found = re.fullmatch("cublas([SDCZ])trsm_v2", name)
        if found is None:
            raise AttributeError(name)
        return lambda *arguments: self._trsm(DTYPES[found[1]], *checked(name, TRSM, arguments))

    def _trsm(self, dtype: Any, handle: int, side: int, uplo: int, trans: int, diag: int, m: int, n: int, alpha: Any,
              a: int, lda: int, b: int, ldb: int) -> int:
        parts = np.frombuffer(alpha, real_of(dtype))
        assert handle == BLAS and [*parts] == ([1, 0] if is_complex(dtype) else [1])
        if (side, trans) != (0, 0) or uplo not in (0, 1) or diag not in (0, 1) or lda < m or ldb < m:
            return INVALID
        x, y = columns(a, m, m, lda, dtype), columns(b, m, n, ldb, dtype)
        self.calls += 1

        def run() -> None:
            y[...] = blas.get_blas_funcs("trsm", dtype=dtype)(1, np.array(x), np.array(y), lower=uplo == 0, diag=diag)

        self.driver._enqueue(self.stream, run)
        return 0


def columns(address: int, rows: int, count: int, distance: int, dtype: Any) -> Any:
    """A matrix that lies column by column."""
    flat = memory(address, (count - 1) * distance + rows, dtype)
    return np.lib.stride_tricks.as_strided(flat, (rows, count), (dtype.itemsize, distance * dtype.itemsize))
