"""How far apart two ways to compute the same may be: the operators' bounds, sent through the graph.

The graph is evaluated again and again while each operator's operands and result are moved at random, by as much as a
right kernel may differ from the reference.  How far an element of a result comes from its value then is how far another
right way may come.  Where a comparison, a rounding or an overflow hangs by a thread, elements jump: those bind nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import is_complex, is_inexact, real_of
from nnc_core.operator.control import LOOP, PICK
from nnc_core.symbol import Node
from nnc_plugins.conformance.agreement import EITHER_ZERO, same_bits, tolerances
from nnc_plugins.conformance.case import float_limits
from tests.graph.evaluate import Array, Watch, evaluate
from tests.graph.strategies import RandomGraph
from tests.optimiser.cases import CASES, INEXACT

ROUNDED = frozenset(("add", "subtract", "multiply", "divide", "sqrt", "cast", "complex"))
"""Operators that round although every kernel gives the same bits: rewrites round at other places."""
FORMULAS = [(specs, build) for name in sorted(INEXACT & CASES.keys()) for specs, build, _ in CASES[name]]
"""What inexact rewrites change, which hardly comes about by chance."""
TIMES = 4
"""How much farther than the farthest of a few tries."""
MOST_TRIES = 64
REFUSALS = (ValueError, IndexError, ArithmeticError, np.linalg.LinAlgError)


def evaluated(graph: RandomGraph) -> list[Array] | None:
    """What the references give; None where one of them refuses what others made, such as a matrix with NaN."""
    try:
        return evaluate(graph.outputs, graph.values)
    except REFUSALS:
        return None


def assert_within(output: Node, values: Mapping[Node, Any], wanted: Array, got: Array, what: str = "") -> None:
    """`got` is `wanted`, the value of `output` by the references, or as near as the bounds of its operators allow."""
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), what
    left = ~same_bits(got, wanted)
    if not left.any() or overflows(output, values):
        return
    reach = np.zeros(wanted.shape)
    for moved in _tries(output, values):
        if moved is None:
            return
        jumps, away = _moved(wanted, moved)
        reach = np.maximum(reach, away)
        left &= ~jumps & ~(_moved(wanted, got)[1] <= TIMES * reach)
        if not left.any():
            return
    places = [tuple(map(int, place)) for place in np.argwhere(left)[:4]]
    raise AssertionError(f"{what}: " + ", ".join(
        f"{place}: {got[place]!r} instead of {wanted[place]!r}, within {TIMES * reach[place]:.3g}" for place in places))


def _tries(output: Node, values: Mapping[Node, Any]) -> Iterator[Array | None]:
    """None where an operator refuses what it is given: a matrix that is hardly positive definite, say."""
    for seed in range(MOST_TRIES):
        try:
            yield evaluate([output], values, watch=Moved(np.random.default_rng(seed)))[0]
        except REFUSALS:
            yield None


def _moved(a: Array, b: Array) -> tuple[Array, Array]:
    """Which elements jump from a number to none or back, or from an integer to another; how far the others are."""
    if not is_inexact(a.dtype):
        return np.asarray(a != b), np.where(a == b, 0.0, np.inf)
    with np.errstate(all="ignore"):
        away = np.abs(b.astype(_wide(a)) - a.astype(_wide(a)))
    same, both = same_bits(a, b), np.isfinite(a) & np.isfinite(b)
    return np.asarray(~both & ~same), np.where(same, 0.0, np.where(both, away, np.inf))


def _wide(a: Array) -> Any:
    return np.complex128 if is_complex(a.dtype) else np.float64


class Moved(Watch):
    """Moves everything that is rounded."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def before(self, node: Node, inputs: Sequence[Any]) -> Sequence[Any]:
        return [self._by(x, 2.0 * _eps(x), 0.0) for x in inputs] if _rounds(node) else inputs

    def after(self, node: Node, inputs: Sequence[Any], result: Any) -> Any:
        if not _rounds(node) or isinstance(result, tuple) or not is_inexact(result.dtype):
            return result
        if node.op.exact:
            return self._by(result, _eps(result), _least(result))
        whole, each = tolerances(node.op, real_of(result.dtype))
        finite = np.abs(result[np.isfinite(result)]).astype(np.float64)
        return self._by(result, each, whole * float(finite.max(initial=0)) + _least(result))

    def _by(self, x: Any, relative: float, absolute: float) -> Any:
        if isinstance(x, tuple) or not is_inexact(x.dtype):
            return x
        with np.errstate(all="ignore"):
            ways = self.rng.uniform(-1, 1, (2, *np.shape(x)))
            return (x.astype(_wide(x)) * (1 + relative * ways[0]) + absolute * ways[1]).astype(x.dtype)


def _eps(x: Any) -> float:
    return 0.0 if isinstance(x, tuple) or not is_inexact(x.dtype) else float(float_limits(real_of(x.dtype)).eps)


def _least(x: Array) -> float:
    """What is smaller may be rounded to zero, or to the next number that has all its bits."""
    return float(float_limits(real_of(x.dtype)).smallest_normal)


def _rounds(node: Node) -> bool:
    op = node.op
    return op not in (PICK, LOOP) and (not op.exact or op.name in ROUNDED or op.name in EITHER_ZERO) and not op.random


def overflows(output: Node, values: Mapping[Node, Any]) -> bool:
    """Whether finite operands make an infinity or a NaN somewhere, or infinite ones a NaN: algebra that is right for
    numbers may be another there, and what does not overflow is better."""
    watch = _Overflows()
    evaluate([output], values, watch=watch)
    return watch.found


class _Overflows(Watch):
    found = False

    def after(self, node: Node, inputs: Sequence[Any], result: Any) -> Any:
        if inputs and all(_all(np.isfinite, x) for x in inputs) and not _all(np.isfinite, result):
            self.found = True
        if not all(_all(_not_infinite, x) for x in inputs) and not _all(_not_nan, result):
            self.found = True
        return result


def _all(test: Callable[[Any], Any], x: Any) -> bool:
    if isinstance(x, tuple):
        return all(_all(test, part) for part in x)
    return not is_inexact(x.dtype) or bool(np.all(test(x)))


def _not_infinite(x: Any) -> Any:
    return ~np.isinf(x)


def _not_nan(x: Any) -> Any:
    return ~np.isnan(x)
