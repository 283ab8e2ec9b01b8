"""Generators: a seed and a count of draws, kept in a cell."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nnc_core.base.dtype import DType, accumulator, boolean, is_integer, uint64
from nnc_core.base.errors import AttributeValueError, DeviceLostError, DTypeError, OperandError, ShapeError
from nnc_core.device import NO_VALUES
from nnc_core.random.distributions import OF_KEYS, Distributions, Parameter, Shape, dims_of, dtype_of, shape_of
from nnc_core.stacks import Stack, stack_for
from nnc_core.type import Dims, admit_numpy, whole
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.modes import current_stack, current_trace, tracing
from nnc_core.values.operands import value_of
from nnc_core.values.repetition import by_shapes
from nnc_core.values.tensor import Tensor
from nnc_core.values.value import Value
from nnc_core.values.whole import as_whole

State = tuple[int, int]
"""(seed, number of draws made): all that a generator knows."""


class Generator(Distributions):
    """The same seed gives the same bits on every device and in every mode.

    Each draw has a number of its own (Philox4x32-10 with the seed as its key and the number in its counter), so that a
    mode decides when numbers are computed, never which: eager, deferred and compiled code draw from one stream, and
    compiled code draws anew at each call.  `key` is the state as a Cell of uint64 (seed, draws): what checkpoints save.
    """

    def __init__(self, seed: int = 0, device: Any = None) -> None:
        stack = stack_for(device) if device is not None else None
        self.key = Cell(Tensor(host_value(_host_key((seed, 0)), stack=stack)), "random key")

    # ---- state
    @property
    def state(self) -> State:
        """(seed, number of draws made), each in 0 … 2**64 - 1.  Can be set."""
        seed, draws = (int(k) for k in self.key.read().numpy())
        return seed, draws

    @state.setter
    def state(self, state: State) -> None:
        key = host_value(_host_key(state), stack=self.key.stack)
        self.key.write(Tensor(key))

    def seed(self, seed: int) -> None:
        """Start again; code that was compiled with this generator goes on with the new stream."""
        self.state = (seed, 0)

    def __copy__(self) -> Generator:
        """A generator of its own that will draw the same."""
        twin = Generator(0, self.key.stack)
        twin.state = self.state
        return twin

    def spawn(self, count: int) -> list[Generator]:
        """Generators with seeds drawn from this one, one draw for all, on the same device.

        Their streams have nothing to do with each other or with this one's: seeds have 64 random bits, so that two
        among a million are equal with probability 3e-8.
        """
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 0:
            raise AttributeValueError(f"count is {count!r}, expected an integer of at least 0", operator="spawn")
        return [Generator(seed, self.key.stack) for seed in self.bits(int(count), "uint64").tolist()]

    def _next_key(self) -> Value:
        with self.key._lock:  # two threads never draw the same number
            key = self.key.read()._value
            after = as_whole("next_key", (key,))
            if after is None:
                self.key.write(Tensor(F.add(key, _one(key))))
            else:
                self.key.advance(after)
            return key

    def _next(self, name: str, shape: Dims, dtype: DType) -> Value:
        """The next draw of standard numbers, and the key moved on, as a whole where the device has a kernel for it."""
        with self.key._lock:
            found = as_whole(f"next_{name}", (self.key.read()._value,), (shape, dtype))
            if found is not None:
                after, drawn = found
                self.key.advance(after)
                return drawn  # type: ignore[no-any-return]
        if name in OF_KEYS:
            return OF_KEYS[name](self._next_key(), shape, dtype)
        return getattr(F, name)(self._next_key(), shape=shape, dtype=dtype)  # type: ignore[no-any-return]

    @property
    def _stack(self) -> Stack:
        return self.key.stack

    # ---- numbers
    @located
    def bits(self, shape: Shape = (), dtype: Any = "uint32") -> Tensor:
        """Random uint32 or uint64."""
        return Tensor(F.random_bits(self._next_key(), shape=shape_of(shape), dtype=admit_numpy(dtype)))

    @located
    def uniform(self, shape: Shape = (), low: Parameter = 0.0, high: Parameter = 1.0,
                dtype: Any = None) -> Tensor:
        """Floats in [low, high)."""
        if low.__class__ is high.__class__ is float and (low, high) == (0.0, 1.0):
            return Tensor(self._next("uniform", shape_of(shape), dtype_of(dtype)))
        a, b = self._given(low), self._given(high)
        u = self._next("uniform", dims_of(shape, a, b), dtype_of(dtype, (a, b)))
        if isinstance(a, Value) or isinstance(b, Value):
            return Tensor(F.add(F.multiply(u, F.subtract(b, a)), a))
        return Tensor(u if (a, b) == (0.0, 1.0) else F.add(F.multiply(u, b - a), a))

    @located
    def normal(self, shape: Shape = (), mean: Parameter = 0.0, deviation: Parameter = 1.0,
               dtype: Any = None) -> Tensor:
        """Normally distributed floats."""
        if mean.__class__ is deviation.__class__ is float and (mean, deviation) == (0.0, 1.0):
            return Tensor(self._next("normal", shape_of(shape), dtype_of(dtype)))
        m, s = self._given(mean), self._given(deviation)
        z = self._next("normal", dims_of(shape, m, s), dtype_of(dtype, (m, s)))
        if isinstance(m, Value) or isinstance(s, Value):
            return Tensor(F.add(F.multiply(z, s), m))
        return Tensor(z if (m, s) == (0.0, 1.0) else F.add(F.multiply(z, s), m))

    @located
    def bernoulli(self, probability: Parameter, shape: Shape = ()) -> Tensor:
        """Booleans that are true with the given probability: to within 2**-32 of a number, 2**-24 of a tensor's."""
        p = self._given(probability)
        if not isinstance(p, Value):
            return Tensor(F.bernoulli(self._next_key(), shape=shape_of(shape), probability=float(p)))
        u = F.uniform(self._next_key(), shape=dims_of(shape, p), dtype=accumulator(dtype_of(None, (p,))))
        return Tensor(F.less(u, p))

    @located
    def integers(self, low: int, high: int, shape: Shape = (), dtype: Any = "int64") -> Tensor:
        """Integers in [low, high), each as likely as any other.

        A word of 64 bits is scaled, not divided with remainder: with high - low = n a number's probability is off by
        less than 2**-64, which is n * 2**-64 of it; not at all where n is a power of two.  n is at most 2**32, or a
        power of two.
        """
        kind = admit_numpy(dtype)
        span = _checked_span(low, high, kind)
        return Tensor(_integers(self._next_key(), shape_of(shape), span, low, kind))

    randint = integers

    # ---- order
    @located
    def permutation(self, x: int | Tensor, axis: int = 0) -> Tensor:
        """0 … x-1 (int64) in random order, or the slices of a tensor along an axis in random order.

        All orders are equally likely (elements are sorted by words of 64 random bits).  Sorted on the host, which
        fetches the key alone.
        """
        if not isinstance(x, Tensor):
            size = whole(x, "the number of elements", 0, "an integer, or a tensor")
            return Tensor(F.permutation(self._next_key(), size=size))
        if not -x.ndim <= axis < x.ndim:
            raise ShapeError(f"{x.spec} has no axis {axis} to permute", operator="permutation")
        order = F.permutation(self._next_key(), size=x.shape[axis])
        return Tensor(F.take(value_of(x), order, axis=axis % x.ndim))

    def shuffle(self, x: Tensor, axis: int = 0) -> None:
        """Put the slices of a tensor along an axis in random order: x stands for the result from now on."""
        x[...] = self.permutation(x, axis)

    @located
    def choice(self, x: int | Tensor, shape: Shape = (), *, replace: bool = True,
               weights: Any = None) -> Tensor:
        """Numbers below x, or slices of a tensor along its first axis: each as likely as any other, or as its number
        among the `weights` says.

        Without `replace` no element is chosen twice.  The result has the dimensions of `shape` in place of the axis.
        """
        if isinstance(x, Tensor) and not x.ndim:
            raise ShapeError(f"{x.spec} has no axis to choose from", operator="choice")
        size = whole(x.shape[0] if isinstance(x, Tensor) else x, "the number of elements", 0, "an integer, or a tensor")
        wanted = shape_of(shape)
        count = prod(wanted)
        if (count and not size) or (count > size and not replace):
            hint = "replace=True" if size and not replace else None
            raise AttributeValueError(f"{count} of {size} elements cannot be chosen", operator="choice", hint=hint)
        if weights is not None:
            at = F.reshape(self._weighted_choice(weights, size, count, replace), shape=wanted)
        elif replace:
            at = self.integers(0, size or 1, wanted)._value
        elif 2 * count <= size <= 2**32:
            at = F.reshape(F.distinct_integers(self._next_key(), size=count, below=size), shape=wanted)
        else:
            order = F.permutation(self._next_key(), size=size)
            at = F.reshape(F.slice(order, start=(0,), stop=(count,), step=(1,)), shape=wanted)
        return Tensor(F.take(value_of(x), at, axis=0) if isinstance(x, Tensor) else at)

    def _weighted_choice(self, weights: Any, size: int, count: int, replace: bool) -> Value:
        w = self._float(weights)
        if w.shape != (size,):
            raise ShapeError(f"the weights are {w.spec}, expected one for each of {size} elements", operator="choice")
        return F.random_choice(self._next_key(), w, size=count, replace=replace)


def _host_key(state: State) -> Any:
    return np.array([whole(number, "seed") % 2**64 for number in state], np.uint64)


def _one(key: Value) -> Value:
    """[0, 1]: added to a key it gives the next draw's."""
    return F.pad(F.full_like(F.slice(key, start=(0,), stop=(1,), step=(1,)), 1), low=(1,), high=(0,), interior=(0,))


def _checked_span(low: int, high: int, dtype: DType) -> int:
    if not is_integer(dtype) or dtype == boolean:
        raise DTypeError(f"integers of dtype {dtype}", operator="integers", hint="one of int8 … uint64")
    limits = np.iinfo(dtype)
    if not limits.min <= low < high <= limits.max + 1:
        raise AttributeValueError(f"there are no {dtype} from {low} up to, but not including, {high}",
                                  operator="integers", hint=f"{limits.min} <= low < high <= {limits.max + 1}")
    span = high - low
    if span > 2**32 and span & (span - 1):
        raise AttributeValueError(f"{span} different integers are neither at most 2**32 nor a power of two",
                                  operator="integers", hint="draw bits(dtype=\"uint64\") and reject what is too large")
    return span


@by_shapes
def _integers(key: Value, dims: Dims, span: int, low: int, dtype: DType) -> Value:
    word = F.random_bits(key, shape=dims, dtype=uint64)
    return _shifted(_scaled(word, span), low, dtype)


def _scaled(word: Value, span: int) -> Value:
    """floor(word * span / 2**64), in two halves, so that nothing overflows; uint64."""
    if not span & (span - 1):
        return F.floor_divide(word, 2**64 // span) if span > 1 else F.zeros_like(word)
    if (found := as_whole("scaled_words", (word,), (span,))) is not None:
        return found  # type: ignore[no-any-return]
    high = F.floor_divide(word, 2**32)
    low = F.subtract(word, F.multiply(high, 2**32))
    carried = F.floor_divide(F.multiply(low, span), 2**32)
    return F.floor_divide(F.add(F.multiply(high, span), carried), 2**32)


def _shifted(x: Value, low: int, dtype: DType) -> Value:
    """x + low; both wrap around in the dtype, so that what lies between need not fit."""
    limits, x = np.iinfo(dtype), F.cast(x, dtype=dtype)
    wrapped = (low - int(limits.min)) % 2 ** (8 * dtype.itemsize) + int(limits.min)
    return F.add(x, wrapped) if wrapped else x


_default: list[Generator] = []


def default_generator() -> Generator:
    """The generator that is used where none is given: that of the process, made by the first who asks for it.

    On a device that keeps no numbers it is one of that device, and what was drawn there changes nothing elsewhere.
    """
    return _default_on(current_stack())


def _default_on(stack: Stack) -> Generator:
    if NO_VALUES in stack.device.spec.features:
        return Generator(0, stack)
    if not _default:
        made = Generator(0)
        made.key.roams = True
        _default.append(made)
    return _default[0]


def generator_for(generator: Generator | None, stack: Stack) -> Generator:
    """The one given; else the default one, for draws on the device that needs numbers."""
    if generator is not None:
        if not isinstance(generator, Generator):
            raise OperandError(f"generator is {type(generator).__name__}, expected a nnc.Generator",
                               hint=f"nnc.Generator({generator!r})" if isinstance(generator, int) else None)
        return generator
    default = _default_on(stack)
    return _DrawnOn(default.key, stack) if default.key.roams else default


class _DrawnOn(Generator):
    """The default generator for draws on one device.

    Bringing the key there and drawing are one step: threads that draw on other devices wait.
    """

    def __init__(self, key: Cell, stack: Stack) -> None:
        self.key, self._place = key, stack

    @property
    def _stack(self) -> Stack:
        return self._place

    def _next_key(self) -> Value:
        with self.key._lock:
            self._bring()
            return super()._next_key()

    def _next(self, name: str, shape: Dims, dtype: DType) -> Value:
        with self.key._lock:
            self._bring()
            return super()._next(name, shape, dtype)

    def _bring(self) -> None:
        """Move the key, unless what is being traced has drawn from it on another device."""
        if self.key.stack is self._place:
            return
        trace = current_trace.get()
        if trace is not None and trace.uses(self.key):
            return
        try:
            with tracing(None):
                self.key.move(self._place)
        except DeviceLostError as error:
            raise DeviceLostError("the state of the default generator was on a device that is lost",
                                  device=self.key.device.id, hint="nnc.manual_seed(seed) starts it again") from error


def manual_seed(seed: int) -> Generator:
    """Start the default generator again, on the current device; code that was compiled with it follows."""
    generator, stack = default_generator(), current_stack()
    if generator.key.stack is not stack:  # which may be lost
        generator.key.put(host_value(_host_key((seed, 0)), stack=stack))
    generator.seed(seed)
    return generator
