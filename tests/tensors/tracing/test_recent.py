"""Calls that differ in one thing from the call before, which is what a quick call looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.config import config
from nnc_core.tracing.cache import SIGNATURES

HOST = np.linspace(-1, 1, 6, dtype=np.float32)


def fresh(kind: str = "float32", device: str = "cpu:0") -> nnc.Tensor:
    return nnc.asarray(HOST.astype(kind), device=device)


def twice() -> tuple[nnc.Tensor, nnc.Tensor]:
    x = fresh()
    return x, x


OTHER: dict[str, Callable[[], tuple[Any, ...]]] = {
    "dtype": lambda: (fresh("float64"), fresh()), "shape": lambda: (fresh()[:3], fresh()[:3]),
    "device": lambda: (fresh(device="strict:0"), fresh(device="strict:0")), "one tensor twice": twice,
    "a number": lambda: (fresh(), 2.0), "fewer": lambda: (fresh(),), "more": lambda: (fresh(), fresh(), fresh()),
}  # fmt: skip


def added(x: Any, *more: Any) -> Any:
    """It tells whether one tensor comes twice."""
    return sum(more, x) * (10.0 if more and more[0] is x else 1.0)


@pytest.mark.parametrize("name", OTHER)
def test_another_kind_of_call_in_between(name: str) -> None:
    f = nnc.jit(added)
    for _ in range(3):
        plain, other = (fresh(), fresh()), OTHER[name]()
        for given in (plain, plain, other, other):
            expected = added(*given)
            found = f(*given)
            assert (found.dtype, found.shape, found.device) == (expected.dtype, expected.shape, expected.device)
            np.testing.assert_array_equal(found.numpy(), expected.numpy())
    assert f.traces == 2


def test_kinds_in_turn_are_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of two sizes, say: no call takes its arguments apart."""
    f, kinds = nnc.jit(added), [(fresh(), fresh()), (nnc.zeros((2, 3)), nnc.zeros((2, 3)))]
    for given in 2 * kinds:
        f(*given)
    monkeypatch.setattr(f._parameters, "taken_apart", lambda *_: pytest.fail("taken apart"))
    for given in 2 * kinds:
        f(*given)
    assert f.traces == 2
    assert f.cache_info().hits >= 4


def test_a_gradient_that_may_be_asked_is_followed() -> None:
    f, x, w = nnc.jit(added), fresh(), nnc.variable(fresh())
    f(x, fresh())
    nnc.sum(f(x, w)).backward()
    np.testing.assert_array_equal(w.grad.numpy(), np.ones(6, np.float32))


def test_settings_and_what_is_not_computed_yet() -> None:
    f, x = nnc.jit(added), fresh()
    f(x, fresh())
    with nnc.deferred():
        later = fresh() * 3
    np.testing.assert_array_equal(f(x, later).numpy(), HOST * 4)
    f(x, fresh())
    with config.using(deterministic=True):
        f(x, fresh())
    assert f.traces == 2, "settings are part of what a call is compiled for"


def test_a_kind_that_was_forgotten_is_compiled_again() -> None:
    f = nnc.jit(added, named_dims=False)
    with config.using(trace_limit=1000):
        for n in range(SIGNATURES + 1):
            f(nnc.zeros((n + 1,)))
        before = f.traces
        f(nnc.zeros((SIGNATURES + 1,)))
        f.cache_clear()
        f(nnc.zeros((SIGNATURES + 1,)))
    assert before == SIGNATURES + 1 and f.traces == 1
