"""NNC's unit cases of branches, of simplifying and compiling graphs with them, and of bound tensors, restated.

docs/nnc_cases.md says which case became which test.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from tests.semantics.loops import (
    PIECES,
    POINTS,
    bodies,
    both,
    by_numpy,
    choose_in_python,
    compare,
    compare_gradients,
    in_a_loop,
    near,
    one,
    operators,
    piece,
    piecewise,
    piecewise_in_python,
    repeat,
    repeat_in_python,
)
from tests.semantics.modes import check, hosts
from tests.support import numbers, same

# ---- case_of.tests
SLOPES = {-1.0: 0.0, 0.0: 1.0, 0.76: 1.0, 1.226: 0.5, 2.1: 0.0}


def test_case_of_piecewise_linear(device: str, mode: str) -> None:
    """The concrete graph of NNC: one function, called with each point; compiled once."""
    f = nnc.jit(piecewise)
    for x in POINTS:
        compare(mode, piecewise, piecewise_in_python, one(x))
        assert f(one(x)).item() == pytest.approx(by_numpy(x), rel=1e-6)
    assert f.traces == 1, "the branch is chosen when the graph runs"


def test_case_of_symbolic_piecewise(device: str, mode: str) -> None:
    """Exported once, in whatever branch it was recorded; called with each point."""
    x = one(0.76)
    with nnc.deferred():
        y = piecewise(x)
    graph = nnc.export({"x": x}, {"y": y})
    assert sum(node.op.name == "case_of" for node in graph.nodes) == 1
    run = graph.compile(device)
    for point in POINTS:
        same(hosts(run(x=one(point))["y"]), hosts(piecewise(one(point))))
    check(mode, piecewise, x)


def test_case_of_without_a_replacement_and_an_index_outside(device: str, mode: str) -> None:
    """NNC leaves the outputs unset; here it is an error that names the index, or the operands pass."""
    with pytest.raises((ValueError, IndexError, RuntimeError)) as caught:
        (y,) = nnc.case_of(nnc.asarray(np.array(7, np.int32)), PIECES, (one(1.0),))
        y.numpy()
    assert isinstance(caught.value, nnc.Error) and "7" in str(caught.value)


def wide_branches(x: nnc.Tensor, *weights: nnc.Tensor) -> nnc.Tensor:
    """Two branches of two layers each, with intermediate values of the same size."""
    u0, w0, u1, w1, b, c = weights
    branches = (lambda x: ((x @ u0 + b) @ w0 + c,), lambda x: ((x @ u1 + c) @ w1 + b,))
    (y,) = nnc.case_of(piece(x), branches, (x,), replacement=(x,))
    return y


def wide_in_python(x: nnc.Tensor, *weights: nnc.Tensor) -> nnc.Tensor:
    u0, w0, u1, w1, b, c = weights
    at = piece(x).item()
    return (x @ u0 + b) @ w0 + c if at == 0 else (x @ u1 + c) @ w1 + b if at == 1 else x


def test_case_of_branches_share_memory(device: str, mode: str) -> None:
    """z0 and z1 of NNC's case lie in one place: a second branch makes the arena no larger."""
    size = 64
    weights = [nnc.asarray(numbers(size, size, seed=k) * np.float32(0.1)) for k in range(4)]
    weights += [nnc.asarray(numbers(size, seed=k)) for k in (5, 6)]
    for first in (-1.0, 0.5, 1.5):
        x = nnc.asarray(np.full(size, first, np.float32))
        compare(mode, wide_branches, wide_in_python, x, *weights)
    x = nnc.asarray(numbers(size))

    def peak(branches: int) -> int:
        def f(x: nnc.Tensor, *w: nnc.Tensor) -> nnc.Tensor:
            chosen = tuple(lambda x, k=k: (nnc.tanh((x @ w[k] + w[4]) @ w[(k + 1) % 4] + w[5]),) for k in range(4))
            return nnc.case_of(piece(x), chosen[:branches], (x,), replacement=(x,))[0]

        return int(nnc.jit(f).lower(x, *weights).memory_plan.peak)

    assert peak(4) == peak(2) == peak(1)


def four_branches(x: nnc.Tensor) -> nnc.Tensor:
    branches = tuple(lambda x, k=k: (x * float(k + 1) - nnc.exp(x) * k,) for k in range(4))
    (y,) = nnc.case_of(nnc.sum(x).astype(nnc.int32), branches, (x,), replacement=(x * 0,))
    return y


def test_case_of_4_branches(device: str, mode: str) -> None:
    for at in (-2, -1, 0, 1, 2, 3, 4, 100):
        x = one(at + (0.25 if at >= 0 else 0.0))
        plain = lambda x, at=at: x * float(at + 1) - nnc.exp(x) * at if 0 <= at < 4 else x * 0  # noqa: E731
        compare(mode, four_branches, plain, x)
        if 0 <= at < 4:
            compare_gradients(mode, four_branches, plain, x)


@pytest.mark.parametrize("factor", [1.0, 0.8])
def test_case_of_inside_while(device: str, mode: str, factor: float) -> None:
    """Each round may take another branch; 0.8 is NNC's second such case."""
    program = partial(in_a_loop, repeat, piecewise, factor)
    plain = partial(in_a_loop, repeat_in_python, piecewise_in_python, factor)
    for point in POINTS:
        compare(mode, program, plain, one(point))
    for point in (-1.0, 0.76, 1.226, 2.1):
        compare_gradients(mode, program, plain, one(point))


# ---- case_of.backward.tests
def test_case_of_backward_of_a_piecewise_function(device: str, mode: str) -> None:
    slope = nnc.grad(lambda x: nnc.sum(piecewise(x)))
    f = nnc.jit(slope)
    for point, wanted in SLOPES.items():
        check(mode, slope, one(point))
        assert slope(one(point)).item() == f(one(point)).item() == wanted
        compare_gradients(mode, piecewise, piecewise_in_python, one(point))
    assert f.traces == 1


# ---- simplify.tests
def branches_of_sums(x: nnc.Tensor, y: nnc.Tensor, z: nnc.Tensor) -> nnc.Tensor:
    sum1, sum2 = x + y, x + y
    prod1, prod2 = sum1 * z, sum2 * z
    index = nnc.where(x[0] < 0.0, 0, nnc.where(x[0] < 2.0, 1, -1)).astype(nnc.int32)
    branches = (lambda s1, p1, p2, s2: (s1 + p1 + p2,), lambda s1, p1, p2, s2: (p2 * s2,))
    return nnc.case_of(index, branches, (sum1, prod1, prod2, sum2), replacement=(prod1,))[0]


def test_simplify_case_of(device: str, mode: str) -> None:
    """Equal sums and products before the branches become one each."""
    args = one(1.1), one(2.2)
    for x, wanted in ((-2.0, -0.9 + -0.9 * 2.2 * 2), (1.5, 2.6 * 2.6 * 2.2), (3.0, 4.1 * 2.2)):
        check(mode, branches_of_sums, one(x), *args)
        assert branches_of_sums(one(x), *args).item() == pytest.approx(wanted, rel=1e-5)
    text = str(nnc.jit(branches_of_sums).lower(one(1.5), *args).graph)
    before = text[: text.index("case_of")]
    assert before.count("add(") == 1 and before.count("multiply(") == 1, text


def twice_the_product(which: str, again: Any, x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
    """z1 = x y, p = x y, x <- z1 + p; then the sum of the last x and z1, p or both."""

    def step(x: nnc.Tensor, z1: nnc.Tensor, p: nnc.Tensor) -> tuple[nnc.Tensor, ...]:
        z1, p = x * y, x * y
        return z1 + p, z1, p

    z2, z1, p = again(6, step, (x, x, x))
    return {"p": p + z2, "z1": z1 + z2, "both": z1 + p + z2}[which]


@pytest.mark.parametrize("which", ["p", "z1", "both"])
def test_simplify_while(device: str, mode: str, which: str) -> None:
    """Variants 1 to 3; the third cannot be simplified by NNC."""
    x, y = one(0.5), one(1.1)
    compare(mode, *both(partial(twice_the_product, which)), x, y)
    r = 0.5 * 2.2**6
    found = twice_the_product(which, repeat, x, y).item()
    assert found == pytest.approx(r * (2.0 if which == "both" else 1.5), rel=1e-5)
    graph = nnc.jit(partial(twice_the_product, which, repeat)).lower(x, y).graph
    assert operators(bodies(graph, "loop")).count("multiply") == 1


# ---- symbolic.graph.compile.tests
def test_compile_case_of_with_branches_of_different_sizes(device: str, mode: str) -> None:
    """Three branches of dense layers, 1-3-1, 8 and 16 wide; the fourth possibility passes x through."""
    shapes = [(2, 1), (1, 3), (3, 2), (2, 1), (1, 2), (2, 8), (8, 2), (2, 16), (16, 2)]
    weights = [nnc.asarray(numbers(*s, seed=k)) for k, s in enumerate(shapes)]
    biases = [nnc.asarray(numbers(s[1], seed=20 + k)) for k, s in enumerate(shapes)]

    def layer(k: int, x: nnc.Tensor) -> nnc.Tensor:
        return x @ weights[k] + biases[k]

    branches = (lambda x: (layer(2, layer(1, layer(0, x))) + layer(4, layer(3, x)),),
                lambda x: (layer(6, layer(5, x)),), lambda x: (layer(8, layer(7, x)),))

    def index(x: nnc.Tensor) -> nnc.Tensor:
        first = x[0]
        above = nnc.where(first < 2.0, 2, 1)
        return nnc.where(first < 0.0, -1, nnc.where(first < 1.0, 0, above)).astype(nnc.int32)

    def program(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.case_of(index(x), branches, (x,), replacement=(x,))[0]

    outside = {f"w{k}": t for k, t in enumerate(weights)} | {f"b{k}": t for k, t in enumerate(biases)}
    for point in ([-1.0, 10.0], [0.5, 1.0], [1.11, 2.56], [4.5, 3.33]):
        x = nnc.asarray(np.array(point, np.float32))
        check(mode, program, x, outside=outside)
        near(program(x), choose_in_python(index(x).item(), branches, (x,), (x,)))
    f = nnc.jit(program)
    for point in ([-1.0, 10.0], [0.5, 1.0]):
        x = nnc.asarray(np.array(point, np.float32))
        same(hosts(f(x)), hosts(program(x)))
    weights[0][...] = 0.0
    x = nnc.asarray(np.array([0.5, 1.0], np.float32))
    same(hosts(f(x)), hosts(program(x)))
    assert f.traces == 1


# ---- tensor.bind.tests
def test_bind_a_and_b_of_a_loop(device: str, mode: str) -> None:
    """z = a x + b (x <- z) with a and b bound: read from outside at each call, and inputs of the exported graph."""
    a, b = one(0.3), one(1.1)

    def program(again: Any, x: nnc.Tensor) -> nnc.Tensor:
        (z,) = again(5, lambda x: (a * x + b,), (x,))
        return z

    check(mode, partial(program, repeat), one(0.88), outside={"a": a, "b": b})
    f = nnc.jit(partial(program, repeat))
    for factor in (0.3, 0.5, 0.3):
        a[...] = factor
        wanted = 0.88
        for _ in range(5):
            wanted = np.float32(factor) * wanted + np.float32(1.1)
        assert f(one(0.88)).item() == program(repeat, one(0.88)).item() == pytest.approx(wanted, rel=1e-6)
    assert f.traces == 1


def test_bind_a_tensor_and_its_views(device: str, mode: str) -> None:
    """(a[1] + a[0]) * a with a bound; changed in place, the next call sees it."""
    a = nnc.asarray([1.5, -2.0])

    def program(x: nnc.Tensor) -> nnc.Tensor:
        return (a[1] + a[0]) * a + x * 0

    check(mode, program, one(1.0), outside={"a": a})
    f = nnc.jit(program)
    assert f(one(1.0)).tolist() == [-0.75, 1.0]
    a[0] = 3.0
    assert f(one(1.0)).tolist() == [3.0, -2.0] and f.traces == 1


def test_bind_takes_no_memory_of_the_plan(device: str) -> None:
    """What is bound is not allocated again: the arena of a + a * b holds neither."""
    a, b = nnc.ones(100_000), nnc.ones(100_000)
    f = nnc.jit(lambda: nnc.sum(a + a * b))
    assert f().item() == 200_000.0
    assert f.lower().memory_plan.peak < a.nbytes + b.nbytes


# ---- graph.tests
def test_graph_of_a_simple_network(device: str, mode: str) -> None:
    w, v = nnc.asarray(numbers(3, 3, 4, 2)), nnc.asarray(numbers(50, 3))

    def network(x: nnc.Tensor) -> nnc.Tensor:
        y = nnc.max_pool2d(nnc.relu(nnc.conv2d(x, w, padding="SAME")), 3, strides=1, padding="SAME")
        return nnc.softmax(nnc.reshape(y, (1, 50)) @ v)

    check(mode, network, nnc.asarray(numbers(1, 5, 5, 4)), outside={"w": w, "v": v})
    near(nnc.sum(network(nnc.asarray(numbers(1, 5, 5, 4)))), nnc.asarray(1.0))
