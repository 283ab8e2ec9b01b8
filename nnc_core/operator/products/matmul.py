"""Matrix products, batched, either matrix transposed."""

from __future__ import annotations

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.tiling import Tiling
from nnc_core.operator.products.joined import JoinedProduct, plain, width_of
from nnc_core.operator.products.problem import MatrixProduct, in_panels, product_problem


def matmul_problem(joined: JoinedProduct) -> MatrixProduct:
    """The problem of a matrix product."""
    a, b = joined.factors
    ta, tb = map(bool, joined.attributes)
    order = (a.place, b.place, *joined.places)
    problem = product_problem(plain(a), plain(b), (ta, tb), joined.others, joined.ending, order)
    if b.tiling is None:
        return problem
    if b.tiling != weight_tiling(tb, width_of(b.tiling)):
        raise NotSupportedError("the second matrix is not packed as it should be")
    return in_panels(problem, width_of(b.tiling))


def weight_tiling(transposed: bool, width: int) -> Tiling:
    """Panels of so many columns of a matrix."""
    return Tiling((width, 1), (0, 1, 2)) if transposed else Tiling((1, width), (1, 0, 3))
