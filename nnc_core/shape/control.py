"""Specs of control flow: what goes into bodies, and what comes out of the nodes that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nnc_core.base.dtype import boolean, is_integer
from nnc_core.base.errors import DTypeError, ShapeError
from nnc_core.type import DimLike, TensorSpec, TupleSpec


def pick(x: TensorSpec, index: int) -> TensorSpec:
    if not isinstance(x, TupleSpec):
        raise ShapeError(f"{x} is one array, not a tuple of results")
    if not 0 <= index < len(x.parts):
        raise ShapeError(f"{x} has no result {index}")
    return x.parts[index]


def together(*x: TensorSpec) -> TupleSpec:
    return TupleSpec(x)


def _fits(what: str, wanted: Sequence[TensorSpec], found: Sequence[TensorSpec]) -> None:
    if len(wanted) != len(found):
        raise ShapeError(f"{what}: {len(found)} values where {len(wanted)} are needed")
    for i, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if a.dtype != b.dtype:
            raise DTypeError(f"{what}: value {i} is {b}, it should be {a}", hint="cast it with astype")
        if a.shape != b.shape:
            raise ShapeError(f"{what}: value {i} is {b}, it should be {a}",
                             hint="what a loop carries keeps its shape; reshape, pad or broadcast it first")


def _is_condition(spec: TensorSpec) -> None:
    if spec.shape != () or spec.dtype != boolean:
        raise ShapeError(f"the condition is {spec}, not a boolean scalar", hint="reduce it with nnc.all or nnc.any")


def row(x: TensorSpec, length: DimLike) -> TensorSpec:
    """One step's part of something scanned over."""
    if not x.shape or x.shape[0] != length:
        raise ShapeError(f"{x} has no first axis of length {length} to go over")
    return TensorSpec(x.shape[1:], x.dtype)


def _specs(nodes: Any) -> list[TensorSpec]:
    return [n.spec for n in nodes]


def loop(*arguments: Any) -> TupleSpec:
    *inputs, cond, body, length, carried, scanned, _ = arguments
    if min(carried, scanned) < 0 or carried + scanned > len(inputs) or carried > len(body.outputs):
        raise ShapeError(f"{len(inputs)} inputs and {len(body.outputs)} results of the body, of which {carried} should "
                         f"be carried and {scanned} scanned over")
    first, over, captured = inputs[:carried], inputs[carried : carried + scanned], inputs[carried + scanned :]
    rows = [row(x, length) for x in over]
    _fits("the body's inputs", _specs(body.inputs), [*first, *rows, *captured])
    _fits("what the body carries on", first, _specs(body.outputs[:carried]))
    if cond is not None:
        _fits("the condition's inputs", _specs(cond.inputs), [*first, *captured])
        _is_condition(cond.outputs[0].spec)
    stacked = [TensorSpec((length, *y.shape), y.dtype) for y in _specs(body.outputs[carried:])]
    return TupleSpec((*first, *stacked))


def case_of(index: TensorSpec, *arguments: Any) -> TupleSpec:
    *operands, branches, _ = arguments
    if index.shape != () or not is_integer(index.dtype):
        raise ShapeError(f"the index is {index}, not an integer scalar")
    results = _specs(branches[0].outputs)
    for i, branch in enumerate(branches):
        _fits(f"the inputs of branch {i}", _specs(branch.inputs), operands)
        _fits(f"the results of branch {i}, compared with those of branch 0", results, _specs(branch.outputs))
    return TupleSpec(tuple(results))


def call(*arguments: Any) -> TupleSpec:
    *inputs, body, _ = arguments
    _fits("the arguments of a call", _specs(body.inputs), inputs)
    return TupleSpec(tuple(_specs(body.outputs)))
