"""Arrays that a function needs beside its operands: part of the graph wherever the operands are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType
from nnc_core.base.errors import NotSupportedError
from nnc_core.operator import CONSTANT
from nnc_core.symbol import Literal
from nnc_core.type import TensorSpec
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import NOW, deferred, lazy, use_device
from nnc_core.values.value import Step, Value
from nnc_core.values.whole import noting


def is_recorded(v: Value) -> bool:
    """True if what is done to v is recorded, to be computed later."""
    return v.array is None or lazy.get() != NOW


def host_of(v: Value) -> np.ndarray[Any, Any] | None:
    """The elements of a value where they are at hand; None where they are computed later."""
    if noting.get() is not None:
        raise NotSupportedError("elements are looked at, which may be others the next time")
    if is_recorded(v):
        return None
    host: np.ndarray[Any, Any] = v.stack.engine.executor.download(v.array)
    return host


@contextmanager
def beside(v: Value) -> Iterator[None]:
    """Operators without inputs make their results where v is, and when what is done to v is computed: an array made at
    once would be neither an input of an exported graph nor a constant of it."""
    with use_device(v.stack), deferred() if v.array is None and lazy.get() == NOW else nullcontext():
        yield


def constant_beside(v: Value, array: Any, dtype: DType | None = None) -> Value:
    """A host array where v is, as a constant of the graph that v is part of."""
    host = np.asarray(array, dtype)
    array = np.ascontiguousarray(host).reshape(host.shape)
    made = host_value(array, stack=v.stack)
    if not is_recorded(v):
        return made
    own = array.copy()
    own.setflags(write=False)
    spec = TensorSpec(own.shape, own.dtype)
    return Value(made.array, v.stack, spec, Step(CONSTANT, (), (Literal(own), spec), None))
