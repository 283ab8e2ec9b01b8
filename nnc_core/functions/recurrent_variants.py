"""Recurrent steps with other activations, peepholes, clipped sums or coupled gates: loops over the user's functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from nnc_core.base.errors import AttributeValueError, ShapeError
from nnc_core.control.constructs import scan
from nnc_core.functions.pieces import cut
from nnc_core.operator.wide import narrowed, widened_operand
from nnc_core.values.arguments import as_value
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

Activation: TypeAlias = Callable[[Tensor], Any]
Step: TypeAlias = Callable[[Value, "list[Value]"], "list[Value]"]
"""(a row of x's products, states) -> the next states; the first is what the step gives."""


class Variant(NamedTuple):
    """A step that differs from the usual one: its activations in the order of the gates, the bound of what these are
    given, and whether the forget gate is 1 - the input gate."""

    activations: tuple[Activation, ...]
    clip: float | None = None
    coupled: bool = False


class StepWeights(NamedTuple):
    """Wide weights of a step; peepholes are the rows (1, n) of the input, forget and output gate."""

    hidden: Value
    bias: Value
    projection: tuple[Value, ...] = ()
    peepholes: tuple[Value, ...] = ()


def variant_of(activations: Sequence[Activation] | None, usual: Sequence[Activation], clip: float | None,
               coupled: bool = False) -> Variant | None:
    """None where nothing differs; AttributeValueError for activations that are no functions, or too few."""
    if clip is not None and not clip > 0:
        raise AttributeValueError(f"clip {clip!r} should be greater than 0")
    if activations is None and clip is None and not coupled:
        return None
    given = tuple(usual if activations is None else activations)
    if len(given) != len(usual) or not all(map(callable, given)):
        raise AttributeValueError(f"activations {given!r} should be {len(usual)} functions")
    return Variant(given, None if clip is None else float(clip), bool(coupled))


def over_rows(step: Step, rows: Value, states: Sequence[Value], mask: Sequence[Value], reverse: bool) -> list[Value]:
    """The last states, then what each step gives.  Where the mask is false it changes nothing, and gives 0."""

    def body(carry: tuple[Tensor, ...], given: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Tensor]:
        own = [as_value(s) for s in carry]
        row, *going = [as_value(g) for g in given]
        found = step(row, [widened_operand(F, s) for s in own])
        after = [narrowed(F, y, s.dtype) for y, s in zip(found, own, strict=True)]
        result = after[0]
        if going:
            there = F.reshape(going[0], shape=(*going[0].shape, 1))
            result = F.where(there, result, 0)
            after = [F.where(there, y, s) for y, s in zip(after, own, strict=True)]
        return tuple(map(Tensor, after)), Tensor(result)

    last, results = scan(body, tuple(map(Tensor, states)), tuple(map(Tensor, (rows, *mask))), reverse=reverse)
    return [*[as_value(s) for s in last], as_value(results)]


def _active(variant: Variant, which: int, x: Value) -> Value:
    if variant.clip is not None:
        x = F.clip(x, -variant.clip, variant.clip)
    y = as_value(variant.activations[which](Tensor(x)))
    if y.shape != x.shape:
        raise ShapeError(f"an activation makes {y.spec} of {x.spec}", hint="give functions of each number by itself")
    return narrowed(F, y, x.dtype)


def _pieces(x: Value, count: int) -> list[Value]:
    """Equal parts of the last axis."""
    n = x.shape[-1] // count
    return [cut(x, x.ndim - 1, k * n, (k + 1) * n) for k in range(count)]


def rnn_variant(variant: Variant, weights: StepWeights) -> Step:
    """h = f(x W + h U + b)."""

    def step(given: Value, states: list[Value]) -> list[Value]:
        return [_active(variant, 0, F.add(given, F.matmul(states[0], weights.hidden)))]

    return step


def gru_variant(variant: Variant, weights: StepWeights, reset_after: bool) -> Step:
    """Gates reset and update by the first activation, the new state by the second."""

    def step(given: Value, states: list[Value]) -> list[Value]:
        (h,), x, u = states, _pieces(given, 3), _pieces(weights.hidden, 3)
        b = _pieces(F.reshape(weights.bias, shape=(1, *weights.bias.shape)), 3)
        r, z = (_active(variant, 0, F.add(x[k], F.add(F.matmul(h, u[k]), b[k]))) for k in (0, 1))
        if reset_after:
            inner = F.multiply(r, F.add(F.matmul(h, u[2]), b[2]))
        else:
            inner = F.add(F.matmul(F.multiply(r, h), u[2]), b[2])
        n = _active(variant, 1, F.add(x[2], inner))
        return [F.add(n, F.multiply(z, F.subtract(h, n)))]

    return step


def lstm_variant(variant: Variant, weights: StepWeights) -> Step:
    """Gates by the first activation, what goes into the cell by the second, what comes out of it by the third.

    Peepholes let the input and forget gate see the cell before, the output gate the cell after (Gers et al. 2002).
    """

    def step(given: Value, states: list[Value]) -> list[Value]:
        h, c = states
        i, f, g, o = _pieces(F.add(given, F.matmul(h, weights.hidden)), 4)
        if weights.peepholes:
            i, f = (F.add(s, F.multiply(p, c)) for s, p in zip((i, f), weights.peepholes, strict=False))
        i = _active(variant, 0, i)
        f = F.subtract(1, i) if variant.coupled else _active(variant, 0, f)
        c = F.add(F.multiply(f, c), F.multiply(i, _active(variant, 1, g)))
        if weights.peepholes:
            o = F.add(o, F.multiply(weights.peepholes[2], c))
        h = F.multiply(_active(variant, 0, o), _active(variant, 2, c))
        return [F.matmul(h, weights.projection[0]) if weights.projection else h, c]

    return step
