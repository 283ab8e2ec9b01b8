"""The registry of rewrites: each has a name, tags and the operators whose nodes it looks at."""

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


REWRITES: dict[str, Rewrite] = {}


def rewrite(name: str, *operators: str, tag: str, exact: bool = True, once: str = "") -> Callable[[Rule], Rule]:
    """Register a rewrite.  One that is not exact to the bit is left out under `config.deterministic`."""
    assert tag in TAGS and name not in REWRITES, name
    assert all(o in OPERATORS for o in operators), operators

    def register(rule: Rule) -> Rule:
        REWRITES[name] = Rewrite(name, operators, frozenset({tag}), exact, rule, once)
        return rule

    return register
