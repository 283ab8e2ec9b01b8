"""`__array_ufunc__`: `np.exp(x)`, `array + x`, `array += x`, `np.add.reduce(x)`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.functions import public
from nnc_core.numpy_calls.operands import is_known, is_ours, not_written, on_host, refusal
from nnc_core.spellings import function_called
from nnc_core.values.respelling import is_neutral

REDUCTIONS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
              "logical_or": "any"}  # fmt: skip
SCANS = {"add": "cumulative_sum", "multiply": "cumulative_prod"}
OF_SCIPY = frozenset({
    "beta", "betaln", "binom", "boxcox", "boxcox1p", "cosm1", "dawsn", "digamma", "entr", "erf", "erfc", "erfcx",
    "erfinv", "exp10", "expit", "exprel", "gamma", "gammaln", "gammasgn", "i0", "i0e", "i1", "i1e", "inv_boxcox",
    "inv_boxcox1p", "log_ndtr", "logit", "ndtr", "poch", "rel_entr", "xlog1py", "xlogy",
})  # fmt: skip
"""Functions of scipy.special whose namesakes here mean the same."""


def array_ufunc(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """A call of one of NumPy's universal functions with a tensor among its arguments."""
    out = kwargs.pop("out", ())
    if not all(map(is_known, (*inputs, *[x for x in out if x is not None]))):
        return NotImplemented
    if any(map(is_ours, out)) or (method == "at" and is_ours(inputs[0])):
        raise not_written(ufunc.__name__)
    if method == "at" or any(x is not None for x in out):
        if out:
            kwargs["out"] = out
        return getattr(ufunc, method)(*map(on_host, inputs), **{k: on_host(x) for k, x in kwargs.items()})
    return METHODS[method](ufunc, inputs, kwargs) if method in METHODS else _no_method(ufunc, method)


def _no_method(ufunc: np.ufunc, method: str) -> Any:
    raise refusal(f"{ufunc.__name__}.{method}")


def _function(ufunc: np.ufunc) -> Callable[..., Any]:
    """The function of ours that means the same."""
    called = ufunc.__name__
    special: Any = sys.modules.get("scipy.special._ufuncs")
    known = getattr(np, called, None) is ufunc or (called in OF_SCIPY and getattr(special, called, None) is ufunc)
    found = function_called(called) if known else None
    if found is None:
        raise refusal(called)
    return found


def _check_options(ufunc: np.ufunc, kwargs: dict[str, Any]) -> None:
    for name, x in kwargs.items():
        if not is_neutral(name, x):
            raise refusal(ufunc.__name__, f"takes no {name}= beside tensors", "the function of nnc's")


def _call(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    _check_options(ufunc, kwargs)
    return _function(ufunc)(*inputs)


def _outer(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Each element of the first with each of the second."""
    _check_options(ufunc, kwargs)
    a, b = map(public.asarray, inputs)
    return _function(ufunc)(public.reshape(a, (*a.shape, *[1] * b.ndim)), b)


def _along(names: dict[str, str], method: str) -> Callable[..., Any]:
    """A reduction or a scan, along the first axis if none is named."""

    def along(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        name = names.get(ufunc.__name__)
        if name is None or getattr(np, ufunc.__name__, None) is not ufunc:
            raise refusal(f"{ufunc.__name__}.{method}")
        x, *rest = inputs
        given = {"axis": 0, **dict(zip(("axis", "dtype"), rest, strict=False)), **kwargs}
        given = {k: v for k, v in given.items() if k == "axis" or not is_neutral(k, v)}
        return getattr(public, name)(x, **given)

    return along


METHODS: dict[str, Callable[..., Any]] = {
    "__call__": _call, "outer": _outer, "reduce": _along(REDUCTIONS, "reduce"),
    "accumulate": _along(SCANS, "accumulate"),
}  # fmt: skip
