"""Each registered rewrite: where it applies, and where it must not."""

from __future__ import annotations

import importlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from nnc_core import optimiser as package
from nnc_core.base import dtype as dt
from nnc_core.base.config import config
from nnc_core.operator import Nodes
from nnc_core.optimiser import REWRITES, Optimiser, Rewrite
from nnc_core.optimiser.rewrite import TAGS
from nnc_core.symbol import Literal, Node, Number
from nnc_core.type import Dim, TensorSpec
from nnc_plugins.conformance.agreement import same_bits
from tests.graph.evaluate import evaluate
from tests.graph.stack import OPTIMISER, new_namespace
from tests.graph.strategies import any_array
from tests.optimiser.cases import CASES as MORE
from tests.optimiser.cases import INEXACT
from tests.optimiser.helpers import Build, Only, placeholders, text_of

NAN, INF = float("nan"), float("inf")
KEPT = None  # the graph stays as it is


def full(F: Nodes, shape: tuple[int, ...], value: Any, like: Node) -> Node:
    return F.filled(shape=shape, number=Number(value, like.dtype))


def cut(F: Nodes, x: Node, *ranges: tuple[int, int, int]) -> Node:
    start, stop, step = zip(*ranges, strict=True)
    return F.slice(x, start=start, stop=stop, step=step)


def swap(F: Nodes, x: Node) -> Node:
    return F.permute(x, axes=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def literal(F: Nodes, values: Any, dtype: Any = dt.float32) -> Node:
    array = np.array(values, dtype)
    return F.constant(Literal(array), TensorSpec(array.shape, array.dtype))


F4, I4, B = "float32 2 3", "int32 2 3", "bool 2 3"

CASES: dict[str, list[tuple[list[str], Build, Build | None]]] = {
    "number-last": [
        ([F4], lambda F, x: F.add(2.0, x), lambda F, x: F.add(x, 2.0)),
        ([F4], lambda F, x: F.multiply(full(F, (2, 3), 2, x), x), lambda F, x: F.multiply(x, full(F, (2, 3), 2, x))),
        ([F4], lambda F, x: F.maximum(1.0, x), lambda F, x: F.maximum(x, 1.0)),
        ([F4], lambda F, x: F.minimum(-0.0, x), KEPT),  # which zero it gives depends on the order
        ([F4], lambda F, x: F.maximum(0.0, x), KEPT),
        ([I4], lambda F, x: F.maximum(0, x), lambda F, x: F.maximum(x, 0)),
        ([F4], lambda F, x: F.subtract(2.0, x), KEPT),
        ([F4], lambda F, x: F.add(x, 2.0), KEPT),
    ],
    "add-zero": [
        ([F4], lambda F, x: F.subtract(x, 0.0), lambda F, x: x),
        ([F4], lambda F, x: F.add(x, -0.0), lambda F, x: x),
        ([F4], lambda F, x: F.add(x, 0.0), KEPT),  # -0 + 0 is +0
        ([F4], lambda F, x: F.subtract(x, -0.0), KEPT),
        ([I4], lambda F, x: F.add(x, 0), lambda F, x: x),
        (["int32 1 3"], lambda F, x: F.add(x, full(F, (2, 3), 0, x)), lambda F, x: F.broadcast_to(x, shape=(2, 3))),
        (["float32 3"], lambda F, x: F.subtract(x, full(F, (2, 1), 0, x)),
         lambda F, x: F.broadcast_to(x, shape=(2, 3))),
    ],
    "multiply-one": [
        ([F4], lambda F, x: F.multiply(x, 1.0), lambda F, x: x),
        ([F4], lambda F, x: F.divide(x, 1.0), lambda F, x: x),
        ([F4], lambda F, x: F.divide(x, full(F, (2, 3), 1, x)), lambda F, x: x),
        ([F4], lambda F, x: F.power(x, 1.0), lambda F, x: x),
        ([F4], lambda F, x: F.divide(1.0, x), KEPT),
        ([F4], lambda F, x: F.power(x, 0.0), KEPT),
        (["float32 1 3"], lambda F, x: F.multiply(x, full(F, (2, 1), 1, x)),
         lambda F, x: F.broadcast_to(x, shape=(2, 3))),
    ],
    "multiply-zero": [
        ([I4], lambda F, x: F.multiply(x, 0), lambda F, x: full(F, (2, 3), 0, x)),
        (["int32 1 3"], lambda F, x: F.multiply(x, full(F, (2, 3), 0, x)), lambda F, x: full(F, (2, 3), 0, x)),
        ([F4], lambda F, x: F.multiply(x, 0.0), KEPT),  # NaN, infinities, -1 * 0
    ],
    "subtract-itself": [
        ([I4], lambda F, x: F.subtract(x, x), lambda F, x: full(F, (2, 3), 0, x)),
        ([B], lambda F, x: F.logical_xor(x, x), lambda F, x: full(F, (2, 3), False, x)),
        ([B], lambda F, x: F.bitwise_xor(x, x), lambda F, x: full(F, (2, 3), False, x)),
        ([I4], lambda F, x: F.bitwise_xor(x, x), lambda F, x: full(F, (2, 3), 0, x)),
        ([F4], lambda F, x: F.subtract(x, x), KEPT),  # NaN - NaN, infinity - infinity
        ([I4, I4], lambda F, x, y: F.subtract(x, y), KEPT),
    ],
    "double-negation": [
        ([F4], lambda F, x: F.negative(F.negative(x)), lambda F, x: x),
        (["uint8 3"], lambda F, x: F.negative(F.negative(x)), lambda F, x: x),
        ([B], lambda F, x: F.logical_not(F.logical_not(x)), lambda F, x: x),
        ([I4], lambda F, x: F.bitwise_invert(F.bitwise_invert(x)), lambda F, x: x),
        ([F4], lambda F, x: F.negative(F.negative(F.negative(x))), lambda F, x: F.negative(x)),
    ],
    "add-negative": [
        ([F4, F4], lambda F, x, y: F.add(x, F.negative(y)), lambda F, x, y: F.subtract(x, y)),
        ([F4, F4], lambda F, x, y: F.add(F.negative(x), y), lambda F, x, y: F.subtract(y, x)),
        ([F4, F4], lambda F, x, y: F.subtract(x, F.negative(y)), lambda F, x, y: F.add(x, y)),
        ([F4, F4], lambda F, x, y: F.subtract(F.negative(x), y), KEPT),
    ],
    "multiply-negatives": [
        ([F4, F4], lambda F, x, y: F.multiply(F.negative(x), F.negative(y)), lambda F, x, y: F.multiply(x, y)),
        ([F4, F4], lambda F, x, y: F.divide(F.negative(x), F.negative(y)), lambda F, x, y: F.divide(x, y)),
        ([F4, F4], lambda F, x, y: F.multiply(F.negative(x), y), KEPT),
    ],
    "idempotent": [
        ([F4], lambda F, x: F.relu(F.relu(x)), lambda F, x: F.relu(x)),
        ([F4], lambda F, x: F.abs(F.abs(F.abs(x))), lambda F, x: F.abs(x)),
        ([F4], lambda F, x: F.sign(F.sign(x)), lambda F, x: F.sign(x)),
        ([F4], lambda F, x: F.maximum(x, x), lambda F, x: x),
        ([B], lambda F, x: F.logical_and(x, x), lambda F, x: x),
        ([I4], lambda F, x: F.bitwise_or(x, x), lambda F, x: x),
        ([F4], lambda F, x: F.floor(F.floor(x)), lambda F, x: F.floor(x)),
        ([F4], lambda F, x: F.fmax(x, x), lambda F, x: x),
        ([F4], lambda F, x: F.floor(F.ceil(x)), KEPT),
        ([F4], lambda F, x: F.relu(F.abs(x)), KEPT),
        ([F4, F4], lambda F, x, y: F.minimum(x, y), KEPT),
    ],
    "square": [
        ([F4], lambda F, x: F.power(x, 2.0), lambda F, x: F.multiply(x, x)),
        (["float32 1 3"], lambda F, x: F.power(x, full(F, (2, 3), 2, x)),
         lambda F, x: F.broadcast_to(F.multiply(x, x), shape=(2, 3))),
        ([F4], lambda F, x: F.power(x, 0.5), KEPT),  # sqrt differs at -inf and -0
    ],
    "same-choice": [
        ([B, F4], lambda F, c, x: F.where(c, x, x), lambda F, c, x: x),
        ([B, "float32 1 3"], lambda F, c, x: F.where(c, x, x), lambda F, c, x: F.broadcast_to(x, shape=(2, 3))),
        ([B, F4, F4], lambda F, c, x, y: F.where(full(F, (), True, c), x, y), lambda F, c, x, y: x),
        ([B, F4, F4], lambda F, c, x, y: F.where(full(F, (2, 3), False, c), x, y), lambda F, c, x, y: y),
        ([B, F4, F4], lambda F, c, x, y: F.where(c, x, y), KEPT),
    ],
    "cast-nothing": [
        ([F4], lambda F, x: F.cast(x, dtype=dt.float32), lambda F, x: x),
        ([F4], lambda F, x: F.cast(F.cast(x, dtype=dt.float64), dtype=dt.float32), KEPT),
    ],
    "identity": [
        ([F4], lambda F, x: F.identity(F.identity(x)), lambda F, x: x),
        ([F4], lambda F, x: F.stop_gradient(x), KEPT),  # a gradient may still be taken
    ],
    "reshape-again": [
        ([F4], lambda F, x: F.reshape(x, shape=(2, 3)), lambda F, x: x),
        ([F4], lambda F, x: F.reshape(F.reshape(x, shape=(6,)), shape=(3, 2)), lambda F, x: F.reshape(x, shape=(3, 2))),
        ([F4], lambda F, x: F.reshape(F.reshape(x, shape=(6,)), shape=(2, 3)), lambda F, x: x),
        ([F4], lambda F, x: F.reshape(x, shape=(3, 2)), KEPT),
    ],
    "permute-again": [
        ([F4], lambda F, x: F.permute(x, axes=(0, 1)), lambda F, x: x),
        ([F4], lambda F, x: swap(F, swap(F, x)), lambda F, x: x),
        (["float32 2 3 4"], lambda F, x: F.permute(F.permute(x, axes=(1, 2, 0)), axes=(1, 0, 2)),
         lambda F, x: F.permute(x, axes=(2, 1, 0))),
        (["float32 1 1"], lambda F, x: swap(F, x), KEPT),
    ],
    "broadcast-again": [
        ([F4], lambda F, x: F.broadcast_to(x, shape=(2, 3)), lambda F, x: x),
        (["float32 3"], lambda F, x: F.broadcast_to(F.broadcast_to(x, shape=(1, 3)), shape=(2, 3)),
         lambda F, x: F.broadcast_to(x, shape=(2, 3))),
        (["float32 3"], lambda F, x: F.broadcast_to(x, shape=(1, 3)), KEPT),
    ],
    "slice-again": [
        ([F4], lambda F, x: cut(F, x, (0, 2, 1), (0, 3, 1)), lambda F, x: x),
        (["float32 20"], lambda F, x: cut(F, cut(F, x, (2, 18, 3)), (1, 5, 2)), lambda F, x: cut(F, x, (5, 12, 6))),
        (["float32 5"], lambda F, x: cut(F, cut(F, x, (0, 5, 3)), (2, 2, 1)), lambda F, x: cut(F, x, (0, 0, 3))),
        (["float32 5"], lambda F, x: cut(F, x, (0, 5, 2)), KEPT),
        (["float32 5"], lambda F, x: cut(F, x, (0, 4, 1)), KEPT),
    ],
    "flip-again": [
        ([F4], lambda F, x: F.flip(F.flip(x, axes=(0, 1)), axes=(1,)), lambda F, x: F.flip(x, axes=(0,))),
        ([F4], lambda F, x: F.flip(F.flip(x, axes=(0,)), axes=(0,)), lambda F, x: x),
        (["float32 1 3"], lambda F, x: F.flip(x, axes=(0,)), lambda F, x: x),
        ([F4], lambda F, x: F.flip(x, axes=()), lambda F, x: x),
        ([F4], lambda F, x: F.flip(x, axes=(1,)), KEPT),
    ],
    "pad-nothing": [
        ([F4], lambda F, x: F.pad(x, low=(0, 0), high=(0, 0), interior=(0, 0)), lambda F, x: x),
        (["float32 1"], lambda F, x: F.pad(x, low=(0,), high=(0,), interior=(4,)), lambda F, x: x),
        ([F4], lambda F, x: F.pad(x, low=(0, 0), high=(0, 1), interior=(0, 0)), KEPT),
    ],
    "concat-one": [
        ([F4], lambda F, x: F.concat(x, axis=0), lambda F, x: x),
        ([F4, "float32 0 3"], lambda F, x, e: F.concat(e, x, e, axis=0), lambda F, x, e: x),
        ([F4, "float32 0 3"], lambda F, x, e: F.concat(x, e, x, axis=0), lambda F, x, e: F.concat(x, x, axis=0)),
        (["float32 0 3"], lambda F, e: F.concat(e, e, axis=0), lambda F, e: e),
        ([F4, "float32 0 3"], lambda F, x, e: F.concat(e, e, axis=1), KEPT),
    ],
    "copy-again": [
        ([F4], lambda F, x: F.copy(F.copy(x)), lambda F, x: x),
        ([F4], lambda F, x: F.add(F.copy(x), x), lambda F, x: F.add(x, x)),
    ],
    "reduce-nothing": [
        (["float32 1 3"], lambda F, x: F.max(x, axis=(0,)), lambda F, x: F.reshape(x, shape=(3,))),
        ([F4], lambda F, x: F.min(x, axis=()), lambda F, x: F.reshape(x, shape=(2, 3))),
        (["bool 1 3"], lambda F, x: F.any(x, axis=(0,), keepdims=True), lambda F, x: F.reshape(x, shape=(1, 3))),
        (["float32 1 3"], lambda F, x: F.sum(x, axis=(0,)), KEPT),  # the sum of -0 alone is +0
        (["float32 1 3"], lambda F, x: F.max(x, axis=(0, 1)), KEPT),
    ],
    "sum-nothing": [
        (["float32 1 3"], lambda F, x: F.sum(x, axis=(0,)), lambda F, x: F.reshape(x, shape=(3,))),
        (["float32 1 3"], lambda F, x: F.sum(x, axis=(1,)), KEPT),
    ],
    "move-filled": [
        ([F4], lambda F, x: F.reshape(full(F, (2, 3), 7, x), shape=(6,)), lambda F, x: full(F, (6,), 7, x)),
        ([F4], lambda F, x: F.broadcast_to(full(F, (), -0.0, x), shape=(90, 90)),
         lambda F, x: full(F, (90, 90), -0.0, x)),
        ([F4], lambda F, x: cut(F, swap(F, full(F, (2, 3), NAN, x)), (0, 3, 2), (1, 2, 1)),
         lambda F, x: full(F, (2, 1), NAN, x)),
        ([F4], lambda F, x: F.pad(full(F, (2,), 7, x), low=(1,), high=(0,), interior=(0,)), KEPT),
    ],
    "broadcast-into-elementwise": [
        (["float32 1 3", F4], lambda F, x, y: F.add(F.broadcast_to(x, shape=(2, 3)), y), lambda F, x, y: F.add(x, y)),
        (["float32 3", B, F4], lambda F, x, c, y: F.where(c, y, F.broadcast_to(x, shape=(2, 3))),
         lambda F, x, c, y: F.where(c, y, x)),
        ([F4], lambda F, x: F.multiply(x, full(F, (2, 3), 7, x)), lambda F, x: F.multiply(x, 7.0)),
        # One of the two has to give the shape.
        (["float32 1 3", "float32 3"],
         lambda F, x, y: F.add(F.broadcast_to(x, shape=(2, 3)), F.broadcast_to(y, shape=(2, 3))),
         lambda F, x, y: F.add(x, F.broadcast_to(y, shape=(2, 3)))),
        (["float32 1 3", "float32 3"], lambda F, x, y: F.add(F.broadcast_to(x, shape=(2, 3)), y), KEPT),
    ],
    "transpose-into-matmul": [
        (["float32 3 2", "float32 3 4"], lambda F, a, b: F.matmul(swap(F, a), b),
         lambda F, a, b: F.matmul(a, b, transpose_a=True)),
        (["float32 2 3", "float32 4 3"], lambda F, a, b: F.matmul(a, swap(F, b)),
         lambda F, a, b: F.matmul(a, b, transpose_b=True)),
        (["float32 2 3", "float32 3 4"], lambda F, a, b: F.matmul(swap(F, a), b, transpose_a=True),
         lambda F, a, b: F.matmul(a, b)),
        (["float32 5 3 2", "float32 5 4 3"], lambda F, a, b: F.matmul(swap(F, a), swap(F, b)),
         lambda F, a, b: F.matmul(a, b, transpose_a=True, transpose_b=True)),
        (["float32 3 2 4", "float32 2 4 5"], lambda F, a, b: F.matmul(F.permute(a, axes=(1, 0, 2)), b), KEPT),
        (["float32 4 3 2", "float32 2 4 5"], lambda F, a, b: F.matmul(F.permute(a, axes=(2, 1, 0)), b), KEPT),
    ],
    "fold-constants": [
        ([F4], lambda F, x: F.multiply(x, F.exp(full(F, (), 0, x))), lambda F, x: F.multiply(x, 1.0)),
        ([F4], lambda F, x: F.add(full(F, (90, 90), 2, x), 3.0), lambda F, x: full(F, (90, 90), 5, x)),
        ([F4], lambda F, x: F.sum(full(F, (2, 3), 2, x), axis=(1,)), lambda F, x: full(F, (2,), 6, x)),
        ([F4], lambda F, x: F.negative(literal(F, [1, 1])), lambda F, x: full(F, (2,), -1, x)),
        ([F4], lambda F, x: F.divide(full(F, (), 0, x), full(F, (), 0, x)), lambda F, x: full(F, (), NAN, x)),
        ([F4], lambda F, x: F.power(full(F, (), -INF, x), 0.5), lambda F, x: full(F, (), INF, x)),
        ([F4], lambda F, x: F.sum(full(F, (90, 90), 2, x), axis=(1,)), KEPT),  # too large for the host
        ([F4], lambda F, x: F.cast(full(F, (), NAN, x), dtype=dt.int32), KEPT),  # any integer may come out
        ([F4], lambda F, x: F.cast(full(F, (3,), 256, x), dtype=dt.uint8), KEPT),
        ([I4], lambda F, x: F.power(full(F, (), 2, x), full(F, (), -1, x)), lambda F, x: full(F, (), 0, x)),
        ([F4], lambda F, x: F.take(literal(F, [1, 2]), literal(F, [5], dt.int64), axis=0), KEPT),
        (["uint64 2"], lambda F, key: F.random_bits(key, shape=(3,), dtype=dt.uint32), KEPT),
    ],
}  # fmt: skip


assert not CASES.keys() & MORE.keys()
CASES |= MORE


def test_every_rewrite_has_cases_that_it_changes() -> None:
    assert set(CASES) == set(REWRITES)
    for name, cases in CASES.items():
        assert any(after is not KEPT for _, _, after in cases), name


def test_every_rewrite_is_in_the_table_once() -> None:
    files = Path(package.__file__).parent.glob("*.py")
    modules = [importlib.import_module(f"nnc_core.optimiser.{f.stem}") for f in files if f.stem != "__init__"]
    made = {id(x): x for module in modules for x in vars(module).values() if isinstance(x, Rewrite)}
    assert sorted(x.name for x in made.values()) == sorted(REWRITES)


def applied(name: str, node: Node) -> list[Node]:
    optimiser = Only(name)
    return (optimiser.recognise if "recognise" in REWRITES[name].tags else optimiser.run)([node])


@pytest.mark.parametrize("name", REWRITES)
def test_rewrite(name: str) -> None:
    for specs, before, after in CASES[name]:
        F, xs = placeholders(specs)
        node = before(F, *xs)
        found = applied(name, node)
        wanted = node if after is KEPT else after(new_namespace(), *xs)
        assert text_of(xs, *found) == text_of(xs, wanted)
        assert found[0].spec == node.spec
        if after is KEPT:
            assert found == [node]  # not even copied


@pytest.mark.parametrize("name", REWRITES)
def test_tags_and_exactness_are_declared(name: str) -> None:
    rewrite = REWRITES[name]
    assert rewrite.tags <= TAGS and rewrite.tags
    assert rewrite.exact != (name in INEXACT)
    with config.using(deterministic=True):
        assert (rewrite in OPTIMISER.rewrites()) == rewrite.exact


def test_deterministic_folds_exact_operators_only() -> None:
    F, (x,) = placeholders([F4])
    one = full(F, (), 1, x)
    exact, inexact = F.add(one, one), F.exp(one)
    with config.using(deterministic=True):
        assert [n.op.name for n in OPTIMISER.run([exact, inexact])] == ["filled", "exp"]
    assert [n.op.name for n in OPTIMISER.run([exact, inexact])] == ["filled", "filled"]


def test_a_constant_of_a_device_is_not_folded() -> None:
    F = new_namespace()
    elsewhere = F.constant(Literal(object(), "opencl:0"), TensorSpec((2,), dt.float32))
    assert OPTIMISER.run([node := F.negative(elsewhere)]) == [node]


def test_folded_arrays_are_packed_and_views_of_nothing() -> None:
    F = new_namespace()
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    (out,) = OPTIMISER.run([swap(F, F.constant(Literal(given), TensorSpec((2, 3), dt.float32)))])
    array = out.attributes[0].array
    assert array.flags.c_contiguous and not np.shares_memory(array, given)
    np.testing.assert_array_equal(array, given.T)


def test_named_dimensions_do_not_get_in_the_way() -> None:
    F, n = new_namespace(), Dim("n")
    x = F.placeholder("x", TensorSpec((n, 3), dt.float32))
    shifted = F.add(F.broadcast_to(F.full(shape=(), value=2, dtype=dt.float32), shape=(n, 3)), F.identity(x))
    flat = F.reshape(F.reshape(shifted, shape=(n * 3,)), shape=(n, 3))
    (out,) = OPTIMISER.run([F.multiply(flat, 1.0)])
    assert text_of([x], out) == text_of([x], new_namespace().add(x, 2.0))


def test_an_optimiser_can_be_replaced() -> None:
    class NoOptimiser(Optimiser):
        def rewrites(self) -> tuple[()]:
            return ()

    F, (x,) = placeholders([F4])
    assert NoOptimiser(OPTIMISER.operator).run([node := F.multiply(x, 1.0)]) == [node]


@pytest.mark.parametrize("name", sorted(n for n, r in REWRITES.items() if r.exact))
def test_exact_rewrites_keep_every_bit_of_awkward_values(name: str) -> None:
    """NaN, infinities, signed zeros and the ends of integers in the cases above."""
    for specs, before, after in CASES[name]:
        if after is KEPT:
            continue
        for seed in range(5):
            F, xs = placeholders(specs)
            values = {x: any_array(Random(seed), x.spec) for x in xs}
            node = before(F, *xs)
            old, new = evaluate([node], values)[0], evaluate(Only(name).run([node]), values)[0]
            assert same_bits(new, old).all(), f"{old} became {new}"
