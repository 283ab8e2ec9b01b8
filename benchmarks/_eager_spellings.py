"""Functions whose counterpart has another name, or is called in another way."""

from __future__ import annotations

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def by_other_spellings(of: Operands) -> list[Case]:
    x, w, a, m, i, n, counted = of.t_a, of.t_m, of.a, of.m, of.i, of.t_i, of.side
    mask, bits, ts, square = of.t_bits, of.bits, of.t_square, of.square
    return [
        Case("apply_along_axis", lambda: nnc.apply_along_axis(nnc.sum, 1, w), lambda: np.sum(m, 1)),
        Case("fromfunction", lambda: nnc.fromfunction(nnc.add, (counted, counted)),
             lambda: np.fromfunction(np.add, (counted, counted))),
        Case("fill_diagonal", lambda: nnc.fill_diagonal(ts, 1.0), lambda: np.fill_diagonal(square.copy(), 1.0)),
        Case("piecewise", lambda: nnc.piecewise(x, [mask], [1.0, 2.0]), lambda: np.piecewise(a, [bits], [1.0, 2.0])),
        Case("put_along_axis", lambda: nnc.put_along_axis(x, n, x, 0), lambda: np.put_along_axis(a.copy(), i, a, 0)),
        Case("place", lambda: nnc.place(x, mask, [1.0, 2.0]), lambda: np.place(a.copy(), bits, [1.0, 2.0])),
        Case("from_dlpack", lambda: nnc.from_dlpack(a), lambda: np.from_dlpack(a)),
        Case("unique rows", lambda: nnc.unique(of.t_small), lambda: np.unique(of.small)),
        Case("fliplr", lambda: nnc.fliplr(w), lambda: np.fliplr(m).copy()),
        Case("flipud", lambda: nnc.flipud(w), lambda: np.flipud(m).copy()),
        Case("rot90", lambda: nnc.rot90(w), lambda: np.rot90(m).copy()),
    ]
