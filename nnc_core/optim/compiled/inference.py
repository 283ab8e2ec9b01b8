"""Networks that were trained: predictions, and losses on other data, in parts of a given size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nnc_core.functions.joining import concat
from nnc_core.optim.owl.loss import Loss
from nnc_core.optim.runs.objective import TrainableNetwork
from nnc_core.optim.runs.rows import call, count_rows, in_parts, uploaded
from nnc_core.optim.settings import COUNT_OR_NONE, check
from nnc_core.tracing.jit import jit
from nnc_core.values.arguments import constructor, located
from nnc_core.values.modes import evaluating, no_grad
from nnc_core.values.tree import tree_map


class Model:
    """Inference by a network: see `model`."""

    @constructor
    def __init__(self, network: TrainableNetwork, batch_size: int | None = None, compiled: bool = True) -> None:
        check("model", "batch_size", batch_size, COUNT_OR_NONE)
        self.network, self.batch_size = network, batch_size
        self._run: Callable[..., Any] = jit(self._predict) if compiled else self._predict

    def _predict(self, *inputs: Any) -> Any:
        return self.network(*inputs)

    def __call__(self, *inputs: Any) -> Any:
        """The network's prediction for all rows of its inputs."""
        given = uploaded(inputs, _device(self.network))
        size = self.batch_size
        with evaluating(), no_grad():
            if size is None:
                return self._run(*given)
            parts = [self._run(*part) for part in in_parts(given, count_rows(given), size)]
        return parts[0] if len(parts) == 1 else tree_map(lambda *rows: concat(list(rows)), *parts)

    def __repr__(self) -> str:
        return f"<inference by {type(self.network).__name__}, {self.batch_size or 'all'} rows at once>"


def model(network: TrainableNetwork, *, batch_size: int | None = None, compiled: bool = True) -> Model:
    """A function of the network's inputs that gives its prediction, always as in evaluation: without dropout, by
    running statistics, which it leaves alone.  What the network is set to does not matter and is not changed, and
    where training goes on its predictions follow.

    With `batch_size` the rows go through the network in parts, of which the last may be shorter, and are put together
    again.  It may be called in every mode; `compiled` makes a graph of the network where nothing else does.
    """
    return Model(network, batch_size, compiled)


@located
def evaluate(network: TrainableNetwork, loss: Loss, x: Any, y: Any, *, batch_size: int | None = None,
             compiled: bool = True) -> float:
    """The loss of a network on other data, as in evaluation, divided by the number of rows.

    `loss` is one of optim.owl.loss or any function of (targets, prediction) that is a sum over rows, such as the count
    of those that are right; with `batch_size` the sums of parts are added up.  For a loss each epoch, `train` takes
    `validation`.
    """
    check("evaluate", "batch_size", batch_size, COUNT_OR_NONE)
    data = uploaded((x, y), _device(network))
    count = count_rows(data)

    def total(xs: Any, ys: Any) -> Any:
        return loss(ys, call(network, xs))

    run = jit(total) if compiled else total
    with evaluating(), no_grad():
        return sum([float(run(*part)) for part in in_parts(data, count, batch_size)]) / count


def _device(network: TrainableNetwork) -> Any:
    return next((cell.device for cell in network.cells().values()), None)
