"""General nests: what they stand for, which nests share one, and kernels of them through the C compiler."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.dtype import float32, int32, int64
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import C99, OPENCL, general, interpret, render, specific
from nnc_core.codegen.general import LARGE
from tests.codegen.compiled import Values, compile_c99, compile_general, compiler
from tests.codegen.nests import Case, Writer, agree, as_bytes, at
from tests.codegen.test_nests import CASES
from tests.codegen.test_random_nests import expressions

needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler (cc, gcc or clang) on the path")


def interpreted(nest: LoopNest, arrays: Sequence[Values]) -> list[Values]:
    after = [array.copy() for array in arrays]
    interpret(nest, [as_bytes(array) for array in after])
    return after


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_specific_nest_does_what_the_nest_does(case: Case) -> None:
    nest, numbers = general(case.nest)
    assert len(numbers) == nest.numbers
    again = specific(nest, numbers)
    case.check(interpreted(again, case.arrays))
    assert general(again) == (nest, numbers)


@needs_compiler
def test_kernels_of_general_nests(tmp_path: Path) -> None:
    run, count = compile_general({case.name: case.nest for case in CASES}, tmp_path)
    assert count <= len(CASES)
    for case in CASES:
        arrays = case.copies()
        run(case.name, arrays)
        case.check(arrays)


@needs_compiler
@given(st.lists(expressions(), min_size=1, max_size=4))
def test_kernels_of_random_general_nests(drawn: list[tuple[LoopNest, list[Values]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run, _ = compile_general({str(place): nest for place, (nest, _) in enumerate(drawn)}, Path(folder))
        for place, (nest, arrays) in enumerate(drawn):
            theirs = [a.copy() for a in arrays]
            run(str(place), theirs)
            again = specific(*general(nest))
            for a, b, c in zip(interpreted(nest, arrays), theirs, interpreted(again, arrays), strict=True):
                assert agree(a, b).all(), nest
                assert agree(a, c).all(), nest


def windows(batch: int, rows: int, taps: int, first: int, padding: int = 1) -> LoopNest:
    """Sums of `taps` numbers of each row, the ends padded; rows of 40, from element `first` of the input on."""
    n = Writer("windows", (batch, rows), [(float32, False), (float32, True)])
    n.stage(taps)
    place = at({1: 1, 2: 1}, 1, offset=-padding, extent=rows, checked=True)
    total = n.reduce("sum", n.load(0, at({0: 1}, 40), place, offset=first, fill=0), float32)
    n.stage()
    n.store(1, total, at({0: 1}, 40), at({1: 1}, 1), offset=3 * first)
    return n.build()


def sizes() -> st.SearchStrategy[tuple[int, int, int]]:
    return st.tuples(st.integers(LARGE + 1, 60), st.integers(0, 30), st.sampled_from([20, 33]))


@needs_compiler
@given(st.lists(sizes(), min_size=2, max_size=5, unique=True), st.integers(1, 4), st.integers(0, 2))
def test_one_kernel_serves_many_sizes_and_offsets(cases: list[tuple[int, int, int]], taps: int, padding: int) -> None:
    """Rows are checked against their number, which therefore stays; batches and offsets do not."""
    nests = {str(c): windows(c[0], c[2], taps, c[1], padding) for c in cases}
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        run, count = compile_general(nests, Path(folder))
        assert count == len({c[2] for c in cases}) if padding or taps > 1 else count <= 2
        for key, nest in nests.items():
            arrays = [rng.standard_normal(2500).astype(np.float32), np.zeros(2600, np.float32)]
            theirs = [a.copy() for a in arrays]
            run(key, theirs)
            for a, b in zip(interpreted(nest, arrays), theirs, strict=True):
                assert agree(a, b).all()


def test_offsets_and_large_sizes_are_taken_out() -> None:
    """Sizes of up to sixteen stay: they are other nests."""
    first, numbers = general(windows(100, 20, 3, 7))
    assert numbers == (7, 21, 100, 20)
    assert general(windows(17, 20, 3, 0)) == (first, (0, 0, 17, 20))
    assert general(windows(16, 20, 3, 0))[0] != first
    assert general(windows(100, 20, 4, 7))[0] != first


def test_a_check_that_fails_for_some_sizes_only_is_another_nest() -> None:
    """Without padding one tap is always inside, and needs no check."""
    whole, _ = general(windows(20, 20, 1, 0, padding=0))
    assert not any(i.access.checked for stage in whole.nest.stages for i in stage.body if i.access)
    assert whole != general(windows(20, 20, 1, 0, padding=1))[0]


def copied(rows: int, columns: int, stride: int) -> LoopNest:
    n = Writer("copied", (rows, columns), [(float32, False), (float32, True)])
    n.store(1, n.load(0, at({0: 1}, stride), at({1: 1}, 1)), at({0: 1}, 50), at({1: 1}, 1))
    return n.build()


def test_sizes_that_need_64_bits_are_another_nest() -> None:
    narrow, wide = general(copied(100, 50, 1 << 20))[0], general(copied(3000, 50, 1 << 20))[0]
    assert narrow.nest == wide.nest
    assert (narrow.index, wide.index) == (int32, int64)
    assert "int32_t rest" in render(narrow, C99)
    assert "int64_t rest" in render(wide, C99)


def test_negative_steps_along_a_size_that_was_taken_out() -> None:
    """An unchecked division rounds down below zero too, which some sizes of the axis reach only."""
    for count in (20, 40):
        n = Writer("divided", (count,), [(int32, False), (int32, True)])
        n.store(1, n.load(0, at({0: -1}, 1, offset=25, divisor=2), offset=20), at({0: 1}, 1))
        nest, numbers = general(n.build())
        assert numbers == (20, 0, count)
        assert "% 2 < 0" in render(nest, C99)


@needs_compiler
def test_negative_steps_in_c(tmp_path: Path) -> None:
    x = np.arange(50, dtype=np.int32)
    nests = {}
    for count in (20, 40):
        n = Writer("divided", (count,), [(int32, False), (int32, True)])
        n.store(1, n.load(0, at({0: -1}, 1, offset=25, divisor=2), offset=20), at({0: 1}, 1))
        nests[str(count)] = n.build()
    run, count = compile_general(nests, tmp_path)
    assert count == 1
    for key in nests:
        out = np.full(40, -1, np.int32)
        run(key, [x, out])
        expected = x[(25 - np.arange(40)) // 2 + 20]
        assert (out == np.where(np.arange(40) < int(key), expected, -1)).all()


def test_opencl_takes_numbers_behind_the_buffers() -> None:
    text = render(general(windows(100, 20, 3, 7))[0], OPENCL)
    assert "__global float *a1, const long o0, const long o1, const long n0, const long n1)" in text
    assert "if (get_global_id(0) >= 1UL * (ulong)n0 * (ulong)n1) return;" in text
    assert "kernel_windows" in text


@needs_compiler
def test_plain_nests_are_rendered_without_numbers(tmp_path: Path) -> None:
    assert "numbers" not in render(windows(100, 20, 3, 7), C99)
    nest, arrays = windows(20, 20, 3, 0), [np.arange(800, dtype=np.float32), np.zeros(800, np.float32)]
    run = compile_c99({"x": nest}, tmp_path)
    theirs = [a.copy() for a in arrays]
    run("x", theirs)
    assert all(agree(a, b).all() for a, b in zip(interpreted(nest, arrays), theirs, strict=True))
