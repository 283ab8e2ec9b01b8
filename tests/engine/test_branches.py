"""Branches as they are planned, written down as records, and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.dtype import float32
from nnc_core.base.errors import OutOfRangeError
from nnc_core.base.record import Call, Switch
from nnc_core.engine.program_tree import BranchesItem, walk
from nnc_core.engine.storage import Storage
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack
from nnc_core.symbol import Body
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats
from tests.engine.plans import both_ways, copied, lowered, records

X = np.linspace(-1, 1, 1024, dtype=np.float32)
SMALL = X[:16] * 3
Branch = Callable[..., tuple[Any, ...]]


def held(count: int) -> Branch:
    """A branch that holds `count` values at a time."""

    def run(x: Any) -> tuple[Any]:
        return (nnc.sum(nnc.stack([nnc.flip(x) * float(k + 1) for k in range(count)]), axis=0),)

    return run


def chosen(branches: list[Branch]) -> Callable[..., Any]:
    """Something common before, one of the branches, and something after that reads both."""

    def f(x: Any, i: Any) -> Any:
        common = nnc.exp(x)
        (y,) = nnc.case_of(i, branches, (nnc.sin(x),))
        return nnc.sum(nnc.flip(y) * common)

    return f


# ---- memory
def peak(branches: list[Branch]) -> int:
    return lowered(chosen(branches), X, np.array(0)).memory_plan.peak


def inside(run: Any) -> list[list[Storage]]:
    """For each branch what its commands compute into, the results left out, which all branches share."""
    (plan,) = [item for item in walk(run.plan.items) if isinstance(item, BranchesItem)]
    written = [[s for item in arm for step in item.planned for s in step.writes] for arm in plan.arms]
    return [[s for s in dict.fromkeys(w) if sum(s in v for v in written) == 1] for w in written]


def test_the_peak_is_that_of_the_largest_branch() -> None:
    """What is common besides: not the sum over branches."""
    small, large = held(2), held(6)
    assert peak([large, large]) == peak([large, large, large, large])
    assert peak([small, large]) == peak([large, small]) == peak([large, large]) > peak([small, small])
    assert peak([small, large]) == peak([large]) and peak([large]) - peak([small]) >= 4 * X.nbytes


def test_branches_lie_in_each_others_memory_but_not_in_what_is_common() -> None:
    run = lowered(chosen([held(3), held(5)]), X, np.array(0))
    first, second = inside(run)
    overlap = [(a, b) for a in first for b in second
               if a.offset < b.offset + b.nbytes and b.offset < a.offset + a.nbytes]
    assert overlap and all(a.last < b.first or b.last < a.first for a, b in overlap)
    (common,) = [s for s in run.plan.arena if s.label == "exp"]
    for s in (*first, *second):
        assert s.offset + s.nbytes <= common.offset or common.offset + common.nbytes <= s.offset


@pytest.mark.parametrize("i", [0, 1, 2])
def test_whatever_branch_runs_what_is_common_is_still_there(i: int) -> None:
    both_ways(chosen([held(2), held(5), held(3)]), X, np.array(i), device="strict-poison:0")


def test_branches_within_branches_share_memory_too() -> None:
    def nest(depth: int, twice: bool) -> Branch:
        """Choices in choices; their second branch is as large as the first, or nothing."""
        if not depth:
            return held(3)
        other = nest(depth - 1, twice) if twice else lambda x: (x,)
        return lambda x: nnc.case_of(nnc.sum(x[:1] > 0), [nest(depth - 1, twice), other], (nnc.flip(x) * 0.5,))

    for depth in (1, 2, 3):
        assert peak([nest(depth, True)]) == peak([nest(depth, False)])
    both_ways(chosen([nest(2, True), nest(1, True)]), X, np.array(0))


# ---- records
def test_one_switch_and_only_the_chosen_commands_run() -> None:
    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i, [lambda x: (nnc.exp(x),), lambda x: (nnc.sin(x),), lambda x: (nnc.cos(x),)], (x,))[0]

    run = lowered(f, SMALL, np.array(0))
    (switch,) = [r for r in records(run.records) if isinstance(r, Switch)]
    assert len(switch.targets) == 3 and switch.otherwise == -1 and "test_branches.py" in switch.label
    assert [run.records[t].label for t in switch.targets] == ["exp", "sin", "cos"]  # type: ignore[union-attr]
    upload = run.executor.upload
    names = {n.shape: k for k, n in run.graph.inputs.items()}
    for i, name in enumerate(("exp", "sin", "cos")):
        ran: list[str] = []
        program = run._program()
        claims = run._bind(program, {names[(16,)]: upload(SMALL), names[()]: upload(np.array(i))})

        def around(call: Call, launch: Any, ran: list[str] = ran) -> None:
            ran.append(call.label)
            launch()

        program.run_with(around)
        assert claims and [n for n in ran if n in ("exp", "sin", "cos")] == [name]


@pytest.mark.parametrize("i", [-1, 0, 1, 2, 3, 10**12, -(10**12)])
def test_a_replacement_serves_every_other_number(i: int) -> None:
    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i, [lambda x: (x * 2.0,), lambda x: (x * 3.0,)], (x,), (x * 0.25,))[0]

    np.testing.assert_array_equal(both_ways(f, SMALL, np.array(i))[0], SMALL * {0: 2, 1: 3}.get(i, 0.25))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int32", "int64"])
def test_an_index_of_any_integer_dtype(dtype: str) -> None:
    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i[1], [lambda x: (x * 2.0,), lambda x: (x * 3.0,)], (x,), (x,))[0]

    for i in (0, 1, 100):
        np.testing.assert_array_equal(both_ways(f, SMALL, np.array([7, i], dtype))[0], SMALL * {0: 2, 1: 3}.get(i, 1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_a_switch_reads_the_dtype_that_its_index_has(stack: Stack, F: Nodes, dtype: str) -> None:
    """Nodes may choose by any integer; only the public function makes an int64 of it."""
    x, index = floats(F, "x", 4), F.placeholder("index", TensorSpec((), np.dtype(dtype)))
    arms = []
    for k in range(3):
        G = stack.operator.open()
        p = G.placeholder("p", x.spec)
        arms.append(Body((p,), (G.multiply(p, float(k)),)))
    node = F.case_of(index, (x,), branches=tuple(arms), otherwise=True)
    run = stack.engine.compile(SymbolicGraph({"x": x, "index": index}, {"y": F.pick(node, index=0)}))
    for i, wanted in ((0, 0), (1, 1), (2, 2), (100, 2)):
        found = call(run, x=np.ones(4, np.float32), index=np.array(i, dtype))["y"]
        np.testing.assert_array_equal(found, np.full(4, wanted))


@pytest.mark.parametrize("device", ["strict:0", "strict-async:0"])
@pytest.mark.parametrize("i", [-1, 2, 99])
def test_no_such_branch_is_an_error_with_its_line(device: str, i: int) -> None:
    """Inside of a loop as well; and the next call works."""

    def f(x: Any, i: Any) -> Any:
        def step(k: Any, y: Any) -> tuple[Any, ...]:
            return k + 1, nnc.case_of(i, [lambda y: (y * 2.0,), lambda y: (-y,)], (y,))[0]

        return nnc.while_loop(lambda k, y: k < 3, step, (nnc.asarray(0), x))[1]

    with nnc.use_device(device):
        x, run = nnc.asarray(SMALL), nnc.jit(f)
        with pytest.raises(OutOfRangeError, match=f"no branch {i}") as caught:
            run(x, nnc.asarray(i)).numpy()
        assert caught.value.operator == "case_of" and "test_branches.py" in str(caught.value.line)
        np.testing.assert_array_equal(run(x, nnc.asarray(1)).numpy(), -SMALL)


# ---- results
@pytest.mark.parametrize("i", [0, 1, 2])
def test_results_that_are_no_values_of_the_branch(i: int) -> None:
    """Operands, what is captured, constants, numbers, views, one value twice: each branch gives its own."""
    outside = np.arange(16, dtype=np.float32).reshape(4, 4)

    def f(x: Any, k: Any, i: Any) -> list[Any]:
        def second(x: Any) -> tuple[Any, ...]:
            y = x + 1.0
            return y, y, x

        branches = [lambda x: (x, k, nnc.asarray(outside)), second, lambda x: (x.T, nnc.full((4, 4), 0.5), k.T)]
        return [*nnc.case_of(i, branches, (x,)), x]

    x = SMALL.reshape(4, 4)
    wanted = [(x, x * 2, outside), (x + 1, x + 1, x), (x.T, np.full((4, 4), 0.5), x.T * 2)][i]
    for found, w in zip(both_ways(f, x, x * 2, np.array(i)), (*wanted, x), strict=True):
        np.testing.assert_array_equal(found, w)


def test_results_are_computed_where_they_stay() -> None:
    """No branch copies what it has computed; outputs are computed into the caller's memory."""

    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i, [lambda x: (nnc.exp(x),), lambda x: (nnc.flip(x),)], (x,))[0]

    run = lowered(f, X, np.array(0))
    assert not copied(run) and not [s for s in run.plan.arena if s.nbytes == X.nbytes]


def test_an_operand_that_is_read_afterwards_is_not_overwritten() -> None:
    def f(x: Any, i: Any) -> list[Any]:
        y = nnc.exp(x)
        (z,) = nnc.case_of(i, [lambda y: (nnc.sin(y),), lambda y: (-y * 2.0,)], (y,))
        return [z + y, nnc.flip(z)]

    for i in (0, 1):
        y = np.exp(SMALL)
        z = [np.sin(y), -y * 2][i]
        found = both_ways(f, SMALL, np.array(i), device="strict-poison:0")
        np.testing.assert_allclose(found[0], z + y, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found[1], np.flip(z), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_empty_arrays(shape: tuple[int, ...]) -> None:
    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i, [lambda x: (x * 2.0,), lambda x: (nnc.flip(x),)], (x,), (x,))[0]

    for i in range(3):
        assert both_ways(f, np.empty(shape, np.float32), np.array(i))[0].shape == shape


def test_a_branch_that_reads_nothing() -> None:
    def f(x: Any, i: Any) -> Any:
        return nnc.case_of(i, [lambda: (nnc.full((16,), 1.0),), lambda: (x,)])[0]

    np.testing.assert_array_equal(both_ways(f, SMALL, np.array(0))[0], np.ones(16))
    np.testing.assert_array_equal(both_ways(f, SMALL, np.array(1))[0], SMALL)


def test_a_known_index_leaves_one_branch() -> None:
    def f(x: Any) -> Any:
        return nnc.case_of(nnc.asarray(1) * 0 + 1, [lambda x: (nnc.exp(x),), lambda x: (nnc.flip(x),)], (x,))[0]

    def by_number(x: Any) -> Any:
        return nnc.cond(nnc.full((), True), lambda x: nnc.flip(x), lambda x: nnc.exp(x), x)

    run = lowered(by_number, SMALL)
    assert not [r for r in records(run.records) if isinstance(r, Switch)]
    np.testing.assert_array_equal(both_ways(by_number, SMALL)[0], SMALL[::-1])
    np.testing.assert_array_equal(both_ways(f, SMALL)[0], SMALL[::-1])


def test_branches_100_deep(stack: Stack, F: Nodes) -> None:
    """Each level has a branch that goes deeper and one that does not."""
    spec, index = TensorSpec((4,), float32), TensorSpec((), np.dtype("int64"))
    G = stack.operator.open()
    p, i = G.placeholder("x", spec), G.placeholder("i", index)
    body = Body((p, i), (G.add(p, 1.0),))
    for k in range(100):
        G = stack.operator.open()
        p, i = G.placeholder("x", spec), G.placeholder("i", index)
        leave = Body((p, i), (G.multiply(p, float(100 - k)),))
        H = stack.operator.open()
        q, j = H.placeholder("x", spec), H.placeholder("i", index)
        below = H.case_of(H.minimum(j, 1), (q, H.subtract(j, 1)), branches=(leave, body), otherwise=True)
        body = Body((q, j), (H.flip(H.pick(below, index=0), axes=(0,)),))
    x, n = F.placeholder("x", spec), F.placeholder("n", index)
    y = F.pick(F.case_of(F.full(shape=(), value=0, dtype=np.dtype("int64")), (x, n), branches=(body,),
                         otherwise=False), index=0)
    run = stack.engine.compile(SymbolicGraph({"x": x, "n": n}, {"y": y}))
    given = np.arange(4, dtype=np.float32)
    for depth in (0, 1, 37, 99, 100, 200):
        wanted = given + 1 if depth >= 100 else given * (depth + 1)
        flips = min(depth, 99) + 1
        found = call(run, x=given, n=np.array(depth))["y"]
        np.testing.assert_array_equal(found, wanted[::-1] if flips % 2 else wanted, str(depth))
