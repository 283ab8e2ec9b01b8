"""Backward passes over the dynamic graph: gradients added up at variables, or given back."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock
from typing import Any

from nnc_core.algodiff.reverse_pass import swept
from nnc_core.algodiff.tape import Tape, history, variables
from nnc_core.base.dtype import is_float
from nnc_core.base.errors import DeviceError, GradientError, OperandError
from nnc_core.values.arguments import located
from nnc_core.values.dispatch import F
from nnc_core.values.modes import no_grad, use_device
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value, made_at

_accumulating = RLock()


@located
def backward(y: Tensor | Sequence[Tensor], gradient: Tensor | Sequence[Tensor | None] | None = None) -> None:
    """Add to `.grad` of every variable that y was computed from; `gradient` is the cotangent of y, ones for a scalar.

    Several tensors with a cotangent (or None) each are gone back from in one pass.  A structure of steps that keeps
    coming is compiled.
    """
    roots, seeds = _ends(y, gradient)
    order = history(roots)
    leaves = variables(order)
    if not leaves:
        raise GradientError(f"{roots[0].spec} depends on no variable", line=made_at(roots[0]),
                            hint="nnc.variable makes tensors to differentiate by; module.requires_grad_() its weights")
    for leaf, g in zip(leaves, swept(Tape(order, roots, seeds, leaves)), strict=True):
        if g is not None:
            _accumulate(leaf, g)


@located
def gradients(y: Tensor | Sequence[Tensor], wrt: Sequence[Tensor],
              gradient: Tensor | Sequence[Tensor | None] | None = None, *,
              create_graph: bool = False) -> list[Tensor | None]:
    """The gradients of y by tensors that it was computed from, variables or not; None for those that it was not.

    `.grad` stays as it is.  With `create_graph` the gradients can be differentiated again.
    """
    roots, seeds = _ends(y, gradient)
    sources = [_tracked(t) for t in wrt]
    found = swept(Tape(history(roots), roots, seeds, sources), create_graph)
    return [None if g is None else Tensor(g) for g in found]


def _tracked(t: Tensor) -> Value:
    v = value_of(t)
    if not v.tracked:
        raise GradientError(f"a gradient by {v.spec}, which is a constant", line=made_at(v),
                            hint="only variables and what is computed from them have gradients: nnc.variable")
    return v


def _ends(y: Any, gradient: Any) -> tuple[list[Value], list[Value | None]]:
    """The starting points of a sweep: values, and their cotangents, None for ones."""
    several = not isinstance(y, Tensor)
    given = list(gradient) if several and gradient is not None else [gradient] * (len(y) if several else 1)
    tensors = list(y) if several else [y]
    if not tensors:
        raise GradientError("there is nothing to differentiate")
    if len(given) != len(tensors):
        raise GradientError(f"{len(given)} gradients for {len(tensors)} tensors")
    roots = [value_of(t) for t in tensors]
    seeds = [_seed(v, g) for v, g in zip(roots, given, strict=True)]
    for v in roots[1:]:
        if v.stack is not roots[0].stack:
            raise DeviceError(f"one pass over values on {roots[0].stack.device.spec.id} and {v.stack.device.spec.id}",
                              hint="go back from each of them on its own")
    return roots, seeds


def _seed(root: Value, gradient: Tensor | None) -> Value | None:
    if gradient is None:
        if root.shape != () or not is_float(root.dtype):
            raise GradientError(f"the function gives {root.spec}; only a floating-point scalar has a gradient",
                                line=made_at(root), hint="sum it, or give the gradient of the result")
        return None
    if not isinstance(gradient, Tensor):
        raise OperandError(f"the gradient is {type(gradient).__name__}, not a tensor", hint="nnc.asarray(...)")
    if gradient.spec != root.spec:
        raise GradientError(f"the gradient is {gradient.spec} where the tensor is {root.spec}")
    if gradient._value.stack is not root.stack:
        raise DeviceError(f"the gradient is on {gradient.device.id}, the tensor on {root.stack.device.spec.id}",
                          hint="move it with .to(...)")
    return value_of(gradient)


def _accumulate(leaf: Value, g: Value) -> None:
    with _accumulating:  # what several threads add is added up
        adjoint = leaf.kept_adjoint()
        adjoint.grad = g if adjoint.grad is None else _added(adjoint.grad, g)
    if adjoint.after:
        with no_grad(), use_device(leaf.stack):
            for after in list(adjoint.after.values()):
                after(leaf)


def _added(known: Value, g: Value) -> Value:
    with no_grad(), use_device(known.stack):
        return F.add(known, g)
