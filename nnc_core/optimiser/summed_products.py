"""Sums of products leave loops: what each round adds to, a product of rows with rows, is one product of all rows.

So it is with the gradient of a weight that all steps of a recurrent network share.  A product of every step's rows with
the gradients there moves the whole sum through memory in each round; one behind the loop moves it once.  The additions
come in another order.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from nnc_core.base.dtype import is_float
from nnc_core.operator import OPERATORS, Nodes
from nnc_core.operator.control import LOOP, LoopAttributes
from nnc_core.optimiser.rebuild import rebuild
from nnc_core.symbol import Body, Node
from nnc_core.type import is_static

_ADD, _MATMUL = OPERATORS["add"], OPERATORS["matmul"]


class _Sum(NamedTuple):
    """A carried value to which each round adds matmul(transposed a, b)."""

    a: Node
    b: Node


def without_sums(node: Node, picked: set[int], F: Nodes) -> dict[int, Node] | None:
    """The results that are picked, from a loop that carries no sums of products; None if there is nothing to do."""
    if node.op is not LOOP:
        return None
    loop = LoopAttributes.of(node)
    if loop.cond is not None or not isinstance(loop.length, int) or loop.length < 2:
        return None
    sums = _sums(loop)
    if not sums:
        return None
    kept = [i for i in range(loop.carried_count) if i not in sums]
    outputs = list(dict.fromkeys([*loop.stacked, *[x for s in sums.values() for x in s if x not in loop.scanned]]))
    carried, scanned, captured = loop.split(node.inputs)
    wanted = rebuild([*[loop.carried_on[i] for i in kept], *outputs], F.fresh())
    body = Body((*[loop.carried[i] for i in kept], *loop.scanned, *loop.captured), tuple(wanted))
    F.table.line = node.line
    made = F.loop([carried[i] for i in kept], scanned, captured, body=body, length=loop.length, reverse=loop.reverse)
    rows = {x: F.pick(made, index=len(kept) + j) for j, x in enumerate(outputs)}
    rows |= dict(zip(loop.scanned, scanned, strict=True))
    results = {i: F.pick(made, index=j) for j, i in enumerate(kept)}
    results |= {loop.carried_count + j: rows[x] for j, x in enumerate(loop.stacked)}
    results |= {i: F.add(carried[i], _product(rows[s.a], rows[s.b], F)) for i, s in sums.items()}
    return {i: results[i] for i in picked}


def _product(a: Node, b: Node, F: Nodes) -> Node:
    """The sum over the first axes of both of matmul(transposed a, b)."""
    flat = [F.reshape(x, shape=(x.shape[0] * x.shape[1], x.shape[2])) for x in (a, b)]
    return F.matmul(*flat, transpose_a=True)


def _sums(loop: LoopAttributes) -> dict[int, _Sum]:
    """The carried values that are such sums, by their numbers, where no round looks at them."""
    reads = Counter([x for node in loop.body.nodes for x in node.inputs]) + Counter(loop.body.outputs)
    found: dict[int, _Sum] = {}
    for i, (before, after) in enumerate(zip(loop.carried, loop.carried_on, strict=True)):
        if reads[before] == reads[after] == 1 and after.op is _ADD and before in after.inputs:
            (term,) = [x for x in after.inputs if x is not before] or (before,)
            if reads[term] == 1 and _is_product(term) and _fits(loop, term, before):
                found[i] = _Sum(*term.inputs)
    return found


def _is_product(node: Node) -> bool:
    """True if it is a product of matrices over the first axis of both."""
    if node.op is not _MATMUL or node.attributes != (True, False) or not is_float(node.dtype):
        return False
    return all(len(x.shape) == 2 and is_static(x.shape) and x.dtype == node.dtype for x in node.inputs)


def _fits(loop: LoopAttributes, product: Node, total: Node) -> bool:
    """True if no more rows have to be kept for the product than the sum itself is long."""
    assert isinstance(loop.length, int)
    new = {x for x in product.inputs if x not in loop.scanned and x not in loop.stacked}
    same = product.shape == total.shape and product.dtype == total.dtype
    return same and loop.length * sum([x.spec.nbytes for x in new]) <= product.spec.nbytes
