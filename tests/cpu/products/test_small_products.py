"""Small products in compiled graphs run as loop nests, which join what is around them and need no Python in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, complex64, float32, float64, int32
from nnc_core.base.layout import Layout
from nnc_cpu.device import CpuDevice

STEPS, SIZE = 40, 24
PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "h @ w": lambda h, w: h @ w, "w @ h": lambda h, w: w @ h, "h @ w.T": lambda h, w: h @ w.T}


def taken(a: tuple[int, ...], b: tuple[int, ...], transposes: tuple[bool, bool] = (False, False),
          dtype: DType = float32) -> list[str]:
    """The library code that takes a product, beside machine code."""
    rows, columns = a[-1 if transposes[0] else -2], b[-2 if transposes[1] else -1]
    inputs = tuple([Layout.packed(shape, dtype) for shape in (a, b)])
    command = Command("matmul", transposes, inputs, (Layout.packed((*a[:-2], rows, columns), dtype),))
    return [b.name for b in CpuDevice(True).backends("matmul") if b.refuse(command) is None]


@pytest.mark.parametrize("dtype", [float32, float64, int32], ids=str)
def test_small_products_are_left_to_loop_nests(dtype: DType) -> None:
    assert not taken((1, 64), (64, 64), dtype=dtype)
    assert not taken((16, 16), (16, 16), (True, True), dtype)
    assert not taken((7, 4, 4), (7, 4, 4), dtype=dtype)


def test_larger_ones_are_not() -> None:
    assert taken((64, 64), (64, 64))[0] == "packed"
    assert taken((1, 128), (128, 1)) == [] and taken((128, 128), (128, 1)) == ["numpy"]
    assert taken((12, 12), (12, 12), dtype=complex64) == []
    assert taken((13, 13), (13, 13), dtype=complex64) == ["numpy"]


def test_no_blas_has_integers() -> None:
    assert not taken((512, 512), (512, 512), dtype=int32)


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_products_of_integers_wrap_as_numpys_do(name: str, compiled: bool) -> None:
    product: Any = nnc.jit(nnc.matmul) if compiled else nnc.matmul
    rng, info = np.random.default_rng(2), np.iinfo(name)
    for shapes in (((70, 33), (33, 65)), ((3, 70, 40), (40, 1)), ((2, 50, 60), (2, 60, 50)), ((64, 0), (0, 64))):
        a, b = [rng.integers(info.min, info.max, shape, name, endpoint=True) for shape in shapes]
        for x, y in ((a, b), (b.swapaxes(-1, -2), a.swapaxes(-1, -2))):
            found = product(nnc.asarray(x), nnc.asarray(y))
            np.testing.assert_array_equal(found.numpy(), x @ y, strict=True)


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize("at_once", [True, False], ids=["machine code", "interpreted"])
def test_a_recurrence_of_small_products(product: Callable[[Any, Any], Any], at_once: bool) -> None:
    """Against NumPy in float64, its values and its gradients against those of the same steps written out."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal((n, SIZE)).astype(np.float32) / SIZE for n in (STEPS, SIZE))

    def run(x: Any, w: Any) -> Any:
        return nnc.scan(lambda h, x: (nnc.tanh(x + product(h, w)),) * 2, nnc.zeros(SIZE), x)[1]

    def written_out(xp: Any, x: Any, w: Any, h: Any) -> Any:
        all_h = []
        for k in range(STEPS):
            h = xp.tanh(x[k] + product(h, w))
            all_h.append(h)
        return xp.stack(all_h)

    expected = written_out(np, x.astype(np.float64), w.astype(np.float64), np.zeros(SIZE))
    with nnc.config.using(compile_at_once=at_once):
        compiled, arrays = nnc.jit(run), (nnc.asarray(x), nnc.asarray(w))
        np.testing.assert_allclose(compiled(*arrays).numpy(), expected, rtol=1e-5, atol=1e-6)
        assert "numpy" not in compiled.explain(*arrays)
        losses = (lambda x, w: nnc.sum(run(x, w) ** 3),
                  lambda x, w: nnc.sum(written_out(nnc, x, w, nnc.zeros(SIZE)) ** 3))
        gradients = [nnc.jit(nnc.grad(loss, argnums=(0, 1)))(*arrays) for loss in losses]
    for ours, theirs in zip(*gradients, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-5)
