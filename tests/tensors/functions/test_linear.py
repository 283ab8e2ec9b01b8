"""Products of vectors, matrices and more, against NumPy."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.type import Dim
from tests.tensors.against_numpy import Array, Code, assert_derivatives, assert_same, assert_same_in_every_mode, run
from tests.tensors.faults import fails

RNG = np.random.default_rng(4)


def numbers(*shape: int) -> Array:
    return np.asarray(RNG.normal(size=shape), np.float32)


V, W, X, Y, C, D = numbers(4), numbers(3), numbers(3, 4), numbers(4, 5), numbers(2, 3, 4), numbers(2, 4, 5)

PRODUCTS: dict[str, tuple[Code, tuple[Array, ...]]] = {
    "matmul": (lambda xp, x, y, v: [xp.matmul(x, y), xp.matmul(x, v), xp.matmul(v, y), xp.matmul(v, v)], (X, Y, V)),
    "batched matmul": (lambda xp, c, d, y, v: [
        xp.matmul(c, d), xp.matmul(c, y), xp.matmul(c[:1], d), xp.matmul(c, v), xp.matmul(c[:, None], d)],
        (C, D, Y, V)),
    "matvec and vecmat": (lambda xp, c, v, w: [xp.matvec(c, v), xp.matvec(c[0], c), xp.vecmat(w, c)], (C, V, W)),
    "vecdot": (lambda xp, c, x, v: [xp.vecdot(c, x), xp.vecdot(v, v), xp.vecdot(c, c, axis=0), xp.vecdot(x, v)],
               (C, X, V)),
    "vdot": (lambda xp, x, c: [xp.vdot(x, x), xp.vdot(c, c)], (X, C)),
    "dot": (lambda xp, c, y, v: [xp.dot(c, y), xp.dot(c, v), xp.dot(c, c[0].T), xp.dot(v, v), xp.dot(y, np.float32(2)),
                                 xp.dot(c, xp.permute_dims(c, (0, 2, 1)))], (C, Y, V)),
    "inner": (lambda xp, c, x, v: [xp.inner(c, x), xp.inner(v, v), xp.inner(x, v), xp.inner(x, np.float32(3))],
              (C, X, V)),
    "outer": (lambda xp, x, w: [xp.outer(w, x), xp.outer(x, w)], (X, W)),
    "tensordot": (lambda xp, c, y, d: [
        xp.tensordot(c, y, axes=np.int64(1)), xp.tensordot(c, d, axes=([0, 2], [0, 1])), xp.tensordot(y, y, axes=0),
        xp.tensordot(c, c, axes=3), xp.tensordot(c, d, axes=([-1], [1])),
        xp.tensordot(c, c[0])], (C, Y, D)),
    "kron": (lambda xp, x, y, v, c: [xp.kron(x, y), xp.kron(v, v), xp.kron(x, v), xp.kron(c, x)], (X, Y, V, C)),
    "cross": (lambda xp, w, x: [xp.cross(w, w[::-1]), xp.cross(x.T, w), xp.cross(x, x[::-1], axis=0)], (W, X)),
    "multi_dot": (lambda xp, w, x, y: [
        nnc.multi_dot(m) if xp is nnc else np.linalg.multi_dot(m)
        for m in ([w, x, y], [x, y], [x.T, x, y, y.T, x.T], [w, x, x.T, w])], (W, X, Y)),
    "vander": (lambda xp, v: [y.astype(v.dtype) for y in (
        xp.vander(v), xp.vander(v, 2), xp.vander(v, 6, increasing=True), xp.vander(v, 0))], (V,)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_gives_what_numpy_gives(device: str, name: str) -> None:
    code, arrays = PRODUCTS[name]
    assert_same(run(code, arrays), code(np, *arrays), rtol=2e-5)


@pytest.mark.parametrize("name", PRODUCTS)
def test_in_every_mode_and_differentiated(name: str) -> None:
    code, arrays = PRODUCTS[name]
    assert_same_in_every_mode(code, arrays, rtol=2e-5)
    assert_derivatives(code, arrays)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint32", "float64", "complex64", "complex128"])
def test_other_dtypes(dtype: str) -> None:
    arrays = [np.asarray(RNG.integers(0, 4, a.shape)).astype(dtype) for a in (V, W, X, Y, C)]
    if dtype.startswith("complex"):
        arrays = [(a + 1j * RNG.integers(0, 3, a.shape)).astype(dtype) for a in arrays]
    for name in ("matmul", "matvec and vecmat", "vecdot", "dot", "inner", "outer", "kron", "vdot"):
        code, shaped = PRODUCTS[name]
        given = [next(a for a in arrays if a.shape == s.shape) for s in shaped]
        if name == "dot" or name == "inner":
            code = {"dot": lambda xp, c, y, v: [xp.dot(c, y), xp.dot(v, v)],
                    "inner": lambda xp, c, x, v: [xp.inner(c, x), xp.inner(v, v)]}[name]
        assert_same(run(code, given), code(np, *given), rtol=1e-5)


def test_halves_are_summed_in_float32() -> None:
    ones = nnc.ones(4096, dtype="float16")
    assert float(nnc.vecdot(ones, ones)) == 4096 and float(nnc.einsum("i,i", ones, ones)) == 4096
    assert nnc.vecdot(nnc.ones((2, 4096), dtype="float16"), ones).tolist() == [4096, 4096]


def test_a_chain_is_multiplied_in_the_cheapest_order() -> None:
    """(10 x 1000)(1000 x 1)(1 x 500) begins with what gives a vector."""
    a, b, c = nnc.var_arr("a", shape=(10, 1000)), nnc.var_arr("b", shape=(1000, 1)), nnc.var_arr("c", shape=(1, 500))
    assert nnc.multi_dot([a, b, c])._value.inputs[0].shape == (10, 1)
    assert nnc.multi_dot([c.T, b.T, a.T])._value.inputs[1].shape == (1, 10)
    v, m = nnc.var_arr("v", shape=(3,)), nnc.var_arr("m", shape=(3, 2))
    product = nnc.multi_dot([v, m, m.T, v])._value  # a vector that is at both ends is as long at the first
    while product.op.name == "reshape":
        product = product.inputs[0]
    assert [x.shape for x in product.inputs] == [(1, 2), (2, 1)]


# ---- Einstein summation
SUMS = [
    "ij,jk->ik", "ij,jk", "bij,bjk->bik", "ij,kl->ikjl", "ii", "ii->i", "ij->ji", "ij->", "ba", "ijj->i", "iij->ij",
    "i,i", "i,i->i", "i,j->ij", "ij,ij->j", "ij,i->ij", "bij,jk->bki", "...ij,...jk->...ik", "i...->...", "...ii->...i",
    "ij,jk,kl->il", "ij,jk,kl,li", "a,b,c->abc", "ab,ac,ad->bcd", "ij,...j->i...", "bij,bij,b->", "...", "...,...->...",
]  # fmt: skip
LENGTHS = {"a": 2, "b": 3, "c": 4, "d": 2, "i": 3, "j": 4, "k": 2, "l": 5}


def operands(equation: str) -> list[Array]:
    """Of the letters' lengths; axes with one name in an operand all have 3, an ellipsis is two axes in the first."""
    terms = equation.split("->")[0].split(",")
    repeated = {c for t in terms for c in t if t.count(c) > 1}
    found = []
    for n, t in enumerate(terms):
        beyond = (2, 3)[n > 0 :] if "..." in t else ()
        before, after = ([3 if c in repeated else LENGTHS[c] for c in part] for part in t.partition("...")[::2])
        found.append(numbers(*before, *beyond, *after))
    return found


@pytest.mark.parametrize("equation", SUMS)
def test_einsum_gives_what_numpy_gives(device: str, equation: str) -> None:
    arrays = operands(equation)
    assert_same(run(lambda xp, *a: xp.einsum(equation, *a), arrays), np.einsum(equation, *arrays), rtol=1e-4)


@pytest.mark.parametrize("equation", SUMS)
def test_einsum_in_every_mode_and_differentiated(equation: str) -> None:
    arrays = operands(equation)
    assert_same_in_every_mode(lambda xp, *a: xp.einsum(equation, *a), arrays, rtol=1e-4)
    assert_derivatives(lambda xp, *a: nnc.einsum(equation, *a), arrays, second=len(arrays) < 4)


@st.composite
def equations(draw: st.DrawFn) -> tuple[str, list[Array]]:
    """Random terms over a few letters, and a random result."""
    terms = draw(st.lists(st.lists(st.sampled_from("abcd"), max_size=3), min_size=1, max_size=4))
    letters = sorted({c for t in terms for c in t})
    out = draw(st.permutations(letters).map(lambda p: p[: draw(st.integers(0, len(p)))]))
    lengths = {c: draw(st.integers(1, 3)) for c in letters}
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays = [np.asarray(rng.integers(-3, 4, [lengths[c] for c in t]), np.float64) for t in terms]
    equation = ",".join("".join(t) for t in terms)
    return equation + draw(st.sampled_from(["", "->" + "".join(out)])), arrays


@given(equations())
def test_random_sums(drawn: tuple[str, list[Array]]) -> None:
    equation, arrays = drawn
    found = nnc.einsum(equation, *[nnc.asarray(a) for a in arrays])
    np.testing.assert_array_equal(found.numpy(), np.einsum(equation, *arrays))


def test_numbers_may_name_axes() -> None:
    x, y = nnc.asarray(X), nnc.asarray(Y)
    assert_same(nnc.einsum(x, [0, 1], y, [1, 2], [0, 2]), X @ Y, rtol=1e-5)
    assert_same(nnc.einsum(x, [0, 1], y, [1, 2]), X @ Y, rtol=1e-5)
    assert_same(nnc.einsum(x, [..., 7], [7, ...]), X.T)


def test_axes_of_length_one_are_broadcast() -> None:
    x = nnc.asarray(X)
    assert_same(nnc.einsum("ij,ij->ij", x, x[:, :1]), X * X[:, :1])
    assert_same(nnc.einsum("ij,jk->ik", x[:, :1], nnc.asarray(Y)), np.sum(X[:, :1, None] * Y, 1), rtol=1e-5)
    assert nnc.einsum("ij->ij", x[:1]).shape == (1, 4)


def test_dtypes_are_promoted() -> None:
    assert nnc.einsum("i,i->i", nnc.asarray([1, 2]), nnc.asarray([0.5, 0.5])).tolist() == [0.5, 1.0]
    assert nnc.einsum("i,i", nnc.asarray([1, 2], dtype="int8"), nnc.asarray([3, 4], dtype="int16")).dtype == nnc.int16


CHAIN = [nnc.var_arr(name, shape=shape) for name, shape in (("a", (50, 2)), ("b", (2, 60)), ("c", (60, 3)))]


def test_the_order_is_from_left_to_right_or_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opt_einsum", None)  # as if it were not installed
    first = nnc.einsum("ij,jk,kl->il", *CHAIN)
    told = nnc.einsum("ij,jk,kl->il", *CHAIN, optimize=["einsum_path", (1, 2), (0, 1)])
    assert matrices(first) == [(50, 60), (50, 3)] and matrices(told) == [(2, 3), (50, 3)]


def matrices(y: nnc.Tensor) -> list[Any]:
    """Shapes of the matrix products that a symbol was made by, inner ones first."""
    found: list[Any] = []

    def visit(v: Any) -> None:
        for x in v.inputs:
            visit(x)
        if v.step is not None and v.op.name == "matmul":
            found.append(v.shape)

    visit(y._value)
    return found


def test_opt_einsum_is_asked_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def contract_path(equation: str, *shapes: Any, **options: Any) -> Any:
        asked.append((equation, shapes, options))
        return [(1, 2), (0, 1)], None

    stand_in = SimpleNamespace(contract_path=contract_path, get_symbol=lambda i: "abcdefgh"[i])
    monkeypatch.setitem(sys.modules, "opt_einsum", stand_in)
    y = nnc.einsum("xy,yz,zw->xw", *CHAIN)
    assert matrices(y) == [(2, 3), (50, 3)]
    assert asked == [("ab,bc,cd->ad", ((50, 2), (2, 60), (60, 3)), {"shapes": True, "optimize": "auto"})]
    nnc.einsum("xy,yz->xz", *CHAIN[:2])
    nnc.einsum("xy,yz,zw->xw", *CHAIN, optimize=False)
    assert len(asked) == 1


def test_named_dimensions() -> None:
    n = Dim("n")
    x = nnc.var_arr("x", shape=(n, 4))
    y = {"gram": nnc.einsum("ni,mi->nm", x, x), "outer": nnc.tensordot(x, x, axes=0), "kron": nnc.kron(x, x[:, :1]),
         "vecdot": nnc.vecdot(x, x), "square": nnc.einsum("ni,nj,nk->ijk", x, x, x)}
    compiled = nnc.export(inputs={"x": x}, outputs=y).compile()
    for rows in (2, 5):
        host = numbers(rows, 4)
        found = compiled(x=nnc.asarray(host))
        wanted = {"gram": host @ host.T, "outer": np.tensordot(host, host, 0), "kron": np.kron(host, host[:, :1]),
                  "vecdot": np.vecdot(host, host), "square": np.einsum("ni,nj,nk->ijk", host, host, host)}
        for name, array in wanted.items():
            np.testing.assert_allclose(found[name].numpy(), array, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("code", "kind", "said"), [
    (lambda x: nnc.matmul(x, x), ValueError, "try: as many columns on the left"),
    (lambda x: nnc.matmul(x, 2.0), ValueError, "a scalar has no matrix product"),
    (lambda x: nnc.matmul(x > 0, x.T > 0), TypeError, "needs numbers, not booleans"),
    (lambda x: nnc.matvec(x[0], x[0]), ValueError, "no matrices and vectors"),
    (lambda x: nnc.vecmat(x[0], x[0]), ValueError, "no vectors and matrices"),
    (lambda x: nnc.vecdot(x, x[:, :2]), ValueError, "has lengths 3 and 2"),
    (lambda x: nnc.vecdot(x, x, axis=2), ValueError, "axis 2 is out of range"),
    (lambda x: nnc.dot(x, x), ValueError, "inner dimensions"),
    (lambda x: nnc.inner(x, x.T), ValueError, "should have one length"),
    (lambda x: nnc.tensordot(x, x, axes=3), ValueError, "try: 0 to 2 axes"),
    (lambda x: nnc.tensordot(x, x, axes=([0, 0], [0, 1])), ValueError, "do not pair axes"),
    (lambda x: nnc.tensordot(x, x, axes=([0], [1])), ValueError, "should have one length"),
    (lambda x: nnc.cross(x[:, :2], x[:, :2]), ValueError, "should have length 3"),
    (lambda x: nnc.multi_dot([x]), TypeError, "1 arrays are no chain"),
    (lambda x: nnc.multi_dot([x, x[0], x]), ValueError, "at the ends perhaps vectors"),
    (lambda x: nnc.vander(x), ValueError, "is no vector"),
    (lambda x: nnc.einsum("ij,jk", x), TypeError, "names 2 operands, 1 are given"),
    (lambda x: nnc.einsum("ij,jk", x, x), ValueError, "axis j has length 3 and, in float32[2,3], length 2"),
    (lambda x: nnc.einsum("ijk", x), ValueError, "ijk does not name the axes of float32[2,3]"),
    (lambda x: nnc.einsum("ij->ik", x), ValueError, "k of the result is in no operand"),
    (lambda x: nnc.einsum("ij->ii", x), ValueError, "names an axis of the result twice"),
    (lambda x: nnc.einsum("i1", x), ValueError, "letters for names"),
    (lambda x: nnc.einsum("ij,ij", x, x, optimize=[(0, 2)]), ValueError, "step (0, 2) of 2 operands"),
    (lambda x: nnc.einsum("ij,ij,ij", x, x, x, optimize=[(0, 1)]), ValueError, "leaves 2 of 3 operands"),
])  # fmt: skip
def test_errors_name_the_function_and_the_line(x: nnc.Tensor, code: Any, kind: type[BaseException], said: str) -> None:
    with fails(kind, said):
        code(x)
