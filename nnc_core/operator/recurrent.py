"""Recurrent networks over whole sequences: composites whose body is one loop.

Products with x are formed for all steps at once, before the loop.  States are stored in the dtype of x, halves are
computed in float32 in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic

from nnc_core.operator.declare import Base, V, op
from nnc_core.operator.flops import products_with
from nnc_core.operator.wide import narrowed, widened_operand
from nnc_core.shape import recurrent as rule
from nnc_core.symbol import Body
from nnc_core.type import TensorSpec

if TYPE_CHECKING:
    from nnc_core.operator import Namespace

Step = Callable[..., Sequence[Any]]
"""(F, row of x's products, states, weights) -> the next states; the first is what the step gives."""


# ---- one step, of any kind of value
def _pieces(F: Namespace[V], x: V, count: int) -> list[Any]:
    """Equal parts of the last axis."""
    rows, width = x.shape
    n = width // count
    return [F.slice(x, start=(0, k * n), stop=(rows, (k + 1) * n), step=(1, 1)) for k in range(count)]


def rnn_step(F: Namespace[V], given: Any, states: Sequence[Any], weights: Sequence[Any],
             nonlinearity: str) -> list[Any]:
    """h = tanh(x W + b + h U), or relu."""
    (h,), (hidden,) = states, weights
    return [getattr(F, nonlinearity)(F.add(given, F.matmul(h, hidden)))]


def gru_step(F: Namespace[V], given: Any, states: Sequence[Any], weights: Sequence[Any],
             reset_after: bool) -> list[Any]:
    """Gates reset, update, new (Cho et al. 2014): h = (1 - z) * n + z * h; the reset gate is applied to the product of
    h, or to h before it."""
    (h,), (hidden, bias) = states, weights
    x = _pieces(F, given, 3)
    if reset_after:
        u = _pieces(F, F.add(F.matmul(h, hidden), bias), 3)
        r, z = (F.sigmoid(F.add(x[k], u[k])) for k in (0, 1))
        n = F.tanh(F.add(x[2], F.multiply(r, u[2])))
    else:
        first, second, third = _pieces(F, hidden, 3)
        row = F.reshape(bias, shape=(1, *bias.shape))
        b = _pieces(F, row, 3)
        r, z = (F.sigmoid(F.add(x[k], F.add(F.matmul(h, w), b[k]))) for k, w in enumerate((first, second)))
        n = F.tanh(F.add(x[2], F.add(F.matmul(F.multiply(r, h), third), b[2])))
    return [F.add(n, F.multiply(z, F.subtract(h, n)))]


def lstm_step(F: Namespace[V], given: Any, states: Sequence[Any], weights: Sequence[Any]) -> list[Any]:
    """Gates input, forget, cell, output (Hochreiter and Schmidhuber 1997, Gers et al. 2000): c = f * c + i * g,
    h = o * tanh(c), times the projection if there is one (Sak et al. 2014)."""
    (h, c), (hidden, *projection) = states, weights
    i, f, g, o = _pieces(F, F.add(given, F.matmul(h, hidden)), 4)
    c = F.add(F.multiply(F.sigmoid(f), c), F.multiply(F.sigmoid(i), F.tanh(g)))
    h = F.multiply(F.sigmoid(o), F.tanh(c))
    return [F.matmul(h, projection[0]) if projection else h, c]


# ---- the loop
def products(F: Namespace[V], x: V, weight: V, bias: V) -> V:
    """x (..., features) times the weight, plus the bias; in float32 for halves."""
    x, weight, bias = (widened_operand(F, v) for v in (x, weight, bias))
    return F.add(F.matmul(x, weight), bias)


def _placeholder(G: Any, name: str, like: Any, first: int = 0) -> Any:
    return G.placeholder(name, TensorSpec(like.shape[first:], like.dtype))


def over_steps(F: Namespace[V], step: Step, rows: V, states: Sequence[Any], weights: Sequence[Any], mask: Sequence[Any],
               reverse: bool) -> V:
    """A loop: the last states, then what each step gives.  Where the mask is false it changes nothing, and gives 0."""
    G = F.for_bodies(rows)
    own = [_placeholder(G, f"s{k}", s) for k, s in enumerate(states)]
    given = [_placeholder(G, f"x{k}", r, 1) for k, r in enumerate((rows, *mask))]
    kept = [_placeholder(G, f"w{k}", w) for k, w in enumerate(weights)]
    wide = [widened_operand(G, v) for v in (*own, *kept)]
    after = [narrowed(G, y, s.dtype) for y, s in
             zip(step(G, given[0], wide[: len(own)], wide[len(own) :]), own, strict=True)]
    result = after[0]
    if mask:
        going = G.reshape(given[1], shape=(*given[1].shape, 1))
        result = G.where(going, result, 0)
        after = [G.where(going, y, s) for y, s in zip(after, own, strict=True)]
    body = Body((*own, *given, *kept), (*after, result))
    return F.loop(states, (rows, *mask), weights, body=body, length=rows.shape[0], reverse=reverse)


class Recurrent(Base[V], Generic[V]):
    """x (length, batch, features), states (batch, size); with `reverse` from the last step to the first.

    A mask (length, batch) is true where a sequence goes on: elsewhere states stay, and results are 0.
    """

    @op(composite=True, infer=rule.rnn, flops=products_with(2, 3))
    def rnn(self, x: V, h: V, input_weight: V, hidden_weight: V, bias: V, *mask: V, nonlinearity: str,
            reverse: bool) -> V:
        """(h, hs): the last state and all of them; h = tanh(x W + b + h U), or relu."""
        F: Any = self

        def step(G: Any, given: Any, states: Any, weights: Any) -> list[Any]:
            return rnn_step(G, given, states, weights, nonlinearity)

        return over_steps(F, step, products(F, x, input_weight, bias), (h,), (hidden_weight,), mask, reverse)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.gru, flops=products_with(2, 3))
    def gru(self, x: V, h: V, input_weight: V, hidden_weight: V, input_bias: V, hidden_bias: V, *mask: V,
            reset_after: bool, reverse: bool) -> V:
        """(h, hs): the last state and all of them.  Gates are reset, update, new; see `gru_step`."""
        F: Any = self

        def step(G: Any, given: Any, states: Any, weights: Any) -> list[Any]:
            return gru_step(G, given, states, weights, reset_after)

        rows = products(F, x, input_weight, input_bias)
        return over_steps(F, step, rows, (h,), (hidden_weight, hidden_bias), mask, reverse)  # type: ignore[no-any-return]

    @op(composite=True, infer=rule.lstm, flops=products_with(3, 4))
    def lstm(self, x: V, h: V, c: V, input_weight: V, hidden_weight: V, bias: V, *extra: V, projected: bool,
             reverse: bool) -> V:
        """(h, c, hs): the last state, the last cell and all states.  Gates are input, forget, cell, output.

        Of the further inputs the first is, if `projected`, a matrix that makes states of cells' outputs.
        """
        F: Any = self
        split = int(projected)
        rows = products(F, x, input_weight, bias)
        return over_steps(F, lstm_step, rows, (h, c), (hidden_weight, *extra[:split]), extra[split:], reverse)  # type: ignore[no-any-return]
