"""Movements that cancel, compose or disappear into what follows them."""

from __future__ import annotations

from typing import Any

from nnc_core.operator import OPERATORS, Nodes
from nnc_core.optimiser.inspect import BROADCAST, FILLED
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.symbol import Node, Number

ELEMENTWISE = tuple(o.name for o in OPERATORS.values() if o.elementwise and len(o.inputs) > 1)


@rewrite("reshape-again", "reshape", tag="layout")
def reshape_again(F: Nodes, node: Node) -> Node | None:
    """reshape(reshape(x)) -> reshape(x); to its own shape -> x."""
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    return F.reshape(x.inputs[0], shape=node.shape) if x.op is node.op else None


@rewrite("permute-again", "permute", tag="layout")
def permute_again(F: Nodes, node: Node) -> Node | None:
    """Permutations compose; the identity permutation is nothing."""
    (x,) = node.inputs
    axes: Any = node.attributes[0]
    if axes == tuple(range(len(axes))):
        return x
    if x.op is not node.op:
        return None
    first: Any = x.attributes[0]
    return F.permute(x.inputs[0], axes=tuple(first[a] for a in axes))


@rewrite("broadcast-again", "broadcast_to", tag="layout")
def broadcast_again(F: Nodes, node: Node) -> Node | None:
    """broadcast(broadcast(x)) -> broadcast(x); to its own shape -> x."""
    (x,) = node.inputs
    if x.shape == node.shape:
        return x
    return F.broadcast_to(x.inputs[0], shape=node.shape) if x.op is node.op else None


@rewrite("slice-again", "slice", tag="layout")
def slice_again(F: Nodes, node: Node) -> Node | None:
    """Slices compose; the whole is nothing."""
    (x,) = node.inputs
    start, _, step = node.attributes
    if x.shape == node.shape and all(k == 1 for k in step):
        return x
    if x.op is not node.op:
        return None
    low, _, by = x.attributes
    begin = tuple(a + b * k if n != 0 else a  # an empty slice may begin at the end, which has no place in x
                  for a, b, k, n in zip(low, start, by, node.shape, strict=True))
    steps = tuple(k * s for k, s in zip(by, step, strict=True))
    end = tuple(b + ((n - 1) * s + 1 if n != 0 else 0) for b, n, s in zip(begin, node.shape, steps, strict=True))
    return F.slice(x.inputs[0], start=begin, stop=end, step=steps)


@rewrite("flip-again", "flip", tag="layout")
def flip_again(F: Nodes, node: Node) -> Node | None:
    """Flips of the same axes cancel; a flip along no axis, or along axes of length one, is nothing."""
    (x,) = node.inputs
    axes: Any = node.attributes[0]
    if all(x.shape[a] == 1 for a in axes):
        return x
    if x.op is not node.op:
        return None
    left = set(axes) ^ set(x.attributes[0])
    return F.flip(x.inputs[0], axes=tuple(sorted(left)))


@rewrite("pad-nothing", "pad", tag="layout")
def pad_nothing(F: Nodes, node: Node) -> Node | None:
    """Padding by nothing is the value itself."""
    return node.inputs[0] if node.inputs[0].shape == node.shape else None


@rewrite("pad-again", "pad", tag="layout")
def pad_again(F: Nodes, node: Node) -> Node | None:
    """Paddings with the same number add up; none may come between elements the second time."""
    (x,) = node.inputs
    low, high, interior, value = node.attributes
    if x.op is not node.op or any(interior):
        return None
    first, last, between, filling = x.attributes
    if Number(filling, x.dtype) != Number(value, x.dtype):
        return None
    before, after = (tuple(a + b for a, b in zip(p, q, strict=True)) for p, q in ((low, first), (high, last)))
    return F.pad(x.inputs[0], low=before, high=after, interior=between, value=filling)


@rewrite("concat-one", "concat", tag="layout")
def concat_one(F: Nodes, node: Node) -> Node | None:
    """Empty pieces are dropped; one piece alone is itself."""
    axis: Any = node.attributes[0]
    pieces = [x for x in node.inputs if x.shape[axis] != 0] or [node.inputs[0]]
    if len(pieces) == 1:
        return pieces[0]
    return F.concat(*pieces, axis=axis) if len(pieces) < len(node.inputs) else None


@rewrite("copy-again", "copy", tag="layout")
def copy_again(F: Nodes, node: Node) -> Node | None:
    """A symbol never changes, so a copy of it tells nothing new; outputs get memory of their own anyway."""
    return node.inputs[0]


@rewrite("reduce-nothing", "max", "min", "all", "any", tag="layout")
def reduce_nothing(F: Nodes, node: Node) -> Node | None:
    """A reduction over axes of length one is a reshape."""
    (x,) = node.inputs
    axis: Any = node.attributes[0]
    return F.reshape(x, shape=node.shape) if all(x.shape[a] == 1 for a in axis) else None


@rewrite("sum-nothing", "sum", tag="layout", exact=False)
def sum_nothing(F: Nodes, node: Node) -> Node | None:
    """A sum over axes of length one is a reshape, but for -0, to which a sum adds its first 0."""
    return reduce_nothing.rule(F, node)


@rewrite("move-filled", "reshape", "permute", "broadcast_to", "slice", "flip", tag="simplify")
def move_filled(F: Nodes, node: Node) -> Node | None:
    """One number everywhere is the same number everywhere after any movement."""
    (x,) = node.inputs
    if x.op is not FILLED:
        return None
    number = x.attributes[1]
    assert isinstance(number, Number)
    return F.filled(shape=node.shape, number=number)


@rewrite("broadcast-into-elementwise", *ELEMENTWISE, tag="simplify")
def broadcast_into_elementwise(F: Nodes, node: Node) -> Node | None:
    """An elementwise operator broadcasts by itself, as long as the other operands give the whole shape."""
    if not any([x.op is BROADCAST or x.op is FILLED for x in node.inputs]):
        return None
    inputs = list(node.inputs)
    for i, x in enumerate(node.inputs):
        if any(k != i and other.shape == node.shape for k, other in enumerate(inputs)):
            inputs[i] = _narrow(F, x)
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return None
    return F.apply(node.op, tuple(inputs), node.attributes)


def _narrow(F: Nodes, x: Node) -> Node:
    if x.op is BROADCAST:
        return x.inputs[0]
    if x.op is FILLED and x.shape != ():
        number = x.attributes[1]
        assert isinstance(number, Number)
        return F.filled(shape=(), number=number)
    return x


@rewrite("transpose-into-matmul", "matmul", tag="layout", exact=False)
def transpose_into_matmul(F: Nodes, node: Node) -> Node | None:
    """matmul(swap(a), b) -> matmul(a, b, transpose_a): only where the last two axes, and no others, are swapped.

    A BLAS sums in another order then: about one product in ten differs in its last bit.
    """
    (a, b), (ta, tb) = node.inputs, node.attributes
    x, y = _unswapped(a), _unswapped(b)
    if x is None and y is None:
        return None
    return F.matmul(x or a, y or b, transpose_a=bool(ta) != (x is not None),
                    transpose_b=bool(tb) != (y is not None))


def _unswapped(x: Node) -> Node | None:
    n = x.ndim
    if x.op.name == "permute" and x.attributes[0] == (*range(n - 2), n - 1, n - 2):
        return x.inputs[0]
    return None


@rewrite("transfer-back", "transfer", tag="layout")
def transfer_back(F: Nodes, node: Node) -> Node | None:
    """A transfer to a place and back is nothing; so is one from a place to itself."""
    (x,) = node.inputs
    source, target = node.attributes
    if source == target:
        return x
    return x.inputs[0] if x.op is node.op and x.attributes == (target, source) else None


REWRITES = (
    reshape_again, permute_again, broadcast_again, slice_again, flip_again, pad_nothing, pad_again, concat_one,
    copy_again, reduce_nothing, sum_nothing, move_filled, broadcast_into_elementwise, transpose_into_matmul,
    transfer_back,
)  # fmt: skip
