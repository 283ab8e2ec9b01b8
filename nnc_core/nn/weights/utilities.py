"""Functions on all parameters of modules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Any

from nnc_core.base.errors import OperandError, StateError
from nnc_core.functions.creation import asarray, zeros
from nnc_core.functions.elementwise import isnan, logical_or
from nnc_core.functions.reduction import any as any_
from nnc_core.nn.module import Module
from nnc_core.nn.weights.freezing import chosen
from nnc_core.values.arguments import located
from nnc_core.values.modes import no_grad
from nnc_core.values.tensor import Tensor


@located
def map_parameters(f: Callable[..., Tensor], module: Module, *others: Module, names: tuple[str, ...] = ()) -> None:
    """Replace each parameter p of the module by f(p), or by f(p, q, ...) with those of the same name of other modules.

    `names` are patterns such as "encoder.*"; frozen parameters count like all.  All new values are computed before the
    first is written.  `map_parameters(lambda m, p: m * 0.9 + p * 0.1, mean, model)` moves a running mean (NNC's
    parameters_map and parameters_zip_map).

    Raises StateError for modules whose parameters have other names, ShapeError and DTypeError for what f gives.
    """
    mine = module.named_parameters(frozen=None)
    theirs = [other.named_parameters(frozen=None) for other in others]
    for other, parameters in zip(others, theirs, strict=True):
        if parameters.keys() != mine.keys():
            strange = sorted(parameters.keys() ^ mine.keys())
            raise StateError(f"{type(other).__name__} and {type(module).__name__} have not the same parameters: only "
                             f"one has {', '.join(strange)}")
    wanted = set(chosen(mine, names))
    with no_grad():
        new = {name: f(p.read(), *[q[name].read() for q in theirs]) for name, p in mine.items() if p in wanted}
    for name, tensor in new.items():
        if not isinstance(tensor, Tensor):
            raise OperandError(f"the function gave a {type(tensor).__name__} for {name!r}, expected a tensor")
    before = {name: mine[name].read().detach() for name in new}
    try:
        for name, tensor in new.items():
            mine[name].write(tensor)
    except BaseException:
        for name, tensor in before.items():
            mine[name].write(tensor)
        raise


@located
def has_nan(tensors: Mapping[str, Any] | Iterable[Any]) -> Tensor:
    """Tell whether a NaN is in one of the tensors of a dict or a sequence, such as gradients by name: a boolean scalar,
    so that code that asks can be compiled (NNC's parameter_gradients_isnan)."""
    found = [any_(isnan(asarray(t))) for t in (tensors.values() if isinstance(tensors, dict) else tensors)]
    return reduce(logical_or, found) if found else zeros((), dtype="bool")
