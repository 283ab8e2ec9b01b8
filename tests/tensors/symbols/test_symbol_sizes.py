"""Symbols with named sizes, and random ones: what is assigned decides, each time anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.faults import fails


# ---- sizes
def test_another_shape_where_an_operator_holds_the_declared_one_is_refused(device: str) -> None:
    """The parent's defect "baked shape"."""
    a = nnc.var_arr("a", (2,))
    whole = a[:]
    flat = nnc.reshape(a, (1, 2))
    nnc.assign(a, [1.0, 2.0, 3.0])
    with fails(ValueError, "stop=(2,)", "float32[3]", "nnc.Dim", operator="slice"):
        nnc.eval_arr([whole])
    with fails(ValueError, "shape=(1, 2)", "float32[3]", operator="reshape"):
        nnc.eval_arr([flat])
    nnc.assign(a, [1.0, 2.0])
    nnc.eval_arr([whole, flat])
    assert nnc.unpack_arr(flat).tolist() == [[1, 2]]


def test_named_dimensions_follow_what_is_assigned(device: str) -> None:
    n = nnc.Dim("n")
    a, b = nnc.var_arr("a", (n, 3)), nnc.var_arr("b", (n,))
    rest = nnc.reshape(a[:, 1:], (n * 2,)) + nnc.concat([b, b])
    for count in (2, 5, 1):
        host = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
        nnc.assign(a, host)
        nnc.assign(b, np.arange(count))
        nnc.eval_arr([rest])
        np.testing.assert_array_equal(nnc.unpack_arr(rest), host[:, 1:].reshape(-1) + np.tile(np.arange(count), 2))
    nnc.assign(b, np.arange(4))
    with fails(ValueError, "dimension 'n' is 1 in symbol 'a' and 4 in symbol 'b'", line=False):
        nnc.eval_arr([rest])


def test_sizes_that_depend_on_data_and_loops_follow_too(device: str) -> None:
    n = nnc.Dim("n")
    a = nnc.var_arr("a", (n,))
    positive = a[a > 0] * 2
    (doubled,) = nnc.while_loop(lambda x: nnc.sum(x) < 100, lambda x: (x + x,), (a,))
    for host in ([1.0, -1.0, 50.0], [-3.0, 64.0], [2.0, 2.0, 2.0, 2.0]):
        nnc.assign(a, host)
        nnc.eval_arr([positive, doubled])
        assert nnc.unpack_arr(positive).tolist() == [2 * v for v in host if v > 0]
        wanted = np.array(host)
        while wanted.sum() < 100:
            wanted += wanted
        np.testing.assert_array_equal(nnc.unpack_arr(doubled), wanted)


@pytest.mark.parametrize("f", [
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.while_loop(lambda z: nnc.sum(z) < 30, lambda z: (z * z,), (y,))[0]))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.linalg.expm(y)))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(y[y > 0.4]))(x),
    lambda x: nnc.grad(lambda y: nnc.sum(nnc.unique(y)))(x),
    lambda x: nnc.unique(x, return_counts=True)[1],
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.* has no kernel")
def test_what_is_counted_and_how_often_loops_ran(device: str, f: Any) -> None:
    """Gradients, too, by sizes that are known only when a symbol is evaluated."""
    x = nnc.var_arr("x", (3, 3))
    found = f(x)
    for host in (np.eye(3) * 0.5 + 1.2, np.full((3, 3), 1.5), np.arange(9.0).reshape(3, 3) / 4):
        nnc.assign(x, host)
        nnc.eval_arr([found])
        np.testing.assert_allclose(nnc.unpack_arr(found), f(nnc.asarray(host.astype("float32"))).numpy(), rtol=1e-4)


def test_sizes_counted_in_deferred_arrays_beside_symbols(device: str) -> None:
    x = nnc.var_arr("x", (3,))
    with nnc.deferred():
        t = nnc.asarray([3.0, 1.0, 3.0, 0.0]) + 0
        y = nnc.concat([nnc.setxor1d(t, x), t[t > 0] * nnc.sum(x)])
    for host in ([1.0, 2.0, 5.0], [7.0, 7.0, 8.0]):
        nnc.assign(x, host)
        nnc.eval_arr(y)
        np.testing.assert_array_equal(nnc.unpack_arr(y), np.concatenate(
            [np.setxor1d([3, 1, 3, 0], host), np.array([3, 1, 3]) * np.sum(host)]))


# ---- random symbols
def test_random_symbols_are_drawn_anew_by_each_evaluation(device: str) -> None:
    g, x = nnc.var_random(7), nnc.var_arr("x", (64,))
    noise = g.normal((64,))
    y, plain = x + noise, nnc.exp(x)
    nnc.assign(x, np.zeros(64))
    draws = []
    for _ in range(3):
        nnc.eval_arr([y, plain])
        draws.append(nnc.unpack_arr(y))
        np.testing.assert_array_equal(nnc.unpack_arr(noise), draws[-1])
    assert all((draws[i] != draws[j]).all() for i, j in ((0, 1), (0, 2), (1, 2)))
    eager = nnc.Generator(7)
    for drawn in draws:
        np.testing.assert_array_equal(eager.normal((64,)).numpy(), drawn, "as the same generator draws eagerly")
    nnc.eval_arr([y])
    assert nnc.is_valid(plain), "what does not depend on a draw stays valid"
    nnc.eval_arr([noise])
    assert nnc.is_valid(noise) and not nnc.is_valid(y), "what depends on an older draw is invalid"


def test_two_draws_of_one_generator_differ_and_one_draw_is_one_value(device: str) -> None:
    g = nnc.var_random(1)
    a, b = g.uniform((32,)), g.uniform((32,))
    same, other = a - a, a - b
    nnc.eval_arr([same, other])
    assert (nnc.unpack_arr(same) == 0).all() and (nnc.unpack_arr(other) != 0).all()


def test_random_symbols_of_all_kinds_in_a_graph_that_is_compiled(device: str) -> None:
    g, x = nnc.var_random(3), nnc.var_arr("x", (8,))
    y = nnc.where(g.bernoulli(0.5, (8,)), x, g.uniform((8,), 1, 2)) + nnc.astype(g.bits((8,)) // 2**31, "float32")
    graph = nnc.make_graph([x], [y], "noisy")
    assert graph.symbolic.list_inputs() == ["x", "random0", "random1", "random2"] == ["x", *graph.random]
    nnc.assign(x, np.ones(8))
    nnc.eval_graph(graph)
    keys = {k: nnc.unpack_arr(t) for k, t in graph.random.items()}
    compiled = graph.symbolic.compile(device)(x=np.ones(8, np.float32), **keys)
    np.testing.assert_array_equal(compiled["out0"].numpy(), nnc.unpack_arr(y))
