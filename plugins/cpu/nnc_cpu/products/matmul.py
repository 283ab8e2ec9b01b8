"""Matrix products, batched, either matrix transposed."""

from __future__ import annotations

from nnc_cpu.products.joined import JoinedProduct
from nnc_cpu.products.problem import MatrixProduct, product_problem


def matmul_problem(joined: JoinedProduct) -> MatrixProduct:
    """The problem of a matrix product."""
    a, b = joined.factors
    ta, tb = map(bool, joined.attributes)
    order = (a.place, b.place, *joined.places)
    return product_problem(a.layout, b.layout, (ta, tb), joined.others, joined.ending, order)
