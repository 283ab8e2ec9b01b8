"""Decision trees as tables, from the attributes of the operators that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnc_core.base.errors import AttributeValueError
from nnc_core.io.onnx.reading.lanes import Host

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""Comparisons of a branch by their numbers."""
MEMBER = MODES.index("BRANCH_MEMBER")
LEAF = "LEAF"


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose branches are numbered first and whose leaves come behind; a row for each of them."""

    features: Host  # int64[branches]: the feature that a branch looks at
    modes: Host  # int64[branches]: how it is compared, a number of MODES
    splits: Host  # float[branches]: with what
    missing: Host  # bool[branches]: where NaN goes
    children: Host  # int64[branches + leaves, 2]: the next one where that is false, and true; a leaf's is itself
    roots: Host  # int64[trees]
    members: Host | None  # float[branches, largest set]: with what a MEMBER is compared, filled with NaN
    depth: int  # branches on the longest way

    @property
    def branches(self) -> int:
        return len(self.modes)


def forest(*, features: Any, modes: Any, splits: Any, missing: Any, false: Any, true: Any, roots: Any, leaves: int,
           members: Any = None) -> Forest:
    """Trees of these branches, `leaves` behind them.  Raises AttributeValueError for those that have no end, or lead to
    where nothing is."""
    count = len(modes)
    lengths = {len(x) for x in (features, modes, splits, false, true)}
    if lengths != {count}:
        raise AttributeValueError(f"the branches' attributes have {', '.join(map(str, sorted(lengths)))} elements")
    ends = np.repeat(count + np.arange(leaves), 2).reshape(leaves, 2)
    children = np.concatenate([np.stack([false, true], 1).reshape(count, 2), ends]).astype(np.int64)
    starts = np.asarray(roots, np.int64)
    for numbers, limit in ((children, count + leaves), (starts, count + leaves), (np.asarray(features), None)):
        if numbers.size and (numbers.min() < 0 or (limit is not None and numbers.max() >= limit)):
            raise AttributeValueError("a branch leads to a node that is not there, or looks at a feature below 0")
    kinds = np.asarray(modes, np.int64)
    if count and not 0 <= kinds.min() <= kinds.max() < len(MODES):
        raise AttributeValueError(f"modes {kinds.min()} to {kinds.max()} are no numbers of {', '.join(MODES)}")
    if missing is not None and len(missing) not in (0, count):
        raise AttributeValueError(f"{len(missing)} branches say where NaN goes, of {count}")
    gone = np.zeros(count, bool) if missing is None or not len(missing) else np.asarray(missing, bool)
    return Forest(np.asarray(features, np.int64), kinds, np.asarray(splits), gone, children, starts,
                  _sets(kinds, members), _depth(children, starts, count))


def _depth(children: Host, roots: Host, branches: int) -> int:
    depth, here = 0, np.unique(roots[roots < branches])
    while here.size:
        depth += 1
        if depth > branches:
            raise AttributeValueError("the branches of a tree go in a circle")
        here = np.unique(children[here])
        here = here[here < branches]
    return depth


def _sets(modes: Host, members: Any) -> Host | None:
    """Sets of members, each ended by NaN, as rows of the branches that compare with them."""
    where = np.flatnonzero(modes == MEMBER)
    if not where.size:
        return None
    listed = np.asarray(() if members is None else members)
    ends = np.flatnonzero(np.isnan(listed))
    if len(ends) != len(where):
        raise AttributeValueError(f"{len(ends)} sets of members for {len(where)} branches that need one")
    sets = np.split(listed, ends + 1)
    table = np.full((len(modes), max(len(s) for s in sets)), np.nan, listed.dtype)
    for row, found in zip(where, sets, strict=False):
        table[row, :len(found)] = found
    return table


@dataclass(frozen=True, eq=False)
class Numbering:
    """Nodes that are named by tree and number, as branches and leaves."""

    places: Mapping[tuple[int, int], int]  # branches first
    branches: Sequence[int]  # their positions among all nodes
    leaves: int

    def leaf(self, tree: int, node: int) -> int:
        """The number of a leaf among leaves."""
        place = self.places.get((tree, node), -1) - len(self.branches)
        if place < 0:
            raise AttributeValueError(f"node {node} of tree {tree} has a weight, but is no leaf")
        return place


def by_tree(*, trees: Sequence[int], nodes: Sequence[int], modes: Sequence[str], features: Sequence[int], splits: Any,
            missing: Sequence[int] | None, false: Sequence[int], true: Sequence[int]) -> tuple[Forest, Numbering]:
    """Trees whose branches and leaves are named by tree and number; the first of each tree is its root."""
    branches = [i for i, mode in enumerate(modes) if mode != LEAF]
    leaves = [i for i, mode in enumerate(modes) if mode == LEAF]
    unknown = {modes[i] for i in branches} - set(MODES)
    if unknown:
        raise AttributeValueError(f"mode {min(unknown)!r} is none of {', '.join((*MODES, LEAF))}")
    names = list(zip(trees, nodes, strict=True))
    numbering = Numbering({names[i]: k for k, i in enumerate((*branches, *leaves))}, branches, len(leaves))
    firsts: dict[int, int] = {}
    for tree, name in zip(trees, names, strict=True):
        firsts.setdefault(tree, numbering.places[name])

    def led(to: Sequence[int]) -> list[int]:
        return [numbering.places.get((trees[i], to[i]), -1) for i in branches]

    def at_branches(values: Any) -> Any:
        return [values[i] for i in branches]

    made = forest(features=at_branches(features), modes=[MODES.index(modes[i]) for i in branches],
                  splits=np.asarray(splits)[branches], missing=at_branches(missing) if missing else None,
                  false=led(false), true=led(true), roots=list(firsts.values()), leaves=len(leaves))
    return made, numbering
