"""The public functions: Array API and neural signatures, normalised, over the operators."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.errors import AttributeValueError, Error, OperandError, ShapeError
from nnc_core.composition import Stack
from nnc_core.dynamic.dispatch import F, dispatch
from nnc_core.dynamic.from_host import host_value
from nnc_core.dynamic.tensor import Tensor, operand, value_of
from nnc_core.dynamic.value import Value
from nnc_core.operator import OPERATORS
from nnc_core.shape.axes import normalise_axes, normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.symbol import show_line, user_line
from nnc_core.type import DimLike, Dims, admit_numpy, default_float

ArrayLike = Any
Axis = int | Sequence[int] | None
P = ParamSpec("P")
R = TypeVar("R")


def located(f: Callable[P, R]) -> Callable[P, R]:
    """Errors of normalisation name the function and the user's line."""

    @wraps(f)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return f(*args, **kwargs)
        except Error as error:
            raise error.locate(operator=f.__name__, line=show_line(user_line()))  # noqa: B904

    return call


def _value(x: ArrayLike, stack: Stack | None = None) -> Value:
    """Like `operand`, with Python numbers made values."""
    v = operand(x, stack)
    return v if isinstance(v, Value) else host_value(v, stack=stack)


def _stack_of(xs: Sequence[ArrayLike]) -> Stack | None:
    """Host arrays beside tensors go where those are."""
    return next((x._value.stack for x in xs if isinstance(x, Tensor)), None)


def _values(*xs: ArrayLike) -> list[Value]:
    stack = _stack_of(xs)
    return [_value(x, stack) for x in xs]


def _operands(*xs: ArrayLike) -> list[Any]:
    stack = _stack_of(xs)
    return [operand(x, stack) for x in xs]


# ---- elementwise: the names, doc strings and signatures follow the declarations
def _unary(name: str) -> Callable[[ArrayLike], Tensor]:
    op = OPERATORS[name]

    def function(x: ArrayLike, /) -> Tensor:
        return Tensor(dispatch(op, (operand(x),), ()))

    return _named(function, name)


def _binary(name: str) -> Callable[[ArrayLike, ArrayLike], Tensor]:
    op = OPERATORS[name]

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
        if x1.__class__ is Tensor and x2.__class__ is Tensor:
            return Tensor(dispatch(op, (value_of(x1), value_of(x2)), ()))
        return Tensor(dispatch(op, tuple(_operands(x1, x2)), ()))

    return _named(function, name)


def _named(function: Callable[P, Tensor], name: str) -> Callable[P, Tensor]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = OPERATORS[name].doc or f"Elementwise {name.replace('_', ' ')}."
    return function


add, subtract, multiply = _binary("add"), _binary("subtract"), _binary("multiply")
divide, floor_divide, remainder = _binary("divide"), _binary("floor_divide"), _binary("remainder")
pow = _binary("power")
maximum, minimum = _binary("maximum"), _binary("minimum")
equal, not_equal = _binary("equal"), _binary("not_equal")
less, less_equal = _binary("less"), _binary("less_equal")
greater, greater_equal = _binary("greater"), _binary("greater_equal")
logical_and, logical_or, logical_xor = _binary("logical_and"), _binary("logical_or"), _binary("logical_xor")
logical_not = _unary("logical_not")
negative, abs, sign = _unary("negative"), _unary("abs"), _unary("sign")
exp, log, sqrt, sin, cos = _unary("exp"), _unary("log"), _unary("sqrt"), _unary("sin"), _unary("cos")
tanh, sigmoid, relu = _unary("tanh"), _unary("sigmoid"), _unary("relu")
stop_gradient = _unary("stop_gradient")


def positive(x: ArrayLike, /) -> Tensor:
    """x itself."""
    return Tensor(_value(x))


def square(x: ArrayLike, /) -> Tensor:
    """x * x"""
    v = operand(x)
    return Tensor(F.multiply(v, v))


def isnan(x: ArrayLike, /) -> Tensor:
    """True where x is not a number."""
    v = _value(x)
    return Tensor(F.not_equal(v, v))


def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 where the condition is true, x2 elsewhere."""
    stack = _stack_of((condition, x1, x2))
    return Tensor(F.where(_value(condition, stack), operand(x1, stack), operand(x2, stack)))


def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """x brought into [min, max]; None means no limit."""
    if min is None and max is None:
        return positive(x)
    if max is None:
        return maximum(x, min)
    return minimum(x, max) if min is None else Tensor(F.clip(*_operands(x, min, max)))


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True) -> Tensor:
    """The elements converted to another dtype."""
    wanted = admit_numpy(dtype)
    v = value_of(x)
    return Tensor(v if wanted == v.dtype else F.cast(v, dtype=wanted))


# ---- reductions
@located
def sum(x: ArrayLike, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Sum over axes; small integers and booleans are summed as int64 (uint64 for unsigned)."""
    v = _value(x)
    wanted = admit_numpy(dtype) if dtype is not None else _sum_dtype(v.dtype)
    v = v if v.dtype == wanted else F.cast(v, dtype=wanted)
    return Tensor(F.sum(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


def _sum_dtype(dtype: Any) -> Any:
    return dtype if dt.is_float(dtype) else dt.uint64 if dtype in dt.UNSIGNED else dt.int64


@located
def mean(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Mean over axes; of integers in the default float dtype."""
    v = _value(x)
    if not dt.is_float(v.dtype):
        v = F.divide(v, 1)
    return Tensor(F.mean(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def max(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Maximum over axes; NaN wins."""
    v = _value(x)
    return Tensor(F.max(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def min(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Minimum over axes; NaN wins."""
    v = _value(x)
    return Tensor(F.min(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


def _position(name: str, x: ArrayLike, axis: int | None, keepdims: bool) -> Tensor:
    v = _value(x)
    method = getattr(F, name)
    if axis is not None:
        return Tensor(method(v, axis=normalise_axis(axis, v.ndim), keepdims=keepdims))
    flat = method(F.reshape(v, shape=(_size(v.shape),)), axis=0, keepdims=False)
    return Tensor(F.reshape(flat, shape=(1,) * v.ndim) if keepdims else flat)


@located
def argmax(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first maximum; in the flattened array without an axis."""
    return _position("argmax", x, axis, keepdims)


@located
def argmin(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """int64 position of the first minimum; in the flattened array without an axis."""
    return _position("argmin", x, axis, keepdims)


def _boolean(v: Value) -> Value:
    return v if v.dtype == dt.boolean else F.cast(v, dtype=dt.boolean)


@located
def all(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true (not zero)."""
    v = _boolean(_value(x))
    return Tensor(F.all(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


@located
def any(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true (not zero)."""
    v = _boolean(_value(x))
    return Tensor(F.any(v, axis=normalise_axes(axis, v.ndim), keepdims=keepdims))


# ---- linear algebra
@located
def matmul(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """Matrix products of the last two axes, the others broadcast; vectors as NumPy has them."""
    a, b = _values(x1, x2)
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(f"{a.spec} and {b.spec}: a scalar has no matrix product", hint="multiply it")
    left = F.reshape(a, shape=(1, *a.shape)) if a.ndim == 1 else a
    right = F.reshape(b, shape=(*b.shape, 1)) if b.ndim == 1 else b
    y = F.matmul(left, right)
    dropped = [y.ndim - 2] * (a.ndim == 1) + [y.ndim - 1] * (b.ndim == 1)
    return Tensor(F.reshape(y, shape=tuple(d for i, d in enumerate(y.shape) if i not in dropped)) if dropped else y)


# ---- movement
def _size(shape: Dims) -> DimLike:
    count: DimLike = 1
    for d in shape:
        count = d * count
    return count


@located
def reshape(x: ArrayLike, /, shape: DimLike | Sequence[DimLike]) -> Tensor:
    """The elements in C order under another shape; one dimension may be -1."""
    v = _value(x)
    wanted: list[Any] = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    if wanted.count(-1) > 1:
        raise AttributeValueError(f"shape {tuple(wanted)} has more than one -1")
    if -1 in wanted:
        known = _size(tuple(d for d in wanted if d != -1))
        total = _size(v.shape)
        if isinstance(total, int) and isinstance(known, int) and (known == 0 or total % known):
            raise ShapeError(f"{v.spec} cannot be reshaped to {tuple(wanted)}")
        wanted[wanted.index(-1)] = total // known
    return Tensor(F.reshape(v, shape=tuple(int(d) if isinstance(d, np.integer) else d for d in wanted)))


@located
def permute_dims(x: ArrayLike, /, axes: Sequence[int]) -> Tensor:
    """Axis i of the result is axis axes[i] of x."""
    v = _value(x)
    return Tensor(F.permute(v, axes=tuple(normalise_axis(a, v.ndim) for a in axes)))


@located
def matrix_transpose(x: ArrayLike, /) -> Tensor:
    """The last two axes swapped."""
    v = _value(x)
    if v.ndim < 2:
        raise ShapeError(f"{v.spec} is no matrix")
    return Tensor(F.permute(v, axes=(*range(v.ndim - 2), v.ndim - 1, v.ndim - 2)))


@located
def broadcast_to(x: ArrayLike, /, shape: Sequence[DimLike]) -> Tensor:
    """x repeated along new axes and those of length one."""
    return Tensor(F.broadcast_to(_value(x), shape=tuple(shape)))


def broadcast_arrays(*arrays: ArrayLike) -> list[Tensor]:
    """All brought to their common shape."""
    values = _values(*arrays)
    shape = broadcast(*[v.shape for v in values])
    return [Tensor(v if v.shape == shape else F.broadcast_to(v, shape=shape)) for v in values]


@located
def expand_dims(x: ArrayLike, /, *, axis: int = 0) -> Tensor:
    """A new axis of length one."""
    v = _value(x)
    at = normalise_axis(axis, v.ndim + 1)
    return Tensor(F.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])))


@located
def squeeze(x: ArrayLike, /, axis: int | Sequence[int]) -> Tensor:
    """Axes of length one removed."""
    v = _value(x)
    axes = normalise_axes(axis, v.ndim)
    for a in axes:
        if v.shape[a] != 1:
            raise ShapeError(f"axis {a} of {v.spec} has length {v.shape[a]}, not 1")
    return Tensor(F.reshape(v, shape=tuple(d for i, d in enumerate(v.shape) if i not in axes)))


@located
def flip(x: ArrayLike, /, *, axis: Axis = None) -> Tensor:
    """The order of elements reversed along axes."""
    v = _value(x)
    return Tensor(F.flip(v, axes=normalise_axes(axis, v.ndim)))


@located
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0) -> Tensor:
    """One after another along an axis; flattened first if it is None."""
    values = _values(*arrays)
    if not values:
        raise OperandError("nothing to concatenate")
    if axis is None:
        values, axis = [F.reshape(v, shape=(_size(v.shape),)) for v in values], 0
    return Tensor(F.concat(*values, axis=normalise_axis(axis, values[0].ndim)))


@located
def stack(arrays: Sequence[ArrayLike], /, *, axis: int = 0) -> Tensor:
    """Joined along a new axis."""
    values = _values(*arrays)
    if not values:
        raise OperandError("nothing to stack")
    at = normalise_axis(axis, values[0].ndim + 1)
    return Tensor(F.concat(*[F.reshape(v, shape=(*v.shape[:at], 1, *v.shape[at:])) for v in values], axis=at))


@located
def pad(x: ArrayLike, /, pad_width: int | Sequence[Any], *, value: float = 0) -> Tensor:
    """`value` around x; widths as NumPy has them: one number, (before, after), or one pair for each axis."""
    v = _value(x)
    pairs = np.broadcast_to(np.asarray(pad_width, dtype=np.int64), (v.ndim, 2)).tolist() if v.ndim else []
    low, high = tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)
    return Tensor(F.pad(v, low=low, high=high, interior=(0,) * v.ndim, value=value))


@located
def take(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """Slices of x along an axis; of the flattened x if it is None.  Negative indices count from the end."""
    v, i = _values(x, indices)
    if axis is None:
        return Tensor(F.take(F.reshape(v, shape=(_size(v.shape),)), i, axis=0))
    return Tensor(F.take(v, i, axis=normalise_axis(axis, v.ndim)))


@located
def one_hot(indices: ArrayLike, depth: int, *, dtype: Any = None) -> Tensor:
    """A new last axis with 1 at the index and 0 elsewhere."""
    wanted = default_float() if dtype is None else admit_numpy(dtype)
    return Tensor(F.one_hot(_value(indices), depth=depth, dtype=wanted))


# ---- neural
def _pair(value: int | Sequence[int], what: str) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not builtins.all(isinstance(v, int) for v in pair):
        raise AttributeValueError(f"{what} {value!r} is neither an integer nor a pair of them")
    return pair


def _padding(padding: Any, sizes: Sequence[DimLike], window: Sequence[DimLike], strides: tuple[int, int],
             dilation: tuple[int, int]) -> Any:
    """((top, bottom), (left, right)) from "SAME", "VALID", a number, a pair or two pairs."""
    if padding == "VALID":
        return ((0, 0), (0, 0))
    if padding == "SAME":
        return tuple(_same(*args) for args in zip(sizes, window, strides, dilation, strict=True))
    if isinstance(padding, str):
        raise AttributeValueError(f"padding {padding!r} is neither 'SAME' nor 'VALID'")
    if isinstance(padding, int):
        return ((padding, padding), (padding, padding))
    pairs = tuple((p, p) if isinstance(p, int) else tuple(p) for p in padding)
    if len(pairs) != 2 or not builtins.all(len(p) == 2 for p in pairs):
        raise AttributeValueError(f"padding {padding!r} is no pair of pairs")
    return pairs


def _same(size: Any, window: Any, stride: int, dilation: int) -> tuple[int, int]:
    """As many windows as there are strides; an odd element of padding goes after."""
    covered = (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1
    total = builtins.max(covered - size, 0)
    return total // 2, total - total // 2


@located
def conv2d(x: ArrayLike, kernel: ArrayLike, /, *, strides: int | Sequence[int] = 1, padding: Any = "VALID",
           dilation: int | Sequence[int] = 1, groups: int = 1, layout: str = "NHWC") -> Tensor:
    """Cross-correlation of images x (NHWC or NCHW) with a kernel (HWIO or OIHW).

    `padding` is "SAME", "VALID", a number, or ((top, bottom), (left, right)).
    """
    v, k = _values(x, kernel)
    how = _window(v, _spatial(k, layout, True), strides, padding, dilation, layout)
    return Tensor(F.conv2d(v, k, groups=groups, layout=layout, **how))


def _spatial(v: Value, layout: str, kernel: bool = False) -> Sequence[DimLike]:
    if layout not in ("NHWC", "NCHW"):
        raise AttributeValueError(f"layout {layout!r} is neither 'NHWC' nor 'NCHW'")
    if v.ndim != 4:
        raise ShapeError(f"{v.spec} should have four dimensions")
    if layout == "NCHW":
        return v.shape[2:]
    return v.shape[:2] if kernel else v.shape[1:3]


def _window(v: Value, window: Sequence[DimLike], strides: Any, padding: Any, dilation: Any,
            layout: str) -> dict[str, Any]:
    steps, spread = _pair(strides, "strides"), _pair(dilation, "dilation")
    return {"strides": steps, "dilation": spread,
            "padding": _padding(padding, _spatial(v, layout), window, steps, spread)}


@located
def max_pool2d(x: ArrayLike, /, window: int | Sequence[int], *, strides: int | Sequence[int] | None = None,
               padding: Any = "VALID", dilation: int | Sequence[int] = 1, layout: str = "NHWC") -> Tensor:
    """The maximum of each window; strides default to the window."""
    v, size = _value(x), _pair(window, "window")
    how = _window(v, size, size if strides is None else strides, padding, dilation, layout)
    return Tensor(F.max_pool2d(v, window=size, layout=layout, **how))


@located
def avg_pool2d(x: ArrayLike, /, window: int | Sequence[int], *, strides: int | Sequence[int] | None = None,
               padding: Any = "VALID", dilation: int | Sequence[int] = 1, count_padding: bool = False,
               layout: str = "NHWC") -> Tensor:
    """The mean of each window; strides default to the window, padding does not count unless asked."""
    v, size = _value(x), _pair(window, "window")
    how = _window(v, size, size if strides is None else strides, padding, dilation, layout)
    return Tensor(F.avg_pool2d(v, window=size, count_padding=count_padding, layout=layout, **how))


@located
def softmax(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis."""
    v = _value(x)
    return Tensor(F.softmax(v, axis=normalise_axis(axis, v.ndim)))


@located
def log_softmax(x: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """log(softmax(x)) along an axis."""
    v = _value(x)
    return Tensor(F.log_softmax(v, axis=normalise_axis(axis, v.ndim)))


@located
def cross_entropy(logits: ArrayLike, labels: ArrayLike, /, *, reduction: str = "mean") -> Tensor:
    """-log softmax(logits)[label]; logits (..., classes), integer labels (...); reduction "mean", "sum" or "none"."""
    rows = F.cross_entropy(*_values(logits, labels))
    if reduction == "none":
        return Tensor(rows)
    if reduction not in ("mean", "sum"):
        raise AttributeValueError(f"reduction {reduction!r} is none of 'mean', 'sum', 'none'")
    axes = tuple(range(rows.ndim))
    return Tensor(F.mean(rows, axis=axes) if reduction == "mean" else F.sum(rows, axis=axes))

