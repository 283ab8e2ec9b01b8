"""Public functions called with symbols of unknown shape: recorded with their arguments, to be called again.

A function that asks for a shape which is not known fails with an UnknownShapeError; whoever was called by the user
catches it here and gives symbols in the places of the results.  Calls that work pay nothing for it.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from nnc_core.base.errors import OperandError, OutOfRangeError, UnknownShapeError
from nnc_core.symbol import called_at, show_line, user_line
from nnc_core.values.common import common_stack
from nnc_core.values.recorders import inside_recorder, may_be_recorded, recorded, recorder
from nnc_core.values.results import ONE, SEVERAL, results_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, unflatten
from nnc_core.values.unshaped import DECLARE, RecordedCall, Unshaped, named
from nnc_core.values.value import Handle, Value, owned

P = ParamSpec("P")
R = TypeVar("R")
Like = Callable[..., Any]
"""Gives, for the arguments of a call, a structure with anything in the places of its results."""


def postponed(error: UnknownShapeError, f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
              like: Like | None = None, name: str | None = None) -> Any:
    """The results of a call that failed with this error: symbols, where the call can be recorded.

    Raises the error again where it cannot: where the function around it is recorded as a whole, where nothing says what
    the results are, or in code that is being traced.  To be called from the function that the user called.
    """
    leaves, structure = flatten((args, dict(kwargs)), sort=False)
    held = [_held(x) for x in leaves]
    places = [i for i, x in enumerate(held) if isinstance(x, Value)]
    operands = [held[i] for i in places]
    reached = {leaf for v in operands if isinstance(v, Unshaped) for leaf in v.leaves}
    inputs = (*operands, *[v for v in error.behind if v not in reached])
    if inside_recorder(2) or not may_be_recorded(inputs):
        raise error
    wanted = called_at(user_line(), _wanted, f, args, kwargs, like)
    if wanted is SEVERAL:
        return Several(error.behind, f, args, kwargs)
    if wanted is None:
        raise error
    _, of_results = flatten(wanted)
    number = _count(of_results)

    def again(given: Sequence[Value]) -> list[Value]:
        arguments = list(held)
        for i, v in zip(places, given, strict=False):
            arguments[i] = Tensor(v)
        positional, named = unflatten(structure, iter(arguments))
        return _values(f(*positional, **named), number)

    call = RecordedCall(name or f.__name__, again, inputs, _shown(f, held, structure), number)
    call.opaque = like not in (None, one) or any(map(callable, held))
    symbols = [v for v in inputs if v.__class__ is Unshaped]
    results = recorded(call, common_stack(symbols))
    return unflatten(of_results, iter([Tensor(v) for v in results]))


def postponable(f: Callable[P, R], like: Like | None = None, name: str | None = None) -> Callable[P, R]:
    """f, which is recorded as a whole where it asks for a shape that is not known."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return f(*args, **kwargs)
        except UnknownShapeError as error:
            return postponed(error, f, args, kwargs, like, name)  # type: ignore[no-any-return]

    recorder(call)
    return call


def one(*args: Any, **kwargs: Any) -> Any:
    """`like` of calls that give one tensor."""
    return ONE


def _wanted(f: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], like: Like | None) -> Any:
    return results_of(f, args, kwargs) if like is None else like(*args, **kwargs)


def _held(x: Any) -> Any:
    """An argument as it is now: whoever changes it later changes nothing that was recorded."""
    if isinstance(x, Handle):
        return owned(x._value)
    if isinstance(x, np.ndarray):
        return x.copy()
    return owned(x.__nnc_tensor__()._value) if hasattr(type(x), "__nnc_tensor__") else x


def _count(structure: Structure) -> int:
    return 1 if structure.kind is None else sum(map(_count, structure.parts))


def _values(results: Any, number: int) -> list[Value]:
    leaves = flatten(results)[0]
    if len(leaves) != number or not all(isinstance(x, Tensor) for x in leaves):
        raise OperandError(f"the call gives {len(leaves)} results, and {number} tensors were expected when it was "
                           "recorded, before the shapes were known",
                           hint="give nnc.var_arr a shape; its sizes may be names")
    return [x._value for x in leaves]


def _shown(f: Callable[..., Any], held: Sequence[Any], structure: Structure) -> dict[str, str]:
    """The arguments besides tensors, by name, for people."""
    positional, named = unflatten(structure, iter([_TENSOR if isinstance(x, Value) else x for x in held]))
    try:
        given = inspect.signature(f).bind(*positional, **named).arguments
    except (TypeError, ValueError):
        given = {str(i): x for i, x in enumerate(positional)} | named
    return {k: _short(x) for k, x in given.items() if _TENSOR not in flatten(x)[0]}


_TENSOR = object()
"""Stands for a tensor among arguments."""


def _short(x: Any) -> str:
    if callable(x):
        return str(getattr(x, "__name__", type(x).__name__))
    if isinstance(x, np.ndarray):
        return f"array{list(x.shape)}"
    text = repr(x)
    return text if len(text) <= 40 else text[:39] + "…"


class Several(Sequence[Tensor]):
    """Results of a call whose number is not known before shapes are: each is a symbol, by its index; Python is told
    neither the number nor all of them."""

    def __init__(self, behind: tuple[Any, ...], f: Callable[..., Any], args: tuple[Any, ...],
                 kwargs: Mapping[str, Any]) -> None:
        self.behind, self.f, self.args, self.kwargs = behind, f, args, kwargs

    def __getitem__(self, index: Any) -> Any:
        number = operator.index(index)

        def chosen(*args: Any, **kwargs: Any) -> Tensor:
            results = self.f(*args, **kwargs)
            if isinstance(results, Tensor):  # as some functions give the only one
                results = (results,)
            if not -len(results) <= number < len(results):
                raise OutOfRangeError(f"result {number} of {self.f.__name__}, which gives {len(results)}")
            return results[number]  # type: ignore[no-any-return]

        return postponed(self._unknown(), chosen, self.args, self.kwargs, one, f"{self.f.__name__}[{number}]")

    def __len__(self) -> int:
        raise self._unknown()

    def __iter__(self) -> Iterator[Tensor]:
        raise self._unknown()

    def _unknown(self) -> UnknownShapeError:
        error = UnknownShapeError(f"the number of results of {self.f.__name__} is not known before an array is "
                                  f"assigned to {named(self.behind)}", line=show_line(user_line()), hint=DECLARE)
        error.behind = self.behind
        return error

    def __repr__(self) -> str:
        return f"<results of {self.f.__name__}, whose number is not known>"
