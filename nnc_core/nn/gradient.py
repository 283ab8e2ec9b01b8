"""Gradients by the parameters of a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.algodiff import gradients
from nnc_core.base.errors import GradientError
from nnc_core.nn.module import Module
from nnc_core.nn.parameter import Parameter, read_as
from nnc_core.values.tensor import Tensor
from nnc_core.values.trace import guarded


def value_and_grad(module: Module, loss_fn: Callable[..., Any], *, parameters: Mapping[str, Parameter] | None = None,
                   has_aux: bool = False) -> Callable[..., tuple[Any, dict[str, Tensor]]]:
    """A function that gives (loss_fn(...), {name: gradient of the loss by that parameter}).

    By default all parameters that the module has when it is called.  loss_fn calls the module and gives a
    floating-point scalar; with `has_aux` (scalar, anything).  Works in every mode and inside other gradients; a
    parameter that the loss does not depend on has a gradient of zeros.
    """

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, dict[str, Tensor]]:
        guarded(module._read_version)
        chosen = module.named_parameters() if parameters is None else dict(parameters)
        if not chosen:
            still = bool(module.named_parameters(frozen=True))
            raise GradientError(f"{type(module).__name__} has no parameters to differentiate by",
                                hint="all are frozen: module.unfreeze(...)" if still else
                                "set Parameters or Modules as attributes")

        def of_weights(weights: dict[str, Tensor]) -> Any:
            with read_as({chosen[name]: leaf for name, leaf in weights.items()}):
                return loss_fn(*args, **kwargs)

        weights = {name: p.read() for name, p in chosen.items()}
        loss, grads = gradients.value_and_grad(of_weights, has_aux=has_aux)(weights)
        return loss, grads

    return wrapped
