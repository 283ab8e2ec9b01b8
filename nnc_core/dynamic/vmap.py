"""Functions of one example run on many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from nnc_core.base.errors import AxisError, ShapeError
from nnc_core.dynamic.body import Surroundings, Traced, no_writes, tensors, values_of
from nnc_core.dynamic.dispatch import F
from nnc_core.dynamic.functions.face import located
from nnc_core.dynamic.modes import use_device
from nnc_core.dynamic.value import Value
from nnc_core.graph import batch
from nnc_core.shape.axes import normalise_axis
from nnc_core.type import TensorSpec

Axes = int | None | Sequence[int | None]


def vmap(f: Callable[..., Any], in_axes: Axes = 0, out_axes: int = 0) -> Callable[..., Any]:
    """f, written for one example, as a function of arguments that have an axis more.

    `in_axes` says for all arguments, or for each, which axis of their tensors (they may be trees) goes over the
    examples; None for an argument that is the same for all.  `out_axes` says where that axis is in the results.
    f is traced: it may call anything that jit takes; what it reads from outside is the same for all examples.
    AxisError and ShapeError if the axes do not fit each other.
    """

    @wraps(f)
    def batched(*args: Any) -> Any:
        return _run(f, args, in_axes, out_axes)

    return located(batched)


def _run(f: Callable[..., Any], args: tuple[Any, ...], in_axes: Axes, out_axes: int) -> Any:
    axes = tuple(in_axes) if isinstance(in_axes, Sequence) else (in_axes,) * len(args)
    if len(axes) != len(args):
        raise AxisError(f"in_axes has {len(axes)} entries for {len(args)} arguments")
    values, structure = values_of(args)
    along = [axis for arg, axis in zip(args, axes, strict=True) for _ in values_of(arg)[0]]
    size = _size(values, along)
    stack = values[0].stack
    with use_device(stack):
        first = [v if a is None else _moved(v, normalise_axis(a, v.ndim), 0)
                 for v, a in zip(values, along, strict=True)]
        flags = [a is not None for a in along]
        specs = [TensorSpec(v.shape[1:], v.dtype) if b else v.spec for v, b in zip(first, flags, strict=True)]
        traced = Traced(f, "vmap of", first, specs, lambda ts: tensors(structure, [t._value for t in ts]))
        no_writes(traced, "a batched function")
        outputs, tree = values_of(traced.result, stack)
        around = Surroundings([traced], [outputs])
        body = traced.body(stack, outputs, [*[[s] for s in traced.symbols], *around.inputs(0)])
        shared = around.operands()
        results = batch(F, body, [*first, *shared], [*flags, *[False] * len(shared)], size)
        moved = [_moved(y, 0, normalise_axis(out_axes, y.ndim)) for y in results]
    return tensors(tree, moved)


def _size(values: Sequence[Value], along: Sequence[int | None]) -> Any:
    found = {v.shape[normalise_axis(a, v.ndim)] for v, a in zip(values, along, strict=True) if a is not None}
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
