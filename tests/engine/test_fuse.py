"""Fused commands: used where the device has code for them, with the values of their parts."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.builtin import nnc_devices
from nnc_core.engine.fuse import FUSED
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack, make_stack, stack_for
from tests.engine.conftest import call, floats, graph


@pytest.fixture
def compiling() -> Stack:
    """A strict device that says it compiles loop nests."""
    import dataclasses

    (offer,) = [o for o in nnc_devices() if o.id == "strict:0"]
    device = offer.open()
    device.spec = dataclasses.replace(device.spec, features=device.spec.features | {"codegen"})
    return make_stack(device)


def adagrad(F: Nodes) -> SymbolicGraph:
    p, g, s = floats(F, "p", 5), floats(F, "g", 5), floats(F, "s", 5)
    squares = F.add(s, F.multiply(g, g))
    new = F.subtract(p, F.divide(F.multiply(g, 0.1), F.add(F.sqrt(squares), 1e-8)))
    return graph({"p": p, "g": g, "s": s}, {"p2": new, "s2": squares}, ("p2", "p"), ("s2", "s"))


def commands(run: object) -> list[str]:
    return [r.label for r in run.records]  # type: ignore[attr-defined]


def test_adagrad_and_fma(compiling: Stack) -> None:
    run = compiling.engine.compile(adagrad(compiling.operator.open()))
    assert commands(run) == ["fma", "adagrad_update"]
    assert run.donated == {"p", "s"}


def test_no_fma_under_deterministic(compiling: Stack) -> None:
    with config.using(deterministic=True):
        run = compiling.engine.compile(adagrad(compiling.operator.open()))
    assert commands(run) == ["multiply", "add", "adagrad_update"]


def test_fused_equals_unfused(compiling: Stack) -> None:
    rng = np.random.default_rng(0)
    given = {k: rng.normal(size=5).astype(np.float32) ** 2 for k in ("p", "g", "s")}
    plain = stack_for("strict:0")
    with config.using(deterministic=True):
        fused = call(compiling.engine.compile(adagrad(compiling.operator.open())), **given)
        apart = call(plain.engine.compile(adagrad(plain.operator.open())), **given)
    for name in ("p2", "s2"):
        np.testing.assert_array_equal(fused[name], apart[name])


def test_a_product_used_twice_stays(compiling: Stack) -> None:
    F = compiling.operator.open()
    a, b = floats(F, "a", 3), floats(F, "b", 3)
    product = F.multiply(a, b)
    run = compiling.engine.compile(graph({"a": a, "b": b}, {"y": F.add(product, a), "z": F.exp(product)}))
    assert "fma" not in commands(run)


@pytest.mark.parametrize("name", sorted(FUSED))
def test_declared_like_operators(name: str) -> None:
    op = FUSED[name]
    assert op.reference is not None and op.scalar is not None and op.doc
