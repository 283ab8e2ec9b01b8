"""The cost of computing a node where it is read, against a command of its own."""

from __future__ import annotations

from math import prod

from nnc_core.engine.fusion.cluster import Cluster, Request
from nnc_core.operator.form import Form, Kind
from nnc_core.symbol import Node

ADDITIONS_PER_BYTE = 4
"""What computing again may cost for each byte that is neither written nor read: processors do several times as much."""
SIDE_BY_SIDE = 256
"""Rows that are enough to keep a device busy."""
SMALL = 1 << 16
"""Points of a result for which starting a command costs more than computing them."""


def pays(node: Node, form: Form, cluster: Cluster, requests: list[Request], *, given: bool, whole: bool) -> bool:
    """Tell whether fewer bytes are moved for what is computed more than once, and enough is computed side by side.
    What is `given` is written all the same, and only not read again; `whole`: see `Cluster.is_whole`."""
    size = prod(node.spec.static_shape)
    if form.kind is Kind.FOLD:
        rows = size
        return rows == cluster.row_count or rows >= SIDE_BY_SIDE or cluster.points <= SMALL
    if form.scattered and (cluster.rows is not None or cluster.anchor is not None):
        return False  # a fold goes through its rows in another order than the indices, or several times
    if given and cluster.row_count < min(size, SIDE_BY_SIDE) and size > SMALL:
        return False
    again = 0 if whole else max(cluster.times(requests) - size, 0)
    loads = max(len(form.loads) - 1, 0)
    saved = (1 if given else 2) * node.spec.nbytes
    return bool(again * (form.weight + loads) <= saved * ADDITIONS_PER_BYTE)
