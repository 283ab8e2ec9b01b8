"""Symbols of unknown shape: what is done with them is inferred when they are assigned, and again for each shape."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.errors import ShapeError, UnassignedError, UnknownShapeError
from nnc_core.symbols.symbolic import SYMBOLS
from nnc_core.values.tree import flatten
from tests.tensors.faults import fails

Host = np.ndarray[Any, Any]
pytestmark = pytest.mark.filterwarnings("ignore:.* has no kernel")  # linear algebra
SHAPES = ((2, 4), (6, 4), (3, 4, 4), (4,), (2, 4))


def host(*shape: int) -> Host:
    return np.linspace(-1.0, 1.0, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def value(t: nnc.Tensor) -> Host:
    nnc.eval_arr([t])
    return nnc.unpack_arr(t)


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


# ---- what Python asks
QUESTIONS: dict[str, Callable[[nnc.Tensor], Any]] = {
    "shape": lambda x: x.shape, "ndim": lambda x: x.ndim, "size": lambda x: x.size, "spec": lambda x: x.spec,
    "len": len, "iteration": list, "static_shape": lambda x: x.static_shape,
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_what_python_must_know_is_known_after_assign(device: str, name: str) -> None:
    ask = QUESTIONS[name]
    x = nnc.var_arr("weights")
    y = nnc.tanh(x * 2)
    for t in (x, y):
        with fails(UnknownShapeError, "'weights'", "before an array is assigned", "nnc.var_arr", "nnc.assign"):
            ask(t)
    nnc.assign(x, host(2, 3))
    for t in (x, y):
        found, wanted = ask(t), ask(nnc.asarray(host(2, 3)))
        if name == "iteration":
            assert [value(row).shape for row in found] == [(3,), (3,)]
        else:
            assert found == wanted


def test_truth_and_numbers_are_refused_as_of_every_symbol(device: str) -> None:
    x = nnc.var_arr("x")
    for ask in (bool, float, int, lambda x: x.numpy(), lambda x: x.item()):
        with fails(TypeError, "'x'"):
            ask(x)
    with fails(NotImplementedError, "symbol 'x' float32 of unknown shape"):
        x[0] = 1.0
    with fails(UnknownShapeError, "unstack", "'x'"):
        list(nnc.unstack(x))
    with fails(UnknownShapeError, "'x'"):
        nnc.jit(lambda y: y + x)(nnc.ones(2))
    assert repr(x).startswith("Tensor(symbol, 'x' float32 of unknown shape") and "unknown shape" in repr(x + 1)


def test_a_number_that_python_has_read_does_not_follow(device: str) -> None:
    """What was written before the reading follows; what was written after it says that it cannot."""
    x = nnc.var_arr("x")
    before = nnc.sum(x)
    nnc.assign(x, np.ones((2, 2)))
    after = nnc.sum(x) / x.shape[0]
    assert value(after) == 2
    nnc.assign(x, np.ones((4, 4)))
    assert value(before) == 16
    with fails(ShapeError, "read the shape of 'x'", "float32[2,2]", "float32[4,4]", operator="divide"):
        nnc.eval_arr([after])
    again = nnc.sum(x) / x.shape[0]
    assert value(again) == 4
    nnc.assign(x, np.ones((2, 2)))
    assert value(after) == 2


# ---- errors
def test_errors_name_the_line_where_it_was_written_and_the_symbols(device: str) -> None:
    x, w = nnc.var_arr("x"), nnc.var_arr("weights")
    y = nnc.exp(x) @ w  # this line
    nnc.assign(x, host(2, 3))
    nnc.assign(w, host(4, 5))
    with pytest.raises(ShapeError) as caught:
        nnc.eval_arr([nnc.sum(y)])
    error = caught.value
    assert error.operator == "matmul" and "this line" in Path(__file__).read_text().splitlines()[line_of(error) - 1]
    assert error.symbols == "x float32[2,3], weights float32[4,5]" and "float32[2,3]" in str(error)
    nnc.assign(w, host(3, 5))
    assert value(y).shape == (2, 5), "it can be mended"


def line_of(error: nnc.Error) -> int:
    assert error.line is not None
    return int(error.line.split(":")[1].split()[0])


def test_errors_name_the_public_function(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.layer_norm(x, nnc.ones(5), nnc.zeros(5))
    z = x[5]
    nnc.assign(x, host(2, 4))
    with fails(ValueError, "float32[2,4]", "symbols: x float32[2,4]", operator="layer_norm"):
        nnc.eval_arr([y])
    with fails(IndexError, "index 5", operator="getitem"):
        nnc.eval_arr([z])


def test_errors_in_the_users_functions_keep_their_lines(device: str) -> None:
    x = nnc.var_arr("x")

    def loss(y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(y @ nnc.ones((7, 1)))  # here

    g = nnc.grad(loss)(x)
    nnc.assign(x, host(2, 4))
    with pytest.raises(ShapeError) as caught:
        nnc.eval_arr([g])
    assert "# here" in Path(__file__).read_text().splitlines()[line_of(caught.value) - 1]


def test_other_results_than_expected_are_said_to_be_so(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.cond(nnc.sum(x) > 0, lambda a: a * 2, lambda a: a, x)

    def by_rank(a: nnc.Tensor) -> Any:
        return (a, a) if a.ndim == 2 else a

    with fails(UnknownShapeError, "'x'"):
        nnc.vmap(by_rank)(x)
    nnc.assign(x, host(2))
    assert value(y).shape == (2,)


# ---- evaluation
def evaluations(*outputs: nnc.Tensor) -> int:
    before = SYMBOLS.evaluations
    nnc.eval_arr(list(outputs))
    return SYMBOLS.evaluations - before


def test_only_what_an_assignment_invalidates_runs_again(device: str) -> None:
    a, b = nnc.var_arr("a"), nnc.var_arr("b")
    left, right = nnc.tanh(a), nnc.sum(b * b)
    both = left + right
    assert not nnc.is_assigned(a) and not nnc.is_valid(both)
    with fails(UnassignedError, "has not been evaluated"):
        nnc.unpack_arr(both)
    nnc.assign(a, host(2, 2))
    nnc.assign(b, host(3))
    assert nnc.is_assigned(a) and evaluations(both) == 4 and nnc.is_valid(both)
    assert evaluations(both) == 0 == evaluations(left, right)
    nnc.assign(b, host(3) * 2)
    assert not nnc.is_valid(both) and evaluations(both) == 3
    nnc.assign(b, host(5))
    assert evaluations(both) == 3, "another shape of b leaves what a gives"
    nnc.assign(a, host(4))
    assert evaluations(right) == 0 and evaluations(both) == 2


def test_shapes_that_come_again_are_not_inferred_again(device: str) -> None:
    x = nnc.var_arr("x")
    inferred = []
    y = nnc.grad(lambda z: inferred.append(z.shape) or nnc.sum(z * z))(x)
    for n in (2, 3, 2, 3, 2):
        nnc.assign(x, host(n))
        np.testing.assert_allclose(value(y), 2 * host(n))
    assert inferred == [(2,), (3,)]


def test_arrays_of_former_shapes_are_let_go(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.sum(nnc.tanh(x), axis=0)
    gc.collect()
    known = len(SYMBOLS.known)
    for n in (2, 3, 4, 5):
        nnc.assign(x, host(n, n))
        value(y)
        assert len(SYMBOLS.known) == known + 3


def test_symbols_and_what_was_recorded_are_freed(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.mean(nnc.exp(x))
    nnc.assign(x, host(2, 2))
    value(y)
    gone = [weakref.ref(x._value), weakref.ref(y._value)]
    del x, y
    gc.collect()
    assert [r() for r in gone] == [None, None]


def test_what_is_frozen_keeps_its_value_and_its_shape(device: str) -> None:
    a, b = nnc.var_arr("a"), nnc.var_arr("b")
    c = nnc.exp(a)
    d = nnc.sum(c) + b
    nnc.assign(a, np.zeros(2))
    nnc.assign(b, np.ones((2, 2)))
    nnc.eval_arr([d])
    nnc.freeze(c)
    nnc.assign(a, np.zeros(5))
    assert nnc.is_frozen(c) and value(d).tolist() == [[3, 3], [3, 3]] and value(c).shape == (2,)
    nnc.unfreeze(c)
    assert not nnc.is_frozen(c) and value(d).tolist() == [[6, 6], [6, 6]]
    nnc.freeze(a)
    with fails(ValueError, "'a'", "frozen", "nnc.unfreeze", line=False):
        nnc.assign(a, np.ones(4))
    nnc.unfreeze(a)
    nnc.assign(a, np.ones(4))


def test_snapshots_hold_the_shape_too(device: str) -> None:
    x = nnc.var_arr("x")
    y = nnc.sum(x, axis=0)
    before = nnc.snapshot(y)
    nnc.assign(x, host(2, 3))
    wanted = value(y)
    taken = nnc.snapshot(y)
    nnc.assign(x, host(4))
    assert value(y).shape == ()
    nnc.restore(taken)
    assert evaluations(y) == 0 and x.shape == (2, 3)
    np.testing.assert_array_equal(nnc.unpack_arr(y), wanted)
    nnc.restore(before)
    assert not nnc.is_assigned(x) and not nnc.is_valid(y)


# ---- graphs
def graph_of_two() -> tuple[nnc.Tensor, nnc.Tensor, Any]:
    x, w = nnc.var_arr("x"), nnc.var_arr("w", (4, 3))
    q, r = nnc.linalg.qr(x @ w)
    gradient = nnc.grad(lambda x: nnc.sum(nnc.tanh(x @ w)))(x)
    return x, w, nnc.make_graph([x, w], {"r": r, "loss": nnc.sum(q * 2, axis=0, keepdims=True), "gradient": gradient})


def test_graphs_are_compiled_for_each_shape_and_kept(device: str) -> None:
    x, w, graph = graph_of_two()
    run = graph.symbolic.compile(device)
    for rows in (5, 7, 5):
        nnc.assign(x, host(rows, 4) ** 3)
        nnc.assign(w, host(4, 3))
        nnc.eval_graph(graph)
        found = run(x=host(rows, 4) ** 3, w=host(4, 3))
        assert list(found) == ["r", "loss", "gradient"]
        for name, t in found.items():
            np.testing.assert_allclose(t.numpy(), nnc.unpack_arr(graph.outputs[name]), rtol=1e-3, atol=1e-4)
    assert len(run.compiled) == 2
    assert run.for_shapes(x=host(5, 4)).memory_plan.peak > 0
    with fails(TypeError, "missing x", "float32[?]", line=False):
        run(w=host(4, 3))


def test_graphs_are_printed_and_drawn_before_shapes_are_known(device: str, tmp_path: Path) -> None:
    x, _, graph = graph_of_two()
    text = str(graph)
    assert "graph(x: float32[?], w: float32[4,3]):" in text and "= qr(" in text and "index=1" in text
    assert "sum(%6, axis=0, keepdims=True)  # test_unshaped.py:" in text
    assert "qr" in graph.symbolic.to_dot() and "<- x" in graph.symbolic.to_trace()
    assert graph.symbolic.draw(tmp_path / "graph.svg").stat().st_size > 1000
    assert graph.statistics()[:4] == (9, 8, 0, 0)
    nnc.assign(x, host(5, 4))
    nnc.assign(graph.inputs["w"], host(4, 3))
    nnc.eval_graph(graph)
    assert graph.statistics().elements > 0 and graph.statistics().assigned == 2


def test_graphs_are_saved_with_shapes(device: str, tmp_path: Path) -> None:
    x, _, graph = graph_of_two()
    with fails(NotImplementedError, "unknown shape", "specialise", line=False):
        nnc.save_graph(graph.symbolic, tmp_path / "graph")
    with fails(UnassignedError, "'x'", "specialise", line=False):
        graph.symbolic.specialise()
    nnc.assign(x, host(5, 4))
    for made in (graph.symbolic.specialise(), graph.symbolic.specialise(x=nnc.TensorSpec((7, 4), "float32"))):
        nnc.save_graph(made, tmp_path / "graph")
        loaded = nnc.load_graph(tmp_path / "graph")
        assert str(loaded.inputs["x"].spec) == str(made.inputs["x"].spec)
        found = loaded.compile(device)(x=host(*made.inputs["x"].shape), w=host(4, 3))
        assert found["gradient"].shape == made.inputs["x"].shape
    assert graph.symbolic.specialise() is graph.symbolic.specialise(x=host(5, 4))


def test_exports(device: str) -> None:
    x, u = nnc.var_arr("x"), nnc.var_arr("u")
    run = nnc.export({"x": x}, {"y": nnc.exp(x)}).compile(device)
    for shape in SHAPES:
        np.testing.assert_allclose(run(x=host(*shape))["y"].numpy(), np.exp(host(*shape)), rtol=1e-5)
    with fails(ValueError, "'u'", "not among the inputs"):
        nnc.export({"x": x}, {"y": x @ u})
    with fails(ValueError, "'u'", "reaches no output"):
        nnc.export({"x": x, "u": u}, {"y": x + 1})
    hidden = nnc.export({"x": x}, {"y": nnc.grad(lambda y: nnc.sum(y * u))(x)}, name="hidden")
    with fails(ValueError, "'u'", "not among the inputs"):
        hidden.specialise(x=host(2))
    h = x * 2
    cut = nnc.export({"h": h}, {"y": nnc.sum(h, axis=0)}).compile(device)
    np.testing.assert_allclose(cut(h=host(3, 2))["y"].numpy(), host(3, 2).sum(0), rtol=1e-5)


def test_inputs_that_only_functions_read(device: str) -> None:
    """What these read is known when they have run."""
    x, u, w = nnc.var_arr("x"), nnc.var_arr("u"), nnc.var_arr("w")
    gradient = nnc.grad(lambda a: nnc.sum(a * u))(x)
    found = nnc.make_graph([x, u], [gradient]).symbolic.compile(device)(x=np.ones((3, 2)), u=np.full(2, 5.0))
    assert found["out0"].tolist() == [[5.0, 5.0]] * 3
    graph = nnc.make_graph([x, u, w], [gradient])
    with fails(ValueError, "'w'", "reaches no output", line=False):
        graph.symbolic.specialise(x=host(2), u=host(2), w=host(2))
    assert nnc.export({"x": x}, {"y": nnc.zeros_like(x) + 1}).compile(device)(x=host(2, 3))["y"].shape == (2, 3)


def test_what_is_drawn_once_shapes_are_known_is_an_input(device: str) -> None:
    x, g = nnc.var_arr("x"), nnc.var_random(1)
    graph = nnc.make_graph([x], [nnc.dropout(x, 0.5, generator=g)])
    assert graph.symbolic.specialise(x=host(6)).list_inputs() == ["x", "random0"]
    run, key = graph.symbolic.compile(device), np.array([1, 2], np.uint64)
    assert set(np.unique(run(x=np.ones(64), random0=key)["out0"].numpy())) == {0.0, 2.0}


def test_what_cannot_be_with_what_is_assigned_is_not_valid(device: str) -> None:
    x, u = nnc.var_arr("x"), nnc.var_arr("u")
    y, hidden = x @ u, nnc.grad(lambda a: nnc.sum(a * nnc.var_arr("other")))(x)
    nnc.assign(x, host(2, 3))
    nnc.assign(u, host(4, 5))
    assert not nnc.is_valid(y) and not nnc.is_valid(hidden) and not nnc.is_frozen(y)
    assert nnc.make_graph([x, u], [y]).statistics().assigned == 2
    nnc.restore(nnc.snapshot(y))
    with fails(ValueError, operator="matmul"):
        nnc.unpack_arr(y)
    with fails(TypeError, "'x'"):
        x.register_hook(lambda g: None)


def test_values_are_carried_on(device: str) -> None:
    a = nnc.var_arr("a")
    graph = nnc.make_graph([a], {"next": a * 2})
    nnc.make_iopair(graph, "a", "next")
    assert graph.iopairs == (("next", "a"),)
    with fails(UnassignedError, "'next'", "nnc.eval_graph", line=False):
        nnc.update_iopair(graph)
    for shape in ((2,), (2, 2)):
        nnc.assign(a, np.ones(shape))
        for _ in range(3):
            nnc.eval_graph(graph)
            nnc.update_iopair(graph)
        assert nnc.unpack_arr(a).tolist() == np.full(shape, 8.0).tolist()
        assert nnc.is_iopair_safe(graph, "a", "next")
    with fails(ValueError, "no such output or input", line=False):
        nnc.make_iopair(graph, "b", "next")
