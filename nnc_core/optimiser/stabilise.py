"""Naive formulas made those that neither overflow nor cancel: what is meant is computed, not what is written.

None of it is exact.  The rules tagged "recognise" make composites, so they run before those are expanded.
"""

from __future__ import annotations

from typing import Any

from nnc_core.base.dtype import is_float
from nnc_core.operator import Nodes
from nnc_core.optimiser.inspect import holds
from nnc_core.optimiser.rewrite import rewrite
from nnc_core.optimiser.rewriting import used_once
from nnc_core.symbol import Node

SOURCES = frozenset(("exp", "log", "log1p", "log_softmax", "logsumexp", "sigmoid", "softmax"))
"""Each of these formulas has one of them, so that graphs without any need no pass."""


def _either_way(node: Node) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    return node.inputs, node.inputs[::-1]


def _one_plus(node: Node) -> Node | None:
    """x of 1 + x."""
    if node.op.name != "add":
        return None
    return next((x for x, c in _either_way(node) if holds(c, 1) and x.shape == node.shape), None)


def _one_minus(node: Node) -> Node | None:
    """x of 1 - x."""
    c, x = node.inputs if node.op.name == "subtract" else (node, node)
    return x if c is not x and holds(c, 1) and x.shape == node.shape else None


@rewrite("log-of-sigmoid", "log", "log1p", tag="stabilise", exact=False)
def log_of_sigmoid(F: Nodes, node: Node) -> Node | None:
    """log(sigmoid(x)) -> -softplus(-x); log(1 - sigmoid(x)), log1p(-sigmoid(x)) -> -softplus(x)."""
    (p,) = node.inputs
    if node.op.name == "log" and p.op.name == "sigmoid":
        return F.negative(F.softplus(F.negative(p.inputs[0])))
    other = _one_minus(p) if node.op.name == "log" else p.inputs[0] if p.op.name == "negative" else None
    return F.negative(F.softplus(other.inputs[0])) if other is not None and other.op.name == "sigmoid" else None


@rewrite("log-of-one-plus", "log", tag="stabilise", exact=False)
def log_of_one_plus(F: Nodes, node: Node) -> Node | None:
    """log(1 + x) -> log1p(x), and with it log(1 + exp(x)) -> softplus(x)."""
    x = _one_plus(node.inputs[0])
    return F.log1p(x) if x is not None and is_float(x.dtype) else None


@rewrite("softplus-of-exp", "log1p", tag="stabilise", exact=False)
def softplus_of_exp(F: Nodes, node: Node) -> Node | None:
    """log1p(exp(x)) -> softplus(x), which does not overflow, for real numbers."""
    (e,) = node.inputs
    return F.softplus(e.inputs[0]) if e.op.name == "exp" and is_float(e.dtype) else None


@rewrite("exp-minus-one", "subtract", tag="stabilise", exact=False, once="exp")
def exp_minus_one(F: Nodes, node: Node) -> Node | None:
    """exp(x) - 1 -> expm1(x), unless exp(x) is there anyway."""
    e, c = node.inputs
    wanted = e.op.name == "exp" and holds(c, 1) and e.shape == node.shape and is_float(e.dtype)
    return F.expm1(e.inputs[0]) if wanted and used_once(F, e) else None


@rewrite("log-of-exp", "log", tag="stabilise", exact=False)
def log_of_exp(F: Nodes, node: Node) -> Node | None:
    """log(exp(x)) -> x; log(exp(a) + exp(b)) -> logaddexp(a, b), for real numbers."""
    (e,) = node.inputs
    if not is_float(e.dtype):
        return None
    if e.op.name == "exp":
        return e.inputs[0]
    if e.op.name == "add" and all(x.op.name == "exp" for x in e.inputs):
        return F.logaddexp(e.inputs[0].inputs[0], e.inputs[1].inputs[0])
    return None


# ---- composites
@rewrite("log-of-softmax", "log", tag="recognise", exact=False)
def log_of_softmax(F: Nodes, node: Node) -> Node | None:
    """log(softmax(x)) -> log_softmax(x)."""
    (p,) = node.inputs
    return F.log_softmax(p.inputs[0], axis=p.attributes[0]) if p.op.name == "softmax" else None


@rewrite("exp-of-log-softmax", "exp", tag="recognise", exact=False, once="log_softmax")
def exp_of_log_softmax(F: Nodes, node: Node) -> Node | None:
    """exp(log_softmax(x)) -> softmax(x), unless the logarithms are there anyway."""
    (y,) = node.inputs
    if y.op.name != "log_softmax" or not used_once(F, y):
        return None
    return F.softmax(y.inputs[0], axis=y.attributes[0])


@rewrite("log-of-sum-of-exp", "log", tag="recognise", exact=False)
def log_of_sum_of_exp(F: Nodes, node: Node) -> Node | None:
    """log(sum(exp(x))) -> logsumexp(x)."""
    (total,) = node.inputs
    if total.op.name != "sum" or total.inputs[0].op.name != "exp" or not is_float(total.dtype):
        return None
    axis, keepdims = total.attributes
    return F.logsumexp(total.inputs[0].inputs[0], axis=axis, keepdims=keepdims) if axis else None


@rewrite("softmax-by-hand", "divide", tag="recognise", exact=False)
def softmax_by_hand(F: Nodes, node: Node) -> Node | None:
    """exp(x) / sum(exp(x)) -> softmax(x)."""
    e, total = node.inputs
    if e.op.name != "exp" or total.op.name != "sum" or total.inputs[0] is not e or not is_float(e.dtype):
        return None
    axis, keepdims = total.attributes
    return F.softmax(e.inputs[0], axis=axis[0]) if keepdims and len(axis) == 1 else None


@rewrite("log-softmax-by-hand", "subtract", tag="recognise", exact=False)
def log_softmax_by_hand(F: Nodes, node: Node) -> Node | None:
    """x - logsumexp(x) -> log_softmax(x)."""
    x, total = node.inputs
    if total.op.name != "logsumexp" or total.inputs[0] is not x:
        return None
    axis, keepdims = total.attributes
    return F.log_softmax(x, axis=axis[0]) if keepdims and len(axis) == 1 else None


@rewrite("cross-entropy-by-hand", "sum", tag="recognise", exact=False)
def cross_entropy_by_hand(F: Nodes, node: Node) -> Node | None:
    """sum(one_hot(labels) * log_softmax(x)), sum(where(one_hot(labels), log_softmax(x), 0)) -> -cross_entropy."""
    (picked,), (axis, keepdims) = node.inputs, node.attributes
    if keepdims or axis != (picked.ndim - 1,):
        return None
    if picked.op.name == "negative":
        return _chosen(F, picked.inputs[0])
    found = _chosen(F, picked)
    return None if found is None else F.negative(found)


def _chosen(F: Nodes, picked: Node) -> Node | None:
    """cross_entropy for what is picked out of logarithms."""
    pairs: Any = _either_way(picked) if picked.op.name == "multiply" else ()
    if picked.op.name == "where" and holds(picked.inputs[2], 0):
        pairs = (picked.inputs[:2],)
    for hot, logarithms in pairs:
        if hot.op.name == "one_hot" and logarithms.op.name == "log_softmax" and hot.shape == logarithms.shape:
            x, last = logarithms.inputs[0], logarithms.attributes[0]
            if last == x.ndim - 1:
                return F.cross_entropy(x, hot.inputs[0])
    return None


PROBABILITIES = ("softmax", "sigmoid", "exp")


@rewrite("cancel-probability", "multiply", tag="recognise", exact=False)
def cancel_probability(F: Nodes, node: Node) -> Node | None:
    """p * (g * (1 / p)) -> g, for a probability p: the gradient of log(p) is right where p is 0.

    p may be a factor of what stands before the bracket; in it there may be a sum of such terms.
    """
    for a, b in _either_way(node):
        found = _cancelled(F, b, a)
        if found is not None and found.shape == node.shape:
            return found
    return None


def _cancelled(F: Nodes, t: Node, a: Node, depth: int = 4) -> Node | None:
    """t * a where each term of t, which has few of them, is divided by a factor of a."""
    if depth and t.op.name in ("negative", "add", "subtract"):
        terms = [_cancelled(F, x, a, depth - 1) if x.shape == t.shape else None for x in t.inputs]
        return None if None in terms else F.apply(t.op, tuple([x for x in terms if x is not None]), ())
    found = _without_inverse(t)
    if found is None:
        return None
    p, g = found
    rest = _without(a, p)
    return None if rest is None else g if rest is p else F.multiply(g, rest)


def _without_inverse(x: Node) -> tuple[Node, Node] | None:
    """(p, g) for g * (1 / p)."""
    if x.op.name != "multiply":
        return None
    for g, inverse in _either_way(x):
        if inverse.op.name == "divide" and holds(inverse.inputs[0], 1) and g.shape == x.shape:
            p = inverse.inputs[1]
            other = _one_minus(p)
            if p.op.name in PROBABILITIES or (other is not None and other.op.name == "sigmoid"):
                return p, g
    return None


def _without(a: Node, p: Node) -> Node | None:
    """a / p if p is a factor of it; p itself for 1."""
    if a is p:
        return p
    if a.op.name != "multiply":
        return None
    return next((rest for factor, rest in _either_way(a) if factor is p), None)


REWRITES = (
    log_of_sigmoid, log_of_one_plus, softplus_of_exp, exp_minus_one, log_of_exp, log_of_softmax, exp_of_log_softmax,
    log_of_sum_of_exp, softmax_by_hand, log_softmax_by_hand, cross_entropy_by_hand, cancel_probability,
)  # fmt: skip
