"""Kernels that allocate their result: the quickest way through NumPy for each operator.

They compute what NumPy's backends compute, bit for bit: the same function on the same values, or the same routine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import OutOfRangeError
from nnc_core.base.layout import Layout
from nnc_core.operator import OPERATORS
from nnc_core.type import Op, TensorSpec, TupleSpec
from nnc_cpu import random, whole
from nnc_cpu.backends import MAKERS, routine_for
from nnc_cpu.casts import converted
from nnc_cpu.eager_items import get_item, set_item
from nnc_cpu.elementwise import FUNCTIONS, MENDED, UFUNCS, converts_as_numpy_does, write_sigmoid
from nnc_cpu.guards import PLAIN, Eager, binary, guarded, is_number, unary
from nnc_cpu.indexing import check_indices
from nnc_cpu.left import LARGE, LeavesWhole
from nnc_cpu.linear import turned
from nnc_cpu.memory import layout_of
from nnc_cpu.movement import flip_view, slice_view
from nnc_cpu.norms import has_formula, norm
from nnc_cpu.reductions import apart, row_folds
from nnc_cpu.routine import Routine
from nnc_cpu.silence import quietly

_BFLOAT16 = dt.bfloat16.num
_ZEROS = {dtype.num: np.zeros((), dtype) for dtype in dt.NUMBERS}
ROUNDING = {"round": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
MOST_READY = 256
"""Routines that an operator keeps at hand."""
_SMALL = 4096
"""Elements up to which `np.where` is quicker than selecting by bits."""
NEVER_WARN = frozenset({"negative", "abs", "sign", "logical_and", "logical_or", "logical_xor", "logical_not"})


class Ready:
    """A routine for arrays that lie in a certain way, and the layouts of its results, of which there may be several."""

    def __init__(self, routine: Routine, outs: tuple[Layout, ...], several: bool) -> None:
        self.routine, self.outs, self.several = routine, outs, several
        self.run: Eager = self._into_memory if routine.fresh is None else guarded(routine.fresh)

    def _into_memory(self, *arrays: Any) -> Any:
        outs = [np.empty(x.shape, x.dtype) for x in self.outs]
        scratch = [np.empty(s.shape, s.dtype) for s in self.routine.scratch]
        quietly(self.routine.bind(*arrays, *outs, *scratch))()
        return tuple(outs) if self.several else outs[0]


def _ready(name: str, attributes: tuple[Any, ...], inputs: tuple[Layout, ...]) -> Ready:
    """Operands that do not fit are what inference says of them."""
    spec = OPERATORS[name].infer(*[TensorSpec(x.shape, x.dtype) for x in inputs], *attributes)
    several = isinstance(spec, TupleSpec)
    outs = tuple([part.layout() for part in (spec.parts if isinstance(spec, TupleSpec) else (spec,))])
    return Ready(routine_for(Command(name, attributes, inputs, outs)), outs, several)


class ThroughRoutine:
    """Runs the backend's routine, into fresh memory; of several results a tuple."""

    def __init__(self, name: str) -> None:
        self.name, self.count, self._known = name, len(OPERATORS[name].inputs), dict[Any, Ready]()

    def __call__(self, *arguments: Any) -> Any:
        count = self.count
        arrays, key = arguments[:count], arguments[count:]
        for x in arrays:
            if x.__class__ is not np.ndarray:
                if is_number(x):
                    return NotImplemented
                return self(*map(np.asarray, arrays), *arguments[count:])
            key += x.shape, x.dtype, x.strides
        return (self._known.get(key) or self._made(key, arrays, arguments[count:])).run(*arrays)

    def _made(self, key: Any, arrays: tuple[Any, ...], attributes: tuple[Any, ...]) -> Ready:
        if len(self._known) >= MOST_READY:
            self._known.clear()
        ready = self._known[key] = _ready(self.name, attributes, tuple(map(layout_of, arrays)))
        return ready

    def for_layouts(self, arrays: Sequence[Any], attributes: tuple[Any, ...]) -> Eager:
        """The kernel for arrays that lie as these do."""
        run, count = _ready(self.name, attributes, tuple(map(layout_of, arrays))).run, self.count
        return lambda *arguments: run(*arguments[:count])


def counting(op: Op) -> Eager:
    """Run the reference of an operator whose result is as long as its data say."""
    assert op.reference is not None
    count = guarded(op.reference)
    return lambda *arguments: np.ascontiguousarray(count(*arguments))


_ROUTINES: Mapping[str, Eager] = {
    name: ThroughRoutine(name) for name, op in OPERATORS.items() if name in MAKERS and not op.variadic
}


def of_packed(name: str) -> Eager:
    """NumPy's function where the arrays are packed, else the routine, which packs them."""
    direct = unary(FUNCTIONS[name]) if FUNCTIONS[name].nin == 1 else binary(FUNCTIONS[name])
    apart = name in MENDED  # whose routines mend what NumPy makes of complex numbers

    def call(*arrays: Any) -> Any:
        for x in arrays:
            if x.__class__ is np.ndarray and (not x.flags.c_contiguous or (apart and x.dtype.kind == "c")):
                return _ROUTINES[name](*arrays)
        return direct(*arrays)

    return call


def of_floats(name: str, f: np.ufunc) -> Eager:
    """NumPy's rounding where the elements may have fractions, and it has their dtype; else the routine."""
    direct = unary(f)
    return lambda x: direct(x) if x.dtype.kind in "fc" and x.dtype.num < PLAIN else _ROUTINES[name](x)


def _clip() -> Eager:
    highest, lowest = binary(np.maximum), binary(np.minimum)

    def clip(x: Any, low: Any, high: Any) -> Any:
        if low.__class__ is float is high.__class__ and x.size > _SMALL and x.dtype.num < PLAIN:
            return np.clip(x, low, high)  # three times as quick as two calls with a number each
        least = highest(x, low)
        return NotImplemented if least is NotImplemented else lowest(least, high)

    return clip


def _converted(x: Any, dtype: dt.DType) -> Any:
    return x.astype(dtype) if converts_as_numpy_does(x.dtype, dtype) else converted(x, dtype)


_maximum, _power, _divide = binary(np.maximum), binary(np.power), binary(UFUNCS["divide"])
_multiply = binary(np.multiply)
_astype, _matmul = guarded(_converted), guarded(np.matmul)
_write_sigmoid, _add_reduce = guarded(write_sigmoid), guarded(np.add.reduce)


def power(a: Any, b: Any) -> Any:
    if is_number(b) and b == 2 and a.dtype.kind == "f" and a.dtype.num < PLAIN:
        return _multiply(a, a)  # the nearest to the square
    if b.__class__ is np.ndarray is a.__class__ and _has_far_powers(a, b):
        return NotImplemented
    try:
        return _power(a, b)
    except ValueError:  # integers to negative powers
        return _ROUTINES["power"](a, b)


def _has_far_powers(a: Any, b: Any) -> bool:
    """Tell whether these are many powers for each of which NumPy may call the C library: machine code is quicker."""
    if a.size * b.size < LARGE or not a.dtype == dt.float32 == b.dtype:
        return False
    return math.prod(np.broadcast(a, b).shape) >= LARGE and bool(a.min() < 0)


def relu(x: Any) -> Any:
    return NotImplemented if is_number(x) else _maximum(x, _ZEROS[x.dtype.num])


def sigmoid(x: Any) -> Any:
    if x.__class__ is not np.ndarray or x.dtype.num >= PLAIN:
        return _ROUTINES["sigmoid"](x)
    out, room = np.empty(x.shape, x.dtype), np.empty(x.shape, x.dtype)
    _write_sigmoid(x, out, room)
    return out


def where(condition: Any, a: Any, b: Any) -> Any:
    if a.__class__ is not b.__class__:
        a, b = _alike(a, b)
        if a is None:
            return NotImplemented
    if condition.size <= _SMALL or is_number(a) or not a.ndim or not b.ndim:
        return np.where(condition, a, b)
    return _ROUTINES["where"](condition, a, b)


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """A Python number made an array of the other's dtype; None if it cannot be held."""
    try:
        if is_number(a):
            return np.asarray(a, b.dtype), b
        return (a, np.asarray(b, a.dtype)) if is_number(b) else (a, b)
    except OverflowError:
        return None, None


def take(x: Any, indices: Any, axis: int, batch: int) -> Any:
    if batch:
        return _ROUTINES["take"](x, indices, axis, batch)
    try:
        return x.take(indices, axis)
    except IndexError as error:
        check_indices("take", indices, x.shape[axis])
        raise OutOfRangeError(str(error), operator="take") from error
    except TypeError:  # uint64, which is no index to NumPy
        return _ROUTINES["take"](x, indices, axis, batch)


def summing(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    dtype = x.dtype
    if dtype.num >= PLAIN:
        return _ROUTINES["sum"](x, axis, keepdims)
    x = np.ascontiguousarray(x) if x.ndim else x  # so that the order of the sum does not depend on strides
    rows_first = bool(axis) and axis[0] == 0 and len(axis) < x.ndim
    folds = row_folds(x.shape, axis) if rows_first else 1
    if folds > 1:
        kept = x.shape[len(axis):]
        x = _add_reduce(x.reshape(-1, folds, *kept), 0, dtype, None, False)
        found = _add_reduce(x, 0, dtype, None, False)
        return found.reshape((1,) * len(axis) + kept) if keepdims else found
    parts = apart(axis, x.shape)
    if parts is not None:
        return _add_reduce(_add_reduce(x, parts[0], dtype, None, True), axis, dtype, None, keepdims)
    return _add_reduce(x, axis, dtype, None, keepdims)


def mean(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """The composite's formula in one call: the halves in float32 from end to end."""
    wide = dt.accumulator(x.dtype)
    if wide != x.dtype:
        return _astype(mean(_astype(x, wide), axis, keepdims), x.dtype)
    shape: tuple[int, ...] = x.shape
    return _divide(summing(x, axis, keepdims), math.prod([shape[a] for a in axis]))


_sort = guarded(np.sort)


def sort(x: Any, axis: int, descending: bool) -> Any:
    """Few elements keep their order where they are equal, which costs less than to see whether that matters."""
    if x.size > _SMALL or x.dtype.num >= PLAIN or x.dtype.kind == "c":
        return _ROUTINES["sort"](x, axis, descending)
    if not descending:
        return _sort(x, axis, "stable")
    return np.flip(_sort(np.flip(x, axis), axis, "stable"), axis)


def reducing(ufunc: np.ufunc) -> Eager:
    reduce = guarded(ufunc.reduce)
    return lambda x, axis, keepdims: reduce(x, axis, None, None, keepdims)


_ENDLESS = {np.dtype(np.float16).num: 0x7C00, _BFLOAT16: 0x7F80}
"""The bits of infinity of the halves: larger magnitudes are NaN."""


def extremum(ufunc: np.ufunc) -> Eager:
    """Find the extremes of many halves as integers in the same order; those of NaN and zeros are left to NumPy."""
    reduce = reducing(ufunc)

    def call(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
        if x.size <= _SMALL or x.dtype.num not in _ENDLESS:
            return reduce(x, axis, keepdims)
        bits = x.view(np.int16)
        if ((bits & 0x7FFF) > _ENDLESS[x.dtype.num]).any():
            return reduce(x, axis, keepdims)
        found = np.asarray(reduce(_ordered(bits), axis, keepdims))
        if ((found == 0) | (found == -1)).any():
            return reduce(x, axis, keepdims)
        return _ordered(found).view(x.dtype)

    return call


def _ordered(bits: Any) -> Any:
    """Signs and magnitudes as integers that rise with them, or the other way round."""
    return bits ^ ((bits >> 15) & 0x7FFF)


def _blas_ready(x: Any) -> bool:
    """Matrices of a dtype that is multiplied as it is, each packed."""
    strides: tuple[int, ...] = x.strides
    return len(strides) > 1 and x.dtype.num < PLAIN and strides[-2:] == (x.itemsize * x.shape[-1], x.itemsize)


def matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if a.__class__ is not b.__class__:
        return NotImplemented
    if not (_blas_ready(a) and _blas_ready(b)):
        a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    if not (_blas_ready(a) and _blas_ready(b)) or (transpose_a != transpose_b and a.shape == b.shape):
        return _ROUTINES["matmul"](a, b, transpose_a, transpose_b)
    return _matmul(turned(a, transpose_a), turned(b, transpose_b))


def progression(start: Any, step: Any, size: int, dtype: dt.DType) -> Any:
    """As the routine does, without pieces: small or not, NumPy counts in the dtype itself where it can."""
    if dtype.num >= PLAIN:
        return _ROUTINES["progression"](start, step, size, dtype)
    counts = dtype.kind == "f" or size <= np.iinfo(dtype).max
    k = np.arange(size, dtype=dtype) if counts else np.arange(size).astype(dtype)
    return k if _are_places(start, step) else _run_on(k, start.value, step.value)


@lru_cache(maxsize=64)
def _are_places(start: Any, step: Any) -> bool:
    """True of 0 and 1."""
    return bool(step.value == 1 and start.value == 0)


def _progress(k: Any, start: Any, step: Any) -> Any:
    np.multiply(k, step, out=k)
    return np.add(k, start, out=k)


_run_on = guarded(_progress)


def reshape(x: Any, shape: tuple[int, ...]) -> Any:
    """A view, or a copy; of elements that are there several times in a row a quick one."""
    strides = x.strides
    if strides and not strides[-1] and x.size > _SMALL and x.shape[-1] > 1:
        x = np.repeat(x[..., 0], x.shape[-1], -1)
    return x.reshape(shape)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A view that is not to be written to; of packed arrays in a fraction of the time that NumPy takes."""
    more = len(shape) - x.ndim
    if more < 0 or x.dtype.num >= PLAIN or not x.flags.c_contiguous or not x.size:
        return np.broadcast_to(x, shape)
    strides = [0] * more
    for n, wanted, stride in zip(x.shape, shape[more:], x.strides, strict=True):
        if n != wanted and n != 1:
            return np.broadcast_to(x, shape)  # which is an error
        strides.append(0 if n == 1 else stride)
    view = np.ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def filled(shape: tuple[int, ...], number: Any) -> Any:
    if not any(number.bits):  # not so of -0.0
        return np.zeros(shape, number.dtype)  # of large arrays the system's own empty pages
    out = np.empty(shape, number.dtype)
    out.fill(number.value)
    return out


MADE_OF: Mapping[str, tuple[str, ...]] = {
    **whole.MADE_OF, "next_key": ("add",), "next_uniform": ("uniform", "add"),
    "next_normal": ("normal", "uniform", "log", "sqrt", "cos", "multiply", "subtract", "add"),
    "next_exponential": ("open_uniform", "log", "negative", "add"),
    "next_gumbel": ("open_uniform", "log", "negative", "add"),
    "next_laplace": ("open_uniform", "multiply", "subtract", "abs", "negative", "log1p", "sign", "add"),
    "normal": ("uniform", "log", "sqrt", "cos", "multiply", "subtract"),
    "scaled_words": ("floor_divide", "subtract", "multiply", "add"),
    "mean": ("sum", "divide", "cast"), "vector_norm": ("multiply", "sum", "sqrt"),
    "getitem": ("slice", "reshape", "take"),
    "setitem": ("update_slice", "reshape", "broadcast_to"),
}
"""Kernels of what several operators do, with those for whose kernels they stand."""

EAGER: Mapping[str, Eager] = {
    **{name: guarded(f) for name, f in whole.WHOLE.items()},
    **_ROUTINES, **{name: counting(op) for name, op in OPERATORS.items() if op.data_dependent},
    **{name: unary(f) if f.nin == 1 else binary(f) for name, f in UFUNCS.items()},
    **{name: UFUNCS[name] for name in NEVER_WARN},
    **{name: of_packed(name) for name in FUNCTIONS},
    **{name: of_floats(name, f) for name, f in ROUNDING.items()},
    "clip": _clip(), "power": power, "relu": relu, "sigmoid": sigmoid, "where": where, "cast": _astype,
    "copy": lambda x: x.copy(), "identity": lambda x: x, "stop_gradient": lambda x: x,
    "sum": summing, "mean": mean, "max": extremum(np.maximum), "min": extremum(np.minimum),
    "all": reducing(np.logical_and), "any": reducing(np.logical_or),
    "argmax": lambda x, axis, keepdims: np.argmax(x, axis=axis, keepdims=keepdims),
    "argmin": lambda x, axis, keepdims: np.argmin(x, axis=axis, keepdims=keepdims),
    "matmul": matmul, "take": take, "vector_norm": LeavesWhole(guarded(norm), has_formula), "sort": sort,
    "filled": filled, "progression": progression,
    "reshape": reshape, "permute": lambda x, axes: x.transpose(axes),
    "broadcast_to": broadcast_to, "slice": slice_view, "flip": lambda x, axes: flip_view(x, axes).copy(),
    "concat": lambda *arguments: np.concatenate(arguments[:-1], arguments[-1]),
    "getitem": get_item, "setitem": set_item, "normal": guarded(random.normal),
    "uniform": guarded(random.uniform), "open_uniform": guarded(random.open_uniform),
    "random_bits": random.random_bits, "bernoulli": random.bernoulli,
    "next_key": random.next_key, "scaled_words": random.scaled_words,
    **{f"next_{name}": random.following(name) for name in ("uniform", "normal", "exponential", "gumbel", "laplace")},
}  # fmt: skip
