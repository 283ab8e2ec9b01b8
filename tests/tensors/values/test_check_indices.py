"""`config.check_indices`: an index out of range is one error on every device and in every mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.device.host import download
from nnc_core.engine import index_checks
from nnc_core.errors import OutOfRangeError
from nnc_core.operator import OPERATORS
from tests.tensors.faults import fails
from tests.tensors.ways import in_mode

MODES = ["eager", "deferred", "compiled", "exported"]
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
IMAGES = np.linspace(-1, 1, 2 * 4 * 4, dtype=np.float32).reshape(2, 4, 4, 1)
BOXES = np.array([[0.0, 0.0, 3.0, 3.0]], np.float32)
Function = Callable[[nnc.Tensor, nnc.Tensor], nnc.Tensor]

def as_image(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.reshape(x, (1, 1, 2, 1))


READS: dict[str, tuple[Function, Any, Any]] = {
    "take": (lambda x, i: nnc.take(x, i, axis=0), X, [0, 4]),
    "take from the end": (lambda x, i: nnc.take(x, i, axis=1), X, [0, -4]),
    "take in a chain": (lambda x, i: nnc.tanh(nnc.take(x * 2, i, axis=0) + 1) * 3, X, [0, 4]),
    "one_hot in a chain": (lambda x, i: nnc.sum(nnc.one_hot(i, 3) * x[:2]) * 2, X, [0, 3]),
    "take of unsigned": (lambda x, i: nnc.take(x, nnc.astype(i, "uint8"), axis=1), X, [0, 200]),
    "gather": (lambda x, i: nnc.gather(x, 1, nnc.reshape(i, (1, 2))), X, [0, 3]),
    "take_along_axis": (lambda x, i: nnc.take_along_axis(x, nnc.reshape(i, (2, 1)), axis=0), X, [0, 4]),
    "embedding": (lambda x, i: nnc.embedding(x, i), X, [0, 4]),
    "embedding_bag": (lambda x, i: nnc.embedding_bag(x, nnc.reshape(i, (1, 2))), X, [0, 4]),
    "index_select": (lambda x, i: nnc.index_select(x, 0, i), X, [0, -5]),
    "x[i]": (lambda x, i: x[i], X, [0, 7]),
    "x[i] of one": (lambda x, i: x[nnc.sum(i)], X, [0, 7]),
    "x[:, i]": (lambda x, i: x[:, i], X, [0, 7]),
    "x[i, 1]": (lambda x, i: x[i, 1], X, [0, 4]),
    "x[i, j]": (lambda x, i: x[nnc.zeros_like(i), i], X, [0, 3]),
    "x[j, i]": (lambda x, i: x[i, nnc.zeros_like(i)], X, [0, -5]),
    "ravel_multi_index": (lambda x, i: nnc.ravel_multi_index((i, i), (3, 4)), X, [0, 3]),
    "ravel_multi_index of negative ones": (lambda x, i: nnc.ravel_multi_index((i, i), (3, 4)), X, [0, -1]),
    "unravel_index": (lambda x, i: nnc.unravel_index(i, (3, 4))[0], X, [0, 12]),
    "one_hot": (lambda x, i: nnc.one_hot(i, 4), X, [0, 4]),
    "one_hot of negative ones": (lambda x, i: nnc.one_hot(i, 4), X, [0, -1]),
    "roi_align": (lambda x, i: nnc.roi_align(x, BOXES, 2, images=i[1:]), IMAGES, [0, 2]),
    "roi_pool": (lambda x, i: nnc.roi_pool(x, BOXES, 2, images=i[1:]), IMAGES, [0, 2]),
}
WRITES: dict[str, tuple[Function, Any, Any]] = {
    "scatter": (lambda x, i: nnc.scatter(x, 0, nnc.reshape(i, (2, 1)), 1.0), X, [0, 4]),
    "scatter_add": (lambda x, i: nnc.scatter_add(x, 1, nnc.reshape(i, (1, 2)), 1.0), X, [0, 3]),
    "put_along_axis": (lambda x, i: nnc.put_along_axis(x, nnc.reshape(i, (2, 1)), 1.0, 0), X, [0, 4]),
    "index_add": (lambda x, i: nnc.index_add(x, 0, i, np.ones((2, 3), np.float32)), X, [0, 4]),
    "x.at[i].set": (lambda x, i: x.at[i].set(1.0), X, [0, 4]),
    "x.at[i, j].add": (lambda x, i: x.at[i, nnc.zeros_like(i)].add(1.0), X, [0, 4]),
    "segment_sum": (lambda x, i: nnc.segment_sum(x[:2], i, 3), X, [0, 3]),
    "max_unpool": (lambda x, i: nnc.max_unpool(as_image(x[0, :2]), as_image(i), (2, 4)), X, [0, 8]),
}  # fmt: skip
LABELS: dict[str, tuple[Function, Any, Any]] = {
    "cross_entropy": (lambda x, y: nnc.cross_entropy(x, y), X[:2], [0, 3]),
    "cross_entropy of rows alone": (lambda x, y: nnc.cross_entropy(x, y, reduction="none"), X[:2], [0, -1]),
    "weighted": (lambda x, y: nnc.cross_entropy(x, y, weights=[1.0, 2.0, 3.0]), X[:2], [0, 3]),
    "smoothed": (lambda x, y: nnc.cross_entropy(x, y, label_smoothing=0.1), X[:2], [0, -2]),
    "along an axis": (lambda x, y: nnc.cross_entropy(x.T, y, axis=0), X[:2], [0, 3]),
    "nothing is ignored": (lambda x, y: nnc.cross_entropy(x, y, ignore_index=None), X[:2], [0, -100]),
    "another is ignored": (lambda x, y: nnc.cross_entropy(x, y, ignore_index=1), X[:2], [1, -100]),
    "nll_loss": (lambda x, y: nnc.nll_loss(x, y), X[:2], [0, 3]),
    "categorical_cross_entropy": (lambda x, y: nnc.categorical_cross_entropy(x, y), np.abs(X[:2]), [0, 3]),
}
CASES = {**READS, **WRITES, **LABELS}


@contextmanager
def checking() -> Iterator[None]:
    with config.using(check_indices=True):
        yield


def run(mode: str, f: Function, x: nnc.Tensor, i: nnc.Tensor) -> nnc.Tensor:
    """f(x, i) in one of the MODES; graphs take what else it reads as constants."""
    if mode != "exported":
        return in_mode(mode, f, x, i)
    with nnc.deferred():
        y = f(x, i)
    graph = nnc.export({"x": x, "i": i}, {"y": y}, capture="constant", on_unused="ignore")
    return graph.compile(x.device.id)(x=x, i=i)["y"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_is_the_same_error(name: str, mode: str, device: str) -> None:
    f, host, wrong = CASES[name]
    x, i = nnc.asarray(host), nnc.asarray(np.array(wrong))
    with checking(), fails(OutOfRangeError, str(wrong[1]), device):
        run(mode, f, x, i)
    with checking():
        np.testing.assert_array_equal(x.numpy(), host)
        run(mode, f, x, nnc.asarray(np.array([1, 0]))).numpy()


@pytest.mark.parametrize("mode", MODES)
def test_the_operator_the_index_and_the_size_are_named(mode: str, device: str) -> None:
    x, i = nnc.asarray(X), nnc.asarray([1, 0, -5])
    with checking(), fails(OutOfRangeError, "index -5 is out of range for an axis of length 4", "-4 <= index < 4",
                           operator="take"):
        run(mode, lambda x, i: nnc.take(x, i, axis=0), x, i)
    with checking(), fails(OutOfRangeError, "3 is none of 3 classes", "< 3"):  # or by the one_hot inside
        run(mode, lambda x, y: nnc.cross_entropy(x, y), nnc.asarray(X[:1]), nnc.asarray([3]))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_ignored_is_no_mistake(mode: str, device: str) -> None:
    def losses(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        found = [nnc.cross_entropy(x, y), nnc.nll_loss(x, y), nnc.cross_entropy(x, y, weights=[1.0, 2.0, 3.0]),
                 nnc.cross_entropy(x, nnc.where(y < 0, 7, y), ignore_index=7, label_smoothing=0.2)]
        return nnc.stack(found)

    x, labels = nnc.asarray(X), nnc.asarray([0, -100, 2, 1])
    wanted = run(mode, losses, x, labels).numpy()
    with checking():
        np.testing.assert_array_equal(run(mode, losses, x, labels).numpy(), wanted)


def test_gradients_of_ignored_rows(device: str) -> None:
    labels = nnc.asarray([0, -100, 2, 1])
    slope = nnc.grad(lambda x: nnc.cross_entropy(x, labels))
    wanted = slope(nnc.asarray(X)).numpy()
    with checking():
        for f in (slope, nnc.jit(slope)):
            np.testing.assert_allclose(f(nnc.asarray(X)).numpy(), wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("shape", [(3, 3, 0), (2, 4, 1), (4, 2, -1), (3, 3, 7), (3, 3, -2), (2, 5, 0), (0, 3, 0)])
def test_diagonals_beyond_the_matrix_are_no_mistake(shape: tuple[int, int, int], device: str) -> None:
    rows, columns, k = shape
    with checking():
        np.testing.assert_array_equal(nnc.eye(rows, columns, k=k).numpy(), np.eye(rows, columns, k, np.float32))


def test_a_compiled_function_is_not_traced_again(device: str) -> None:
    f = nnc.jit(lambda x, i: nnc.one_hot(i, 3) + x)
    x, good, bad = nnc.zeros(3), nnc.asarray([0, 2]), nnc.asarray([0, 3])
    f(x, bad)
    with checking(), fails(OutOfRangeError, "index 3 is none of 3 classes", operator="one_hot"):
        f(x, bad)
    assert f.traces == 1 and f(x, good).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_state_stays_as_it_was(device: str) -> None:
    weight, steps = nnc.Cell(nnc.ones((4, 2)), "weight"), nnc.Cell(nnc.zeros(()), "steps")

    @nnc.jit
    def step(i: nnc.Tensor) -> nnc.Tensor:
        steps.write(steps.read() + 1)
        weight.write(weight.read() * 2)
        return nnc.take(weight.read(), i, axis=0)

    with checking():
        step(nnc.asarray([0]))
        with fails(OutOfRangeError, "index 9"):
            step(nnc.asarray([9]))
        assert weight.read().tolist() == [[2, 2]] * 4 and steps.read().item() == 1
        assert step(nnc.asarray([1])).tolist() == [[4, 4]]


def test_in_loops_and_branches(device: str) -> None:
    def rows(x: nnc.Tensor, i: nnc.Tensor) -> nnc.Tensor:
        return nnc.scan(lambda c, k: (c + nnc.sum(nnc.take(x, k, axis=0)), c), nnc.zeros(()), i)[0]

    def chosen(x: nnc.Tensor, i: nnc.Tensor) -> nnc.Tensor:
        return nnc.cond(nnc.sum(i) > 0, lambda: nnc.take(x, i, axis=0), lambda: nnc.zeros((2, 3)))

    x = nnc.asarray(X)
    for f in (rows, chosen, nnc.jit(rows), nnc.jit(chosen)):
        with checking():
            f(x, nnc.asarray([1, 2])).numpy()
            with fails(OutOfRangeError, "index 4 is out of range", operator="take"):
                f(x, nnc.asarray([0, 4])).numpy()


def test_other_contexts_are_left_alone(device: str) -> None:
    with checking(), config.using(check_indices=False):
        assert nnc.one_hot(nnc.asarray([5]), 2).tolist() == [[0, 0]]
    assert nnc.one_hot(nnc.asarray([5]), 2).tolist() == [[0, 0]]


def test_both_looks_at_once(device: str) -> None:
    f = nnc.jit(lambda x, i: nnc.log(nnc.take(x, i)))
    x = nnc.asarray([1.0, -1.0])
    with config.using(check_indices=True, check_nan="nan"):
        assert f(x, nnc.asarray([0])).tolist() == [0]
        with fails(OutOfRangeError, "index 2"):
            f(x, nnc.asarray([2]))
        with fails(FloatingPointError, operator="log"):
            f(x, nnc.asarray([1]))
        with config.using(check_nan="off"), fails(OutOfRangeError, "index 2"):
            f(x, nnc.asarray([2]))


@pytest.mark.parametrize("mode", MODES)
def test_without_a_look_a_kernel_reads_zero(mode: str) -> None:
    """Where no host code sees the indices.  Several axes too: the place of x[i, j] is out of range as a whole."""
    with nnc.use_device("strict:0"):
        x, i, j = nnc.asarray(X + 10), nnc.asarray([3, 4, 0, -5]), nnc.asarray([2, 0, 3, 0])
        rows = run(mode, lambda x, i: nnc.take(x, i, axis=0), x, i)
        assert rows[:, 0].tolist() == [X[3, 0] + 10, 0, X[0, 0] + 10, 0]
        assert run(mode, lambda x, i: x[i, j], x, i).tolist() == [X[3, 2] + 10, 0, 0, 0]
        codes = run(mode, lambda x, i: nnc.one_hot(i, 4), x, i)
        assert codes.tolist() == [[0, 0, 0, 1], [0] * 4, [1, 0, 0, 0], [0] * 4]


def test_each_operator_that_takes_indices_says_so() -> None:
    """An operator with an input of this name has a range for it, unless nothing is read there or nnc computes it."""
    computed = {"pool_take", "pool_put", "earlier", "resample", "spread"}
    named = {name for name, op in OPERATORS.items() if {"indices", "index", "labels", "images"} & set(op.inputs)}
    silent = {name for name in named if OPERATORS[name].indices is None and OPERATORS[name].decompose is None}
    assert silent <= computed, silent - computed


def test_what_indices_are_made_of_is_looked_at_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of fused commands too: the others are not computed on the host, nor is what they read waited for."""
    seen: list[tuple[int, ...]] = []

    def counted(device: Any, buffer: Any, layout: Any, *rest: Any) -> Any:
        seen.append(layout.shape)
        return download(device, buffer, layout, *rest)

    monkeypatch.setattr(index_checks, "download", counted)
    f = nnc.jit(lambda x, y, i: nnc.tanh(nnc.exp(x) * nnc.take(y, i + 1, axis=0)))
    with nnc.use_device("strict:0"), checking():
        x, y = nnc.asarray(np.zeros((2, 5), np.float32)), nnc.asarray(np.zeros((3, 5), np.float32))
        assert [s.group.op.name for s in f.lower(x, y, nnc.asarray([0, 1])).program.plan.steps] == ["fused"]
        f(x, y, nnc.asarray([0, 1]))
        assert seen == [(2,)]
        with fails(OutOfRangeError, "index 3 is out of range", operator="take"):
            f(x, y, nnc.asarray([0, 2]))
        seen.clear()
        nnc.jit(lambda x, y: nnc.tanh(x + y))(x, x)
        assert not seen
