"""Functions that are called again for other operands of the same shapes: their operators without what led to them."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import OutOfRangeError, ShapeError
from nnc_core.values import repetition

RNG = np.random.default_rng(5)
ENOUGH = repetition.COUNTED_OF_NONE + 3
"""Calls after which any function is kept, and has been repeated."""
A, B = (RNG.standard_normal(s).astype(np.float32) for s in ((3, 4), (4, 5)))
SUMS = [("ij,jk->ik", (A, B)), ("ij->ji", (A,)), ("ij->", (A,)), ("ii->i", (A[:, :3],)), ("i->i", (A[0],)),
        ("ij,ij->", (A, A)), ("...j,jk", (A, B)), ("ij,jk,kl->il", (A, B, B.T)), ("i,j->ij", (A[0], B[0])),
        ("ij,ij->ij", (A, A[:1])), ("i,i", (A[0].astype(np.float16), A[1]))]  # fmt: skip


@pytest.mark.parametrize(("subscripts", "arrays"), SUMS)
def test_sums_that_come_again_are_those_of_their_operands(subscripts: str, arrays: tuple[np.ndarray, ...]) -> None:  # type: ignore[type-arg]
    for scale in range(1, 6):
        hosts = [a * (scale + i) for i, a in enumerate(arrays)]
        found = nnc.einsum(subscripts, *map(nnc.asarray, hosts))
        wanted = np.einsum(subscripts, *hosts)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3)


def test_one_operand_twice_is_not_two_that_are_alike() -> None:
    a, b = nnc.asarray(A), nnc.asarray(A + 1)
    for _ in range(ENOUGH):
        nnc.einsum("ij,ij->", a, a)
    np.testing.assert_allclose(nnc.einsum("ij,ij->", a, b).numpy(), np.sum(A * (A + 1)), rtol=1e-5)


def test_errors_gradients_and_other_modes_go_the_long_way() -> None:
    a = nnc.asarray(A)
    for _ in range(ENOUGH):
        nnc.einsum("ij,kj->ik", a, a)
    for _ in range(ENOUGH):
        with pytest.raises(ShapeError):
            nnc.einsum("ij,kj->ik", a, nnc.asarray(B))
    v = nnc.variable(A)
    nnc.sum(nnc.einsum("ij,kj->ik", v, a)).backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), np.broadcast_to(A.sum(0), A.shape), rtol=1e-5)
    np.testing.assert_allclose(nnc.jit(lambda x: nnc.einsum("ij,kj->ik", x, a))(a).numpy(), A @ A.T, rtol=1e-5)
    with nnc.deferred():
        later = nnc.einsum("ij,kj->ik", a, a)
    np.testing.assert_allclose(later.numpy(), A @ A.T, rtol=1e-5)


# ---- functions of every kind
VECTOR, SQUARE, MASK = (lambda k: RNG.standard_normal(6).astype(np.float32) + k,
                        lambda k: RNG.standard_normal((4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32),
                        lambda k: RNG.standard_normal(6) > 0)
POSITIVE = lambda k: np.abs(RNG.standard_normal(6)).astype(np.float32) + 0.1  # noqa: E731
PLACES = lambda k: RNG.integers(0, 6, 6)  # noqa: E731
RISING = lambda k: np.sort(RNG.standard_normal(6)).astype(np.float32)  # noqa: E731
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Callable[[int], Any], ...]]] = {
    "matvec": (nnc.matvec, (SQUARE, lambda k: VECTOR(k)[:4])), "vecdot": (nnc.vecdot, (VECTOR, VECTOR)),
    "inner": (nnc.inner, (VECTOR, VECTOR)), "polyval": (nnc.polyval, (VECTOR, VECTOR)), "poly": (nnc.poly, (VECTOR,)),
    "trapezoid": (nnc.trapezoid, (VECTOR,)), "logsumexp": (nnc.logsumexp, (VECTOR,)), "triu": (nnc.triu, (SQUARE,)),
    "median": (nnc.median, (VECTOR,)), "quantile": (lambda x: nnc.quantile(x, [0.1, 0.5]), (VECTOR,)),
    "interp": (nnc.interp, (VECTOR, RISING, VECTOR)),
    "norm 1": (lambda x: nnc.linalg.vector_norm(x, ord=1), (VECTOR,)),
    "norm": (nnc.linalg.vector_norm, (VECTOR,)), "eye": (lambda: nnc.eye(3), ()),
    "ones": (lambda: nnc.ones((3, 2)), ()), "zeros": (lambda: nnc.zeros(100_000, dtype="int32"), ()),
    "ones_like": (lambda x: nnc.ones_like(x.T), (SQUARE,)), "empty": (lambda: nnc.empty((0, 2)), ()),
    "hanning": (lambda: nnc.hanning(5), ()),
    "lstsq": (lambda a, b: nnc.linalg.lstsq(a, b)[0], (SQUARE, lambda k: VECTOR(k)[:4])),
    "modf": (nnc.modf, (VECTOR,)), "frexp": (nnc.frexp, (VECTOR,)),
    "heaviside": (lambda x: nnc.heaviside(x, 0.5), (VECTOR,)),
    "ldexp": (lambda x: nnc.ldexp(x, 3), (VECTOR,)), "logical_and": (nnc.logical_and, (VECTOR, MASK)),
    "place": (lambda x, m: nnc.place(x, m, [1.0, 2.0]), (VECTOR, MASK)),
    "repeat": (lambda x: nnc.repeat(x, 2), (VECTOR,)),
    "insert": (lambda x: nnc.insert(x, 3, 1.0), (VECTOR,)), "stack": (lambda x, y: nnc.stack([x, y]), (VECTOR, VECTOR)),
    "top_k": (lambda x: nnc.top_k(x, 2), (VECTOR,)), "argsort": (nnc.argsort, (VECTOR,)),
    "searchsorted": (nnc.searchsorted, (RISING, VECTOR)),
    "unravel_index": (lambda i: nnc.unravel_index(i, (2, 3)), (PLACES,)),
    "boxcox inside": (lambda x, y: nnc.nan_to_num(nnc.boxcox(x, y)), (POSITIVE, POSITIVE)),
    "fft": (nnc.fft.fft, (VECTOR,)),
    "nanmedian": (nnc.nanmedian, (lambda k: np.where(MASK(k), np.float32(np.nan), VECTOR(k)) if k > 3 else VECTOR(k),)),
    "cov": (nnc.cov, (SQUARE,)), "gradient": (nnc.gradient, (SQUARE,)),
    "mean of halves": (lambda x: nnc.mean(x.astype("float16")), (VECTOR,)), "softmax": (nnc.softmax, (SQUARE,)),
    "layer_norm": (nnc.layer_norm, (SQUARE,)), "solve": (nnc.linalg.solve, (SQUARE, SQUARE)),
}  # fmt: skip


def parts(result: Any) -> list[np.ndarray[Any, Any]]:
    return [x.numpy() for x in (result if isinstance(result, (tuple, list)) else [result])]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_call_gives_the_bits_of_a_call_by_itself(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, makes = FUNCTIONS[name]
    operands = [[make(k) for make in makes] for k in range(6)]
    again = [f(*map(nnc.asarray, given)) for given in operands]
    monkeypatch.setattr(repetition, "COUNTED", 1 << 30)
    nnc.stack_for("cpu:0").repeated.clear()
    for given, found in zip(operands, again, strict=True):
        wanted = f(*map(nnc.asarray, given))
        assert type(found) is type(wanted)
        for a, b in zip(parts(found), parts(wanted), strict=True):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def kept(f: Callable[..., Any], *arguments: Any, **named: Any) -> list[Any]:
    """The repetitions that calls of a function have left."""
    known = nnc.stack_for("cpu:0").repeated
    known.clear()
    for _ in range(ENOUGH):
        f(*arguments, **named)
    return [x for x in known.values() if x.__class__ is FunctionType]


def test_operators_are_kept_from_the_third_call_on() -> None:
    x = nnc.asarray(A)
    assert kept(nnc.triu, x) and kept(nnc.logsumexp, x) and kept(nnc.eye, 3) and kept(nnc.linalg.pinv, x)
    assert kept(nnc.ones, (4, 4)) and kept(nnc.zeros, 100_000) and kept(nnc.zeros_like, x)
    nnc.triu(x)
    known = nnc.stack_for("cpu:0").repeated
    known.clear()
    for _ in range(3):
        assert not any(v.__class__ is FunctionType for v in known.values())
        nnc.triu(x)
    assert any(v.__class__ is FunctionType for v in known.values())


def test_functions_without_tensors_are_kept_later() -> None:
    """Their sizes change more often than those of operands."""
    known = nnc.stack_for("cpu:0").repeated
    known.clear()
    for _ in range(repetition.COUNTED_OF_NONE + 1):
        assert not any(v.__class__ is FunctionType for v in known.values())
        nnc.ones((4, 4))
    assert any(v.__class__ is FunctionType for v in known.values())


def test_what_is_not_the_same_again_is_not_kept() -> None:
    x = nnc.asarray(A)
    assert not kept(nnc.logsumexp, A), "a host array"
    assert not kept(nnc.logsumexp, nnc.variable(A)), "followed by gradients"
    assert kept(nnc.cov, x) and not kept(nnc.cov, x, aweights=nnc.abs(x[0])), "weights are looked at"
    assert not kept(nnc.unique_values, x), "a size that depends on data"
    assert kept(nnc.repeat, x, 2) and not kept(nnc.repeat, x, nnc.asarray(2), axis=0)


def test_results_are_in_memory_of_their_own() -> None:
    first = [nnc.eye(3) for _ in range(ENOUGH)]
    first[-1][0, 0] = 7.0
    first[-1][...] = 9.0
    assert nnc.eye(3).tolist() == first[0].tolist() == np.eye(3).tolist()
    for make in (nnc.zeros, nnc.ones, nnc.empty):
        for x in [make(shape) for shape in (3, 9000) for _ in range(ENOUGH)]:
            wanted = float(make is nnc.ones)
            assert x[0].item() == wanted and make(x.shape)[0].item() == wanted
            x[...] = 7.0
    x = nnc.asarray(A)
    for _ in range(ENOUGH):
        y = nnc.roll(nnc.squeeze(x), 0)
    y[...] = 0.0
    np.testing.assert_array_equal(x.numpy(), A)


def test_numbers_of_python_are_told_apart() -> None:
    x = nnc.asarray(A[0])
    for _ in range(ENOUGH):
        assert nnc.heaviside(nnc.zeros(2), 0.0).tolist() == [0, 0]
        nnc.insert(x, 1, 0.0)
        assert nnc.insert(x, 1, 1).numpy()[1] == 1
    assert np.signbit(nnc.insert(x, 1, -0.0).numpy()[1])
    with pytest.raises(ShapeError):
        nnc.insert(x, True, 0.0)


def test_settings_are_those_of_the_call() -> None:
    assert [nnc.eye(2).dtype for _ in range(ENOUGH)][-1] == nnc.float32
    with nnc.config.using(default_float="float64"):
        assert nnc.eye(2).dtype == nnc.float64
    assert nnc.eye(2).dtype == nnc.float32


def test_a_shape_is_refused_after_one_that_is_equal() -> None:
    for _ in range(ENOUGH):
        assert nnc.ones((4, 4)).shape == nnc.ones([4, 4]).shape == (4, 4)
        with pytest.raises(TypeError, match="float is no dimension"):
            nnc.ones((4.0, 4))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="negative"):
            nnc.ones((4, -4))


def test_tensors_are_made_on_the_device_in_use() -> None:
    for _ in range(ENOUGH):
        assert nnc.ones(3).device.id == "cpu:0"
        assert nnc.ones(3, device="strict:0").device.id == "strict:0"
        with nnc.use_device("strict:0"):
            assert nnc.ones(3).device.id == "strict:0"
            assert nnc.zeros_like(nnc.ones(3, device="cpu:0")).device.id == "cpu:0"


def test_operands_that_lie_otherwise_are_others() -> None:
    x, turned = nnc.asarray(A), nnc.asarray(A.T.copy()).T
    for _ in range(ENOUGH):
        found = nnc.linalg.vector_norm(x, axis=1)
    before = nnc.linalg.vector_norm(turned, axis=1)
    for _ in range(ENOUGH):
        assert nnc.linalg.vector_norm(turned, axis=1).tolist() == before.tolist()
    np.testing.assert_allclose(before.numpy(), found.numpy(), rtol=1e-6)


def test_errors_of_elements_are_raised_as_before() -> None:
    x, good, bad = nnc.asarray(A[0]), nnc.asarray([0, 1, 2, 3]), nnc.asarray([0, 1, 2, 9])
    texts = []
    for _ in range(2):
        with pytest.raises(OutOfRangeError) as caught:
            nnc.take_along_axis(x, bad)
        texts.append(str(caught.value).partition("line")[0])
        for _ in range(ENOUGH):
            nnc.take_along_axis(x, good)
    assert texts[0].splitlines()[0] == texts[1].splitlines()[0]


def test_large_constants_are_not_kept() -> None:
    with_mask = [nnc.triu(nnc.ones((200, 200))) for _ in range(ENOUGH)][-1]
    np.testing.assert_array_equal(with_mask.numpy(), np.triu(np.ones((200, 200))))
    assert kept(nnc.linalg.circulant, nnc.ones(200)) and kept(nnc.linalg.companion, nnc.ones(200))
    assert kept(nnc.triu, nnc.ones((200, 200))) and kept(nnc.tril_indices, 5) and not kept(nnc.tril_indices, 200)
