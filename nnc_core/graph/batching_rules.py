"""Rules by which each operator does many examples in one command; the examples are along a new first axis.

A rule is given the operands, which of them are batched and how many examples there are.  It gives the batched result,
or None where it cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from nnc_core.operator import OPERATORS
from nnc_core.operator.host import AFTER
from nnc_core.symbol import Node
from nnc_core.type import DimLike

Rule: TypeAlias = Callable[..., Any]
"""(F, node, values, which of them are batched, number of examples) -> the batched result, or None."""
RULES: dict[str, Rule] = {}


def repeated(F: Any, v: Node, size: DimLike) -> Node:
    """The same for every example."""
    return F.broadcast_to(v, shape=(size, *v.shape))  # type: ignore[no-any-return]


def _all_batched(F: Any, values: Sequence[Any], batched: Sequence[bool], size: DimLike) -> list[Any]:
    return [v if b else repeated(F, v, size) for v, b in zip(values, batched, strict=True)]


def _aligned(F: Any, v: Any, row_ndim: int, ndim: int, size: DimLike) -> Any:
    """Examples first, then axes of length 1 up to `ndim` axes of each row."""
    if row_ndim == ndim:
        return v
    return F.reshape(v, shape=(size, *(1,) * (ndim - row_ndim), *v.shape[1:]))


def elementwise(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    ready = [_aligned(F, v, x.ndim, node.ndim, size) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    result = F.apply(node.op, tuple(ready), node.attributes)
    return result if result.shape == (size, *node.shape) else F.broadcast_to(result, shape=(size, *node.shape))


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for operators by name."""
    assert all(n in OPERATORS for n in names), names

    def register(f: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, f))
        return f

    return register


def _axes(axis: Any) -> Any:
    return axis + 1 if isinstance(axis, int) else tuple([a + 1 for a in axis])


@rule("sum", "prod", "max", "min", "argmax", "argmin", "all", "any", "mean", "var", "std", "logsumexp", "vector_norm",
      "cumulative_sum", "cumulative_prod", "cummax", "cummin", "argcummax", "argcummin", "logcumsumexp", "argsort",
      "sort", "arg_top_k", "softmax", "log_softmax", "standardise", "rms_normalise", "fft", "rfft",
      "irfft")
def _along_axes(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """The axis is the first attribute."""
    first, *rest = node.attributes
    return F.apply(node.op, tuple(values), (_axes(first), *rest))


@rule("recurrence")
def _recurrence(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    axis, reverse = node.attributes
    return F.recurrence(*_all_batched(F, values, batched, size), axis=axis + 1, reverse=reverse)


@rule("lexsort")
def _lexsort(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """The keys stay in front."""
    (axis,) = node.attributes
    keys = values[0]
    return F.lexsort(F.permute(keys, axes=(1, 0, *range(2, keys.ndim))), axis=axis + 1)


@rule("searchsorted")
def _searchsorted(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return None if batched[0] else F.apply(node.op, tuple(values), node.attributes)


@rule("reshape")
def _reshape(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.reshape(values[0], shape=(size, *node.shape))


@rule("permute")
def _permute(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.permute(values[0], axes=(0, *_axes(node.attributes[0])))


@rule("broadcast_to")
def _broadcast_to(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.broadcast_to(_aligned(F, values[0], node.inputs[0].ndim, node.ndim, size), shape=(size, *node.shape))


@rule("slice")
def _slice(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    start, stop, step = node.attributes
    return F.slice(values[0], start=(0, *start), stop=(size, *stop), step=(1, *step))


@rule("pad")
def _pad(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    named = dict(zip(node.op.attributes, node.attributes, strict=True))
    wider = {k: (0, *v) if k in ("low", "high", "interior") else v for k, v in named.items()}
    return F.apply(node.op, tuple(values), tuple(wider.values()))


@rule("flip")
def _flip(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.flip(values[0], axes=_axes(node.attributes[0]))


@rule("concat")
def _concat(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.concat(*_all_batched(F, values, batched, size), axis=node.attributes[0] + 1)


@rule("update_slice")
def _update_slice(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    start, step = node.attributes
    x, piece = _all_batched(F, values, batched, size)
    return F.update_slice(x, piece, start=(0, *start), step=(1, *step))


LINEAR_ALGEBRA = (
    "inv", "solve", "solve_triangular", "det", "cofactor", "slogdet", "matrix_rank", "pinv", "lstsq", "cholesky", "qr",
    "lu", "eigh", "eigvalsh", "eig", "eigvals", "schur", "hessenberg", "svd", "svdvals", "sylvester", "stein", "care",
    "dare",
)  # fmt: skip


@rule("matmul", *LINEAR_ALGEBRA)
def _matrices(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Stacks of matrices lie along leading axes, which are broadcast."""
    ndim = max(x.ndim for x in node.inputs)
    ready = [_aligned(F, v, x.ndim, ndim, size) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    return F.apply(node.op, tuple(ready), node.attributes)


@rule("take")
def _take(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    axis, shared = node.attributes
    if batched == [True, False] and not shared:
        return F.take(*values, axis=axis + 1)
    if batched == [False, True] and not shared:  # the examples appear where the axis was
        taken = F.take(*values, axis=axis)
        return F.permute(taken, axes=(axis, *[i for i in range(taken.ndim) if i != axis]))
    return F.take(*_all_batched(F, values, batched, size), axis=axis + 1, batch=shared + 1)


@rule("scatter")
def _scatter(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    axis, mode, shared = node.attributes
    x, indices, updates = _all_batched(F, values, batched, size)
    if shared or batched[1]:
        return F.scatter(x, indices, updates, axis=axis + 1, mode=mode, batch=shared + 1)
    return F.scatter(x, values[1], updates, axis=axis + 1, mode=mode)


@rule("one_hot", "index_offset", "transfer", "earlier")
def _as_it_is(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Rule of operators that go over all elements of their one operand, whatever its axes."""
    return F.apply(node.op, tuple(values), node.attributes)


def _after(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    return F.after(values[0] if batched[0] else repeated(F, values[0], size), values[1:])


RULES[AFTER.name] = _after


IMAGES = {"conv": (0,), "conv_input_gradient": (0,), "max_pool": (0,), "max_pool_index": (0,), "max_pool_place": (0,),
          "pool_take": (0, 1), "pool_put": (0, 1), "sum_pool": (0,), "sum_pool_gradient": (0,), "avg_pool": (0,),
          "unfold": (0,), "fold": (0,), "of_size": (0,)}
"""The inputs of window operators that are images."""


@rule("resample", "spread")
def _weighted(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Rule of operators that take the same tables for all examples."""
    axis, *rest = node.attributes
    return None if any(batched[1:]) else F.apply(node.op, tuple(values), (axis + 1, *rest))


@rule(*IMAGES)
def _window(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Images of all examples are images of one batch, which is their first axis in every layout."""
    images = IMAGES[node.op.name]
    if any(b != (i in images) for i, b in enumerate(batched)):
        return None
    ready = [F.reshape(v, shape=(size * x.shape[0], *x.shape[1:])) if b else v
             for v, b, x in zip(values, batched, node.inputs, strict=True)]
    return F.reshape(F.apply(node.op, tuple(ready), node.attributes), shape=(size, *node.shape))


ATTENTIONS = {"attention_weights": 2, "scaled_dot_product_attention": 3, "attention_gradients": 6,
              "attention_gradients_from_result": 6}
"""The operands of operators of attention that are not masks."""


@rule(*ATTENTIONS)
def _attention(F: Any, node: Node, values: list[Any], batched: list[bool], size: DimLike) -> Any:
    """Examples are one more axis before the heads; masks are broadcast to them."""
    split = ATTENTIONS[node.op.name]
    full = _all_batched(F, values[:split], batched[:split], size)
    rows = len(node.inputs[0].shape)
    masks = [_aligned(F, v, len(x.shape), rows, size) if b else v
             for v, b, x in zip(values[split:], batched[split:], node.inputs[split:], strict=True)]
    return F.apply(node.op, (*full, *masks), node.attributes)
