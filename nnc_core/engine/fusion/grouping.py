"""Clusters of nodes that become one command: a node joins one that reads it, if fewer bytes are moved.

Nodes are taken from the outputs back.  Where everything that reads a node is in one cluster, no way leads out of that
and back, whatever joins.  Where others read it as well, the cluster gives it to them, if none of them leads there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TypeAlias

from nnc_core.base.config import config
from nnc_core.device import NOTES
from nnc_core.engine.decide import Decider
from nnc_core.engine.fusion.cluster import Cluster, Request
from nnc_core.engine.fusion.cost import pays
from nnc_core.engine.fusion.merging import goes_through, is_small, merged
from nnc_core.engine.fusion.ways import Ways, in_order
from nnc_core.engine.fusion.writing import Programs, ProgramWriter
from nnc_core.engine.groups import COPY, LEAVES, NodeGroup, is_number
from nnc_core.operator.control import PICK
from nnc_core.operator.form import Form, Kind, form_of
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import ON_THE_WAY, Program
from nnc_core.symbol import Node
from nnc_core.type import Attributes, Op, TensorSpec, TupleSpec, is_static

MOST_STEPS = 64
MOST_INPUTS = 24
MOST_RESULTS = 16
MOST_TRIED = 8
"""Other clusters that one is tried to be merged with: a weight may have thousands of readers."""

NEAR = 16
"""Nodes between two results that are wanted at about the same time."""
MUCH = 8
"""Results are little that take less than one part in so many of what is read."""

OPAQUE = Form(Kind.OPAQUE)
PLACED = frozenset({"concat", "update_slice", "put_row", "scatter"})
"""Operators whose parts the planner lays where they are wanted, so that little or nothing is moved."""

NodeKind: TypeAlias = "tuple[Op, Attributes, tuple[TensorSpec, ...], TensorSpec]"
"""All that the form of a node, and the code that it has alone, depend on."""


class Grouping:
    """The clusters of a graph."""

    def __init__(self, nodes: Sequence[Node], outputs: Iterable[Node], decider: Decider,
                 programs: Programs, taken: Mapping[Node, Sequence[NodeGroup] | None] | None = None) -> None:
        """`taken` are nodes that are grouped already: by their last results, None for the others."""
        self.nodes, self.decider, self.programs, self.taken = nodes, decider, programs, taken or {}
        self.position = {node: n for n, node in enumerate(nodes)}
        self.users: dict[Node, list[Node]] = {}
        for node in nodes:
            for x in dict.fromkeys(node.inputs):
                self.users.setdefault(x, []).append(node)
        self.outputs = set(outputs)
        self.apart = decider.device.library_functions if config.deterministic else frozenset()
        """Instructions whose bits may depend on what is beside them."""
        self.notes = NOTES in decider.device.spec.features
        self.cluster: dict[Node, Cluster] = {}
        self._first: dict[NodeKind, Node] = {}
        """Of each kind one node, in whose place the others are asked about."""
        self._like: dict[Node, Node] = {}
        """The node of its kind that stands for it."""
        self._forms: dict[Node, Form] = {}
        self._joined: dict[Node, None] = {}
        """Those that are among others in a command."""
        self.ways = Ways(len(nodes))

    def groups(self) -> list[NodeGroup]:
        """A group for each cluster and for each node by itself, inputs first."""
        for node in reversed(self.nodes):
            if not is_number(node):
                self._merge_readers(node)
                if node.op not in LEAVES:
                    self._place(node)
        made: dict[Node, Sequence[NodeGroup]] = {}
        for grown in dict.fromkeys(self.cluster.values()):
            self._leave_views(grown)
            if len(grown.forms) > 1:
                made |= dict.fromkeys(grown.forms, self._group(grown))
        for node in self.nodes:
            if node not in made and node.op not in LEAVES and not is_number(node):
                own = self.taken[node] if node in self.taken else [NodeGroup.of(node)]
                if own is not None:
                    made[node] = own
        self.decider.generate(self._joined)
        return in_order({node: made[node] for node in self.nodes if node in made})

    def _place(self, node: Node) -> None:
        """Let a node join a cluster that reads it, or begin one."""
        form, users = self._form(node), self.users.get(node, ())
        if form.kind is not Kind.OPAQUE and node not in self.taken:
            for cluster in dict.fromkeys([self.cluster[user] for user in users if user in self.cluster]):
                if self._joins(node, form, cluster):
                    self.cluster[node] = cluster
                    self.ways.join(node, cluster.result, users)
                    return
            if node.op.view is None or node.op is COPY:  # a view that nobody takes in costs nothing
                self.cluster[node] = Cluster(node, form)
        self.ways.add(node, users)

    def _merge_readers(self, node: Node) -> None:
        """Make clusters one that go through the same rows of a node, if neither waits for the other."""
        users = self.users.get(node, ())
        if len(users) < 2:
            return
        clusters = dict.fromkeys([self.cluster[user] for user in users if user in self.cluster])
        if len(clusters) < 2 or is_small(node):
            return
        kept: list[Cluster] = []
        for cluster in [cluster for cluster in clusters if goes_through(cluster, node)]:
            for k in range(max(0, len(kept) - MOST_TRIED), len(kept)):
                both = self._merged(kept[k], cluster, node)
                if both is not None:
                    kept[k] = both
                    break
            else:
                kept.append(cluster)

    def _merged(self, one: Cluster, other: Cluster, node: Node) -> Cluster | None:
        steps, results = len(one.forms) + len(other.forms), len(one.results) + len(other.results)
        if steps > MOST_STEPS or len(one.inputs | other.inputs) > MOST_INPUTS or results > MOST_RESULTS:
            return None
        if self.ways.lead([one.result], other.result) or self.ways.lead([other.result], one.result):
            return None
        if self._waits_long(one, other, node):
            return None
        host, guest = (other, one) if other.inner and not one.inner else (one, other)
        both = merged(host, guest, node)
        if both is not None:
            self.ways.merge(host.result, guest.result, guest.forms)
            self.cluster |= dict.fromkeys(both.forms, both)
        return both

    def _waits_long(self, one: Cluster, other: Cluster, node: Node) -> bool:
        """Tell whether results would lie in memory for long before anything wants them, and be much beside what is
        read once less: as those of the way back, were they computed on the way forward.  Where what is read would lie
        there for their sake alone, they take its place."""
        first, later = sorted([one, other], key=lambda cluster: self.position[cluster.result])
        far = self.position[later.result] - self.position[first.result] > NEAR
        size = sum([x.spec.nbytes for x in later.results])
        much = size * 2 > node.spec.nbytes or (size * MUCH > node.spec.nbytes and self._is_kept(node, first, later))
        return far and much

    def _is_kept(self, node: Node, first: Cluster, later: Cluster) -> bool:
        """Tell whether a value is wanted by others too when two clusters have read it."""
        end = self.position[first.result] + NEAR
        return node in self.outputs or node.op in LEAVES or any(
            x not in first.forms and x not in later.forms and self.position[x] > end for x in self.users[node])

    def _form(self, node: Node) -> Form:
        first = self._like.get(node)
        if first is None:
            kind = node.op, node.attributes, tuple([x.spec for x in node.inputs]), node.spec
            first = self._like[node] = self._first.setdefault(kind, node)
            if first is node:
                self._forms[node] = self._form_of_kind(node)
        return self._forms[first]

    def _form_of_kind(self, node: Node) -> Form:
        several = any(isinstance(x.spec, TupleSpec) for x in (node, *node.inputs))
        if several or node.op is PICK or node.op.name in PLACED:
            return OPAQUE
        if not all(is_static(x.shape) and 0 not in x.shape for x in (node, *node.inputs)):
            return OPAQUE
        specs = tuple([x.spec for x in node.inputs])
        form = form_of(node.op, specs, node.attributes, node.spec)
        if not self.apart.isdisjoint(form.operations):
            return OPAQUE
        alone = form.kind is Kind.OPAQUE or node.op.source is not None
        return form if alone or self.decider.is_generated(node) else OPAQUE

    def _joins(self, node: Node, form: Form, cluster: Cluster) -> bool:
        if not self._has_room(node, cluster):
            return False
        requests = cluster.requests_of(node)
        whole = cluster.is_whole(node, requests)
        others = [user for user in self.users.get(node, ()) if self.cluster.get(user) is not cluster]
        given = bool(others) or node in self.outputs
        if form.kind is Kind.POINTWISE and cluster.rows is None and not whole and (
                given or not pays(node, form, cluster, requests, given=False, whole=False)):
            if not self._follows_a_fold(node):
                return False
            form = form._replace(kind=Kind.FOLD)  # it is computed once for each row, with the fold
        if not _fits(node, form, cluster, requests, whole):
            return False
        if not pays(node, form, cluster, requests, given=given, whole=whole):
            return False
        if self._leaves_more(node, cluster, requests):
            return False
        if given and not self._is_given(node, form, cluster, requests, others):
            return False
        cluster.add(node, form, requests)
        return True

    def _has_room(self, node: Node, cluster: Cluster) -> bool:
        """Tell whether a command may have one more step and its inputs, and misses no index by it."""
        new = [x for x in node.inputs if x not in cluster.inputs and not is_number(x)]
        if len(cluster.forms) >= MOST_STEPS or len(cluster.inputs) - 1 + len(new) > MOST_INPUTS:
            return False
        # an index that nobody asks for is to be looked at all the same
        return not (node.op.notes and self.notes) or cluster.asks_for_all(node)

    def _leaves_more(self, node: Node, cluster: Cluster, requests: list[Request]) -> bool:
        """Tell whether a node would leave more bytes behind than it has: what it alone reads, and what costs too much
        to be computed wherever the node is, as random bits do beside a mask."""
        spec = node.spec
        for x in node.inputs:
            if x.op in LEAVES or x.spec.shape != spec.shape or x.spec.dtype.itemsize <= spec.dtype.itemsize:
                continue
            if len(self.users[x]) > 1 or x not in self.position or x in self.taken:
                continue
            form, whole = self._form(x), cluster.is_whole(x, requests)
            if form.kind is Kind.POINTWISE and not pays(x, form, cluster, requests, given=False, whole=whole):
                return True
        return False

    def _is_given(self, node: Node, form: Form, cluster: Cluster, requests: list[Request], others: list[Node]) -> bool:
        """Let a cluster give the value of a node as well, if it goes through all of it."""
        place = cluster.place_of(node, form, requests)
        if place is False or (node.op.view is not None and node.op is not COPY):
            return False
        if len(cluster.further) >= MOST_RESULTS or self.ways.lead(others, cluster.result):
            return False
        if place is ON_THE_WAY and self._follows_a_fold(node):
            return False
        cluster.further = {node: place, **cluster.further}
        return True

    def _follows_a_fold(self, node: Node) -> bool:
        """Tell whether a value is computed where a product stores its result, which no other fold can take in."""
        waiting, size = [node], prod(node.spec.static_shape)
        while waiting:
            user = waiting.pop()
            for x in user.inputs:
                if x in self.position and len(self.users[x]) == 1 and prod(x.spec.static_shape) == size:
                    kind = OPAQUE.kind if x.op in LEAVES else self._form(x).kind
                    if kind in (Kind.FOLD, Kind.ANCHOR):
                        return True
                    if kind is Kind.POINTWISE:
                        waiting.append(x)
        return False

    # ---- writing groups
    def _group(self, cluster: Cluster) -> list[NodeGroup]:
        """The groups of a cluster, inputs first."""
        members = sorted(cluster.forms, key=self.position.__getitem__)
        found, inputs = self._program(members, cluster)
        program = self.programs.own(found)
        if program is None:
            return self._halves(members)
        self._joined |= dict.fromkeys([self._like[x] for x in members])
        lines = tuple([x.line for x in members])
        if not cluster.further:
            return [NodeGroup(FUSED, inputs, (program,), cluster.result, lines)]
        results = cluster.results
        several = Node(FUSED, inputs, (program,), TupleSpec(tuple([x.spec for x in results])), cluster.result.line)
        picked = [NodeGroup(PICK, (several,), (k,), x) for k, x in enumerate(results)]
        return [NodeGroup(FUSED, inputs, (program,), several, lines), *picked]

    def _program(self, members: Sequence[Node], cluster: Cluster) -> tuple[Program, tuple[Node, ...]]:
        """The program of a cluster, and the nodes that are its inputs."""
        writer = ProgramWriter(self.programs, members)
        places, whole = tuple(cluster.further.values()), tuple(range(len(cluster.shape)))
        program = writer.program(cluster.results, inner=cluster.inner, anchor=cluster.anchor,
                                 places=() if all(place == whole for place in places) else places)
        return program, tuple(writer.inputs)

    def _halves(self, members: Sequence[Node]) -> list[NodeGroup]:
        """The groups of the first half of a cluster's members, then of the second, which no way leads back from."""
        half = len(members) // 2
        found: list[NodeGroup] = []
        for part in (members[:half], members[half:]):
            own = set(part)
            given = [x for x in part if x in self.outputs or not own.issuperset(self.users.get(x, ()))]
            found += Grouping(part, given, self.decider, self.programs).groups()
        return found

    def _leave_views(self, cluster: Cluster) -> None:
        """Views of inputs stay outside: they cost nothing there."""
        changed = True
        while changed:
            changed = False
            for node in list(cluster.forms):
                given = node is cluster.result or node in cluster.further
                if node.op.source is not None and node.op.scalar is None and not given and not any(
                        x in cluster.forms for x in node.inputs):
                    cluster.remove(node)
                    del self.cluster[node]
                    changed = True


def _fits(node: Node, form: Form, cluster: Cluster, requests: list[Request], whole: bool) -> bool:
    """Tell whether the nest of a cluster has a place for what a node folds, or for its own loops."""
    if form.kind is Kind.FOLD:
        return cluster.folds_with(node, requests)
    return form.kind is not Kind.ANCHOR or (whole and cluster.takes_anchors)
