"""Formulas on scalars: the instructions that they append, for real and for complex numbers."""

from __future__ import annotations

import pytest

from nnc_core.base.dtype import boolean, complex64, float32, float64, int32
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import Instruction
from nnc_core.codegen.pairs import Pair, converted
from nnc_core.codegen.scalar import BodyBuilder, Scalar


def loaded(count: int, dtype=float32) -> tuple[BodyBuilder, list[Scalar]]:
    body = BodyBuilder(3)
    return body, [Scalar(body, body.append(Instruction("load", dtype)), dtype) for _ in range(count)]


def operations(body: BodyBuilder) -> list[str]:
    return [i.operation for i in body.instructions]


def test_operators_append_instructions_numbered_from_the_first() -> None:
    body, (a, b) = loaded(2)
    result = (a + b) * 2.0 - abs(b)
    assert operations(body) == ["load", "load", "add", "constant", "multiply", "abs", "subtract"]
    assert body.instructions[-1].operands == (7, 8) and result.number == 9 == body.next - 1


def test_comparisons_are_boolean_and_choose() -> None:
    body, (a, b) = loaded(2)
    assert {c.dtype for c in (a < b, a <= 0, a > b, a >= 0, a.equal(b), a.not_equal(0))} == {boolean}
    chosen = a.apply("less", b).select(a, 0.0)
    assert chosen.dtype == float32 and body.instructions[-1].operation == "select"


def test_equal_constants_of_one_dtype_are_one_value() -> None:
    _, (a,) = loaded(1)
    assert a.constant(1.0).number == a.constant(1.0).number
    assert len({a.constant(1.0).number, a.constant(1.0, float64).number, a.constant(-1.0).number}) == 3
    assert a.constant(0.0).number != a.constant(-0.0).number


def test_casts_to_the_same_dtype_append_nothing() -> None:
    body, (a,) = loaded(1)
    assert a.cast(float32) is a and operations(body) == ["load"]
    assert a.cast(int32).dtype == int32 and operations(body) == ["load", "cast"]


def test_complex_numbers_are_pairs_of_real_instructions() -> None:
    body, (re, im) = loaded(2)
    z = Pair(re, im)
    product = z * 2j
    assert z.dtype == complex64 == product.dtype
    assert set(operations(body)) == {"load", "constant", "multiply", "subtract", "add"}
    assert z.equal(0).dtype == boolean == z.not_equal(z).dtype
    assert isinstance(converted(re, complex64), Pair) and isinstance(re.equal(0).select(z, 0), Pair)


def test_functions_without_a_complex_formula_are_refused() -> None:
    _, (re, im) = loaded(2)
    with pytest.raises(NotSupportedError, match="no erf of complex64"):
        Pair(re, im).apply("erf")


def test_the_number_of_operands_is_checked() -> None:
    _, (a,) = loaded(1)
    with pytest.raises(AssertionError, match="add takes 2 operands"):
        a.apply("add")
