"""Operators with sliding windows and what else looks at images."""

from __future__ import annotations

from typing import Generic

from nnc_core.operator.convolution import Convolution
from nnc_core.operator.declare import V, op
from nnc_core.operator.loops import elementwise_nest
from nnc_core.operator.pooling import Pooling
from nnc_core.operator.regions import Regions
from nnc_core.operator.resampling import Resampling
from nnc_core.shape import window as rule
from nnc_core.type import Dims


class Windows(Convolution[V], Pooling[V], Resampling[V], Regions[V], Generic[V]):
    """Images are (batch, spatial dimensions, channels) in the order that `layout` says."""

    @op(infer=rule.of_size, reference=lambda x, size, layout: x, view=lambda x, size, layout: x,
        nest=lambda c: elementwise_nest(lambda x: x, c._replace(attributes=())),
        exact=True, linear="jointly", vjp=lambda F, g, y, x, size, layout: (g,))
    def of_size(self, x: V, *, size: Dims, layout: str) -> V:
        """x itself, whose spatial dimensions are `size`: what follows was recorded for these and may be wrong for
        others, though no attribute shows it."""
        ...
