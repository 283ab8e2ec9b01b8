"""Owl's runs: minimise a function, the weights of a model, or a network.

Messages of a verbose run go to the logger "nnc_core.optim" at level INFO.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Protocol

from nnc_core.base.errors import DataError, NonfiniteError, StateError
from nnc_core.dynamic.cell import Cell
from nnc_core.dynamic.functions.creation import asarray
from nnc_core.dynamic.functions.indexing import take
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.traces.jit import jit
from nnc_core.dynamic.tree import flatten, unflatten
from nnc_core.optim.params import Params
from nnc_core.optim.progress import Progress
from nnc_core.optim.training import make_descent

_log = logging.getLogger("nnc_core.optim")
Data = tuple[Any, Any]


class Network(Protocol):
    """What `minimise_network` asks of a network, such as an `nn.Module`."""

    def named_parameters(self) -> Mapping[str, Any]: ...

    def functional_call(self, weights: Mapping[str, Tensor], *args: Any) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...

    @property
    def training(self) -> bool: ...


def minimise_fun(params: Params, f: Callable[[Any], Tensor], x: Any, *,
                 state: Progress | None = None) -> tuple[Progress, Any]:
    """Minimise the scalar function f from x on, a tensor or a nested structure of such: (progress, the last x).

    An epoch is one update.  `batch` and `loss` are not used.  With the `state` of an earlier run it goes on from
    there, and x must be what that one gave.
    """
    tensors, structure = flatten(x)
    cells = _cells(tensors, state)

    def whole(weights: Mapping[str, Tensor]) -> Any:
        return unflatten(structure, iter([weights[name] for name in cells]))

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return _regularised(params, f(whole(weights)), weights)

    progress = _run(params, loss, cells, None, state)
    return progress, whole({name: cell.read() for name, cell in cells.items()})


def minimise_weight(params: Params, f: Callable[[Any, Tensor], Tensor], w: Any, x: Any, y: Any, *,
                    state: Progress | None = None, validation: Data | None = None) -> tuple[Progress, Any]:
    """Minimise loss(y, f(w, x)) by w, a tensor or a nested structure of such: (progress, the last w).

    x and y have as many rows as each other, of which each update sees a batch; the loss is that of the batch, as
    `params.loss` has it.  `validation` is other (x, y), for stopping.Early.
    """
    tensors, structure = flatten(w)
    cells = _cells(tensors, state)

    def whole(weights: Mapping[str, Tensor]) -> Any:
        return unflatten(structure, iter([weights[name] for name in cells]))

    def plain(weights: dict[str, Tensor], xs: Tensor, ys: Tensor) -> Tensor:
        scalar: Tensor = params.loss(ys, f(whole(weights), xs))
        return scalar

    def loss(weights: dict[str, Tensor], xs: Tensor, ys: Tensor) -> Tensor:
        return _regularised(params, plain(weights, xs, ys), weights)

    progress = _run(params, loss, cells, (x, y), state, _validator(params, plain, cells, validation))
    return progress, whole({name: cell.read() for name, cell in cells.items()})


def minimise_network(params: Params, network: Network, x: Any, y: Any, *, state: Progress | None = None,
                     validation: Data | None = None) -> Progress:
    """Train a network on the rows of x and y, in place: how it went.

    The loss of a batch is that of `params.loss` divided by its rows, plus regularisation of all parameters.
    `validation` is other (x, y), on which the network is evaluated (`network.train(False)`) after each epoch.
    """
    cells = dict(network.named_parameters())

    def plain(weights: dict[str, Tensor], xs: Tensor, ys: Tensor) -> Tensor:
        scalar: Tensor = params.loss(ys, network.functional_call(weights, xs)) / ys.shape[0]
        return scalar

    def loss(weights: dict[str, Tensor], xs: Tensor, ys: Tensor) -> Tensor:
        return _regularised(params, plain(weights, xs, ys), weights)

    measure = _validator(params, plain, cells, validation)

    def evaluate() -> float:
        was = network.training
        network.train(False)
        try:
            return measure() if measure is not None else 0.0
        finally:
            network.train(was)

    return _run(params, loss, cells, (x, y), state, evaluate if measure is not None else None)


def _cells(tensors: list[Any], state: Progress | None) -> dict[str, Cell]:
    """Cells that hold these tensors; those of the minimiser that goes on, if one does."""
    first = [asarray(t).detach() for t in tensors]
    if state is None:
        return {str(i): Cell(t, f"x{i}") for i, t in enumerate(first)}
    cells = state.minimiser.parameters
    if len(cells) != len(first):
        raise StateError(f"the run had {len(cells)} tensors, there are {len(first)} now")
    for cell, t in zip(cells.values(), first, strict=True):
        cell.write(t)
    return cells


def _regularised(params: Params, loss: Tensor, weights: dict[str, Tensor]) -> Tensor:
    return loss if params.regularisation is None else loss + params.regularisation(weights)


def _validator(params: Params, loss: Callable[..., Tensor], cells: Mapping[str, Cell],
               validation: Data | None) -> Callable[[], float] | None:
    """A function that measures the loss on validation data, if there are some."""
    if validation is None:
        return None
    x, y = (asarray(part, device=_device(cells)) for part in validation)
    _rows(x, y)

    def measure(xs: Tensor, ys: Tensor) -> Tensor:
        return loss({name: cell.read() for name, cell in cells.items()}, xs, ys)

    compiled = jit(measure) if params.compiled else measure
    return lambda: float(compiled(x, y))


def _run(params: Params, loss: Callable[..., Tensor], cells: Mapping[str, Cell], data: Data | None,
         state: Progress | None, validate: Callable[[], float] | None = None) -> Progress:
    """Update until the last batch, or until a rule or a checkpoint says stop."""
    if params.stopping is not None:
        params.stopping.check(validate is not None)
    arrays = () if data is None else tuple(asarray(part, device=_device(cells)) for part in data)
    count = _rows(*arrays) if arrays else 0
    progress = _started(params, cells, params.batch.batches(count) if arrays else 1, state)
    step = make_descent(_on_rows(loss) if arrays else loss, progress.minimiser, eager=not params.compiled)
    while progress.batch < progress.batches and not progress.stop:
        rows = params.batch.rows(progress.batch, count) if arrays else None
        batch = arrays if rows is None else (*arrays, asarray(rows, device=_device(cells)))
        _note(params, progress, float(step(*batch)))
        if validate is not None and progress.batch % progress.batches_per_epoch == 0:
            progress.validation_losses.append(validate())
        _after_batch(params, progress)
    if params.verbosity:
        _log.info("--- training summary: %d batches in %.1f s%s", progress.batch, progress.seconds,
                  f", stopped: {progress.reason}" if progress.reason else "")
    return progress


def _on_rows(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def on_rows(weights: dict[str, Tensor], xs: Tensor, ys: Tensor, rows: Tensor | None = None) -> Tensor:
        if rows is not None:
            xs, ys = take(xs, rows, axis=0), take(ys, rows, axis=0)
        return loss(weights, xs, ys)

    return on_rows


def _started(params: Params, cells: Mapping[str, Cell], batches_per_epoch: int, state: Progress | None) -> Progress:
    if state is None:
        if params.verbosity:
            _log.info("%s", params)
        state = Progress(params.minimiser(cells), batches_per_epoch)
    elif state.batches_per_epoch != batches_per_epoch:
        raise StateError(f"the run had {state.batches_per_epoch} batches an epoch, it now has {batches_per_epoch}",
                         hint="go on with the same data and batches")
    elif any(state.minimiser.parameters.get(name) is not cell for name, cell in cells.items()):
        raise StateError("the state is that of a run with other parameters", hint="give the network of that run")
    state.batches, state.stop, state.reason = int(batches_per_epoch * params.epochs), False, ""
    return state


def _note(params: Params, progress: Progress, loss: float) -> None:
    progress.batch += 1
    progress.losses.append(loss)
    if not isfinite(loss) and params.nonfinite == "error":
        raise NonfiniteError(f"the loss of batch {progress.batch} is {loss}", operator="minimise",
                             hint='a smaller learning rate, clipping, or nonfinite="skip"; config.check_nan finds '
                                  'where numbers are lost')


def _after_batch(params: Params, progress: Progress) -> None:
    reason = params.stopping.reason(progress) if params.stopping is not None else None
    if reason is not None:
        progress.stop, progress.reason = True, reason
    if params.checkpoint is not None:
        params.checkpoint.run(progress)
        if progress.stop and not progress.reason:
            progress.reason = "a checkpoint said so"
    if params.verbosity:
        _log.info("%s", progress)


def _rows(x: Tensor, y: Tensor) -> int:
    if not x.shape or not y.shape or x.shape[0] != y.shape[0] or not x.shape[0]:
        raise DataError(f"x is {x.spec} and y {y.spec}, expected as many rows in both")
    return int(x.shape[0])


def _device(cells: Mapping[str, Cell]) -> Any:
    return next(iter(cells.values())).device
