"""Attention as a graph of operations, and its gradients in two ways.

One operation for gradients adds the cotangents of queries up in memory, by whichever keys come first.  Written out as
products whose scores' cotangents lie between them in memory, which takes as many halves as there are scores, each sum
has an order.
"""

from __future__ import annotations

from math import inf

from nnc_core.base.dtype import float32
from nnc_cuda.dnn.descriptors import DESCRIPTOR, INT64, Descriptor, described
from nnc_cuda.dnn.interface import Attention, AttentionGradients, TensorPlace
from nnc_cuda.dnn.operations import (
    ADD,
    BAND_STEP,
    EXPONENTIAL,
    GRAPH,
    GRAPH_OPERATIONS,
    MULTIPLY,
    SMALLEST,
    SUBTRACT,
    Attributes,
    OperationWriter,
    band,
)

ATTENTION_STEP, GRADIENTS_STEP = 41, 43
"""CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, _SDPA_BWD_."""
AHEAD, SCALE = (2800, 2801, 2802, 2803, 2804), 2805
"""CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, _KDESC, _VDESC, _ODESC, _STATSDESC; _SCALEDESC."""
BACK, BACK_SCALE = (2851, 2852, 2853, 2862, 2855, 2854, 2859, 2860, 2861), 2856
"""CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, _KDESC, _VDESC, _DODDESC, _STATSDESC, _ODESC, _DQDESC, _DKDESC, _DVDESC;
_SCALEDESC."""
INNER, INNER_BACK = (2811, 2812, 2813), (2867, 2868, 2869)
"""CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH, _SUBGRAPH_INPUT_UID, _SUBGRAPH_OUTPUT_UID; those of SDPA_BWD."""
SCALE_ID, HIDDEN_ID, ONE_ID = 200, 201, 202
"""Numbers of tensors: the scale, the score of what is not seen, 1."""


def numbers_of(problem: Attention | AttentionGradients) -> dict[int, float]:
    """The numbers of the host among the tensors, with their values."""
    found = {SCALE_ID: problem.scale}
    if problem.causal:
        found[HIDDEN_ID] = -inf
    if isinstance(problem, AttentionGradients) and problem.ordered:
        found[ONE_ID] = 1.0
    return found


def write_attention(writer: OperationWriter, problem: Attention | AttentionGradients) -> None:
    if isinstance(problem, Attention):
        _write_at_once(writer, problem, ATTENTION_STEP, AHEAD, SCALE, INNER)
    elif problem.ordered:
        OrderedGradients(writer, problem).write()
    else:
        _write_at_once(writer, problem, GRADIENTS_STEP, BACK, BACK_SCALE, INNER_BACK)


def _write_at_once(writer: OperationWriter, problem: Attention | AttentionGradients, step: int, names: tuple[int, ...],
                   scale: int, inner: tuple[int, int, int]) -> None:
    arrays = [writer.array(place) for place in problem.arrays]
    bias = None if problem.bias is None else arrays.pop()
    writer.add(step, [*[(name, DESCRIPTOR, (one,)) for name, one in zip(names, arrays, strict=True)],
                      (scale, DESCRIPTOR, (writer.number(SCALE_ID),)),
                      *(_changed(writer, problem, bias, *inner) if problem.causal or bias is not None else [])])


def _changed(writer: OperationWriter, problem: Attention | AttentionGradients, bias: Descriptor | None, graph: int,
             of: int, to: int) -> Attributes:
    """The attributes by which the bias is added to scores, and those above the diagonal become less than all others: a
    graph within the graph."""
    within = OperationWriter(writer.functions, writer.latest)
    scores = within.between(_scores(problem))
    first = within.latest
    _seen(within, problem, scores, bias)
    inner = described(writer.functions, GRAPH, (GRAPH_OPERATIONS, DESCRIPTOR, within.operations))
    return [(graph, DESCRIPTOR, (inner,)), (of, INT64, (first,)), (to, INT64, (within.latest,))]


def _seen(writer: OperationWriter, problem: Attention | AttentionGradients, scores: Descriptor,
          bias: Descriptor | None) -> Descriptor:
    """Scores with the bias, and those above the diagonal less than all others."""
    place, found = _scores(problem), scores
    if bias is not None:
        found = writer.between(place)
        writer.pointwise(ADD, scores, bias, found)
    if not problem.causal:
        return found
    left = writer.between(place)
    writer.add(BAND_STEP, band(found, left, writer.number(HIDDEN_ID)))
    return left


def _packed(*shape: int) -> TensorPlace:
    """The place of a tensor (n, heads, rows, columns)."""
    _, heads, rows, columns = shape
    return TensorPlace(float32, shape, (heads * rows * columns, rows * columns, columns, 1), SMALLEST)


def _scores(problem: Attention | AttentionGradients) -> TensorPlace:
    return _packed(*problem.query.shape[:3], problem.key.shape[2])


def _turned(place: TensorPlace) -> TensorPlace:
    """The same elements with rows as columns."""
    n, heads, rows, columns = place.shape
    outer, head, row, column = place.steps
    return place._replace(shape=(n, heads, columns, rows), steps=(outer, head, column, row))


class OrderedGradients:
    """The graph of products, in the form that the library knows: keys and values transposed, and what is multiplied
    from the left after a reshape."""

    def __init__(self, writer: OperationWriter, problem: AttentionGradients) -> None:
        self.writer, self.problem, self.scores = writer, problem, _scores(problem)
        self.dtype = problem.query.dtype
        places = [_turned(place) if n in (1, 2) else place for n, place in enumerate(problem.arrays)]
        (self.query, self.key, self.value, self.cotangent, self.sums, self.result, self.of_query, self.of_key,
         self.of_value, *bias) = map(writer.array, places)
        self.bias = bias[0] if bias else None
        self.scale, self.one = writer.number(SCALE_ID), writer.number(ONE_ID)

    def write(self) -> None:
        writer = self.writer
        shift, weights = self._shift(), self._weights()
        self._over_queries(weights, self.cotangent, self.problem.value, self.of_value)
        onto = writer.between(self.scores)
        writer.product(self.cotangent, self.value, onto)
        of_scores = self._next(MULTIPLY, self._next(MULTIPLY, self._next(SUBTRACT, onto, shift), weights), self.scale)
        self._over_queries(of_scores, self.query, self.problem.key, self.of_key)
        key = writer.between(self.problem.key, self.dtype)
        writer.reshape(self.key, key)
        writer.product(of_scores, key, self.of_query)

    def _next(self, mode: int, x: Descriptor, operand: Descriptor | None = None) -> Descriptor:
        """Scores of which each element is made anew."""
        y = self.writer.between(self.scores)
        self.writer.pointwise(mode, x, operand, y)
        return y

    def _shift(self) -> Descriptor:
        """The sum of result * cotangent; times 1, since what nothing is dropped of is so in the form that is known."""
        row = _packed(*self.problem.query.shape[:3], 1)
        both = self.writer.between(self.problem.result)
        total, shift = self.writer.between(row), self.writer.between(row)
        self.writer.pointwise(MULTIPLY, self.cotangent, self.result, both)
        self.writer.total(both, total)
        self.writer.pointwise(MULTIPLY, total, self.one, shift)
        return shift

    def _weights(self) -> Descriptor:
        scores = self.writer.between(self.scores)
        self.writer.product(self.query, self.key, scores)
        seen = _seen(self.writer, self.problem, self._next(MULTIPLY, scores, self.scale), self.bias)
        return self._next(EXPONENTIAL, self._next(SUBTRACT, seen, self.sums))

    def _over_queries(self, scores: Descriptor, x: Descriptor, place: TensorPlace, y: Descriptor) -> None:
        """The transpose of scores times x, summed over the heads that share keys."""
        n, heads, _, keys = self.scores.shape
        turned = self.writer.between(_turned(self.scores), self.dtype)
        self.writer.reshape(scores, turned)
        if place.shape[1] == heads:
            self.writer.product(turned, x, y)
            return
        each = self.writer.between(_packed(n, heads, keys, place.shape[3]), self.dtype)
        self.writer.product(turned, x, each)
        self.writer.total(each, y)
