"""Public functions of several operators on each element: one kernel for arrays of every size."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.operator.program import Program
from nnc_core.values import elementwise_programs
from nnc_cpu import nests
from nnc_cpu.device import CpuDevice
from nnc_cpu.programs import FEW, ElementPrograms
from tests.codegen.nests import agree

X = np.concatenate([np.linspace(0.05, 4, 600), [0.0, -0.0, 1, 2, -1.5, np.inf, -np.inf, np.nan, 1e-30, 1e30]])
Y = np.concatenate([np.linspace(3, 0.1, 600), [2.0, 0, 0, 1, 2, 3, 1, 2, np.nan, 0.5]])
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(nnc, name) for name in (
        "gamma", "gammasgn", "beta", "poch", "comb", "perm", "binom", "cosm1", "exprel", "rel_entr", "boxcox",
        "boxcox1p", "inv_boxcox", "inv_boxcox1p", "spacing")},
    "multigammaln": lambda x: nnc.multigammaln(x, 3),
    "comb with repetition": lambda n, k: nnc.comb(n, k, repetition=True),
    "fraction": lambda x: nnc.modf(x)[0],
}  # fmt: skip
OF_TWO = ("beta", "poch", "comb", "perm", "binom", "rel_entr", "boxcox", "boxcox1p", "inv_boxcox", "inv_boxcox1p",
          "comb with repetition")


def operands(name: str, dtype: Any) -> list[Any]:
    with np.errstate(over="ignore"):
        return [x.astype(dtype) for x in (X, Y)[: 1 + (name in OF_TWO)]]


def called(name: str, arrays: list[Any]) -> Any:
    return FUNCTIONS[name](*map(nnc.asarray, arrays)).numpy()


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """The programs that kernels ran."""
    seen: list[Program] = []
    run = ElementPrograms.__call__

    def noted(self: ElementPrograms, *arguments: Any) -> Any:
        seen.append(arguments[-1])
        return run(self, *arguments)

    monkeypatch.setattr(ElementPrograms, "__call__", noted)
    return seen


@pytest.mark.parametrize("dtype", [nnc.float32, nnc.float64, nnc.float16, nnc.bfloat16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_program_gives_what_the_operators_give(name: str, dtype: Any, used: list[Program]) -> None:
    arrays = operands(name, dtype)
    found = called(name, arrays)
    [program] = set(used)
    assert len(program.steps) > 1
    with nnc.config.using(deterministic=True):
        wanted = called(name, arrays)
    assert len(set(used)) == 1, "under `config.deterministic` there are commands alone"
    wide = [x.astype(np.float64) for x in (found, wanted)]
    assert found.dtype == wanted.dtype == dtype
    np.testing.assert_allclose(*wide, rtol=8 * float(nnc.finfo(dtype).eps), atol=1e-300)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_are_those_of_every_size_and_shape(name: str) -> None:
    arrays = operands(name, np.float32)
    whole = called(name, arrays)
    for part in (slice(8), slice(590, 610), slice(3, 4), slice(0, 0), slice(None, None, 7)):
        assert agree(called(name, [x[part] for x in arrays]), whole[part]).all()
    assert agree(called(name, [x.reshape(2, 5, 61) for x in arrays]), whole.reshape(2, 5, 61)).all()
    assert agree(called(name, [x.reshape(10, 61).T for x in arrays]), whole.reshape(10, 61).T).all()
    assert agree(called(name, [x[5] for x in arrays]), whole[5]).all()
    assert agree(called(name, [np.tile(x, 80) for x in arrays]), np.tile(whole, 80)).all()


@pytest.mark.parametrize("name", OF_TWO)
def test_operands_are_broadcast(name: str) -> None:
    x, y = operands(name, np.float32)
    rows, columns = x[:7, None], y[:9]
    wanted = called(name, [np.repeat(rows, 9, 1), np.tile(columns, (7, 1))])
    assert agree(called(name, [rows, columns]), wanted).all()
    assert agree(called(name, [x, y[3]]), called(name, [x, np.full_like(x, y[3])])).all()
    assert agree(called(name, [x[3], y]), called(name, [np.full_like(y, x[3]), y])).all()


def test_what_reductions_give_is_read_by_machine_code(used: list[Program]) -> None:
    """NumPy gives numbers for arrays without axes, whose elements lie elsewhere than those of arrays."""
    x, one = np.full(4 * FEW, 5.0, np.float32), nnc.max(nnc.asarray(np.ones(3, np.float32)))
    rows = nnc.asarray(x)
    wanted = nnc.binom(rows, nnc.asarray(2 * np.ones_like(x))).numpy()      # compiles, as there are many elements
    assert agree(nnc.binom(rows, one + one).numpy(), wanted).all()
    assert nnc.binom(one * 5, one + one).numpy() == wanted[0] and nnc.spacing(-nnc.asarray(3)).numpy() < 0
    for program in set(used):
        machine = CpuDevice(machine_code=True).eager["program"].kernel(program)
        machine.run([x] * len(program.inputs))
        assert machine.run([np.float32(3)] * len(program.inputs)).shape == ()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_become_floats_as_they_do_elsewhere(name: str) -> None:
    arrays = [np.arange(1, 9, dtype=np.int64), np.arange(8, dtype=np.int64)][: 1 + (name in OF_TWO)]
    found = called(name, arrays)
    with nnc.config.using(deterministic=True):
        wanted = called(name, arrays)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_interpreting_and_machine_code_give_the_same_bits(used: list[Program], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FUNCTIONS:
        called(name, [x[:8] for x in operands(name, np.float32)])
    for program in set(used):
        kernel = CpuDevice(machine_code=True).eager["program"]
        arrays = [np.linspace(0.1, 3, 100, dtype=np.float32)] * len(program.inputs)
        monkeypatch.setattr(nests, "PATIENCE", np.inf)
        monkeypatch.setattr(nests, "LOADING", np.inf)
        before = kernel(*arrays, program)
        monkeypatch.setattr(nests, "PATIENCE", -1.0)
        after = kernel(*arrays, program)
        assert agree(np.asarray(before), np.asarray(after)).all()


def test_gradients_deferred_and_traced_code_ask_the_operators(used: list[Program]) -> None:
    x = nnc.asarray(np.linspace(0.3, 2, 8, dtype=np.float32))
    f = nnc.exprel
    wanted = f(x).numpy()
    used.clear()
    with nnc.deferred():
        deferred = f(x).numpy()
    jitted, slope = nnc.jit(f)(x).numpy(), nnc.grad(lambda x: nnc.sum(f(x)))(x).numpy()
    assert not used
    for found in (deferred, jitted):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    step = 1e-3
    difference = (f(x + step).numpy() - f(x - step).numpy()) / (2 * step)
    np.testing.assert_allclose(slope, difference, rtol=1e-2)


def test_errors_are_those_of_the_operators() -> None:
    with pytest.raises(nnc.errors.DTypeError, match="gammasgn"):
        nnc.gammasgn(nnc.asarray(np.ones(3, np.complex64)))
    with pytest.raises(nnc.errors.ShapeError, match="boxcox"):
        nnc.boxcox(nnc.ones(3), nnc.ones(4))


def test_a_function_of_elements_calls_no_other_operators() -> None:
    f = elementwise_programs.of_elements(lambda v: elementwise_programs.F.sum(v, axis=(0,)))
    with pytest.raises(AssertionError, match="sum is no operator on each element"):
        f(nnc.ones(3)._value)


def test_numbers_and_arrays_have_programs_of_their_own() -> None:
    """In whichever order they come."""
    F, number, array = elementwise_programs.F, nnc.asarray(0.5), nnc.asarray(np.arange(1.0, 9.0))
    number = number.astype(array.dtype)
    for order in permutations([(number, array), (array, number), (array, array), (number, number)]):
        f = elementwise_programs.of_elements(lambda v, w: F.add(F.exp(v), F.multiply(w, 3)))
        for x, y in order:
            found, wanted = f(x._value, y._value), np.exp(x.numpy()) + 3 * y.numpy()
            assert found.shape == wanted.shape
            np.testing.assert_allclose(nnc.Tensor(found).numpy(), wanted, rtol=1e-6)


def test_default_floats_are_looked_at_anew() -> None:
    x, within = nnc.asarray(np.arange(1, 5)), elementwise_programs.of_elements(elementwise_programs.F.expm1)
    narrow = [nnc.gammasgn(x).dtype, within(x._value).dtype]
    with nnc.config.using(default_float=nnc.float64):
        assert [nnc.gammasgn(x).dtype, within(x._value).dtype] == [nnc.float64] * 2 != narrow


def test_code_of_somebody_else_for_an_operator_is_used_in_functions_too() -> None:
    device = CpuDevice(machine_code=True)
    assert "program" in device.eager
    device.take("expm1", device.backends("expm1")[0])
    assert "program" not in device.eager, "whose steps may be that operator"


def test_complex_operands_are_left_to_the_operators(used: list[Program]) -> None:
    z = nnc.asarray(np.array([0.5 + 1j, -0.25j], np.complex64))
    found, host = nnc.interp(nnc.asarray([0.5]), nnc.asarray([0.0, 1.0]), z).numpy(), z.numpy()
    np.testing.assert_allclose(found, [(host[0] + host[1]) / 2], rtol=1e-6)
    assert not used
