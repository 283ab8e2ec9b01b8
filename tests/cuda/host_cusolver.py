"""cuSOLVER that does what its manual says, by LAPACK on memory of the driver of these tests, when its streams come to
it.  It refuses what the library refuses, and scratch memory that is too small."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy.linalg import lapack

from nnc_core.base.dtype import complex64, complex128, complex_of, float32, float64, is_complex, real_of
from tests.cuda.host_calls import checked, memory
from tests.cuda.host_driver import HostDriver
from tests.cuda.host_matrices import DTYPES, INVALID, SOLVER, columns, following, pointed

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
    "potrfBatched": "handle int int address int address int",
    "syevjBatched": "handle int int int address int address address int address settings int",
    "syevjBatched_bufferSize": "handle int int int address int address int* settings int",
    "gesvdjBatched": "handle int int int address int address address int address int address int address settings int",
    "gesvdjBatched_bufferSize": "handle int int int address int address address int address int int* settings int",
}
"""Kinds of arguments, by LAPACK's names for real numbers."""
GENERAL = {
    "cusolverDnXgeev": "handle settings int int long int address long int address int address long int address long "
                       "int address size buffer size address",
    "cusolverDnXgeev_bufferSize": "handle settings int int long int address long int address int address long int "
                                  "address long int size* size*",
    "cusolverDnCreateParams": "settings*", "cusolverDnCreateSyevjInfo": "settings*",
    "cusolverDnCreateGesvdjInfo": "settings*"}
"""The same of functions that have one name for all dtypes."""
OF_COMPLEX = {"ungqr": "orgqr", "heevd": "syevd", "heevj": "syevj"}
NAME = re.compile(r"cusolverDn([SDCZ])(\w+?)(Batched)?(_bufferSize)?$")
SETTINGS = {"params": 91, "syevj": 92, "gesvdj": 93}
TYPES = {0: float32, 1: float64, 4: complex64, 5: complex128}
ON_HOST = 1000
SCRATCH = 3
"""Numbers of scratch memory for each column, so that one size is not taken for another."""


class FakeCusolver:
    """The functions of cuSOLVER that are called."""

    def __init__(self, driver: HostDriver) -> None:
        self.driver, self.stream = driver, -1
        self.calls: list[str] = []
        self.old = False
        """Older than CUDA 12.6."""
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
        if name in GENERAL:
            if self.old and "Xgeev" in name:
                raise AttributeError(name)
            return lambda *arguments: getattr(self, f"_{name}")(*checked(name, GENERAL[name], arguments))
        found = NAME.fullmatch(name)
        if found is None:
            raise AttributeError(name)
        letter, routine, many, asked = found.groups()
        assert not (routine in OF_COMPLEX and letter in "SD")
        assert not (routine in OF_COMPLEX.values() and letter in "CZ")
        routine, dtype = OF_COMPLEX.get(routine, routine) + (many or ""), DTYPES[letter]

        def call(*arguments: Any) -> int:
            given = checked(name, DECLARED[routine + (asked or "")], arguments)
            assert given[0] == SOLVER
            if not asked:
                return self._run(routine, dtype, given[1:])
            return self._size_of_many(given[1:]) if many else self._size(routine, given[1:])

        return call

    def _cusolverDnCreateParams(self, made: Any) -> int:  # noqa: N802
        made.value = SETTINGS["params"]
        return 0

    def _cusolverDnCreateSyevjInfo(self, made: Any) -> int:  # noqa: N802
        made.value = SETTINGS["syevj"]
        return 0

    def _cusolverDnCreateGesvdjInfo(self, made: Any) -> int:  # noqa: N802
        made.value = SETTINGS["gesvdj"]
        return 0

    def _size(self, routine: str, given: list[Any]) -> int:
        sizes = [x for x in given[:-1] if x]
        given[-1].value = SCRATCH * max(sizes)
        return 0

    def _size_of_many(self, given: list[Any]) -> int:
        *sizes, found, settings, times = given
        assert settings in SETTINGS.values()
        found.value = SCRATCH * max(sizes) * times
        return 0

    def _cusolverDnXgeev_bufferSize(self, handle: int, settings: int, *given: Any) -> int:  # noqa: N802
        _, _, n, dtype, *_, on_device, on_host = given
        assert (handle, settings) == (SOLVER, SETTINGS["params"])
        on_device.value, on_host.value = SCRATCH * n * TYPES[dtype].itemsize, ON_HOST
        return 0

    def _cusolverDnXgeev(self, handle: int, settings: int, left: int, right: int, n: int, own: int, a: int,  # noqa: N802
                         lda: int, of_values: int, values: int, of_left: int, vl: int, ldvl: int, of_right: int,
                         vr: int, ldvr: int, wide: int, work: int, size: int, on_host: Any, host_size: int,
                         status: int) -> int:
        dtype, of = TYPES[own], TYPES[of_values]
        assert (handle, settings) == (SOLVER, SETTINGS["params"])
        if left != 0 or min(lda, ldvr) < n or not own == of_left == of_right == wide or of != complex_of(dtype):
            return INVALID
        if host_size < ON_HOST or len(on_host) < ON_HOST:
            return INVALID
        if not self._scratch(work, size // dtype.itemsize, SCRATCH * n, dtype):
            return INVALID
        self.calls.append("geev")
        x = columns(a, n, n, lda, dtype)

        def run() -> None:
            on_host[:ON_HOST] = b"?" * ON_HOST
            found = lapack.get_lapack_funcs("geev", dtype=dtype)(np.array(x), compute_vl=0, compute_vr=right)
            w = found[0] if is_complex(dtype) else found[0] + 1j * found[1]
            x[...], memory(values, n, of)[:] = np.nan, w
            if right:
                columns(vr, n, n, ldvr, dtype)[...] = found[-2]
            memory(status, 1, np.dtype(np.int32))[0] = found[-1]

        self.driver._enqueue(self.stream, run)
        return 0

    def _run(self, routine: str, dtype: Any, given: list[Any]) -> int:
        self.calls.append(routine)
        work = getattr(self, f"_{routine}")(dtype, *given)
        if work is None:
            return INVALID
        status, times = _status_of(routine, given)

        def run() -> None:
            memory(status, times, np.dtype(np.int32))[:] = -self.wrong_argument if self.wrong_argument else work()

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


    # ---- many matrices
    def _potrfBatched(self, dtype: Any, uplo: int, n: int, a: int, lda: int, _: int, times: int) -> Any:  # noqa: N802
        if uplo != 0 or lda < n:
            return None

        def run() -> list[int]:
            found = []
            for x in pointed(a, times, n, n, lda, dtype):
                c, info = lapack.get_lapack_funcs("potrf", dtype=dtype)(np.array(x), lower=1, clean=0)
                x[...] = np.where(np.tri(n, dtype=bool), c, x)
                found.append(info)
            return found

        return run

    def _syevjBatched(self, dtype: Any, jobz: int, uplo: int, n: int, a: int, lda: int, values: int,  # noqa: N802
                      work: int, elements: int, _: int, settings: int, times: int) -> Any:
        assert settings == SETTINGS["syevj"]
        if jobz not in (0, 1) or uplo != 0 or lda < n:
            return None
        if not self._scratch(work, elements, SCRATCH * n * times, dtype):
            return None

        def run() -> list[int]:
            name = "heevd" if is_complex(dtype) else "syevd"
            found = []
            for number, x in enumerate(following(a, times, n, n, lda, dtype)):
                w, v, info = lapack.get_lapack_funcs(name, dtype=dtype)(np.array(x), compute_v=jobz, lower=1)
                real = real_of(dtype)
                x[...], memory(values + number * n * real.itemsize, n, real)[:] = v if jobz else np.nan, w
                found.append(info)
            return found

        return run

    def _gesvdjBatched(self, dtype: Any, jobz: int, m: int, n: int, a: int, lda: int, values: int,  # noqa: N802
                       u: int, ldu: int, v: int, ldv: int, work: int, elements: int, _: int, settings: int,
                       times: int) -> Any:
        assert settings == SETTINGS["gesvdj"]
        if max(m, n) > 32 or jobz not in (0, 1) or lda < m or (jobz and (ldu < m or ldv < n)):
            return None
        if not self._scratch(work, elements, SCRATCH * m * times, dtype):
            return None

        def run() -> list[int]:
            k, real, found = min(m, n), real_of(dtype), []
            for number, x in enumerate(following(a, times, m, n, lda, dtype)):
                left, s, right, info = lapack.get_lapack_funcs("gesvd", dtype=dtype)(np.array(x), jobz, 1)
                x[...], memory(values + number * k * real.itemsize, k, real)[:] = np.nan, s
                if jobz:
                    list(following(u, times, m, m, ldu, dtype))[number][...] = left
                    list(following(v, times, n, n, ldv, dtype))[number][...] = right.conj().T
                found.append(info)
            return found

        return run


def _status_of(routine: str, given: list[Any]) -> tuple[int, int]:
    """The address of statuses, and how many there are."""
    if not routine.endswith("Batched"):
        return given[-1], 1
    return given[-2 if routine == "potrfBatched" else -3], given[-1]
