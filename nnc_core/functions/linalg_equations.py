"""Matrix equations of control theory; matrices lie along the last two axes, leading axes are broadcast.

They need SciPy, which `pip install nnc-core[linalg]` brings.
"""

from __future__ import annotations

from nnc_core.operator.matrices import h
from nnc_core.shape import linalg as rule
from nnc_core.values.arguments import ArrayLike, as_values, names_itself
from nnc_core.values.dispatch import F
from nnc_core.values.tensor import Tensor

__all__ = [
    "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov",
    "solve_sylvester",
]  # fmt: skip


@names_itself
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike, /) -> Tensor:
    """X of a X + X b = q (Sylvester): a (..., m, m), b (..., n, n), q (..., m, n).

    LinAlgError where an eigenvalue of a is minus one of b, or nearly.
    """
    return Tensor(F.sylvester(*as_values(a, b, q)))


@names_itself
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike, /) -> Tensor:
    """X of a X + X aᴴ = q (Lyapunov): a and q (..., n, n)."""
    v, w = as_values(a, q)
    rule.square(v.spec)
    return Tensor(F.sylvester(v, h(F, v), w))


@names_itself
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, /) -> Tensor:
    """X of a X aᴴ - X + q = 0: a and q (..., n, n).

    LinAlgError where the product of two eigenvalues of a is 1, or nearly.
    """
    v, w = as_values(a, q)
    rule.square(v.spec)
    return Tensor(F.stein(v, h(F, v), w))


@names_itself
def solve_continuous_are(a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike, /) -> Tensor:
    """The stabilising X of aᴴ X + X a - X b r⁻¹ bᴴ X + q = 0 (Riccati): a and q (..., n, n), b (..., n, k),
    r (..., k, k).

    q and r are Hermitian, of others the Hermitian parts are taken.  LinAlgError where there is no such X.
    """
    return Tensor(F.care(*as_values(a, b, q, r)))


@names_itself
def solve_discrete_are(a: ArrayLike, b: ArrayLike, q: ArrayLike, r: ArrayLike, /) -> Tensor:
    """The stabilising X of aᴴ X a - X - aᴴ X b (r + bᴴ X b)⁻¹ bᴴ X a + q = 0; shapes as for solve_continuous_are."""
    return Tensor(F.dare(*as_values(a, b, q, r)))
