"""jit: traced once for each signature, run without Python from then on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import RetraceWarning
from tests.support import at_once
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_traced_once_for_a_signature(x: nnc.Tensor) -> None:
    calls = []

    @nnc.jit
    def f(a: Any, b: Any) -> Any:
        calls.append(a.shape)
        assert a.is_symbol and b.is_symbol
        return nnc.tanh(a @ b)

    for k in range(3):
        np.testing.assert_allclose(f(x + k, x.T).numpy(), np.tanh((HOST + k) @ HOST.T), rtol=1e-5)
    assert len(calls) == f.traces == 1 and f.__name__ == "f"


@pytest.mark.parametrize(("first", "second"), [
    pytest.param(np.ones(3, np.float32), np.ones(4, np.float32), id="shape"),
    pytest.param(np.ones(3, np.float32), np.ones(3, np.int32), id="dtype"),
    pytest.param(np.ones(1, np.float32), np.ones((), np.float32), id="rank"),
])
def test_traced_again_for_another_spec(device: str, first: np.ndarray, second: np.ndarray) -> None:
    f = nnc.jit(lambda a: a + a)
    for _ in range(2):
        for host in (first, second):
            found = f(nnc.asarray(host))
            assert found.shape == host.shape and found.dtype == host.dtype and (found.numpy() == 2 * host).all()
    assert f.traces == 2


def test_python_arguments_are_static(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x, n, name="a": x * n if name == "a" else x + n)
    assert f(x, 2).tolist() == (HOST * 2).tolist() and f(x, 3).tolist() == (HOST * 3).tolist()
    assert f(x, 2, name="b").tolist() == (HOST + 2).tolist()
    assert f.traces == 3
    f(x, 2)
    assert f.traces == 3
    assert f(x, 2.0).dtype == nnc.float32 and f.traces == 4, "2 and 2.0 are different arguments"
    assert f(x, True).dtype == nnc.float32 and f.traces == 5


def test_a_negative_zero_is_another_argument(device: str) -> None:
    f = nnc.jit(lambda x, a: x * a)
    one = nnc.ones(1)
    assert np.signbit(f(one, -0.0).numpy()).tolist() == [True]
    assert np.signbit(f(one, 0.0).numpy()).tolist() == [False]


class Pair(NamedTuple):
    a: Any
    b: Any


def test_structure_is_part_of_the_signature(device: str) -> None:
    f = nnc.jit(lambda t: {"sum": sum_of(t), "same": t})
    one, two = nnc.asarray(1.0), nnc.asarray(2.0)
    for tree in ([one, two], (one, two), {"p": one, "q": two}, Pair(one, two), [one, [two, None]]):
        found = f(tree)
        assert found["sum"].item() == 3.0 and type(found["same"]) is type(tree)
    assert f.traces == 5
    f([two, one])
    assert f.traces == 5


def sum_of(tree: Any) -> Any:
    from nnc_core.values.tree import flatten

    total, *rest = flatten(tree)[0]
    for x in rest:
        total = total + x
    return total


def test_results_may_be_anything(x: nnc.Tensor) -> None:
    found = nnc.jit(lambda x: (x, None, "text", [x + 1, x + 1], {"n": 3}))(x)
    same, none, text, (a, b), rest = found
    assert none is None and text == "text" and rest == {"n": 3}
    assert (a.numpy() == HOST + 1).all() and (b.numpy() == HOST + 1).all() and (same.numpy() == HOST).all()
    same[...] = -1
    a[...] = -1
    assert (x.numpy() == HOST).all() and (b.numpy() == HOST + 1).all(), "results have memory of their own"


def test_results_of_tensors_alone_keep_their_kind(x: nnc.Tensor) -> None:
    for kind in (tuple, list, Pair._make):
        found = nnc.jit(lambda x, kind=kind: kind([x + 1, x * 2]))(x)
        assert type(found) is type(kind([1, 2])) and (found[0].numpy() == HOST + 1).all()
        assert (found[1].numpy() == HOST * 2).all()
    assert nnc.jit(lambda x: (x + 1, 2.5))(x)[1] == 2.5 and nnc.jit(lambda x: ())(x) == ()
    assert nnc.jit(lambda x: [(x,)])(x)[0][0].tolist() == HOST.tolist()


def test_a_function_without_tensors(device: str) -> None:
    f = nnc.jit(lambda n: nnc.arange(n, dtype=nnc.float32) * 2)
    assert f(3).tolist() == [0.0, 2.0, 4.0] and f(3).device.id == device
    assert nnc.jit(lambda: 5)() == 5


def test_captured_tensors_are_read_at_each_call(x: nnc.Tensor) -> None:
    w = nnc.asarray([1.0, 2.0, 3.0])
    f = nnc.jit(lambda x: x * w + nnc.asarray(w) * 0)
    assert f(x).tolist() == (HOST * [1, 2, 3]).tolist()
    w[0] = 5
    assert f(x).tolist() == (HOST * [5, 2, 3]).tolist()
    w *= 2
    assert f(x).tolist() == (HOST * [10, 4, 6]).tolist()
    assert f.traces == 1


def test_captured_scalars_are_read_at_each_call(x: nnc.Tensor) -> None:
    rate = nnc.asarray(2.0)
    f = nnc.jit(lambda x: x * rate)
    assert f(x).tolist() == (HOST * 2).tolist()
    rate[...] = 3.0
    assert f(x).tolist() == (HOST * 3).tolist()


def test_a_captured_tensor_of_another_shape_is_traced_again(x: nnc.Tensor) -> None:
    holder = {"w": nnc.asarray([1.0, 2.0, 3.0])}
    w = holder["w"]
    f = nnc.jit(lambda x: x * w)
    f(x)
    w._rebind(lambda: nnc.asarray([4.0, 5.0, 6.0])._value)
    assert f(x).tolist() == (HOST * [4, 5, 6]).tolist() and f.traces == 1


def test_captured_deferred_tensors(x: nnc.Tensor) -> None:
    with nnc.deferred():
        w = x + 1
    f = nnc.jit(lambda x: x * w)
    assert f(x).tolist() == (HOST * (HOST + 1)).tolist()


def test_captured_host_arrays_are_constants(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x * np.array([1, 2, 3], np.float32) + nnc.asarray([1.0, 0.0, 0.0]))
    for _ in range(2):
        assert f(x).tolist() == (HOST * [1, 2, 3] + [1, 0, 0]).tolist()


def test_arguments_may_be_deferred(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x + 1
    assert nnc.jit(lambda y: y * 2)(y).tolist() == ((HOST + 1) * 2).tolist()


def test_inside_another_mode_the_function_runs_as_it_is_written(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x * 2)
    with nnc.deferred():
        y = f(x)
        assert y.is_deferred
    assert f.traces == 0 and y.tolist() == (HOST * 2).tolist()
    outer = nnc.jit(lambda x: f(x) + f(x + 1))
    assert outer(x).tolist() == (HOST * 4 + 2).tolist() and f.traces == 0


def test_the_gradient_of_a_compiled_function(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: nnc.sum(nnc.tanh(x) ** 2))
    plain = lambda x: nnc.sum(nnc.tanh(x) ** 2)  # noqa: E731
    np.testing.assert_allclose(nnc.grad(f)(x).numpy(), nnc.grad(plain)(x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(nnc.jit(nnc.grad(f))(x).numpy(), nnc.grad(plain)(x).numpy(), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(nnc.jit(nnc.hessian(plain))(x[0]).numpy(), nnc.hessian(plain)(x[0]).numpy(),
                               rtol=1e-5, atol=1e-6)
    v = nnc.variable(HOST)
    f(v).backward()
    assert v.grad is not None
    np.testing.assert_allclose(v.grad.numpy(), nnc.grad(plain)(x).numpy(), rtol=1e-6)


def test_methods_and_partials(x: nnc.Tensor) -> None:
    class Net:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @nnc.jit
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    two, three = Net(2.0), Net(3.0)
    assert two(x).tolist() == (HOST * 2).tolist() and three(x).tolist() == (HOST * 3).tolist()
    assert nnc.jit(partial(lambda a, b: a - b, x))(x + 1).tolist() == [[-1] * 3] * 2


@pytest.mark.parametrize("ask", [bool, int, float, lambda s: s.item(), lambda s: s.numpy(), lambda s: s.tolist(), list,
                                 lambda s: range(s), np.asarray, lambda s: s.realize()],
                         ids=["bool", "int", "float", "item", "numpy", "tolist", "list", "index", "asarray", "realize"])
def test_a_symbol_has_no_value(x: nnc.Tensor, ask: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        s = nnc.sum(x, axis=1)[:1]
        ask(s if ask in (list,) else s[0])
        return s

    if ask is list:  # iterating takes rows, which are symbols as well: that is allowed
        assert nnc.jit(f)(x).shape == (1,)
        return
    with fails(TypeError, "test_jit.py"):
        nnc.jit(f)(x)


def test_a_branch_on_data_names_the_line_of_the_data(x: nnc.Tensor) -> None:
    def f(x: Any) -> Any:
        total = nnc.sum(x)
        return x if total > 0 else -x

    with fails(TypeError, "test_jit.py", "in f", "nnc.where"):
        nnc.jit(f)(x)
    assert f(x).shape == (2, 3), "eager takes the branch"


def test_shapes_may_be_branched_on(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x[0] if x.ndim == 2 and len(x) > 1 else x)
    assert f(x).shape == (3,) and f(x[0]).shape == (3,)


def test_a_leaked_symbol_is_an_error(x: nnc.Tensor) -> None:
    leaked = []

    @nnc.jit
    def f(x: Any) -> Any:
        leaked.append(x * 2)
        return x

    f(x)
    with fails(RuntimeError, "outlived", operator="add"):
        leaked[0] + 1
    with fails(RuntimeError, "outlived", "made at test_jit.py"):
        leaked[0].numpy()
    with fails(RuntimeError, "outlived"):
        nnc.jit(lambda y: y + leaked[0])(x)
    assert "symbol" in repr(leaked[0])


def test_an_error_while_tracing_leaves_nothing_behind(x: nnc.Tensor) -> None:
    broken = True

    @nnc.jit
    def f(x: Any) -> Any:
        if broken:
            return x @ x
        return x * 2

    with fails(ValueError, "float32[2,3]", operator="matmul"):
        f(x)
    assert not nnc.is_deferred_mode()
    broken = False
    assert f(x).tolist() == (HOST * 2).tolist()


def test_unhashable_arguments(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x, y: x)
    with fails(TypeError, "bytearray", "nnc.asarray", line=False):
        f(x, bytearray(3))


def test_two_threads_call_one_function(device: str) -> None:
    f = nnc.jit(lambda x: nnc.tanh(x @ x) * 2 + x)
    hosts = [np.random.default_rng(k).uniform(-1, 1, (16, 16)).astype(np.float32) for k in range(8)]
    tensors = [nnc.asarray(h) for h in hosts]
    with nnc.config.using(deterministic=False):
        wanted = [f(t).numpy() for t in tensors]
    wrong: list[int] = []
    start = threading.Barrier(2)

    def work(first: int) -> None:
        start.wait()
        for k in range(40):
            n = (first + k) % 8
            if not (f(tensors[n]).numpy() == wanted[n]).all():
                wrong.append(n)

    at_once(work, (0, 4))
    assert not wrong


def test_threads_that_trace_at_the_same_time(device: str) -> None:
    inside = threading.Barrier(2, timeout=10)

    @nnc.jit
    def f(x: Any, n: int) -> Any:
        inside.wait()
        return x * n

    x, found = nnc.ones(3), {}

    def work(n: int) -> None:
        found[n] = f(x, n).tolist()

    at_once(work, (2, 3))
    assert found == {2: [2.0] * 3, 3: [3.0] * 3}


def test_the_compiled_graph_can_be_looked_at(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: nnc.sum(nnc.exp(x) * 2, axis=0))
    run = f.lower(x)
    assert "exp" in run.explain() and "test_jit.py" in run.explain()
    assert run.graph.list_inputs() == ["arg0"] and f.traces == 1
    profile = f.profile(x, repeats=2)
    assert any("exp" in t.command for t in profile.timings) and profile.seconds > 0
    assert f(x).shape == (3,) and f.traces == 1


def test_a_trace_that_fails_has_ended() -> None:
    kept: list[nnc.Tensor] = []

    def f(x: nnc.Tensor) -> nnc.Tensor:
        kept.append(x * 2)
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        nnc.jit(f)(nnc.ones(2))
    assert not nnc.is_deferred_mode()
    with pytest.raises(nnc.Error, match="outlived"):
        kept[0] + 1


def test_compilations_for_changing_outside_values_are_bounded() -> None:
    held = [nnc.ones(1)]
    f = nnc.jit(lambda x: x + held[0].sum())
    w = held[0]
    with pytest.warns(RetraceWarning, match=r"a tensor from outside: float32\[8\] on .* -> float32\[9\]"):
        for n in range(1, 30):
            w._value = nnc.ones(n)._value  # the same handle, another shape: traced again
            assert f(nnc.zeros(1)).item() == n
    assert f.traces == 29
    assert sum(len(entry.variants) for entry in f._cache.entries.values()) <= 8
