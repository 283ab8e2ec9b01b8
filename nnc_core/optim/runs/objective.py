"""The objective of training: the loss of a batch as a function of the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten

if TYPE_CHECKING:
    from nnc_core.optim.owl.params import Params

Weights: TypeAlias = dict[str, Tensor]
Objective: TypeAlias = Callable[[Weights, Any, Any], Tensor]
"""From weights by name, inputs and targets to a floating-point scalar."""


class TrainableNetwork(Protocol):
    """A network as training sees it, such as an `nn.Module`."""

    def __call__(self, *args: Any) -> Any: ...

    def named_parameters(self) -> Mapping[str, Any]: ...

    def cells(self) -> Mapping[str, Cell]: ...

    def functional_call(self, weights: Mapping[str, Tensor], *args: Any) -> Any: ...


def loss_of(network: TrainableNetwork, loss: Callable[..., Any], *, mean: bool = True) -> Objective:
    """loss(targets, the network's prediction), divided by the rows of the batch if `mean`.

    A tuple of inputs is a network's inputs one by one.
    """

    def objective(weights: Weights, xs: Any, ys: Any) -> Tensor:
        inputs = xs if isinstance(xs, tuple) else (xs,)
        total: Tensor = loss(ys, network.functional_call(weights, *inputs))
        return total / first_array(ys).shape[0] if mean else total

    return objective


def regularised(objective: Callable[..., Tensor], params: Params) -> Callable[..., Tensor]:
    """With the regularisation of all weights added, which has its gradient too."""
    extra = params.regularisation
    if extra is None:
        return objective
    return lambda weights, *batch: objective(weights, *batch) + extra(weights)


def first_array(tree: Any) -> Tensor:
    """The first tensor of a structure."""
    return next(x for x in flatten(tree)[0] if isinstance(x, Tensor))
