"""Where NNC and Owl differ from what they say, or cannot do what they should: a test each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import nnc_core as nnc
from nnc_core import nn
from tests.semantics.hybrid import RUNS, run_as
from tests.semantics.modes import Host, check, hosts
from tests.semantics.networks import generator
from tests.support import numbers, same
from tests.tensors.faults import fails

X = numbers(4, 3)


# ---- NNC: where the documents and the code differ
def test_no_batch_dimension_ignored(device: str) -> None:
    """D13: for two images NNC's fast convolution and its pools compute the first, and say that all went well."""
    kernel = nnc.asarray(numbers(3, 3, 2, 4))
    for f in (lambda x: nnc.conv2d(x, kernel), lambda x: nnc.conv2d(x, kernel, padding="SAME", strides=2),
              lambda x: nnc.max_pool2d(x, 2), lambda x: nnc.avg_pool2d(x, 2),
              lambda x: nnc.max_pool2d(x, 3, strides=1)):
        images = numbers(3, 6, 6, 2)
        one_by_one = [hosts(f(nnc.asarray(images[k : k + 1])))[0] for k in range(3)]
        for how in RUNS:
            found = run_as(how, nn.Lambda(f))(nnc.asarray(images)).numpy()
            np.testing.assert_allclose(found, np.concatenate(one_by_one), rtol=1e-5, atol=1e-6)

        def loss(x: nnc.Tensor, f: Callable[..., nnc.Tensor] = f) -> nnc.Tensor:
            return nnc.sum(f(x) ** 2)

        parts = [hosts(nnc.grad(loss)(nnc.asarray(images[k : k + 1])))[0] for k in range(3)]
        np.testing.assert_allclose(nnc.grad(loss)(nnc.asarray(images)).numpy(), np.concatenate(parts), rtol=1e-4,
                                   atol=1e-5)


def test_no_memoisation_in_name_only(device: str) -> None:
    """D7: a graph that "carries a hash" and never looks at it.  Hits are seen; gradients are those of two steps."""
    x = nnc.asarray(X)
    before = nnc.memo_info().hits
    a = nnc.tanh(x)
    assert nnc.memo_info().hits == before, "only who asks for it"
    with nnc.memoise():
        a, b = nnc.tanh(x), nnc.tanh(x)
        assert nnc.memo_info().hits == before + 1
        same(hosts([a, b]), hosts([nnc.tanh(x * 1), nnc.tanh(x * 1)]))
        v = nnc.variable(X)
        p, q = v * 3.0, v * 3.0
        g = nnc.grad(lambda p, q: nnc.sum(p * q))(p, q)
        same(hosts(g), hosts(q))
        drawn = [generator(1).uniform((4,)), *(lambda g: (g.uniform((4,)), g.uniform((4,))))(generator(2))]
    assert len({t.numpy().tobytes() for t in drawn}) == 3, "random numbers are never shared"


def test_no_constant_left_unfolded(device: str) -> None:
    """D10: constant folding is a comment in NNC."""
    f = nnc.jit(lambda x: x * (nnc.sin(nnc.ones(3)) + nnc.exp(nnc.zeros(3))))
    x = nnc.asarray(X)
    with nnc.config.using(deterministic=False):  # else constants are computed where everything is, for the same bits
        text = str(f.lower(x).graph)
    assert "sin" not in text and "exp" not in text, text
    np.testing.assert_allclose(f(x).numpy(), X * (np.sin(np.float32(1)) + 1), rtol=1e-6)


def test_no_alias_missed_by_common_subexpressions(device: str) -> None:
    """D11: NNC cannot hash an alias."""
    f = nnc.jit(lambda x: nnc.exp(x[1:].T) + nnc.exp(x[1:].T))
    x = nnc.asarray(X)
    assert str(f.lower(x).graph).count("exp(") == 1
    same(hosts(f(x)), hosts(nnc.exp(x[1:].T) + nnc.exp(x[1:].T)))


def test_no_limit_of_eight_dimensions(device: str) -> None:
    """D1: eight in the documents, twelve in the code."""
    host = numbers(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2)

    def f(x: nnc.Tensor) -> list[nnc.Tensor]:
        return [nnc.permute_dims(x, tuple(reversed(range(12)))) + x, nnc.sum(x, axis=(1, 5, 11)), x[0, 1, ..., 1]]

    for mode in ("deferred", "symbolic", "jit"):
        check(mode, f, nnc.asarray(host))
    assert f(nnc.asarray(host))[0].shape == (2,) * 12


# ---- Owl
def test_no_addition_of_zeros_that_forgets_broadcasting(device: str) -> None:
    row = nnc.asarray(X[:1])
    for f in (lambda x: x + nnc.zeros((4, 3)), lambda x: nnc.zeros((4, 3)) + x, lambda x: x - nnc.zeros((4, 3)),
              lambda x: x * nnc.ones((4, 3)), lambda x: x / nnc.ones((4, 3)), lambda x: x ** nnc.ones((4, 3))):
        check("jit", f, row)
        check("symbolic", f, row)
        assert f(row).shape == (4, 3)


def test_no_repeat_dropped_that_both_operands_need(device: str) -> None:
    a, b = nnc.asarray(X[:1]), nnc.asarray(X[1:2])
    for mode in ("jit", "symbolic"):
        check(mode, lambda a, b: nnc.broadcast_to(a, (4, 3)) + nnc.broadcast_to(b, (4, 3)), a, b)


def test_no_operator_without_broadcasting(device: str) -> None:
    row, column = nnc.asarray(np.abs(X[:1])), nnc.asarray(np.abs(X[:, :1]))
    for f in (lambda a, b: a**b, nnc.maximum, nnc.minimum, nnc.less, nnc.equal, nnc.greater_equal):
        for mode in ("deferred", "symbolic", "jit"):
            check(mode, f, row, column)
        assert f(row, column).shape == (4, 3)


def test_no_reduced_axis_kept_by_lazy_work(device: str) -> None:
    """[2,3] summed over axis 0 is [1,3] when Owl is lazy and [3] when it is eager."""
    for reduce in (nnc.sum, nnc.max, nnc.min, nnc.mean):
        for axis, keepdims in ((0, False), (1, True), ((0, 1), False)):
            f = lambda x, r=reduce, a=axis, k=keepdims: r(x, axis=a, keepdims=k)  # noqa: E731
            for mode in ("deferred", "symbolic", "jit"):
                check(mode, f, nnc.asarray(X))


def test_no_value_of_a_symbol_that_was_never_assigned(device: str) -> None:
    """Uninitialised memory in Owl."""
    a = nnc.var_arr("a", shape=(2, 2))
    b = a + 1
    with fails(ValueError, "'a'", line=False):
        nnc.eval_arr([b])
    nnc.assign(a, np.ones((2, 2), np.float32))
    nnc.eval_arr([b])
    assert nnc.unpack_arr(b).tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_no_operator_that_only_the_graph_knows(device: str) -> None:
    """22 of Owl's operators cannot be evaluated, 14 make its optimiser raise; indexing and stacking are among them."""
    x = nnc.asarray(X)
    for f in (lambda x: nnc.stack([x, x * 2]), lambda x: x[[0, 2]], lambda x: x.at[1:].set(0.0),
              lambda x: nnc.log(nnc.sum(nnc.exp(x), axis=1)), lambda x: nnc.sqrt(x * x + 1),
              lambda x: nnc.maximum(x, 0.5) + nnc.minimum(x, -0.5), lambda x: nnc.concat([x[:1], x[2:]])):
        for mode in ("symbolic", "jit"):
            check(mode, f, x, **({"capture": "constant"} if mode == "symbolic" else {}))


def test_no_layer_differentiable_only_once(device: str) -> None:
    """Some of Owl's have first-order reverse mode only.  Reverse over reverse against forward over reverse."""
    kernel, labels = nnc.asarray(numbers(2, 2, 2, 3)), nnc.asarray(np.array([0, 2, 1, 1]))
    images, rows = numbers(1, 4, 4, 2), X
    cases: list[tuple[Callable[[nnc.Tensor], nnc.Tensor], Host]] = [
        (lambda x: nnc.sum(nnc.tanh(nnc.conv2d(x, kernel))), images),
        (lambda x: nnc.sum(nnc.avg_pool2d(x, 2) ** 3), images),
        (lambda x: nnc.sum(nnc.max_pool2d(x, 2) ** 3), images),
        (lambda x: nnc.sum(nnc.softmax(x) ** 2), rows),
        (lambda x: nnc.cross_entropy(x, labels), rows),
        (lambda x: nnc.sum(nnc.sigmoid(x) * nnc.relu(x)), rows),
    ]
    for f, host in cases:
        x, direction = nnc.asarray(host), nnc.asarray(numbers(*host.shape, seed=3))
        inner = nnc.grad(f)
        backwards = nnc.grad(lambda x, inner=inner, d=direction: nnc.sum(inner(x) * d))
        _, forwards = nnc.jvp(inner, (x,), (direction,))
        np.testing.assert_allclose(backwards(x).numpy(), forwards.numpy(), rtol=1e-4, atol=1e-5)
        assert np.abs(forwards.numpy()).max() > 0
        for mode in ("deferred", "jit"):
            check(mode, backwards, x)


def test_no_random_numbers_frozen_in_a_graph(device: str) -> None:
    """Random nodes are drawn anew in each evaluation, and the same seed draws the same in every mode."""
    drawn = {}
    for how in RUNS:
        g = generator(11)
        f = run_as(how, nn.Lambda(lambda x, g=g: x + g.uniform((4,))))
        drawn[how] = [f(nnc.zeros(4)).numpy() for _ in range(3)]
        assert (drawn[how][0] != drawn[how][1]).any() and (drawn[how][1] != drawn[how][2]).any()
        same(drawn[how], drawn["eager"])
