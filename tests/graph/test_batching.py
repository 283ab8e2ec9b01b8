"""Every operator on many examples at once, against a Python loop over the examples.

The examples are the inputs of the conformance kit's cases, drawn anew for each example: all of them, and then some, the
others being the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.algodiff.custom import CUSTOM, RESULT
from nnc_core.base import dtype as dt
from nnc_core.graph.batching_rules import RULES
from nnc_core.graph.drawing.unfolded import unfolded
from nnc_core.operator import OPERATORS
from nnc_core.operator.control import LOOP
from nnc_core.type import TupleSpec
from nnc_core.values.dispatch import F
from nnc_plugins.conformance.cases import CASES, Case
from tests.sizes import WHOLE

EXAMPLES = 3
SUMS = {"conv", "conv_kernel_gradient", "conv_input_gradient"}
"""Operators that may add, of thousands of terms, in another order for several examples."""
FEW = 3
"""Cases of an operator that are all tried twice."""
PREFERRED = (dt.float64, dt.float32, dt.int64, dt.uint8, dt.boolean)
DATA_DEPENDENT = [name for name in CASES if OPERATORS[name].data_dependent]
ELSEWHERE = "transfer"  # goes to places that its cases invent


def dtype_of(case: Case) -> Any:
    return next((d for d in PREFERRED if d in case.dtypes), case.dtypes[0])


def drawn(case: Case, count: int) -> list[list[np.ndarray[Any, Any]]]:
    """Inputs of `count` examples; fixed ones shuffled, so that examples differ."""
    rng = np.random.default_rng(3)
    found = [[np.array(a) for a in case.inputs(rng, dtype_of(case))] for _ in range(count)]
    for i in range(len(found[0])):
        same = all(np.array_equal(f[i], found[0][i], equal_nan=f[i].dtype.kind == "f") for f in found)
        if same and found[0][i].dtype.kind in "fc" and found[0][i].ndim:
            for k, f in enumerate(found):
                f[i] = np.roll(f[i], k)
    return found


def applied(name: str, case: Case) -> Any:
    """The operator as a function of tensors."""
    op = OPERATORS[name]
    attributes = case.attribute_values(op, dtype_of(case))

    def f(*xs: nnc.Tensor) -> Any:
        made = F.apply(op, tuple([x._value for x in xs]), attributes)
        return [nnc.Tensor(v) for v in F.picks(made)] if isinstance(made.spec, TupleSpec) else nnc.Tensor(made)

    return f


def hosts(results: Any) -> list[np.ndarray[Any, Any]]:
    return [y.numpy() for y in (results if isinstance(results, list) else [results])]


def near(found: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]], what: str) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{what}: {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if dt.is_float(a.dtype) or a.dtype in dt.STORED_FLOATS:
            a, b = a.astype(np.float64), b.astype(np.float64)
            atol = 4e-6 * np.max(np.abs(b), initial=1.0) if what.split(",")[0] in SUMS else 1e-6
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=atol, err_msg=what)
        else:
            np.testing.assert_array_equal(a, b, err_msg=what)


def choices(count: int, number: int, both: bool) -> list[tuple[int | None, ...]]:
    """Which inputs have examples: all, and another choice for each case; each alone and all but each come in turn.
    One or the other of the two, all first, unless both are wanted."""
    each = [tuple([0 if i == k else None for i in range(count)]) for k in range(count)]
    rest = [tuple([None if i == k else 0 for i in range(count)]) for k in range(count)]
    others = list(dict.fromkeys([*each, *rest])) if count > 1 else []
    if not others:
        return [(0,) * count][:count]
    if both:
        return [(0,) * count, others[number % len(others)]]
    return [others[number // 2 % len(others)] if number % 2 else (0,) * count]


@pytest.mark.parametrize("name", [name for name in CASES if name not in (*DATA_DEPENDENT, ELSEWHERE)])
def test_every_operator_is_batched(name: str) -> None:
    op = OPERATORS[name]
    tried, both = 0, WHOLE or len(CASES[name]) <= FEW
    for number, case in enumerate(CASES[name]):
        examples = drawn(case, EXAMPLES)
        f = applied(name, case)
        for axes in choices(len(examples[0]), number, both):
            rows = [[e[i] if a is not None else examples[0][i] for i, a in enumerate(axes)] for e in examples]
            args = [nnc.asarray(np.stack([e[i] for e in rows]) if a is not None else rows[0][i])
                    for i, a in enumerate(axes)]
            wanted = [hosts(f(*[nnc.asarray(x) for x in row])) for row in rows]
            what = f"{name}, {case.label}, {axes}"
            near(hosts(nnc.vmap(f, axes)(*args)), [np.stack(ys) for ys in zip(*wanted, strict=True)], what)
            tried += 1
    assert tried or not op.inputs, "no case has inputs"


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_results_of_a_size_that_depends_on_data_are_refused(name: str) -> None:
    case = CASES[name][0]
    args = [nnc.asarray(np.stack(xs)) for xs in zip(*drawn(case, EXAMPLES), strict=True)]
    with pytest.raises(NotImplementedError, match=f"{name}: the size of its result depends on data") as caught:
        nnc.vmap(applied(name, case))(*args)
    assert isinstance(caught.value, nnc.Error) and "test_batching.py" in str(caught.value)


def test_a_copy_to_another_device() -> None:
    x = nnc.asarray(np.arange(6.0).reshape(2, 3))
    assert x.to("strict:0").device.id == "strict:0"  # what ran once is not taken for a kernel of this device later
    y = nnc.vmap(lambda row: row.to("strict:0"))(x)
    assert y.device.id == "strict:0" and y.tolist() == x.tolist()


# ---- control flow
def stacked(f: Any, *args: nnc.Tensor) -> Any:
    """A Python loop over examples."""
    return [f(*row) for row in zip(*args, strict=True)]


def graph_of(f: Any, *args: nnc.Tensor) -> nnc.SymbolicGraph:
    return nnc.jit(f).lower(*args).graph


def loops(graph: nnc.SymbolicGraph) -> list[int]:
    """How deep each loop lies in others."""
    return sorted(d.name.count(".body.") for d in unfolded(graph, graph.nodes) if d.node.op is LOOP)


def check(f: Any, *args: nnc.Tensor, depths: Sequence[int] | None = None) -> None:
    """Compiled, eager and differentiated, against a Python loop; `depths` of the loops in the compiled graph."""
    wanted = np.stack([y.numpy() for y in stacked(f, *args)])
    for run in (nnc.vmap(f), nnc.jit(nnc.vmap(f))):
        near(hosts(run(*args)), [wanted], "vmap")
    if depths is not None:
        assert loops(graph_of(nnc.vmap(f), *args)) == list(depths)
    everywhere = tuple(range(len(args)))

    def total(*args: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.vmap(f)(*args) ** 2)

    def each(*args: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.stack(stacked(f, *args)) ** 2)

    of_each = hosts(list(nnc.grad(each, everywhere)(*args)))
    near(hosts(list(nnc.jit(nnc.grad(total, everywhere))(*args))), of_each, "grad of vmap")

    def one(*row: nnc.Tensor) -> Any:
        return nnc.grad(lambda *row: nnc.sum(f(*row) ** 2), everywhere)(*row)

    for run in (nnc.vmap(one), nnc.jit(nnc.vmap(one))):
        near(hosts(list(run(*args))), of_each, "vmap of grad")


X, W = (nnc.asarray(np.random.default_rng(k).uniform(0.5, 1.5, (3, 4))) for k in (0, 1))
ROWS = nnc.asarray(np.random.default_rng(2).uniform(0.5, 1.5, (3, 5, 4)))


def test_a_scan_stays_one_loop_over_all_examples() -> None:
    def f(xs: nnc.Tensor, w: nnc.Tensor) -> nnc.Tensor:
        last, ys = nnc.scan(lambda c, x: (nnc.tanh(c * w) + x, c * x), w, xs, reverse=True)
        return nnc.concat([nnc.reshape(last, (1, 4)), ys])

    check(f, ROWS, W, depths=[0])


def test_what_does_not_depend_on_examples_is_carried_once() -> None:
    """Every example goes round three times, so that the counter has no examples."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nnc.sin(y) * x), (nnc.asarray(0), x))[1]

    check(f, X, depths=[0])
    (node,) = [n for n in graph_of(nnc.vmap(f), X).nodes if n.op is LOOP]
    assert [x.shape for x in node.inputs] == [(), (3, 4), (3, 4)]


def test_examples_that_go_round_unequally_often() -> None:
    """The loop is run for one example after another; the gradient inside has tapes of unequal lengths."""

    def f(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda y: nnc.sum(y) < 12.0, lambda y: (y * 1.3 + nnc.sin(x),), (x,))[0]

    x = X * nnc.asarray([[0.2], [1.0], [3.0]], dtype="float64")
    check(f, x, depths=[0, 1])


def test_loops_in_loops() -> None:
    def f(xs: nnc.Tensor) -> nnc.Tensor:
        def outer(c: nnc.Tensor, x: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
            y = nnc.scan(lambda d, r: (nnc.sin(d + r), None), c, xs)[0]
            _, z = nnc.while_loop(lambda i, z: i < 2, lambda i, z: (i + 1, z * y), (nnc.asarray(0), x))
            return y, z

        return nnc.scan(outer, xs[0], xs)[1]

    check(f, ROWS, depths=[0, 1, 1])


def test_branches_that_all_examples_take_and_branches_that_each_takes() -> None:
    at = nnc.asarray(1)

    def together(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.case_of(at, [lambda x: (x,), lambda x: (nnc.sin(x) * x,)], (x,))[0]

    def apart(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.cond(nnc.sum(x) > 4.0, lambda x: nnc.exp(x), lambda x: nnc.sin(x) * x, x)

    check(together, X, depths=[])
    check(apart, X, depths=[0])


def test_a_result_that_no_example_has_a_part_in_is_repeated() -> None:
    k = nnc.asarray([1.0, 2.0])
    found = nnc.vmap(lambda x: {"a": k * 2, "b": nnc.scan(lambda c, r: (c + r, c), k[0], k), "x": x})(X)
    assert found["a"].tolist() == [[2, 4]] * 3 and found["b"][0].tolist() == [4] * 3
    assert found["b"][1].tolist() == [[1, 2]] * 3 and found["x"].tolist() == X.tolist()


def test_rules_are_for_operators_that_are_there() -> None:
    assert set(RULES) - {"after", CUSTOM.name, RESULT.name} <= set(OPERATORS)
