"""Deferred computation: what computes it, once; derivatives; changes in place; errors."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ImplicitComputeError, ImplicitComputeWarning
from nnc_core.values import running
from tests.tensors.conftest import devices
from tests.tensors.faults import fails

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)
F64 = np.float64(0.5)
QUICKEST = devices()[0]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that have run."""
    seen: list[str] = []
    run = running._run

    def counted(op, *rest):  # type: ignore[no-untyped-def]
        seen.append(op.name)
        return run(op, *rest)

    monkeypatch.setattr(running, "_run", counted)
    return seen


# ---- computing
def test_realize_computes_several_trees_in_one_walk(x: nnc.Tensor, runs: list[str]) -> None:
    with nnc.deferred():
        shared = nnc.exp(x)
        tree = {"a": shared + 1, "b": [nnc.sum(shared), None, "text"]}
        other = (shared * shared, 3)
    assert runs == []
    nnc.realize(tree, other)
    assert sorted(n for n in runs if n != "filled") == ["add", "exp", "multiply", "sum"], "exp once"
    nnc.realize(tree, other)
    assert len([n for n in runs if n != "filled"]) == 4
    np.testing.assert_allclose(other[0].numpy(), np.exp(HOST) ** 2, rtol=1e-5)


def test_only_what_is_needed_is_computed(x: nnc.Tensor, runs: list[str]) -> None:
    with nnc.deferred():
        a = nnc.sin(x)
        b = nnc.cos(x)
    a.numpy()
    assert runs == ["sin"] and b.is_deferred


TRIGGERS: dict[str, Callable[[nnc.Tensor], object]] = {
    "numpy": lambda y: y.numpy(), "asarray": np.asarray, "tolist": lambda y: y.tolist(),
    "item": lambda y: y[0, 0].item(), "bool": lambda y: bool(y[0, 0] > 0), "float": lambda y: float(y[0, 1]),
    "operator": lambda y: y + 1, "method": lambda y: y.sum(), "iteration": lambda y: list(y),
    "jit": lambda y: nnc.jit(lambda y: y + 1)(y),
    "data-dependent shape": lambda y: nnc.nonzero(y), "index": lambda y: y[[0, 1]],
}  # fmt: skip


@pytest.mark.parametrize("name", TRIGGERS)
def test_what_computes(x: nnc.Tensor, name: str) -> None:
    with nnc.deferred():
        y = x * 2
    TRIGGERS[name](y)
    assert not y.is_deferred
    np.testing.assert_array_equal(y.numpy(), HOST * 2)


@pytest.mark.parametrize("name", [n for n in TRIGGERS if n != "jit"])
def test_implicit_computing_may_be_an_error(x: nnc.Tensor, name: str) -> None:
    with nnc.deferred():
        y = x * 2
    with nnc.config.using(implicit_compute="error"):
        with pytest.raises(ImplicitComputeError, match="deferred float32") as caught:
            TRIGGERS[name](y)
        assert y.is_deferred, "nothing was computed"
        y.realize()
        nnc.realize([y])
        y.wait()
        TRIGGERS[name](y)
    assert isinstance(caught.value, RuntimeError)
    assert str(caught.value).count("test_deferred.py") == 2, "the line that recorded it, and the user's"
    assert "nnc.realize" in str(caught.value)


def test_implicit_computing_may_be_a_warning(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
    with nnc.config.using(implicit_compute="warn"):
        with pytest.warns(ImplicitComputeWarning, match=r"at test_deferred\.py:.*is computed: it was converted"):
            y.numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            y.numpy()
            with nnc.deferred():
                (y + 1).realize()


def test_the_setting_has_three_values() -> None:
    with pytest.raises(ValueError, match="allow, warn, error"), nnc.config.using(implicit_compute="perhaps"):
        pass


def test_several_threads_compute_what_is_forgotten(device: str) -> None:
    for _ in range(5):
        with nnc.deferred(keep_graph=False):
            y = nnc.asarray(HOST)
            for _ in range(30):
                y = nnc.tanh(y + 0.5)
        found: list[np.ndarray] = []
        threads = [threading.Thread(target=lambda y=y, found=found: found.append(y.numpy())) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 4 and all((f == found[0]).all() for f in found)


# ---- modes
def test_a_block_may_switch_back_to_eager(x: nnc.Tensor) -> None:
    with nnc.deferred():
        with nnc.deferred(False):
            assert not nnc.is_deferred_mode() and not (x + 1).is_deferred
        with nnc.deferred(keep_graph=False):
            assert (x + 1).is_deferred
        assert nnc.is_deferred_mode() and (x + 1).is_deferred
    assert not nnc.is_deferred_mode()


def test_deferred_decorates_functions(x: nnc.Tensor) -> None:
    @nnc.deferred()
    def f(x: nnc.Tensor) -> nnc.Tensor:
        return x + 1

    assert f(x).is_deferred and not (x + 1).is_deferred


# ---- derivatives
def _loss(x: nnc.Tensor) -> nnc.Tensor:
    return nnc.sum(nnc.sin(x) * x * x)


DERIVATIVES: dict[str, Callable[[nnc.Tensor], nnc.Tensor]] = {
    "grad": lambda x: nnc.grad(_loss)(x),
    "value_and_grad": lambda x: nnc.value_and_grad(_loss)(x)[1],
    "vjp": lambda x: nnc.vjp(nnc.sin, x)[1](x)[0],
    "jvp": lambda x: nnc.jvp(lambda x: nnc.sin(x) * x, [x], [x])[1],
    "jacobian": lambda x: nnc.jacobian(lambda x: x[0] * nnc.sin(x[1]))(x),
    "hessian": lambda x: nnc.hessian(_loss)(x),
    "third": lambda x: nnc.grad(lambda x: nnc.sum(nnc.grad(lambda x: nnc.sum(nnc.grad(_loss)(x) * x))(x)))(x),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_inside_stay_lazy_and_are_those_of_eager(x: nnc.Tensor, runs: list[str], name: str) -> None:
    wanted = DERIVATIVES[name](x).numpy()
    del runs[:]
    with nnc.deferred():
        found = DERIVATIVES[name](x)
    assert found.is_deferred and runs == []
    assert found.numpy().tobytes() == wanted.tobytes()


def test_backward_inside_stays_lazy(device: str, runs: list[str]) -> None:
    v = nnc.variable(HOST)
    with nnc.deferred():
        _loss(v).backward()
        _loss(v).backward()
    assert v.grad is not None and v.grad.is_deferred and "sin" not in runs
    w = nnc.variable(HOST)
    _loss(w).backward()
    _loss(w).backward()
    assert w.grad is not None
    assert v.grad.numpy().tobytes() == w.grad.numpy().tobytes()


def test_a_deferred_value_can_be_differentiated_by_outside(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
    np.testing.assert_array_equal(nnc.grad(lambda y: nnc.sum(y * y))(y).numpy(), HOST * 4)


# ---- in place, and errors
CHANGES: dict[str, Callable[[nnc.Tensor], object]] = {
    "item": lambda y: y.__setitem__(0, 1.0), "iadd": lambda y: y.__iadd__(1), "float64": lambda y: y.__imul__(F64),
    "mask": lambda y: y.__setitem__(y > 2, 0.0), "indices": lambda y: y.__setitem__([1, 0], -y),
    "matmul": lambda y: y.__imatmul__(nnc.eye(3)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_in_place_changes_are_recorded(x: nnc.Tensor, name: str) -> None:
    """The handle points at the new value, as it does eagerly; values and what was computed from them stay."""
    def run() -> list[nnc.Tensor]:
        y = x * 2
        same, before = y, y + 0
        CHANGES[name](y)
        assert same is y
        return [y, before, same + 1]

    wanted = [t.numpy() for t in run()]
    with nnc.deferred():
        found = run()
    assert all(t.is_deferred for t in found)
    for t, w in zip(found, wanted, strict=True):
        assert t.dtype == w.dtype
        np.testing.assert_array_equal(t.numpy(), w)
    np.testing.assert_array_equal(x.numpy(), HOST)


def test_an_argument_is_changed_for_its_caller(device: str) -> None:
    with nnc.deferred():
        x = nnc.asarray(HOST)
        before, y = x[0], x * 1
        x += 1
        x[0, 0] = 7.0
        assert x.is_deferred and before.tolist() == HOST[0].tolist()
    assert x.tolist()[0] == [7.0, *(HOST[0, 1:] + 1).tolist()] and y.tolist() == HOST.tolist()


def test_changes_in_place_are_exported_and_differentiated(x: nnc.Tensor) -> None:
    def f(x: nnc.Tensor) -> nnc.Tensor:
        y = x * 2
        y[0] = 3.0
        y *= x
        return nnc.sum(y)

    with nnc.deferred():
        graph = nnc.export({"x": x}, {"y": f(x)}).compile(x.device.id)
    assert graph(x=x)["y"].item() == f(x).item()
    with nnc.deferred():
        g = nnc.grad(f)(x)
    np.testing.assert_array_equal(g.numpy(), nnc.grad(f)(x).numpy())


def test_a_variable_that_is_updated_stays_a_variable(device: str) -> None:
    v = nnc.variable(HOST)
    with nnc.deferred():
        with fails(ValueError, "variable", "no_grad"):
            v += 1
        with nnc.no_grad():
            v -= 1
            v[0] = 2.0
        loss = nnc.sum(v * v)
        loss.backward()
    assert v.requires_grad and v.grad is not None
    np.testing.assert_array_equal(v.grad.numpy(), 2 * v.numpy())


def test_sizes_that_have_to_be_known_are_computed(x: nnc.Tensor) -> None:
    """A write of as many values as a mask chooses, and a mask for what another one has chosen."""
    with nnc.deferred():
        y, chosen = x * 2, x > 2
        y[chosen] = nnc.asarray(np.array([7, 8, 9], np.float32))
        part = x[x > 1]
        part[nnc.asarray([True, False, False, True])] = -1.0
        with fails(ValueError, "does not fit"):
            y[x > 4] = nnc.ones(2)
    assert y.tolist() == [[0, 2, 4], [7, 8, 9]] and part.tolist() == [-1, 3, 4, -1]


def test_a_change_that_fails_changes_nothing(x: nnc.Tensor) -> None:
    with nnc.deferred():
        y = x * 2
        with fails(ValueError, "cannot take the place"):
            y += nnc.ones((2, *y.shape))
        with fails(TypeError, "cast in place", "float32"):
            y *= 1j
        with fails(IndexError, "indices"):
            y[0, 0, 0] = 1.0
    np.testing.assert_array_equal(y.numpy(), HOST * 2)


def test_shapes_are_checked_when_it_is_recorded(x: nnc.Tensor) -> None:
    with nnc.deferred(), fails(ValueError, "broadcast", operator="add"):
        x + nnc.ones((5,))


def test_an_error_of_computing_names_the_line_that_recorded(device: str) -> None:
    with nnc.deferred():
        wrong = nnc.asarray(HOST)[nnc.asarray(HOST) > 2].reshape((2, 2))  # recorded here
    with pytest.raises(ValueError, match=r"reshape: float32\[3\] has 3 elements(.|\n)*test_deferred.py") as caught:
        wrong.numpy()
    lines = Path(__file__).read_text().splitlines()
    recorded = next(n for n, text in enumerate(lines, 1) if text.endswith("# recorded here"))
    assert f"test_deferred.py:{recorded} " in str(caught.value)
    assert wrong.is_deferred
