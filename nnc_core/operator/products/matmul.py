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
    width, word = width_of(b.tiling), b.tiling.blocks[1 if tb else 0]
    if b.tiling != weight_tiling(tb, width, word):
        raise NotSupportedError("the second matrix is not packed as it should be")
    return in_panels(problem, width, word)


def weight_tiling(transposed: bool, width: int, word: int = 1) -> Tiling:
    """Panels of so many columns of a matrix; the elements of `word` steps of a column lie side by side."""
    if word == 1:
        return Tiling((width, 1), (0, 1, 2)) if transposed else Tiling((1, width), (1, 0, 3))
    return Tiling((width, word), (0, 1, 2, 3)) if transposed else Tiling((word, width), (1, 0, 3, 2))
