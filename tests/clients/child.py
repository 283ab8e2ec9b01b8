"""Run clients' cases with tensors in a process of its own: `python -m tests.clients.child scipy_cases eager NAME ...`.

Prints a JSON object: for each name why it fails, or "".  Libraries read their switches when they are imported.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import warnings
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np

import nnc_core as nnc


def leaves(tree: Any) -> list[Any]:
    """What a case gives, from left to right."""
    if isinstance(tree, (tuple, list)):
        return [x for part in tree for x in leaves(part)]
    return [] if tree is None else [tree]


def named(case: Any) -> tuple[str, ...]:
    """The names of the arrays that a case takes."""
    return getattr(case, "takes", None) or tuple(inspect.signature(case).parameters)


class Conversions:
    """Counts tensors that are made arrays of NumPy's."""

    def __init__(self) -> None:
        self.count, convert = 0, nnc.Tensor.__array__

        def counted(tensor: nnc.Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
            self.count += 1
            return convert(tensor, dtype, copy)

        nnc.Tensor.__array__ = counted  # type: ignore[method-assign]


def difference(found: Any, wanted: Any) -> str:
    """The way in which a result differs from NumPy's; "" where it does not."""
    if isinstance(wanted, np.ndarray) and not isinstance(found, nnc.Tensor):
        return f"{type(found).__name__} instead of a tensor"
    given = found.numpy() if isinstance(found, nnc.Tensor) else np.asarray(found)
    expected = np.asarray(wanted)
    if given.shape != expected.shape or given.dtype != expected.dtype:
        return f"{given.dtype}{given.shape} instead of {expected.dtype}{expected.shape}"
    return "" if np.allclose(given, expected, rtol=1e-6, atol=1e-9, equal_nan=True) else f"{given} is not {expected}"


def failure(cases: Any, name: str, arrays: dict[str, Any], conversions: Conversions, deferred: bool) -> str:
    """The reason for which a case fails; "" where it does not."""
    case = cases.CASES[name]
    wanted = leaves(case(**{k: arrays[k].copy() for k in named(case)}))
    before = conversions.count
    try:
        with nnc.deferred(deferred):
            found = leaves(case(**{k: nnc.asarray(arrays[k]) for k in named(case)}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if name not in cases.ON_HOST and conversions.count != before:
        return f"{conversions.count - before} conversions"
    if len(found) != len(wanted):
        return f"{len(found)} results instead of {len(wanted)}"
    return next(filter(None, map(difference, found, wanted)), "")


def main(module: str, mode: str, *names: str) -> None:
    warnings.simplefilter("ignore")
    nnc.config.default_float = "float64"
    cases = importlib.import_module(f"tests.clients.{module}")
    conversions, arrays = Conversions(), cases.data()
    print(json.dumps({n: failure(cases, n, arrays, conversions, mode == "deferred") for n in names or cases.CASES}))


if __name__ == "__main__":
    main(*sys.argv[1:])
