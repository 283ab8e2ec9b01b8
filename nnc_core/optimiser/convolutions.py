"""Scales and shifts of channels moved into convolutions: batch normalisation by known moments costs nothing then.

Only for convolutions that nothing else reads; elsewhere there would be two.
"""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.operator import CONSTANT, OPERATORS, Nodes
from nnc_core.optimiser.inspect import host_array, is_known
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.optimiser.rewriting import used_once
from nnc_core.shape.window import LAYOUTS, has_channels_last
from nnc_core.symbol import Literal, Node
from nnc_core.type import Op, is_static

CONV = OPERATORS["conv"]
SHIFTS = ("add", "subtract")


def _channels(conv: Node) -> int:
    return conv.ndim - 1 if has_channels_last(conv.attributes[-1]) else 1


def _by_channel(x: Node, conv: Node) -> bool:
    """True if x has one number for each channel, or one for all."""
    shape = (1,) * (conv.ndim - x.ndim) + tuple(x.shape)
    at = _channels(conv)
    return len(shape) == conv.ndim and all(n == 1 or (i == at and n == conv.shape[at]) for i, n in enumerate(shape))


def _scalable(F: Nodes, conv: Node, scale: Node) -> bool:
    """True if scaling the kernel is right and less work than scaling the images."""
    if conv.op is not CONV or conv.dtype not in (dt.float32, dt.float64) or not used_once(F, conv):
        return False
    kernel = conv.inputs[1]
    if not _by_channel(scale, conv) or not is_static(kernel.shape) or not is_static(conv.shape):
        return False
    return (is_known(kernel) and is_known(scale)) or prod(kernel.spec.static_shape) <= prod(conv.spec.static_shape)


@rewrite("scale-into-conv", "multiply", "divide", tag="fuse", exact=False, once="conv")
def scale_into_conv(F: Nodes, node: Node) -> Node | None:
    """conv(x, k) * s -> conv(x, k * s), for a number s for each channel of the result."""
    pairs = [node.inputs] if node.op.name == "divide" else [node.inputs, node.inputs[::-1]]
    for conv, scale in pairs:
        if _scalable(F, conv, scale):
            x, kernel = conv.inputs
            by = F.reshape(scale, shape=_of_kernel(scale, conv))
            return F.apply(CONV, (x, _scaled(F, node, kernel, by)), conv.attributes)
    return None


def _of_kernel(scale: Node, conv: Node) -> Any:
    """The shape in which numbers of channels meet the kernel."""
    count = prod(scale.spec.static_shape)
    if count == 1:
        return ()
    ones = (1,) * (conv.ndim - 1)
    return (*ones, count) if has_channels_last(conv.attributes[-1]) else (count, *ones)


def _scaled(F: Nodes, node: Node, kernel: Node, by: Node) -> Node:
    """Known kernels are scaled when they are read, however large: the scaled one takes the other's place."""
    found: Node = F.apply(node.op, (kernel, by), ())
    if found.inputs != (kernel, by) or not (is_known(kernel) and is_known(by)):
        return found
    sources = [kernel.attributes[0]] if kernel.op is CONSTANT and used_once(F, kernel) else []
    return F.constant(Literal.made(partial(_scaled_array, node.op, kernel, by), sources), kernel.spec)


def _scaled_array(op: Op, kernel: Node, by: Node) -> Any:
    assert op.reference is not None
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(op.reference(host_array(kernel), host_array(by)), kernel.dtype)


@rewrite("scale-past-shift", "multiply", "divide", tag="fuse", exact=False, once="conv")
def scale_past_shift(F: Nodes, node: Node) -> Node | None:
    """(conv(x, k) + m) * s -> conv(x, k) * s + m * s, so that the convolution is scaled."""
    pairs = [node.inputs] if node.op.name == "divide" else [node.inputs, node.inputs[::-1]]
    for shifted, scale in pairs:
        if shifted.op.name not in SHIFTS or not used_once(F, shifted):
            continue
        conv, shift = _parts(shifted)
        if _scalable(F, conv, scale) and _by_channel(shift, conv):
            moved = F.apply(node.op, (shift, scale), ())
            return F.apply(shifted.op, (F.apply(node.op, (conv, scale), ()), moved), ())
    return None


def _parts(shifted: Node) -> tuple[Node, Node]:
    """(a convolution, what is added to it or subtracted)"""
    a, b = shifted.inputs
    return (b, a) if shifted.op.name == "add" and b.op is CONV else (a, b)


@rewrite("merge-shifts", *SHIFTS, tag="fuse", exact=False, once="conv")
def merge_shifts(F: Nodes, node: Node) -> Node | None:
    """(conv(x, k) - m) + b -> conv(x, k) + (b - m), for a number of each for each channel."""
    for shifted, last in [node.inputs] if node.op.name == "subtract" else [node.inputs, node.inputs[::-1]]:
        if shifted.op.name not in SHIFTS or not used_once(F, shifted):
            continue
        conv, first = _parts(shifted)
        if conv.op is CONV and last.op is not CONV and _by_channel(first, conv) and _by_channel(last, conv):
            signed = last if node.op.name == "add" else F.negative(last)
            return F.add(conv, (F.add if shifted.op.name == "add" else F.subtract)(signed, first))
    return None


@rewrite("transpose-into-conv", "permute", tag="layout", exact=False, once="conv")
def transpose_into_conv(F: Nodes, node: Node) -> Node | None:
    """A convolution of transposed images, transposed back, is one in their own layout, with its kernel transposed."""
    (conv,) = node.inputs
    if conv.op is not CONV or not used_once(F, conv) or conv.inputs[0].op.name != "permute":
        return None
    (images, kernel), (*how, layout) = conv.inputs, conv.attributes
    for other in LAYOUTS:
        if (len(other) == len(layout) and has_channels_last(other) != has_channels_last(layout)
                and node.attributes[0] == _order(layout, other) and images.attributes[0] == _order(other, layout)):
            turned = F.permute(kernel, axes=_kernel_order(conv.ndim, has_channels_last(other)))
            return F.apply(CONV, (images.inputs[0], turned), (*how, other))
    return None


def _order(before: str, after: str) -> tuple[int, ...]:
    """The axes that bring images from one layout into another."""
    return tuple(before.index(letter) for letter in after)


def _kernel_order(ndim: int, to_last: bool) -> tuple[int, ...]:
    """OIHW to HWIO, or back."""
    return (*range(2, ndim), 1, 0) if to_last else (ndim - 1, ndim - 2, *range(ndim - 2))


REWRITES = (scale_into_conv, scale_past_shift, merge_shifts, transpose_into_conv)
