"""Commands of attention, and what the composite makes of them in float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, boolean, float32
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_plugins.conformance.host import expected

Values = np.ndarray[Any, Any]
AHEAD, BACK = "scaled_dot_product_attention", "attention_gradients"


class Sizes(NamedTuple):
    """Of one command."""

    queries: int
    keys: int
    features: int = 8
    value_features: int = 8
    batch: int = 1
    heads: int = 1
    key_heads: int = 1


class Problem(NamedTuple):
    """Inputs of both ways, and attributes."""

    query: Values
    key: Values
    value: Values
    mask: tuple[Values, ...] = ()
    scale: float = 0.4
    causal: bool = False
    offset: int = 0

    @property
    def attributes(self) -> tuple[Any, ...]:
        return self.scale, self.causal, self.offset


def drawn(sizes: Sizes, dtype: DType = float32, mask: Values | None = None, causal: bool = False,
          offset: int = 0) -> Problem:
    rng = np.random.default_rng(sizes.queries)
    shapes = ((sizes.heads, sizes.queries, sizes.features), (sizes.key_heads, sizes.keys, sizes.features),
              (sizes.key_heads, sizes.keys, sizes.value_features))
    given = () if mask is None else (mask if mask.dtype == bool else mask.astype(dtype),)
    query, key, value = (rng.standard_normal((sizes.batch, *shape)).astype(dtype) for shape in shapes)
    return Problem(query, key, value, given, causal=causal, offset=offset)


def command_of(name: str, inputs: Sequence[Values], outputs: Sequence[Values], attributes: tuple[Any, ...]) -> Command:
    layouts = [[Layout.packed(x.shape, x.dtype) for x in arrays] for arrays in (inputs, outputs)]
    return Command(name, attributes, tuple(layouts[0]), tuple(layouts[1]))


def operands_back(p: Problem) -> list[Values]:
    """Those of the gradients: the sums are the right ones, the cotangents drawn."""
    result, sums = (x.astype(p.query.dtype) for x in wanted(AHEAD, [p.query, p.key, p.value, *p.mask], p.attributes))
    cotangent = np.random.default_rng(1).standard_normal(result.shape).astype(result.dtype)
    return [p.query, p.key, p.value, cotangent, sums, (result * cotangent).sum(-1), *p.mask]


def wanted(name: str, inputs: Sequence[Values], attributes: tuple[Any, ...]) -> tuple[Values, ...]:
    """What the composite gives in float64."""
    wide = [x if x.dtype == boolean else x.astype(np.float64) for x in inputs]
    with np.errstate(all="ignore"):
        found: tuple[Values, ...] = expected(OPERATORS[name], tuple(wide), attributes)
    return found


def near(found: Sequence[Values], expected: Sequence[Values], dtype: Any, largest: float) -> None:
    """Within roundings of sums, relative to the largest element of each array, and to the largest score."""
    for a, b in zip(found, expected, strict=True):
        finite = np.isfinite(b)
        assert (np.isnan(a) == np.isnan(b)).all()
        bound = 200 * float(np.finfo(dtype).eps) * largest * max(1.0, float(np.abs(b[finite]).max(initial=0)))
        assert np.abs(a - b)[finite].max(initial=0) <= bound
