"""Indices out of range in compiled graphs whose kernels note them: the errors of eager code, state as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.errors import OutOfRangeError
from tests.engine.plans import lowered
from tests.tensors.faults import fails

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
Function = Callable[..., Any]


@pytest.fixture(params=["interpreted", "machine code", "deterministic", "under check_indices"], autouse=True)
def how(request: pytest.FixtureRequest) -> Iterator[str]:
    with nnc.use_device("cpu:0"), config.using(
            compile_at_once=request.param != "interpreted", deterministic=request.param == "deterministic",
            check_indices=request.param == "under check_indices"):
        yield request.param


def commands(f: Function, *args: Any) -> list[str]:
    return [step.group.op.name for step in lowered(f, *args, device="cpu:0").plan.steps]


CHAINS: dict[str, Function] = {
    "by itself": lambda x, i: nnc.take(x, i, axis=0),
    "in a chain": lambda x, i: nnc.tanh(nnc.take(x, i, axis=0) * 2) + 1,
    "in a fold": lambda x, i: nnc.softmax(nnc.take(x, i, axis=0), axis=-1),
    "in a sum of all": lambda x, i: nnc.sum(nnc.square(nnc.take(x, i, axis=0))),
    "of a chain": lambda x, i: nnc.take(nnc.exp(x), i, axis=0) * 2,
    "by what is computed": lambda x, i: nnc.take(x, i + 0, axis=0) * 2,
    "repeated": lambda x, i: nnc.expand_dims(nnc.take(x, i, axis=0), 1) + nnc.ones((1, 5, 1)),
    "a part of it": lambda x, i: nnc.take(x, i, axis=0)[:1] * 2,
    "padded": lambda x, i: nnc.pad(nnc.take(x, i, axis=0), ((1, 1), (0, 0))) * 2,
    "in one line": lambda x, i: nnc.reshape(nnc.take(x, i, axis=0), (-1,)) * 2,
    "split": lambda x, i: nnc.reshape(nnc.take(x, i, axis=0), (-1, x.shape[1] // 3, 3)) * 2,
    "transposed": lambda x, i: nnc.take(x, i, axis=0).T * 2,
    "of a gather": lambda x, i: nnc.take(nnc.take(x, i, axis=0), nnc.arange(2), axis=0) * 2,
    "by a gather": lambda x, i: nnc.take(x, nnc.take(i, nnc.arange(i.shape[0]), axis=0), axis=0) * 2,
    "along rows": lambda x, i: nnc.take_along_axis(x, nnc.expand_dims(i, 1), axis=0) * 2,
    "x[i]": lambda x, i: x[i] * 2,
    "embedding": lambda x, i: nnc.mean(nnc.embedding(x, i), axis=1),
    "embedding bag": lambda x, i: nnc.embedding_bag(x, nnc.reshape(i, (1, -1))),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_the_error_is_that_of_eager_code(name: str) -> None:
    f = CHAINS[name]
    x, good, bad = nnc.asarray(X), nnc.asarray([3, -4, 0]), nnc.asarray([0, 1, 4])
    with pytest.raises(OutOfRangeError) as eager:
        f(x, bad)
    run = nnc.jit(f)
    for _ in (0, 1):
        np.testing.assert_allclose(run(x, good).numpy(), f(x, good).numpy(), rtol=1e-6)
        with fails(OutOfRangeError, "index 4 is out of range for an axis of length 4", "-4 <= index < 4"):
            run(x, bad)
    with pytest.raises(OutOfRangeError) as compiled:
        run(x, bad)
    assert compiled.value.message == eager.value.message and compiled.value.hint == eager.value.hint
    assert compiled.value.operator == (eager.value.inner or eager.value.operator)
    assert compiled.value.line == eager.value.line
    assert compiled.value.device == "cpu:0" and compiled.value.noted is None


def test_deferred_code_too() -> None:
    with nnc.deferred():
        y = nnc.tanh(nnc.take(nnc.asarray(X), nnc.asarray([1, 7]), axis=0))
        with fails(OutOfRangeError, "index 7 is out of range for an axis of length 4", operator="take"):
            y.realize()


def test_what_reads_all_rows_is_one_command() -> None:
    x, i = nnc.asarray(np.tile(X, 8)), nnc.asarray([3, -4, 0])
    fused = ("by itself", "in a chain", "in a fold", "in a sum of all", "by what is computed", "repeated",
             "split", "transposed", "x[i]")
    assert {name: len(commands(CHAINS[name], x, i)) for name in fused} == dict.fromkeys(fused, 1)


def test_single_elements_are_gathered_in_their_own_order() -> None:
    """A fold would gather them again for each pass, or go across the indices."""
    x, i = nnc.zeros(50), nnc.asarray(np.zeros((6, 20), np.int64))
    assert commands(lambda x, i: nnc.softmax(nnc.take(x, i, axis=0), axis=1), x, i)[0] == "take"
    assert len(commands(lambda x, i: nnc.tanh(nnc.take(x, i, axis=0)) * 2, x, i)) == 1


def test_what_nobody_asks_for_is_looked_at() -> None:
    """Rows that a slice leaves out, or all where nothing lies along the others."""
    x = nnc.asarray(X)
    f = nnc.jit(lambda x, i: nnc.take(x, i, axis=0)[:1] * 2)
    with fails(OutOfRangeError, "index -5"):
        f(x, nnc.asarray([0, -5]))
    with fails(OutOfRangeError, "index 9"):
        nnc.jit(lambda x, i: nnc.take(x, i, axis=0))(nnc.zeros((4, 0)), nnc.asarray([0, 9]))
    with fails(OutOfRangeError, "index 0 is out of range for an axis of length 0"):
        nnc.jit(lambda x, i: nnc.take(x, i, axis=0) + 1)(nnc.zeros((0, 3)), nnc.asarray([0]))


def test_no_indices_are_no_mistake() -> None:
    none = nnc.asarray(np.zeros((0,), np.int64))
    f = nnc.jit(lambda x, i: nnc.tanh(nnc.take(x, i, axis=0)))
    assert f(nnc.asarray(X), none).shape == (0, 3)
    assert nnc.jit(lambda x, i: nnc.take(x, i, axis=0))(nnc.zeros((0, 3)), none).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
def test_indices_of_all_kinds(dtype: str) -> None:
    f = nnc.jit(lambda x, i: nnc.take(x, i, axis=0) * 2)
    x, top = nnc.asarray(X), np.iinfo(dtype).max
    low = -4 if np.dtype(dtype).kind == "i" else 0
    assert f(x, nnc.asarray(np.array([3, low], dtype))).tolist() == (X[[3, 0]] * 2).tolist()
    for wrong in [4, top, *([-5, np.iinfo(dtype).min] if low else [])]:
        with fails(OutOfRangeError, f"index {wrong} is out of range"):
            f(x, nnc.asarray(np.array([0, wrong], dtype)))


def test_the_first_of_several_is_told() -> None:
    def both(x: Any, i: Any, j: Any) -> Any:
        first = nnc.take(x, i, axis=0)
        second = nnc.take(x, j, axis=1)
        return first[:, :2] + second[:2]

    x = nnc.asarray(X)
    f = nnc.jit(lambda x, i: nnc.sum(nnc.tanh(nnc.take(x, i, axis=0)), axis=1))
    many = np.zeros(1000, np.int64)
    many[[333, 700]] = 50, 60
    with fails(OutOfRangeError, "index 50 "):
        f(x, nnc.asarray(many))
    with fails(OutOfRangeError, "index 8 is out of range for an axis of length 4"):
        nnc.jit(both)(x, nnc.asarray([0, 8]), nnc.asarray([0, 9]))
    with fails(OutOfRangeError, "index 9 is out of range for an axis of length 3"):
        nnc.jit(both)(x, nnc.asarray([0, 1]), nnc.asarray([0, 9]))


def test_of_two_in_one_command_the_first_operator_is_told() -> None:
    def both(x: Any, i: Any, j: Any) -> Any:
        return (nnc.take(x, i, axis=0) *
                nnc.take(x + 1, j, axis=0))

    x, good = nnc.asarray(X), nnc.asarray([0, 1])
    assert commands(both, x, good, good) == ["fused"]
    with fails(OutOfRangeError, "index 8", operator="take"):
        nnc.jit(both)(x, nnc.asarray([0, 8]), nnc.asarray([9, 0]))


def test_several_index_arrays_name_the_one_at_fault() -> None:
    x = nnc.asarray(X)
    f = nnc.jit(lambda x, i, j: x[i, j] * 2)
    assert f(x, nnc.asarray([3, -1]), nnc.asarray([2, 0])).tolist() == (X[[3, -1], [2, 0]] * 2).tolist()
    for mode in (f, lambda x, i, j: x[i, j] * 2):
        with fails(OutOfRangeError, "index 3 is out of range for an axis of length 3"):
            mode(x, nnc.asarray([3, 1]), nnc.asarray([0, 3]))


def test_unsigned_indices_of_several_arrays_do_not_wrap() -> None:
    f, x = nnc.jit(lambda x, i, j: x[i, j] * 2), nnc.asarray(X)
    i, j = (nnc.asarray(np.array(k, np.uint64)) for k in ([0, 2**64 - 1], [1, 1]))
    with fails(OutOfRangeError, f"index {2**64 - 1} is out of range for an axis of length 4"):
        f(x, i, j)


def test_in_loops() -> None:
    def rows(x: Any, i: Any) -> Any:
        return nnc.scan(lambda c, k: (c + nnc.sum(nnc.take(x, k, axis=0)), c), nnc.zeros(()), i)[0]

    f, x = nnc.jit(rows), nnc.asarray(X)
    for _ in (0, 1):
        assert f(x, nnc.asarray([1, 2, 3])).item() == pytest.approx(X[1:].sum())
        with fails(OutOfRangeError, "index 5 is out of range for an axis of length 4", operator="take"):
            f(x, nnc.asarray([0, 5, 7]))


def test_a_branch_that_is_not_taken_looks_at_nothing() -> None:
    @nnc.jit
    def chosen(x: Any, i: Any, yes: Any) -> Any:
        return nnc.cond(yes, lambda x, i: nnc.tanh(nnc.take(x, i, axis=0)), lambda x, i: x[:2] * 0, x, i)

    x, bad = nnc.asarray(X), nnc.asarray([0, 6])
    assert chosen(x, bad, nnc.asarray(False)).tolist() == [[0] * 3] * 2
    with fails(OutOfRangeError, "index 6", operator="take"):
        chosen(x, bad, nnc.asarray(True))
    assert chosen(x, nnc.asarray([0, 1]), nnc.asarray(True)).numpy() == pytest.approx(np.tanh(X[:2]))


def test_state_stays_as_it_was() -> None:
    """Also where the state is made of what was read, in the same command."""
    weight, count = nnc.Cell(nnc.ones((4, 3)), "weight"), nnc.Cell(nnc.zeros(()), "count")

    @nnc.jit
    def step(x: Any, i: Any) -> Any:
        count.write(count.read() + 1)
        weight.write(weight.read() + nnc.take(x, i, axis=0))
        return nnc.sum(nnc.take(weight.read(), i, axis=0))

    x = nnc.asarray(X)
    step(x, nnc.asarray([0, 0, 0, 0]))
    before = weight.read().numpy()
    for _ in (0, 1):
        with fails(OutOfRangeError, "index 9"):
            step(x, nnc.asarray([0, 1, 2, 9]))
    assert weight.read().tolist() == before.tolist() and count.read().item() == 1
    step(x, nnc.asarray([0, 1, 2, 3]))
    assert weight.read().tolist() == (before + X).tolist() and count.read().item() == 2


def test_indices_whose_memory_the_result_takes_over() -> None:
    f = nnc.jit(lambda x, i: nnc.take(x, i * 1, axis=0))
    x = nnc.arange(100, dtype="int64") * 3
    i = np.arange(64) % 100
    assert f(x, nnc.asarray(i)).tolist() == (i * 3).tolist()
    i[40] = 100
    with fails(OutOfRangeError, "index 100"):
        f(x, nnc.asarray(i))


def test_profiles_say_it_too() -> None:
    f = nnc.jit(lambda x, i: nnc.tanh(nnc.take(x, i, axis=0)))
    assert len(f.profile(nnc.asarray(X), nnc.asarray([0, 1])).timings) == 1
    with fails(OutOfRangeError, "index 6 is out of range for an axis of length 4", operator="take"):
        f.profile(nnc.asarray(X), nnc.asarray([0, 6]))
