"""Owl's functions of the host: map, fold and scan by Python functions of numbers, delay, lazy_print.

On the device there are `nnc.map`, `nnc.scan` and `nnc.foreach`, which take functions of tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.callbacks.callback import _after, _token, callback
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import DimLike, TensorSpec
from nnc_core.values.arguments import located
from nnc_core.values.tensor import Tensor

Array = np.ndarray[Any, Any]


@located
def host_map(f: Callable[[Any], Any], x: Tensor) -> Tensor:
    """f of each element, a Python number; of the shape and dtype of x."""

    def mapped(a: Array) -> Array:
        return _cast(np.frompyfunc(f, 1, 1)(a.astype(object)), a)

    return callback(_named(mapped, f), x, x)  # type: ignore[no-any-return]


@located
def host_fold(f: Callable[[Any, Any], Any], initial: Any, x: Tensor, axis: int | None = None) -> Tensor:
    """f(... f(f(initial, x0), x1) ...) along an axis, which becomes one of length 1; over all elements, in C order,
    for None, where the result has no dimensions.  f takes and gives Python numbers."""
    at = None if axis is None else normalise_axis(axis, x.ndim)
    shape = () if at is None else (*x.shape[:at], 1, *x.shape[at + 1 :])

    def folded(a: Array) -> Array:
        rows = a.astype(object).reshape(-1) if at is None else np.moveaxis(a.astype(object), at, 0)
        found = np.full(rows.shape[1:], initial, object)
        for row in rows:
            found = np.asarray(np.frompyfunc(f, 2, 1)(found, row), object)
        return _cast(found if at is None else np.expand_dims(found, at), a)

    return callback(_named(folded, f), TensorSpec(shape, x.dtype), x)  # type: ignore[no-any-return]


@located
def host_scan(f: Callable[[Any, Any], Any], x: Tensor, axis: int | None = None) -> Tensor:
    """y0 = x0 and y[k] = f(y[k-1], x[k]) along an axis, or along all elements in C order for None; shaped as x."""
    at = None if axis is None else normalise_axis(axis, x.ndim)

    def scanned(a: Array) -> Array:
        rows = a.astype(object).reshape(-1) if at is None else np.moveaxis(a.astype(object), at, 0)
        for k in range(1, len(rows)):
            rows[k] = np.frompyfunc(f, 2, 1)(rows[k - 1], rows[k])
        return _cast(rows.reshape(a.shape) if at is None else np.moveaxis(rows, 0, at), a)

    return callback(_named(scanned, f), x, x)  # type: ignore[no-any-return]


@located
def delay(f: Callable[[Array], Array], x: Tensor) -> Tensor:
    """f of the whole NumPy array, computed when x is; of the shape and dtype of x."""
    return callback(f, x, x)  # type: ignore[no-any-return]


@located
def delay_array(shape: Sequence[DimLike], f: Callable[[list[Array]], Array], xs: Sequence[Tensor]) -> Tensor:
    """f of a list of NumPy arrays; of the shape that is given and the dtype of the first of them."""
    return callback(f, TensorSpec(tuple(shape), xs[0].dtype), list(xs))  # type: ignore[no-any-return]


@located
def lazy_print(x: Tensor, *, max_row: int = 10, max_col: int = 10, header: bool = True,
               fmt: Callable[[Any], str] | None = None) -> Tensor:
    """x, printed when it is computed: a line of shape and dtype first, unless `header` is false, then rows of at most
    `max_col` elements, at most `max_row` of them; `fmt` gives the text of a number.  See `debug_print`."""

    def print_(a: Array) -> None:
        edge = max(min(max_row, max_col) // 2, 1)
        formatter: Any = None if fmt is None else {"all": fmt}
        text = np.array2string(a, threshold=max_row * max_col, edgeitems=edge, formatter=formatter)
        print(f"{a.dtype}{list(a.shape)}\n{text}" if header else text, flush=True)

    return _after(_token(print_, x), x)  # type: ignore[no-any-return]


def _cast(found: Any, like: Array) -> Array:
    return np.asarray(found, object).astype(like.dtype)


def _named(made: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """Errors speak of the function that the user gave."""
    made.__name__ = str(getattr(f, "__name__", None) or type(f).__name__)
    return made
