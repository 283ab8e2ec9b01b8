"""NumPy's own functions called with tensors: ours of the same meaning, arrays that are written, one error otherwise."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import nnc_core as nnc
from nnc_core.base.errors import DetachedWarning, OperandError
from tests.tensors.faults import fails

X = np.array([[0.25, -1.5, 3.0], [2.0, 0.5, -0.75]])
Y = np.array([1.0, 2.0, -0.5])
BITS = np.array([[1, 2, 3], [4, 5, 6]])


def leaves(tree: Any) -> list[Any]:
    return [x for part in tree for x in leaves(part)] if isinstance(tree, (tuple, list)) else [tree]


def alike(f: Callable[..., Any], *arrays: np.ndarray[Any, Any]) -> None:
    """The call on tensors gives tensors with NumPy's values."""
    wanted = leaves(f(*[a.copy() for a in arrays]))
    found = leaves(f(*map(nnc.asarray, arrays)))
    assert len(found) == len(wanted)
    for t, w in zip(found, wanted, strict=True):
        assert isinstance(t, nnc.Tensor), type(t)
        np.testing.assert_allclose(t.numpy(), w, rtol=1e-6, atol=1e-12)


UFUNCS = ["absolute", "add", "arctan2", "conjugate", "cos", "deg2rad", "degrees", "divide", "divmod", "equal", "exp",
          "fabs", "floor", "floor_divide", "frexp", "greater", "hypot", "isfinite", "less", "logaddexp", "logical_and",
          "logical_not", "maximum", "mod", "modf", "multiply", "negative", "rint", "sign", "signbit", "sinh", "square",
          "subtract", "tanh", "true_divide", "trunc"]  # fmt: skip


@pytest.mark.parametrize("name", UFUNCS)
def test_universal_functions_are_ours(name: str) -> None:
    ufunc = getattr(np, name)
    arrays = (X, Y)[: ufunc.nin]
    alike(ufunc, *arrays)
    if ufunc.nin == 2:
        assert isinstance(leaves(ufunc(X, nnc.asarray(Y)))[0], nnc.Tensor)
        assert isinstance(leaves(ufunc(nnc.asarray(X), 2.0))[0], nnc.Tensor)


def test_every_universal_function_is_ours_or_refused() -> None:
    """Those of NumPy, without one that nobody has looked at."""
    ours = []
    for name, ufunc in vars(np).items():
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            dtype = np.int64 if "bit" in name or "shift" in name or name in ("gcd", "lcm", "invert", "ldexp") else float
            try:
                ufunc(*[nnc.asarray(np.array([1, 2], dtype))] * ufunc.nin)
                ours.append(name)
            except OperandError as error:
                assert "does not take tensors" in str(error) and name == "isnat", name
    assert len(ours) > 85


METHODS: dict[str, Callable[..., Any]] = {
    "add.reduce": lambda x: np.add.reduce(x), "add.reduce axis": lambda x: np.add.reduce(x, axis=1, keepdims=True),
    "multiply.reduce": lambda x: np.multiply.reduce(x, 1), "maximum.reduce": lambda x: np.maximum.reduce(x, axis=None),
    "logical_or.reduce": lambda x: np.logical_or.reduce(x > 2), "add.accumulate": lambda x: np.add.accumulate(x),
    "multiply.accumulate": lambda x: np.multiply.accumulate(x, axis=1), "outer": lambda x: np.subtract.outer(x, x[0]),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_universal_functions(name: str) -> None:
    alike(METHODS[name], X)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all": lambda x: np.all(x > -2, axis=0), "argmax": lambda x: np.argmax(x, 1), "around": lambda x: np.around(x, 1),
    "amax": lambda x: np.amax(x, axis=0), "append": lambda x: np.append(x, X, axis=0),
    "array_split": lambda x: np.array_split(x, 2, axis=1), "atleast_3d": lambda x: np.atleast_3d(x),
    "average": lambda x: np.average(x, axis=0, weights=[1.0, 2.0]),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "clip": lambda x: np.clip(x, 0, a_max=1), "concatenate": lambda x: np.concatenate([X, x], axis=1),
    "copy": lambda x: np.copy(x), "corrcoef": lambda x: np.corrcoef(x), "cov": lambda x: np.cov(x, ddof=0),
    "cross": lambda x: np.cross(x, x[::-1]), "cumsum": lambda x: np.cumsum(x, 1), "diag": lambda x: np.diag(x, k=1),
    "diff": lambda x: np.diff(x, 2), "diff along": lambda x: np.diff(x, 1, 0), "dot": lambda x: np.dot(x, x.T),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x), "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "flip": lambda x: np.flip(x, 1), "full_like": lambda x: np.full_like(x, 7.0),
    "gradient": lambda x: np.gradient(x, axis=1),
    "histogram": lambda x: np.histogram(x, bins=4, range=(-2, 4)), "hstack": lambda x: np.hstack((x, x)),
    "imag": lambda x: np.imag(x), "inner": lambda x: np.inner(x, x),
    "interp": lambda x: np.interp(x, [0.0, 1.0], [2.0, 3.0]),
    "isclose": lambda x: np.isclose(x, X), "isin": lambda x: np.isin(x, [2.0, 0.5]), "kron": lambda x: np.kron(x, x),
    "linalg.det": lambda x: np.linalg.det(x @ x.T), "linalg.norm": lambda x: np.linalg.norm(x, axis=1),
    "linalg.pinv": lambda x: np.linalg.pinv(x), "linalg.solve": lambda x: np.linalg.solve(x @ x.T, x),
    "linalg.svd": lambda x: np.linalg.svd(x, compute_uv=True)[1], "fft.rfft": lambda x: np.fft.rfft(x, 4, axis=1),
    "max initial": lambda x: np.max(x, axis=(0, 1)), "mean": lambda x: np.mean(x, 0, None, None, True),
    "mean dtype": lambda x: np.mean(x, dtype="float64"), "median": lambda x: np.median(x, axis=1, overwrite_input=True),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1], indexing="ij"), "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "nan_to_num": lambda x: np.nan_to_num(x, copy=True), "nanmean": lambda x: np.nanmean(x, 0, "float64"),
    "nanstd": lambda x: np.nanstd(x, axis=1, ddof=1), "nonzero": lambda x: np.nonzero(x > 0),
    "outer": lambda x: np.outer(x, x), "pad": lambda x: np.pad(x, 1, mode="edge"),
    "partition": lambda x: np.partition(x, 1),
    "percentile": lambda x: np.percentile(x, [10, 50], axis=0), "prod": lambda x: np.prod(x, axis=0),
    "ptp": lambda x: np.ptp(x, 1), "ravel": lambda x: np.ravel(x), "repeat": lambda x: np.repeat(x, 2, axis=0),
    "reshape": lambda x: np.reshape(x, (3, 2)), "resize": lambda x: np.resize(x, (4, 2)),
    "roll": lambda x: np.roll(x, 1, 1),
    "rot90": lambda x: np.rot90(x), "searchsorted": lambda x: np.searchsorted(np.sort(x[0]), x[1], "right"),
    "select": lambda x: np.select([x > 1, x < 0], [x, -x], 0), "sort": lambda x: np.sort(x, 0, "stable"),
    "squeeze": lambda x: np.squeeze(x[None]), "stack": lambda x: np.stack([x, x], -1),
    "std": lambda x: np.std(x, 0, ddof=1),
    "sum": lambda x: np.sum(x, 0, None, None, True), "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "take": lambda x: np.take(x, [0, 2], 1), "take_along_axis": lambda x: np.take_along_axis(x, BITS[:, :2] % 3, 1),
    "tensordot": lambda x: np.tensordot(x, x, ((0,), (0,))), "tile": lambda x: np.tile(x, (1, 2)),
    "trace": lambda x: np.trace(x, 1), "transpose": lambda x: np.transpose(x),
    "transpose axes": lambda x: np.transpose(x, (1, 0)),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.5), "tril": lambda x: np.tril(x, -1), "unique": lambda x: np.unique(x),
    "var": lambda x: np.var(x, axis=1, correction=1), "vstack": lambda x: np.vstack([x, X]),
    "where": lambda x: np.where(x > 0, x, 0), "zeros_like": lambda x: np.zeros_like(x, dtype="int64"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_ours(name: str) -> None:
    alike(FUNCTIONS[name], X)


def test_questions_about_shapes() -> None:
    t = nnc.asarray(X)
    assert (np.shape(t), np.ndim(t), np.size(t), np.size(t, 1)) == ((2, 3), 2, 6, 3)
    assert np.result_type(t, np.float32) == np.float64 and not np.iscomplexobj(t)
    assert bool(np.array_equal(t, X)) and bool(np.allclose(t, X))


def test_gradients_traces_and_devices_follow(device: str) -> None:
    x = nnc.asarray(X.astype(np.float32))

    def f(x: nnc.Tensor) -> Any:
        return np.sum(np.exp(x) * np.concatenate([x, x])[:2])

    wanted = nnc.grad(lambda x: nnc.sum(nnc.exp(x) * x))(x)
    for found in (nnc.grad(f)(x), nnc.jit(nnc.grad(f))(x)):
        assert found.device.id == device
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)
    with nnc.deferred():
        assert np.tanh(x).is_deferred
    assert isinstance(np.exp(nnc.Cell(x)), nnc.Tensor)


# ---- arrays of NumPy's that are written
def test_out_is_written(device: str) -> None:
    t, out = nnc.asarray(X.astype(np.float32)), np.zeros((2, 3))
    assert np.add(t, 1.0, out=out) is out and out.tolist() == (X + 1).tolist()
    assert np.sum(t, axis=1, out=out[:, 0]) is not None and out[:, 0].tolist() == X.sum(1).tolist()
    np.add.at(out, ([0, 0],), t[0])
    np.copyto(out, t)
    np.put(out, [0], t[1, 0])
    assert out.ravel().tolist() == [2.0, *X.ravel()[1:]]
    with pytest.raises(TypeError, match="same_kind"):
        np.add(t, 0.5, out=np.zeros((2, 3), int))
    with pytest.warns(DetachedWarning, match="no gradient follows"):
        np.multiply(nnc.variable(X), 2, out=out)


@pytest.mark.parametrize("call", [
    lambda t: np.add(t, 1, out=t), lambda t: np.sum(t, out=t), lambda t: np.add.at(t, [0], 1.0),
    lambda t: np.copyto(t, X), lambda t: np.fill_diagonal(t, 0), lambda t: np.place(t, t > 0, [1.0]),
])  # fmt: skip
def test_tensors_are_not_written_by_numpy(call: Callable[[nnc.Tensor], Any]) -> None:
    t = nnc.asarray(X)
    with fails(TypeError, "cannot write into a tensor", "x[...] = "):
        call(t)
    assert t.tolist() == X.tolist()


# ---- what is not taken
@pytest.mark.parametrize("call", [
    lambda t: np.isnat(t), lambda t: np.rollaxis(t, 1), lambda t: np.minimum.accumulate(t),
    lambda t: np.add.reduceat(t, [0]),
    lambda t: scipy.special.jv(0, t), lambda t: np.lib.stride_tricks.sliding_window_view(t, 2),
    lambda t: np.common_type(t),
])  # fmt: skip
def test_the_rest_is_one_error(call: Callable[[nnc.Tensor], Any]) -> None:
    with fails(TypeError, "does not take tensors", "np.asarray(x)"):
        call(nnc.asarray(X))


@pytest.mark.parametrize(("call", "said"), [
    (lambda t: np.var(t, mean=X), "mean"),
    (lambda t: np.add(t, 1, dtype="float32"), "dtype="), (lambda t: np.add(t, 1, where=X > 0), "where="),
    (lambda t: np.concatenate([t, t], dtype="float32"), "dtype"), (lambda t: np.take(t, [0], mode="clip"), "mode"),
])  # fmt: skip
def test_options_that_are_not_taken(call: Callable[[nnc.Tensor], Any], said: str) -> None:
    with fails(TypeError, said):
        call(nnc.asarray(X))


def test_special_functions_of_scipy() -> None:
    alike(scipy.special.erf, X)
    alike(scipy.special.xlogy, np.abs(X), np.abs(Y))
    with fails(TypeError, "kl_div"):
        scipy.special.kl_div(nnc.asarray(X), X)  # a loss bears that name here


class Other:
    """An array of another library with the same protocols."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> str:
        return "theirs"

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> str:
        return "theirs"


def test_other_libraries_are_let_through() -> None:
    t = nnc.asarray(X)
    assert np.add(t, Other()) == np.add(Other(), t) == np.concatenate([t, Other()]) == "theirs"


# ---- what NumPy makes itself
def test_files_and_texts_get_the_elements(tmp_path: Any) -> None:
    t = nnc.asarray(X)
    np.save(tmp_path / "x.npy", t)
    assert np.load(tmp_path / "x.npy").tolist() == X.tolist()
    np.savez(tmp_path / "x.npz", a=t)
    assert np.load(tmp_path / "x.npz")["a"].tolist() == X.tolist()
    file = io.StringIO()
    np.savetxt(file, t)
    assert len(file.getvalue().splitlines()) == 2
    assert np.array2string(t) == np.array2string(X) and not np.shares_memory(t, X)


def test_constructors_take_tensors() -> None:
    t = nnc.asarray(X)
    assert np.array([t, t]).shape == (2, 2, 3) and np.asarray(t, np.float32).dtype == np.float32
    assert np.float64(t[0, 0]) == 0.25 and np.full(2, t[0, 0]).tolist() == [0.25, 0.25]
    array = np.zeros(3)
    array[:] = t[0]
    assert array.tolist() == X[0].tolist() and np.arange(3)[nnc.asarray([0, 2])].tolist() == [0, 2]
    assert [type(b) for b in np.broadcast_arrays(t, None, "text")] == [np.ndarray] * 3
