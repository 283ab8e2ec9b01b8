"""Operators that move elements and compute nothing.  Most are views: the planner gives them offset and strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import LoopNest
from nnc_core.operator.declare import ALL_INPUTS, Base, V, op
from nnc_core.operator.loops import Index, IndexLike, InlinedCommand, broadcast_layout, elementwise_nest, open_nest
from nnc_core.operator.padding import with_merged_axes
from nnc_core.shape import movement as rule
from nnc_core.type import Dims

if TYPE_CHECKING:
    from nnc_core.operator import Namespace


def _copy_nest(command: Command, seen: Layout | None) -> LoopNest:
    """Copy a view of the input."""
    assert seen is not None
    return elementwise_nest(lambda x: x, Command(command.name, (), (seen,), command.outputs))


def _reshape_view(x: Layout, shape: tuple[int, ...]) -> Layout | None:
    if x.contiguous:
        return Layout.packed(shape, x.dtype, x.offset)
    kept = tuple((n, s) for n, s in zip(x.shape, x.strides, strict=True) if n != 1)
    if tuple(n for n in shape if n != 1) != tuple(n for n, _ in kept):
        return None
    strides = iter(s for _, s in kept)
    return Layout(shape, x.dtype, x.offset, tuple(0 if n == 1 else next(strides) for n in shape))


def _reshape_nest(command: Command) -> LoopNest:
    """Loop over the input's shape: the output is packed, so it has a view of that shape."""
    x, out = command.inputs[0], command.output
    if out.contiguous:
        seen = Layout.packed(x.shape, x.dtype, out.offset)
        return elementwise_nest(lambda v: v, Command("reshape", (), (x,), (seen,)))
    if not x.contiguous:
        raise NotSupportedError("no loop nest reshapes what has gaps into what has gaps", operator="reshape")
    return elementwise_nest(lambda v: v, Command("reshape", (), (Layout.packed(out.shape, x.dtype, x.offset),), (out,)))


def _reshape_source(at: Sequence[IndexLike], x: Dims, shape: Dims) -> list[IndexLike] | None:
    """Axes that were divided are counted together again; None where axes were merged."""
    found: list[IndexLike] = []
    axis = 0
    for n in x:
        index: IndexLike = 0
        length = 1
        while length < n and axis < len(shape):
            if shape[axis] != 1:
                index, length = index * shape[axis] + at[axis], length * shape[axis]
            axis += 1
        if length != n:
            return None
        found.append(index)
    return found


def _permute_source(at: Sequence[IndexLike], x: Dims, axes: tuple[int, ...]) -> list[IndexLike]:
    return [at[axes.index(axis)] for axis in range(len(axes))]


def _slice_source(at: Sequence[IndexLike], x: Dims, start: Dims, stop: Dims, step: tuple[int, ...]) -> list[IndexLike]:
    return [i * k + a for i, a, k in zip(at, start, step, strict=True)]


def narrowed(at: Sequence[IndexLike], shape: Dims) -> tuple[IndexLike, ...]:
    """Index of an array that is broadcast to where another index points."""
    own = at[len(at) - len(shape) :]
    return tuple([0 if n == 1 else i for n, i in zip(shape, own, strict=True)])


def _permute_view(x: Layout, axes: tuple[int, ...]) -> Layout:
    return Layout(tuple(x.shape[a] for a in axes), x.dtype, x.offset, tuple(x.strides[a] for a in axes))


def _slice_view(x: Layout, start: tuple[int, ...], stop: tuple[int, ...], step: tuple[int, ...]) -> Layout:
    shape = tuple(len(range(a, b, c)) for a, b, c in zip(start, stop, step, strict=True))
    offset = x.offset + (sum(a * s for a, s in zip(start, x.strides, strict=True)) if 0 not in shape else 0)
    return Layout(shape, x.dtype, offset, tuple(s * c for s, c in zip(x.strides, step, strict=True)))


def _flip_nest(command: Command) -> LoopNest:
    (axes,) = command.attributes
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    source = [n - 1 - i if axis in axes else i
              for axis, (i, n) in enumerate(zip(at, command.output.shape, strict=True))]
    nest.store(0, nest.load(0, *source), *at)
    return nest.build()


def _slices(start: Dims, stop: Dims, step: Dims) -> tuple[slice, ...]:
    return tuple(slice(a, b, c) for a, b, c in zip(start, stop, step, strict=True))


def _inner(low: Dims, interior: tuple[int, ...], shape: Dims) -> tuple[slice, ...]:
    """The slices at which the elements of x lie in its padded self."""
    return tuple(slice(a, a + max((n - 1) * (k + 1) + 1, 0), k + 1)
                 for a, k, n in zip(low, interior, shape, strict=True))


def _pad(x: Any, low: Any, high: Any, interior: Any, value: float) -> Any:
    shape = [a + (n + (n - 1) * k if n else 0) + b for a, b, k, n in zip(low, high, interior, x.shape, strict=True)]
    out = np.full(shape, value, x.dtype)
    out[_inner(low, interior, x.shape)] = x
    return out


def _spaced(at: list[Index], low: Any, step: Any) -> list[Index]:
    """The index into x of a position in a larger array that holds x from `low` in steps of `step`."""
    return [(i - a).over(k).guarded() for i, a, k in zip(at, low, step, strict=True)]


def _pad_nest(command: Command) -> LoopNest:
    if not isinstance(command, InlinedCommand):
        command = with_merged_axes(command)
    low, _, interior, value = command.attributes
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    source = _spaced(at, low, [k + 1 for k in interior])
    nest.store(0, nest.load(0, *source, fill=value), *at)
    return nest.build()


def _pad_vjp(F: Namespace[V], g: V, y: V, x: V, low: Dims, high: Dims, interior: Sequence[int],
             value: float) -> tuple[V | None, ...]:
    stop = tuple(a + ((n - 1) * (k + 1) + 1 if n != 0 else 0) for a, n, k in zip(low, x.shape, interior, strict=True))
    return (F.slice(g, start=low, stop=stop, step=tuple(k + 1 for k in interior)),)


def _slice_vjp(F: Namespace[V], g: V, y: V, x: V, start: Dims, stop: Dims, step: Sequence[int]) -> tuple[V | None, ...]:
    high = tuple(n - a - ((m - 1) * k + 1 if m != 0 else 0)
                 for n, a, m, k in zip(x.shape, start, g.shape, step, strict=True))
    return (F.pad(g, low=start, high=high, interior=tuple(k - 1 for k in step)),)


def _concat_nest(command: Command) -> LoopNest:
    """Each position belongs to the input before whose end it lies first."""
    (axis,) = command.attributes
    assert isinstance(axis, int)
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    begin, value = 0, None
    for k, x in enumerate(command.inputs):
        source = [(i - begin).guarded() if d == axis else i for d, i in enumerate(at)]
        mine = nest.load(k, *source)
        value = mine if value is None else nest.valid(k, *source).select(mine, value)
        begin += x.shape[axis]
    assert value is not None
    nest.store(0, value, *at)
    return nest.build()


def _concat_vjp(F: Namespace[V], g: V, y: V, *arguments: Any) -> tuple[Any, ...]:
    *xs, axis = arguments
    parts, begin = [], 0
    ones = (1,) * len(g.shape)
    for x in xs:
        end = x.shape[axis] + begin
        start = tuple(begin if d == axis else 0 for d in range(len(g.shape)))
        stop = tuple(end if d == axis else n for d, n in enumerate(g.shape))
        parts.append(F.slice(g, start=start, stop=stop, step=ones))
        begin = end
    return tuple(parts)


def _update_slice(x: Any, value: Any, start: Any, step: Any) -> Any:
    out = np.array(x)
    out[_inner(start, tuple(k - 1 for k in step), value.shape)] = value
    return out


def _update_slice_nest(command: Command) -> LoopNest:
    start, step = command.attributes
    nest = open_nest(command)
    at = nest.outer(*command.output.shape)
    source = _spaced(at, start, step)
    nest.store(0, nest.valid(1, *source).select(nest.load(1, *source), nest.load(0, *at)), *at)
    return nest.build()


def _update_slice_vjp(F: Namespace[V], g: Any, y: V, x: V, value: V, start: Dims, step: Any) -> tuple[V | None, ...]:
    stop = tuple(a + ((n - 1) * k + 1 if n != 0 else 0) for a, n, k in zip(start, value.shape, step, strict=True))
    nothing = F.zeros_like(value)
    return F.update_slice(g, nothing, start=start, step=step), F.slice(g, start=start, stop=stop, step=step)


class Movement(Base[V], Generic[V]):
    """Shapes may hold named dimensions."""

    @op(infer=rule.reshape, reference=np.reshape, view=_reshape_view, nest=_reshape_nest, exact=True, storage=True,
        linear="jointly", source=_reshape_source,
        vjp=lambda F, g, y, x, shape: (F.reshape(g, shape=x.shape),))
    def reshape(self, x: V, *, shape: Dims) -> V:
        """The elements in C order under another shape."""
        ...

    @op(infer=rule.permute, reference=np.transpose, view=_permute_view, exact=True, storage=True, linear="jointly",
        source=_permute_source,
        nest=lambda c: _copy_nest(c, _permute_view(c.inputs[0], *c.attributes)),
        vjp=lambda F, g, y, x, axes: (F.permute(g, axes=tuple(int(i) for i in np.argsort(axes))),))
    def permute(self, x: V, *, axes: tuple[int, ...]) -> V:
        """Axis i of the result is axis axes[i]."""
        ...

    @op(infer=rule.broadcast_to, reference=np.broadcast_to, view=broadcast_layout, exact=True, storage=True,
        linear="jointly",
        source=lambda at, x, shape: narrowed(at, x),
        nest=lambda c: _copy_nest(c, broadcast_layout(c.inputs[0], *c.attributes)),
        vjp=lambda F, g, y, x, shape: (F.sum_to(g, x.shape),))
    def broadcast_to(self, x: V, *, shape: Dims) -> V: ...

    @op(infer=rule.slice_, reference=lambda x, start, stop, step: x[_slices(start, stop, step)], view=_slice_view,
        source=_slice_source,
        nest=lambda c: _copy_nest(c, _slice_view(c.inputs[0], *c.attributes)),
        exact=True, storage=True, linear="jointly", vjp=_slice_vjp)
    def slice(self, x: V, *, start: Dims, stop: Dims, step: tuple[int, ...]) -> V:
        """One range for each axis, with positive steps."""
        ...

    @op(infer=rule.pad, reference=_pad, nest=_pad_nest, exact=True, storage=True, vjp=_pad_vjp,
        jvp=lambda F, t, y, x, low, high, interior, value: F.pad(t[0], low=low, high=high, interior=interior))
    def pad(self, x: V, *, low: Dims, high: Dims, interior: tuple[int, ...], value: float = 0.0) -> V:
        """`low` elements before, `high` after and `interior` between neighbours, for each axis."""
        ...

    @op(infer=rule.flip, reference=np.flip, nest=_flip_nest, exact=True, storage=True, linear="jointly",
        vjp=lambda F, g, y, x, axes: (F.flip(g, axes=axes),))
    def flip(self, x: V, *, axes: tuple[int, ...]) -> V:
        """The order of elements reversed along axes."""
        ...

    @op(infer=rule.concat, reference=lambda *a: np.concatenate(a[:-1], a[-1]), nest=_concat_nest, promote=ALL_INPUTS,
        exact=True, storage=True, linear="jointly", vjp=_concat_vjp)
    def concat(self, *xs: V, axis: int) -> V:
        """One after another along an axis."""
        ...

    @op(infer=rule.update_slice, reference=_update_slice, nest=_update_slice_nest, exact=True, storage=True,
        linear="jointly",
        promote=ALL_INPUTS, inplace=(0,), vjp=_update_slice_vjp)
    def update_slice(self, x: V, value: V, *, start: Dims, step: tuple[int, ...]) -> V:
        """x with the elements from `start` in steps of `step` replaced by `value`."""
        ...
