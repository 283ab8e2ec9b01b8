"""Lanes of a warp that fold together by shuffles: what the source says, and what the processor makes of wrong ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nnc_core.base.dtype import float32
from nnc_core.base.layout import Layout
from nnc_core.codegen import Dialect, expand, program_of, writers_for_groups
from nnc_cuda import modules
from nnc_cuda.device import CudaDevice
from nnc_cuda.dialect import CUDA
from tests.cpu.products.running import same_bits, values
from tests.opencl.test_groups import run, sum_of
from tests.opencl.test_runs import nest_of


def source(columns: int, dialect: Dialect = CUDA) -> str:
    nest, _ = nest_of("sum", Layout.packed((40, columns), float32), (1,), False)
    (writer,) = writers_for_groups(nest)
    return program_of({"k": (expand(nest), writer)}, dialect)


def test_a_warp_folds_without_barriers() -> None:
    assert "__syncthreads" not in source(32) and "__shared__" not in source(32)
    assert source(32).count("__shfl_down_sync(0xffffffff, ") == 1


def test_the_last_steps_of_more_lanes_are_shuffles() -> None:
    assert "for (int step = 128; step >= 32; step /= 2)" in source(256)
    assert "for (int step = 16; step; step /= 2)" in source(256)


def test_a_dialect_without_warps_has_barriers_alone() -> None:
    written = source(256, replace(CUDA, warp=None))
    assert "__shfl" not in written and "for (int step = 128; step >= 1; step /= 2)" in written


@pytest.mark.parametrize("columns", [32, 300])
@pytest.mark.parametrize(("wrong", "right"), [("step / 2", False), ("32 - step", False), ("step", True)])
def test_wrong_distances_give_other_bits(device: CudaDevice, monkeypatch: pytest.MonkeyPatch, columns: int, wrong: str,
                                         right: bool) -> None:
    assert CUDA.warp is not None
    warp = replace(CUDA.warp, down=CUDA.warp.down.replace("{distance}", wrong))
    monkeypatch.setattr(modules, "CUDA", replace(CUDA, warp=warp))
    x = Layout.packed((40, columns), float32)
    nest, y = nest_of("sum", x, (1,), False)
    given = values(x, 0)
    expected = np.asarray(sum_of(given.reshape(40, columns)))
    assert same_bits(run(device, nest, y, given).reshape(-1), expected) == right  # type: ignore[arg-type]


def test_lanes_that_stay_away_from_a_shuffle_spoil_it(device: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CUDA.warp is not None
    down = "(lane < step ? " + CUDA.warp.down + " : 0)"
    monkeypatch.setattr(modules, "CUDA", replace(CUDA, warp=replace(CUDA.warp, down=down)))
    x = Layout.packed((8, 32), float32)
    nest, y = nest_of("sum", x, (1,), False)
    found = run(device, nest, y, np.ones(256, np.float32))  # type: ignore[arg-type]
    assert np.isnan(found).all()
