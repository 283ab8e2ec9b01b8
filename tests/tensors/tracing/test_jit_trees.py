"""jit: arguments and results in every structure are what they are in eager code."""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


class Kind(enum.Enum):
    FIRST = 1
    SECOND = 2


@dataclass
class Batch:
    x: Any
    scale: Any = 2.0
    rest: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Frozen:
    x: Any
    scale: Any = 2.0


@dataclass(frozen=True)
class Options:
    scale: float = 3.0


@dataclass
class Slim:
    __slots__ = ("x",)
    x: Any


def shown(tree: Any) -> Any:
    """Types, order, numbers."""
    if isinstance(tree, nnc.Tensor):
        return str(tree.dtype), tree.shape, tree.tolist()
    if isinstance(tree, dict):
        return type(tree), [(k, shown(v)) for k, v in tree.items()]
    if isinstance(tree, (list, tuple)):
        return type(tree), [shown(v) for v in tree]
    if hasattr(tree, "__dataclass_fields__"):
        return type(tree), [(f.name, shown(getattr(tree, f.name))) for f in fields(tree)]
    return type(tree), tree


Call = Callable[[nnc.Tensor], tuple[tuple[Any, ...], dict[str, Any]]]


def of(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Call]]] = {
    "order of a dict": (lambda d: (list(d), next(iter(d.values()))),
                        [lambda x: of({"b": x, "a": x + 1}), lambda x: of({"a": x + 1, "b": x})]),
    "order of a result": (lambda x: {"b": x, "a": x + 1, "c": {"z": 1, "y": x}}, [lambda x: of(x)]),
    "order of keywords": (lambda **k: list(k), [lambda x: of(b=x, a=x), lambda x: of(a=x, b=x)]),
    "positions and keywords": (lambda a, b=None, *c, d=2: a if b is None else (a - b) * d + sum(c), [
        lambda x: of(x), lambda x: of(x, None), lambda x: of(x, x + 1), lambda x: of(b=x, a=x * 2),
        lambda x: of(a=x * 2, b=x), lambda x: of(x, b=x, d=3), lambda x: of(x, x, x, x, d=x)]),
    "dict that makes what is missing": (lambda d: (d["a"] + d["b"], d["none"], type(d)),
                                        [lambda x: of(defaultdict(list, a=x, b=x))]),
    "ordered dict": (lambda d: (d, list(d)), [lambda x: of(OrderedDict([("z", x), ("a", x)]))]),
    "counter": (lambda d: d, [lambda x: of(Counter("hello"))]),
    "keys of no order": (lambda d: d[Kind.SECOND] - d[Kind.FIRST],
                         [lambda x: of({Kind.SECOND: x, Kind.FIRST: x * 2})]),
    "keys of many kinds": (lambda d: (list(d), d[None] + d[1] + d["a"] - d[(1, "b")]),
                           [lambda x: of({None: x, 1: x + 1, "a": x * 2, (1, "b"): x})]),
    "dataclass": (lambda b: Batch(b.x * b.scale, b.scale, b.rest), [
        lambda x: of(Batch(x)), lambda x: of(Batch(x + 1, 3.0)), lambda x: of(Batch(x, x, {"y": x}))]),
    "frozen dataclass": (lambda b: Frozen(b.x * b.scale), [
        lambda x: of(Frozen(x)), lambda x: of(Frozen(x + 1)), lambda x: of(Frozen(x, x))]),
    "dataclass with slots": (lambda b: Slim(b.x * 2), [lambda x: of(Slim(x)), lambda x: of(Slim(x + 1))]),
    "dataclass of host arrays": (lambda b: (nnc.multiply(b.x, b.scale), b.rest), [
        lambda x: of(Batch(x.numpy())), lambda x: of(Batch(x.numpy() + 1, 3.0)), lambda x: of(Batch(x.numpy(), x)),
        lambda x: of(Batch(x, x.numpy())), lambda x: of(Batch(np.arange(6.0).reshape(2, 3), np.float64(2)))]),
    "dataclass in a dataclass": (lambda b: nnc.add(nnc.multiply(b.x.x, b.scale), b.rest["y"][0].x), [
        lambda x: of(Batch(Slim(x.numpy()), x.numpy(), {"y": [Frozen(x.numpy())]}))]),
    "dataclass of settings": (lambda x, o=Options(): x * o.scale, [
        lambda x: of(x), lambda x: of(x, Options(1.0)), lambda x: of(x, o=Options(2.0))]),
    "one tensor twice": (lambda a, b: a * 2 if a is b else a * 3,
                         [lambda x: of(x, x), lambda x: of(x, x + 1), lambda x: of(x, x)]),
    "numbers among tensors": (lambda a, b: a * b + 1, [
        lambda x: of(x, 2), lambda x: of(2, x), lambda x: of(2, 3), lambda x: of(x, np.float32(2)),
        lambda x: of(x, True), lambda x: of(x, x), lambda x: of(x.astype("int32"), 2),
        lambda x: of(x.astype("int32"), 2.5)]),
    "complex numbers": (lambda x, c: (x, repr(c)), [lambda x: of(x, complex(0.0, 0.0)),
                                                    lambda x: of(x, complex(0.0, -0.0))]),
    "not in order in memory": (lambda a: (nnc.tanh(a) * 2, a.sum(axis=0)), [
        lambda x: of(x.T), lambda x: of(x[:, ::2]), lambda x: of(nnc.flip(x)),
        lambda x: of(nnc.broadcast_to(x[:1], (4, 3)))]),
    "of no size, of no axes": (lambda a: (a * 2, a.sum(), a.ndim), [
        lambda x: of(x[:0]), lambda x: of(x[:, :0]), lambda x: of(x[0, 1]), lambda x: of(x), lambda x: of(x[:1])]),
    "size one after another size": (lambda a, b: a + b, [
        lambda x: of(x, x[:1]), lambda x: of(nnc.concat([x, x]), x[:1]), lambda x: of(x[:1], x[1:]),
        lambda x: of(x[:1], x), lambda x: of(x, x + 1)]),
    "sizes equal by chance": (lambda a: a @ a if a.shape[0] == a.shape[1] else a.T @ a, [
        lambda x: of(x), lambda x: of(nnc.concat([x, x])), lambda x: of(nnc.concat([x, x[:1]])),
        lambda x: of(nnc.concat([x, x, x]))]),
    "sizes in arithmetic": (lambda a: a * 2 if a.shape[0] * 2 + 1 > a.size // 3 + 2 else a * 3, [
        lambda x: of(x), lambda x: of(nnc.concat([x, x])), lambda x: of(x[:1]), lambda x: of(nnc.concat([x, x, x]))]),
    "text of a tensor": (lambda a: (f"{a.dtype} {a.ndim}", bool(repr(a)), a), [lambda x: of(x), lambda x: of(x[:1])]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_structures_are_as_in_eager_code(x: nnc.Tensor, name: str) -> None:
    f, calls = PROGRAMS[name]
    compiled = nnc.jit(f)
    for call in (*calls, *calls):
        args, kwargs = call(x)
        assert shown(compiled(*args, **kwargs)) == shown(f(*args, **kwargs))
    traces = compiled.traces
    for call in calls:
        args, kwargs = call(x)
        compiled(*args, **kwargs)
    assert compiled.traces == traces, "everything is known by now"


def test_gradients_by_a_dataclass(x: nnc.Tensor) -> None:
    """Of its structure, compiled or not."""
    f = nnc.grad(lambda b: (b.x * b.scale).sum())
    for g in (f, nnc.jit(f)):
        found = g(Frozen(x, x + 1))
        assert type(found) is Frozen
        assert found.x.tolist() == (HOST + 1).tolist() and found.scale.tolist() == HOST.tolist()


def test_a_field_of_a_dataclass_is_named(x: nnc.Tensor) -> None:
    with pytest.raises(TypeError, match=r"argument `b\.x`"):
        nnc.jit(lambda b: float(b.x.sum()))(Batch(x))


def test_donated_twice(device: str) -> None:
    """One tensor as two arguments of which one is donated: it is gone, and both results are right."""
    for donated in (0, 1, (0, 1)):
        f = nnc.jit(lambda a, b: (a + 1, b * 2), donate_argnums=donated)
        for _ in range(2):
            p = nnc.asarray(HOST)
            a, b = f(p, p)
            assert a.tolist() == (HOST + 1).tolist() and b.tolist() == (HOST * 2).tolist()
            with pytest.raises(nnc.Error, match="donated"):
                p + 1


def test_a_function_that_calls_itself(x: nnc.Tensor) -> None:
    @nnc.jit
    def doubled(x: Any, n: int) -> Any:
        return x if n == 0 else doubled(x * 2, n - 1)

    assert doubled(x, 3).tolist() == (HOST * 8).tolist() and doubled(x, 2).tolist() == (HOST * 4).tolist()


def test_in_place_on_an_argument_is_refused(x: nnc.Tensor) -> None:
    """Eager code would change the caller's tensor."""
    def f(a: Any) -> Any:
        a += 1
        return a

    with pytest.raises(nnc.Error, match="in-place change of a symbol"):
        nnc.jit(f)(x)
    assert x.tolist() == HOST.tolist()
