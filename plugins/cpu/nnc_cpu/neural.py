"""Composites that are claimed whole: fewer launches, and halves computed in float32."""

from __future__ import annotations

from functools import partial

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import boolean
from nnc_core.base.layout import Layout
from nnc_core.device import Launch
from nnc_cpu.memory import Array
from nnc_cpu.reductions import apart, kept, sum_in_two
from nnc_cpu.routine import Make, Routine, attributes_of, in_order, prepared, scratch


def _nothing() -> None:
    return None


def _unless_empty(make: Make) -> Make:
    """There is no maximum of nothing."""
    return lambda command: make(command) if command.output.size else Routine(lambda *arrays: _nothing)


def _along(command: Command) -> tuple[int, Layout]:
    """The axis, and the layout of what is reduced over it."""
    axis = attributes_of(command)[0]
    out = command.output
    return axis, scratch((*out.shape[:axis], 1, *out.shape[axis + 1 :]), out.dtype)


# ---- softmax
def _subtract_maximum(x: Array, axis: int, out: Array, row: Array) -> list[Launch]:
    return [partial(np.maximum.reduce, x, axis, None, row, True), partial(np.subtract, x, row, out)]


def _softmax(command: Command) -> Routine:
    axis, row = _along(command)

    def bind(x: Array, out: Array, row: Array) -> Launch:
        return in_order([*_subtract_maximum(x, axis, out, row), partial(np.exp, out, out),
                         partial(np.add.reduce, out, axis, None, row, True), partial(np.true_divide, out, row, out)])

    return Routine(bind, (row,))


def _log_softmax(command: Command) -> Routine:
    axis, row = _along(command)

    def bind(x: Array, out: Array, row: Array, e: Array) -> Launch:
        return in_order([*_subtract_maximum(x, axis, out, row), partial(np.exp, out, e),
                         partial(np.add.reduce, e, axis, None, row, True), partial(np.log, row, row),
                         partial(np.subtract, out, row, out)])

    return Routine(bind, (row, scratch(command.output.shape, command.output.dtype)))


def _masked_softmax(command: Command) -> Routine:
    """Rows of which nothing is left have the maximum -inf: they subtract 0 instead, and divide by 1."""
    axis, row = _along(command)

    def bind(x: Array, mask: Array, out: Array, row: Array, empty: Array) -> Launch:
        return in_order([
            partial(out.fill, -np.inf), partial(np.copyto, out, x, where=mask),
            partial(np.maximum.reduce, out, axis, None, row, True), partial(np.equal, row, -np.inf, out=empty),
            partial(np.copyto, row, 0, where=empty), partial(np.subtract, out, row, out), partial(np.exp, out, out),
            partial(np.add.reduce, out, axis, None, row, True), partial(np.equal, row, 0, out=empty),
            partial(np.copyto, row, 1, where=empty), partial(np.true_divide, out, row, out),
        ])  # fmt: skip

    return Routine(bind, (row, scratch(row.shape, boolean)))


def _cross_entropy(command: Command) -> Routine:
    """log(sum(exp(x - max))) - (x - max)[label]; 0 where the label is no class."""
    logits = command.inputs[0]
    rows, classes = command.output.size, logits.shape[-1]
    if not classes:
        return Routine(lambda x, labels, out: partial(out.fill, 0))

    def bind(x: Array, labels: Array, out: Array, shifted: Array, row: Array, e: Array) -> Launch:
        table, flat = x.reshape(rows, classes), out.reshape(-1)
        pick = partial(_subtract_chosen, labels.reshape(-1), shifted, row.reshape(-1), flat)
        return in_order([*_subtract_maximum(table, 1, shifted, row), partial(np.exp, shifted, e),
                         partial(np.add.reduce, e, 1, None, row, True), partial(np.log, row, row), pick])

    wide = command.output.dtype
    return Routine(bind, (scratch((rows, classes), wide), scratch((rows, 1), wide), scratch((rows, classes), wide)))


def _subtract_chosen(labels: Array, shifted: Array, row: Array, out: Array) -> None:
    inside = (labels >= 0) & (labels < shifted.shape[1])
    chosen = shifted[np.arange(len(labels)), np.where(inside, labels, 0).astype(np.intp)]
    np.subtract(row, chosen, out=out)
    np.copyto(out, 0, where=~inside)


# ---- normalisations
def _normalised(centred: bool) -> Make:
    """x, less its mean if it is `centred`, divided by the root of its mean square."""

    def make(command: Command) -> Routine:
        axis, epsilon = attributes_of(command)
        out = command.output
        folded, parts = kept(out.shape, axis), apart(axis, out.shape)
        count = int(np.prod([out.shape[a] for a in axis]))
        middle = folded if parts is None else kept(out.shape, parts[0])

        def bind(x: Array, out: Array, row: Array, wide: Array, squares: Array) -> Launch:
            spread = row if parts is None else wide  # what a row of x is to meet has its elements beside each other

            def folding(x: Array) -> list[Launch]:
                return [partial(np.add.reduce, x, axis, None, row, True)] if parts is None else sum_in_two(
                    x, parts, row, wide)

            def spreading() -> list[Launch]:
                return [] if parts is None else [partial(np.copyto, wide, row)]

            steps: list[Launch] = []
            source = x
            if centred:
                steps += [*folding(x), partial(np.true_divide, row, count, row), *spreading(),
                          partial(np.subtract, x, spread, out)]
                source = out
            return in_order([
                *steps, partial(np.multiply, source, source, squares), *folding(squares),
                partial(np.true_divide, row, count, row), partial(np.add, row, epsilon, row),
                partial(np.sqrt, row, row), partial(np.true_divide, 1, row, row), *spreading(),
                partial(np.multiply, source, spread, out),
            ])  # fmt: skip

        return Routine(bind, (scratch(folded, out.dtype), scratch(middle, out.dtype), scratch(out.shape, out.dtype)))

    return make


MAKERS: dict[str, Make] = {
    "softmax": prepared(_unless_empty(_softmax), wide=True),
    "log_softmax": prepared(_unless_empty(_log_softmax), wide=True),
    "masked_softmax": prepared(_unless_empty(_masked_softmax), wide=True),
    "cross_entropy": prepared(_unless_empty(_cross_entropy), wide=True),
    "standardise": prepared(_unless_empty(_normalised(True)), wide=True),
    "rms_normalise": prepared(_unless_empty(_normalised(False)), wide=True),
}  # fmt: skip
