"""Long histories: nothing recurses, destruction included."""

from __future__ import annotations

import gc
import weakref

import pytest

import nnc_core as nnc
from tests.sizes import LONG
from tests.tensors.conftest import devices

QUICKEST = devices()[0]


def chain(x: nnc.Tensor, length: int) -> nnc.Tensor:
    for _ in range(length):
        x = x + 1
    return x


def test_a_long_deferred_chain_computes_and_is_freed() -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.asarray(0.0)
        with nnc.deferred():
            y = chain(x, LONG)
        inside = weakref.ref(y._value.inputs[0])
        assert y.item() == LONG
        del y
        gc.collect()
        assert inside() is None


def test_a_long_chain_that_nobody_looked_at_is_freed() -> None:
    with nnc.use_device(QUICKEST), nnc.deferred():
        y = chain(nnc.ones(3), LONG)
        inside = weakref.ref(y._value.inputs[0].inputs[0])
        del y
        gc.collect()
        assert inside() is None


def test_a_long_chain_is_exported_and_printed() -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.asarray(0.0)
        with nnc.deferred():
            y = chain(x, 20_000)
        graph = nnc.export({"x": x}, {"y": y})
        assert graph.complexity[0] > 20_000 and str(graph).count("add(") == 20_000


def test_a_long_chain_of_symbols_is_evaluated_and_freed() -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.var_elt("x")
        y = chain(x, 20_000)
        nnc.assign(x, 2.0)
        nnc.eval_elt([y])
        assert nnc.unpack_elt(y) == 20_002
        inside = weakref.ref(y._value.inputs[0])
        del y
        gc.collect()
        assert inside() is None


@pytest.mark.parametrize("length", [2000, pytest.param(LONG, marks=pytest.mark.slow)])
def test_a_long_chain_is_optimised_differentiated_compiled_run_and_freed(length: int) -> None:
    with nnc.use_device(QUICKEST):
        x = nnc.asarray(1.0)
        with nnc.deferred():
            y = x
            for _ in range(length // 2):
                y = nnc.sin(y) * 0.5
            g = nnc.grad(lambda x: chain(x, length) * x)(x)
        compiled = nnc.export({"x": x}, {"y": y}).compile(QUICKEST)
        assert compiled(x=x)["y"].item() == pytest.approx(0.0, abs=1e-6)
        assert g.item() == length + 2
