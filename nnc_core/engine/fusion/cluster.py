"""Nodes that become one command, while it grows from its result back: where each of them is asked for, and how often.

A result is gone through point by point.  As soon as something folded takes part, the axes that it lies along are the
*rows*, and whatever lies along these alone is computed once for each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias

from nnc_core.operator.form import Affine, Form, Kind, Load
from nnc_core.operator.program import ON_THE_WAY, Place
from nnc_core.symbol import Node

Position: TypeAlias = "tuple[int, frozenset[tuple[Any, int]]] | None"
"""offset + sum(coefficient * axis), with terms (axis, coefficient) over axes of the result, by number, and of folds, by
node and number; None for an index of any other kind."""
Scope: TypeAlias = "Node | None"
"""Where something is asked for: at each point of the result, or within the fold of a node."""


class Request(NamedTuple):
    """An element that is asked for: its index by axis of the result, or of a fold, and where that is."""

    at: tuple[Position, ...]
    scope: Scope


class Cluster:
    """A result and the nodes that are computed with it."""

    def __init__(self, result: Node, form: Form) -> None:
        self.result = result
        self.forms: dict[Node, Form] = {result: form}
        """The nodes, each before those that it reads."""
        self.shape = result.spec.static_shape
        self.rows: frozenset[Any] | None = None
        """Axes of the result that folds lie along; None while there are no folds."""
        self.further: dict[Node, Place] = {}
        """Other nodes whose values are given, since others read them as well, and where they are written."""
        self.anchor: Node | None = None
        """The node whose own loops all others are written into."""
        self.inputs: dict[Node, tuple[Node, ...]] = dict.fromkeys(result.inputs, (result,))
        """What is read from outside, with the nodes here that read it."""
        self.points: int = prod(self.shape)
        self.row_count = self.points
        """The count of rows, which are computed side by side."""
        self._lengths: dict[Any, int] = {axis: n for axis, n in enumerate(self.shape) if n != 1}
        """Of axes of the result by number, of folds by node and number; without those of length 1."""
        whole = tuple([(0, frozenset([(axis, 1)] if n != 1 else [])) for axis, n in enumerate(self.shape)])
        self._requests: dict[Node, list[Request]] = {result: [Request(whole, None)]}
        if form.kind is Kind.FOLD:
            self._fold_along(result, form, Request(whole, None))
        elif form.kind is Kind.ANCHOR:
            self.anchor = result

    @property
    def results(self) -> list[Node]:
        """The nodes that the command gives, the result last."""
        return [*self.further, self.result]

    @property
    def inner(self) -> tuple[int, ...]:
        """The axes of the result that each row is gone through."""
        rows = self.rows
        return () if rows is None else tuple([a for a, n in enumerate(self.shape) if n != 1 and a not in rows])

    # ---- what is asked of a node
    def requests_of(self, node: Node) -> list[Request]:
        """The elements of an input that the nodes here ask for, each once."""
        found: list[Request] = []
        for user in self.inputs[node]:
            for load in self.forms[user].loads:
                if user.inputs[load.argument] is node:
                    requests = self._requests[user]
                    found += requests if load.here else [_through(user, load, request) for request in requests]
        return found if len(found) < 2 else list(dict.fromkeys(found))

    def asks_for_all(self, node: Node) -> bool:
        """Tell whether the nodes here are sure to ask for every element of an input, however often."""
        whole = {self.result, *self.further}
        for member, form in self.forms.items():
            if member in whole:
                whole.update([x for x in member.inputs if reads_all(member, form, x)])
        return node in whole

    def times(self, requests: Iterable[Request]) -> int:
        """Count how often these are computed."""
        places = {(d.at, None if self._is_of_row(d) else (d.scope,)) for d in requests}
        return sum([self.row_count if scope is None else self._points_in(scope[0]) for _, scope in places])

    def _points_in(self, scope: Scope) -> int:
        if scope is None:
            return self.points
        form = self.forms[scope]
        folded = max([load.folded for load in form.loads], default=1)
        if scope is self.anchor:
            return max([load.times for load in form.loads], default=1)
        return self.row_count * folded

    def _is_of_row(self, request: Request) -> bool:
        axes = None if self.rows is None else _axes(request)
        return axes is not None and self.rows is not None and axes <= self.rows

    # ---- growing
    def folds_with(self, node: Node, requests: list[Request]) -> bool:
        """Tell whether a fold would lie along the rows, one for each."""
        if self.anchor is not None or len({request.at for request in requests}) != 1:
            return False
        axes = _axes(requests[0])
        if axes is None or not all(isinstance(axis, int) for axis in axes):
            return False
        return (self.rows is None or self.rows == axes) and prod([self._lengths[a] for a in axes]) == prod(
            node.spec.static_shape)

    @property
    def takes_anchors(self) -> bool:
        """True if a node that goes through loops of its own may compute what the result needs, point by point."""
        return self.anchor is None and self.rows is None

    def is_whole(self, node: Node, requests: list[Request]) -> bool:
        """Tell whether just the elements of a node are asked for that have the places of the result's."""
        return requests == self._requests[self.result] and node.shape == self.result.shape

    def place_of(self, node: Node, form: Form, requests: list[Request]) -> Place | Literal[False]:
        """Find where all elements of a node are computed, each once; False if nowhere."""
        if self.anchor is not None:
            return tuple(range(len(self.shape))) if self.is_whole(node, requests) else False
        rows = _axes(requests[0]) if form.kind is Kind.FOLD else self.rows
        found = [place for request in requests if (place := self._place(node, request, rows)) is not False]
        return next((place for place in found if place is not ON_THE_WAY), found[0] if found else False)

    def _place(self, node: Node, request: Request, rows: frozenset[Any] | None) -> Place | Literal[False]:
        """Tell the place of a request if it asks for all elements of a node, each once."""
        axes: list[Any] = []
        for n, index in zip(node.spec.static_shape, request.at, strict=True):
            if n == 1:
                axes.append(0)
            elif index is None or index[0] != 0 or len(index[1]) != 1:
                return False
            else:
                ((axis, coefficient),) = index[1]
                if coefficient != 1 or self._lengths.get(axis) != n:
                    return False
                axes.append(axis)
        long = [axis for n, axis in zip(node.spec.static_shape, axes, strict=True) if n != 1]
        along = frozenset(long)
        if len(along) != len(long):
            return False
        if along == rows or (request.scope is None and along == {a for a in self._lengths if isinstance(a, int)}):
            return tuple(axes)
        fold = {axis for axis in self._lengths if isinstance(axis, tuple) and axis[0] is request.scope}
        return ON_THE_WAY if rows is not None and fold and along == rows | fold else False

    def add(self, node: Node, form: Form, requests: list[Request]) -> None:
        self.forms[node] = form
        self._requests[node] = requests
        del self.inputs[node]
        for x in dict.fromkeys(node.inputs):
            if x not in self.forms:
                self.inputs[x] = (*self.inputs.get(x, ()), node)
        if form.kind is Kind.FOLD:
            self._fold_along(node, form, requests[0])
        elif form.kind is Kind.ANCHOR:
            self.anchor = node

    def axes_of(self, node: Node) -> list[Any]:
        """The axis along which each dimension of a node here is asked for first, 0 for those of length 1."""
        return [next((axis for axis, _ in index[1]), 0) if index else 0 for index in self._requests[node][0].at]

    def begin(self, node: Node, form: Form, axes: Sequence[Any]) -> Place | Literal[False]:
        """Add a node that nothing here reads, along some axes of the result; tells its place."""
        requests = [Request(tuple([(0, frozenset([(axis, 1)] if n != 1 else []))
                                   for n, axis in zip(node.spec.static_shape, axes, strict=True)]), None)]
        place = self.place_of(node, form, requests)
        self.inputs[node] = ()
        self.add(node, form, requests)
        return place

    def length(self, axis: Any) -> int:
        """The length of an axis of the result or of a fold."""
        return self._lengths.get(axis, 1)

    def copy(self) -> Cluster:
        """A cluster that grows by itself."""
        other = copy(self)
        other.forms, other.further, other.inputs = dict(self.forms), dict(self.further), dict(self.inputs)
        other._lengths, other._requests = dict(self._lengths), dict(self._requests)
        return other

    def _fold_along(self, node: Node, form: Form, request: Request) -> None:
        axes = _axes(request)
        assert axes is not None
        self.rows, self.row_count = axes, prod([self._lengths[axis] for axis in axes])
        for k, n in {(k, n) for load in form.loads for k, n in enumerate(load.stage or ()) if n != 1}:
            if self._lengths.setdefault((node, k), n) != n:
                self._lengths[node, k] = 0  # it goes through several stages

    def remove(self, node: Node) -> None:
        """Take out a node none of whose inputs is here."""
        del self.forms[node], self._requests[node]
        readers = {x: tuple([member for member in self.forms if x in member.inputs]) for x in (*self.inputs, node)}
        self.inputs = {x: members for x, members in readers.items() if members}


def reads_all(node: Node, form: Form, x: Node) -> bool:
    """Tell whether a node is sure to read every element of an operand, if every one of its own is asked for."""
    if node.op.source is not None:  # only slices leave some out
        return bool(prod(node.spec.static_shape) >= prod(x.spec.static_shape))
    return any(_reaches_all(load, node, x) for load in form.loads if node.inputs[load.argument] is x)


def _reaches_all(load: Load, node: Node, x: Node) -> bool:
    lengths = dict(enumerate((*node.spec.static_shape, *(load.stage or ()))))
    for n, index in zip(x.spec.static_shape, load.at, strict=True):
        if n == 1:
            continue
        if index is None or index[0] or len(index[1]) != 1:
            return False
        ((axis, coefficient),) = index[1]
        if coefficient != 1 or lengths.pop(axis, None) != n:
            return False
    return True


def _through(user: Node, load: Load, request: Request) -> Request:
    """Turn a request for an element of a node into one for what it reads."""
    rank = user.ndim
    at = tuple([_substituted(index, request.at, rank, user) for index in load.at])
    return Request(at, user if load.folded else request.scope)


_NO_AXES: frozenset[tuple[Any, int]] = frozenset()


def _substituted(index: Affine, at: tuple[Position, ...], rank: int, fold: Node) -> Position:
    """An index over the axes of a node, and of its fold, as one over the axes that the node is asked for along."""
    if index is None:
        return None
    offset, terms = index
    if not terms:
        return offset, _NO_AXES
    if not offset and len(terms) == 1 and terms[0][1] == 1:
        axis = terms[0][0]
        return at[axis] if axis < rank else (0, frozenset([((fold, axis - rank), 1)]))
    total = dict[Any, int]()
    for axis, coefficient in terms:
        inner = (0, (((fold, axis - rank), 1),)) if axis >= rank else at[axis]
        if inner is None:
            return None
        offset += coefficient * inner[0]
        for a, c in inner[1]:
            total[a] = total.get(a, 0) + coefficient * c
    return offset, frozenset([(a, c) for a, c in total.items() if c])


def _axes(request: Request) -> frozenset[Any] | None:
    """The axes that an element lies along; None where they are not known."""
    axes = []
    for index in request.at:
        if index is None:
            return None
        for axis, _ in index[1]:
            axes.append(axis)
    return frozenset(axes)
