"""Functions of one example run on many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np

from nnc_core.base.errors import AxisError, Error, OperandError, ShapeError, UnknownShapeError
from nnc_core.control.body import BodyCaptures, TracedBody, has_effects, tensors, values_of
from nnc_core.control.constructs import rows_mapped
from nnc_core.shape.axes import normalise_axis
from nnc_core.symbol import show_line, user_line
from nnc_core.type import TensorSpec
from nnc_core.values.arguments import located
from nnc_core.values.dispatch import F
from nnc_core.values.modes import use_device
from nnc_core.values.postponed import postponed
from nnc_core.values.recorders import recorder
from nnc_core.values.tree import Structure, flatten, leaf_count, spread
from nnc_core.values.value import Handle, Value

Axes = Any
"""An axis, None, or a tree with the beginning of the structure of what it is about and one of these at each leaf."""


@located
def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: Axes = 0) -> Callable[..., Any]:
    """f, written for one example, as a function of arguments that have an axis more.

    `in_axes` says for all arguments, or for each, which axis of their tensors (they may be trees) goes over the
    examples; None for an argument that is the same for all.  `out_axes` says where that axis is in the results, or in
    each.  Either may say it part by part, in a tree like the argument or result: `in_axes=(0, {"w": None, "x": 1})`.
    What is given by name, numbers and other settings but no arrays, is the same for all examples.
    f is traced: it may call anything that jit takes; what it reads from outside is the same for all examples.  Where
    it writes state, draws random numbers or has effects it runs on one example after another, in their order.

    OperandError, AxisError and ShapeError if arguments or axes do not fit.
    """
    if not callable(f):
        raise OperandError(f"{type(f).__name__} is no function", operator="vmap", line=show_line(user_line()))

    @wraps(f)
    def batched(*args: Any, **kwargs: Any) -> Any:
        try:
            return _run(_with_settings(f, kwargs), args, in_axes, out_axes)
        except UnknownShapeError as error:
            return postponed(error, batched, args, kwargs, f, "vmap")
        except Error as error:
            error.locate(operator="vmap", line=show_line(user_line()))
            raise

    recorder(batched)
    return batched


def _with_settings(f: Callable[..., Any], named: Mapping[str, Any]) -> Callable[..., Any]:
    """f with what is given by name.  JAX takes arrays by name apart, PyTorch shares them: here neither is guessed."""
    arrays = [name for name, x in named.items()
              if any([isinstance(leaf, (Handle, np.ndarray)) for leaf in flatten(x, sort=False)[0]])]
    if arrays:
        raise OperandError(f"arrays by name: {', '.join(arrays)}",
                           hint="by position; functools.partial(f, name=x) for what all examples share")
    return partial(f, **named) if named else f


def _run(f: Callable[..., Any], args: tuple[Any, ...], in_axes: Axes, out_axes: Axes) -> Any:
    values, structure = values_of(args)
    axes = _for_each_leaf(in_axes, structure)
    counts = [leaf_count(part) for part in structure.parts]
    places = [i for i, count in enumerate(counts) for _ in range(count)]
    along = [_axis(v, axis, i) for v, axis, i in zip(values, axes, places, strict=True)]
    size = _size(values, along)
    with use_device(values[0].stack):
        first = [v if a is None else _moved(v, a, 0) for v, a in zip(values, along, strict=True)]
        results, tree = _batched(f, first, [a is not None for a in along], structure, size)
        back = _of_results(out_axes, tree)
        moved = [_moved(y, 0, normalise_axis(axis, y.ndim)) for y, axis in zip(results, back, strict=True)]
    return tensors(tree, moved)


def examples(f: Callable[..., Any], values: Sequence[Value], batched: Sequence[bool], size: Any) -> Any:
    """f on values of which those that are `batched` have `size` examples along their first axis, as its results do."""
    structure = Structure(tuple, (), (Structure(None),) * len(values))
    with use_device(values[0].stack):
        return tensors(*reversed(_batched(f, list(values), list(batched), structure, size)))


def _batched(f: Callable[..., Any], first: list[Value], flags: list[bool], structure: Structure,
             size: Any) -> tuple[list[Value], Structure]:
    """The results with the examples along their first axis."""
    stack = first[0].stack
    specs = [TensorSpec(v.shape[1:], v.dtype) if b else v.spec for v, b in zip(first, flags, strict=True)]
    traced = TracedBody(f, "vmap of", first, specs, lambda ts: tensors(structure, [t._value for t in ts]))
    if traced.written or has_effects([traced]):
        return _in_order(f, first, flags, structure)
    outputs, tree = values_of(traced.result, stack)
    around = BodyCaptures([traced], [outputs])
    body = traced.body(stack, outputs, [*[[s] for s in traced.symbols], *around.inputs(0)])
    shared = around.operands()
    flags = [*flags, *[False] * len(shared)]
    return stack.graph.batch(F, body, [*first, *shared], flags, size), tree


def _in_order(f: Callable[..., Any], first: list[Value], flags: list[bool],
              structure: Structure) -> tuple[list[Value], Structure]:
    """One example after another, as a loop of Python would."""
    rows = tensors(Structure(tuple, (), (Structure(None),) * sum(flags)),
                   [v for v, b in zip(first, flags, strict=True) if b])

    def example(row: Any) -> Any:
        mine = iter(row)
        return f(*tensors(structure, [next(mine)._value if b else v for v, b in zip(first, flags, strict=True)]))

    return values_of(rows_mapped(example, rows))


def _for_each_leaf(in_axes: Axes, structure: Structure) -> list[Any]:
    given = len(in_axes) if isinstance(in_axes, (list, tuple)) else None
    if given not in (None, len(structure.parts)):
        raise AxisError(f"in_axes has {given} entries for {len(structure.parts)} arguments",
                        hint="one for each argument, or one number for all")
    try:
        return spread(in_axes, structure)
    except ValueError as error:
        raise AxisError(f"in_axes says {error}", hint="a tree like the argument, or one number for all of it") from None


def _of_results(out_axes: Axes, tree: Structure) -> list[Any]:
    try:
        axes = spread(out_axes, tree)
    except ValueError as error:
        raise AxisError(f"out_axes says {error}", hint="a tree like the result, or one number for all of it") from None
    if None in axes:
        raise AxisError("out_axes has a None, but each example has a result",
                        hint="0, and y[0] of a result that is the same for all")
    return axes


def _axis(v: Value, axis: int | None, argument: int) -> int | None:
    if axis is None:
        return None
    try:
        return normalise_axis(axis, v.ndim)
    except AxisError:
        raise AxisError(f"argument {argument} is {v.spec}: it has no axis {axis} that could go over the examples",
                        hint="in_axes says which axis of each argument does; None: it is the same for all") from None


def _size(values: Sequence[Value], along: Sequence[int | None]) -> Any:
    found = {v.shape[a] for v, a in zip(values, along, strict=True) if a is not None}
    if len(found) != 1:
        given = ", ".join(f"{v.spec} along {a}" for v, a in zip(values, along, strict=True) if a is not None)
        raise ShapeError(f"no one number of examples: {given or 'no argument has an axis for them'}",
                         hint="in_axes says which axis of each argument goes over the examples")
    return found.pop()


def _moved(v: Value, source: int, target: int) -> Value:
    if source == target:
        return v
    order = [i for i in range(v.ndim) if i != source]
    order.insert(target, source)
    return F.permute(v, axes=tuple(order))
