"""Derivatives of Python functions: run the function in the current mode, then sweep over what it recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np

from nnc_core.algodiff.reverse_pass import swept
from nnc_core.algodiff.tape import Tape, history
from nnc_core.base.dtype import int64, is_float, is_inexact
from nnc_core.base.errors import ConcretizationError, GradientError, UnknownShapeError
from nnc_core.control.alike import functions
from nnc_core.control.vmap import vmap
from nnc_core.operator import OPERATORS
from nnc_core.symbol import called_at, postorder, show_line, user_line
from nnc_core.type import TensorSpec, whole
from nnc_core.values.arguments import located
from nnc_core.values.borrowed import snapshot
from nnc_core.values.dispatch import F
from nnc_core.values.from_host import host_value
from nnc_core.values.history import renamed
from nnc_core.values.modes import current_stack, current_trace, gradients, is_step_by_step, no_grad, sweeps, use_device
from nnc_core.values.operands import value_of
from nnc_core.values.postponed import postponable
from nnc_core.values.recorders import inside_recorder
from nnc_core.values.results import ONE
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten, tree_map, unflatten
from nnc_core.values.unshaped import resolving
from nnc_core.values.value import Value, made_at, owned

_IDENTITY = OPERATORS["identity"]


def leaf_of(v: Value) -> Value:
    """The same value as the leaf of a sweep; what is computed from it is recorded."""
    v = snapshot(v) if v.borrowed else v
    return Value(v.array, v.stack, v._spec, renamed(v, _IDENTITY), True, v.trace)


def taken(x: Any) -> Any:
    """A tensor in the place of NumPy's array, or of a number: what a minimiser of SciPy's calls a gradient with."""
    return Tensor(host_value(x)) if isinstance(x, (np.ndarray, np.generic, float)) else x


def like_given(x: Any, v: Value) -> Any:
    """A gradient as what it is taken by: a tensor, NumPy's array or a number.  While something is traced, a tensor."""
    if isinstance(x, Tensor) or v.trace is not None or current_trace.get() is not None:
        return Tensor(v)
    array = Tensor(v).numpy()
    return array if isinstance(x, np.ndarray) else array.item() if type(x) is float else array[()]


def _leaves(tree: Any, what: str) -> tuple[list[Value], Any]:
    """The tensors of an argument as leaves, and the argument made of them."""
    tensors, structure = flatten(tree)
    leaves = []
    for t in map(taken, tensors):
        if not isinstance(t, Tensor):
            raise GradientError(f"{what} by {type(t).__name__}: only tensors have gradients",
                                line=show_line(user_line()), hint="nnc.asarray(...)")
        if not is_inexact(t.dtype):
            raise GradientError(f"{what} by {t.spec}: only floating-point tensors have gradients",
                                line=show_line(user_line()), hint="cast with astype")
        leaves.append(leaf_of(value_of(t)))
    return leaves, unflatten(structure, iter([Tensor(v) for v in leaves]))


def _values(tree: Any, what: str, alike: Sequence[Value] | None = None) -> list[Value]:
    """Values of a tree of tensors; GradientError for other leaves, or for another number of them."""
    tensors = list(map(taken, flatten(tree)[0]))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise GradientError(f"{what} {type(t).__name__}: only tensors have gradients", line=show_line(user_line()),
                                hint="nnc.asarray(...)")
    if alike is not None and len(tensors) != len(alike):
        raise GradientError(f"{what} {len(tensors)} tensors where there are {len(alike)}", line=show_line(user_line()),
                            hint="give one for each")
    return [value_of(t) for t in tensors]


def _check_argnums(number: int, args: Sequence[Any]) -> None:
    if not -len(args) <= number < len(args):
        raise GradientError(f"a derivative by argument {number} of a call with {len(args)} positional arguments",
                            line=show_line(user_line()), hint="give it by position, or another argnums=")


class Sweep:
    """A function run on leaves, ready for sweeps."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int],
                 kwargs: dict[str, Any]) -> None:
        self.structures: list[tuple[list[Any], Any]] = []
        self.leaves: list[Value] = []
        self.again = True
        for i in argnums:
            _check_argnums(i, args)
        given = list(args)
        self.outer = any(t._value.tracked for i in argnums for t in flatten(args[i])[0] if isinstance(t, Tensor))
        for i in argnums:
            leaves, given[i] = _leaves(args[i], "a derivative")
            self.structures.append(flatten(args[i]))
            self.leaves += leaves
        depth = sweeps.set(sweeps.get() + 1)
        recording = gradients.set(True)
        try:
            self.result = f(*given, **kwargs)
        finally:
            gradients.reset(recording)
            sweeps.reset(depth)

    def order(self, outputs: Sequence[Value]) -> list[Value]:
        return postorder(outputs, {id(v) for v in self.leaves}, leaf=lambda v: not v.tracked)

    def decide(self, order: Sequence[Value]) -> None:
        """Settle `again`: the sweep itself is recorded iff somebody can differentiate it."""
        mine = {id(v) for v in self.leaves}
        self.again = gradients.get() and (sweeps.get() > 0 or self.outer
                                          or any(v.tracked and v.step is None and id(v) not in mine for v in order))

    def recorded(self, order: Sequence[Value]) -> Any:
        """The context of a sweep over these values."""
        self.decide(order)
        return nullcontext() if self.again else no_grad()

    def reverse(self, outputs: Sequence[Value], cotangents: Sequence[Value | None]) -> list[Value]:
        """Cotangents of the leaves, None standing for ones of an output; zeros where nothing depends on a leaf."""
        if not outputs:
            return list(map(_zeros, self.leaves))
        given = frozenset(map(id, self.leaves))
        order = history(outputs, given)
        self.decide(order)
        tape = Tape(order, outputs, cotangents, self.leaves, given)
        found = swept(tape, self.again, not is_step_by_step())
        return [_zeros(v) if g is None else g for g, v in zip(found, self.leaves, strict=True)]

    def in_shape(self, values: Sequence[Value]) -> tuple[Any, ...]:
        """One structure for each differentiated argument, with NumPy's arrays where it had such."""
        rest = iter(values)
        return tuple(unflatten(structure, iter([like_given(x, next(rest)) for x in given]))
                     for given, structure in self.structures)


def _scalar(y: Any, operator: str) -> Value:
    if not isinstance(y, Tensor):
        raise GradientError(f"the function gives {type(y).__name__}, not a tensor", operator=operator,
                            line=show_line(user_line()), hint="return a tensor; has_aux=True is for (scalar, anything)")
    if y.shape != () or not is_float(y.dtype):
        raise GradientError(f"the function gives {y.spec}; only a floating-point scalar has a gradient",
                            operator=operator, line=made_at(y._value), hint="sum it, or use nnc.vjp or nnc.jacobian")
    return y._value


@located
def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (f(...), gradient by the arguments `argnums`), each gradient with its argument's structure.

    With `has_aux` f gives (scalar, anything), and the result is ((scalar, anything), gradient).
    """
    return _value_and_grad(f, argnums, has_aux, "value_and_grad")


def _value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool,
                    operator: str) -> Callable[..., Any]:
    """`value_and_grad` for functions that name themselves in errors."""
    functions(f=f)
    wanted = (argnums,) if isinstance(argnums, int) else tuple(whole(i, "argnums") for i in argnums)

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        sweep = Sweep(f, args, wanted, kwargs)
        y = _scalar(_pair(sweep.result, operator)[0] if has_aux else sweep.result, operator)
        grads = sweep.in_shape(sweep.reverse([y], [None]))
        return _plain(sweep.result, sweep), grads[0] if isinstance(argnums, int) else grads

    def like(*args: Any, **kwargs: Any) -> Any:
        grads = tuple([args[i] for i in wanted])
        return f(*args, **kwargs) if has_aux else ONE, grads[0] if isinstance(argnums, int) else grads

    return postponable(wrapped, like, "value_and_grad")


def _pair(result: Any, operator: str) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2:
        raise GradientError(f"the function gives {type(result).__name__}, not (scalar, anything)", operator=operator,
                            line=show_line(user_line()), hint="return a pair, or leave has_aux out")
    return result


def _zeros(v: Value) -> Value:
    with no_grad():
        return F.zeros_like(v)


def _plain(result: Any, sweep: Sweep) -> Any:
    """Results without the history that only this sweep needed; symbols stay what they are."""

    def free(t: Any) -> Any:
        return t.detach() if isinstance(t, Tensor) and t._value.tracked and t._value.trace is None else t

    return result if sweep.again else tree_map(free, result)


@located
def grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of the scalar function f by the arguments `argnums`.

    With `has_aux` f gives (scalar, anything), and the result is (gradient, anything).
    """
    if not has_aux:
        return grad_of(f, argnums)
    both = _value_and_grad(f, argnums, True, "grad")

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        (_, aux), gradient = both(*args, **kwargs)
        return gradient, aux

    def like(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        return _like_arguments(argnums, *args), f(*args, **kwargs)[1]

    return postponable(wrapped, like, "grad")


def grad_of(f: Callable[..., Any], argnums: int | Sequence[int], operator: str = "grad") -> Callable[..., Any]:
    """`grad` for functions that name themselves in errors."""
    both = _value_and_grad(f, argnums, False, operator)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return postponable(wrapped, partial(_like_arguments, argnums), "grad")


def _like_arguments(argnums: int | Sequence[int], *args: Any, **kwargs: Any) -> Any:
    return args[argnums] if isinstance(argnums, int) else tuple([args[i] for i in argnums])


@located
def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """(f(*args), pull): pull(cotangent of the result) gives the cotangents of all arguments."""
    functions(f=f)
    try:
        sweep = Sweep(f, args, range(len(args)), {})
        outputs = _values(sweep.result, "the function gives")
    except UnknownShapeError:
        if inside_recorder(2) or resolving.get() is not None:
            raise
        return called_at(user_line(), f, *args), partial(_pulled, f, args)

    def pull(cotangent: Any) -> tuple[Any, ...]:
        given = _values(cotangent, "the cotangent is", outputs)
        for y, g in zip(outputs, given, strict=True):
            if y.spec != g.spec:
                raise GradientError(f"the cotangent is {g.spec} where the result is {y.spec}")
        return sweep.in_shape(sweep.reverse(outputs, given))

    sweep.decide(sweep.order(outputs))
    return _plain(sweep.result, sweep), pull


def _arguments(f: Callable[..., Any], args: Any, cotangent: Any) -> Any:
    return args


@partial(postponable, like=_arguments, name="vjp")
def _pulled(f: Callable[..., Any], args: tuple[Any, ...], cotangent: Any) -> tuple[Any, ...]:
    """The cotangents of all arguments, of a function that asks for shapes which are not known yet."""
    return vjp(f, *args)[1](cotangent)


@located
def jvp(f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """(f(*primals), its derivative in the direction `tangents`), by one forward sweep."""
    functions(f=f)
    sweep = Sweep(f, primals, range(len(primals)), {})
    given = _values(list(tangents), "a tangent is", sweep.leaves)
    seeds = {}
    for leaf, t in zip(sweep.leaves, given, strict=True):
        if t.spec != leaf.spec:
            raise GradientError(f"the tangent is {t.spec} where the argument is {leaf.spec}")
        seeds[id(leaf)] = t
    structure = flatten(sweep.result)[1]
    outputs = _values(sweep.result, "the function gives")
    order = sweep.order(outputs)
    graph = (outputs[0].stack if outputs else current_stack()).graph
    with sweep.recorded(order):
        tangents_out = graph.forward(F, order, seeds, outputs)
        found = [F.zeros_like(y) if t is None else t for t, y in zip(tangents_out, outputs, strict=True)]
    return _plain(sweep.result, sweep), unflatten(structure, iter([Tensor(t) for t in found]))


@located
def jacobian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that gives the Jacobian of a tensor-valued f by one tensor argument: shape (*result, *argument).

    One reverse sweep for all elements of the result at once; one for each where Python looks at cotangents, as custom
    rules and hooks may.
    """
    return _jacobian_of(f, argnums)


def _jacobian_of(f: Callable[..., Any], argnums: int) -> Callable[..., Any]:
    both = value_and_jacobian(f, argnums)
    return postponable(lambda *args, **kwargs: both(*args, **kwargs)[1], lambda *args, **kwargs: ONE, "jacobian")


def value_and_jacobian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., tuple[Tensor, Tensor]]:
    """A function that gives (f(...), its Jacobian), for one run of f."""
    functions(f=f)
    if isinstance(argnums, Sequence):
        raise GradientError(f"argnums {argnums!r}: a Jacobian is by one tensor", line=show_line(user_line()),
                            hint="one call for each argument; nnc.vjp takes structures")
    argnums = whole(argnums, "argnums")

    def wrapped(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        def of_one(x: Any) -> Any:
            return f(*args[:argnums], x, *args[argnums + 1 :], **kwargs)

        _check_argnums(argnums, args)
        x = taken(args[argnums])
        if not isinstance(x, Tensor):
            raise GradientError(f"a Jacobian by {type(x).__name__}, not a tensor", operator="jacobian",
                                line=show_line(user_line()), hint="one tensor; nnc.vjp takes structures")
        y, pull = vjp(of_one, x)
        if not isinstance(y, Tensor):
            raise GradientError(f"the function gives {type(y).__name__}, not a tensor", operator="jacobian",
                                line=show_line(user_line()), hint="return one tensor; nnc.vjp takes structures")
        with use_device(y._value.stack), nullcontext() if y._value.tracked else no_grad():
            rows = _all_rows(lambda g: pull(g)[0], unit_cotangents(y), x.spec)
            return y, like_given(args[argnums], F.reshape(rows._value, shape=(*y.shape, *x.shape)))

    return postponable(wrapped, lambda *args, **kwargs: (ONE, ONE), "jacobian")


def unit_cotangents(y: Tensor) -> Tensor:
    """One for each element of y, along a new first axis."""
    count = y.size
    unit = F.one_hot(F.arange(size=count, dtype=int64), depth=count, dtype=y.dtype)
    return Tensor(F.reshape(unit, shape=(count, *y.shape)))


def _all_rows(pull: Callable[[Tensor], Tensor], units: Tensor, x: TensorSpec) -> Tensor:
    """The pullbacks of all cotangents, along a first axis."""
    if units.shape[0] == 0:
        return Tensor(F.full(shape=(0, *x.shape), value=0, dtype=x.dtype))
    try:
        return vmap(pull)(units)  # type: ignore[no-any-return]
    except ConcretizationError:
        rows = [F.reshape(pull(units[k])._value, shape=(1, *x.shape)) for k in range(units.shape[0])]
        return Tensor(F.concat(*rows, axis=0))


@located
def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that gives the Hessian of a scalar f by one tensor argument: shape (*argument, *argument)."""
    return hessian_of(f, argnums)


def hessian_of(f: Callable[..., Any], argnums: int) -> Callable[..., Any]:
    """`hessian` for functions that name themselves in errors."""
    return _jacobian_of(grad_of(f, argnums, "hessian"), argnums)


@located
def variable(x: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """A tensor whose gradient `backward` computes, into its `grad`.  It has a value, which a symbol has not.

    Raises GradientError for integers: only floating-point numbers have gradients.
    """
    from nnc_core.functions.creation import asarray

    v = asarray(x, dtype=dtype, device=device).realize()._value
    if not is_inexact(v.dtype):
        raise GradientError(f"a variable is floating-point, not {v.dtype}", hint="cast with astype")
    made = Value(owned(v).array, v.stack, v._spec, None, True)
    made.kept_adjoint()
    return Tensor(made)
