"""Rewrites that ask who else reads a node go down a whole chain in one walk."""

from __future__ import annotations

from typing import Any

import pytest

from nnc_core.optimiser import Optimiser
from nnc_core.symbol import Node, postorder
from tests.graph.stack import OPTIMISER
from tests.optimiser.helpers import placeholders

LENGTH = 12
HOW: dict[str, Any] = {"strides": (1, 1), "padding": ((1, 1), (1, 1)), "dilation": (1, 1), "groups": 1,
                       "layout": "NHWC"}


class Counting(Optimiser):
    """Counts walks over the graph."""

    def __init__(self) -> None:
        super().__init__(OPTIMISER.operator)
        self.walks = 0

    def _rebuilt(self, *args: Any) -> list[Node]:
        self.walks += 1
        return super()._rebuilt(*args)


def chain(length: int) -> Node:
    """Convolutions, each of which is scaled by channel."""
    F, (x, *rest) = placeholders(["float32 1 8 8 4", *["float32 3 3 4 4", "float32 4"] * length])
    for kernel, scale in zip(rest[::2], rest[1::2], strict=True):
        x = F.relu(F.multiply(F.conv(x, kernel, **HOW), scale))
    return x


@pytest.mark.parametrize("length", [1, LENGTH])
def test_a_chain_of_scaled_convolutions_takes_as_many_walks_as_one(length: int) -> None:
    counting = Counting()
    (found,) = counting.run([chain(length)])
    convolutions = [node for node in postorder([found]) if node.op.name == "conv"]
    assert len(convolutions) == length
    assert all(node.inputs[1].op.name == "multiply" for node in convolutions), "kernels are scaled, not images"
    one = Counting()
    one.run([chain(1)])
    assert counting.walks == one.walks


def test_what_two_read_stays_whole() -> None:
    F, (x, kernel, scale) = placeholders(["float32 1 8 8 4", "float32 3 3 4 4", "float32 4"])
    conv = F.conv(x, kernel, **HOW)
    found = OPTIMISER.run([F.multiply(F.multiply(conv, 1.0), scale), F.tanh(F.add(conv, 0.0))])
    convolutions = [node for node in postorder(found) if node.op.name == "conv"]
    assert len(convolutions) == 1
    assert convolutions[0].inputs[1] is kernel
