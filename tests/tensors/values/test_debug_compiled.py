"""NaN mode and asynchronous errors of compiled graphs: the command and its line are named."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import NonfiniteError
from tests.tensors.faults import fails


def normalised(x: nnc.Tensor) -> nnc.Tensor:
    total = nnc.sum(x)
    return x / total


def logarithm(x: nnc.Tensor) -> nnc.Tensor:
    y = nnc.tanh(x) + 1
    z = nnc.log(y - 2)
    return z * 2


@pytest.mark.parametrize("mode", ["nan", "nonfinite"])
def test_the_first_command_at_fault_is_named(device: str, mode: str) -> None:
    f = nnc.jit(logarithm)
    x = nnc.asarray([0.5, -0.5])
    f(x)  # nobody watches
    with nnc.config.using(check_nan=mode):
        with fails(FloatingPointError, "no operand has", "in logarithm", "float32[2] from", device, operator="log"):
            f(x)
        with pytest.raises(NonfiniteError):
            f(x)
    assert f.traces == 1 and nnc.isnan(f(x)).numpy().all()


def test_infinities_only_where_asked_for(device: str) -> None:
    f = nnc.jit(normalised)
    x = nnc.asarray([1.0, -1.0])
    with nnc.config.using(check_nan="nan"):
        assert np.isinf(f(x).numpy()).all()
    with nnc.config.using(check_nan="nonfinite"), fails(FloatingPointError, "in normalised", operator="divide"):
        f(x)


def test_what_is_given_is_nobodys_fault(device: str) -> None:
    f = nnc.jit(lambda x: nnc.tanh(nnc.log(x)) * 2)
    with nnc.config.using(check_nan="nonfinite"):
        assert np.isnan(f(nnc.asarray([float("nan"), 1.0])).numpy()).tolist() == [True, False]


def test_results_are_the_same_under_watch(device: str) -> None:
    f = nnc.jit(lambda x: nnc.value_and_grad(lambda t: nnc.sum(nnc.softmax(nnc.tanh(t @ t.T)) ** 2))(x))
    x = nnc.asarray(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
    wanted = f(x)
    with nnc.config.using(check_nan="nonfinite"):
        for a, b in zip(f(x), wanted, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_compiled_gradient_is_watched(device: str) -> None:
    """sqrt is finite at 0, its derivative is not."""

    def root(t: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.sqrt(t))

    f = nnc.jit(nnc.grad(root))
    with nnc.config.using(check_nan="nonfinite"), fails(FloatingPointError, "from 0 to 1", operator="divide"):
        f(nnc.asarray([0.0, 1.0]))


def test_a_command_that_overwrites_its_operand_is_watched(device: str) -> None:
    """The operand is read before: afterwards it would look as if the NaN had been there."""
    f = nnc.jit(lambda x: nnc.sqrt((x * 2) - 3) + 1)
    with nnc.config.using(check_nan="nan"), fails(FloatingPointError, operator="sqrt"):
        f(nnc.ones(5))


def test_a_cell_that_the_call_had_begun_to_update_is_kept(device: str) -> None:
    w, v = nnc.Cell(nnc.asarray([1.0, -4.0]), "w"), nnc.Cell(nnc.zeros(2), "v")

    @nnc.jit
    def step() -> None:
        v.write(v.read() + 1)
        w.write(nnc.sqrt(w.read()) * v.read())

    with nnc.config.using(check_nan="nan"), pytest.raises(NonfiniteError):
        step()
    assert w.read().tolist() == [1, -4], "it was read out before, so the call worked on a copy"


def test_an_exported_graph_is_watched(device: str) -> None:
    x = nnc.asarray([1.0, 2.0])
    with nnc.deferred():
        y = logarithm(x)
    run = nnc.export({"x": x}, {"y": y}).compile(device)
    with nnc.config.using(check_nan="nan"), fails(FloatingPointError, "in logarithm", operator="log"):
        run(x=np.zeros(2, np.float32))


@pytest.mark.parametrize("wait", [lambda y: y.numpy(), lambda y: y.wait(), lambda y: nnc.synchronize()],
                         ids=["numpy", "wait", "synchronize"])  # fmt: skip
@pytest.mark.usefixtures("a_command_for_each_operator")
def test_an_error_of_enqueued_commands_names_the_line_in_the_graph(
    queued: str, wait: Callable[[nnc.Tensor], object]
) -> None:
    f = nnc.jit(logarithm)
    for _ in range(2):  # the second call finds everything bound
        y = f(nnc.asarray([0.5, 1.0]))
        with fails(RuntimeError, "the kernel came to nothing", "in logarithm", queued, operator="tanh"):
            wait(y)
