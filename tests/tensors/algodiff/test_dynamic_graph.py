"""The dynamic graph as NNC means it: its unit cases restated (docs/nnc_cases.md maps them)."""

from __future__ import annotations

import gc
import math
import weakref

import numpy as np
import pytest

import nnc_core as nnc
from tests.tensors.algodiff.references import by_counting_references, gradient_of


# ---- values
def test_logarithm(device: str) -> None:
    assert nnc.log(nnc.variable(19.0)).item() == pytest.approx(math.log(19), rel=1e-6)


def test_reciprocal(device: str) -> None:
    x = nnc.variable(10.0)
    y = 1 / x
    y.backward()
    assert y.item() == pytest.approx(0.1) and gradient_of(x) == pytest.approx([-0.01])


def test_part_of_a_variable(device: str) -> None:
    """An alias of a part, used and differentiated like any value."""
    x = nnc.variable([19.0, 10.0])
    y = nnc.log(x[1])
    y.backward()
    assert y.item() == pytest.approx(math.log(10), rel=1e-6) and gradient_of(x) == pytest.approx([0, 0.1])


def test_part_of_a_part(device: str) -> None:
    x = nnc.variable(np.arange(1, 9, dtype=np.float32).reshape(2, 4))
    part = x[1][2:]
    (part * part).sum().backward()
    assert part.tolist() == [7, 8] and gradient_of(x) == [0, 0, 0, 0, 0, 0, 14, 16]


def test_sum_of_two_terms_in_x(device: str) -> None:
    """f(x) = x log x + 1.2 x and f'(x) = log x + 2.2 where x = 19"""
    x = nnc.variable(19.0)
    f = x * nnc.log(x) + 1.2 * x
    f.backward()
    assert f.item() == pytest.approx(19 * math.log(19) + 1.2 * 19, rel=1e-6)
    assert gradient_of(x) == pytest.approx([math.log(19) + 2.2], rel=1e-6)


def test_dense_net(device: str) -> None:
    """Each layer reads all that the layers before it gave: parts of one array, joined again and again."""
    rng = np.random.default_rng(0)
    x = nnc.variable(rng.standard_normal((3, 2)).astype(np.float32))
    weights = [nnc.variable(rng.standard_normal((2 + 2 * i, 2)).astype(np.float32) / 2) for i in range(3)]

    def network(x: nnc.Tensor, weights: list[nnc.Tensor]) -> nnc.Tensor:
        joined = x
        for w in weights:
            joined = nnc.concat([joined, nnc.tanh(joined @ w)], axis=1)
        return (joined * joined).sum() + joined[:, 2:4].sum()

    network(x, weights).backward()
    found, by_weights = nnc.grad(network, argnums=(0, 1))(x.detach(), [w.detach() for w in weights])
    for v, g in zip([x, *weights], [found, *by_weights], strict=True):
        assert v.grad is not None
        np.testing.assert_array_equal(v.grad.numpy(), g.numpy())


def test_batch_norm_updates_its_statistics_in_place(device: str) -> None:
    rng = np.random.default_rng(0)
    x = nnc.variable(rng.standard_normal((8, 3)).astype(np.float32))
    running = nnc.Cell(nnc.zeros(3))
    mean = nnc.mean(x, axis=0)
    with nnc.no_grad():
        running.write(running.read() * 0.9 + mean * 0.1)
    centred = x - mean
    y = centred / nnc.sqrt(nnc.mean(centred * centred, axis=0) + 1e-5)
    (y * y * y).sum().backward()
    np.testing.assert_allclose(running.read().numpy(), 0.1 * x.numpy().mean(0), rtol=1e-5, atol=1e-7)
    assert not running.read().requires_grad
    np.testing.assert_allclose(np.sum(np.reshape(gradient_of(x), (8, 3)), axis=0), 0, atol=1e-4)


def test_steps_with_inputs_and_results_that_nobody_wants(device: str) -> None:
    """A result that is not used has no gradient, an input that gets none is left alone."""
    both = nnc.custom_vjp(lambda a, b: (a * b, a + b))
    both.defvjp(lambda a, b: ((a * b, a + b), (a, b)), lambda kept, g: (g[0] * kept[1] + g[1], None))
    a, b = nnc.variable(3.0), nnc.variable(4.0)
    product, _ = both(a, b)
    product.backward()
    assert gradient_of(a) == [4.0] and b.grad is None


def test_a_host_array_set_as_a_value(device: str) -> None:
    host = np.array([2.0, 3.0], np.float32)
    x = nnc.variable(host)
    host[:] = 0
    (x * x).sum().backward()
    assert gradient_of(x) == [4.0, 6.0]
    with nnc.no_grad():
        x[:] = np.array([5.0, 7.0], np.float32)
    x.grad = None
    (x * x).sum().backward()
    assert gradient_of(x) == [10.0, 14.0]


def test_products_with_a_constant(device: str) -> None:
    x, y = nnc.variable(1.0), nnc.asarray(2.0)
    z = x
    for _ in range(10):
        z = z * y
    assert z.item() == 1024 and not y.requires_grad and nnc.bookkeeping_count(z) == 10
    z.backward()
    assert gradient_of(x) == [1024.0] and y.grad is None


def test_only_constants_keep_no_steps(device: str) -> None:
    x, y = nnc.asarray(1.0), nnc.asarray(2.0)
    for _ in range(10):
        x = x * y
    assert x.item() == 1024 and nnc.bookkeeping_count(x) == 0 and x._value.step is None


def test_gradients_of_several_results_in_one_pass(device: str) -> None:
    """f(x) = x log x + 1.2 x at x = 19 and x = 10, swept together"""
    xs = [nnc.variable(19.0), nnc.variable(10.0)]
    fs = [x * nnc.log(x) + 1.2 * x for x in xs]
    nnc.backward(fs)
    for x, at in zip(xs, (19, 10), strict=True):
        assert gradient_of(x) == pytest.approx([math.log(at) + 2.2], rel=1e-6)
    total = xs[0] * xs[1]
    assert [g.item() for g in nnc.gradients([total, total], xs, [nnc.asarray(1.0), nnc.asarray(2.0)]) if g] == [30, 57]


# ---- aliases
def test_sum_of_a_product_and_an_alias(device: str) -> None:
    """f(x) = x log x + y', y' an alias of y = 1.2 x"""
    x = nnc.variable(19.0)
    y = 1.2 * x
    (x * nnc.log(x) + nnc.reshape(y, (1,))).sum().backward()
    assert gradient_of(x) == pytest.approx([math.log(19) + 2.2], rel=1e-6)


def test_an_alias_made_of_an_alias(device: str) -> None:
    x = nnc.variable([19.0])
    y = 1.2 * x
    first, second = nnc.reshape(y, (1, 1)), nnc.reshape(y, ())
    (x[0] * nnc.log(x[0]) + 0.5 * second + 0.5 * first[0, 0]).backward()
    assert gradient_of(x) == pytest.approx([math.log(19) + 2.2], rel=1e-6)


def test_parts_that_were_written_one_by_one(device: str) -> None:
    """f = x y where y[0] = 10 z, y[1] = 2 z; everything is freed at the end"""
    with by_counting_references():
        x, z = nnc.variable([10.0]), nnc.variable(2.0)
        y = nnc.zeros(2)
        y[0] = 10 * z
        y[1] = 2 * z
        f = x * y
        seen = [weakref.ref(t._value) for t in (x, y, z, f)]
        f.backward(nnc.ones(2))
        assert f.tolist() == [200, 40] and gradient_of(x) == [24] and gradient_of(z) == [120]
        del x, y, z, f
        assert [r() for r in seen] == [None] * 4


def test_parts_whose_names_are_gone_before_the_whole_is_used(device: str) -> None:
    x, z = nnc.variable([10.0]), nnc.variable(2.0)
    parts = [nnc.reshape(10 * z, (1,)), nnc.reshape(2 * z, (1,))]
    y = nnc.concat(parts)
    del parts
    gc.collect()
    f = x * y
    f.backward(nnc.ones(2))
    assert f.tolist() == [200, 40] and gradient_of(z) == [120]


def test_gradient_against_what_was_transposed(device: str) -> None:
    """f = x y', y' = y^T, differentiated by y, which is no variable"""
    w = nnc.variable([[1.0, 2.0]])
    y = 2 * w
    x = nnc.asarray([10.0])
    f = x * y.T
    (by_y,) = nnc.gradients(f, [y], nnc.asarray([[1.0], [3.0]]))
    assert by_y is not None and by_y.tolist() == [[10.0, 30.0]] and w.grad is None


# ---- questions, and cutting the graph
def test_whether_one_tensor_depends_on_another(device: str) -> None:
    x, y = nnc.variable(2.0), nnc.variable(3.0)
    z = nnc.log(x) * 2
    both = z + y
    assert nnc.depends_on(z, x) and not nnc.depends_on(z, y) and not nnc.depends_on(x, z)
    assert nnc.depends_on(both, z) and nnc.depends_on(both, y) and nnc.depends_on(x, x)
    assert not nnc.depends_on(z.detach(), x)


def test_what_only_hung_on_a_detached_value_is_not_kept(device: str) -> None:
    """f = 0.5 log x; with log x detached, neither step has anything to go back to"""
    x = nnc.variable(10.0)
    y = nnc.log(x)
    f = 0.5 * y
    assert nnc.bookkeeping_count(f) == 2
    y.detach_()
    assert nnc.bookkeeping_count(f) == 0 and not y.requires_grad and not nnc.depends_on(f, x)
    with pytest.raises(ValueError, match="no variable"):
        f.backward()


def test_detaching_after_the_variable_is_gone_frees_it(device: str) -> None:
    with by_counting_references():
        x = nnc.variable(10.0)
        seen = weakref.ref(x._value)
        y = nnc.log(x)
        f = 0.5 * y
        del x
        assert seen() is not None
        y.detach_()
        assert seen() is None and nnc.bookkeeping_count(f) == 0


def test_detaching_one_factor_leaves_the_other(device: str) -> None:
    """f = a log x: the step of the product is kept for a"""
    x, a = nnc.variable(10.0), nnc.variable(0.5)
    y = nnc.log(x)
    f = a * y
    y.detach_()
    assert nnc.bookkeeping_count(f) == 1
    f.backward()
    assert gradient_of(a) == pytest.approx([math.log(10)], rel=1e-6) and x.grad is None


def test_detaching_one_way_to_a_variable_leaves_the_other(device: str) -> None:
    """f = exp(x) log x"""
    x = nnc.variable(2.0)
    y = nnc.log(x)
    f = nnc.exp(x) * y
    y.detach_()
    assert nnc.bookkeeping_count(f) == 2
    f.backward()
    assert gradient_of(x) == pytest.approx([math.exp(2) * math.log(2)], rel=1e-6)


def test_values_behind_a_detached_one_stay(device: str) -> None:
    """f = exp(0.5 log x): its value is there, its steps are not kept"""
    x = nnc.variable(4.0)
    y = nnc.log(x)
    f = nnc.exp(0.5 * y)
    y.detach_()
    assert f.item() == pytest.approx(2.0, rel=1e-6) and nnc.bookkeeping_count(f) == 0
    deferred = nnc.variable(3.0)
    with nnc.deferred():
        late = deferred * 2
    assert late.detach_().item() == 6 and not late.requires_grad and late._value.step is None


def test_nothing_is_kept_under_no_grad(device: str) -> None:
    x = nnc.variable(2.0)
    with nnc.no_grad():
        y = nnc.log(x) * 2
        with nnc.deferred():
            late = x * 3
    assert nnc.bookkeeping_count(y) == 0
    (x * late).backward()
    assert gradient_of(x) == [6.0], "what was deferred under no_grad is a constant as well"


def test_no_grad_is_a_constant_in_every_mode(x: nnc.Tensor) -> None:
    def f(t: nnc.Tensor) -> nnc.Tensor:
        with nnc.no_grad():
            scale = t * 2
        return (t * scale).sum()

    wanted = (x * 2).tolist()
    assert nnc.grad(f)(x).tolist() == wanted
    assert nnc.jit(nnc.grad(f))(x).tolist() == wanted
    with nnc.deferred():
        g = nnc.grad(f)(x)
    assert g.tolist() == wanted


def test_the_dynamic_graph_can_be_drawn(device: str) -> None:
    x = nnc.variable([1.0, 2.0])
    f = (nnc.log(x) * x).sum()
    graph = nnc.export({"x": x}, {"f": f})
    assert "log" in graph.to_dot() and "log" in str(graph)
