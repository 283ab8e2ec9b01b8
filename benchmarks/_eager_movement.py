"""Movement of elements, and products."""

from __future__ import annotations

from typing import Any

import numpy as np

import nnc_core as nnc
from benchmarks._eager import Case, Operands


def movement(of: Operands) -> list[Case]:
    x, y, n, w, mask, few = of.t_a, of.t_b, of.t_i, of.t_m, of.t_bits, of.t_small
    t1, t2, ts, tk, a, b = of.t_v1, of.t_v2, of.t_square, of.t_kernel, of.a, of.b
    i, m, bits, small, v1, v2 = of.i, of.m, of.bits, of.small, of.v1, of.v2
    square, kernel, size, side = of.square, of.kernel, of.size, of.side
    names, tr, torder = of.names, of.t_names, of.t_order

    def added() -> Any:
        out = np.zeros(size, np.float32)
        np.add.at(out, i, b)
        return out

    def scattered() -> Any:
        out = a.copy()
        out[i] = b
        return out
    zero = np.float32(0)
    return [
        Case("take", lambda: nnc.take(x, n, axis=0), lambda: np.take(a, i)),
        Case("x[indices]", lambda: x[n], lambda: a[i]),
        Case("x[mask]", lambda: x[mask], lambda: a[bits]),
        Case("w[I, J]", lambda: w[tr, tr], lambda: m[names, names]),
        Case("x[mask] = 0", lambda: x.at[mask].set(0.0), lambda: np.where(bits, zero, a)),
        Case("x[indices] = y", lambda: x.at[n].set(y), scattered),
        Case("x.at[indices].add(y)", lambda: x.at[n].add(y), added),
        Case("take_along_axis", lambda: nnc.take_along_axis(w, torder, axis=1),
             lambda: np.take_along_axis(m, of.order, 1)),
        Case("gather rows", lambda: nnc.take(w, tr, axis=0), lambda: np.take(m, names, 0)),
        Case("gather columns", lambda: nnc.take(w, tr, axis=1), lambda: np.take(m, names, 1)),
        Case("compress", lambda: nnc.compress(mask, x), lambda: np.compress(bits, a)),
        Case("repeat", lambda: nnc.repeat(x, 2), lambda: np.repeat(a, 2)),
        Case("repeat rows", lambda: nnc.repeat(w, 2, axis=0), lambda: np.repeat(m, 2, 0)),
        Case("tile", lambda: nnc.tile(x, 2), lambda: np.tile(a, 2)),
        Case("roll", lambda: nnc.roll(x, 3), lambda: np.roll(a, 3)),
        Case("roll columns", lambda: nnc.roll(w, 1, axis=1), lambda: np.roll(m, 1, 1)),
        Case("flip", lambda: nnc.flip(x), lambda: np.flip(a).copy()),
        Case("pad", lambda: nnc.pad(x, 2), lambda: np.pad(a, 2)),
        Case("pad reflect", lambda: nnc.pad(w, 1, mode="reflect"), lambda: np.pad(m, 1, mode="reflect")),
        Case("transpose copied", lambda: w.T.copy(), lambda: m.T.copy()),
        Case("concat", lambda: nnc.concat([x, y]), lambda: np.concatenate([a, b])),
        Case("stack", lambda: nnc.stack([x, y]), lambda: np.stack([a, b])),
        Case("stack last", lambda: nnc.stack([x, y], axis=1), lambda: np.stack([a, b], 1)),
        Case("split", lambda: nnc.split(x, 2), lambda: np.split(a, 2)),
        Case("tril", lambda: nnc.tril(ts), lambda: np.tril(square)),
        Case("triu", lambda: nnc.triu(ts), lambda: np.triu(square)),
        Case("diag of matrix", lambda: nnc.diag(ts), lambda: np.diag(square).copy()),
        Case("diag of vector", lambda: nnc.diag(t1), lambda: np.diag(v1)),
        Case("trace", lambda: nnc.trace(ts), lambda: np.trace(square)),
        Case("kron", lambda: nnc.kron(t1, t2), lambda: np.kron(v1, v2)),
        Case("outer", lambda: nnc.outer(t1, t2), lambda: np.outer(v1, v2)),
        Case("eye", lambda: nnc.eye(side), lambda: np.eye(side, dtype=np.float32)),
        Case("zeros", lambda: nnc.zeros(size), lambda: np.full(size, zero)),
        Case("arange", lambda: nnc.arange(size), lambda: np.arange(size)),
        Case("linspace", lambda: nnc.linspace(0, 1, size), lambda: np.linspace(0, 1, size, dtype=np.float32)),
        Case("meshgrid", lambda: nnc.meshgrid(t1, t2), lambda: np.meshgrid(v1, v2)),
        Case("one_hot", lambda: nnc.one_hot(few[:8192], 64), lambda: np.eye(64, dtype=np.float32)[small[:8192]]),
        Case("delete", lambda: nnc.delete(x, 3), lambda: np.delete(a, 3)),
        Case("insert", lambda: nnc.insert(x, 3, 1.0), lambda: np.insert(a, 3, 1.0)),
        Case("append", lambda: nnc.append(x, y), lambda: np.append(a, b)),
        Case("asarray", lambda: nnc.asarray(a), lambda: np.array(a)),
        Case("copy", lambda: x.copy(), lambda: a.copy()),
        Case("tolist", lambda: x.tolist(), lambda: a.tolist()),
        Case("convolve 5", lambda: nnc.convolve(x, tk), lambda: np.convolve(a, kernel)),
        Case("correlate 5", lambda: nnc.correlate(x, tk), lambda: np.correlate(a, kernel)),
        Case("fft", lambda: nnc.fft.fft(x), lambda: np.fft.fft(a)),
        Case("rfft", lambda: nnc.fft.rfft(x), lambda: np.fft.rfft(a)),
        Case("fft rows", lambda: nnc.fft.fft(w), lambda: np.fft.fft(m)),
        Case("dot", lambda: nnc.dot(x, y), lambda: np.dot(a, b)),
        Case("matmul", lambda: ts @ ts, lambda: square @ square),
        Case("matvec", lambda: ts @ t1, lambda: square @ v1),
        Case("matmul transposed", lambda: ts.T @ ts, lambda: square.T @ square),
        Case("vdot", lambda: nnc.vdot(x, y), lambda: np.vdot(a, b)),
        Case("tensordot", lambda: nnc.tensordot(w, w, axes=2), lambda: np.tensordot(m, m, 2)),
        Case("einsum i,i->", lambda: nnc.einsum("i,i->", x, y), lambda: np.einsum("i,i->", a, b)),
        Case("einsum ij->j", lambda: nnc.einsum("ij->j", w), lambda: np.einsum("ij->j", m)),
        Case("einsum ij,ij->i", lambda: nnc.einsum("ij,ij->i", w, w), lambda: np.einsum("ij,ij->i", m, m)),
        Case("einsum i,j->ij", lambda: nnc.einsum("i,j->ij", t1, t2), lambda: np.einsum("i,j->ij", v1, v2)),
        Case("einsum ii->i", lambda: nnc.einsum("ii->i", ts), lambda: np.einsum("ii->i", square).copy()),
        Case("cross", lambda: nnc.cross(w[:1].reshape(-1)[:3], y[:3]), lambda: np.cross(a[:3], b[:3])),
    ]
