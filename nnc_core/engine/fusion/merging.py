"""Clusters that go through the same values along the same rows, made one: what both read is read once."""

from __future__ import annotations

from math import prod
from typing import Any

from nnc_core.engine.fusion.cluster import Cluster, Position, Request
from nnc_core.operator.form import Kind
from nnc_core.symbol import Node
from nnc_core.type import TupleSpec


def is_small(node: Node) -> bool:
    """True for what is hardly worth reading once instead of twice: sizes, rates, counts."""
    return isinstance(node.spec, TupleSpec) or prod([n for n in node.shape if isinstance(n, int)]) == 1


def goes_through(cluster: Cluster, node: Node) -> bool:
    """Tell whether a cluster with rows reads a node along more than these."""
    if cluster.rows is None or cluster.anchor is not None:
        return False
    return any(_goes_through_rows(request, cluster) for request in cluster.requests_of(node))


def merged(host: Cluster, guest: Cluster, node: Node) -> Cluster | None:
    """Both clusters as one with the host's result, if they go through a node in the same rows; None where they do not.
    Neither may read what the other computes."""
    axes = _shared_axes(host, guest, node)
    if axes is None:
        return None
    grown = host.copy()
    for member, form in guest.forms.items():
        if member not in grown.inputs:  # a result of the guest that it does not read itself
            place = grown.begin(member, form, [axes.get(axis, 0) for axis in guest.axes_of(member)])
        else:
            requests = grown.requests_of(member)
            if form.kind is Kind.FOLD and not grown.folds_with(member, requests):
                return None
            place = grown.place_of(member, form, requests) if member in guest.further else ()
            grown.add(member, form, requests)
        if place is False:
            return None
        if member is guest.result or member in guest.further:
            grown.further = {member: place, **grown.further}
    return grown


def _shared_axes(host: Cluster, guest: Cluster, node: Node) -> dict[Any, Any] | None:
    """The host's axis for each of the guest's axes along which both read a node."""
    given = host.requests_of(node)
    for theirs in guest.requests_of(node):
        for ours in given:
            found = _matched(host, guest, theirs, ours)
            if found is not None and frozenset([found.get(axis) for axis in guest.rows or ()]) == host.rows and all(
                    isinstance(found.get(axis), int) for axis in guest.inner):
                return found
    return None


def _matched(host: Cluster, guest: Cluster, theirs: Request, ours: Request) -> dict[Any, Any] | None:
    if not _goes_through_rows(theirs, guest):
        return None
    if host.shape == guest.shape and list(map(_nameless, theirs.at)) == list(map(_nameless, ours.at)):
        return {axis: axis for axis in range(len(host.shape))}
    found: dict[Any, Any] = {}
    for mine, other in zip(theirs.at, ours.at, strict=True):
        one, two = _only_axis(mine), _only_axis(other)
        if mine != other and (one is None or two is None or guest.length(one) != host.length(two)):
            return None
        if one is not None and two is not None:
            found[one] = two
    return found


def _goes_through_rows(request: Request, cluster: Cluster) -> bool:
    """Tell whether something is read along more than the rows."""
    rows = cluster.rows or ()
    return any([axis not in rows for index in request.at if index is not None for axis, _ in index[1]])


def _nameless(index: Position) -> Any:
    """An index without the names of folds."""
    if index is None:
        return None
    return index[0], frozenset([(a if isinstance(a, int) else a[1:], c) for a, c in index[1]])


def _only_axis(index: Position) -> Any:
    """The axis whose position an index is; None if it is anything else."""
    if index is None or index[0] != 0 or len(index[1]) != 1:
        return None
    ((axis, coefficient),) = index[1]
    return axis if coefficient == 1 else None
