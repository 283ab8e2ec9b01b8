"""Functions of one example run on many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

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
from nnc_core.values.tree import Structure
from nnc_core.values.value import Value

Axes = int | None | Sequence[int | None]


@located
def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: int = 0) -> Callable[..., Any]:
    """f, written for one example, as a function of arguments that have an axis more.

    `in_axes` says for all arguments, or for each, which axis of their tensors (they may be trees) goes over the
    examples; None for an argument that is the same for all.  `out_axes` says where that axis is in the results.
    f is traced: it may call anything that jit takes; what it reads from outside is the same for all examples.  Where
    it writes state, draws random numbers or has effects it runs on one example after another, in their order.

    OperandError, AxisError and ShapeError if arguments or axes do not fit.
    """
    if not callable(f):
        raise OperandError(f"{type(f).__name__} is no function", operator="vmap", line=show_line(user_line()))

    @wraps(f)
    def batched(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs:
                raise OperandError(f"arguments by name: {', '.join(kwargs)}",
                                   hint="by position; functools.partial(f, name=x) for what all examples share")
            return _run(f, args, in_axes, out_axes)
        except UnknownShapeError as error:
            return postponed(error, batched, args, {}, f, "vmap")
        except Error as error:
            error.locate(operator="vmap", line=show_line(user_line()))
            raise

    recorder(batched)
    return batched


def _run(f: Callable[..., Any], args: tuple[Any, ...], in_axes: Axes, out_axes: int) -> Any:
    axes = tuple(in_axes) if isinstance(in_axes, Sequence) else (in_axes,) * len(args)
    if len(axes) != len(args):
        raise AxisError(f"in_axes has {len(axes)} entries for {len(args)} arguments",
                        hint="one for each argument, or one number for all")
    values, structure = values_of(args)
    counts = [len(values_of(arg)[0]) for arg in args]
    along = [_axis(v, axis, i) for v, (i, axis) in zip(values, (
        (i, axis) for i, (axis, k) in enumerate(zip(axes, counts, strict=True)) for _ in range(k)), strict=True)]
    size = _size(values, along)
    with use_device(values[0].stack):
        first = [v if a is None else _moved(v, a, 0) for v, a in zip(values, along, strict=True)]
        results, tree = _batched(f, first, [a is not None for a in along], structure, size)
        moved = [_moved(y, 0, normalise_axis(out_axes, y.ndim)) for y in results]
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
