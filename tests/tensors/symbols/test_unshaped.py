"""Symbols of unknown shape: what is done with them is inferred when they are assigned, and again for each shape."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.errors import UnassignedError
from nnc_core.values.tree import flatten
from tests.tensors.faults import fails
from tests.tensors.symbols.unshaped import SHAPES, host, value

pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")  # linear algebra


def agree(found: nnc.Tensor, wanted: nnc.Tensor) -> None:
    array = value(found)
    assert array.shape == wanted.shape and array.dtype == wanted.dtype
    np.testing.assert_allclose(array, wanted.numpy(), rtol=1e-5, atol=1e-6)


# ---- what is done with them
PROGRAMS: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "a chain": lambda x: nnc.tanh(x * 2 + 1) / (x**2 + 1) - (-x),
    "reductions": lambda x: nnc.sum(x, axis=-1) + nnc.mean(x) + x.max(),
    "keepdims": lambda x: x - nnc.mean(x, axis=-1, keepdims=True),
    "matmul": lambda x: x @ nnc.asarray(host(4, 3)),
    "a product from the left": lambda x: nnc.asarray(host(3, 4)) @ x.T,
    "reshape": lambda x: nnc.reshape(x, (-1, 2)),
    "flatten": lambda x: x.flatten()[1:-1],
    "an item": lambda x: x[0],
    "a slice": lambda x: x[..., 1:3] * 2,
    "a mask": lambda x: x[x > 0.1],
    "an index array": lambda x: x[nnc.asarray([1, 0, 1])],
    "a changed item": lambda x: x.at[0].set(7.0),
    "lists and arrays": lambda x: [1.0, 2.0, 3.0, 4.0] * x - np.ones(4, np.float32),
    "an array from the left": lambda x: np.ones(4, np.float32) - x,
    "a negative power": lambda x: (x + 3) ** -2,
    "comparisons": lambda x: nnc.where(x > 0, x, 0.5),
    "softmax": lambda x: nnc.softmax(x, axis=-1),
    "stacked": lambda x: nnc.stack([x, x + 1], axis=0),
    "joined": lambda x: nnc.concat([x, x * 2], axis=-1),
    "split": lambda x: nnc.split(x, 2, axis=-1)[1],
    "by the number of dimensions": lambda x: nnc.unstack(x)[1],
    "cast": lambda x: nnc.astype(x * 3, "int32") // 2,
    "another dtype": lambda x: x.astype("float64") + 1,
    "made like it": lambda x: nnc.zeros_like(x) + nnc.ones_like(x),
    "detached": lambda x: x.detach() * 2,
    "its array": lambda x: nnc.asarray(x) + nnc.asarray(x, dtype="float64"),
    "moved": lambda x: x.to(x.device.id) + 1,
    "sorted": lambda x: nnc.top_k(x, 2).values,
    "in jit": lambda x: nnc.jit(lambda y: nnc.sum(y * 2, axis=0))(x),
    "a composite": lambda x: nnc.layer_norm(x, nnc.ones(4), nnc.zeros(4)),
    "host functions": lambda x: nnc.host_map(lambda n: n + 1, x),
    "examples": lambda x: nnc.vmap(lambda row: nnc.sum(row * row))(x),
    "a branch": lambda x: nnc.cond(nnc.sum(x) > 100, lambda y: y * 2, lambda y: y - 1, x),
    "a loop": lambda x: nnc.while_loop(lambda y: nnc.sum(y) < 30, lambda y: (y + 1,), (x,))[0],
    "a scan": lambda x: nnc.scan(lambda c, row: (c + nnc.sum(row), row * 2), nnc.asarray(0.0), x)[1],
    "rows": lambda x: nnc.map(nnc.tanh, x),
    "a gradient": lambda x: nnc.grad(lambda y: nnc.sum(nnc.tanh(y) * y))(x),
    "of what was computed": lambda x: nnc.grad(lambda y: nnc.sum(y**3))(x * 2 + 1),
    "a gradient that knows sizes": lambda x: nnc.grad(lambda y: nnc.sum(y * y) / y.shape[0])(x),
    "value and gradient": lambda x: (lambda v, g: v + g)(*nnc.value_and_grad(lambda y: nnc.mean(y * y))(x)),
    "with more": lambda x: (lambda v, g: v[0] + v[1]["more"] + g)(
        *nnc.value_and_grad(lambda y: (nnc.mean(y * y), {"more": nnc.sum(y)}), has_aux=True)(x)),
    "reverse": lambda x: nnc.vjp(nnc.tanh, x)[1](x + 1)[0],
    "forward": lambda x: nnc.jvp(nnc.tanh, (x,), (x * 2,))[1],
    "a Jacobian": lambda x: nnc.jacobian(lambda y: nnc.sum(nnc.tanh(y), axis=0))(x),
    "a Hessian": lambda x: nnc.hessian(lambda y: nnc.sum(y**3))(x),
    "a Hessian's product": lambda x: nnc.hessianv(lambda y: nnc.sum(y**3), x, x),
    "a Laplacian": lambda x: nnc.laplacian(lambda y: nnc.sum(y**3))(x),
    "a second gradient": lambda x: nnc.grad(lambda y: nnc.sum(nnc.grad(lambda z: nnc.sum(z**4))(y)))(x),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_recorded_is_what_eager_code_gives(device: str, name: str) -> None:
    if device.startswith("strict") and name in ("another dtype", "its array", "host functions"):
        pytest.skip("dtypes and functions of the host, on every device")
    program = PROGRAMS[name]
    x = nnc.var_arr("x")
    y = program(x)
    assert isinstance(y, nnc.Tensor) and y.is_symbol and not y.is_deferred
    for shape in SHAPES:
        if name == "a product from the left" and len(shape) == 3:
            continue
        nnc.assign(x, host(*shape))
        agree(y, program(nnc.asarray(host(*shape))))


def test_several_results_have_their_structure(device: str) -> None:
    x = nnc.var_arr("x")
    q, r = nnc.linalg.qr(x)
    u, s, v = nnc.linalg.svd(x, full_matrices=False)
    first, second = nnc.meshgrid(x[0], x[1])
    values, counts = nnc.top_k(x, 2)
    nnc.assign(x, host(3, 3) + np.eye(3))
    np.testing.assert_allclose(value(q @ r), host(3, 3) + np.eye(3), atol=1e-5)
    np.testing.assert_allclose(value(u * s @ v), host(3, 3) + np.eye(3), atol=1e-5)
    assert value(first).shape == value(second).shape == (3, 3) and value(values).shape == value(counts).shape == (3, 2)


def test_some_are_assigned_later_than_others(device: str) -> None:
    x, w, k = nnc.var_arr("x"), nnc.var_arr("w"), nnc.var_arr("k", (3,))
    h = nnc.tanh(x)
    y = nnc.sum(h @ w * k + nnc.const_elt(1.0), axis=-1)
    nnc.assign(x, host(2, 4))
    agree(h, nnc.tanh(nnc.asarray(host(2, 4))))
    with fails(UnassignedError, "'w'", "nnc.assign", line=False):
        nnc.eval_arr([y])
    nnc.assign(w, host(4, 3))
    with fails(UnassignedError, "'k'", line=False):
        nnc.eval_arr([y])
    nnc.assign(k, host(3))
    for shape in ((2, 4), (5, 2, 4), (4,)):
        nnc.assign(x, host(*shape))
        np.testing.assert_allclose(value(y), (np.tanh(host(*shape)) @ host(4, 3) * host(3) + 1).sum(-1), rtol=1e-5)


def test_functions_may_close_over_symbols_of_unknown_shape(device: str) -> None:
    x, w = nnc.var_arr("x"), nnc.var_arr("w")
    given = nnc.asarray(host(2, 4))
    by_symbol = nnc.grad(lambda y: nnc.sum(nnc.tanh(y @ w)))(x)
    by_tensor = nnc.grad(lambda y: nnc.sum(nnc.tanh(y @ w)))(given)
    nnc.assign(x, host(2, 4))
    with fails(UnassignedError, "'w'", line=False):
        nnc.eval_arr([by_symbol])
    for columns in (3, 5):
        nnc.assign(w, host(4, columns))
        wanted = nnc.grad(lambda y: nnc.sum(nnc.tanh(y @ nnc.asarray(host(4, columns)))))(given)  # noqa: B023
        agree(by_symbol, wanted)
        agree(by_tensor, wanted)


def test_bodies_of_control_flow_may_close_over_them_too(device: str) -> None:
    x, u = nnc.var_arr("x"), nnc.var_arr("u")
    chosen = nnc.cond(nnc.sum(x) > 0, lambda a: nnc.sum(a * u), lambda a: nnc.sum(a - u), x)
    (last,) = nnc.while_loop(lambda a: nnc.sum(a * u) < 100, lambda a: (a + nnc.abs(u),), (x,))
    rows = nnc.vmap(lambda row: nnc.sum(row) * u)(x)
    nnc.assign(x, np.ones((3, 2)))
    for other in (2 * np.ones(2), 2 * np.ones((1, 2))):
        nnc.assign(u, other)
        assert value(chosen) == 12 and value(last).tolist() == np.full((3, 2), 9.0).tolist()
        assert value(rows).shape == (3, *other.shape)


def test_what_was_given_counts_as_it_was_when_it_was_recorded(device: str) -> None:
    """Values, not views: also of what is called again much later."""
    x, t, array, listed = nnc.var_arr("x"), nnc.asarray([1.0, 2.0]), np.ones(2, np.float32), [1.0, 1.0]
    y = nnc.sum(x + t, axis=0) + nnc.sum(nnc.stack([x * array, x * listed]))
    if device == "cpu:0":
        y = y + nnc.sum(nnc.asarray(array, copy=False) * x) - 2
    t[0] = 50.0
    array[:] = 50
    listed[0] = 50
    nnc.assign(x, np.ones(2))
    assert value(y).tolist() == 5 + 4


def test_modes_and_devices_are_those_of_the_recording(device: str) -> None:
    with nnc.use_device(device), nnc.no_grad():
        x = nnc.var_arr("x")
        y = nnc.sum(x, axis=-1) + nnc.sum(nnc.arange(3.0))
    nnc.assign(x, host(2, 3))
    assert value(y).shape == (2,) and y.device.id == x.device.id


def test_modules(device: str) -> None:
    """Weights are those that the module had when it was called."""
    model = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 2))
    images = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2))
    x, i = nnc.var_arr("x"), nnc.var_arr("i")
    y, z = model(x), images(i)
    wanted = model(nnc.asarray(host(5, 4))), images(nnc.asarray(host(3, 4, 4, 1)))
    for p in (*model.parameters(), *images.parameters()):
        p.write(p.read() * 0)
    nnc.assign(x, host(5, 4))
    nnc.assign(i, host(3, 4, 4, 1))
    agree(y, wanted[0])
    agree(z, wanted[1])


@pytest.mark.parametrize(("make", "shape"), [
    (lambda: nn.LSTM(4, 5), (3, 2, 4)), (lambda: nn.GRU(4, 5, returns="last"), (3, 2, 4)),
    (lambda: nn.MultiHeadAttention(8, 2), (2, 5, 8)), (lambda: nn.BatchNorm(3).eval(), (2, 4, 4, 3)),
    (lambda: nn.MaxPool2d(2, with_indices=True), (2, 4, 4, 3)), (lambda: nn.Linear(4, 2).hybridize(), (5, 4)),
])  # fmt: skip
def test_modules_that_look_at_shapes(device: str, make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    module, x = make(), nnc.var_arr("x")
    found, wanted = module(x), module(nnc.asarray(host(*shape)))
    nnc.assign(x, host(*shape))
    made, structure = flatten(found)
    known, same = flatten(wanted)
    assert structure == same
    for a, b in zip(made, known, strict=True):
        agree(a, b)


def test_random_symbols_beside_them_are_drawn_anew(device: str) -> None:
    x, g = nnc.var_arr("x"), nnc.var_random(3)
    y = nnc.dropout(x, 0.5, generator=g)
    nnc.assign(x, np.ones(64))
    draws = [value(y) for _ in range(2)]
    assert set(np.unique(draws)) == {0.0, 2.0} and (draws[0] != draws[1]).any()


# ---- dtypes
def test_the_dtype_is_the_default_or_the_given_one(device: str) -> None:
    x, n = nnc.var_arr("x"), nnc.var_arr("n", dtype="int32")
    assert x.dtype == np.float32 and n.dtype == np.int32, "known from the start"
    nnc.assign(x, np.ones((2, 2), np.int64))
    nnc.assign(n, [[1, 2]])
    assert value(x + n).dtype == np.float32 and value(n).dtype == np.int32 and value(n * 2).dtype == np.int32


def test_numbers_without_a_shape_are_no_arrays_of_unknown_shape(device: str) -> None:
    assert nnc.var_elt("e").shape == () and nnc.var_arr("s", ()).shape == ()
    assert nnc.var_random(1).uniform((2,)).shape == (2,)
