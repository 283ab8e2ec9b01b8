"""Memoisation: shared arrays, steps of their own."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.values import memo


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "MEMO", memo.Memo())


def test_equal_steps_share_their_array(x: nnc.Tensor) -> None:
    with nnc.memoise():
        a, b = nnc.tanh(x), nnc.tanh(x)
        assert a._value.array is b._value.array and a._value is not b._value
        c = nnc.exp(x) + nnc.exp(x)
    assert nnc.memo_info()[:2] == (2, 3)
    plain = nnc.exp(x) + nnc.exp(x)
    np.testing.assert_array_equal(c.numpy(), plain.numpy())
    assert nnc.memo_info()[:2] == (2, 3), "outside nothing is looked up"


def test_nothing_is_shared_without_asking(x: nnc.Tensor) -> None:
    assert nnc.tanh(x)._value.array is not nnc.tanh(x)._value.array
    assert nnc.memo_info() == (0, 0, 0)


def test_attributes_and_operands_tell_steps_apart(x: nnc.Tensor) -> None:
    with nnc.memoise():
        first, other = nnc.sum(x, axis=0), nnc.sum(x, axis=1)
        assert first.tolist() == [3, 5, 7] and other.tolist() == [3, 12]
        again = nnc.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
        assert nnc.tanh(x)._value.array is not nnc.tanh(again)._value.array
        assert (x - again).tolist() == [[0] * 3] * 2
        assert (x * 2)._value.array is (x * 2)._value.array
        assert (x * 2).tolist() != (x * 3).tolist()


def test_gradients_by_equal_steps_stay_apart(device: str) -> None:
    """The step is new: with a = x*3 and b = x*3, d(a b)/da is b."""
    x = nnc.variable(2.0)
    with nnc.memoise():
        a, b = x * 3, x * 3
        y = a * b
    by_a, by_x = nnc.gradients(y, [a, x])
    assert by_a is not None and by_a.item() == 6 and by_x is not None and by_x.item() == 36
    assert nnc.memo_info().hits == 1


def test_no_array_is_kept_alive(device: str) -> None:
    x = nnc.asarray(np.ones((2, 2), np.float32))
    with nnc.memoise():
        y = nnc.exp(x)
        assert nnc.memo_info().size == 1
        del y
        gc.collect()
        assert nnc.memo_info().size == 0
        for _ in range(100):  # an address may be used again for another array
            t = nnc.asarray(np.random.default_rng(0).standard_normal((2, 2)).astype(np.float32))
            np.testing.assert_array_equal((nnc.exp(t) - nnc.exp(t)).numpy(), 0)


def test_the_table_is_bounded(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo.MEMO._entries, "limit", 4)
    x = nnc.asarray(np.ones((2, 2), np.float32))
    with nnc.memoise():
        held = [x + float(i) for i in range(10)]
        assert nnc.memo_info().size == 4
        assert held[9]._value.array is (x + 9.0)._value.array and held[0]._value.array is not (x + 0.0)._value.array


def test_random_numbers_are_drawn_again(device: str) -> None:
    generator = nnc.Generator(0)
    with nnc.memoise():
        assert generator.normal((3,)).tolist() != generator.normal((3,)).tolist()
        before = nnc.memo_info().hits
        key = generator.key.read()
        from nnc_core.values.dispatch import F

        draws = [F.random_bits(key._value, shape=(3,), dtype=np.dtype(np.uint32)) for _ in range(2)]
    assert draws[0].array is not draws[1].array and nnc.memo_info().hits == before


def test_shared_memory_is_never_memoised() -> None:
    host = np.array([1.0, 2.0], np.float32)
    x = nnc.asarray(host, copy=False, device="cpu:0")
    with nnc.memoise():
        assert nnc.exp(x * 0).tolist() == [1, 1]
        kept = [x * 2, nnc.softmax(x)]  # the table knows what somebody holds
        assert kept[0].tolist() == [2, 4]
        host[0] = 5
        assert nnc.softmax(x).tolist() != kept[1].tolist()
        assert (x * 2).tolist() == [10, 4] and nnc.reshape(x, (2, 1)).tolist() == [[5], [2]]
        host[0] = 7
        assert (nnc.reshape(x, (2, 1)) * 2).tolist() == [[14], [4]]


def test_an_assignment_makes_another_array(device: str) -> None:
    x = nnc.asarray([1.0, 2.0])
    with nnc.memoise():
        assert (x * 2).tolist() == [2, 4]
        x[0] = 9
        assert (x * 2).tolist() == [18, 4]


def test_devices_are_part_of_the_key() -> None:
    with nnc.memoise():
        for id in ("cpu:0", "strict:0"):
            t = nnc.exp(nnc.zeros(2, device=id))
            assert t.device.id == id and t.tolist() == [1, 1]


def test_deferred_work_is_memoised_when_it_runs(x: nnc.Tensor) -> None:
    with nnc.deferred():
        a, b = nnc.tanh(x), nnc.tanh(x)
    with nnc.memoise():
        nnc.realize(a, b)
    assert a._value.array is b._value.array and nnc.memo_info().hits == 1


def test_a_program_gives_the_same_with_memoisation(device: str) -> None:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((3, 3)).astype(np.float32)

    def program() -> tuple[list[float], list[float]]:
        v = nnc.variable(w)
        y = nnc.softmax(nnc.tanh(v @ v) + nnc.tanh(v @ v), axis=-1)
        nnc.cross_entropy(y, nnc.asarray(np.array([0, 1, 2]))).sum().backward()
        assert v.grad is not None
        return y.numpy().ravel().tolist(), v.grad.numpy().ravel().tolist()

    plain = program()
    with nnc.memoise():
        assert program() == plain
        assert nnc.memo_info().hits > 0
