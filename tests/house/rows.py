"""One row of a table that maps what a parent has to what we have: names, code for both sides, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

import nnc_core as nnc

Array = np.ndarray[Any, Any]
Code = Callable[..., Any]


class Row(NamedTuple):
    """`run` takes tensors, `wanted` NumPy arrays: both `inputs`.  Results are an array, a number or a sequence."""

    ours: str
    """Public names, separated by commas; or methods, as Tensor.at."""
    run: Code
    wanted: Code
    inputs: tuple[Array, ...] = ()
    note: str = ""
    """What folds into what, and where the parent means something else by it."""
    near: float = 1e-11
    """Relative and absolute error."""
    eager_only: str = ""
    """Why it is not also run by jit."""


def both(ours: str, code: Code, *inputs: Array, **more: Any) -> Row:
    """The same code on nnc and on NumPy: (namespace, *arrays)."""
    return Row(ours, partial(code, nnc), partial(code, np), inputs, **more)


def public(name: str) -> Any:
    """What a dotted public name stands for; None if there is nothing."""
    return reduce(lambda value, part: getattr(value, part, None), name.split("."), nnc)


def hosts(result: Any) -> list[Array]:
    """A result's parts as NumPy arrays."""
    if isinstance(result, (tuple, list)):
        return [part for r in result for part in hosts(r)]
    return [result.numpy() if isinstance(result, nnc.Tensor) else np.asarray(result)]


def check(row: Row, found: Any) -> None:
    """Shapes are equal, and values near."""
    wanted = hosts(row.wanted(*row.inputs))
    results = hosts(found)
    assert len(results) == len(wanted)
    for a, b in zip(results, wanted, strict=True):
        assert a.shape == b.shape, (a.shape, b.shape)
        np.testing.assert_allclose(a, b, rtol=row.near, atol=row.near)


def run_eagerly(row: Row) -> Any:
    return row.run(*[nnc.asarray(x) for x in row.inputs])


def run_compiled(row: Row) -> Any:
    """By jit, tensors of its results."""
    f = nnc.jit(lambda *xs: row.run(*xs))
    return f(*[nnc.asarray(x) for x in row.inputs])
