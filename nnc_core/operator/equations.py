"""Matrix equations: Sylvester's, Stein's, Riccati's; stacks along leading axes, of floats or complex
numbers, on the host.

Derivatives are those of the implicit function: each solves an equation of the same kind, or Sylvester's or Stein's.  Of
the Riccati equations, written with the gain K, those terms vanish in which K moves, since the solution is stationary
in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

from nnc_core.operator import equations_reference as by_scipy
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.flops import cubic, two_sided
from nnc_core.operator.matrices import added, h, hermitian, hn, mm, nh
from nnc_core.shape import linalg as rule

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _to(F: Namespace[V], cotangents: tuple[Any, ...], *xs: Any) -> tuple[Any, ...]:
    """With broadcasts along leading axes undone."""
    return tuple([F.sum_to(g, x.shape) for g, x in zip(cotangents, xs, strict=True)])


def _sylvester_vjp(F: Namespace[V], g: V, x: V, a: V, b: V, q: V) -> tuple[V | None, ...]:
    gq = F.sylvester(h(F, a), h(F, b), g)
    return _to(F, (F.negative(nh(F, gq, x)), F.negative(hn(F, x, gq)), gq), a, b, q)


def _sylvester_jvp(F: Namespace[V], tangents: Any, x: Any, a: Any, b: Any, q: Any) -> Any:
    da, db, dq = tangents
    moved = added(F, None if da is None else mm(F, da, x), None if db is None else mm(F, x, db))
    return F.sylvester(a, b, added(F, dq, None if moved is None else F.negative(moved)))


def _stein_vjp(F: Namespace[V], g: V, x: V, a: V, b: V, q: V) -> tuple[V | None, ...]:
    gq = F.stein(h(F, a), h(F, b), g)
    return _to(F, (nh(F, gq, mm(F, x, b)), hn(F, mm(F, a, x), gq), gq), a, b, q)


def _stein_jvp(F: Namespace[V], tangents: Any, x: Any, a: Any, b: Any, q: Any) -> Any:
    da, db, dq = tangents
    return F.stein(a, b, added(F, dq, None if da is None else mm(F, da, x, b),
                               None if db is None else mm(F, a, x, db)))


def _continuous(F: Namespace[V], x: V, a: V, b: V, r: V) -> tuple[V, V, V]:
    """The gain, the closed loop, and what da - db K is multiplied by: X."""
    gain = F.solve(hermitian(F, r), hn(F, b, x))
    return gain, F.subtract(a, mm(F, b, gain)), x


def _discrete(F: Namespace[V], x: V, a: V, b: V, r: V) -> tuple[V, V, V]:
    """The gain, the closed loop, and what da - db K is multiplied by: X times the closed loop."""
    weighted = hn(F, b, x)
    gain = F.solve(F.add(hermitian(F, r), mm(F, weighted, b)), mm(F, weighted, a))
    closed = F.subtract(a, mm(F, b, gain))
    return gain, closed, mm(F, x, closed)


def _riccati_vjp(parts: Any, adjoint: Any) -> Any:
    def vjp(F: Namespace[V], g: V, x: V, a: V, b: V, q: V, r: V) -> tuple[V | None, ...]:
        gain, closed, factor = parts(F, x, a, b, r)
        gq = hermitian(F, adjoint(F, closed, hermitian(F, g)))
        ga = F.multiply(mm(F, factor, gq), 2.0)
        return _to(F, (ga, F.negative(nh(F, ga, gain)), gq, mm(F, gain, nh(F, gq, gain))), a, b, q, r)

    return vjp


def _riccati_jvp(parts: Any, solve: Any) -> Any:
    def jvp(F: Namespace[V], tangents: Any, x: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
        (da, db, dq, dr), (gain, closed, factor) = tangents, parts(F, x, a, b, r)
        moved = added(F, da, None if db is None else F.negative(mm(F, db, gain)))
        both = None if moved is None else F.multiply(hermitian(F, hn(F, moved, factor)), 2.0)
        weights = None if dr is None else hn(F, gain, mm(F, hermitian(F, dr), gain))
        return solve(F, closed, added(F, both, None if dq is None else hermitian(F, dq), weights))

    return jvp


class Equations(Base[V], Generic[V]):
    @op(infer=rule.two_sided, reference=by_scipy.sylvester, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_sylvester_vjp,
        jvp=_sylvester_jvp, flops=two_sided)
    def sylvester(self, a: V, b: V, q: V) -> V:
        """X of a X + X b = q; unique where no eigenvalue of a is minus one of b."""
        ...

    @op(infer=rule.two_sided, reference=by_scipy.stein, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_stein_vjp,
        jvp=_stein_jvp, flops=two_sided)
    def stein(self, a: V, b: V, q: V) -> V:
        """X of X = a X b + q; unique where no eigenvalue of a times one of b is 1."""
        ...

    @op(infer=rule.riccati, reference=by_scipy.care, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_riccati_vjp(_continuous, lambda F, c, g: F.negative(F.sylvester(c, h(F, c), g))),
        jvp=_riccati_jvp(_continuous, lambda F, c, w: F.negative(F.sylvester(h(F, c), c, w))), flops=cubic(200))
    def care(self, a: V, b: V, q: V, r: V) -> V:
        """The stabilising X of aᴴ X + X a - X b r⁻¹ bᴴ X + q = 0; q and r stand for their Hermitian parts."""
        ...

    @op(infer=rule.riccati, reference=by_scipy.dare, fallible=True, promote=ALL_INPUTS, to_float=True,
        vjp=_riccati_vjp(_discrete, lambda F, c, g: F.stein(c, h(F, c), g)),
        jvp=_riccati_jvp(_discrete, lambda F, c, w: F.stein(h(F, c), c, w)), flops=cubic(200))
    def dare(self, a: V, b: V, q: V, r: V) -> V:
        """The stabilising X of aᴴ X a - X - aᴴ X b (r + bᴴ X b)⁻¹ bᴴ X a + q = 0; q and r stand for their Hermitian
        parts."""
        ...
