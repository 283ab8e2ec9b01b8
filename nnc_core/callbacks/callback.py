"""Functions of the host in the middle of a computation: called with NumPy arrays, in every mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nnc_core.base.dtype import boolean, is_inexact
from nnc_core.base.errors import DTypeError, Error, ExecutionError, GradientError, OperandError, ShapeError
from nnc_core.base.layout import Layout
from nnc_core.symbol import Line, show_line, user_line
from nnc_core.type import TensorSpec, TupleSpec, admit_numpy
from nnc_core.values.dispatch import F
from nnc_core.values.modes import current_trace
from nnc_core.values.operands import value_of
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import LEAF, Structure, flatten, unflatten
from nnc_core.values.value import Value

Function = Callable[..., Any]


def callback(fn: Function, spec: Any, *args: Any, vjp: Function | None = None, effect: bool = False) -> Any:
    """Call fn(*args) and return its results as tensors: fn is called on the host with NumPy arrays in place of tensors.

    `spec` says what it returns: a `TensorSpec`, anything else with a shape and a dtype, or a dict, list or tuple of
    such; None for a function that is called for its effect alone.  `args` may be nested likewise; what is no tensor is
    handed on as it is.  Arrays are copies, which fn may change.

    Eager code calls fn now, deferred code when the result is computed, compiled code once in each call of the graph:
    equal callbacks are not merged, results not folded or kept.  Compiled code leaves out a callback whose results
    nobody uses, as it does with any operator; with `effect` (or without a spec) the function that is compiled keeps it,
    and such callbacks run in the order in which they were written.

    `vjp(g, *args)` makes it differentiable in reverse mode: g is the cotangent of the result (structured as `spec`),
    and it returns the cotangent of the only argument, or one for each, as arrays of their shapes and dtypes; None is
    zero.

    Raises, naming fn and the line of the callback, ExecutionError for what fn raises, OperandError, ShapeError and
    DTypeError for results that are not what `spec` says.
    """
    leaves, structure = flatten(args)
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    operands = [value_of(leaves[i]) for i in tensors]
    wanted, shape_of_result = flatten(spec)
    specs = [_spec(x) for x in wanted]
    call = HostCall(fn, HostArguments(structure, [None if i in tensors else x for i, x in enumerate(leaves)], tensors),
                    shape_of_result, vjp)
    made = F.callback(operands, function=call, spec=_joined(specs or [_TOKEN]))
    parts = [made] if len(specs) <= 1 else F.picks(made)
    if effect or not specs:
        _keep(parts[0])
    return unflatten(shape_of_result, iter([Tensor(v) for v in parts]))


_TOKEN = TensorSpec((), boolean)
"""What a callback that returns nothing makes."""


def _keep(made: Value) -> None:
    """Let the function that is being traced compute a result, whether it uses it or not."""
    trace = current_trace.get()
    if trace is not None:
        trace.effects.append(made)


def _spec(x: Any) -> TensorSpec:
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise OperandError(f"{x!r} says nothing of a shape and a dtype", operator="callback",
                           hint='give nnc.TensorSpec((2, 3), "float32"), or a nested structure of such')
    return TensorSpec(tuple(x.shape), admit_numpy(x.dtype))


def _joined(specs: Sequence[TensorSpec]) -> TensorSpec:
    return specs[0] if len(specs) == 1 else TupleSpec(tuple(specs))


class HostArguments:
    """A function's arguments, with places for arrays."""

    def __init__(self, structure: Structure, leaves: Sequence[Any], tensors: Sequence[int]) -> None:
        self.structure, self.leaves, self.tensors = structure, leaves, tensors

    def filled(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        leaves = list(self.leaves)
        for i, array in zip(self.tensors, arrays, strict=True):
            leaves[i] = array
        found: tuple[Any, ...] = unflatten(self.structure, iter(leaves))
        return found

    def gathered(self, given: Sequence[Any]) -> list[Any]:
        """The leaves in the tensors' places of something structured like the arguments; None for a whole argument,
        or for a leaf, is None for each tensor in it."""
        found: list[Any] = []
        for x, part in zip(given, self.structure.parts, strict=True):
            found += _leaves_as(part, x)
        return [found[i] for i in self.tensors]


def _leaves_as(structure: Structure, x: Any) -> list[Any]:
    """The leaves of x, which is structured so; None stands for any number of leaves."""
    if structure.kind is None:
        return [x]
    keys: Sequence[Any] = structure.keys or range(len(structure.parts))
    if x is not None and (not isinstance(x, (dict, list, tuple)) or len(x) != len(structure.parts)):
        raise OperandError(f"{type(x).__name__} where {len(structure.parts)} parts are needed")
    return [leaf for key, part in zip(keys, structure.parts, strict=True)
            for leaf in _leaves_as(part, None if x is None else x[key])]


class HostCall:
    """A function as one node calls it; each is another one, so that two nodes are never taken for one."""

    def __init__(self, fn: Function, arguments: HostArguments, structure: Structure, vjp: Function | None) -> None:
        self.fn, self.arguments, self.structure, self.vjp = fn, arguments, structure, vjp
        self.line: Line | None = user_line()
        self.floating_point = np.geterr()

    def __call__(self, arrays: Sequence[Any], outputs: Sequence[Layout]) -> tuple[Any, ...]:
        result = self._called(self.fn, self.arguments.filled(arrays))
        if self.structure.kind is type(None):
            return (np.zeros((), boolean),)
        leaves, structure = flatten(result)
        if structure != self.structure:
            raise OperandError(f"{self} returned {_shown(result)}, which is not structured as the spec says",
                               operator="callback", line=show_line(self.line))
        return tuple([self._fitting(x, out) for x, out in zip(leaves, outputs, strict=True)])

    def _called(self, fn: Function, arguments: Sequence[Any]) -> Any:
        """The host's own settings for floating-point errors hold, those where the callback was written."""
        try:
            with np.errstate(**self.floating_point):
                return fn(*arguments)
        except Exception as error:
            text = error.message if isinstance(error, Error) else error
            raise ExecutionError(f"{name_of(fn)} raised {type(error).__name__}: {text}", operator="callback",
                                 line=show_line(self.line)) from error

    def _fitting(self, x: Any, out: Layout) -> Any:
        said: dict[str, Any] = {"operator": "callback", "line": show_line(self.line)}
        wanted = f"the spec says {TensorSpec(out.shape, out.dtype)}"
        if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
            x = np.asarray(x, out.dtype) if out.shape == () else np.asarray(x)
        if not isinstance(x, (np.ndarray, np.generic)):
            raise OperandError(f"{self} returned {type(x).__name__}; {wanted}", hint="return NumPy arrays", **said)
        if x.shape != out.shape:
            raise ShapeError(f"{self} returned {x.dtype}{list(x.shape)}; {wanted}", **said)
        if x.dtype != out.dtype:
            raise DTypeError(f"{self} returned {x.dtype}{list(x.shape)}; {wanted}", hint="cast it with astype", **said)
        return x

    def pull(self, G: Any, g: Any, spec: TensorSpec, inputs: Sequence[Any]) -> list[Any]:
        """The cotangents of the inputs: one callback more."""
        if self.vjp is None:
            raise GradientError(f"{self} has no vjp, so that its derivative is not known", operator="callback",
                                line=show_line(self.line), hint="callback(..., vjp=...), or stop_gradient its operands")
        specs = spec.parts if isinstance(spec, TupleSpec) else (spec,)
        given = g if isinstance(spec, TupleSpec) else [g]
        cotangents = [G.full(shape=s.shape, value=0, dtype=s.dtype) if x is None else x
                      for x, s in zip(given, specs, strict=True)]
        floats = [i for i, x in enumerate(inputs) if is_inexact(x.dtype)]
        made = G.callback([*cotangents, *inputs], function=Pulled(self, len(cotangents), floats),
                          spec=_joined([inputs[i].spec for i in floats]))
        parts = iter([made] if len(floats) == 1 else G.picks(made))
        return [next(parts) if i in floats else None for i in range(len(inputs))]

    def __repr__(self) -> str:
        return name_of(self.fn)


class Pulled(HostCall):
    """The vjp of a callback as another one."""

    def __init__(self, forward: HostCall, cotangents: int, wanted: Sequence[int]) -> None:
        super().__init__(forward.vjp or forward.fn, forward.arguments, forward.structure, None)
        self.forward, self.cotangents, self.wanted = forward, cotangents, wanted
        self.line, self.floating_point = forward.line, forward.floating_point

    def __call__(self, arrays: Sequence[Any], outputs: Sequence[Layout]) -> tuple[Any, ...]:
        given, arrays = arrays[: self.cotangents], arrays[self.cotangents :]
        g = unflatten(self.structure, iter(given))
        result = self._called(self.fn, (g, *self.arguments.filled(arrays)))
        found = self._gathered(result)
        return tuple([np.zeros(out.shape, out.dtype) if found[i] is None else self._fitting(found[i], out)
                      for i, out in zip(self.wanted, outputs, strict=True)])

    def _gathered(self, result: Any) -> list[Any]:
        count = len(self.arguments.structure.parts)
        whole = result if isinstance(result, tuple) and (count != 1 or len(result) == 1) else (result,)
        try:
            if len(whole) != count:
                raise OperandError(f"{len(whole)} cotangents for {count} arguments")
            return self.arguments.gathered(whole)
        except (OperandError, KeyError) as error:
            raise OperandError(f"{self} returned {_shown(result)}, which is not structured as the arguments are: "
                               f"{error}", operator="callback", line=show_line(self.line)) from None


def name_of(fn: Function) -> str:
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _shown(x: Any) -> str:
    """Types in place of leaves."""
    leaves, structure = flatten(x)
    named = [type(leaf).__name__ for leaf in leaves]
    return named[0] if structure == LEAF else str(unflatten(structure, iter(named))).replace("'", "")


def debug_print(text: str, *values: Any, **named: Any) -> Any:
    """Print `text.format(*values, **named)` with the live values of tensors, whenever they are computed.

    Eager code prints now, deferred code when the result is computed, compiled code once in each call.  Gives back the
    first of `values`, as a tensor that is computed after the printing; derivatives pass through it.
    """

    def print_(values: tuple[Any, ...], named: dict[str, Any]) -> None:
        plain = [_scalar(x) for x in values]
        print(text.format(*plain, **{name: _scalar(x) for name, x in named.items()}), flush=True)

    token = _token(print_, tuple(values), dict(named))
    return _after(token, values[0]) if values else None


def _scalar(x: Any) -> Any:
    """So that formats for numbers apply."""
    return x[()] if isinstance(x, np.ndarray) else x


def _token(fn: Function, *args: Any) -> Value:
    leaves, structure = flatten(args)
    tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    rest = [None if i in tensors else x for i, x in enumerate(leaves)]
    call = HostCall(fn, HostArguments(structure, rest, tensors), flatten(None)[1], None)
    token = F.callback([F.stop_gradient(value_of(leaves[i])) for i in tensors], function=call, spec=_TOKEN)
    _keep(token)
    return token


def _after(token: Value, x: Any) -> Any:
    return Tensor(F.after(value_of(x), [token])) if isinstance(x, Tensor) else x
