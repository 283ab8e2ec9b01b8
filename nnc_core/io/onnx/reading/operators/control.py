"""Branches and loops: by Python where it knows what happens, else by nnc's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial, reduce
from typing import Any, cast

import numpy as np

from nnc_core.base.errors import NotSupportedError, ShapeError
from nnc_core.control.constructs import cond as branch
from nnc_core.control.constructs import scan as carry
from nnc_core.control.constructs import while_loop
from nnc_core.functions import public as nnc
from nnc_core.io.onnx.reading.graph import OnnxGraph
from nnc_core.io.onnx.reading.lanes import Host, Known, Lane, as_element, element_of, has_dims, is_host
from nnc_core.io.onnx.reading.registry import operator
from nnc_core.io.onnx.reading.run import NodeCall
from nnc_core.type import DimLike
from nnc_core.values.modes import deferred
from nnc_core.values.tensor import Tensor


@operator("If")
def choose(condition: Known, *, then_branch: OnnxGraph, else_branch: OnnxGraph, call: NodeCall) -> tuple[Lane, ...]:
    if not _is_symbol(condition):
        return tuple(call.graph(then_branch if bool(condition) else else_branch))

    # What branches read is given to them: what they compute of it is theirs then, and only one of them runs.
    names = [n for n in dict.fromkeys((*then_branch.free, *else_branch.free)) if _is_symbol(call.scope.get(n))]

    def results(graph: OnnxGraph, *given: Tensor) -> Any:
        return tuple(_tensors(call, value) for value in call.graph(graph, around=dict(zip(names, given, strict=True))))

    return tuple(branch(nnc.reshape(condition, ()), partial(results, then_branch), partial(results, else_branch),
                        *map(call.scope.get, names)))


def _is_symbol(value: Lane) -> bool:
    return isinstance(value, Tensor) and value.is_symbol


def _tensors(call: NodeCall, value: Lane) -> Any:
    return [_tensors(call, x) for x in value] if isinstance(value, list) else call.tensor(value)


# ---- Loop
UNROLLED = 8
"""Rounds up to which a loop is written out in compiled code."""
ENDLESS = np.asarray(np.iinfo(np.int64).max)
TRUE = np.asarray(True)
ZERO = np.asarray(0, np.int64)


@operator("Loop")
def loop(trips: Known = None, condition: Known = None, *carried: Any, body: OnnxGraph,
         call: NodeCall) -> tuple[Lane, ...]:
    """Rounds as long as both allow; the condition that the body gives counts unless there is none at the start."""
    ends = condition is not None or trips is None
    endless = not ends or never_ends(body)
    limit, holds = (ENDLESS if trips is None else trips), (TRUE if condition is None else condition)
    stays = call.run.keeps_loops and any(map(_is_symbol, (*carried, *map(call.scope.get, body.free))))
    if not (stays or _is_symbol(limit) or has_dims(limit) or _is_symbol(holds)):
        found = _in_python(_number(limit) if bool(holds) else 0, endless, carried, body, call)
        if found is not None:
            return found
    counted = trips is not None and not _is_symbol(trips) and endless and not _is_symbol(holds) and bool(holds)
    # Nothing that is carried may say that this is a graph.
    with deferred() if stays or has_dims(limit) else nullcontext():
        if counted:
            rounds: DimLike = limit.reshape(())[()] if has_dims(limit) else _number(limit)  # type: ignore[assignment]
            return _scanned(rounds, carried, body, call)
        return _repeated(trips, holds if ends else None, carried, body, call)


def _number(limit: Lane) -> int:
    return min(int(limit.reshape(())), int(ENDLESS))


def _in_python(rounds: int, endless: bool, carried: Sequence[Lane], body: OnnxGraph,
               call: NodeCall) -> tuple[Lane, ...] | None:
    """At most so many rounds, one after another, or None where only a call will know how many."""
    if endless and rounds == int(ENDLESS):
        raise NotSupportedError("a loop without an end: it has neither a number of rounds nor a condition")
    if endless and _can_scan(rounds, carried):
        try:
            return _scanned(rounds, carried, body, call)
        except ShapeError:  # what is carried grows: every round is another
            pass
    return _unrolled(rounds, endless, list(carried), body, call)


def _can_scan(rounds: int, carried: Sequence[Lane]) -> bool:
    """True for a long loop in a trace that carries tensors alone."""
    return (UNROLLED < rounds < int(ENDLESS)
            and any(_is_symbol(x) for x in carried) and all(isinstance(x, Tensor) or is_host(x) for x in carried))


def never_ends(body: OnnxGraph) -> bool:
    """Tell whether the condition that a body gives is the one that it was given, or true."""
    name = body.outputs[0].name
    makers = {output: step for step in body.steps for output in step.outputs}
    while name in makers and makers[name].operator.name in ("Identity", "Cast"):
        name = makers[name].inputs[0]
    if name in makers and makers[name].operator.name == "Constant":
        return bool(np.all(makers[name].attributes.get("value", False)))
    known = body.initialisers.get(name)
    return name == body.inputs[1].name if known is None else bool(np.all(known))


def _unrolled(rounds: int, endless: bool, carried: list[Lane], body: OnnxGraph,
              call: NodeCall) -> tuple[Lane, ...] | None:
    """The rounds one after another; unless `endless`, as many as the body's condition allows, or None where only a
    call will know that."""
    kept: list[list[Lane]] = [[] for _ in body.outputs[1 + len(carried):]]
    done, condition = 0, cast(Lane, TRUE)
    while done < rounds and (endless or bool(condition)):
        condition, *results = call.graph(body, np.asarray(done, np.int64), _as_given(condition), *carried)
        if _is_symbol(condition) and not endless:
            return None
        carried = results[: len(carried)]
        for rows, row in zip(kept, results[len(carried):], strict=True):
            rows.append(row)
        done += 1
    return (*carried, *(_stacked(rows, declared, call) for rows, declared in
                        zip(kept, body.outputs[1 + len(carried):], strict=True)))


EAGERLY = "call the model eagerly, without jit, hybridize or graph()"


def _as_given(condition: Lane) -> Lane:
    return condition if isinstance(condition, (Tensor, np.ndarray)) else np.asarray(condition)


def _stacked(rows: list[Lane], declared: Any, call: NodeCall) -> Lane:
    if rows and all(is_host(row) for row in rows):
        return as_element(np.stack(rows), element_of(rows[0]))
    if rows:
        return nnc.stack([call.tensor(row) for row in rows])
    shape = (0, *(n if isinstance(n, int) else 0 for n in declared.shape or ()))
    return nnc.zeros(shape, dtype=declared.dtype or np.float32, device=call.device)


def _scanned(rounds: DimLike, carried: Sequence[Lane], body: OnnxGraph, call: NodeCall) -> tuple[Lane, ...]:
    def one(state: Any, number: Any) -> Any:
        _, *results = call.graph(body, number, TRUE, *state)
        return tuple(map(call.tensor, results[: len(state)])), tuple(map(call.tensor, results[len(state):]))

    counts = body.reads(body.inputs[0].name) or not carried
    numbers = nnc.arange(rounds, dtype=np.int64, device=call.device) if counts else None
    last, rows = carry(one, tuple(map(call.tensor, carried)), numbers, length=rounds)
    return *last, *rows


def _repeated(trips: Lane, condition: Lane, carried: Sequence[Lane], body: OnnxGraph,
              call: NodeCall) -> tuple[Lane, ...]:
    """As often as values say that only a call computes.  The number of the round is carried where somebody asks for
    it, and the condition where there is one."""
    if len(body.outputs) > 1 + len(carried) or any(isinstance(x, list) for x in carried):
        raise NotSupportedError("a loop as long as only a call computes keeps a result of each round", hint=EAGERLY)
    limit = [nnc.reshape(call.tensor(x), ()) for x in (trips,) if x is not None]
    holds = [nnc.reshape(call.tensor(x), ()) for x in (condition,) if x is not None]
    counts = limit or body.reads(body.inputs[0].name)
    done = [nnc.zeros((), dtype=np.int64, device=call.device)] if counts else []
    begin, end = len(done), len(done) + len(carried)

    def parts(state: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        return state[:begin], state[begin:end], state[end:]

    def goes_on(*state: Any) -> Any:
        done, _, holds = parts(state)
        return reduce(nnc.logical_and, [*map(nnc.less, done, limit), *holds])

    def once(*state: Any) -> Any:
        done, values, holds = parts(state)
        condition, *results = call.graph(body, *(done or (ZERO,)), *(holds or (TRUE,)), *values)
        return (*[nnc.add(x, 1) for x in done], *map(call.tensor, results),
                *[nnc.reshape(call.tensor(condition), ()) for _ in holds])

    return tuple(parts(while_loop(goes_on, once, (*done, *map(call.tensor, carried), *holds)))[1])


# ---- Scan
@operator("Scan", since=9)
def scan(*given: Tensor, body: OnnxGraph, num_scan_inputs: int, scan_input_axes: tuple[int, ...] = (),
         scan_output_axes: tuple[int, ...] = (), scan_input_directions: tuple[int, ...] = (),
         scan_output_directions: tuple[int, ...] = (), call: NodeCall) -> tuple[Tensor, ...]:
    states, inputs = given[:-num_scan_inputs], given[-num_scan_inputs:]
    axes = scan_input_axes or (0,) * len(inputs)
    xs = [nnc.moveaxis(x, axis, 0) for x, axis in zip(inputs, axes, strict=True)]
    xs = [nnc.flip(x, axis=0) if back else x for x, back in _directed(xs, scan_input_directions)]

    def one(state: Any, row: Any) -> Any:
        results = tuple(map(call.tensor, call.graph(body, *state, *row)))
        return results[: len(state)], results[len(state):]

    last, rows = carry(one, tuple(states), tuple(xs))
    ys = [nnc.flip(y, axis=0) if back else y for y, back in _directed(rows, scan_output_directions)]
    places = scan_output_axes or (0,) * len(ys)
    return *last, *(nnc.moveaxis(y, 0, axis) for y, axis in zip(ys, places, strict=True))


def _directed(arrays: Sequence[Tensor], directions: tuple[int, ...]) -> list[tuple[Tensor, bool]]:
    return list(zip(arrays, map(bool, directions or (0,) * len(arrays)), strict=True))


@operator("Scan")
def scan_first(lengths: Host | None = None, *given: Tensor, body: OnnxGraph, num_scan_inputs: int,
               directions: tuple[int, ...] = (), call: NodeCall) -> tuple[Tensor, ...]:
    """Version 8: each example of a batch by itself, as long as `lengths` says."""
    examples = []
    for i in range(int(given[0].shape[0])):
        length = None if lengths is None else int(lengths[i])
        states, inputs = given[:-num_scan_inputs], given[-num_scan_inputs:]
        results = scan(*(x[i] for x in states), *(x[i, :length] for x in inputs), body=body,
                       num_scan_inputs=num_scan_inputs, scan_input_directions=directions, call=call)
        examples.append([_lengthened(y, x.shape[1]) if k >= len(states) else y
                         for k, y in enumerate(results) for x in inputs[:1]])
    return tuple(nnc.stack(list(parts)) for parts in zip(*examples, strict=True))


def _lengthened(y: Tensor, length: Any) -> Tensor:
    missing = int(length) - int(y.shape[0])
    return nnc.pad(y, [(0, missing)] + [(0, 0)] * (y.ndim - 1)) if missing else y
