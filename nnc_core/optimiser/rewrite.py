"""A rewrite: a rule with a name, tags and the operators whose nodes it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.symbol import Node

Rule: TypeAlias = Callable[[Nodes, Node], "Node | None"]
TAGS = frozenset({"canonicalise", "simplify", "layout", "fold", "fuse", "stabilise", "recognise"})
"""Rewrites tagged "recognise" make composites: they have a pass of their own, before those are expanded."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """`rule` gives a node that equals its argument in every element and is simpler, or None where it does not apply.

    `once` names an operator if the rule asks whether one of its nodes is read once.
    """

    name: str
    operators: tuple[str, ...]
    tags: frozenset[str]
    exact: bool
    rule: Rule
    once: str = ""


def rewrite(name: str, *operators: str, tag: str, exact: bool = True, once: str = "") -> Callable[[Rule], Rewrite]:
    """Make a rewrite of a rule; the module lists it in its REWRITES.

    One that is not exact to the bit is left out under `config.deterministic`.
    """
    assert tag in TAGS, name
    assert all(o in OPERATORS for o in operators), operators
    return lambda rule: Rewrite(name, operators, frozenset({tag}), exact, rule, once)
