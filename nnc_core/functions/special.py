"""Special functions, with the names of scipy.special."""

from __future__ import annotations

from nnc_core.functions.pointwise import binary, unary
from nnc_core.functions.reduction import as_inexact
from nnc_core.functions.riemann import riemann
from nnc_core.type import whole
from nnc_core.values.arguments import ArrayLike, as_operands, as_value, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.operands import operand
from nnc_core.values.tensor import Tensor

__all__ = [
    "betaln", "dawsn", "digamma", "erf", "erfc", "erfcx", "erfinv", "gammaln", "i0", "i0e", "i1", "i1e", "lgamma",
    "log_ndtr", "ndtr", "polygamma", "zeta",
]  # fmt: skip

erf, erfc, erfcx, erfinv = unary("erf"), unary("erfc"), unary("erfcx"), unary("erfinv")
ndtr, log_ndtr, dawsn = unary("ndtr"), unary("log_ndtr"), unary("dawsn")
lgamma, gammaln, digamma, betaln = unary("lgamma"), unary("lgamma", "gammaln"), unary("digamma"), binary("betaln")
i0, i1, i0e, i1e = unary("i0"), unary("i1"), unary("i0e"), unary("i1e")


@names_itself
def polygamma(n: int, x: ArrayLike, /) -> Tensor:
    """The n-th derivative of digamma, n from 0 to 20."""
    n = whole(n, "n", hint="the order is a Python number")
    return Tensor(F.digamma(operand(x)) if n == 0 else F.polygamma(operand(x), order=n))


@names_itself
def zeta(x: ArrayLike, q: ArrayLike | None = None, /) -> Tensor:
    """The sum of (q + k)**-x over k = 0, 1, 2 ...: Hurwitz' zeta function of x >= -1, or without q Riemann's, of all x
    (q is 1).  Below x = 1 it is continued."""
    if q is None:
        return Tensor(riemann(as_inexact(as_value(x))))
    return Tensor(F.zeta(*as_operands(x, q)))
