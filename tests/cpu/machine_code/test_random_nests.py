"""Random expressions and random sums: the interpreter and machine code agree in every bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nnc_core.base.dtype import DTYPES
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from nnc_core.codegen.expansions import EXPANSIONS
from nnc_cpu.partial_sums import in_parts
from tests.codegen.nests import Values, Writer, agree, as_bytes, at
from tests.codegen.test_random_nests import contents, expressions
from tests.cpu.machine_code.running import HOSTS, kernels, run

SOME = settings(max_examples=20 if settings().max_examples < 100 else 1000)
KINDS = ("sum", "product", "maximum", "minimum", "dot", "argmax", "argmin")


@pytest.mark.parametrize("host", HOSTS)
@SOME
@given(drawn=st.lists(expressions(), min_size=1, max_size=4))
def test_expressions(host: str, drawn: list[tuple[LoopNest, list[Values]]]) -> None:
    for kernel, (nest, arrays) in zip(kernels([nest for nest, _ in drawn], host), drawn, strict=True):
        ours, theirs = [a.copy() for a in arrays], [a.copy() for a in arrays]
        run(kernel, ours)
        interpret(nest, [as_bytes(a) for a in theirs])
        for a, b in zip(ours, theirs, strict=True):
            assert agree(a, b).all(), nest


@st.composite
def rows(draw: st.DrawFn) -> tuple[LoopNest, list[Values]]:
    """Something folded over one or two inner axes, of an array that lies in either order, and what each element is of
    it."""
    dtype = DTYPES[draw(st.sampled_from(["float32", "float64", "float16", "int32", "uint8", "bool"]))]
    count, lengths = draw(st.integers(1, 40)), draw(st.lists(st.integers(1, 40), min_size=1, max_size=2))
    inner = int(np.prod(lengths))
    turned = draw(st.booleans())
    strides = [count * int(np.prod(lengths[k + 1 :])) if turned else int(np.prod(lengths[k + 1 :]))
               for k in range(len(lengths))]
    inside = [at({k + 1: 1}, strides[k]) for k in range(len(lengths))]
    row = at({0: 1}, 1 if turned else inner)
    kind = draw(st.sampled_from(("all", "any") if dtype.kind == "b" else KINDS))
    result = np.dtype(np.int64) if kind.startswith("arg") else dtype
    n = Writer(f"{kind} {dtype}", (count,), [(dtype, False), (result, True), (dtype, True)])
    n.stage(*lengths)
    value = n.load(0, row, *inside)
    folded = n.reduce(kind, value, dtype, value if kind == "dot" else None)
    n.stage()
    n.store(1, folded, at({0: 1}, 1))
    n.stage(*lengths)
    again = n.load(0, row, *inside)
    if result == dtype and dtype.kind == "f":
        again = n.op("subtract", dtype, again, folded)
    n.store(2, again, row, *inside)
    x = contents_of(np.random.default_rng(draw(st.integers(0, 2**16))), dtype, count * inner)
    return n.build(), [x, np.zeros(count, result), np.zeros_like(x)]


def contents_of(rng: np.random.Generator, dtype: np.dtype, size: int) -> Values:
    if dtype.kind == "b":
        return rng.random(size) < 0.9
    made = contents(rng, dtype).ravel()
    return np.resize(made, size).astype(dtype)


@pytest.mark.parametrize("host", HOSTS)
@SOME
@given(drawn=st.lists(rows(), min_size=1, max_size=4))
def test_rows(host: str, drawn: list[tuple[LoopNest, list[Values]]]) -> None:
    for kernel, (nest, arrays) in zip(kernels([nest for nest, _ in drawn], host), drawn, strict=True):
        ours, theirs = [a.copy() for a in arrays], [a.copy() for a in arrays]
        run(kernel, ours)
        interpret(expand(nest, frozenset(EXPANSIONS)), [as_bytes(a) for a in theirs], in_parts=in_parts)
        for a, b in zip(ours, theirs, strict=True):
            assert agree(a, b).all(), nest
