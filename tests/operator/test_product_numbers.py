"""The numbers of products, and runs of windows, as kernels written as text are given them."""

from __future__ import annotations

import pytest

from nnc_core.base.dtype import float32
from nnc_core.codegen import OPENCL
from nnc_core.operator.products.arrange import arranged
from nnc_core.operator.products.clike_arrays import array_parameters
from nnc_core.operator.products.numbers import along_row, array_names, numbers_of, place_names
from nnc_core.operator.products.problem import MatrixProduct, Strided
from nnc_core.operator.products.runs import is_run, with_runs
from tests.cpu.products.test_convolution import CASES, OPERATIONS, Windows, command


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("operator", OPERATIONS)
def test_each_number_that_is_named_is_given(operator: str, name: str) -> None:
    problem = arranged(command(operator, CASES[name], float32))
    for part in problem.parts or (problem,):
        names = place_names(array_names(len(part.others)), len(part.windows.axes) if part.windows else 0)
        assert set(names) < set(numbers_of(part))


def windows(step: int) -> MatrixProduct:
    return arranged(command("conv", Windows((1, 9, 5), (3, 5, 4), (1,), ((1, 1),), (step,)), float32))


def test_elements_of_windows_that_are_neighbours_become_one() -> None:
    run = windows(1)
    assert is_run(run) and not is_run(windows(2))
    assert (run.segments, run.length) == (3, 5)
    joined = with_runs(run)
    assert (joined.segments, joined.length, joined.b_segment) == (1, 15, 3 * run.b_segment)
    assert not is_run(joined)


def test_how_elements_of_a_row_lie() -> None:
    assert [along_row(Strided(0, (), 8, column), 4) for column in (0, 1, 2)] == ["one", "dense", "apart"]
    assert along_row(Strided(0, (), 8, 2), 1) == "dense"


def test_an_argument_that_is_two_arrays_is_one_parameter() -> None:
    given = array_parameters((0, 0, 1), (float32, float32, float32), 1, OPENCL)
    assert given == ["__global const float *g0", "__global float *g1"]
