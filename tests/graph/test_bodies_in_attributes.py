"""Attributes that hold bodies: all of them found, by name, and changed in their places."""

from __future__ import annotations

from typing import NamedTuple

from nnc_core.base import dtype as dt
from nnc_core.symbol import Body, bodies_in, map_bodies
from nnc_core.type import TensorSpec
from tests.graph.stack import new_namespace


def body() -> Body:
    x = new_namespace().placeholder("x", TensorSpec((2,), dt.float32))
    return Body((x,), (x,))


class Named(NamedTuple):
    body: Body
    count: int


def test_bodies_are_found_in_order_however_deep() -> None:
    a, b, c = body(), body(), body()
    assert [id(x) for x in bodies_in((a, 3, (b, (c, None))))] == [id(a), id(b), id(c)]
    assert list(bodies_in("no body")) == []


def test_attributes_without_a_change_are_the_same_object() -> None:
    attributes = (body(), 1, (body(),))
    assert map_bodies(attributes, lambda x: x) is attributes


def test_changed_bodies_stand_where_the_old_ones_stood() -> None:
    old, new = body(), body()
    changed = map_bodies((1, (old,), Named(old, 2)), lambda x: new)
    assert changed[0] == 1 and changed[1][0] is new
    assert isinstance(changed[2], Named) and changed[2].body is new and changed[2].count == 2
