"""What Owl's optimiser got wrong or left undone (owl_computation_optimiser.ml), each right here."""

from __future__ import annotations

import numpy as np

from nnc_core.graph import SymbolicGraph
from nnc_core.symbol import Number, postorder
from tests.graph.evaluate import evaluate
from tests.graph.stack import GRAPHS, OPTIMISER, new_namespace
from tests.optimiser.helpers import Build, placeholders, text_of


def assert_becomes(specs: list[str], before: Build, after: Build) -> None:
    F, xs = placeholders(specs)
    found = OPTIMISER.run([before(F, *xs)])
    assert text_of(xs, *found) == text_of(xs, after(new_namespace(), *xs))
    assert OPTIMISER.run(found) == found


def zeros(F, shape, x, value=0):  # type: ignore[no-untyped-def]
    return F.filled(shape=shape, number=Number(value, x.dtype))


def test_adding_zeros_keeps_the_broadcast_shape() -> None:
    assert_becomes(["int32 1 3"], lambda F, x: F.add(x, zeros(F, (2, 3), x)),
                   lambda F, x: F.broadcast_to(x, shape=(2, 3)))
    assert_becomes(["int32 1 3"], lambda F, x: F.add(zeros(F, (2, 3), x), x),
                   lambda F, x: F.broadcast_to(x, shape=(2, 3)))


def test_division_by_one_is_removed() -> None:
    assert_becomes(["float32 2 3"], lambda F, x: F.divide(x, zeros(F, (2, 3), x, 1)), lambda F, x: x)


def test_multiplication_by_one_is_removed() -> None:
    assert_becomes(["float32 2 3"], lambda F, x: F.multiply(zeros(F, (2, 3), x, 1), x), lambda F, x: x)


def test_equal_subexpressions_are_shared() -> None:
    F, (x,) = placeholders(["float32 3"])
    node = F.add(F.sin(x), F.sin(x))
    assert len(postorder([node])) == 3
    # ... also those that become equal only by optimising.
    node = F.add(F.sin(F.multiply(x, 1.0)), F.sin(F.reshape(x, shape=(3,))))
    assert len(postorder(OPTIMISER.run([node]))) == 3


def test_zero_divided_by_x_is_not_zero_for_floats() -> None:
    F, (x,) = placeholders(["float32 3"])
    (after,) = OPTIMISER.run([F.divide(zeros(F, (3,), x), x)])
    (values,) = evaluate([after], {x: np.array([0, np.nan, -1], np.float32)})
    np.testing.assert_array_equal(values, [np.nan, np.nan, -0.0])
    assert np.signbit(values[2])


def test_repeats_are_dropped_only_where_the_other_operand_has_the_full_shape() -> None:
    assert_becomes(["float32 1 3", "float32 2 3"],
                   lambda F, x, y: F.add(F.broadcast_to(x, shape=(2, 3)), y), lambda F, x, y: F.add(x, y))
    F, (x, y) = placeholders(["float32 1 3", "float32 1 3"])
    (after,) = OPTIMISER.run([F.add(F.broadcast_to(x, shape=(2, 3)), F.broadcast_to(y, shape=(2, 3)))])
    assert after.shape == (2, 3)
    (values,) = evaluate([after], {x: np.ones((1, 3), np.float32), y: np.full((1, 3), 2, np.float32)})
    np.testing.assert_array_equal(values, np.full((2, 3), 3))


def test_a_transpose_is_folded_into_matmul_only_where_it_swaps_the_last_two_axes() -> None:
    F, (a, b) = placeholders(["float32 3 2 4", "float32 2 4 5"])
    product = F.matmul(F.permute(a, axes=(1, 0, 2)), b)
    assert OPTIMISER.run([product]) == [product]


def test_constants_fold_through_several_operators() -> None:
    assert_becomes(["float32 2 3"],
                   lambda F, x: F.multiply(x, F.sqrt(F.add(F.multiply(zeros(F, (), x, 2), 4.0), 1.0))),
                   lambda F, x: F.multiply(x, 3.0))


def test_parents_of_a_division_by_a_number_are_optimised() -> None:
    assert_becomes(["float32 2 3"], lambda F, x: F.divide(F.negative(F.negative(x)), 2.0),
                   lambda F, x: F.divide(x, 2.0))


def test_copies_and_reshapes_of_constants_vanish() -> None:
    assert_becomes(["float32 2 3"], lambda F, x: F.add(F.copy(x), F.reshape(zeros(F, (6,), x, 1), shape=(2, 3))),
                   lambda F, x: F.add(x, 1.0))


def test_nodes_that_no_output_needs_are_gone() -> None:
    F, (x,) = placeholders(["int32 3"])
    graph = SymbolicGraph({"x": x}, {"y": F.multiply(F.floor_divide(x, F.add(x, 3)), 0)})
    assert graph.complexity == (6, 6)
    assert GRAPHS.optimise(graph).complexity == (1, 0)


def test_a_sum_over_several_axes_is_one_node() -> None:
    F, (x,) = placeholders(["float32 2 3 4"])
    assert OPTIMISER.run([node := F.sum(x, axis=(0, 2))]) == [node]


def test_optimising_an_optimised_graph_of_two_outputs_changes_nothing() -> None:
    F, (x, y) = placeholders(["float32 2 3", "float32 1 3"])
    shared = F.add(F.multiply(y, 1.0), F.negative(x))
    once = OPTIMISER.run([F.exp(shared), F.relu(F.relu(shared))])
    assert OPTIMISER.run(once) == once
    assert once[0].inputs == once[1].inputs


def test_multiplication_by_zero_keeps_what_is_no_number() -> None:
    F, (x,) = placeholders(["float32 4"])
    (after,) = OPTIMISER.run([F.multiply(x, 0.0)])
    (values,) = evaluate([after], {x: np.array([np.nan, np.inf, -1, 2], np.float32)})
    np.testing.assert_array_equal(values, [np.nan, np.nan, -0.0, 0.0])
    np.testing.assert_array_equal(np.signbit(values[2:]), [True, False])


def test_products_and_sums_stay_two_roundings() -> None:
    F, (a, b, c) = placeholders(["float32 3"] * 3)
    for node in (F.add(F.multiply(a, b), c), F.add(c, F.multiply(a, b)), F.add(F.multiply(a, b), F.multiply(b, c))):
        assert OPTIMISER.run([node]) == [node]


def test_the_constant_of_adagrad_is_not_special() -> None:
    for epsilon in (1e-32, 1e-8):
        F, (x,) = placeholders(["float32 3"])
        node = F.divide(0.1, F.sqrt(F.add(x, epsilon)))
        assert OPTIMISER.run([node]) == [node]


def test_a_chain_of_many_nodes_needs_no_stack() -> None:
    F, (x,) = placeholders(["float32 3"])
    node = x
    for _ in range(5000):
        node = F.sin(F.multiply(node, 1.0))
    assert len(postorder(OPTIMISER.run([node]))) == 5001
