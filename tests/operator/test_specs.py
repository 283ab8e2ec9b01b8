"""The inferred spec is what the reference gives, for every operator and dtype; other dtypes are refused."""

from __future__ import annotations

import numpy as np
import pytest

from nnc_core.base.dtype import STORAGE
from nnc_core.base.errors import DTypeError
from nnc_core.operator import OPERATORS
from nnc_core.stacks import stack_for
from nnc_core.type import TensorSpec, TupleSpec
from nnc_plugins.conformance.case import ALL
from nnc_plugins.conformance.cases import CASES, admitted_dtypes, examples
from tests.operator.host import call

each_operator = pytest.mark.parametrize("name", OPERATORS)


def spec_of(array: np.ndarray | tuple[np.ndarray, ...]) -> TensorSpec:
    if isinstance(array, tuple):
        return TupleSpec(tuple(map(spec_of, array)))
    return TensorSpec(array.shape, array.dtype)


def test_every_operator_has_cases() -> None:
    assert set(CASES) == set(OPERATORS)
    assert all(CASES.values())


@each_operator
def test_cases_have_labels_of_their_own(name) -> None:
    seen = [(case.label, dtype) for case in CASES[name] for dtype in case.dtypes]
    assert len(set(seen)) == len(seen)


@each_operator
def test_the_rule_predicts_the_reference(name, rng) -> None:
    for op, case, dtype in examples(name):
        inputs, attributes = case.inputs(rng, dtype), case.attribute_values(op, dtype)
        inferred = op.infer(*map(spec_of, inputs), *attributes)
        assert spec_of(call(op, *inputs, *attributes)) == inferred, f"{case.label} {dtype}"


@each_operator
def test_other_dtypes_are_refused(name, rng) -> None:
    op, case = OPERATORS[name], CASES[name][0]

    def arguments(dtype):
        return [*map(spec_of, case.inputs(rng, dtype)), *case.attribute_values(op, dtype)]

    admitted = arguments(case.dtypes[0])
    for dtype in set(ALL) - admitted_dtypes(name):
        if (refused := arguments(dtype)) != admitted:  # equal where the result's dtype is always the same
            with pytest.raises(DTypeError):
                op.infer(*refused)


@each_operator
def test_storage_dtypes_are_taken_where_the_declaration_says_so(name, rng) -> None:
    """The layer of shapes refuses them elsewhere, whatever the rule would say."""
    op, case = OPERATORS[name], CASES[name][0]
    assert op.storage == (set(STORAGE) <= admitted_dtypes(name)) == (not admitted_dtypes(name).isdisjoint(STORAGE))
    if op.inputs and not op.storage:
        specs = [TensorSpec(spec_of(x).shape, STORAGE[0]) for x in case.inputs(rng, case.dtypes[0])]
        with pytest.raises(DTypeError, match="is a storage dtype") as caught:
            stack_for("strict:0").shape.infer(op, tuple(specs), case.attribute_values(op, case.dtypes[0]))
        assert caught.value.operator == name


@each_operator
def test_inputs_of_different_dtypes_are_refused_or_have_a_place(name, rng) -> None:
    """Rules see promoted inputs only: two that must agree and do not are an error."""
    op, case = OPERATORS[name], CASES[name][0]
    dtype = case.dtypes[-1]
    specs = [spec_of(x) for x in case.inputs(rng, dtype)]
    together = [i for i in (range(len(specs)) if op.promote == (-1,) else op.promote)]
    if len(together) < 2:
        return
    other = next(d for d in reversed(ALL) if d != dtype)
    specs[together[1]] = TensorSpec(specs[together[1]].shape, other)
    with pytest.raises(DTypeError, match="differ"):
        op.infer(*specs, *case.attribute_values(op, dtype))
