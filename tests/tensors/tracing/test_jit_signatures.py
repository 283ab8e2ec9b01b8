"""jit: what makes a call another call, how often that may be, and what is kept."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import FallbackWarning, RetraceWarning
from nnc_core.tracing.cache import SIGNATURES
from tests.support import at_once
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


# ---- static arguments
class Choice:
    """Hashable, and no tensor; equal by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


@pytest.mark.parametrize("options", [{"static_argnums": 1}, {"static_argnums": (-1,)}, {"static_argnames": "how"},
                                     {"static_argnames": ("how",), "static_argnums": [1]}], ids=str)
def test_static_arguments_are_told_apart_by_equality(x: nnc.Tensor, options: dict[str, Any]) -> None:
    @nnc.jit(**options)
    def f(x: Any, how: Any) -> Any:
        return x * 2 if how.name == "double" else x + 1

    for _ in range(2):
        assert f(x, Choice("double")).tolist() == (HOST * 2).tolist()
        assert f(x, Choice("other")).tolist() == (HOST + 1).tolist()
    assert f.traces == 2
    assert f(x, how=Choice("double")).tolist() == (HOST * 2).tolist()


def test_a_static_argument_is_taken_whole(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x, shape: x.reshape(shape), static_argnames=["shape"])
    assert f(x, (3, 2)).shape == (3, 2) and f(x, (6,)).shape == (6,) and f.traces == 2
    assert f(x, shape=(2, 3)).shape == (2, 3)
    for args, kwargs in (((x, [3, 2]), {}), ((x,), {"shape": [3, 2]})):
        with fails(TypeError, "static argument shape is a list", "tuple", line=False):
            f(*args, **kwargs)
    for given in (x, (1, [x])):
        with fails(TypeError, "static argument shape has a tensor in it", line=False):
            f(x, given)


def test_choices_of_arguments_that_are_wrong(device: str) -> None:
    for options in ({"static_argnums": 2}, {"donate_argnums": -3}, {"static_argnums": (True,)},
                    {"static_argnums": 0, "donate_argnames": "x"}):
        with fails(ValueError, line=False):
            nnc.jit(lambda x, y: x, **options)
    with fails(ValueError, "int is no function", operator="jit"):
        nnc.jit(3)  # type: ignore[call-overload]


def test_names_of_arguments_that_there_are_not(x: nnc.Tensor) -> None:
    for options in ({"static_argnames": "m"}, {"donate_argnames": ("x", "m")}):
        with fails(ValueError, "argnames has 'm'", "x, n", line=False):
            nnc.jit(lambda x, *, n: x * n, **options)
    f = nnc.jit(lambda x, **more: x * more["m"], static_argnames="m")
    assert f(x, m=2).tolist() == (x * 2).tolist()


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0.0, -0.0), ((1, 2.0), (1, 2)), ("a", b"a"),
                                            (np.float32(1), np.float64(1))], ids=str)
def test_static_values_that_look_equal(x: nnc.Tensor, one: Any, other: Any) -> None:
    f = nnc.jit(lambda x, n: (x, repr(n)), static_argnums=1)
    assert f(x, one)[1] == repr(one) and f(x, other)[1] == repr(other)


def test_a_nan_is_one_argument(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x, n: x * n)
    f(x, float("nan"))
    assert np.isnan(f(x, float("nan")).numpy()[0, 1]) and f.traces == 1


# ---- what is around a call
def test_settings_and_the_default_device_are_part_of_the_signature(device: str) -> None:
    f = nnc.jit(lambda: nnc.ones(3) / 2)
    assert f().dtype == nnc.float32 and f().device.id == device
    with nnc.config.using(default_float="float64"):
        assert f().dtype == nnc.float64
    with nnc.config.using(deterministic=False):
        f()
    with nnc.use_device("strict:0"):
        assert f().device.id == "strict:0"
    assert f().dtype == nnc.float32 and f().device.id == device
    assert f.traces == (3 if device == "strict:0" else 4)


def test_elements_that_python_looked_at_are_guarded(x: nnc.Tensor) -> None:
    """A branch on a tensor from outside is right for as long as that tensor stays what it is."""
    scale, flag = nnc.asarray(2.0), nnc.asarray([1.0, -1.0])

    def f(x: Any) -> Any:
        return x * float(scale) if flag.sum() + scale > 1 else x + scale.item()

    compiled = nnc.jit(f)
    for change in (lambda: None, lambda: None, lambda: scale.__imul__(3.0), lambda: flag.__setitem__(0, -9.0),
                   lambda: None, lambda: scale.__imul__(10.0)):
        change()
        assert compiled(x).tolist() == f(x).tolist()
    assert compiled.traces == 4


def test_what_is_computed_from_a_variable_outside_keeps_its_gradient(device: str) -> None:
    v = nnc.variable([1.0, 2.0, 3.0])
    y = v * v
    f = nnc.jit(lambda x: (x * y).sum())
    f(nnc.ones(3)).backward()
    assert v.grad is not None and v.grad.tolist() == [2.0, 4.0, 6.0]
    with nnc.no_grad():
        assert f(nnc.ones(3)).item() == 14.0


def test_a_deferred_tensor_from_outside_that_is_rebound(x: nnc.Tensor) -> None:
    with nnc.deferred():
        w = x + 1
    f = nnc.jit(lambda x: x * w)
    assert f(x).tolist() == (HOST * (HOST + 1)).tolist()
    w += 1
    assert f(x).tolist() == (HOST * (HOST + 2)).tolist() and f.traces == 1


def test_constants_made_inside_stay_constants(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x * (nnc.ones(3) * 2 + nnc.arange(3, dtype="float32")))
    assert f(x).tolist() == (HOST * [2, 3, 4]).tolist()
    assert f.lower(x).graph.list_inputs() == ["arg0"]


def test_shared_host_memory_is_read_at_each_call(device: str) -> None:
    if not device.startswith(("cpu", "strict")):
        pytest.skip("this device does not compute in the host's memory")
    host = np.ones(3, np.float32)
    try:
        w = nnc.asarray(host, copy=False)
    except nnc.Error:
        pytest.skip("this device shares no memory")
    f, g = nnc.jit(lambda x: x * w), nnc.jit(lambda x: x * float(w.sum()))
    assert f(w).tolist() == [1, 1, 1]
    host[0] = 3
    assert f(w).tolist() == [9, 1, 1]
    with fails(TypeError, "memory that others may change"):
        g(nnc.ones(3))


# ---- too many traces
def test_a_storm_of_traces_is_one_warning(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x, n: x * n)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(20):
            f(x, n)
    (warning,) = caught
    assert warning.category is RetraceWarning and issubclass(RetraceWarning, RuntimeWarning)
    assert "'<lambda>' has been traced 9 times" in str(warning.message)
    assert "argument 1 `n`: 7 -> 8" in str(warning.message)
    assert warning.filename == __file__
    f.cache_clear()
    with nnc.config.using(trace_limit=2), pytest.warns(RetraceWarning, match="argument 1 `n`: 1 -> 2"):
        for n in range(3):
            f(x, n)


class Holder:
    def __init__(self) -> None:
        self.scale = 1.0

    def _read_scale(self) -> float:
        return self.scale


@pytest.mark.parametrize("kind", ["shape", "dtype", "structure", "guard", "setting"])
def test_the_warning_names_what_changed(device: str, kind: str) -> None:
    from nnc_core.values.trace import guarded

    holder = Holder()
    f = nnc.jit(lambda tree, scale=1: {"y": tree["w"] * guarded(holder._read_scale)}, named_dims=False)
    f({"w": nnc.ones((2, 3))})
    with nnc.config.using(trace_limit=1), pytest.warns(RetraceWarning) as caught:
        if kind == "shape":
            f({"w": nnc.ones((4, 3))})
        elif kind == "dtype":
            f({"w": nnc.ones((2, 3), dtype="int32")})
        elif kind == "structure":
            f({"w": nnc.ones((2, 3)), "b": None})
        elif kind == "guard":
            holder.scale = 2.0
            f({"w": nnc.ones((2, 3))})
        else:
            with nnc.config.using(deterministic=False):
                f({"w": nnc.ones((2, 3))})
    wanted = {"shape": f"argument 0 `tree['w']`: float32[2,3] on {device} -> float32[4,3]", "dtype": "-> int32[2,3]",
              "structure": "the structure of the arguments", "guard": "scale of Holder: 1.0 -> 2.0",
              "setting": "deterministic: True -> False"}
    assert wanted[kind] in str(caught[0].message)


# ---- the cache
def test_cache_info_counts(x: nnc.Tensor) -> None:
    @nnc.jit
    def f(x: Any, n: int = 2) -> Any:
        return x * n

    f(x)
    f(x)
    f(x, n=3)
    f(x.reshape((3, 2)))
    f(x.reshape((6, 1)))
    info = f.cache_info()
    assert (info.hits, info.misses, info.traces, info.compilations) == (1, 4, 3, 4), "the last one is for any size"
    assert info.signatures[0].startswith("f(x=float32[2,3] on ") and info.signatures[1].endswith(", n=3)")
    f.cache_clear()
    assert f.cache_info() == (0, 0, 0, 0, ())
    assert f(x).tolist() == (HOST * 2).tolist() and f.cache_info()[:4] == (0, 1, 1, 1)


def test_what_is_kept_is_bounded(device: str) -> None:
    f = nnc.jit(lambda x, n: x + n)
    x = nnc.ones(2)
    with pytest.warns(RetraceWarning):
        for n in range(3 * SIGNATURES):
            f(x, n)
            f(x, 0)
    assert len(f.cache_info().signatures) == SIGNATURES and len(f._cache.families) <= SIGNATURES
    traces = f.traces
    f(x, 0)
    assert f.traces == traces, "what is in use stays"
    assert f(x, 1).tolist() == [2.0, 2.0] and f.traces == traces + 1


def test_explain_says_everything(x: nnc.Tensor) -> None:
    w, bias = nnc.Cell(nnc.ones(3), "weight"), nnc.asarray([1.0, 2.0, 3.0])
    holder = Holder()

    @nnc.jit
    def f(x: Any) -> Any:
        from nnc_core.values.trace import guarded

        w.write(w.read() * 2)
        return nnc.tanh(x * w.read() + bias) * guarded(holder._read_scale)

    text = f.explain(x)
    assert w.read().tolist() == [1, 1, 1], "nothing has run"
    for part in ("f(x=float32[2,3]", "1 traces", "it is the first call", "guard: scale of Holder is 1.0",
                 "cell 'weight': float32[3], updated", "read from outside at each call: float32[3]", "memory: peak",
                 "tanh", "test_jit_signatures.py"):
        assert part in text, text
    f(x)
    assert f.cache_info().hits == 1


def test_copies_start_without_compiled_code(x: nnc.Tensor) -> None:
    f = nnc.jit(_scaled)
    f(x, 2.0)
    for twin in (copy.deepcopy(f), pickle.loads(pickle.dumps(f))):
        assert twin.traces == 0 and twin(x, 2.0).tolist() == (HOST * 2).tolist() and twin.traces == 1
    assert pickle.loads(pickle.dumps(decorated)) is decorated, "as functions are, by name"


def _scaled(x: Any, n: float) -> Any:
    return x * n


@nnc.jit
def decorated(x: Any) -> Any:
    return x


# ---- threads and failures
def test_threads_compile_once(device: str) -> None:
    count = 6
    together = threading.Barrier(count, timeout=30)
    runs: list[int] = []

    @nnc.jit
    def f(x: Any) -> Any:
        runs.append(1)
        return nnc.tanh(x) * 2

    x, found = nnc.ones((4, 4)), []

    def work() -> None:
        together.wait()
        with nnc.config.using(deterministic=True):
            found.append(f(x).numpy())

    at_once(lambda _: work(), range(count))
    assert len(runs) == 1 and len(found) == count and all((y == found[0]).all() for y in found)


def test_threads_that_update_one_cell(device: str) -> None:
    """Calls that overwrite a cell take turns: nothing is lost."""
    total = nnc.Cell(nnc.zeros(64), "total")

    @nnc.jit
    def add(x: Any) -> Any:
        total.write(total.read() + x)
        return x

    one = nnc.ones(64)
    add(one)
    threads = [threading.Thread(target=lambda: [add(one) for _ in range(25)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert total.read().tolist() == [101.0] * 64


def test_two_live_calls_share_no_memory(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: nnc.tanh(x) * 2 + nnc.exp(x / 10))
    first, second = f(x), f(x + 1)
    wanted = [np.tanh(h) * 2 + np.exp(h / 10) for h in (HOST, HOST + 1)]
    np.testing.assert_allclose((first + second).numpy(), wanted[0] + wanted[1], rtol=1e-5)
    np.testing.assert_allclose(f(first).numpy(), np.tanh(wanted[0]) * 2 + np.exp(wanted[0] / 10), rtol=1e-5)
    np.testing.assert_allclose(first.numpy(), wanted[0], rtol=1e-5)


def test_a_trace_that_failed_is_tried_again(x: nnc.Tensor) -> None:
    w = nnc.Cell(nnc.ones(3), "w")
    broken = [True]

    @nnc.jit
    def f(x: Any) -> Any:
        w.write(w.read() + 1)
        if broken[0]:
            raise KeyError("in the middle")
        return x * w.read()

    for _ in range(3):
        with pytest.raises(KeyError, match="in the middle"):
            f(x)
    assert f.cache_info().compilations == 0 and w.read().tolist() == [1, 1, 1]
    broken[0] = False
    assert f(x).tolist() == (HOST * 2).tolist() and w.read().tolist() == [2, 2, 2]
    assert not nnc.is_deferred_mode()


def test_methods_know_their_function(x: nnc.Tensor) -> None:
    class Scaled:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @nnc.jit(static_argnums=2)
        def times(self, x: Any, n: int) -> Any:
            return x * self.scale * n

    s = Scaled(2.0)
    assert s.times(x, 3).tolist() == (HOST * 6).tolist()
    assert s.times.cache_info().compilations == 1 and Scaled.times.traces == 1


def test_what_needs_a_size_that_depends_on_data_runs_as_it_is_written(x: nnc.Tensor) -> None:
    f = nnc.jit(lambda x: x * len(x[x > 1]))
    with pytest.warns(FallbackWarning, match="'<lambda>' runs operator by operator"):
        assert f(x).tolist() == (HOST * 4).tolist()
    assert f(x - 4).tolist() == (HOST * 0).tolist() and f.traces == 1
    with pytest.raises(NotImplementedError, match="not compiled"):
        f.lower(x)


def test_numpy_arrays_are_tensors(device: str) -> None:
    compiled = nnc.jit(lambda x, y: x * 2 + y["b"])
    for value in (1.0, 2.0):
        found = compiled(np.full(3, value, np.float32), {"b": np.ones(3, np.float32)})
        assert found.tolist() == [value * 2 + 1] * 3
    assert compiled.traces == 1


@dataclasses.dataclass
class Chosen:
    power: int
    names: set[str]


def test_sets_and_dataclasses_are_static(device: str) -> None:
    def f(x: nnc.Tensor, chosen: Chosen, names: set[str]) -> nnc.Tensor:
        return x * chosen.power * len(names & chosen.names)

    compiled, x = nnc.jit(f), nnc.ones(2)
    for power, names in ((2, {"a", "b"}), (2, {"b", "a"}), (3, {"a", "b"}), (3, {"a"})):
        assert compiled(x, Chosen(power, {"a", "b"}), names).tolist() == f(x, Chosen(power, {"a", "b"}), names).tolist()
    assert compiled.traces == 3
