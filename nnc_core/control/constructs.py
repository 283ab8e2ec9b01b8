"""Loops and branches by data: run by Python where operations run now, nodes with bodies where they are recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nnc_core.base.dtype import int64
from nnc_core.base.errors import OperandError, OutOfRangeError, ShapeError
from nnc_core.control.alike import alike, as_tuple, check_takes, functions, given_tuple, length_of, on_one_device
from nnc_core.control.body import (
    BodyCaptures,
    TracedBody,
    has_effects,
    keep_effects,
    no_counts,
    no_writes,
    results_like,
    stack_among,
    tensors,
    values_of,
)
from nnc_core.stacks import Stack
from nnc_core.symbol import show_line, user_line
from nnc_core.type import Dim, DimLike, TensorSpec
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.dispatch import F
from nnc_core.values.modes import current_stack, deferred, lazy, use_device
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import LEAF, Structure
from nnc_core.values.value import Value


def _recorded(values: Sequence[Value]) -> bool:
    return bool(lazy.get()) or any(v.trace is not None for v in values)


def _stack_of(values: Sequence[Value]) -> Stack:
    return values[0].stack if values else current_stack()


# ---- while
@located
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], carried: Sequence[Any]) -> tuple[Any, ...]:
    """Replace the carried values by body(*carried) for as long as cond(*carried) holds; gives the last ones.

    `carried` is a tuple of tensors, numbers or trees of such; the body gives a tuple alike, with the same shapes and
    dtypes, and the condition a boolean scalar.  Gradients go through by reverse and forward mode, to any order.
    """
    functions(cond=cond, body=body)
    given = given_tuple(carried, "carried")
    values, structure = values_of(given)
    on_one_device("carried", values)
    try:
        run = _while_recorded if _recorded(values) else _while_now
        return run(cond, body, values, structure)
    except TypeError:
        check_takes("the condition", cond, given)
        check_takes("the body", body, given)
        raise


def _while_recorded(cond: Callable[..., Any], body: Callable[..., Any], values: list[Value],
                    structure: Structure) -> tuple[Any, ...]:
    stack, specs, n = _stack_of(values), [v.spec for v in values], len(values)
    with use_device(stack):
        test = TracedBody(cond, "the condition", values, specs, lambda ts: _arranged(structure, ts))
        no_writes(test, "the condition")
        step = TracedBody(body, "the body", values, specs, lambda ts: _arranged(structure, ts))
        answer, after = _condition(test.result, stack), _next(step.result, specs, structure, stack)
        moving = step.written
        new = [*after, *[step.trace.now[c] for c in moving]]
        no_counts(test, [answer])
        no_counts(step, new)
        around = BodyCaptures([test, step], [[answer], new], moving)
        first = [*values, *[step.trace.outer(c) for c in moving]]
        own = [*step.symbols, *[step.trace.cells[c] for c in moving]]
        in_test = [[s, *([test.trace.cells[c]] if c in test.trace.cells else [])] for s, c in
                   zip([*test.symbols, *own[n:]], [*[None] * n, *moving], strict=True)]
        loop = F.loop(first, (), around.operands(),
                      body=step.body(stack, new, [*[[s] for s in own], *around.inputs(1)]),
                      cond=test.body(stack, [answer], [*in_test, *around.inputs(0)]))
        results = F.picks(loop)
        keep_effects([test, step], results)
    _write_cells(moving, results[n:])
    return tensors(structure, results[:n])  # type: ignore[no-any-return]


def _arranged(structure: Structure, ts: list[Tensor]) -> tuple[Any, ...]:
    return tensors(structure, [t._value for t in ts])  # type: ignore[no-any-return]


def _while_now(cond: Callable[..., Any], body: Callable[..., Any], values: list[Value],
               structure: Structure) -> tuple[Any, ...]:
    specs, stack = [v.spec for v in values], _stack_of(values)
    while bool(Tensor(_condition(cond(*tensors(structure, values)), stack))):
        values = _next(body(*tensors(structure, values)), specs, structure, stack)
    return tensors(structure, values)  # type: ignore[no-any-return]


def _condition(result: Any, stack: Stack | None) -> Value:
    answers, structure = values_of(result, stack)
    if structure != LEAF:
        raise OperandError(f"the condition gives {type(result).__name__}, not a boolean scalar")
    if answers[0].shape != () or answers[0].dtype.kind != "b":
        raise ShapeError(f"the condition gives {answers[0].spec}, not a boolean scalar",
                         hint="compare, and reduce with nnc.all or nnc.any")
    return answers[0]


def _next(result: Any, specs: Sequence[TensorSpec], structure: Structure, stack: Stack) -> list[Value]:
    after = results_like(as_tuple(result, "the body"), specs, structure, stack, "the body")
    alike("what the body carries on", specs, after, stack)
    return after


def _write_cells(cells: Sequence[Cell], values: Sequence[Value]) -> None:
    for cell, v in zip(cells, values, strict=True):
        cell.write(Tensor(v))


# ---- branches
@located
def case_of(index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any] = (),
            replacement: Sequence[Any] | None = None) -> tuple[Any, ...]:
    """The tuple that branch number `index` gives for the operands.

    An index that no branch has gives the `replacement`, which has the same structure; without one it is an error.
    All branches give the same structure, shapes and dtypes.
    """
    given = given_tuple(operands, "operands")
    functions(**{f"branch {i}": f for i, f in enumerate(branches)})
    others: list[Callable[..., Any]] = []
    if replacement is not None:
        instead = given_tuple(replacement, "replacement")
        others = [lambda *_: instead]
    return _branches(index, [*branches, *others], given, bool(others), True)  # type: ignore[no-any-return]


@located
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """true_fn(*operands) if the boolean scalar `pred` holds, else false_fn(*operands); both give alike trees."""
    functions(true_fn=true_fn, false_fn=false_fn)
    p = _condition(pred, stack_among(pred, operands))
    index = F.cast(F.logical_not(p), dtype=int64)
    return _branches(Tensor(index), [true_fn, false_fn], operands, False, False)


def _branches(index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...], otherwise: bool,
              tuples: bool) -> Any:
    if not branches:
        raise OperandError("there is no branch to choose", hint="give at least one function")
    number = _number_of(index, stack_among(index, operands))
    stack = number.stack
    values, structure = values_of(operands, stack)
    on_one_device("the index and the operands", [number, *values])
    names = [f"branch {i}" for i in range(len(branches) - otherwise)] + ["the replacement"] * otherwise
    if not _recorded([number, *values]):
        return _branch_now(int(Tensor(number)), branches, tensors(structure, values), otherwise, tuples)
    specs = [v.spec for v in values]
    with use_device(stack):
        traced = [TracedBody(f, name, values, specs, lambda ts: _arranged(structure, ts))
                  for f, name in zip(branches, names, strict=True)]
        moving = list(dict.fromkeys(c for t in traced for c in t.written))
        first, made = _result_of(traced[0], stack, tuples)
        wanted = [v.spec for v in first]
        outputs = [_outputs(t, name, wanted, made, moving, stack) for t, name in zip(traced, names, strict=True)]
        around = BodyCaptures(traced, outputs)
        bodies = tuple([t.body(stack, ys, [*[[s] for s in t.symbols], *around.inputs(i)], has_effects(traced))
                        for i, (t, ys) in enumerate(zip(traced, outputs, strict=True))])
        node = F.case_of(F.cast(number, dtype=int64), [*values, *around.operands()], branches=bodies,
                         otherwise=otherwise)
        results = F.picks(node)
        keep_effects(traced, results)
    _write_cells(moving, results[len(first) : len(first) + len(moving)])
    return tensors(made, results[: len(first)])


def _number_of(index: Any, stack: Stack | None) -> Value:
    """The index as an integer scalar."""
    numbers, of_index = values_of(index, stack)
    if of_index != LEAF:
        raise OperandError(f"the index is {type(index).__name__}, not an integer scalar")
    (number,) = numbers
    if number.shape != () or number.dtype.kind not in "iu":
        raise ShapeError(f"the index is {number.spec}, not an integer scalar", hint="nnc.cond chooses by a boolean")
    return number


def _outputs(traced: TracedBody, name: str, wanted: Sequence[TensorSpec], structure: Structure,
             moving: Sequence[Cell], stack: Stack) -> list[Value]:
    """The results of a branch, which are like those of the first, and the values of all cells that some branch
    writes."""
    found = results_like(traced.result, wanted, structure, stack, name)
    alike(f"what {name} gives, beside branch 0", wanted, found, stack,
          "all branches give the same shapes; reshape, pad or broadcast it")
    outputs = [*found, *[traced.trace.now.get(c) or traced.trace.outer(c) for c in moving]]
    no_counts(traced, outputs)
    return outputs


def _result_of(traced: TracedBody, stack: Stack, tuples: bool) -> tuple[list[Value], Structure]:
    if tuples:
        as_tuple(traced.result, traced.trace.name)
    return values_of(traced.result, stack)


def _branch_now(number: int, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...], otherwise: bool,
                tuples: bool) -> Any:
    if not 0 <= number < len(branches) - otherwise:
        if not otherwise:
            raise OutOfRangeError(f"there is no branch {number} among {len(branches)}", operator="case_of",
                                  line=show_line(user_line()), hint="give replacements for when no branch runs")
        number = len(branches) - 1
    result = branches[number](*operands)
    found, structure = values_of(as_tuple(result, f"branch {number}") if tuples else result)
    return tensors(structure, found)


# ---- along an axis
@located
def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: DimLike | None = None,
         reverse: bool = False) -> tuple[Any, Any]:
    """Carry `init` along the first axis of the trees of tensors `xs`: carry, y = f(carry, x) for each x in turn.

    Gives the last carry and the ys stacked along a new first axis.  Without xs, `length` says how often f runs, with
    x None.  `reverse` goes from the last x to the first; the ys keep the places of their xs.
    """
    return _scan(f, init, xs, length, reverse)


def _scan(f: Callable[..., Any], init: Any, xs: Any, length: DimLike | None = None,
          reverse: bool = False) -> tuple[Any, Any]:
    functions(f=f)
    there = stack_among(init, xs)
    carry, carry_tree = values_of(init, there)
    rows, rows_tree = values_of(xs, there)
    on_one_device("what is carried and gone over", [*carry, *rows])
    stack = _stack_of([*carry, *rows])
    count = length_of(rows, length)
    if not _recorded([*carry, *rows]) and not isinstance(count, Dim) and count != 0:
        return _scan_now(f, carry, carry_tree, rows, rows_tree, count, reverse)
    if not lazy.get() and not _recorded([*carry, *rows]):
        with deferred():  # nothing runs yet, but somebody has to say what the ys would be
            return _scan(f, init, xs, length, reverse)
    return _scan_recorded(f, (carry, carry_tree), (rows, rows_tree), count, reverse, stack)


def _scan_recorded(f: Callable[..., Any], init: tuple[list[Value], Structure], xs: tuple[list[Value], Structure],
                   length: Any, reverse: bool, stack: Stack) -> tuple[Any, Any]:
    (carry, carry_tree), (rows, rows_tree) = init, xs
    n, specs = len(carry), [v.spec for v in carry]
    row_specs = [TensorSpec(v.shape[1:], v.dtype) for v in rows]
    with use_device(stack):
        step = TracedBody(f, "the body", [*carry, *rows], [*specs, *row_specs],
                          lambda ts: (_arranged(carry_tree, ts[:n]), _arranged(rows_tree, ts[n:])))
        after, (ys, ys_tree) = _carry_and_y(step.result, specs, carry_tree, stack)
        moving = step.written
        outputs = [*after, *[step.trace.now[c] for c in moving], *ys]
        no_counts(step, outputs)
        around = BodyCaptures([step], [outputs], moving)
        own = [*step.symbols[:n], *[step.trace.cells[c] for c in moving], *step.symbols[n:]]
        loop = F.loop([*carry, *[step.trace.outer(c) for c in moving]], rows, around.operands(),
                      body=step.body(stack, outputs, [*[[s] for s in own], *around.inputs(0)], has_effects([step])),
                      length=length, reverse=reverse)
        results = F.picks(loop)
        keep_effects([step], results)
    m = n + len(moving)
    _write_cells(moving, results[n:m])
    return tensors(carry_tree, results[:n]), tensors(ys_tree, results[m:])


def _carry_and_y(result: Any, specs: Sequence[TensorSpec], tree: Structure,
                 stack: Stack) -> tuple[list[Value], tuple[list[Value], Structure]]:
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise OperandError(f"the body gives {type(result).__name__}, not a pair (carry, y)",
                           hint="return (carry, None) if there is nothing to stack")
    after = results_like(result[0], specs, tree, stack, "the carry of the body")
    alike("what the body carries on", specs, after, stack)
    return after, values_of(result[1], stack)


def _scan_now(f: Callable[..., Any], carry: list[Value], carry_tree: Structure, rows: list[Value],
              rows_tree: Structure, length: int, reverse: bool) -> tuple[Any, Any]:
    specs, stack = [v.spec for v in carry], _stack_of([*carry, *rows])
    gathered: list[list[Value]] = []
    tree = Structure(type(None))
    for i in reversed(range(length)) if reverse else range(length):
        x = tensors(rows_tree, [(Tensor(v)[i])._value for v in rows])
        carry, (ys, tree) = _carry_and_y(f(tensors(carry_tree, carry), x), specs, carry_tree, stack)
        if gathered:
            alike("what the body stacks up", [v.spec for v in gathered[0]], ys, gathered[0][0].stack if ys else stack,
                   "what is stacked up has one shape; reshape, pad or broadcast it")
        gathered.append(ys)
    if reverse:
        gathered.reverse()
    return tensors(carry_tree, carry), tensors(tree, [_stacked(parts) for parts in zip(*gathered, strict=True)])


def _stacked(parts: Sequence[Value]) -> Value:
    return F.concat(*[F.reshape(v, shape=(1, *v.shape)) for v in parts], axis=0)


@located
def foreach(f: Callable[..., Any], xs: Any, states: Any) -> tuple[Any, Any]:
    """out, states = f(x, states) for each x along the first axis of xs; gives the stacked outs and the last states."""

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        result = f(x, carry)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise OperandError(f"the body gives {type(result).__name__}, not a pair (out, states)",
                               hint="return (None, states) if there is nothing to stack")
        return result[1], result[0]

    functions(f=f)
    last, outs = _scan(body, states, xs)
    return outs, last


@located
def map(f: Callable[..., Any], xs: Any) -> Any:
    """f of each x along the first axis of the trees of tensors xs, stacked."""
    functions(f=f)
    return rows_mapped(f, xs)


def rows_mapped(f: Callable[..., Any], xs: Any) -> Any:
    """Implements `map`; errors are the caller's."""
    return _scan(lambda _, x: (None, f(x)), None, xs)[1]

