"""Dots: one rounding for each product; and sums folded as sixteen partial ones."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.dtype import bfloat16, boolean, float16, float32, float64, int32, int64
from nnc_core.base.errors import AttributeValueError
from nnc_core.base.loopnest import PARTS, LoopNest
from nnc_core.builtin.verify import verify
from nnc_core.codegen import C99, OPENCL, interpret, render
from nnc_core.codegen.interpret import InParts, everywhere, nowhere
from tests.codegen.compiled import compile_c99, compiler
from tests.codegen.exactly import multiplied_and_added
from tests.codegen.nests import Values, Writer, agree, as_bytes, at

DTYPES = (float32, float64, float16, bfloat16, int32, np.dtype(np.uint8), int64)
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C compiler (cc, gcc or clang) on the path")


def dots(dtype: np.dtype, rows: int, columns: int, kind: str = "dot") -> LoopNest:
    n = Writer(f"{kind} {dtype}", (rows,), [(dtype, False), (dtype, False), (dtype, True)])
    n.stage(columns)
    x, y = (n.load(place, at({0: columns}, 1), at({1: 1}, 1)) for place in (0, 1))
    total = n.reduce(kind, x, dtype, y if kind == "dot" else None)
    n.stage()
    n.store(2, total, at({0: 1}, 1))
    return n.build()


def run(nest: LoopNest, x: Values, y: Values, in_parts: InParts = nowhere) -> Values:
    out = np.zeros(len(x), x.dtype)
    interpret(nest, [as_bytes(np.ascontiguousarray(a)) for a in (x, y)] + [as_bytes(out)], in_parts=in_parts)
    return out


def folded(x: Values, y: Values) -> np.generic:
    """The contract as a plain loop."""
    total = np.zeros((), x.dtype)[()]
    with np.errstate(all="ignore"):
        for a, b in zip(x, y, strict=True):
            total = multiplied_and_added(a, b, total)
    return total


def numbers(rng: np.random.Generator, dtype: np.dtype, kind: str, shape: tuple[int, int]) -> Values:
    if dtype.kind in "iu":
        return rng.integers(0, 255, shape).astype(dtype)
    if kind == "bits":
        return rng.integers(0, 256, (shape[0], shape[1] * dtype.itemsize), dtype=np.uint8).view(dtype)
    drawn = rng.standard_normal(shape)
    if kind == "few":  # with many ties
        drawn = np.round(drawn * 4) / 4 * 2.0 ** rng.integers(-24, 24, shape)
    elif kind == "small":
        drawn = drawn * float(ml_dtypes.finfo(dtype).smallest_normal) ** 0.5 * 2.0 ** rng.integers(-8, 8, shape)
    elif kind == "zeros":
        drawn = np.where(rng.random(shape) < 0.5, 0.0, drawn) * rng.choice([-1, 1], shape)
    with np.errstate(all="ignore"):
        return drawn.astype(dtype)


KINDS = ("plain", "few", "small", "zeros", "bits")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(st.integers(0, 2**16), st.sampled_from(KINDS), st.sampled_from(KINDS), st.integers(0, 40))
def test_the_interpreter_rounds_once(dtype: np.dtype, seed: int, left: str, right: str, columns: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = (numbers(rng, dtype, kind, (5, columns)) for kind in (left, right))
    expected = np.array([folded(a, b) for a, b in zip(x, y, strict=True)], dtype)
    got = run(dots(dtype, 5, columns), x, y)
    assert agree(got, expected).all(), (got, expected)


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_c_rounds_once(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    compiled = compile_c99({str(dtype): dots(dtype, 7, 33) for dtype in DTYPES}, tmp_path)
    for dtype in DTYPES:
        x, y = numbers(rng, dtype, kind, (7, 33)), numbers(rng, dtype, "plain", (7, 33))
        out = np.zeros(7, dtype)
        compiled(str(dtype), [x, y, out])
        assert agree(out, run(dots(dtype, 7, 33), x, y)).all(), dtype


def test_renderers_write_fma_for_dots_only() -> None:
    assert "fmaf(v0, v1, v2)" in render(dots(float32, 3, 4), C99)
    text = render(dots(float32, 3, 4), OPENCL)
    assert "fma(v0, v1, v2)" in text
    assert "#pragma OPENCL FP_CONTRACT OFF" in text
    assert "fma" not in render(dots(float32, 3, 4, "sum"), OPENCL)


def test_the_rules_of_dots() -> None:
    verify(dots(float32, 2, 3), ["float32"])
    n = Writer("dot", (2,), [(float32, False)])
    n.reduce("dot", n.load(0, at({0: 1}, 1)), float32)
    with pytest.raises(AttributeValueError, match="dot with factor None"):
        verify(n.build(), ["float32"])
    n = Writer("sum", (2,), [(float32, False)])
    value = n.load(0, at({0: 1}, 1))
    n.reduce("sum", value, float32, value)
    with pytest.raises(AttributeValueError, match="sum with factor"):
        verify(n.build(), ["float32"])


def tree(parts: list[np.generic], multiplies: bool) -> np.generic:
    with np.errstate(all="ignore"):
        for half in (8, 4, 2, 1):
            parts = [a * b if multiplies else a + b for a, b in zip(parts[:half], parts[half:], strict=True)]
    return parts[0]


def in_order(kind: str, x: Values, y: Values) -> np.generic:
    if kind == "dot":
        return folded(x, y)
    total = x.dtype.type(kind == "product")
    with np.errstate(all="ignore"):
        for value in x:
            total = x.dtype.type(total * value if kind == "product" else total + value)
    return total


@pytest.mark.parametrize("columns", [0, 1, 15, 16, 17, 50, 300])
@pytest.mark.parametrize("kind", ["sum", "product", "dot"])
@pytest.mark.parametrize("dtype", [float32, float64, float16], ids=str)
def test_partial_sums_and_their_tree(dtype: np.dtype, kind: str, columns: int) -> None:
    rng = np.random.default_rng(columns)
    x, y = (numbers(rng, dtype, "plain", (4, columns)) for _ in range(2))
    got = run(dots(dtype, 4, columns, kind), x, y, in_parts=everywhere)
    rows = [[in_order(kind, a[p::PARTS], b[p::PARTS]) for p in range(PARTS)] for a, b in zip(x, y, strict=True)]
    expected = np.array([tree(parts, kind == "product") for parts in rows], dtype)
    assert agree(got, expected).all()


@given(st.integers(1, 70), st.integers(1, 90), st.sampled_from(["sum", "dot"]))
def test_chunks_do_not_matter_to_partial_sums(chunk: int, columns: int, kind: str) -> None:
    import importlib

    rng = np.random.default_rng(chunk)
    x, y = (numbers(rng, float32, "plain", (3, columns)) for _ in range(2))
    nest = dots(float32, 3, columns, kind)
    whole = run(nest, x, y, in_parts=everywhere)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("nnc_core.codegen.interpret"), "CHUNK", chunk)
        np.testing.assert_array_equal(run(nest, x, y, in_parts=everywhere), whole)


@pytest.mark.parametrize("kind", ["maximum", "argmin", "any"])
def test_what_does_not_depend_on_the_order_is_as_it_was(kind: str) -> None:
    dtype = boolean if kind == "any" else float32
    x = np.random.default_rng(0).standard_normal((4, 40)) > 2 if kind == "any" else numbers(
        np.random.default_rng(0), float32, "plain", (4, 40))
    result = int64 if kind == "argmin" else dtype
    n = Writer(kind, (4,), [(dtype, False), (result, True)])
    n.stage(40)
    total = n.reduce(kind, n.load(0, at({0: 40}, 1), at({1: 1}, 1)), dtype)
    n.stage()
    n.store(1, total, at({0: 1}, 1))
    outs = [np.zeros(4, result) for _ in range(2)]
    for out, in_parts in zip(outs, (nowhere, everywhere), strict=True):
        interpret(n.build(), [as_bytes(x), as_bytes(out)], in_parts=in_parts)
    np.testing.assert_array_equal(*outs)


def test_running_sums_are_folded_in_order() -> None:
    """What is read at each point has one order only."""
    x = numbers(np.random.default_rng(0), float32, "plain", (1, 50))
    n = Writer("running", (1,), [(float32, False), (float32, True)])
    n.stage(50)
    n.store(1, n.reduce("sum", n.load(0, at({1: 1}, 1)), float32), at({1: 1}, 1))
    out = np.zeros(50, np.float32)
    interpret(n.build(), [as_bytes(x), as_bytes(out)], in_parts=everywhere)
    np.testing.assert_array_equal(out, np.add.accumulate(x[0]))
