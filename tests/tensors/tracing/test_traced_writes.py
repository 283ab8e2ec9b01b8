"""In-place changes in traces: what a function has made itself is changed as eagerly, what others hold is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import DeferredInplaceError

HOST = np.array([1.0, 2.0, 3.0], np.float32)
Function = Callable[[nnc.Tensor], Any]


def x() -> nnc.Tensor:
    return nnc.asarray(HOST)


def deferred(f: Function) -> Function:
    def run(given: nnc.Tensor) -> Any:
        with nnc.deferred():
            return f(given)

    return run


def items_of_a_result(a: nnc.Tensor) -> Any:
    y = a * 2
    before = y * 1
    y[0], y[1:] = 7.0, a[:2]
    y += 1
    y[y > 5] *= 2
    return y, before, a


def what_was_created(a: nnc.Tensor) -> Any:
    y, z = nnc.zeros((3, 3)), nnc.asarray(np.arange(3, dtype=np.float32))
    early = z * 1
    for i in range(3):
        y[i] = a * i
        z[i] += a[i]
    return y, z, early


def another_name(a: nnc.Tensor) -> Any:
    y = nnc.ones(3)
    z = y
    z -= a
    return y


def a_copy(a: nnc.Tensor) -> Any:
    y, z, same = a.copy(), nnc.asarray(a), nnc.reshape(a, (3,))
    y[0], z[1], same[2] = 0.0, 0.0, 0.0
    return y, z, same, a


def repeated_indices(a: nnc.Tensor) -> Any:
    y = nnc.zeros((4,), dtype=a.dtype)
    y[nnc.asarray([1, 1, 3])] = a
    y[::-2] -= a[:2]
    return y


def of_another_dtype(a: nnc.Tensor) -> Any:
    y = nnc.zeros(3, dtype="int32")
    y[1:] = nnc.asarray([4, 5])
    y += 1
    return y, a


def a_carried_value(a: nnc.Tensor) -> Any:
    def body(u: nnc.Tensor, i: nnc.Tensor) -> Any:
        u[1:] += u[:-1]
        v = a * 2
        v[i] = 0.0
        return u + v, i + 1

    return nnc.while_loop(lambda u, i: i < 3, body, (a, nnc.asarray(0)))[0], a


def rows(a: nnc.Tensor) -> Any:
    def step(c: nnc.Tensor, row: nnc.Tensor) -> Any:
        row += c[0]
        c[0] = row
        return c, row

    return (*nnc.scan(step, nnc.zeros(1), a), a)


def a_branch(a: nnc.Tensor) -> Any:
    def add(y: nnc.Tensor) -> nnc.Tensor:
        y += 1
        return y

    y = nnc.cond(a[0] > 0, add, lambda y: y, a)
    z = nnc.cond(a[0] < 0, add, lambda y: y, a)
    z[0] = 9.0
    return y, z, a


def examples(a: nnc.Tensor) -> Any:
    def one(row: nnc.Tensor) -> nnc.Tensor:
        row[0] = nnc.sum(row)
        return row

    return nnc.vmap(one)(nnc.stack([a, a + 1])), a


def a_gradient(a: nnc.Tensor) -> Any:
    def loss(p: nnc.Tensor) -> nnc.Tensor:
        y = p * p
        y[0] = 0.0
        y *= p
        return nnc.sum(y)

    return nnc.grad(loss)(a), nnc.hessian(loss)(a), nnc.jvp(loss, (a,), (a,))


PROGRAMS = (items_of_a_result, what_was_created, another_name, a_copy, repeated_indices, of_another_dtype,
            a_carried_value, rows, a_branch, examples, a_gradient)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_what_a_function_has_made_is_changed_as_eagerly(f: Function, device: str) -> None:
    given = x()
    want = _flat(f(x()))
    compiled = nnc.jit(f)
    for run in (deferred(f), compiled, compiled):
        for found, wanted in zip(_flat(run(given)), want, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert compiled.traces == 1
    np.testing.assert_array_equal(given.numpy(), HOST)


def _flat(result: Any) -> list[np.ndarray[Any, Any]]:
    return [r for y in result for r in _flat(y)] if isinstance(result, tuple) else [result.numpy()]


def test_a_second_call_starts_anew(device: str) -> None:
    """An array of the host that the function makes a tensor of is read at each call, not what was written last."""
    zeros = np.zeros(3, np.float32)

    @nnc.jit
    def f(a: nnc.Tensor) -> nnc.Tensor:
        y = nnc.asarray(zeros)
        early = y + 0
        y += a
        return y + early

    for _ in range(3):
        np.testing.assert_array_equal(f(x()).numpy(), HOST)


def test_what_others_hold_is_not_changed(device: str) -> None:
    outer, given = nnc.ones(3) * 2, x()

    def argument(a: nnc.Tensor) -> nnc.Tensor:
        a += 1
        return a

    def renamed(a: nnc.Tensor) -> nnc.Tensor:
        y = a
        y[0] = 1.0
        return a

    def outside(a: nnc.Tensor) -> nnc.Tensor:
        outer[0] = a[0]
        return a

    def around(a: nnc.Tensor) -> nnc.Tensor:
        y = a * 1

        def body(i: nnc.Tensor) -> tuple[nnc.Tensor]:
            y[0] = 1.0
            return (i + 1,)

        nnc.while_loop(lambda i: i < 2, body, (nnc.asarray(0),))
        return y

    for f, said in ((argument, "an argument, which the caller of 'argument' holds"), (renamed, "an argument"),
                    (outside, "comes from outside"), (around, "comes from around 'the body body'")):
        with pytest.raises(DeferredInplaceError, match=said) as caught:
            nnc.jit(f)(given)
        assert "try: x = x.copy() first" in str(caught.value) and "test_traced_writes.py" in str(caught.value)
    assert outer.tolist() == [2, 2, 2] and given.tolist() == [1, 2, 3]


def test_a_module_infers_and_compiles_what_it_computes(device: str) -> None:
    class Masked(nn.Module):
        def forward(self, a: nnc.Tensor) -> nnc.Tensor:
            y = a * 2
            y[..., 0] = 0.0
            return y

    module = Masked()
    want = module(x()).numpy()
    np.testing.assert_array_equal(module.hybridize()(x()).numpy(), want)


class TestCallsThatAreWrittenOut:
    """A compiled function that is called in a trace has handles of its own, as one that is called eagerly."""

    def test_a_result_that_is_an_argument_is_another_tensor(self) -> None:
        same = nnc.jit(lambda a: a)

        def f(x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            made = x * 2
            other = same(made)
            other += 1
            return made, other

        for way in (f, nnc.jit(f)):
            assert [y.tolist() for y in way(nnc.ones(2))] == [[2, 2], [3, 3]]

    def test_arguments_are_refused_as_eagerly(self) -> None:
        def bump(y: nnc.Tensor) -> nnc.Tensor:
            y += 1
            return y

        compiled = nnc.jit(bump)
        for way in (lambda x: compiled(x * 2), nnc.jit(lambda x: compiled(x * 2))):
            with pytest.raises(DeferredInplaceError, match="an argument"):
                way(nnc.ones(2))

    def test_tensors_from_outside_are_read_anew(self) -> None:
        outside = nnc.ones(2)
        add = nnc.jit(lambda a, b: a + b)
        f = nnc.jit(lambda x: add(x, outside))
        assert f(nnc.ones(2)).tolist() == [2, 2]
        outside += 10
        assert f(nnc.ones(2)).tolist() == [12, 12]

    def test_one_tensor_twice_is_one(self) -> None:
        alike = nnc.jit(lambda a, b: a + 1 if a is b else a)
        assert nnc.jit(lambda x: alike(x, x))(nnc.zeros(2)).tolist() == alike(*[nnc.zeros(2)] * 2).tolist() == [1, 1]


def test_plus_gives_a_tensor_of_its_own() -> None:
    x = nnc.ones(2)
    y = +x
    y += 1
    assert x.tolist() == [1, 1] and y.tolist() == [2, 2]
