"""jit: what code reads by name, variables, attributes, items and elements, is what is there at the call."""

from __future__ import annotations

import functools
import re
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.base.errors import RetraceWarning

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
Change = Callable[[], Any]

rate = 2.0
weight: Any = None
calls = 0


def scaled(x: Any) -> Any:
    return x * rate


def weighted(x: Any) -> Any:
    return x * weight


def counting(x: Any) -> Any:
    global calls
    calls += 1
    return x * 2


def defaulted(x: Any, by: list[float] = [1.0]) -> Any:  # noqa: B006 - that is what is tested
    return x * by[0]


def set_global(name: str, value: Any) -> Any:
    globals()[name] = value


class Settings:
    rate = 3.0


class Slotted:
    __slots__ = ("rate",)


class Layer:
    """Attributes of its own, of its class, and computed ones."""

    bias = 0.0

    def __init__(self, w: Any) -> None:
        self.w, self.power = w, 1.0

    @property
    def factor(self) -> float:
        return self.power * 2

    def helped(self, x: Any) -> Any:
        return x * self.factor

    def __call__(self, x: Any) -> Any:
        return self.helped(x) * self.w + self.bias


def traced(f: Callable[..., Any], x: nnc.Tensor, *changes: Change) -> int:
    """How often f is traced while things change; each result is that of eager, to the bit."""
    compiled = nnc.jit(f)
    for change in (lambda: None, lambda: None, *changes, lambda: None):
        change()
        found, wanted = compiled(x), f(x)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found.numpy(), wanted.numpy())
    return compiled.traces


@pytest.fixture(autouse=True)
def _globals_as_they_were() -> Any:
    yield
    set_global("rate", 2.0)
    set_global("weight", None)
    Settings.rate = 3.0
    (defaulted.__defaults__ or ())[0][0] = 1.0


def test_a_global_number_even_of_a_function_that_is_called(x: nnc.Tensor) -> None:
    changes = [lambda: set_global("rate", 3.0), lambda: set_global("rate", 2.0), lambda: set_global("rate", 2)]
    assert traced(lambda x: scaled(x), x, *changes) == 3, "2.0 is known when it comes back; 2 is another"
    assert traced(nnc.grad(lambda x: (scaled(x) * x).sum()), x, lambda: set_global("rate", 4.0)) == 2
    assert traced(nnc.vmap(scaled), x, lambda: set_global("rate", 5.0)) == 2
    inner = nnc.jit(scaled)
    assert traced(lambda x: inner(x), x, lambda: set_global("rate", 6.0)) == 2
    assert traced(functools.partial(scaled), x, lambda: set_global("rate", 7.0)) == 2


def test_a_variable_of_a_surrounding_function(x: nnc.Tensor) -> None:
    n: Any = 2

    def f(x: Any) -> Any:
        return x * n

    compiled = nnc.jit(f)
    for n in (2, 3, 3.5, True, 2):  # noqa: B007 - f reads it
        assert compiled(x).tolist() == f(x).tolist() and compiled(x).dtype == f(x).dtype
    assert compiled.traces == 4


def test_a_tensor_in_a_variable_is_read_at_each_call(x: nnc.Tensor) -> None:
    """Exchanging it for one of the same kind costs nothing; the idiom w = w - rate * gradient."""
    set_global("weight", x)
    changes = [lambda k=k: set_global("weight", x + k) for k in range(5)]
    assert traced(weighted, x, *changes) == 1
    assert traced(weighted, x, lambda: set_global("weight", x[:1]), lambda: set_global("weight", 2.0)) == 3


def test_a_tensor_that_two_variables_hold(x: nnc.Tensor) -> None:
    """Exchanged in one of them it is two."""
    a = b = x
    compiled = nnc.jit(lambda x: x * a + b)
    assert compiled(x).tolist() == (HOST * HOST + HOST).tolist()
    a = x + 1
    assert compiled(x).tolist() == (HOST * (HOST + 1) + HOST).tolist()
    b = x + 2
    assert compiled(x).tolist() == (HOST * (HOST + 1) + HOST + 2).tolist()


def test_a_tensor_whose_elements_were_looked_at(x: nnc.Tensor) -> None:
    set_global("weight", nnc.asarray(1.0))
    changes = [lambda: set_global("weight", nnc.asarray(-1.0)), lambda: set_global("weight", nnc.asarray(2.0))]
    assert traced(lambda x: x * 2 if weight > 0 else x * 3, x, *changes) == 3


def test_attributes(x: nnc.Tensor) -> None:
    slotted, layer = Slotted(), Layer(x)
    slotted.rate = 1.0
    assert traced(lambda x: x * Settings.rate, x, lambda: setattr(Settings, "rate", 5.0)) == 2
    assert traced(lambda x: x * slotted.rate, x, lambda: setattr(slotted, "rate", 5.0)) == 2
    changes = [lambda: setattr(layer, "w", x + 1), lambda: setattr(layer, "power", 4.0),
               lambda: setattr(layer, "bias", 1.0)]
    assert traced(layer, x, *changes) == 3, "the tensor is read anew, an attribute hides that of the class"
    assert traced(layer.helped, x, lambda: setattr(layer, "power", 8.0)) == 2
    method = nnc.jit(Layer.__call__)
    for power in (1.0, 2.0):
        layer.power = power
        assert method(layer, x).tolist() == layer(x).tolist(), "an argument that is no tensor has attributes too"


def test_items_of_what_variables_hold(x: nnc.Tensor) -> None:
    d: dict[str, Any] = {"w": x, "rates": [1.0, 2.0]}
    changes = [lambda: d["rates"].__setitem__(0, 4.0), lambda: d.__setitem__("w", x + 1), lambda: d.pop("w")]
    assert traced(lambda x: x * d.get("w", 3.0) * d["rates"][0], x, *changes) == 4
    assert traced(defaulted, x, lambda: (defaulted.__defaults__ or ())[0].__setitem__(0, 7.0)) == 2


def test_elements_of_host_arrays(x: nnc.Tensor) -> None:
    host = np.array([1.0, np.nan, 3.0], np.float32)
    f = lambda x: x * host[::2].sum()  # noqa: E731
    assert traced(f, x, lambda: host.__setitem__(0, 9.0), lambda: host.__setitem__(0, 1.0)) == 2


def test_what_the_code_changes_itself_is_not_watched(x: nnc.Tensor) -> None:
    log: list[Any] = []
    assert traced(lambda x: log.append(x.shape) or x * 2, x, lambda: log.clear()) == 1
    compiled = nnc.jit(counting)
    before = calls
    compiled(x)
    compiled(x)
    assert compiled.traces == 1 and calls == before + 1


def test_what_a_callback_changes_is_not_watched(x: nnc.Tensor) -> None:
    """It runs at each call of the graph; Python does not."""
    seen: list[int] = []

    def look(y: np.ndarray) -> np.ndarray:
        seen.append(len(seen))
        return y * 2

    compiled = nnc.jit(lambda x: nnc.callback(look, x.spec, x))
    for _ in range(4):
        assert compiled(x).tolist() == (HOST * 2).tolist()
    assert compiled.traces == 1 and seen == [0, 1, 2, 3]


def test_modules(device: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layer = nn.Linear(3, 2, generator=nnc.Generator(1))
            self.tuning = {"scale": 1.0}
            self.factors = [1.0, 2.0]
            self.after = nn.Lambda(lambda y: y * rate)

        def forward(self, x: Any) -> Any:
            return self.after(self.layer(x) * self.tuning["scale"] * self.factors[0])

    x = nnc.asarray(HOST)
    plain, net = Net(), Net().hybridize()
    changes: list[Callable[[Net], Any]] = [
        lambda n: None, lambda n: n.tuning.__setitem__("scale", 2.0), lambda n: n.factors.__setitem__(0, 3.0),
        lambda n: set_global("rate", 5.0), lambda n: n.layer.weight.write(n.layer.weight.read() * 2),
        lambda n: setattr(n, "layer", nn.Linear(3, 4, generator=nnc.Generator(2))), lambda n: n.requires_grad_(),
        lambda n: n.requires_grad_(False),
    ]
    for change in changes:
        change(plain)
        change(net)
        for _ in range(2):
            np.testing.assert_array_equal(net(x).numpy(), plain(x).numpy())
    assert net._compiled is not None and net._compiled.traces == 5


def test_a_redefined_function(x: nnc.Tensor) -> None:
    space: dict[str, Any] = {}
    exec("def helper(x):\n    return x * 2\ndef f(x):\n    return helper(x)", space)
    compiled = nnc.jit(space["f"])
    assert compiled(x).tolist() == (HOST * 2).tolist()
    exec("def helper(x):\n    return x * 3", space)
    assert compiled(x).tolist() == (HOST * 3).tolist()


@pytest.mark.parametrize(("change", "said"), [
    (lambda n: set_global("rate", float(n)), "global `rate`: 6.0 -> 7.0"),
    (lambda n: setattr(Settings, "rate", n), "rate of Settings: 6 -> 7"),
])
def test_a_storm_names_the_variable(x: nnc.Tensor, change: Callable[[int], Any], said: str) -> None:
    compiled = nnc.jit(lambda x: x * rate * Settings.rate)
    with nnc.config.using(trace_limit=7), pytest.warns(RetraceWarning, match=re.escape(said)) as caught:
        for n in range(9):
            change(n)
            compiled(x)
    assert len(caught) == 1


def test_what_is_compared_is_explained(x: nnc.Tensor) -> None:
    n = 2
    text = nnc.jit(lambda x: x * rate * n).explain(x)
    assert "compared at each call: " in text and "global `rate`" in text and "variable `n`" in text
    assert "compared" not in nnc.jit(lambda x: x * 2).explain(x)


def test_threads_while_a_variable_changes(device: str) -> None:
    """Each call is right for one of the values that the variable had meanwhile."""
    compiled = nnc.jit(lambda x: x * rate)
    wrong: list[Any] = []
    one = nnc.ones(4)

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RetraceWarning)
            wrong.extend(y for _ in range(40) if (y := compiled(one).tolist()) not in ([[2.0] * 4, [3.0] * 4]))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for k in range(40):
        set_global("rate", 2.0 + k % 2)
    for t in threads:
        t.join()
    assert not wrong
