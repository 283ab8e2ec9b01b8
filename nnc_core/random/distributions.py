"""Draws of generators beside uniform numbers: everything that is a function of them, and counts.

Parameters are numbers or tensors; the result has the shape asked for, broadcast with theirs.  Derivatives go to
parameters wherever a number is a smooth function of them and of what was drawn (Kingma and Welling 2014).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, TypeAlias

from nnc_core.base.dtype import DType, accumulator, int64, is_float, is_integer
from nnc_core.base.errors import AttributeValueError, DTypeError, ShapeError
from nnc_core.shape.axes import normalise_axis
from nnc_core.shape.elementwise import broadcast
from nnc_core.symbol import checked_number
from nnc_core.type import DimLike, Dims, TensorSpec, admit_numpy, default_float, promote
from nnc_core.values.arguments import count_of, located
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value, scalar_array
from nnc_core.values.operands import operand
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value

Shape: TypeAlias = int | Sequence[DimLike]
Parameter: TypeAlias = Any
"""A number, or an array of them."""


def shape_of(shape: Shape) -> tuple[Any, ...]:
    return tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)


def dtype_of(dtype: Any, parameters: Sequence[Any] = ()) -> DType:
    """As wanted, else that of the float parameters, else the default."""
    if dtype is not None:
        return admit_numpy(dtype)
    found: DType | None = None
    for v in parameters:
        if isinstance(v, Value) and is_float(v.dtype):
            found = v.dtype if found is None else promote(found, v.dtype)
    return default_float() if found is None else found


def dims_of(shape: Shape, *parameters: Any) -> Dims:
    """ShapeError where the parameters have more axes, or others, than what is asked for."""
    wanted = shape_of(shape)
    own = [p.shape for p in parameters if isinstance(p, Value)]
    return broadcast(wanted, *own) if own else wanted


def _spread(v: Value, shape: Dims) -> Value:
    return v if v.shape == shape else F.broadcast_to(v, shape=shape)


def _moved(z: Value, location: Any, scale: Any, dtype: DType) -> Tensor:
    """z * scale + location, in the dtype asked for."""
    if isinstance(scale, Value) or scale != 1:
        z = F.multiply(z, scale)
    if isinstance(location, Value) or location != 0:
        z = F.add(z, location)
    return Tensor(z if z.dtype == dtype else F.cast(z, dtype=dtype))


# ---- functions of one uniform number
@by_shapes
def _exponential(key: Value, dims: Dims, dtype: DType) -> Value:
    return F.negative(F.log(F.open_uniform(key, shape=dims, dtype=dtype)))


@by_shapes
def _gumbel(key: Value, dims: Dims, dtype: DType) -> Value:
    return F.negative(F.log(F.negative(F.log(F.open_uniform(key, shape=dims, dtype=dtype)))))


@by_shapes
def _laplace(key: Value, dims: Dims, dtype: DType) -> Value:
    centred = F.subtract(F.multiply(F.open_uniform(key, shape=dims, dtype=dtype), 2.0), 1.0)
    return F.multiply(F.sign(centred), F.negative(F.log1p(F.negative(F.abs(centred)))))


@by_shapes
def _logistic(key: Value, dims: Dims, dtype: DType) -> Value:
    return F.logit(F.open_uniform(key, shape=dims, dtype=dtype))


OF_KEYS = {"exponential": _exponential, "gumbel": _gumbel, "laplace": _laplace}
"""Draws of standard numbers, of a key, a shape and a dtype, that are no operators."""


class Distributions:
    """Methods of Generator."""

    def _next_key(self) -> Value:
        raise NotImplementedError

    def _next(self, name: str, shape: Dims, dtype: DType) -> Value:
        raise NotImplementedError

    @property
    def _stack(self) -> Any:
        raise NotImplementedError

    def _given(self, x: Parameter) -> Any:
        """A Python number as it is, anything else as a value on the generator's device."""
        if isinstance(x, (bool, int, float, Value)):
            return x
        v = operand(x, self._stack)
        return v if isinstance(v, Value) else host_value(v, stack=self._stack)

    def _value(self, x: Parameter, dtype: DType | None = None) -> Value:
        v = self._given(x)
        if v.__class__ is float or v.__class__ is int:
            of = dtype or (default_float() if v.__class__ is float else int64)
            return Value(scalar_array(self._stack, checked_number(v, of)), self._stack, TensorSpec((), of))
        if not isinstance(v, Value):
            v = host_value(v, dtype=dtype or (default_float() if isinstance(x, float) else None), stack=self._stack)
        return v

    # ---- functions of one uniform number
    def _standard(self, name: str, dims: Dims, kind: DType) -> Tensor:
        z = self._next(name, dims, accumulator(kind))
        return Tensor(z if z.dtype == kind else F.cast(z, dtype=kind))

    @located
    def exponential(self, shape: Shape = (), scale: Parameter = 1.0, dtype: Any = None) -> Tensor:
        """Exponentially distributed floats with that mean."""
        if scale.__class__ is float and scale == 1.0:
            return self._standard("exponential", shape_of(shape), dtype_of(dtype))
        s = self._given(scale)
        kind = dtype_of(dtype, [s])
        z = self._next("exponential", dims_of(shape, s), accumulator(kind))
        return _moved(z, 0, s, kind)

    @located
    def gumbel(self, shape: Shape = (), location: Parameter = 0.0, scale: Parameter = 1.0,
               dtype: Any = None) -> Tensor:
        """location - scale * log(-log(u))"""
        if location.__class__ is scale.__class__ is float and (location, scale) == (0.0, 1.0):
            return self._standard("gumbel", shape_of(shape), dtype_of(dtype))
        m, s = self._given(location), self._given(scale)
        kind = dtype_of(dtype, [m, s])
        z = self._next("gumbel", dims_of(shape, m, s), accumulator(kind))
        return _moved(z, m, s, kind)

    @located
    def laplace(self, shape: Shape = (), location: Parameter = 0.0, scale: Parameter = 1.0,
                dtype: Any = None) -> Tensor:
        """Density exp(-|x - location| / scale) / (2 scale)."""
        if location.__class__ is scale.__class__ is float and (location, scale) == (0.0, 1.0):
            return self._standard("laplace", shape_of(shape), dtype_of(dtype))
        m, s = self._given(location), self._given(scale)
        kind = dtype_of(dtype, [m, s])
        z = self._next("laplace", dims_of(shape, m, s), accumulator(kind))
        return _moved(z, m, s, kind)

    @located
    def logistic(self, shape: Shape = (), location: Parameter = 0.0, scale: Parameter = 1.0,
                 dtype: Any = None) -> Tensor:
        """Distribution function sigmoid((x - location) / scale)."""
        m, s = self._given(location), self._given(scale)
        kind = dtype_of(dtype, [m, s])
        z = _logistic(self._next_key(), dims_of(shape, m, s), accumulator(kind))
        return _moved(z, m, s, kind)

    # ---- normal ones
    @located
    def truncated_normal(self, low: Parameter, high: Parameter, shape: Shape = (), mean: Parameter = 0.0,
                         deviation: Parameter = 1.0, dtype: Any = None) -> Tensor:
        """Normal numbers given that they lie in [low, high].

        By the inverse of the distribution function: bounds that are both more than five deviations off in float32,
        eight in float64, on one side give numbers that are too few to be told apart.
        """
        given = [self._given(x) for x in (low, high, mean, deviation)]
        kind = dtype_of(dtype, given)
        wide = accumulator(kind)
        lowest, highest, m, s = (self._value(x, wide) for x in given)
        a, b = (F.divide(F.subtract(x, m), s) for x in (lowest, highest))
        right = F.greater(F.add(a, b), 0)  # the left tail has more digits: turn the right one over
        a, b = F.where(right, F.negative(b), a), F.where(right, F.negative(a), b)
        u = F.open_uniform(self._next_key(), shape=dims_of(shape, a, b), dtype=wide)
        first = F.ndtr(a)
        p = F.add(first, F.multiply(u, F.subtract(F.ndtr(b), first)))
        z = F.multiply(F.erfinv(F.subtract(F.multiply(p, 2.0), 1.0)), sqrt(2))
        z = F.where(right, F.negative(z), z)
        x = F.clip(F.add(F.multiply(z, s), m), lowest, highest)
        return Tensor(x if x.dtype == kind else F.cast(x, dtype=kind))

    @located
    def multivariate_normal(self, mean: Parameter, covariance: Parameter, shape: Shape = (),
                            dtype: Any = None) -> Tensor:
        """Vectors (*shape, n) with a mean (n) and covariance (n, n), whose leading axes are broadcast with `shape`."""
        m, c = self._value(mean), self._value(covariance)
        n = m.shape[-1] if m.ndim else None
        if n is None or c.shape[-2:] != (n, n):
            raise ShapeError(f"a mean {m.spec} and a covariance {c.spec}, expected (..., n) and (..., n, n)",
                             operator="multivariate_normal")
        kind = dtype_of(dtype, [m, c])
        dims = (*broadcast(shape_of(shape), m.shape[:-1], c.shape[:-2]), n)
        z = F.normal(self._next_key(), shape=dims, dtype=accumulator(kind))
        root = F.cholesky(c if c.dtype == z.dtype else F.cast(c, dtype=z.dtype))
        return _moved(_times(root, z), m, 1, kind)

    # ---- gamma, and what is made of it
    @located
    def gamma(self, concentration: Parameter, shape: Shape = (), scale: Parameter = 1.0, dtype: Any = None) -> Tensor:
        """Gamma distributed floats, NaN where the concentration is negative.

        Sampled by rejection on the host, as are `beta`, `dirichlet` and the counts below: the same numbers on every
        device.  There is no derivative by the concentration: asking for it is an error.
        """
        s = self._given(scale)
        kind = dtype_of(dtype, [self._given(concentration), s])
        a = self._value(concentration, accumulator(kind))
        return _moved(self._gamma(_spread(a, dims_of(shape, a, s)), kind, False), 0, s, kind)

    def _gamma(self, concentration: Value, dtype: DType, log: bool) -> Value:
        wide = accumulator(dtype)
        a = concentration if concentration.dtype == wide else F.cast(concentration, dtype=wide)
        return F.random_gamma(self._next_key(), a, log=log)

    @located
    def beta(self, a: Parameter, b: Parameter, shape: Shape = (), dtype: Any = None) -> Tensor:
        """Beta distributed floats in [0, 1]."""
        kind = dtype_of(dtype, [self._given(a), self._given(b)])
        pair = [self._value(x, accumulator(kind)) for x in (a, b)]
        dims = (1, *dims_of(shape, *pair))
        logs = self._gamma(F.concat(*[F.reshape(_spread(v, dims[1:]), shape=dims) for v in pair], axis=0), kind, True)
        first, second = (_row(logs, k) for k in (0, 1))
        return _moved(F.sigmoid(F.subtract(first, second)), 0, 1, kind)

    @located
    def dirichlet(self, concentration: Parameter, shape: Shape = (), dtype: Any = None) -> Tensor:
        """Probabilities (*shape, n) from concentrations (n), whose leading axes are broadcast with `shape`."""
        a = self._value(concentration)
        if a.ndim == 0:
            raise ShapeError(f"the concentration is {a.spec}, expected (..., n)", operator="dirichlet")
        kind = dtype_of(dtype, [a])
        logs = self._gamma(_spread(a, broadcast((*shape_of(shape), 1), a.shape)), kind, True)
        return _moved(F.softmax(logs, axis=logs.ndim - 1), 0, 1, kind)

    # ---- counts
    @located
    def poisson(self, rate: Parameter, shape: Shape = (), dtype: Any = "int64") -> Tensor:
        """Draw the number of events that happen where `rate` are expected."""
        r = self._float(rate)
        return Tensor(F.random_poisson(self._next_key(), _spread(r, dims_of(shape, r)), dtype=admit_numpy(dtype)))

    @located
    def binomial(self, count: Parameter, probability: Parameter, shape: Shape = (), dtype: Any = "int64") -> Tensor:
        """Draw the number of `count` trials that succeed, each with that probability."""
        n, p = self._trials(count), self._float(probability)
        trials = _spread(n, dims_of(shape, n, p))
        return Tensor(F.random_binomial(self._next_key(), trials, p, dtype=admit_numpy(dtype)))

    @located
    def multinomial(self, count: Parameter, probabilities: Parameter, shape: Shape = (),
                    dtype: Any = "int64") -> Tensor:
        """Draw the number of `count` trials for each category: (*shape, n) from probabilities (n), which are divided by
        their sum; their leading axes are broadcast with `shape`."""
        n, p = self._trials(count), self._float(probabilities)
        if p.ndim == 0:
            raise ShapeError(f"the probabilities are {p.spec}, expected (..., n)", operator="multinomial")
        dims = (*broadcast(shape_of(shape), n.shape, p.shape[:-1]), p.shape[-1])
        return Tensor(F.random_multinomial(self._next_key(), n, _spread(p, dims), dtype=admit_numpy(dtype)))

    def _float(self, x: Parameter) -> Value:
        v = self._value(x, default_float())
        return v if is_float(v.dtype) else F.cast(v, dtype=default_float())

    def _trials(self, count: Parameter) -> Value:
        n = self._value(count)
        if not is_integer(n.dtype):
            raise DTypeError(f"the number of trials is {n.dtype}, not integers", hint="cast with astype")
        return n

    @located
    def categorical(self, logits: Parameter, shape: Shape = (), *, axis: int = -1) -> Tensor:
        """int64 categories with probabilities softmax(logits) along an axis; `shape` is broadcast with the other axes.

        The largest of logits and gumbel noise (NNC's GUMBEL_ARGMAX), on the device: devices agree but where two of
        these sums are equal to the last bits.
        """
        v = self._float(logits)
        at = normalise_axis(axis, v.ndim)
        if v.shape[at] == 0:
            raise AttributeValueError("there is no category to choose", operator="categorical")
        v = v if at == v.ndim - 1 else F.permute(v, axes=(*[i for i in range(v.ndim) if i != at], at))
        dims = (*broadcast(shape_of(shape), v.shape[:-1]), v.shape[-1])
        noise = self.gumbel(dims, dtype=accumulator(v.dtype))._value
        return Tensor(F.argmax(F.add(v, noise), axis=len(dims) - 1, keepdims=False))


def _times(matrix: Value, vector: Value) -> Value:
    if matrix.ndim == 2:  # vectors as the rows of one matrix
        rows = F.reshape(vector, shape=(count_of(vector.shape[:-1]), vector.shape[-1]))
        return F.reshape(F.matmul(rows, matrix, transpose_a=False, transpose_b=True), shape=vector.shape)
    column = F.reshape(vector, shape=(*vector.shape, 1))
    return F.reshape(F.matmul(matrix, column, transpose_a=False, transpose_b=False), shape=vector.shape)


def _row(v: Value, k: int) -> Value:
    none = (0,) * (v.ndim - 1)
    piece = F.slice(v, start=(k, *none), stop=(k + 1, *v.shape[1:]), step=(1,) * v.ndim)
    return F.reshape(piece, shape=v.shape[1:])
