"""Random elementwise expressions over strided, broadcast and padded arguments: the interpreter and C agree."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnc_core.base.dtype import DTYPES, NUMBERS, boolean, is_float, is_integer
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import expand, interpret
from tests.codegen.compiled import compile_c99, compiler
from tests.codegen.nests import Values, Writer, agree, as_bytes, at

COMPARE = ("equal", "less", "greater_equal")
ANY = ("minimum", "maximum", "select")
NUMBER = ("add", "subtract", "multiply", "negative", "abs", "sign", "fma", "floor_divide", "remainder", "fmod", "round")
UNARY = ("exp", "log", "tanh", "sigmoid", "expm1", "log1p", "atan", "cbrt", "erf", "digamma", "i1e")
FLOAT = ("divide", "floor", "sqrt", "atan2", *UNARY)
INTEGER = ("gcd", "bitwise_xor", "shift_left", "shift_right", "bitwise_invert", "power")
BOOLEAN = ("bitwise_and", "bitwise_or", "bitwise_invert")
ARITY = {name: 1 for name in ("negative", "abs", "sign", "round", "floor", "sqrt", *UNARY)}
ARITY |= {"bitwise_invert": 1, "fma": 3, "select": 3}
ROWS, COLUMNS = 4, 5


def operations(dtype: np.dtype) -> tuple[str, ...]:
    own = FLOAT if is_float(dtype) else INTEGER if is_integer(dtype) else BOOLEAN
    return ANY + own + (() if dtype == boolean else NUMBER)


class Expression:
    """Draws instructions until there are enough; keeps the values of each dtype."""

    def __init__(self, draw: st.DrawFn, dtypes: list[np.dtype]) -> None:
        self.draw, self.dtypes = draw, dtypes
        arguments = [(d, False) for d in dtypes] + [(d, True) for d in dtypes]
        self.n = Writer("random", (ROWS, COLUMNS), arguments)
        self.values: dict[np.dtype, list[int]] = {dtype: [] for dtype in [*dtypes, boolean]}
        for place, dtype in enumerate(dtypes):
            self.values[dtype].append(self.n.load(place, *self.subscripts(), fill=1))
        self.values[boolean].append(self.n.valid(0, *self.subscripts()))

    def subscripts(self) -> tuple:
        """Into 6 by 7 elements: moved, flipped, repeated, or divided with a check."""
        found = []
        for axis, (extent, stride) in enumerate(((6, 7), (7, 1))):
            coefficient, offset = self.draw(st.integers(-2, 2)), self.draw(st.integers(-3, 6))
            divisor = self.draw(st.sampled_from([1, 1, 2, 3]))
            coefficients = {axis: coefficient} if coefficient else {}
            found.append(at(coefficients, stride, offset=offset, extent=extent, checked=True, divisor=divisor))
        return tuple(found)

    def pick(self, dtype: np.dtype) -> int:
        if dtype != boolean and self.draw(st.booleans()):
            literal = self.draw(st.integers(0, 9) if is_integer(dtype) else st.floats(-4, 4, width=16))
            return self.n.constant(literal, dtype)
        return self.draw(st.sampled_from(self.values[dtype]))

    def step(self) -> None:
        dtype = self.draw(st.sampled_from(list(self.values)))
        kind = self.draw(st.sampled_from(("compare", "cast", "operate", "operate", "operate")))
        if kind == "compare":
            number = self.n.op(self.draw(st.sampled_from(COMPARE)), boolean, self.pick(dtype), self.pick(dtype))
            self.values[boolean].append(number)
        elif kind == "cast":
            source = self.draw(st.sampled_from(list(self.values)))
            self.values[dtype].append(self.n.op("cast", dtype, self.pick(source)))
        else:
            self.values[dtype].append(self.operate(self.draw(st.sampled_from(operations(dtype))), dtype))

    def operate(self, operation: str, dtype: np.dtype) -> int:
        if operation == "select":
            return self.n.op("select", dtype, self.pick(boolean), self.pick(dtype), self.pick(dtype))
        return self.n.op(operation, dtype, *(self.pick(dtype) for _ in range(ARITY.get(operation, 2))))

    def nest(self) -> LoopNest:
        for _ in range(self.draw(st.integers(1, 12))):
            self.step()
        for place, dtype in enumerate(self.dtypes, len(self.dtypes)):
            self.n.store(place, self.values[dtype][-1], at({0: 1}, COLUMNS), at({1: 1}, 1))
        return self.n.build()


@st.composite
def expressions(draw: st.DrawFn) -> tuple[LoopNest, list[Values]]:
    names = st.lists(st.sampled_from([dtype.name for dtype in NUMBERS]), min_size=1, max_size=3, unique=True)
    dtypes = [DTYPES[name] for name in draw(names)]
    nest = Expression(draw, dtypes).nest()
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    inputs = [contents(rng, dtype) for dtype in dtypes]
    return expand(nest), [*inputs, *(np.zeros((ROWS, COLUMNS), dtype) for dtype in dtypes)]


def contents(rng: np.random.Generator, dtype: np.dtype) -> Values:
    """Any bits, made of whole values where that is all NaN; otherwise small numbers."""
    if rng.random() < 0.3:
        return rng.integers(0, 256, 42 * dtype.itemsize, dtype=np.uint8).view(dtype).reshape(6, 7)
    numbers = rng.standard_normal((6, 7)) * (4 if is_float(dtype) else 20)
    return (np.abs(numbers) if dtype.kind == "u" else numbers).astype(dtype)


@pytest.mark.skipif(compiler() is None, reason="no C compiler (cc, gcc or clang) on the path")
@given(st.lists(expressions(), min_size=1, max_size=6))
def test_interpreter_and_c_agree(drawn: list[tuple[LoopNest, list[Values]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = compile_c99({str(place): nest for place, (nest, _) in enumerate(drawn)}, Path(folder))
        for place, (nest, arrays) in enumerate(drawn):
            ours, theirs = [a.copy() for a in arrays], [a.copy() for a in arrays]
            interpret(nest, [as_bytes(a) for a in ours])
            run(str(place), theirs)
            for a, b in zip(ours, theirs, strict=True):
                assert agree(a, b).all(), nest
