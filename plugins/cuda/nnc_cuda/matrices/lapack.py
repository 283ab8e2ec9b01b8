"""The interface of a vendor's routines of linear algebra: matrices lie column by column."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple, Protocol

from nnc_core.base.dtype import DType


class LapackRoutine(NamedTuple):
    """A routine by LAPACK's name, without the letter of the dtype, and its sizes.  Columns follow each other without
    gaps.  Addresses are given in this order:

    - potrf: a (rows x rows), whose lower triangle becomes L
    - getrf: a (rows x columns), which becomes L and U; the exchanges of rows, counted from 1, int32
    - getrs: a (rows x rows) and exchanges from getrf; b (rows x columns), which becomes the solution
    - geqrf: a (rows x columns), which becomes R and reflectors; as many factors as the smaller side has
    - orgqr: a (rows x columns), whose reflectors become Q; factors from geqrf, as many as there are columns
    - syevd: a (rows x rows), whose lower triangle is read and which becomes eigenvectors if they are wanted;
      eigenvalues, which are real
    - gesvd: a (rows x columns, no fewer rows than columns), which is overwritten; singular values, which are real; U
      (rows x columns) and Vh (columns x columns), which are left alone unless vectors are wanted
    - trsm: a triangle (rows x rows); b (rows x columns), which becomes the solution
    - geev: a (rows x rows), which is overwritten; eigenvalues, which are complex; eigenvectors (rows x rows), which are
      left alone unless they are wanted, of real a as LAPACK has them: the real part of the first of a pair, and the
      imaginary one

    For many matrices of one size there are all but orgqr and geev; getrf takes square ones then, gesvd no more than 32
    rows, and leaves all columns of U (rows x rows), and V in place of Vh.
    """

    name: str
    dtype: DType
    rows: int
    columns: int
    vectors: bool = False
    """Of syevd, gesvd, geev."""
    lower: bool = True
    """Of trsm: the triangle that is read."""
    unit: bool = False
    """Of trsm: the diagonal is ones, and not read."""
    times: int = 0
    """Matrices of one call, whose arrays lie one behind the other; those that `stacks.POINTED` numbers lie anywhere,
    and an array of their addresses is given.  0: one matrix."""


class Lapack(Protocol):
    """The routines on one device."""

    lock: Lock
    """Held by whoever enqueues routines, until they are done: they share the library's own memory."""

    def scratch(self, routine: LapackRoutine) -> int:
        """Bytes of memory that a routine wants.  CudaError if the library refuses it."""
        ...

    def enqueue(self, routine: LapackRoutine, arrays: Sequence[int], scratch: int, status: int, stream: int) -> None:
        """Enqueue a routine on arrays at addresses.  At `status` it leaves an int32 for each matrix: 0, a positive
        number where there is no result, a negative one for an argument that is wrong; those that
        `stacks.WITHOUT_STATUS` names leave nothing.  CudaError if it is refused."""
        ...
