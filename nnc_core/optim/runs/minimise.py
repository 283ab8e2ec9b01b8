"""Owl's runs: minimise a function, the weights of a model, or a network.

Messages of a verbose run go to the logger "nnc_core.optim" at level INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, TypeAlias

from nnc_core.base.errors import NonfiniteError, StateError
from nnc_core.functions.creation import asarray
from nnc_core.functions.indexing import take
from nnc_core.optim.owl.params import Params
from nnc_core.optim.runs.objective import Objective, TrainableNetwork, loss_of, regularised
from nnc_core.optim.runs.progress import Progress
from nnc_core.optim.runs.rows import count_rows, uploaded
from nnc_core.optim.runs.rules import Report, Rules, log
from nnc_core.optim.runs.training import make_descent
from nnc_core.tracing.jit import jit
from nnc_core.values.arguments import located
from nnc_core.values.cell import Cell
from nnc_core.values.modes import evaluating, no_grad, step_by_step
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten, tree_map, unflatten

_log = logging.getLogger("nnc_core.optim")
Validation: TypeAlias = tuple[Any, Any] | Callable[[], float]
"""Other data (x, y), or a function that measures the loss on such."""


@located
def minimise_fun(params: Params, f: Callable[[Any], Tensor], x: Any, *, state: Progress | None = None,
                 report: Report | None = None) -> tuple[Progress, Any]:
    """Minimise the scalar function f from x on, a tensor or a nested structure of such: (progress, the last x).

    An epoch is one update.  `batch` and `loss` are not used.  With the `state` of an earlier run it goes on from
    there, and x must be what that one gave.
    """
    tensors, structure = flatten(x)
    cells = _cells(tensors, state)

    def whole(weights: Mapping[str, Tensor]) -> Any:
        return unflatten(structure, iter([weights[name] for name in cells]))

    loss = regularised(lambda weights: f(whole(weights)), params)
    progress = _run(params, loss, cells, None, state, _rules(params, None, report))
    return progress, whole({name: cell.read() for name, cell in cells.items()})


@located
def minimise_weight(params: Params, f: Callable[[Any, Any], Any], w: Any, x: Any, y: Any, *,
                    state: Progress | None = None, validation: Validation | None = None,
                    report: Report | None = None) -> tuple[Progress, Any]:
    """Minimise loss(y, f(w, x)) by w, a tensor or a nested structure of such: (progress, the last w).

    x and y have as many rows as each other, of which each update sees a batch; the loss is that of the batch, as
    `params.loss` has it.  `validation` is other (x, y), for stopping.Early.
    """
    tensors, structure = flatten(w)
    cells = _cells(tensors, state)

    def whole(weights: Mapping[str, Tensor]) -> Any:
        return unflatten(structure, iter([weights[name] for name in cells]))

    def plain(weights: dict[str, Tensor], xs: Any, ys: Any) -> Tensor:
        scalar: Tensor = params.loss(ys, f(whole(weights), xs))
        return scalar

    rules = _rules(params, _validator(params, plain, cells, validation), report)
    progress = _run(params, regularised(plain, params), cells, (x, y), state, rules)
    return progress, whole({name: cell.read() for name, cell in cells.items()})


@located
def train(network: TrainableNetwork, params: Params, x: Any, y: Any, *, state: Progress | None = None,
          validation: Validation | None = None, report: Report | None = None) -> Progress:
    """Train a network on the rows of x and y, in place: how it went.

    x and y are arrays, or structures of arrays; a tuple x is the inputs of a network that has several.  The loss of a
    batch is that of `params.loss` divided by its rows, plus regularisation of all parameters.  `validation` is other
    (x, y), or a function such as `lambda: optim.evaluate(...)`, on which the network is evaluated after each epoch.
    With the `state` of an earlier run, or of a file (`nnc_core.io.TrainingFile`), it goes on from there.
    """
    cells = dict(network.named_parameters())
    plain = loss_of(network, params.loss)
    rules = _rules(params, _validator(params, plain, cells, validation), report)
    return _run(params, regularised(plain, params), cells, (x, y), state, rules)


@located
def minimise_network(params: Params, network: TrainableNetwork, x: Any, y: Any, *, state: Progress | None = None,
                     validation: Validation | None = None, report: Report | None = None) -> Progress:
    """`train`, as Owl's Optimise calls it."""
    return train(network, params, x, y, state=state, validation=validation, report=report)


# ---- what a run starts from
def _cells(tensors: list[Any], state: Progress | None) -> dict[str, Cell]:
    """Cells that hold these tensors; those of the minimiser that goes on, if one does."""
    first = [asarray(t).detach() for t in tensors]
    if state is None or state.minimiser is None:
        return {str(i): Cell(t, f"x{i}") for i, t in enumerate(first)}
    cells = state.minimiser.parameters
    if len(cells) != len(first):
        raise StateError(f"the run had {len(cells)} tensors, there are {len(first)} now")
    for cell, t in zip(cells.values(), first, strict=True):
        cell.write(t)
    return cells


def _rules(params: Params, validate: Callable[[], float] | None, report: Report | None) -> Rules:
    shown = log if report is None and params.verbosity else report
    return Rules(params.stopping, params.checkpoint, validate, shown)


def _validator(params: Params, loss: Objective, cells: Mapping[str, Cell],
               validation: Validation | None) -> Callable[[], float] | None:
    """A function that measures the loss on validation data, if there are some."""
    if validation is None or callable(validation):
        return validation
    x, y = uploaded(tuple(validation), _device(cells))
    count_rows(x, y)

    def measure(xs: Any, ys: Any) -> Tensor:
        return loss({name: cell.read() for name, cell in cells.items()}, xs, ys)

    run = jit(measure) if params.compiled else measure

    def validate() -> float:
        with evaluating(), no_grad():
            return float(run(x, y))

    return validate


def _started(params: Params, cells: Mapping[str, Cell], batches_per_epoch: int, state: Progress | None) -> Progress:
    if state is None:
        if params.verbosity:
            _log.info("%s", params)
        state = Progress(params.minimiser(cells), batches_per_epoch)
    elif state.batches_per_epoch != batches_per_epoch:
        raise StateError(f"the run had {state.batches_per_epoch} batches an epoch, it now has {batches_per_epoch}",
                         hint="go on with the same data and batches")
    elif state.minimiser is None or any(state.minimiser.parameters.get(k) is not c for k, c in cells.items()):
        raise StateError("the state is that of a run with other parameters", hint="give the network of that run")
    state.begin(int(batches_per_epoch * params.epochs))
    return state


# ---- the run
def _run(params: Params, loss: Callable[..., Tensor], cells: Mapping[str, Cell], data: tuple[Any, Any] | None,
         state: Progress | None, rules: Rules) -> Progress:
    """Update until the last batch, or until a rule or a checkpoint says stop."""
    arrays = () if data is None else tuple(uploaded(part, _device(cells)) for part in data)
    count = count_rows(*arrays) if arrays else 0
    progress = _started(params, cells, params.batch.batches(count) if arrays else 1, state)
    assert progress.minimiser is not None
    step = make_descent(_on_rows(loss) if arrays else loss, progress.minimiser, eager=not params.compiled)
    while progress.goes_on:
        rows = params.batch.rows(progress.batch, count) if arrays else None
        batch = arrays if rows is None else (*arrays, asarray(rows, device=_device(cells)))
        with step_by_step():
            loss_before = step(*batch)
        progress.note(loss_before)
        if params.nonfinite == "error":
            _check_finite(progress)
        rules.apply(progress)
    if params.verbosity:
        _log.info("--- training summary: %d batches in %.1f s%s", progress.batch, progress.seconds,
                  f", stopped: {progress.reason}" if progress.reason else "")
    return progress


def _on_rows(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def on_rows(weights: dict[str, Tensor], xs: Any, ys: Any, rows: Tensor | None = None) -> Tensor:
        if rows is not None:
            xs, ys = tree_map(lambda x: take(x, rows, axis=0), (xs, ys))
        return loss(weights, xs, ys)

    return on_rows


def _check_finite(progress: Progress) -> None:
    loss = progress.losses[-1]
    if not isfinite(loss):
        raise NonfiniteError(f"the loss of batch {progress.batch} is {loss}", operator="minimise",
                             hint='a smaller learning rate, clipping, or nonfinite="skip"; config.check_nan finds '
                                  'where numbers are lost')


def _device(cells: Mapping[str, Cell]) -> Any:
    return next(iter(cells.values())).device
