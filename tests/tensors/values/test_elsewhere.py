"""Tensors on another device than the default one, and variables that compiled code reads from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import nnc_core as nnc

OTHER = "strict-nofloat64:0"


@pytest.fixture(autouse=True)
def _default_device() -> Iterator[None]:
    with nnc.use_device("strict:0"):
        yield


@pytest.mark.parametrize("f", [
    lambda x: nnc.grad(lambda x: (x * x).sum())(x),
    lambda x: nnc.jit(nnc.grad(lambda x: (x * x).sum()))(x),
    lambda x: nnc.hessian(lambda x: (x * x).sum())(x),
    lambda x: nnc.grad(lambda x: nnc.avg_pool2d(x.reshape(1, 1, 3, 1), 2, padding=1).sum())(x),
    lambda x: nnc.Generator(0, device=x.device).bernoulli(1.0, (3,)),
    lambda x: nnc.Generator(0, device=x.device).normal((3,)),
], ids=["grad", "jit", "hessian", "pool", "bernoulli", "normal"])
def test_what_is_made_on_the_way_is_made_on_the_tensors_device(f: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    assert f(nnc.ones(3, device=OTHER)).device.id == OTHER


def test_backward_works_away_from_the_default_device() -> None:
    v = nnc.variable([2.0], device=OTHER)
    (v * v).sum().backward()
    assert v.grad is not None
    assert (v.grad.item(), v.grad.device.id) == (4.0, OTHER)


def test_compiled_code_inside_a_gradient_sees_what_it_captured() -> None:
    x = nnc.asarray([1.0, 2.0])
    g = nnc.grad(lambda w: nnc.jit(lambda x: (x * w).sum())(x))(nnc.ones(2))
    np.testing.assert_array_equal(g.numpy(), [1.0, 2.0])


def test_compiled_code_that_reads_a_variable_can_be_differentiated() -> None:
    v = nnc.variable([3.0])
    f = nnc.jit(lambda x: (x * v).sum())
    f(nnc.asarray([2.0])).backward()
    assert v.grad is not None
    assert v.grad.item() == 2.0
    with nnc.no_grad():
        assert not f(nnc.asarray([2.0])).requires_grad


@pytest.mark.parametrize("first", ["cpu:0", "strict:0", OTHER])
def test_a_tensor_moves_whatever_kernels_its_device_has(first: str) -> None:
    if first == "cpu:0":
        pytest.importorskip("nnc_cpu")
    moved = nnc.ones(2, device=first).to("strict-small:0")
    assert moved.device.id == "strict-small:0"
    np.testing.assert_array_equal(moved.numpy(), [1, 1])
