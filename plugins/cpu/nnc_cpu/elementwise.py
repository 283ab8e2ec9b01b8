"""Elementwise operators: NumPy's universal functions, writing into the output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, is_complex, is_inexact
from nnc_core.codegen.numpy_scalars import expm1, integer_power, log1p
from nnc_core.device import Launch
from nnc_cpu.casts import convert
from nnc_cpu.memory import Array, same_start
from nnc_cpu.routine import Make, Routine, converting, in_order, prepared, scratch

FUNCTIONS: Mapping[str, np.ufunc] = {
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh,
    "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "exp2": np.exp2,
    "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2, "log10": np.log10, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "cbrt": np.cbrt, "hypot": np.hypot,
}  # fmt: skip
"""Operators that NumPy computes by other code where arrays have gaps, to the sign of NaN: they get packed arrays."""
UFUNCS: Mapping[str, np.ufunc] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide,
    "floor_divide": np.floor_divide, "remainder": np.remainder, "sqrt": np.sqrt,
    "maximum": np.maximum, "minimum": np.minimum, "negative": np.negative, "abs": np.absolute, "sign": np.sign,
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "power": np.power,
    "fmod": np.fmod, "fmax": np.fmax, "fmin": np.fmin, "copysign": np.copysign, "gcd": np.gcd, "lcm": np.lcm,
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_invert": np.bitwise_not, "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
    "logical_not": np.logical_not,
}  # fmt: skip


def ufunc(f: np.ufunc) -> Make:
    """The function itself is the launch."""

    def bind(*arrays: Array) -> Launch:
        return partial(f, *arrays[:-1], out=arrays[-1])

    return lambda command: Routine(bind)


def function(name: str) -> Make:
    """A function that NumPy computes by other code, with other last bits, where the output has gaps: it goes through
    packed memory then.  (NumPy 2.4 negates in place with gaps of some lengths wrongly, and writes into them.)"""
    direct = ufunc(UFUNCS[name])

    def make(command: Command) -> Routine:
        out = command.output
        if out.contiguous:
            return direct(command)

        def bind(*arrays: Array) -> Launch:
            *inputs, target, packed = arrays
            return in_order([partial(UFUNCS[name], *inputs, out=packed), converting(packed, target)])

        return Routine(bind, (scratch(out.shape, out.dtype),))

    return make


def clip(command: Command) -> Routine:
    def bind(x: Array, low: Array, high: Array, out: Array) -> Launch:
        return in_order([partial(np.maximum, x, low, out=out), partial(np.minimum, out, high, out=out)])

    return Routine(bind)


def relu(command: Command) -> Routine:
    zero = np.zeros((), command.output.dtype)
    return Routine(lambda x, out: partial(np.maximum, x, zero, out=out))


def write_sigmoid(x: Array, out: Array, numerator: Array) -> None:
    """max(e, x >= 0) / (1 + e) with e = exp(-|x|), which cannot overflow; `numerator` is scratch."""
    np.greater_equal(x, 0, out=numerator)
    np.absolute(x, out=out)
    np.copysign(out, -1, out=out)  # np.negative is wrong in place with gaps
    np.exp(out, out=out)
    np.maximum(numerator, out, out=numerator)
    np.add(out, 1, out=out)
    np.true_divide(numerator, out, out=out)


def _sigmoid(command: Command) -> Routine:
    numerator = scratch(command.output.shape, command.output.dtype)
    return Routine(lambda x, out, room: partial(write_sigmoid, x, out, room), (numerator,))


sigmoid = prepared(_sigmoid, wide=True)


def as_bits(x: Array) -> Array:
    """The same memory as signed integers of the same width."""
    return x.view(f"i{x.itemsize}")


def spread(condition: Array, mask: Array) -> Launch:
    """All bits of an integer mask set where the condition is true, none elsewhere."""
    return partial(np.negative, condition.view(np.int8), out=mask, dtype=mask.dtype)


def where(command: Command) -> Routine:
    """Selects by bits: several times faster than a masked copy, whose branches are mispredicted.

    One of a and b may lie in the output's memory: it is read before it is overwritten."""
    out = command.output
    if out.dtype.itemsize > 8:
        return Routine(lambda condition, a, b, out: partial(_choose, condition, a, b, out))

    def bind(condition: Array, a: Array, b: Array, out: Array, mask: Array) -> Launch:
        if same_start(b, out) and same_start(a, out):
            return converting(a, out)
        steps = [spread(condition, mask)]
        if same_start(b, out):  # b is overwritten first: start from a
            steps.append(partial(np.invert, mask, out=mask))
            a, b = b, a
        x, y, z = as_bits(a), as_bits(b), as_bits(out)
        steps += [partial(np.bitwise_xor, x, y, out=z), partial(np.bitwise_and, z, mask, out=z),
                  partial(np.bitwise_xor, z, y, out=z)]
        return in_order(steps)

    return Routine(bind, (scratch(out.shape, np.dtype(f"i{out.dtype.itemsize}")),))


def _choose(condition: Array, a: Array, b: Array, out: Array) -> None:
    np.copyto(out, np.where(condition, a, b))


MENDED: Mapping[str, Callable[[Array], Array]] = {"expm1": expm1, "log1p": log1p}
"""Functions of which NumPy's own are wrong for complex numbers: at infinities, and for small ones."""


def write_mended(name: str, x: Array, out: Array) -> None:
    with np.errstate(all="ignore"):
        np.copyto(out, MENDED[name](x))


def _mended(name: str) -> Make:
    def make(command: Command) -> Routine:
        if is_complex(command.output.dtype):
            return Routine(lambda x, out: partial(write_mended, name, x, out))
        return ufunc(FUNCTIONS[name])(command)

    return make


def converts_as_numpy_does(source: DType, target: DType) -> bool:
    """Floats to integers saturate, and what becomes a half or less goes through float32: NumPy does otherwise."""
    if (dt.is_float(source) and dt.is_integer(target)) or dt.is_storage(source) or dt.is_storage(target):
        return source == target
    return dt.accumulator(target) == target or source == target


def power(command: Command) -> Routine:
    if is_inexact(command.output.dtype):
        return _float_power(command)
    return Routine(lambda a, b, out: partial(_write_integer_power, a, b, out))


_float_power = function("power")


def _write_integer_power(a: Array, b: Array, out: Array) -> None:
    """NumPy refuses negative exponents."""
    if np.min(b, initial=0) < 0:
        np.copyto(out, integer_power(a, b))
    else:
        np.power(a, b, out=out)


def cast(command: Command) -> Routine:
    if converts_as_numpy_does(command.inputs[0].dtype, command.output.dtype):
        return Routine(converting)
    return Routine(lambda source, target: partial(write_cast, source, target))


def write_cast(source: Array, target: Array) -> None:
    with np.errstate(all="ignore"):
        convert(source, target)


MAKERS: dict[str, Make] = {
    **{name: ufunc(f) for name, f in UFUNCS.items()},
    **{name: function(name) for name in ("exp", "log", "tanh", "sin", "cos", "negative")},
    **{name: prepared(ufunc(f)) for name, f in FUNCTIONS.items()},
    **{name: prepared(_mended(name)) for name in MENDED},
    "clip": clip, "power": power, "relu": relu, "sigmoid": sigmoid, "where": where, "cast": cast,
    "copy": cast, "identity": cast, "stop_gradient": cast, "transfer": cast,
}  # fmt: skip

INPLACE: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys([*UFUNCS, *FUNCTIONS, "clip", "relu", "sigmoid"], (0, 1, 2)), "where": (1, 2),
}  # fmt: skip
"""Inputs whose memory the kernels may write their result to, if the operator offers them."""

