"""Parts shared by the public functions: operands made values, errors with their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import Any, NoReturn, ParamSpec, TypeVar

from nnc_core.base.dtype import DType, is_inexact, real_of
from nnc_core.base.errors import Error, UnknownNameError, UnknownShapeError
from nnc_core.stacks import Stack
from nnc_core.symbol import show_line, user_line
from nnc_core.type import DimLike, Dims, plain, promote
from nnc_core.values.argument_checks import FAILURES, type_mismatch
from nnc_core.values.from_host import dtype_given, host_value
from nnc_core.values.operands import operand, value_of
from nnc_core.values.postponed import postponed
from nnc_core.values.recorders import recorder
from nnc_core.values.respelling import respelled
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

ArrayLike = Any
Axis = int | Sequence[int] | None
P = ParamSpec("P")
R = TypeVar("R")


def located(f: Callable[P, R]) -> Callable[P, R]:
    """Errors that name no operator name the function, and the user's line; an argument of a kind that the function does
    not declare is an error of nnc's too, whatever Python says about it."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return f(*args, **kwargs)
            except UnknownShapeError as error:
                return postponed(error, call, args, kwargs)  # type: ignore[no-any-return]
            except FAILURES as error:
                args, kwargs = _own_spelling(error, f, args, kwargs)

    recorder(call)
    return call


def names_itself(f: Callable[P, R]) -> Callable[P, R]:
    """`located`, and errors of the operators that the function is made of name the function instead.

    For functions that neither call the user's nor look into what was recorded: such errors are not their own.
    """

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            try:
                return f(*args, **kwargs)
            except UnknownShapeError as error:
                return postponed(error, call, args, kwargs)  # type: ignore[no-any-return]
            except UnknownNameError as error:
                raise_located(error, f, args, kwargs, f.__name__)
            except Error as error:
                name_error(error, f.__name__)
                raise
            except FAILURES as error:
                args, kwargs = _own_spelling(error, f, args, kwargs)

    recorder(call)
    return call


def name_error(error: Error, name: str) -> None:
    """Let an error name the function that was called, and the user's line.

    Errors of deferred work that is computed on the way were recorded on another line of the user, and keep their names.
    """
    line = show_line(user_line())
    if error.line in (None, line):
        error.called_as(name)
    error.locate(operator=name, line=line)


def _own_spelling(error: Exception, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                  name: str | None = None) -> Any:
    """The arguments of a failed call, spelled as NumPy or PyTorch do, by f's own names; raises the error with its place
    where that is not why it failed."""
    name = name or f.__name__
    try:
        own = respelled(f, args, kwargs) if error.__class__ is TypeError else None
    except Error as refusal:
        raise refusal.locate(operator=name, line=show_line(user_line())) from None
    if own is None:
        raise_located(error, f, args, kwargs, name)
    return own


def raise_located(error: Exception, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
                  name: str) -> NoReturn:
    """Raise the error of a failed call with its place."""
    line = show_line(user_line())
    told = isinstance(error, Error) and not isinstance(error, UnknownNameError)  # a tensor in place of something else
    wrong = None if told else type_mismatch(f, args, kwargs)
    if wrong is not None:
        raise wrong.locate(operator=name, line=line) from error
    raise error.locate(operator=name, line=line) if isinstance(error, Error) else error


def constructor(init: Callable[P, None]) -> Callable[P, None]:
    """The same of an `__init__`, whose errors name the class, and which is given NumPy's numbers as Python's."""

    @wraps(init)
    def made(*args: P.args, **kwargs: P.kwargs) -> None:
        while True:
            try:
                return init(*map(plain, args), **{name: plain(x) for name, x in kwargs.items()})
            except FAILURES as error:
                args, kwargs = _own_spelling(error, init, args, kwargs, type(args[0]).__name__)

    return made


def as_value(x: ArrayLike, stack: Stack | None = None, beside: DType | None = None) -> Value:
    """Like `operand`, with Python numbers made values, of the dtype of the floats `beside` them."""
    if x.__class__ is Tensor:
        return value_of(x)
    v = operand(x, stack, beside)
    return v if isinstance(v, Value) else host_value(v, stack=stack, beside=beside)


def as_value_beside(x: ArrayLike, like: Value) -> Value:
    """`as_value` on the device of another value, and Python numbers in its dtype if it has floats."""
    return as_value(x, like.stack, like.dtype if is_inexact(like.dtype) else None)


def stack_of(xs: Sequence[ArrayLike]) -> Stack | None:
    """Host arrays beside tensors go where those are."""
    for x in xs:
        if isinstance(x, Tensor):
            return x._value.stack
        if hasattr(type(x), "__nnc_tensor__"):
            return x.__nnc_tensor__()._value.stack  # type: ignore[no-any-return]
    return None


def float_among(xs: Sequence[ArrayLike]) -> DType | None:
    """The dtype of the floats among arrays, which Python numbers beside them take; None without any."""
    floats = [real_of(d) for d in map(dtype_given, xs) if d is not None and is_inexact(d)]
    return reduce(promote, floats) if floats else None


def as_values(*xs: ArrayLike) -> list[Value]:
    """Operands as values; Python numbers, in lists too, take the dtype of the floats beside them."""
    if all([x.__class__ is Tensor for x in xs]):
        return [value_of(x) for x in xs]
    stack, dtype = stack_of(xs), float_among(xs)
    return [as_value(x, stack, dtype) for x in xs]


def as_operands(*xs: ArrayLike) -> list[Any]:
    """The same, with Python numbers left as they are."""
    stack = stack_of(xs)
    lists = any([isinstance(x, (list, tuple)) for x in xs])
    dtype = float_among(xs) if lists else None
    return [operand(x, stack, dtype) for x in xs]


def count_of(shape: Dims) -> DimLike:
    """The number of elements."""
    count: DimLike = 1
    for d in shape:
        count = d * count
    return count
