"""Products with Jacobians and Hessians, and what is made of Hessians."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnc_core.algodiff.gradients import grad_of, hessian_of, jvp, taken, unit_cotangents, value_and_jacobian
from nnc_core.control.alike import functions
from nnc_core.type import whole
from nnc_core.values.arguments import located
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.operands import value_of
from nnc_core.values.postponed import postponable
from nnc_core.values.results import ONE
from nnc_core.values.tensor import Tensor

__all__ = ["gradhessian", "gradhessianv", "hessianv", "jacobianv", "laplacian"]


@located
def jacobianv(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Jacobian of f at x times v, by one forward sweep: no Jacobian is made.  x and v are alike."""
    functions(f=f)
    return jvp(f, (x,), (v,))[1]


@located
def hessianv(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """The Hessian of a scalar f at x times v: a forward sweep over the gradient, no Hessian is made."""
    functions(f=f)
    return gradhessianv(f, x, v)[1]


@located
def gradhessianv(f: Callable[..., Any], x: Any, v: Any) -> tuple[Any, Any]:
    """(gradient of a scalar f at x, its Hessian there times v)."""
    return jvp(grad_of(f, 0), (x,), (v,))


@located
def gradhessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., tuple[Tensor, Tensor]]:
    """A function that gives (gradient, Hessian) of a scalar f by one tensor argument."""
    return value_and_jacobian(grad_of(f, argnums), argnums)


@located
def laplacian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Tensor]:
    """A function that gives the Laplacian of a scalar f by one tensor argument: the trace of its Hessian."""
    of_all = hessian_of(f, argnums)
    argnums = whole(argnums, "argnums")

    def wrapped(*args: Any, **kwargs: Any) -> Tensor:
        x = taken(args[argnums])
        curvature = value_of(of_all(*args[:argnums], x, *args[argnums + 1 :], **kwargs))
        with use_device(curvature.stack):
            diagonal = F.reshape(unit_cotangents(x)._value, shape=(*x.shape, *x.shape))
            return Tensor(F.sum(F.multiply(curvature, diagonal), axis=tuple(range(curvature.ndim)), keepdims=False))

    return postponable(wrapped, lambda *args, **kwargs: ONE, "laplacian")
