"""The table of our operators: said by nodes of ONNX, or in other operators of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from nnc_core.io.onnx.writing.held import Held
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.io.onnx.writing.writer import NodeWriter

Written: TypeAlias = "str | Held | tuple[Any, ...]"
"""The name of a value, how it is held, or a tuple of these for an operator of several results."""
Write: TypeAlias = "Callable[[NodeWriter, Node], Written]"
Fits: TypeAlias = Callable[[Node], bool]
Phrase: TypeAlias = Callable[..., Any]
"""(F, *inputs, *attributes) -> the same in other operators; None where it cannot be said so."""


class WritingRule(NamedTuple):
    """Writes the nodes that it fits."""

    write: Write
    fits: Fits


WRITERS: dict[str, WritingRule] = {}
"""Rules by the names of our operators."""
PHRASES: dict[str, Phrase] = {}
"""Other operators in place of one that no rule fits."""


def always(node: Node) -> bool:
    """Fit every node."""
    return True


def writes(*names: str, fits: Fits = always) -> Callable[[Write], Write]:
    """Declare how operators are written, or those of their nodes that fit."""

    def declare(write: Write) -> Write:
        WRITERS.update({name: WritingRule(write, fits) for name in names})
        return write

    return declare


def says(*names: str) -> Callable[[Phrase], Phrase]:
    """Declare the operators that stand for others."""

    def declare(phrase: Phrase) -> Phrase:
        PHRASES.update({name: phrase for name in names})
        return phrase

    return declare
