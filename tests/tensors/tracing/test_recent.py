"""Calls that differ in one thing from the call before, which is what a quick call looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Any, NamedTuple

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


# ---- arguments with names and parts, and what is no tensor
class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Options:
    """Mutable, and told apart by its fields."""

    scale: float


def told(*args: Any, **kwargs: Any) -> Any:
    """A number for each thing that code may ask about its arguments."""
    text = repr([_told(x) for x in args]) + repr([(k, _told(x)) for k, x in kwargs.items()])
    return _tensors((args, kwargs))[0] + float(sum(map(ord, text)) + 31 * len(text))


def _told(x: Any) -> Any:
    if isinstance(x, nnc.Tensor):
        return "tensor", x.shape, str(x.dtype)
    if isinstance(x, dict):
        return type(x), [(k, _told(y)) for k, y in x.items()]
    return (type(x), [_told(y) for y in x]) if isinstance(x, (list, tuple)) else repr(x)


def _tensors(tree: Any) -> list[nnc.Tensor]:
    if isinstance(tree, nnc.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ()
    return [x for part in parts for x in _tensors(part)]


X, Y = fresh(), fresh()
CALLS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "keywords": [((X,), {"y": Y}), ((X,), {"z": Y}), ((X,), {}), ((X, Y), {}), ((X,), {"y": Y, "z": 1})],
    "order of keywords": [((), {"x": X, "y": Y}), ((), {"y": Y, "x": X})],
    "trees": [(({"w": X, "b": Y},), {}), (({"b": X, "w": Y},), {}), (([X, Y],), {}), (((X, Y),), {}),
              ((Pair(X, Y),), {}), (({"w": X, "b": [Y]},), {}), (({"w": X},), {}),
              (({"w": X, "b": None, "c": Y},), {})],
    "numbers": [((X, n), {}) for n in (1, 1.0, True, 0.0, -0.0, nan, 2, None, "1", b"1", 1j, (1,), frozenset({1}))],
    "tensors and numbers": [((X, 2.0), {}), ((X, Y), {}), ((2.0, X), {}), ((X, [2.0]), {}), ((X, [Y]), {})],
    "one tensor twice": [(([X, X],), {}), (([X, Y],), {})], "shapes": [((X, 1), {}), ((X[:3], 1), {})],
    "dtypes": [((X, 1), {}), ((fresh("float64"), 1), {})],
    "host arrays": [((HOST, 1), {}), ((X, 1), {}), ((HOST.astype("float64"), 1), {})],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("shift", [0, 1])
def test_calls_that_differ_in_one_thing(name: str, shift: int) -> None:
    calls = CALLS[name][shift:] + CALLS[name][:shift]
    f = nnc.jit(told)
    for args, kwargs in [call for given in 3 * calls for call in (given, given)]:
        expected = told(*[nnc.asarray(x) if isinstance(x, np.ndarray) else x for x in args], **kwargs)
        with config.using(trace_limit=100):
            np.testing.assert_array_equal(f(*args, **kwargs).numpy(), expected.numpy())


def test_trees_in_turn_are_known_too(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nnc.jit(told, static_argnames="mode")
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        (({"w": fresh(), "b": [fresh()]},), {"mode": "train", "scale": 2}), (({"w": fresh()},), {"mode": "test"}),
        ((fresh(), 3), {}), ((Pair(fresh(), None),), {}),
    ]
    for args, kwargs in 2 * calls:
        f(*args, **kwargs)
    monkeypatch.setattr(f._parameters, "taken_apart", lambda *_: pytest.fail("taken apart"))
    for args, kwargs in 2 * calls:
        f(*args, **kwargs)
    assert f.traces == len(calls)


def test_an_object_that_has_changed_is_another() -> None:
    f, options = nnc.jit(lambda x, options: x * options.scale), Options(2.0)
    for scale in (2.0, 2.0, 3.0, 3.0, 2.0):
        options.scale = scale
        np.testing.assert_array_equal(f(X, options).numpy(), HOST * np.float32(scale))


def test_static_arguments_with_tensors_are_refused_every_time() -> None:
    f = nnc.jit(lambda x, n: x * 2, static_argnums=1)
    f(X, 1)
    f(X, 1)
    for _ in range(2):
        with pytest.raises(nnc.errors.OperandError, match="static argument"):
            f(X, (Y,))


def test_settings_and_devices_count_for_trees_too() -> None:
    f = nnc.jit(lambda x, *, n: x * n + nnc.ones(6))
    for _ in range(2):
        assert f(X, n=2).dtype == nnc.float32
        with nnc.config.using(default_float="float64"):
            assert f(X, n=2).dtype == nnc.float64


def test_gradients_go_through_calls_with_names() -> None:
    f = nnc.jit(lambda x, *, n: nnc.sum(x * x) * n)
    f(X, n=2)
    f(X, n=2)
    np.testing.assert_allclose(nnc.grad(lambda x: f(x, n=2))(X).numpy(), 4 * HOST)


def test_what_is_forgotten_is_traced_again() -> None:
    f = nnc.jit(lambda x, *, n: x * n)
    with config.using(trace_limit=100):
        for n in range(SIGNATURES + 10):
            f(X, n=n)
        np.testing.assert_array_equal(f(X, n=3).numpy(), HOST * 3)
    f.cache_clear()
    np.testing.assert_array_equal(f(X, n=3).numpy(), HOST * 3)
    assert f.traces == 1
