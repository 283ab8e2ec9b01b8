"""The line of positions, and the plan that is made along it: nothing that is still to be read is overwritten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.dtype import boolean, float32, int64
from nnc_core.engine import ComputationGraph
from nnc_core.engine.body_copies import own_results
from nnc_core.engine.fusion import fuse
from nnc_core.engine.groups import COPY, LEAVES, is_number, with_own_outputs
from nnc_core.engine.program_tree import BranchesItem, CommandItem, Item, LoopItem, ProgramTree, walk
from nnc_core.engine.program_uses import last_reads, last_uses, leaves_of
from nnc_core.engine.schedule import Scheduler
from nnc_core.engine.storage import FOREVER, Storage
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import Nodes
from nnc_core.stacks import Stack, stack_for
from nnc_core.symbol import Body, Literal, Node, postorder
from nnc_core.type import TensorSpec
from tests.engine.conftest import call, floats
from tests.engine.flow import Program, programs
from tests.engine.plan_checker import check_plan


def tree_of(outputs: Sequence[Node], device: str = "strict:0") -> ProgramTree:
    own = list(with_own_outputs({str(i): y for i, y in enumerate(outputs)}).values())
    stack = stack_for(device)
    return Scheduler(stack.engine.decider).tree(fuse(postorder(own), own, stack.engine.decider), own, {})


def items_of(outputs: Sequence[Node]) -> list[Item]:
    return tree_of(outputs).items


def body_of(stack: Stack, f: object, *specs: TensorSpec) -> Body:
    """f(G, *placeholders) gives a list of results."""
    G = stack.operator.open()
    inputs = tuple([G.placeholder(f"p{i}", s) for i, s in enumerate(specs)])
    assert callable(f)
    return Body(inputs, tuple(f(G, *inputs)))


VECTOR, NUMBER = TensorSpec((4,), float32), TensorSpec((), int64)


def test_positions_go_through_condition_and_body(stack: Stack, F: Nodes) -> None:
    x, limit = floats(F, "x", 4), F.placeholder("limit", NUMBER)
    cond = body_of(stack, lambda G, v, i, n: [G.less(i, n)], VECTOR, NUMBER, NUMBER)
    body = body_of(stack, lambda G, v, i, n: [G.sin(G.negative(v)), G.add(i, n)], VECTOR, NUMBER, NUMBER)
    loop = F.loop((F.exp(x), limit), (), (limit,), cond=cond, body=body)
    before, item, pick, after = items_of([F.cos(F.pick(loop, index=0))])
    assert isinstance(item, LoopItem) and item.test is cond.outputs[0]
    (test,), inside = item.cond, item.body
    assert [i.group.op.name for i in inside] == ["negative", "sin", "add"]
    positions = [before.begin, item.begin, test.begin, *[i.begin for i in inside], item.end, pick.begin, after.begin]
    assert positions == list(range(len(positions)))


def test_branches_have_positions_of_their_own(stack: Stack, F: Nodes) -> None:
    x, index = floats(F, "x", 4), F.placeholder("index", NUMBER)
    arms = (body_of(stack, lambda G, v: [G.sin(G.exp(v))], VECTOR), body_of(stack, lambda G, v: [G.cos(v)], VECTOR))
    (item, _) = items_of([F.pick(F.case_of(index, (x,), branches=arms, otherwise=True), index=0)])
    assert isinstance(item, BranchesItem)
    assert [[i.begin for i in arm] for arm in item.arms] == [[1, 2], [3]] and (item.begin, item.end) == (0, 4)


def test_what_a_loop_reads_from_around_it_lives_until_its_end(stack: Stack, F: Nodes) -> None:
    x, long = floats(F, "x", 4), floats(F, "long", 8)
    a, b = F.exp(x), F.sin(long)
    view = F.slice(b, start=(0,), stop=(8,), step=(2,))
    body = body_of(stack, lambda G, v, k, w: [G.multiply(v, k), G.add(k, w)], VECTOR, VECTOR, VECTOR)
    loop = F.loop((a, a), (), (view,), body=body, length=3)
    y = F.pick(loop, index=0)
    tree = tree_of([F.cos(y)])
    items = tree.items
    (item,) = [i for i in items if isinstance(i, LoopItem)]
    last = last_uses(tree, last_reads(tree), set())
    assert last[a] == last[view] == last[b] == item.end > max(i.end for i in item.body), "b through its view"
    assert last[loop] == last[y] == items[-1].end, "the results through what is picked"
    assert all(last[z] == FOREVER for z in item.results)
    assert last[body.inputs[0]] == item.body[0].end


def test_results_of_a_body_have_memory_of_their_own(stack: Stack) -> None:
    G = stack.operator.open()
    c, k = G.placeholder("c", VECTOR), G.placeholder("k", VECTOR)
    y, view, number = G.sin(k), G.reshape(k, shape=(2, 2)), G.full(shape=(), value=1, dtype=float32)
    literal = G.constant(Literal(np.ones(4, np.float32)), VECTOR)
    results = own_results([c, c, k, view, number, literal, y, y], {c}, 2)
    assert results[0] is c and results[6] is y, "a carried value may move as it is, and so does what is computed"
    assert all(r.op is COPY for i, r in enumerate(results) if i not in (0, 6)), "a second time, or not of its own"
    assert [r.inputs[0] for r in results[1:6]] == [c, k, view, number, literal] and results[7].inputs == (y,)
    assert own_results([c], {c}, 0)[0].op is COPY, "what is stacked up does not move"


def test_leaves_of_bodies_are_leaves_of_the_whole(stack: Stack, F: Nodes) -> None:
    x = floats(F, "x", 4)
    literal = Literal(np.ones(4, np.float32))
    body = body_of(stack, lambda G, v: [G.add(v, G.constant(literal, VECTOR)), G.full(shape=(), value=True,
                                                                                     dtype=boolean)], VECTOR)
    found = leaves_of(tree_of(F.picks(F.loop((x,), (), (), body=body, length=2))))
    assert x in found and not set(body.inputs) & set(found)
    assert sum(n.op.name == "constant" for n in found) == sum(is_number(n) for n in found) == 1


def test_an_update_does_not_wait_for_a_reader_that_waits_for_it(stack: Stack, F: Nodes) -> None:
    """a takes b + b, b takes a, and z reads both the new a and the old b.  b waits for z, which needs the new a, so
    that the new a cannot wait for the reading of the old one: it is given memory of its own."""
    a, b = floats(F, "a", 4), floats(F, "b", 4)
    new = F.add(b, b)
    outputs = {"a2": new, "b2": a, "z": F.multiply(new, b)}
    run = stack.engine.compile(SymbolicGraph({"a": a, "b": b}, outputs, (("a2", "a"), ("b2", "b"))))
    found = call(run, a=np.full(4, 3, np.float32), b=np.full(4, 5, np.float32))
    assert {k: v.tolist() for k, v in found.items()} == {"a2": [10] * 4, "b2": [3] * 4, "z": [50] * 4}
    assert run.donated == {"b"}


# ---- random programs
def graph_of(program: Program, device: str) -> SymbolicGraph:
    with nnc.use_device(device):
        xs = [nnc.asarray(x) for x in program.arguments()]
        with nnc.deferred():
            ys = program(*xs)
        return nnc.export({f"x{i}": x for i, x in enumerate(xs)}, {f"y{i}": y for i, y in enumerate(ys)},
                          on_unused="ignore")


def check_nesting(items: Sequence[Item], after: int) -> int:
    """Positions grow by one, and what is inside lies inside; gives the last position."""
    for item in items:
        assert item.begin == after + 1
        after = item.begin
        if isinstance(item, LoopItem):
            after = check_nesting(item.body, check_nesting(item.cond, after)) + 1
        elif isinstance(item, BranchesItem):
            for arm in item.arms:
                after = check_nesting(arm, after)
            after += 1
        assert item.end == after or (isinstance(item, CommandItem) and item.end == item.begin)
    return after


@given(programs())
def test_a_value_is_made_before_it_is_read_and_lives_until_then(program: Program) -> None:
    tree = tree_of(list(graph_of(program, "strict:0").outputs.values()))
    items = tree.items
    check_nesting(items, -1)
    last, made = last_uses(tree, last_reads(tree), set()), {i.group.node: i.begin for i in walk(items)}
    for item in walk(items):
        for x in item.group.inputs:
            assert last[x] >= item.end
            assert x.op in LEAVES or is_number(x) or made[x] < item.begin


def compiled(program: Program, optimise: bool = True) -> ComputationGraph:
    return stack_for("strict:0").engine.compile(graph_of(program, "strict:0"), optimise=optimise)  # type: ignore[no-any-return]


def check_apart(arena: Sequence[Storage]) -> None:
    """Storages that live at the same time share no memory."""
    for i, a in enumerate(arena):
        for b in arena[:i]:
            together = a.first <= b.last and b.first <= a.last
            apart = a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
            assert apart or not together, f"{a.label} and {b.label}"


@given(programs(), st.booleans())
def test_what_is_read_is_what_was_written_there(program: Program, optimise: bool) -> None:
    """Whatever the orders of commands, branches and rounds, no value is read where another one lies."""
    run = compiled(program, optimise)
    check_apart(run.plan.arena)
    check_plan(run)
