"""Every public function of one or two arrays takes symbols of unknown shape: after assign it gives what it gives
eagerly, for each shape, and so does its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.algodiff.test_function_gradients import STOPPED, point, slope, weighted
from tests.tensors.recording.test_exported_functions import FUNCTIONS, KINDS, TAKE_ONE, tensors

COUNTED = {"trim_zeros", "unique", "unique_all", "unique_consecutive", "unique_counts", "unique_inverse",
           "unique_values"}
"""Functions with sizes that depend on data, which `weighted` asks Python for: no symbol knows them."""
BY_RANK = {"histogramdd": "one array of edges for each coordinate, however many these are"}
"""Functions whose results nobody can tell the structure of."""
Host = np.ndarray[Any, Any]


def agree(found: Any, wanted: Sequence[nnc.Tensor]) -> None:
    results = [found[i] for i in range(len(wanted))] if isinstance(found, Sequence) else [found]
    made = [t for t in results if isinstance(t, nnc.Tensor)]
    assert len(made) == len(wanted)
    nnc.eval_arr(made)
    for y, z in zip(made, wanted, strict=True):
        array = nnc.unpack_arr(y)
        assert array.shape == z.shape and array.dtype == z.dtype
        np.testing.assert_allclose(array, z.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "kind"), TAKE_ONE.items(), ids=TAKE_ONE)
def test_of_one_array(name: str, kind: str) -> None:
    f, x = FUNCTIONS[name], nnc.var_arr("x")
    if name in BY_RANK:
        with pytest.raises(nnc.errors.UnknownShapeError, match="'x'"):
            f(x)
        return
    found = f(x)
    for size in (3, 5, 3):
        array = KINDS[kind][0](size)
        nnc.assign(x, array)
        agree(found, tensors(f(nnc.asarray(array))))


@pytest.mark.parametrize(("name", "kind"), [(k, v) for k, v in TAKE_ONE.items() if k not in BY_RANK])
def test_exported_it_is_compiled_for_a_shape(name: str, kind: str) -> None:
    """Nothing that it makes for itself stays outside."""
    f, x, array = FUNCTIONS[name], nnc.var_arr("x"), KINDS[kind][0](3)
    found, wanted = f(x), tensors(f(nnc.asarray(array)))
    made = [found[i] for i in range(len(wanted))] if isinstance(found, Sequence) else [found]
    outputs = {f"y{i}": y for i, y in enumerate(made) if isinstance(y, nnc.Tensor)}
    for y, z in zip(nnc.export({"x": x}, outputs).compile()(x=array).values(), wanted, strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "kind"), TAKE_ONE.items(), ids=TAKE_ONE)
@pytest.mark.filterwarnings("ignore:.* has no kernel", "ignore:.* runs operator by operator")
def test_its_gradient(name: str, kind: str) -> None:
    array, direction = point(name, kind)
    if name in COUNTED or name in STOPPED or slope(name, array, direction) is None:
        return
    gradient = nnc.grad(lambda x: weighted(name, x))
    try:
        wanted = gradient(nnc.asarray(array))
    except nnc.errors.GradientError:
        return
    x = nnc.var_arr("x", dtype="float64")
    found = gradient(x)
    nnc.assign(x, array)
    nnc.eval_arr([found])
    np.testing.assert_allclose(nnc.unpack_arr(found), wanted.numpy(), rtol=1e-9, atol=1e-12)


# ---- of two arrays
def takes_two(f: Callable[..., Any]) -> str | None:
    for kind, (make, _) in KINDS.items():
        try:
            if tensors(f(nnc.asarray(make(3)), nnc.asarray(make(3) + 1))):
                return kind
        except Exception:  # it takes other arguments
            continue
    return None


TAKE_TWO = {name: kind for name, f in sorted(FUNCTIONS.items()) if (kind := takes_two(f)) is not None}


def test_there_are_many() -> None:
    assert len(TAKE_TWO) > 80 and {"matmul", "cov", "linalg.solve", "meshgrid"} <= TAKE_TWO.keys()


@pytest.mark.parametrize(("name", "kind"), TAKE_TWO.items(), ids=TAKE_TWO)
@pytest.mark.parametrize("known", ["neither", "first", "second"])
def test_of_two_arrays(name: str, kind: str, known: str) -> None:
    """One of them may be known, as a symbol with a shape or as an array."""
    make, f = KINDS[kind][0], FUNCTIONS[name]
    a = nnc.asarray(make(3)) if known == "first" else nnc.var_arr("a")
    b = nnc.var_arr("b", make(3).shape) if known == "second" else nnc.var_arr("b")
    if name in BY_RANK:
        return
    found = f(a, b)
    for size in (3, 5) if known == "neither" and "cross" not in name else (3,):
        for symbol, array in ((a, make(size)), (b, make(size) + 1)):
            if symbol.is_symbol:
                nnc.assign(symbol, array)
        agree(found, tensors(f(nnc.asarray(make(size)), nnc.asarray(make(size) + 1))))


# ---- neural functions
def ramp(*shape: int) -> nnc.Tensor:
    return nnc.asarray(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


NEURAL: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...]]] = {
    "conv2d": (lambda x, w: nnc.conv2d(x, w, padding="SAME"),
               ((2, 5, 5, 3), (3, 3, 3, 4)), ((1, 8, 6, 3), (3, 3, 3, 2))),
    "conv1d": (nnc.conv1d, ((2, 9, 3), (3, 3, 4)), ((1, 7, 3), (5, 3, 2))),
    "conv_transpose2d": (nnc.conv_transpose2d, ((2, 5, 5, 3), (3, 3, 4, 3)), ((1, 4, 6, 3), (2, 2, 2, 3))),
    "max_pool2d": (lambda x: nnc.max_pool2d(x, 2), ((2, 4, 4, 3),), ((1, 6, 8, 1),)),
    "with indices": (lambda x: nnc.max_pool2d(x, 2, with_indices=True), ((2, 4, 4, 3),), ((1, 6, 8, 1),)),
    "avg_pool2d": (lambda x: nnc.avg_pool2d(x, 2), ((2, 4, 4, 3),), ((1, 6, 8, 1),)),
    "batch_norm_training": (lambda x: nnc.batch_norm_training(x).output, ((4, 3),), ((2, 5, 5, 3),)),
    "attention": (nnc.scaled_dot_product_attention, ((2, 5, 8),) * 3, ((3, 4, 5, 8),) * 3),
    "einsum": (lambda a, b: nnc.einsum("...ij,jk->...ik", a, b), ((2, 3), (3, 4)), ((5, 2, 3), (3, 1))),
    "pad": (lambda x: nnc.pad(x, 1), ((2, 3),), ((4,),)),
    "tensordot": (lambda a, b: nnc.tensordot(a, b, axes=1), ((2, 3), (3, 4)), ((2, 2, 3), (3,))),
    "cross_entropy": (lambda x, y: nnc.cross_entropy(x, nnc.softmax(y)), ((2, 3),) * 2, ((7, 3),) * 2),
    "one_hot": (lambda x: nnc.one_hot(nnc.astype(nnc.abs(x) * 3, "int64"), 4), ((2, 3),), ((5,),)),
    "take": (lambda x, i: nnc.take(x, nnc.argsort(i), axis=0), ((4, 3), (4,)), ((4,), (4,))),
    "split": (lambda x: nnc.split(x, [1, 3]), ((5, 3),), ((4,),)),
    "gradient": (lambda x: nnc.gradient(x, axis=(0, 1)), ((3, 4),), ((5, 4, 2),)),
    "unique": (lambda x: nnc.unique(nnc.round(x * 3)), ((3, 4),), ((9,),)),
}  # fmt: skip


@pytest.mark.parametrize("name", NEURAL)
def test_of_several_arrays(name: str) -> None:
    f, *cases = NEURAL[name]
    symbols = [nnc.var_arr(f"x{i}") for i in range(len(cases[0]))]
    found = f(*symbols)
    for shapes in cases:
        for symbol, shape in zip(symbols, shapes, strict=True):
            nnc.assign(symbol, ramp(*shape))
        agree(found, tensors(f(*[ramp(*shape) for shape in shapes])))
