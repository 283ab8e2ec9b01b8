"""Bodies that are used more than once have nodes of their own in each place of a program."""

from __future__ import annotations

from nnc_core.base.dtype import int64
from nnc_core.engine.body_copies import BodyCopies
from nnc_core.engine.fusion import fuse
from nnc_core.engine.groups import NodeGroup
from nnc_core.operator import Nodes
from nnc_core.operator.control import CASE_OF
from nnc_core.stacks import stack_for
from nnc_core.symbol import Body, Node, postorder
from nnc_core.type import TensorSpec
from tests.engine.conftest import floats


def branches_of(F: Nodes, body: Body, x: Node) -> NodeGroup:
    i = F.placeholder("i", TensorSpec((), int64))
    node = F.case_of(i, (x,), branches=(body, body), otherwise=False)
    (group,) = fuse(postorder([node]), [node], stack_for("strict:0").engine.decider)
    return group


def a_body(F: Nodes) -> Body:
    v = floats(F, "v", 4)
    return Body((v,), (F.multiply(F.exp(v), F.full(shape=(), value=2.0, dtype=v.dtype)),))


def test_the_second_use_of_a_body_is_a_copy_that_is_equal(F: Nodes) -> None:
    body, x = a_body(F), floats(F, "x", 4)
    group = branches_of(F, body, x)
    own = BodyCopies([group.node]).own(group)
    first, second = own.attributes[0]
    assert group.op is CASE_OF
    assert first is body
    assert second is not body
    assert second == body
    assert set(first.inputs).isdisjoint(second.inputs)
    shared = set(first.nodes) & set(second.nodes)
    assert [n.op.name for n in shared] == ["filled"], "numbers are no values of the program"


def test_a_body_that_has_nodes_of_what_is_around_it_is_copied(F: Nodes) -> None:
    body, x = a_body(F), floats(F, "x", 4)
    group = branches_of(F, body, x)
    first, second = BodyCopies(body.nodes).own(group).attributes[0]
    assert first == second == body
    assert len({id(b) for b in (first, second, body)}) == 3


def test_a_group_without_shared_bodies_stays_as_it_is(F: Nodes) -> None:
    x = floats(F, "x", 4)
    i = F.placeholder("i", TensorSpec((), int64))
    node = F.case_of(i, (x,), branches=(a_body(F), a_body(F)), otherwise=False)
    (group,) = fuse(postorder([node]), [node], stack_for("strict:0").engine.decider)
    assert BodyCopies([node]).own(group) == group
