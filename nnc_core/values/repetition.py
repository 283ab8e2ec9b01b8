"""Functions made of operators that follow from the shapes of their operands: kept, they are called straight away.

Such a function says so (`by_shapes`).  When it is called for the third time with tensors of the same shapes and dtypes
and with the same other arguments, or for the seventeenth without any tensor, its operators are recorded, and the next
such calls run the device's eager kernels one after the other: the same kernels on the same arrays, without the Python
that leads to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from types import EllipsisType, FunctionType, NoneType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from nnc_core.base.config import config
from nnc_core.base.fast_path import CLOSED_BY
from nnc_core.stacks import Stack
from nnc_core.type import TensorSpec
from nnc_core.values.array_program import ArrayProgram, Given, Lowering
from nnc_core.values.modes import current_stack, current_trace, deferred, gradients, lazy
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import noting

P = ParamSpec("P")
R = TypeVar("R")
COUNTED, COUNTED_OF_NONE = 2, 16
"""Calls of a kind that run as they are, before one is recorded; of functions that are given no tensors, whose sizes
change more often than those of operands do, and which gain a few us each time."""
MOST_REPEATED = 1024
"""Kinds of calls that a stack remembers at a time."""
MOST_LISTED = 16
"""Items of a list that are looked at."""
_PLAIN = frozenset({int, bool, str, NoneType, EllipsisType, type})
_UNKNOWN: Any = object()


def by_shapes(f: Callable[P, R]) -> Callable[P, R]:
    """A function whose operators follow from the shapes and dtypes of its tensors, and from its other arguments:
    it looks at no element, draws nothing, and changes nothing."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if CLOSED_BY or lazy.get() or current_trace.get() is not None:
            return f(*args, **kwargs)
        arrays: list[Any] = []
        key: list[Any] = [f, config.default_float]
        stack = _read(args, arrays, key, None)
        if kwargs and stack is not _UNKNOWN:
            for name, x in kwargs.items():
                if name == "device":  # the function finds out whose stack it is
                    return f(*args, **kwargs)
                key.append(name)
                stack = _read((x,), arrays, key, stack)
                if stack is _UNKNOWN:
                    break
        if stack is _UNKNOWN:
            return f(*args, **kwargs)
        stack = stack or current_stack()
        kind = (*key,)
        known = stack.repeated.get(kind, 0)
        if known.__class__ is FunctionType:
            try:
                found = known(*arrays)
            except Exception:
                found = NotImplemented  # the operators find out why
            if found is not NotImplemented:
                return found  # type: ignore[no-any-return]
        elif known is not None:
            _count(kind, known, stack, f, args, kwargs, arrays)
        return f(*args, **kwargs)

    return call


def _read(operands: Any, arrays: list[Any], key: list[Any], stack: Any) -> Any:
    """The stack of tensors among operands, whose arrays and kinds are noted; _UNKNOWN where there are others than
    arrays of the host that are there, or arguments that are not known to mean the same again."""
    for x in operands:
        kind = x.__class__
        if kind is Tensor or kind is Value:
            v = x._value if kind is Tensor else x
            array = v.array
            if array.__class__ is not np.ndarray or v.__class__ is not Value or (v.tracked and gradients.get()):
                return _UNKNOWN
            if stack is None:
                stack = v.stack
            elif v.stack is not stack:
                return _UNKNOWN
            arrays.append(array)
            key += array.shape, array.dtype, array.strides
        elif kind in _PLAIN:
            key += kind, x
        elif kind is float:
            key += kind, x or repr(x)  # zeros of either sign are equal
        elif (kind is tuple or kind is list) and len(x) <= MOST_LISTED:
            key += kind, len(x)
            stack = _read(x, arrays, key, stack)
            if stack is _UNKNOWN:
                return _UNKNOWN
        elif kind is slice and not any([n.__class__ is not int and n is not None for n in (x.start, x.stop, x.step)]):
            key += kind, x.start, x.stop, x.step
        elif isinstance(x, np.dtype):
            key.append(x)
        else:
            return _UNKNOWN
    return stack


# ---- the first times
def _count(kind: tuple[Any, ...], known: int, stack: Stack, f: Callable[..., Any], args: Any, kwargs: Any,
           arrays: list[Any]) -> None:
    """Remember that there was a call of such a kind; the operators of one that comes again and again."""
    found: Any = known + 1
    if known >= (COUNTED if arrays else COUNTED_OF_NONE):
        found = _recorded(f, args, kwargs, arrays, stack)
    if len(stack.repeated) >= MOST_REPEATED:
        stack.repeated.clear()
    stack.repeated[kind] = found


def _recorded(f: Callable[..., Any], args: Any, kwargs: Any, arrays: list[Any], stack: Stack) -> ArrayProgram | None:
    """None where a call cannot be repeated so, or fails, which it says by itself."""
    if not stack.infers_by_dtype or stack.operator.replaced or not stack.device.eager:
        return None
    symbols = [Value(None, stack, TensorSpec(tuple(x.shape), x.dtype)) for x in arrays]
    rest, lowering = iter(symbols), Lowering(symbols, arrays, stack)
    around = noting.set(lowering)
    try:
        with deferred(keep_graph=True):
            result = f(*_with_symbols(args, rest), **{name: _with_symbols((x,), rest)[0] for name, x in kwargs.items()})
            results: list[Value] = []
            given = _given(result, results)
            return lowering.program(results, given)
    except Exception:
        return None
    finally:
        noting.reset(around)


def _with_symbols(operands: Any, symbols: Iterator[Value]) -> Any:
    found = []
    for x in operands:
        if x.__class__ is Tensor or x.__class__ is Value:
            found.append(next(symbols) if x.__class__ is Value else Tensor(next(symbols)))
        else:
            found.append(_with_symbols(x, symbols) if x.__class__ is tuple or x.__class__ is list else x)
    return operands.__class__(found)


def _given(result: Any, values: list[Value]) -> Given:
    """Values of a result, and how it is made of others."""
    if result.__class__ is Value:
        values.append(result)
        return Given(lambda found: found[0], {})
    if result.__class__ is Tensor:
        values.append(result._value)
        return Given(lambda found: f"Tensor({found[0]})", {"Tensor": Tensor})
    kind: Any = type(result)
    if not isinstance(result, (tuple, list)) or not all([x.__class__ is Tensor for x in result]):
        raise TypeError(f"{kind.__name__} is no tensor")
    values += [x._value for x in result]
    items = "kind({})" if kind not in (tuple, list) else "kind([{}])"
    names = {"Tensor": Tensor, "kind": kind}
    return Given(lambda found: items.format(", ".join([f"Tensor({x})" for x in found])), names)
